/* Hold, velocity and isolation, judged where a verdict moves. Private to tests/sim.
 *
 * What a guard freezes is part of the verdict, so checker.c asks here before it lets its own copy
 * of a verdict follow the votes. A further guard (flap damping, slow return, shadow) goes the same
 * way: its trace in struct guarded, its word in guards_freeze, what must hold over time in a
 * checker_part of its own. */
#ifndef JURY_TESTS_SIM_GUARDS_H
#define JURY_TESTS_SIM_GUARDS_H

#include "tests/sim/rules.h"

/* One backend's verdict at a step. */
struct edge {
    const struct catalog_group *group;
    const struct backend_line *line; /* what the engine says */
    const struct count *count;
    char followed; /* by the rule: 'd', 'u' or '-' */
    uint64_t now_ns;
};

/* Any hold is on for the group, as far as this node was told. */
bool guards_hold(const struct witness *witness, const struct catalog_group *group);
/* Before the group's backends are judged in this step. */
void guards_begin(struct witness *witness, const struct world_node *node,
                  const struct catalog_group *group);
/* The edge that the engine took, if it took one, is one that it may take (I-9, I-10, R-EJ-3), and
 * what a guard stands in the way of is frozen: row->frozen. row: as it was before the step. */
void guards_freeze(struct checker *checker, const struct witness *witness,
                   const struct world_node *node, const struct edge *edge, struct judged *row);
/* After them: who waits waits for a reason, and the right ones went first. */
void guards_end(struct checker *checker, const struct witness *witness,
                const struct world_node *node, const struct engine_event *event,
                const struct catalog_group *group);

/* Hold and self-doubt as events, and what was heard of whom. */
void guards_hear(struct checker *checker, struct witness *witness,
                 const struct engine_event *event);

/* What last-known-good keeps of a guard with a backend's verdict. */
void guards_keep(const struct checker *checker, struct witness *witness,
                 const struct world_node *node);
bool guards_is_member(const struct catalog_backend *backend);
/* How long, by now, what `is_so` says has been so; since_ns: the caller's, of that. */
uint64_t guards_lasts_ns(uint64_t *since_ns, bool is_so, uint64_t now_ns);
/* shadow.c: as the engine says after this step. */
bool shadow_is_on(const struct guarded *guarded);
void shadow_keep(const struct witness *witness, const struct catalog_group *group,
                 struct kept_row *kept);
/* returns.c: a return of this group waits. */
bool returns_wait(const struct catalog_group *group);
void returns_keep(const struct judged *row, struct kept_row *kept);
/* As guards_delay_ns, of those that come back. */
uint64_t returns_delay_ns(const struct checker *checker, const struct catalog_group *group);
/* The votes brought it back in this step. */
bool guards_has_returned(const struct judged *row);
/* table.c: the class of a scope by the verdicts, ROW_SCOPE_WARMING apart; without_returned: as if
 * those that returned in this step had not. */
uint8_t table_scope_class(const struct witness *witness, const struct catalog_group *group,
                          bool without_returned);
void alarm_keep(const struct witness *witness, const struct catalog_group *group,
                const struct judged *row, struct kept_row *kept);
/* How wrong a time of before the restart may be: while it was down the node's clock was another. */
uint64_t guards_kept_error_ns(const struct kept_row *kept, uint64_t now_ns);

/* How much later than its votes a verdict of the group may come: its members leave a few at a time.
 */
uint64_t guards_delay_ns(const struct catalog_group *group, uint64_t vote_interval_ns);

#endif
