/* The inside of the engine. Private to agent/core/engine*.c. */
#ifndef JURY_CORE_ENGINE_STATE_H
#define JURY_CORE_ENGINE_STATE_H

#include <assert.h>

#include "agent/core/compose.h"
#include "agent/core/drain_barrier.h"
#include "agent/core/engine.h"
#include "agent/core/engine_view.h"
#include "agent/core/events.h"
#include "agent/core/guard.h"
#include "agent/core/guard_flap.h"
#include "agent/core/health.h"
#include "agent/core/history.h"
#include "agent/core/id_set.h"
#include "agent/core/observers.h"
#include "agent/core/path_stats.h"
#include "agent/core/self_doubt.h"
#include "agent/core/timers.h"
#include "agent/core/verdict.h"
#include "agent/core/votes.h"
#include "agent/core/weight_scale.h"
#include "common/base/units.h"

#define NO_ROW CATALOG_NO_ROW
#define NO_SCOPE UINT32_MAX

/* There are 100,000 of the next three: wide members first, and no larger than these bounds
 * (tests/unit/core/test_memory.c says what a target takes in all). */
#define ENGINE_TARGET_BYTES 80
#define ENGINE_BACKEND_BYTES 208
#define ENGINE_ROW_BYTES 24

/* One target, by slot. */
struct engine_target {
    uint64_t birth; /* 0 = the slot is free */
    uint64_t opinion_since_ns;
    uint64_t fail_start_ns; /* start of the first probe of the fail streak */
    uint64_t conclusive_ns; /* end of the last conclusive result, for votes; 0 = none yet */
    uint64_t last_ns;       /* end of the last of any class; 0 = none yet */
    uint32_t first_row;     /* backends that use it, linked by next_user; NO_ROW */
    uint32_t timeout_ms : 31;
    uint32_t is_noted : 1; /* each scope of those backends knows of a first probe */
    uint32_t interval_ms;
    struct health health;
    struct path_stats path;
    uint32_t response_us;      /* with conclusive_ns */
    uint32_t last_us;          /* how long the last took */
    uint32_t http_status : 10; /* with conclusive_ns */
    uint32_t last_http_status : 10;
    uint32_t reason : 6; /* enum probe_reason, with conclusive_ns */
    uint32_t last_reason : 6;
    struct cert_end cert;        /* as last seen */
    struct health_policy policy; /* H 0: nobody probes it, it is composed (engine_parts.c) */
    uint8_t kinds_high : 5;      /* of its probes, or of its parts' (target_kinds), without bit 0 */
    uint8_t last_class : 2;      /* enum probe_class */
    bool is_faulty : 1;          /* the last was a shortage of this node */
};
static_assert(sizeof(struct engine_target) <= ENGINE_TARGET_BYTES, "of each target");

/* Bits 1 << enum check_type. */
static inline uint32_t target_kinds(const struct engine_target *target)
{
    return (uint32_t)target->kinds_high << 1;
}

static inline bool target_is_composed(const struct engine_target *target)
{
    return target->policy.healthy_threshold == 0;
}

/* Several checks of a backend, by slot: of a composed target its parts, of a part those that are
 * composed of it, of a dependency the backends that have it. A place is that of one in the arrays
 * of its owner: (slot or row) * LIMIT_CHECKS + index + 1; 0 = none. */
struct target_parts {
    uint8_t n_parts; /* 0: it is not composed, or of nothing yet */
    uint8_t k;
    uint8_t part; /* that the vote has its reason from (compose.h) */
    uint32_t slots[LIMIT_CHECKS];
    uint32_t next_composed[LIMIT_CHECKS]; /* places of the same part in others */
    uint32_t first_composed;
    uint32_t first_dependent; /* places in row_dependencies */
};

/* The checks of class dependency of one backend, by row. */
struct row_dependencies {
    uint8_t n;
    uint8_t checks[LIMIT_CHECKS]; /* index in the group's list */
    uint8_t states[LIMIT_CHECKS]; /* enum health_state: initial, healthy or unhealthy */
    struct target_id targets[LIMIT_CHECKS];
    uint32_t next_dependent[LIMIT_CHECKS];
};

