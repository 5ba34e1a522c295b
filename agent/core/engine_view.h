/* What people and programs may ask the engine: copies, made by functions that change nothing
 * (nodectl why, status, group describe, events; metrics). Ages are computed from now_ns, the
 * monotonic time of the question. Everything a view names by pointer is a word in static storage.
 */
#ifndef JURY_CORE_ENGINE_VIEW_H
#define JURY_CORE_ENGINE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/catalog.h"
#include "agent/core/engine.h"
#include "agent/core/events.h"
#include "agent/core/path_stats.h"
#include "agent/core/verdict.h"
#include "common/model/reason.h"
#include "common/model/rule.h"

#define AGE_NEVER UINT64_MAX

/* How a node's vote stands in a verdict. */
enum vote_standing {
    STANDING_NONE = 0,       /* no opinion was ever heard, or it lapsed */
    STANDING_COUNTED = 1,    /* in c, and in f or p */
    STANDING_REMEMBERED = 2, /* aged out or withdrawn: it only blocks */
    STANDING_SUSPECT = 3,    /* its sender doubts it: not used at all */
    STANDING_WAITING = 4,    /* the node does not count as an observer yet */
    STANDING_RESTING = 5     /* it does not probe: not among the electors (share.h) */
};

struct vote_view {
    uint64_t node_id;
    bool is_self;
    uint8_t index;    /* of observers.h */
    uint8_t standing; /* enum vote_standing */
    uint8_t opinion;  /* enum opinion, as counted or remembered */
    uint64_t age_ns;  /* since it was heard; own: since the last conclusive result; AGE_NEVER */
    /* What the node said of its reason; false = not received. */
    bool has_detail;
    uint8_t reason; /* enum probe_reason of its last conclusive probe */
    uint16_t http_status;
    uint32_t response_us;
    uint32_t streak;
    uint64_t since_ns;      /* how long the opinion has held */
    uint64_t detail_age_ns; /* since that was said */
    uint8_t doubt_causes;   /* bits 1 << enum doubt_cause, of a suspect vote; 0 = not received */
    uint8_t part;           /* of several local checks: whose reason it is, from 1; else 0 */
    uint64_t probe_age_ns;  /* since the probe that it is about ended; AGE_NEVER = not told */
};

/* What it would take (N6). votes: how many more counted votes must be of that kind; own_results:
 * how many more results in a row until this node's own opinion is of that kind (0 = it is). */
struct next_change {
    bool is_possible; /* false: no votes could bring it now; the sentence says why */
    uint8_t to;       /* enum health_state */
    uint8_t votes;
    uint8_t own_results;
    char sentence[256];
};

struct own_result {
    bool has_result;
    uint8_t probe_class; /* enum probe_class */
    uint8_t reason;      /* enum probe_reason */
    uint16_t http_status;
    uint32_t response_us;
    uint64_t age_ns; /* since its end */
    struct path_stats path;
};

/* One of several checks of a backend, as this node sees it. */
struct check_view {
    const struct named_check *check; /* of the catalog, as long as the engine's is held */
    struct target_id target;         /* slot CATALOG_NO_SLOT: not probed */
    uint8_t opinion;                 /* enum opinion, this node's own */
    bool is_suspect;                 /* this node doubts it: as no opinion */
    bool decides;                    /* the own vote has its reason from this one */
    uint8_t health_state;            /* of a dependency: enum health_state by the votes on it */
    uint8_t n_pass, n_fail;          /* with it: those votes */
    uint32_t pass_streak, fail_streak;
    struct own_result last; /* inconclusive ones too */
    bool has_detail;        /* of the last conclusive one, as the next */
    uint8_t reason;
    uint16_t http_status;
    uint32_t response_us;
    uint32_t streak;
    uint64_t since_ns; /* how long the opinion has held */
    uint64_t probe_age_ns;
    struct cert_end cert; /* as last seen */
};

struct backend_view {
    char group[LIMIT_NAME_BYTES + 1];
    struct endpoint at;
    uint64_t backend_id;
    struct row_id row;
    struct target_id target; /* slot CATALOG_NO_SLOT: not probed */
    uint8_t weight;
    uint8_t admin_state; /* enum admin_state */
    uint8_t life;        /* enum backend_life */

