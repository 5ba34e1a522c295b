/* The inside of a replay. Private to agent/core/replay*.c. */
#ifndef JURY_CORE_REPLAY_STATE_H
#define JURY_CORE_REPLAY_STATE_H

#include "agent/core/engine_state.h"
#include "agent/core/replay.h"

struct replay_detail {
    uint64_t heard_ns;
    uint8_t reason;
    uint16_t http_status;
};

struct replay_slot {
    struct target_id id; /* in the engine that is replayed */
    struct history_votes votes;
    struct replay_detail *details; /* LIMIT_NODES of them, owned; NULL = nothing was said */
    /* With other thresholds: of the streak of own results. */
    uint8_t result; /* enum probe_class */
    uint64_t result_ns;
    uint64_t spacing_ns; /* of its first two; 0 = there is one */
};

struct replay_row {
    struct row_id id;         /* in the engine that is replayed */
    uint8_t begins;           /* enum health_state in which a history without a beginning begins */
    bool begins_gray;         /* with it */
    uint64_t initial_ns;      /* with it */
    uint64_t joined_ns;       /* with it */
    bool was_kept;            /* before it: it was judged before this start */
    struct kept_verdict kept; /* of last-known-good; birth 0 = none */
    bool is_kept;             /* it gives the state in this step */
    uint8_t state;            /* after the last step */
    bool is_told;             /* its chain is there, so each change of its verdict is */
    uint8_t told_from, told_to; /* what the history says of this step; HEALTH_NONE = nothing */
    uint64_t out_since_ns;      /* 0 = it is not out */
};

struct replay_votes {
    struct replay_slot *slots; /* sorted by id; the index is the slot in the replay */
    struct replay_row *rows;
    uint32_t n_slots, n_rows;
    struct id_set changed_rows; /* in this step: to be looked at */
    uint64_t now_ns;
};

struct replay_entry {
    struct history_entry entry;
    uint32_t index; /* slot or row in the replay */
};

/* All that is played: a copy, which the engine that is replayed may leave behind. */
struct replay_plan {
    struct engine_config config; /* of the engine that is replayed, as what follows */
    uint64_t end_ns;             /* its time */
    uint64_t kept_at_ns, kept_age_ms;
    bool is_held;                     /* the group, by this node, now */
    uint64_t first_probe_ns;          /* of it; 0 = none yet */
    struct history_version *versions; /* oldest first, the present one last; references */
    size_t n_versions;
    struct history_surroundings *surroundings; /* oldest first */
    size_t n_surroundings;
    struct replay_votes votes;
    uint32_t scope_row; /* in the replay */
    struct replay_entry *entries;
    size_t n_entries;
    struct history_from
        begin;           /* what is not after it is played silently, or before it (is_whole) */
    bool counts_results; /* other thresholds: own opinions are made anew of own results */
    bool is_whole;       /* from the beginning: `begin` is the first step */
};

struct replay {
    struct replay_question question;
    struct replay_answer *answer; /* while it is played */
    struct replay_plan plan;
    struct engine *engine; /* of its own */
    struct engine_actions *actions;
    const struct server_group *present; /* of the last version */
    struct catalog_group *group; /* as the engine has it, numbered for it; owned, NULL at first */
    size_t next_entry, next_version, next_surroundings;
    uint64_t n_steps;
    uint64_t next_event;
    uint32_t n_out;
};

/* --- replay_take.c: what the history has, into the engine of the replay --- */

void replay_free_group(struct catalog_group *group); /* NULL is allowed */
/* The next version of the group. Errors: ERR_NOMEM. */
int replay_take_version(struct replay *replay);
void replay_take_surroundings(struct replay *replay);
void replay_take_entry(struct replay *replay, const struct replay_entry *item);
/* One more own result of the streak that the slot is in. */
void replay_count_result(struct replay *replay, uint32_t slot);
void replay_set_node_hold(struct replay *replay, bool is_on);
void replay_see_first_probe(struct replay *replay);

/* --- replay_plan.c --- */

/* counts_results of the plan is set before, the rest is made here. Errors: ERR_NOMEM;
 * replay_plan_close all the same. */
int replay_plan_make(struct replay_plan *plan, const struct engine *engine,
                     const struct catalog_group *group);
void replay_plan_close(struct replay_plan *plan);
/* Indexes in the replay; CATALOG_NO_SLOT, CATALOG_NO_ROW: not in it. */
uint32_t replay_find_slot(const struct replay_votes *votes, struct target_id id);
uint32_t replay_find_row(const struct replay_votes *votes, struct row_id id);
void replay_take_vote(struct replay_slot *slot, const struct history_entry *entry);

#endif