/* How the probes of one target are shared among the observers (share.h), by slot. */
struct target_share {
    uint8_t n_probers; /* 0 = all */
    bool rechecks;     /* check.recheck */
    bool is_on;        /* this node probes it */
    bool is_now;       /* the order that is due says: at once */
    bool is_called;    /* it rested, and had no conclusive result since */
    bool all_probe;
    unsigned rank;
    uint32_t calm_ms, grace_ms;
    uint64_t counting; /* members in n when the rest was worked out; bits, as the next ones */
    uint64_t assigned;
    uint64_t standing; /* the assigned, and before all of those have voted the former ones */
    uint64_t joined;   /* who has voted since all probe, whether it still does or not */
    uint64_t electors; /* n is theirs: `standing` and `joined`; in trouble also who is not heard */
    uint64_t failing;  /* peers whose vote fails or wavers, as last seen */
    uint64_t enter_ns; /* when assigned ones that never voted are in `standing`; 0 = all are */
    uint64_t few_ns;   /* until then too few votes make nobody probe */
    uint64_t calm_since_ns; /* all probe, and nothing has failed since; 0 = something does */
    uint64_t recheck_ns;    /* when it was last told to probe at once; 0 = never */
};

/* One (scope, backend), by row. */
struct engine_backend {
    uint64_t birth; /* 0 = the row is free, or a scope's */
    uint64_t backend_id;
    struct target_id target; /* slot CATALOG_NO_SLOT: not probed */
    struct endpoint at;
    uint32_t scope; /* index in scopes */
    uint32_t next_in_scope;
    uint32_t next_user, previous_user; /* of the target */

    uint32_t drain_timeout_ms;
    uint64_t drain_revision;
    uint64_t drain_deadline_ns; /* boot time; of deadline_revision; 0 = none */
    uint64_t deadline_revision;
    uint64_t verdict_deadline_ns; /* boot time; 0 = none */
    struct closed_count closed;

    int64_t since_ns;    /* may lie before this machine's start */
    uint64_t return_ns;  /* since when the votes say up, without a break; 0 = they do not */
    uint64_t break_ns;   /* they turned then: it is a break if they say down one V later; 0 */
    uint64_t bad_ns;     /* when is_bad began; 0 = it was not, or is well again */
    uint64_t turned_ns;  /* when is_bad changed, or it returned */
    uint64_t initial_ns; /* when `initial` began */
    uint64_t joined_ns;  /* when it began to be probed in its scope */
    struct flap_memory flaps;

    uint32_t closed_low;  /* low bits of the revision of the drain that `closed` is of */
    uint16_t http_status; /* with `reason` */
    uint8_t reason;       /* of the deciding votes at the last change */
    uint8_t health_state;
    uint8_t held_causes;
    uint8_t weight;
    uint8_t admin_state;
    uint8_t life;
    bool is_linked : 1; /* it is among the users of its target */
    bool is_gray : 1;
    bool is_unreachable : 1; /* and it steers */
    bool is_pending : 1;     /* the votes say down, and it is not its turn yet */
    bool is_returning : 1;   /* the votes say up, and a guard lets it wait */
    bool is_damped : 1;      /* with it: that is flap damping, not the limit on returns */
    bool is_admitted : 1;    /* its turn has come */
    bool was_judged : 1;     /* taken from last-known-good */
    bool is_bad : 1;         /* the votes say down of one that was healthy when it went bad */
    bool is_found : 1;       /* in the group's next version; only while the catalog is followed */
};
static_assert(sizeof(struct engine_backend) <= ENGINE_BACKEND_BYTES, "of each backend");

/* How much of its weight counts, by row (engine_weight.c). */
struct engine_weight {
    uint64_t slow_ns; /* when its slow start began; 0 = it is in none */
    bool is_out;      /* it took no new flows when its scope was last looked at */
    uint8_t graded;   /* what votes or response times leave: 1..100; 0 = all of it */
    uint8_t percent;  /* all in all; likewise */
};

/* A guard at work on a scope. */
struct scope_guard {
    bool is_on;        /* of hold, hold_sources say it */
    uint64_t since_ns; /* when it began */
    uint64_t due_ns;   /* when it is to be looked at again; 0 = it need not be */
};