    uint8_t health_state;  /* enum health_state */
    uint8_t marks;         /* bits of enum health_mark */
    uint8_t held_causes;   /* bits of enum held_cause */
    uint64_t since_ns;     /* how long the state has held, across restarts */
    uint64_t kept_age_ns;  /* with HELD_LAST_KNOWN_GOOD: since that verdict was kept */
    bool is_unreachable;   /* from here */
    bool is_returning;     /* with MARK_PENDING: the votes say up, and a guard lets it wait */
    bool is_against_votes; /* healthy, though the votes that decide say fail: held, or pending */
    bool is_damped;        /* that is flap damping: for how long, while the votes stay */
    uint64_t damped_ns;    /* with it */
    uint8_t n_flaps;       /* with MARK_FLAPPING: how often it went down again within 10 min */
    uint8_t reason;        /* enum probe_reason: the most frequent among the deciding votes; of one
                              that is kept against the votes the first of theirs */
    uint16_t http_status;  /* with it */
    uint8_t n_reasons;     /* different reasons of the deciding votes */
    uint8_t reasons[8];

    struct verdict_rule rule;
    bool is_by_own; /* this node's own vote alone makes the state what it is (rule local) */
    uint8_t own;    /* enum opinion: that vote as it counts */
    uint8_t n_observers, quorum;                  /* n, q */
    uint8_t n_counted, n_fail, n_pass;            /* c, f, p */
    uint8_t n_remembered_fail, n_remembered_pass; /* only block */
    /* With a rule that asks zones, else 0: how many zones there are; how many of them have a
     * counted vote, fail by the rule, and pass by it. */
    uint8_t n_zones, n_zones_heard, n_zones_fail, n_zones_pass;
    struct vote_view votes[LIMIT_NODES]; /* by node id, all observers of the catalog */
    uint8_t n_votes;

    uint32_t timeout_ms, interval_ms;
    uint8_t healthy_threshold, unhealthy_threshold;
    uint8_t check_type;
    uint32_t pass_streak, fail_streak;             /* own, conclusive results */
    struct own_result last;                        /* own, inconclusive ones too */
    struct cert_end cert;                          /* own, as last seen */
    uint64_t failure_window_ms, success_window_ms; /* the latter for the last response time */
    bool passes_by_silence;                        /* then it is for the timeout */
    uint64_t revision;

    /* Of several checks, else none: each, and how many of the local ones must pass. */
    struct check_view checks[LIMIT_CHECKS];
    uint8_t n_checks, n_local, pass_k;
    struct rule_column pass;

    struct next_change down, up;
    char sentence[256]; /* the state and its ground in one sentence */

    uint8_t weight_percent;           /* how much of its weight counts here, 1..100 */
    uint64_t slow_left_ns;            /* its slow start takes so long yet; 0 = it is in none */
    uint8_t graded_by;                /* enum graded_weight, while less than all counts */
    uint8_t graded_percent;           /* what that leaves, 10..100 */
    uint32_t smoothed_us, median_us;  /* by latency: its own, and in the middle of the group */
    uint8_t row_class;                /* enum row_class */
    uint8_t flow_policy;              /* enum flow_policy */
    uint8_t deadline_cause;           /* enum deadline_cause */
    uint64_t deadline_in_ns;          /* 0 = none or passed */
    uint64_t n_flows;                 /* of all nodes that count, while draining or removing */
    uint64_t n_closed;                /* by the drain, on all nodes that count */
    uint8_t n_nodes_uncounted;        /* whose flows are not known */
    uint64_t uncounted[LIMIT_NODES];  /* those, by id */
    uint8_t n_nodes_unreported;       /* pending, and have said nothing of their flows yet */
    uint64_t unreported[LIMIT_NODES]; /* those, by id */
    uint8_t n_nodes_pending;          /* not done with the drain */
    uint64_t pending[LIMIT_NODES];    /* those, by id */
};

/* ERR_NOTFOUND: no such group or backend in the adopted catalog. boot_ns for deadlines. */
int engine_view_backend(const struct engine *engine, const char *group, const struct endpoint *at,
                        uint64_t now_ns, uint64_t boot_ns, struct backend_view *ret_view);

/* A guard at work. */
struct guard_view {
    uint8_t guard;       /* enum guard_kind */
    uint64_t since_ns;   /* how long */
    uint32_t n_backends; /* that it keeps from what the votes say */
    char sentence[256];  /* one for people */
};

/* Groups on which a guard is at work; of the shadow only those that are kept. name: the first
 * group's, empty when there is none. */
uint32_t engine_n_guarded(const struct engine *engine, unsigned guard,
                          char name[LIMIT_NAME_BYTES + 1]);

struct group_view {
    char name[LIMIT_NAME_BYTES + 1];
    uint64_t group_id;
    struct row_id row;
    uint8_t group_state; /* enum group_state */
    uint8_t marks;       /* MARK_WARMING */
    uint64_t since_ns;
    uint32_t n_backends; /* removing ones included */
    uint32_t n_eligible, n_healthy, n_initial;
    uint32_t n_by_state[6]; /* indexed by enum health_state */
    uint32_t n_unreachable, n_held, n_removing, n_draining, n_degraded;
    uint64_t failure_window_ms;
    uint64_t success_window_ms; /* for a response time of one second */
    uint64_t revision;
    struct guard_view guards[GUARD_KINDS]; /* those at work, in the order of enum guard_kind */
    uint8_t n_guards;
};
int engine_view_group(const struct engine *engine, const char *group, uint64_t now_ns,
                      struct group_view *ret_view);

