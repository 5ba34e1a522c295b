/* The completion barrier of drains and removals (spec.md 2 and 6): what each node says is left on a
 * row, and who is still pending. Pure bookkeeping; the engine says when a deadline has passed.
 *
 * At most LIMIT_DRAINS rows are followed at a time; others wait for a place (they are still drained
 * by every node, only their completion is told later). */
#ifndef JURY_CORE_DRAIN_BARRIER_H
#define JURY_CORE_DRAIN_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"

#define DRAIN_NONE UINT32_MAX

/* One drain of one row; bits are indexes of observers.h. */
struct drain {
    uint32_t row; /* UINT32_MAX = free place */
    uint64_t birth;
    uint64_t drain_revision;
    uint64_t since_ns; /* monotonic, when this node began to follow it */
    uint64_t done;     /* nodes that said so; it stays said for this drain */
    uint64_t reported; /* nodes that reported at all */
    uint64_t counting; /* nodes whose data plane counts flows */
    uint64_t emptied; /* nodes that were done and counted none: known, whoever stops counting now */
    uint32_t n_flows[LIMIT_NODES];  /* left on each node, as it said last */
    uint64_t n_closed[LIMIT_NODES]; /* closed there by this drain, the most that it said */
    bool is_told;                   /* completion was told */
};

/* Flows that this node's drain closed, from counters that began before it. */
struct closed_count {
    uint64_t last;     /* as the data planes said last */
    uint32_t n_closed; /* since the beginning, at most UINT32_MAX */
    bool is_begun;
};
/* counter: of all data planes. It goes back when one of them ends: counting goes on from there.
 * from_zero: it is too late to learn what it was before the drain, so all of it counts. */
void closed_count_note(struct closed_count *count, uint64_t counter, bool from_zero);

struct drains {
    struct drain *drains;   /* owned; rising rows are not kept, the map is */
    uint32_t *place_of_row; /* DRAIN_NONE; NULL before the first */
    uint32_t n_places;
    uint32_t n_used;
    uint32_t n_rows;
};

void drains_init(struct drains *drains);
void drains_close(struct drains *drains);
/* Errors: ERR_NOMEM, nothing changed. */
int drains_reserve(struct drains *drains, uint32_t n_rows);
/* Follow (row, birth, revision) from now on; what was known of another drain of the row is
 * forgotten. False: no place. */
bool drains_follow(struct drains *drains, uint32_t row, uint64_t birth, uint64_t drain_revision,
                   uint64_t now_ns);
void drains_drop(struct drains *drains, uint32_t row);
/* NULL: the row is not followed. */
struct drain *drains_find(const struct drains *drains, uint32_t row);
/* The node left: its bits are free for another one. */
void drains_forget_node(struct drains *drains, uint32_t node);

/* Which drain it is about: of which row, by which revision. */
struct drain_id {
    uint32_t row;
    uint64_t birth;
    uint64_t drain_revision;
};
struct drain_word {
    uint64_t n_flows;
    uint64_t n_closed; /* by this drain */
    bool is_counting;
    bool is_done;
};
/* What a node said. Ignored unless it is about this very drain. */
void drains_note(struct drains *drains, struct drain_id id, uint32_t node,
                 const struct drain_word *word);
/* Flows left on those of the nodes that count. */
uint64_t drain_flows(const struct drain *drain, uint64_t nodes);
/* Flows that it closed on them. */
uint64_t drain_closed(const struct drain *drain, uint64_t nodes);
/* Those of the nodes whose flows are not known. silent: nodes that are not heard. A node that only
 * has not said anything yet is pending, and not among them. */
uint64_t drain_uncounted(const struct drain *drain, uint64_t nodes, uint64_t silent);

#endif