struct engine_scope {
    struct row_id row;           /* birth 0 = free place */
    struct history_from version; /* when the group became what it is, */
    struct history_from made;    /* and when the scope was made; of the history */
    uint64_t group_id;
    char name[LIMIT_NAME_BYTES + 1];
    uint32_t first_row; /* backends, in the catalog's order, linked by next_in_scope */
    uint32_t n_backends;
    uint8_t profile;
    uint8_t failover;
    uint8_t all_bad;
    uint8_t fail_open_percent;
    bool has_check;
    uint64_t failure_window_ms;
    uint32_t interval_ms;
    struct verdict_rule rule;
    struct drain_policy drain;
    uint32_t idle_timeout_ms;
    uint64_t first_probe_ns; /* start of the first probe since the scope's creation; 0 = none */

    struct class_result result;
    uint64_t since_ns; /* of the group state */

    uint8_t hold_sources;    /* enum hold_source: HOLD_BY_GROUP, HOLD_BY_NODE_GROUP */
    uint64_t held_more_ns;   /* until then backends that a hold keeps are told together, */
    uint32_t n_held_more[2]; /* so many are to be told: not held any more, held */
    struct hold_origin held_by_group;
    struct hold_origin held_by_node;
    struct scope_guard guards[GUARD_KINDS]; /* by enum guard_kind */
    struct guard_policy guard;
    uint32_t n_members; /* enabled and not being removed */
    uint32_t cycle_ms;  /* T + I */
    struct velocity velocity, returns;
    uint64_t well_ns;      /* when it last ceased to be in fail-open or closed; 0 = it never was */
    bool shadow_is_kept;   /* its time is over, and it would take out too many */
    bool has_weighing;     /* weights and weight_timers are in use */
    uint8_t graded_weight; /* enum graded_weight */
    uint64_t grade_ns;     /* by latency: when it is looked at next */
    uint32_t median_us;    /* likewise: of its members when last looked at; 0 = too few */
};

/* What was given out for a row, whatever it belongs to. */
struct engine_row {
    uint64_t deadline_boot_ns; /* of the word, as what follows but `scope` */
    uint32_t birth_low;        /* its low bits: a word has 16 of them */
    uint32_t scope_row;
    uint32_t scope; /* the scope whose own row this is; NO_SCOPE */
    uint8_t row_class;
    uint8_t flow_policy : 4;
    uint8_t deadline_cause : 4;
    uint8_t weight_percent;
    bool has_word;
};
static_assert(sizeof(struct engine_row) <= ENGINE_ROW_BYTES, "of each row");

/* What is known of a member beside its votes, by its index in observers. */
struct engine_peer {
    uint64_t hello_ns; /* 0 = never */
    uint64_t heard_ns; /* a vector or a report, newer than the last: a replay is no sign of life */
    uint64_t report_epoch, report_sequence; /* of the newest drain report */
    uint64_t revision;
    bool differs_told; /* the alarm was raised for this peer */
};

struct replay_votes;

/* What a revision says of one vote chunk; worked out once a revision, it goes out each V. */
struct engine_chunk {
    struct hash128 digest;
    uint64_t floor;
    uint16_t n_births;
    struct target_id births[LIMIT_BIRTHS_PER_CHUNK];
};

struct engine {
    struct engine_config config;
    uint64_t now_ns;
    uint32_t step; /* number of this step, from 1; wraps */
    uint64_t boot_ns;
    struct catalog *catalog; /* NULL before the first */
    uint64_t vote_interval_ns;
    bool is_pressed;   /* the probe budget delays probes */
    uint64_t start_ns; /* of the engine: nobody can have been heard before */
    struct self_doubt doubt;
    bool doubt_is_due;     /* something that the doubt depends on changed */
    bool kept_is_old;      /* what guards remember, and last-known-good has, changed */
    uint32_t suspect_mask; /* what the doubt came to when it was last judged */
    /* Whose change the catalog is that was taken in last; "" = not one's alone, or not known. */
    char change_actor[LIMIT_NAME_BYTES + 1];
    uint8_t hold_sources;   /* enum hold_source: HOLD_BY_CLUSTER, HOLD_BY_NODE */
    uint64_t hold_since_ns; /* of the first of them */
    struct hold_origin held_by_cluster;
    struct hold_origin held_by_node;

    struct observers observers;
    struct engine_peer peers[LIMIT_NODES];
    struct votes *votes;
    struct engine_chunk chunks[LIMIT_VOTE_CHUNKS]; /* as far as asked for */
    uint32_t chunks_known;                         /* bits; none of a new catalog */