/* A hold that is on. */
struct hold_view {
    uint8_t source; /* enum hold_source, one */
    struct hold_origin by;
};
/* Those for every group (group "") or for this one alone. Returns how many: at most two; none for a
 * group that is not there. */
size_t engine_view_holds(const struct engine *engine, const char *group, struct hold_view holds[2]);

/* "hold is on for every group (cluster, by ops) and for 2 groups of its own"; empty = none is. */
#define HOLD_TEXT_BYTES 512
void engine_say_holds(const struct engine *engine, char text[HOLD_TEXT_BYTES]);

/* Backends that stay in service because of a hold, against the votes. */
uint32_t engine_n_held_by_hold(const struct engine *engine);

/* How far this node trusts its own probes (self_doubt.h). */
struct doubt_view {
    uint8_t score;      /* 0..7, the highest of all kinds */
    uint8_t causes;     /* bits 1 << enum doubt_cause; while something is suspect, all since then */
    uint8_t causes_now; /* of the score as it is */
    uint32_t suspect_mask; /* bits 1 << enum check_type */
    uint64_t since_ns;     /* how long something has been suspect; 0 = nothing is */
    uint64_t
        calm_left_ns;    /* suspect, and the score is low: how long it has to stay so yet; else 0 */
    uint8_t n_sentinels; /* that answered lately: peers' and this node's own */
};
void engine_view_doubt(const struct engine *engine, uint64_t now_ns, struct doubt_view *ret_view);

struct peer_view {
    uint64_t node_id;
    bool is_self, is_observer;            /* by the catalog */
    bool counts;                          /* in n already */
    uint64_t epoch, revision;             /* as last heard; 0 = never */
    uint64_t hello_age_ns, vector_age_ns; /* AGE_NEVER */
    uint32_t suspect_mask;
    bool catalog_differs; /* at the same revision: its votes are refused */
    uint64_t n_stale, n_refused;
};

/* X(name, help): named counters, all of events since the start. */
#define ENGINE_COUNTERS(X)                                                                      \
    X(results_dropped, "probe results for a definition that is no longer in the catalog")       \
    X(results_inconclusive, "probe results that were a fault of this node")                     \
    X(probes_replied, "probes that wanted a reply and got one, right or wrong")                 \
    X(probes_without_reply, "probes that wanted a reply and got none within the timeout: loss") \
    X(votes_stale, "vote messages dropped as older than, or equal to, one already taken")       \
    X(votes_old_epoch, "messages of a start of the peer before its newest")                     \
    X(votes_unknown_node, "messages of a node that is not in the catalog")                      \
    X(votes_other_target, "change messages for a target that this catalog does not have")       \
    X(chunks_differ, "vote chunks refused because the catalogs differ at one revision")         \
    X(chunks_ahead, "vote chunks too far ahead of this node's catalog to be matched")           \
    X(messages_malformed, "messages with values out of range")                                  \
    X(hellos_other_cluster, "hellos of another cluster")                                        \
    X(catalogs_old, "catalogs ignored as not newer than the one in use")                        \
    X(catalogs_other_cluster, "catalogs ignored as of another cluster")                         \
    X(changes_not_sent, "change messages left to the next vector: too many for one interval")   \
    X(changes_no_room, "peers' change messages dropped for lack of memory")                     \
    X(purges_deferred, "purge proposals left to the next vote interval for lack of room")       \
    X(events_lost, "events that pushed an older one out of the log")                            \
    X(verdict_changes, "verdicts that changed state")                                           \
    X(opinion_changes, "own opinions that changed")                                             \
    X(doubts_begun, "times this node began to doubt its own probes")                            \
    X(doubts_ended, "times it ceased to")                                                       \
    X(doubt_failures_dropped, "runs of failures dropped as they were seen while in doubt")      \
    X(holds_entered, "holds that were switched on, of everything or of one group")              \
    X(holds_left, "holds that were switched off")                                               \
    X(changes_guarded, "answers of a rule that a guard did not follow, each time judged")       \
    X(velocity_entered, "times a group had more ejections pending than its limit")              \
    X(velocity_left, "times the last of them was through or taken back")                        \
    X(damping_entered, "times flap damping began to keep backends of a group from returning")   \
    X(damping_left, "times the last of them returned or went bad again")                        \
    X(returns_entered, "times a group had more returns waiting than its limit")                 \
    X(returns_left, "times the last of them was through or taken back")                         \
    X(shadows_begun, "times a changed check began in shadow")                                   \
    X(shadows_stopped, "times a shadow did not end, as it would have taken out too many")       \
    X(shadows_ended, "times a shadow ended")                                                    \
    X(alarms_raised, "times over 30 % of a group, and at least 3, went bad at once")            \
    X(alarms_ended, "times that was over")                                                      \
    X(fail_opens_entered, "times a group entered fail-open")                                    \
    X(fail_opens_left, "times a group left it")                                                 \
    X(closed_entered, "times a group closed to new flows")                                      \
    X(closed_left, "times a group was no longer closed")                                        \
    X(shares_opened, "times a failure, or missing votes, made all nodes probe a shared target") \
    X(shares_calmed, "times nothing failed any more, and its assigned nodes went on alone")     \
    X(shares_moved, "shared targets whose assigned nodes changed with the members")             \
    X(rechecks, "probes begun at once because another node's first one failed")                 \
    X(slow_starts, "times a backend that took new flows again began with less than its weight") \
    X(weights_graded, "times votes or response times changed how much of a weight counts")      \
    X(vectors_sent, "whole vote vectors published")

