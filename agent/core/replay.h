/* What would the verdicts have been? The kept history (history.h) of one group is played into an
 * engine of its own: the same code for rules, quorum, ties, guards and group states, other
 * policies.
 *
 * What is replaced are the fields in which `change` differs from the group as it is; all else is
 * taken as it was at its time. So with an unchanged document the outcome is what happened, and
 * `is_exact` says whether it was. What the past cannot tell is refused by replay_check: other
 * probes would have had other results.
 *
 * Where the history does not reach back to the group's beginning, verdicts begin as they were then
 * and guards as if they had not worked before.
 *
 * replay_open copies what it needs on the thread that steps the engine, which is a fraction of the
 * work; it is played wherever there is time. Bounded by LIMIT_REPLAY_ENTRIES and
 * LIMIT_REPLAY_STEPS. */
#ifndef JURY_CORE_REPLAY_H
#define JURY_CORE_REPLAY_H

#include "agent/core/engine.h"
#include "agent/core/events.h"
#include "common/base/err.h"

struct replay_question {
    const char *group;                 /* kept until replay_close */
    const struct server_group *change; /* NULL: as it is; kept likewise */
    uint64_t since_ns;                 /* totals and events from then on; 0 = all */
    /* Each event of the group, in the order of time: verdicts, reachable or not, group states,
     * guards. May be NULL. The event is borrowed; its sequence means nothing. */
    void (*on_event)(void *user, const struct event *event);
    void *user;
};

struct replay_answer {
    uint64_t from_ns, to_ns; /* what was played; from == to: there is no history yet */
    bool from_beginning;     /* of the group, or of this start of the node */
    bool had_guards;         /* in one of its versions that were played: not from the beginning they
                                begin as if they had not worked before */
    bool counts_results;     /* see replay_counts_results */
    bool is_exact;           /* with change NULL: each verdict changed as it did; else not told */
    uint32_t n_changes;      /* of verdicts */
    uint32_t n_ejections;    /* healthy to unhealthy */
    uint32_t n_out_max;      /* unhealthy at a time */
    uint64_t out_longest_ns; /* of one backend, unhealthy to the end included */
    uint32_t n_fail_opens;   /* times that the group entered fail-open */
    uint64_t work; /* what it cost: steps, more of a larger group, and what is collected of all
                      its versions; about 0.5 us each */
};

/* Can the past tell what `to` in the place of `from` would have come to? Errors: ERR_INVALID with a
 * sentence that names the field. */
int replay_check(const struct catalog_group *from, const struct server_group *to,
                 struct errmsg *err);

/* Other thresholds: this node's opinions are made anew of its own results, of which the first two
 * of each streak are kept; the others are taken to follow as evenly. Of its peers the opinions are
 * known and not the results: their votes are as they were. */
bool replay_counts_results(const struct catalog_group *from, const struct server_group *to);

struct replay;
/* Given: replay_close. Errors: ERR_NOTFOUND (no such group), those of replay_check, ERR_NOMEM. */
int replay_open(const struct engine *engine, const struct replay_question *question,
                struct replay **ret_replay, struct errmsg *err);
/* Once, on any thread; the question's on_event is called there. Errors: ERR_NOMEM. */
int replay_play(struct replay *replay, struct replay_answer *ret_answer, struct errmsg *err);
void replay_close(struct replay *replay); /* any thread; NULL is allowed */

/* All three at once. */
int replay_group(const struct engine *engine, const struct replay_question *question,
                 struct replay_answer *ret_answer, struct errmsg *err);

#endif