    struct engine_target *targets; /* by slot */
    struct target_share *shares;   /* by slot, n_shares: none before a check is shared */
    uint32_t n_shares;
    struct target_parts *parts; /* by slot, n_parts: none before a group has a list of checks */
    uint32_t n_parts;
    struct row_dependencies *dependencies; /* by row, n_dependencies: likewise */
    uint32_t n_dependencies;
    struct id_set uncomposed;        /* slots whose opinion is to be composed anew */
    uint32_t n_sharded;              /* slots whose check has probers */
    uint64_t heard;                  /* members (bits) in n with a vector of the last 3 V */
    uint64_t silent_ns;              /* when the next of them falls silent, if nothing comes */
    struct engine_backend *backends; /* by row */
    struct engine_row *rows;         /* by row */
    struct engine_weight *weights;   /* by row, n_weights: none before a group weighs */
    uint32_t n_weights;
    struct weight_latency *latencies; /* by slot, n_latencies: none before a group asks for them */
    uint32_t *response_times;         /* scratch, n_latencies or LIMIT_GROUP_ROWS */
    uint32_t n_latencies;
    struct engine_scope *scopes;
    uint32_t free_scope;                /* first free place, linked by first_row; NO_SCOPE */
    uint32_t n_slots, n_rows, n_scopes; /* room in the arrays */
    struct guard_candidate *candidates; /* scratch, n_rows or LIMIT_GROUP_ROWS */
    struct class_member *members;       /* likewise */
    uint8_t *classes;                   /* likewise */
    struct addr sources[2];             /* own probe sources, IPv4 and IPv6 */

    struct id_set dirty_slots;    /* verdicts to look at again */
    struct id_set dirty_scopes;   /* classes to look at again */
    struct id_set freed_rows;     /* to be told as removed */
    struct id_set waiting_drains; /* rows that wait for a place in drains */
    struct timers opinion_timers; /* by slot: own opinion turns `none` */
    struct timers share_timers;   /* by slot: who probes it is to be looked at again */
    struct id_set orders_due;     /* slots whose probes are to be ordered otherwise */
    uint64_t beat_ahead_ns;       /* clock of the phases: now_ns - start_ns + this */
    uint64_t beat_told_ns;        /* beat_ahead_ns that the orders were made with */
    struct timers guard_timers;   /* by scope: the earliest due_ns of its guards */
    struct timers weight_timers;  /* by scope: the next step of a weight; as many as weights want */
    struct timers row_timers;     /* by row: window of `initial`; of a scope: end of warming */
    struct drains drains;

    struct kept_verdict *kept_verdicts; /* sorted by row; owned */
    size_t n_kept_verdicts;
    struct kept_deadline *kept_deadlines; /* sorted by row; owned; row NO_ROW = used up */
    size_t n_kept_deadlines;
    uint64_t kept_at_ns;
    uint64_t kept_age_ms;

    uint64_t next_vector_ns;
    uint64_t sequence;       /* of the last vote message */
    uint32_t n_changes_told; /* since the last vector was due */
    uint64_t question_sequence;
    uint32_t drain_cursor;  /* place of the last drain reported */
    bool data_plane_counts; /* as last heard */
    uint64_t data_plane_ns; /* when */

    struct event_ring events;
    struct history *history;     /* NULL in the engine of a replay */
    struct replay_votes *replay; /* NULL but in such: votes come from there */
    struct engine_counters counters;
};

/* engine.c */
struct event *engine_log(struct engine *engine, enum event_kind kind);
/* Everything that depends on V, n or time is to be looked at again. */
void engine_mark_all(struct engine *engine);
void engine_mark_scopes(struct engine *engine);
/* The times of verdicts: windows of `initial`, ends of warming, turns of guards. */
void engine_run_verdict_timers(struct engine *engine);
uint64_t engine_verdict_timer_ns(const struct engine *engine);
/* Judge what is marked. */
void engine_settle(struct engine *engine, struct engine_actions *actions);
uint8_t engine_marks(const struct engine *engine, const struct engine_backend *backend);

/* engine_room.c. Errors: ERR_NOMEM; there may be more room than before, and nothing else. */
int engine_reserve(struct engine *engine, const struct catalog *catalog,
                   struct engine_actions *actions);