struct engine_counters {
#define ENGINE_COUNTER_FIELD(name, help) uint64_t name;
    ENGINE_COUNTERS(ENGINE_COUNTER_FIELD)
#undef ENGINE_COUNTER_FIELD
};
const struct engine_counters *engine_view_counters(const struct engine *engine);

struct engine_status {
    uint64_t node_id, epoch, revision;
    uint32_t vote_interval_ms;
    bool is_observer;
    uint8_t n_observers, quorum;
    uint8_t n_fresh;   /* observers heard within 3 V, this node included */
    uint8_t n_trusted; /* of those, how many doubt none of their own probes */
    uint32_t n_targets;
    uint32_t n_groups, n_groups_by_state[5]; /* indexed by enum group_state */
    uint32_t n_warming;                      /* groups, whatever their state */
    uint32_t n_backends, n_by_state[6];      /* indexed by enum health_state */
    uint32_t n_held, n_unreachable, n_removing, n_draining;
    uint64_t next_event; /* sequence of the next entry of the log */
};
void engine_view_status(const struct engine *engine, uint64_t now_ns,
                        struct engine_status *ret_status);

/* What keeps verdicts from being reached, for findings.h: each kind counted, and the first named.
 */
struct finding_group {
    uint32_t n_groups;
    char name[LIMIT_NAME_BYTES + 1];
    uint32_t n_eligible, n_healthy; /* of the one named */
};

struct finding_backend {
    char group[LIMIT_NAME_BYTES + 1]; /* "" = there is none */
    struct endpoint at;
};

struct engine_findings {
    struct finding_group fail_open;
    struct finding_group closed; /* those that have backends */
    uint32_t n_probed;           /* backends that are probed and not being removed */
    /* Too few votes count for these to go down, and no votes are on the way to them for the first
     * time. */
    uint32_t n_few_votes;
    struct finding_backend few_votes;
    uint8_t n_counted, quorum; /* of that one */
    /* This node has no vote on these: its probes say nothing of them. */
    uint32_t n_blind;
    struct finding_backend blind;
    uint8_t blind_reason; /* enum probe_reason: the most frequent, and that of the one named */
    /* Peers (index bits, engine_member_id) that are heard, doubt nothing and vote on nothing. */
    uint64_t blind_peers;
    struct finding_backend voted; /* one that they might vote on */
};

void engine_view_findings(const struct engine *engine, uint64_t now_ns,
                          struct engine_findings *ret_findings);
/* index: of a bit of blind_peers. */
uint64_t engine_member_id(const struct engine *engine, unsigned index);

/* Whether this node can be relied on for verdicts. The sentence: why not, or what is short all the
 * same; empty = nothing. */
/* As many observers are heard, and trust their own probes, as it takes to take a backend out. */
bool engine_votes_suffice(const struct engine *engine, uint64_t now_ns, struct errmsg *ret_text);
/* This node trusts its own probes: one that does not would give its users nothing to wait for. */
bool engine_probes_are_trusted(const struct engine *engine, struct errmsg *ret_text);
/* All members of the catalog by id. Returns their number. */
size_t engine_view_peers(const struct engine *engine, uint64_t now_ns,
                         struct peer_view peers[LIMIT_NODES]);

/* The log. `first` is the oldest sequence kept, `next` the one that comes next. */
uint64_t engine_event_first(const struct engine *engine);
uint64_t engine_event_next(const struct engine *engine);
/* NULL when it is no longer, or not yet, there; borrowed until the next step. */
const struct event *engine_event_at(const struct engine *engine, uint64_t sequence);

#endif