struct engine_room {
    uint32_t n_slots, n_rows, n_scopes;
    uint32_t n_shares;       /* slots that may be shared; 0 = none is */
    uint32_t n_parts;        /* slots that may be composed, or parts; 0 = none is */
    uint32_t n_dependencies; /* rows that may have some; 0 = none does */
    bool has_weights;        /* a group weighs */
    uint32_t n_latencies;    /* slots whose response times are compared; 0 = none are */
};
int engine_reserve_room(struct engine *engine, const struct engine_room *room,
                        struct engine_actions *actions);

/* engine_catalog.c. Errors: ERR_NOMEM, nothing changed. */
int engine_take_catalog(struct engine *engine, struct catalog *catalog,
                        struct engine_actions *actions);
/* One group alone, its targets being there. revision: another one each time. */
void engine_follow_group(struct engine *engine, const struct catalog_group *before,
                         const struct catalog_group *after, uint64_t revision);
void engine_make_target(struct engine *engine, struct target_id id,
                        const struct health_check *check);

/* engine_history.c: what the replay of a verdict needs. Nothing in the engine of a replay. */
void engine_keep_surroundings(struct engine *engine);
void engine_keep_votes(struct engine *engine, uint32_t slot, const struct tally *tally);
/* A conclusive result was counted. */
void engine_keep_result(struct engine *engine, uint32_t slot, enum probe_class probe_class);
struct row_note {
    uint8_t kind; /* enum history_kind, of a row */
    uint8_t from, to;
    uint8_t reason;
};
void engine_keep_row(struct engine *engine, uint32_t row, const struct row_note *note);
/* The group of a scope is about to be another one, or to leave. */
void engine_keep_version(struct engine *engine, const struct engine_scope *scope,
                         const struct catalog_group *group);
struct history_from engine_history_now(const struct engine *engine);

/* replay_votes.c: the votes that a replay has in the place of the vote table. */
void replay_count(const struct replay_votes *votes, uint32_t slot, uint64_t peers,
                  struct tally *tally);
uint64_t replay_electors(const struct replay_votes *votes, uint32_t slot);
void replay_look(const struct replay_votes *votes, uint32_t peer, uint32_t slot,
                 struct vote_look *ret_look);
/* The verdict on a row changed in this step. */
void replay_note_row(struct replay_votes *votes, uint32_t row);
/* What last-known-good gave the row in this step; NULL: nothing. */
const struct kept_verdict *replay_kept(const struct replay_votes *votes, uint32_t row);

/* engine_rows.c */
void engine_update_row(struct engine *engine, uint32_t scope, const struct catalog_group *group,
                       const struct catalog_backend *from);
void engine_free_row(struct engine *engine, uint32_t row);
/* Take the row out of its target's users; nothing when it is not among them. */
void engine_unlink_user(struct engine *engine, uint32_t row);

/* engine_kept.c. Errors: ERR_NOMEM, nothing changed. */
int engine_take_kept(struct engine *engine, const struct last_known_good *kept);
/* Whatever its definition was; NULL: none. */
const struct kept_verdict *engine_kept_of_row(const struct engine *engine, struct row_id row);
/* NULL: none for this row, birth and definition. */
const struct kept_verdict *engine_find_kept(const struct engine *engine, uint32_t row,
                                            uint64_t birth, struct hash128 definition);
/* The kept deadline of a row, taken out; 0 = none. drain_revision 0 = by verdict. */
uint64_t engine_use_kept_deadline(struct engine *engine, uint32_t row, uint64_t birth,
                                  uint64_t drain_revision);

/* engine_mesh.c */
void engine_hear_hello(struct engine *engine, uint64_t peer, const struct hello *hello);
void engine_hear_chunk(struct engine *engine, uint64_t peer, const struct vote_chunk *chunk);
void engine_hear_change(struct engine *engine, uint64_t peer, const struct vote_change *change);
void engine_answer(struct engine *engine, uint64_t peer, const struct vote_question *question,
                   struct engine_actions *actions);
void engine_ask(struct engine *engine, struct target_id target, struct engine_actions *actions);
void engine_publish_vector(struct engine *engine, struct engine_actions *actions);
void engine_publish_change(struct engine *engine, uint32_t slot, struct engine_actions *actions);

/* engine_verdict.c */
/* The own opinion changed: tell, publish and judge. */
void engine_opinion_changed(struct engine *engine, uint32_t slot, enum opinion before,
                            struct engine_actions *actions);
struct event *engine_log_backend(struct engine *engine, const struct engine_backend *backend,
                                 enum event_kind kind, const struct tally *tally);
/* The votes on a target, those that decided first, and the reason that most of them have. */
void engine_tell_votes(const struct engine *engine, uint32_t slot, bool is_down,
                       struct event *event);
void engine_note_first_probe(struct engine *engine, uint32_t slot, uint64_t start_ns);
void engine_take_result(struct engine *engine, const struct probe_result *result,
                        struct engine_actions *actions);
void engine_opinion_stale(struct engine *engine, uint32_t slot, struct engine_actions *actions);
/* The own opinion is `none` from now on. */
void engine_opinion_forget(struct engine *engine, uint32_t slot, struct engine_actions *actions);
void engine_judge_slot(struct engine *engine, uint32_t slot, struct engine_actions *actions);
void engine_tally(const struct engine *engine, uint32_t slot, struct tally *ret_tally);
/* For a guard, which works before its step's votes are all in: what it saw is kept (history.h). */
void engine_weigh(struct engine *engine, uint32_t slot, struct tally *ret_tally);
/* The same of all observers, whoever is to probe the target. */
void engine_tally_all(const struct engine *engine, uint32_t slot, struct tally *ret_tally);
/* When a backend in `initial` may take this node's own opinion in a tie. */
uint64_t engine_initial_end_ns(const struct engine *engine, const struct engine_backend *backend);

/* engine_parts.c: several checks of a backend */
/* Follow what the catalog says of a row's checks; its own target is followed already. */
void engine_follow_parts(struct engine *engine, uint32_t row, const struct catalog_group *group,
                         const struct catalog_backend *from);
void engine_free_dependencies(struct engine *engine, uint32_t row);
/* The slot is about to be free, whatever it was. */
void engine_free_parts(struct engine *engine, uint32_t slot);
/* The own opinion of a part, or what it comes from, changed. */
void engine_part_changed(struct engine *engine, uint32_t slot);
/* Compose what is due. */
void engine_compose(struct engine *engine, struct engine_actions *actions);
/* The first probe of a part is one of what is composed of it. */
void engine_note_part_probe(struct engine *engine, uint32_t slot, uint64_t start_ns);
/* Verdicts over a dependency, by the rules of those that have it. */
void engine_judge_dependents(struct engine *engine, uint32_t slot, const struct tally *tally);
bool engine_is_degraded(const struct engine *engine, uint32_t row);
/* Of a composed target the slot of the part that decides, else its own. */
uint32_t engine_deciding_slot(const struct engine *engine, uint32_t slot);
/* Part of a vote, from 1, of a backend that is composed: the name of that check; "" = none. */
const char *engine_part_name(const struct engine *engine, uint32_t row, uint8_t part);
/* Name the check of that index of the group's list. */
void engine_tell_check(const struct engine *engine, uint32_t row, uint8_t index,
                       struct event *event);
/* A backend that a target is probed for, and by which check: its own user, or one that it is a part
 * or a dependency of. NO_ROW: none. ret_check: its name, "" with a single check. */
uint32_t engine_find_user(const struct engine *engine, uint32_t slot, const char **ret_check);
/* All kinds of its probes are doubted. */
bool engine_is_suspect(const struct engine *engine, uint32_t slot);

/* engine_view_checks.c */
void engine_view_last(const struct engine_target *target, uint64_t now_ns,
                      struct own_result *ret_last);
void engine_view_checks(const struct engine *engine, const struct catalog_group *group,
                        const struct catalog_backend *from, uint64_t now_ns,
                        struct backend_view *view);

/* engine_share.c: probes that the observers share */
bool engine_is_shared(const struct engine *engine, uint32_t slot);
/* This node probes it. */
bool engine_is_on(const struct engine *engine, uint32_t slot);
void engine_share_make(struct engine *engine, struct target_id id,
                       const struct health_check *check);
void engine_share_free(struct engine *engine, uint32_t slot);
/* Who can be heard now. */
void engine_share_hear(struct engine *engine);
/* By the votes that are there: who probes it, and whose votes make its n. */
void engine_share_follow(struct engine *engine, uint32_t slot);
/* A conclusive result of a node that was called to a healthy target. */
bool engine_share_adopts(struct engine *engine, uint32_t slot, enum probe_class probe_class);
/* The own opinion is pass, though the last probe failed. */
bool engine_share_wavers(const struct engine *engine, uint32_t slot);
/* Leave n, lost votes and zones to the electors. */
void engine_share_cut(const struct engine *engine, uint32_t slot, struct tally *tally);
uint64_t engine_beat_ns(const struct engine *engine);
void engine_hear_beat(struct engine *engine, uint64_t beat_ms);
void engine_give_orders(struct engine *engine, struct engine_actions *actions);

/* engine_doubt.c */
/* Count what all targets look like; each V. */
void engine_survey(struct engine *engine);
void engine_hear_sentinel(struct engine *engine, const struct sentinel_result *result);
/* A target's last results changed from what it was before. */
void engine_note_target(struct engine *engine, uint32_t slot, const struct engine_target *before);
/* Judge again if something changed; what follows from a new mask. */
void engine_run_doubt(struct engine *engine, struct engine_actions *actions);

/* engine_view_guards.c: those at work into the group's view */
void engine_view_guards(const struct engine *engine, const struct engine_scope *scope,
                        uint64_t now_ns, struct group_view *group);

/* engine_view.c */
/* Observers heard within 3 V, this node included. */
uint8_t engine_n_fresh(const struct engine *engine, uint64_t now_ns);

/* engine_guard.c */
/* What the guards make of an answer of the rule for a row whose state is still the one before. */
void engine_guard_answer(struct engine *engine, uint32_t row, struct verdict_answer *answer);
/* The row has that target no more: what its votes said waits no longer. */
void engine_guard_forget(struct engine *engine, uint32_t row);
/* What the catalog says of a group's guards, and how many members they are of. */
void engine_follow_guard_policy(struct engine *engine, uint32_t scope,
                                const struct catalog_group *group);
/* What the guards knew of a row before this start. */
void engine_adopt_guards(struct engine *engine, uint32_t row, const struct kept_verdict *kept);
/* The time of a scope's guards has come. */
void engine_run_guards(struct engine *engine, uint32_t scope);
/* A guard of the scope is to be looked at by then; an earlier time stands. */
void engine_guard_due(struct engine *engine, uint32_t scope, enum guard_kind guard, uint64_t at_ns);
/* It went to work, or ended it: event and counter, if it was otherwise before. */
void engine_set_guard(struct engine *engine, struct engine_scope *scope, enum guard_kind guard,
                      bool is_on);
/* The verdict stays as it was. cause: enum held_cause, or 0. */
void engine_freeze(struct engine *engine, const struct engine_backend *backend, uint8_t cause,
                   struct verdict_answer *answer);
/* Every backend of the scope is judged again. */
void engine_mark_scope(struct engine *engine, const struct engine_scope *scope);

/* engine_guard_return.c: flap damping and the limit on returns */
/* Returns are looked at by one of the two. */
bool engine_has_returns(const struct engine_scope *scope);
/* Let a return wait for its turn. */
void engine_wait_return(struct engine *engine, uint32_t row, struct verdict_answer *answer);
/* It waits no longer: it returned, or the votes turned. */
void engine_break_return(struct engine *engine, uint32_t row);
/* The time of the scope's waiting returns has come. */
void engine_admit_returns(struct engine *engine, uint32_t scope);
/* A group in fail-open or closed lets nobody wait. Returns true if somebody did. */
bool engine_release_returns(struct engine *engine, uint32_t scope, struct engine_actions *actions);

/* engine_guard_alarm.c: many that go bad at once */
/* Remember since when a row is bad by the votes, whatever the guards make of it. */
void engine_note_bad(struct engine *engine, uint32_t row, const struct verdict_answer *answer);
/* It went bad or well, or has returned. */
void engine_note_turn(struct engine *engine, uint32_t row);
/* Probed, enabled and not on its way out: of those that limits and the alarm count. */
bool engine_is_member(const struct engine_backend *backend);
/* It is bad and one of the members. */
bool engine_counts_as_bad(const struct engine_backend *backend);
void engine_look_alarm(struct engine *engine, uint32_t scope);
/* It was raised before this start. */
void engine_adopt_alarm(struct engine *engine, uint32_t scope, uint64_t since_ns);

/* engine_guard_shadow.c: the first cycles of a changed check */
/* The check of the scope changed at that time. */
void engine_begin_shadow(struct engine *engine, uint32_t scope, uint64_t since_ns);
bool engine_in_shadow(const struct engine_scope *scope);
/* The shadow's time is over: end it, or stop it there. */
void engine_look_shadow(struct engine *engine, uint32_t scope);
/* How many a shadow may take out when it ends. */
uint32_t engine_shadow_limit(const struct engine_scope *scope);
/* Healthy backends that the votes take out, in the scope. */
uint32_t engine_n_bad(const struct engine *engine, const struct engine_scope *scope);

/* engine_hold.c: the hold switch */
/* This node's own, and what the catalog says, of the cluster and of a group. */
void engine_override_hold(struct engine *engine, const struct hold_override *override);
void engine_follow_cluster_hold(struct engine *engine);
void engine_follow_group_hold(struct engine *engine, struct engine_scope *scope,
                              const struct server_group *spec);
/* Any hold is on for the scope, whether it freezes anything or not. */
bool engine_is_held(const struct engine *engine, const struct engine_scope *scope);
/* A backend is held from now on, or not any more. True: that is an event of its own; false: it is
 * told with others of its group, within one V. */
bool engine_held_is_news(struct engine *engine, uint32_t row);
/* Fill in that event: which hold, and whose. */
void engine_tell_held(struct engine *engine, const struct engine_scope *scope, bool is_held,
                      struct event *event);
/* Those that are told together. */
void engine_tell_held_more(struct engine *engine, uint32_t scope);
/* Since when anything holds this scope; 0 = nothing does. */
uint64_t engine_hold_since_ns(const struct engine *engine, const struct engine_scope *scope);

/* engine_scope.c */
void engine_settle_scope(struct engine *engine, uint32_t scope, struct engine_actions *actions);
void engine_tell_freed(struct engine *engine, struct engine_actions *actions);
/* It was added, or came back from maintenance, after its scope's first probe. */
bool engine_is_late(const struct engine *engine, const struct engine_backend *backend);
bool engine_table_is_open(const struct engine *engine);

/* engine_weight.c */
/* A group that changes weights by itself. */
bool engine_has_weighing(const struct server_group *group);
/* What the group of a scope is from now on; its rows are those of `first_row`. */
void engine_follow_weighing(struct engine *engine, uint32_t scope,
                            const struct server_group *group);
/* By engine->classes, which are the scope's. */
void engine_weigh_scope(struct engine *engine, uint32_t scope);
void engine_forget_weight(struct engine *engine, uint32_t row);
/* The votes on its target, as they are counted now. */
void engine_grade_votes(struct engine *engine, uint32_t row, const struct tally *tally);
/* A probe passed; and what was known of a slot is of another target. */
void engine_note_latency(struct engine *engine, uint32_t slot);
void engine_forget_latency(struct engine *engine, uint32_t slot);
void engine_view_weight(const struct engine *engine, uint32_t row, uint64_t now_ns,
                        struct backend_view *view);
/* 1..100 */
uint8_t engine_weight_percent(const struct engine *engine, uint32_t row);

/* engine_drain.c */
void engine_follow_drain(struct engine *engine, uint32_t row);
/* Before the row's drain is another one, or none. */
void engine_leave_drain(struct engine *engine, uint32_t row);
void engine_hear_report(struct engine *engine, uint64_t peer, const struct drain_report *report);
void engine_take_data_plane(struct engine *engine, const struct data_plane_status *status);
void engine_run_drains(struct engine *engine, struct engine_actions *actions);
/* Observers (bits) that are still waited for. */
uint64_t engine_drain_pending(const struct engine *engine, const struct drain *drain);
/* Observers whose flows are not known. */
uint64_t engine_drain_uncounted(const struct engine *engine, const struct drain *drain);
/* Observers that are waited for and have said nothing of their flows yet. */
uint64_t engine_drain_unreported(const struct engine *engine, const struct drain *drain);
/* All of them, of a drain that has no place yet; of none else. */
uint64_t engine_drain_waiting(const struct engine *engine, uint32_t row);
/* Deadline of a drain or removal in boot time; 0 = none. */
uint64_t engine_row_deadline_ns(const struct engine_backend *backend);

#endif
