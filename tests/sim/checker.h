/* An independent judge of a simulated cluster. It keeps a trace of its own: what each node was told
 * (probe results, messages, catalogs), in what order and when by that node's clock. From it alone
 * it works out, after every step, which votes count, what the six rules say of them and which
 * verdict follows, and compares with what the engine says.
 *
 * I-7: no verdict without the threshold: each change to down has its quorum of fresh, distinct
 * votes, each of a node that saw its failures in a row. I-8: an expired, replayed, duplicated or
 * foreign vote never changes one. I-9, I-10, R-EJ-3: isolation, velocity and hold (guards.h). It
 * shares no code with agent/core's votes, verdict, guards or health, and matches targets by the
 * catalogs that the sender and the receiver really had. */
#ifndef JURY_TESTS_SIM_CHECKER_H
#define JURY_TESTS_SIM_CHECKER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/engine_lines.h"
#include "tests/lib/world.h"

#define CHECK_SLOTS 192
#define CHECK_ROWS 64
#define CHECK_KINDS 8

/* X(name): what must happen somewhere in a run, or the run proves less than it seems to: each kind
 * of fault, each way a vote ends, each edge between verdicts, each thing that stands in a verdict's
 * way.
 */
#define SOMETIMES(X)              \
    X(initial_to_healthy)         \
    X(initial_to_unhealthy)       \
    X(initial_to_gray)            \
    X(healthy_to_unhealthy)       \
    X(unhealthy_to_healthy)       \
    X(gray_to_decided)            \
    X(probed_to_unavailable)      \
    X(unavailable_to_probed)      \
    X(probed_to_unused)           \
    X(unused_to_probed)           \
    X(held_few_votes)             \
    X(held_check_changed)         \
    X(held_kept)                  \
    X(unreachable)                \
    X(down_blocked)               \
    X(up_blocked)                 \
    X(quorum_blocked)             \
    X(own_decided)                \
    X(vote_expired)               \
    X(vote_lapsed)                \
    X(vote_withdrawn)             \
    X(suspect_vote)               \
    X(suspect_own)                \
    X(doubt_dropped)              \
    X(opinion_went_stale)         \
    X(message_old_epoch)          \
    X(message_repeated)           \
    X(message_overtaken)          \
    X(vector_overtaken)           \
    X(sender_behind)              \
    X(sender_ahead)               \
    X(slot_of_another)            \
    X(result_of_another)          \
    X(result_inconclusive)        \
    X(truth_changed)              \
    X(truth_changed_for_one)      \
    X(local_fault)                \
    X(cut_one_way)                \
    X(cut_both_ways)              \
    X(cut_alone)                  \
    X(cut_deaf)                   \
    X(cut_mute)                   \
    X(cut_halves)                 \
    X(cut_bridge)                 \
    X(cut_ring)                   \
    X(cut_all)                    \
    X(cut_at_random)              \
    X(link_turned_bad)            \
    X(healed_at_once)             \
    X(healed_in_turn)             \
    X(node_stopped)               \
    X(node_crashed)               \
    X(node_stalled)               \
    X(machine_slept)              \
    X(clock_fast)                 \
    X(clock_slow)                 \
    X(network_delays)             \
    X(network_loses)              \
    X(network_doubles)            \
    X(network_is_late)            \
    X(more_than_seven_nodes)      \
    X(restart_with_kept)          \
    X(restart_with_kept_verdicts) \
    X(restart_without)            \
    X(store_was_frozen)           \
    X(catalog_changed)            \
    X(check_was_changed)          \
    X(rule_was_changed)           \
    X(checks_were_switched)       \
    X(backends_were_changed)      \
    X(admin_was_changed)          \
    X(interval_changed)           \
    X(node_added)                 \
    X(node_removed)               \
    X(entered_by_hello)           \
    X(entered_by_time)            \
    X(voter_not_entered)          \
    X(backend_purged)             \
    X(drain_deadline)             \
    X(verdict_deadline)           \
    X(verdict_deadline_again)     \
    X(deadline_passed)            \
    X(fail_open)                  \
    X(fail_open_ended)            \
    X(group_closed)               \
    X(late_waits)                 \
    X(warming)                    \
    X(hold_by_cluster)            \
    X(hold_by_group)              \
    X(hold_by_node)               \
    X(hold_by_node_for_group)     \
    X(hold_entered)               \
    X(hold_left)                  \
    X(hold_froze)                 \
    X(hold_let_recover)           \
    X(hold_let_initial_go_down)   \
    X(hold_in_the_calm)           \
    X(velocity_pending)           \
    X(velocity_entered)           \
    X(velocity_left)              \
    X(velocity_admitted)          \
    X(velocity_in_order)          \
    X(velocity_taken_back)        \
    X(velocity_exempt)            \
    X(guard_was_changed)          \
    X(shadow_begun)               \
    X(shadow_begun_anew)          \
    X(shadow_kept)                \
    X(shadow_froze)               \
    X(shadow_let_recover)         \
    X(shadow_stopped)             \
    X(shadow_ended)               \
    X(shadow_ended_after_stop)    \
    X(shadow_accepted)            \
    X(shadow_in_the_calm)         \
    X(flapping)                   \
    X(flap_kept)                  \
    X(flap_forgotten)             \
    X(damping_entered)            \
    X(damping_left)               \
    X(damping_waits)              \
    X(damping_over)               \
    X(damping_let_go_down)        \
    X(return_entered)             \
    X(return_left)                \
    X(return_waits)               \
    X(return_waited)              \
    X(return_in_need)             \
    X(return_unlimited)           \
    X(return_in_order)            \
    X(alarm_raised)               \
    X(alarm_ended)                \
    X(alarm_switched_off)         \
    X(alarm_under_hold)           \
    X(alarm_kept)                 \
    X(truth_wavers)               \
    X(collapse)                   \
    X(isolated)                   \
    X(isolated_would_go_down)     \
    X(isolated_and_blind)         \
    X(stalled_would_go_down)      \
    X(zones_decided_down)         \
    X(zones_decided_up)           \
    X(zone_quorum_blocked)        \
    X(zone_was_changed)           \
    X(fail_open_by_threshold)     \
    X(slow_start_begun)           \
    X(slow_start_through)         \
    X(slow_start_cut_short)       \
    X(slow_start_of_none)         \
    X(graded_by_votes)            \
    X(graded_in_slow_start)       \
    X(held_is_not_graded)         \
    X(graded_by_latency)          \
    X(latency_let_go)             \
    X(flow_moved)                 \
    X(flow_stayed)                \
    X(shared_among_some)          \
    X(shared_chosen_changed)      \
    X(shared_former_goes_on)      \
    X(shared_came_too_late)       \
    X(shared_opened)              \
    X(shared_opened_for_few)      \
    X(shared_calmed)              \
    X(shared_joined)              \
    X(shared_unheard_counts)      \
    X(shared_silent_stays)        \
    X(shared_adopted)             \
    X(shared_rested_result)       \
    X(rechecked)                  \
    X(recheck_too_soon)           \
    X(wavering_vote)              \
    X(list_was_changed)           \
    X(composed_pass_beside_fail)  \
    X(composed_fail_beside_pass)  \
    X(composed_waits)             \
    X(composed_hides_doubted)     \
    X(dependency_down)            \
    X(dependency_up)              \
    X(dependency_in_the_calm)     \
    X(replayed_whole)             \
    X(replayed_in_between)        \
    X(replayed_verdict)           \
    X(ended_as_truth)

struct sometimes {
#define SOMETIMES_FIELD(name) uint64_t name;
    SOMETIMES(SOMETIMES_FIELD)
#undef SOMETIMES_FIELD
};

/* One sender's vote on one slot, as the receiver was told. */
struct told {
    uint64_t epoch, sequence; /* of the newest message about this slot */
    uint8_t opinion;          /* pass or fail as last heard; none: nothing to remember */
    bool withdrawn;           /* a later message said none */
    bool wavers;              /* pass, though the last probe failed */
    uint64_t heard_ns;        /* when the opinion was last confirmed */
    uint64_t withdrawn_ns;
};

struct own {
    uint32_t passes, fails; /* in a row */
    uint8_t opinion;
    uint64_t conclusive_ns;
    uint64_t since_ns; /* of the opinion */
};

/* Who probes one target of a check that is shared (N7, N24), as this node must see it. */
struct sharing {
    bool is_begun;
    bool among[WORLD_NODES + 1];    /* who was in n when `chosen` was worked out */
    bool chosen[WORLD_NODES + 1];   /* the k of them */
    bool standing[WORLD_NODES + 1]; /* they, and those that they have not replaced yet */
    bool joined[WORLD_NODES + 1];   /* who has voted since the trouble began */
    bool voters[WORLD_NODES + 1];   /* whose votes n is of */
    bool failing[WORLD_NODES + 1];  /* peers that were seen to fail or waver */
    bool is_open;                   /* all probe */
    bool probes;                    /* this node does */
    bool was_called;                /* it did not before, and no result has come since */
    uint64_t few_ns, enter_ns, calm_ns, recheck_ns;
    bool told_on; /* what the engine ordered last */
};

/* What a guard makes of a change that the votes want. */
enum frozen {
    FROZEN_NOT = 0,
    FROZEN_BY_HOLD,
    FROZEN_BY_VELOCITY,
    FROZEN_BY_SHADOW,
    FROZEN_BY_RETURN /* the votes say up */
};

/* Since when the votes say down of a backend that was healthy (alarm.c). */
struct went_bad {
    uint64_t target_birth; /* by which check */
    uint32_t target_slot;
    bool is_bad, was_bad;            /* now and at the step before */
    bool has_adopted;                /* what last-known-good says of it is in here */
    uint64_t earliest_ns, latest_ns; /* when it went, as far as is certain; 0 = it has not */
    uint64_t last_ns;                /* when it last was bad; 0 = never */
    uint64_t well_ns;                /* since when it is not, or is back in service */
};

/* How often a backend went down again, at least and at most (returns.c). */
struct flaps {
    bool has_adopted;
    unsigned n_least, n_most;
    uint64_t ejected_ns, sure_ns; /* the last time; and under flapHold. 0 = never */
    uint64_t error_ns;            /* of both, of one of before a restart */
    uint64_t up_ns,
        earliest_up_ns;  /* since when the votes say up, surely and perhaps; 0 = do not */
    uint64_t break_ns;   /* when they last stopped */
    uint64_t overdue_ns; /* since when it waits for nothing */
};

struct judged {
    uint64_t birth; /* 0 = no such row */
    uint64_t target_birth;
    uint32_t target_slot;
    uint8_t state, state_before; /* before: as it came into this step's verdicts */
    char followed;               /* what its rule says at this step: 'd', 'u' or '-' */
    bool gray;
    bool unreachable;       /* from here */
    bool is_adopted;        /* it began as last-known-good has it */
    bool shadow_is_adopted; /* and its group's shadow, if there was one */
    bool was_changed;       /* its check, in this step, and it had a verdict */
    bool has_few_votes;
    bool held_check_changed, held_kept;
    uint8_t frozen, was_frozen; /* enum frozen, now and at the step before */
    uint64_t initial_ns;
    uint64_t joined_ns;                   /* it was added, or came back from maintenance */
    uint8_t written_state, written_marks; /* in the history */
    struct went_bad bad;
    struct flaps flaps;
    uint8_t marks, n_pass; /* as the engine says after this step; counted votes */
};

/* What the table's words have said of a row. */
struct shown {
    struct row_word word;
    uint64_t birth;          /* of the backend that the rest is about */
    uint64_t drain_revision; /* the drain that drain_ns belongs to */
    uint64_t drain_ns;       /* deadlines by boot time; 0 = none is due */
    uint64_t verdict_ns;
    bool had_verdict_deadline, was_fail_open;
};

/* How much of a weight counts, by what the words said before. */
struct weighed {
    uint64_t birth;
    uint64_t begun_ns; /* of its slow start; 0 = it is in none */
    bool is_out;       /* it takes no new flows */
    bool was_slow, is_through;
    uint8_t percent;     /* that the word had at the last look */
    uint64_t changed_ns; /* by latency: when it last changed; 0 = never */
    uint64_t next_ns;    /* and may again, by the interval that was in force then */
};

/* The choice of some flows in a scope, and among whom. */
#define CHECK_FLOWS 16
#define CHECK_MEMBERS 16
struct choices {
    uint64_t birth; /* of the scope; 0 = none yet */
    uint32_t n;
    uint64_t ids[CHECK_MEMBERS];
    uint8_t weights[CHECK_MEMBERS]; /* 0 = not among those that new flows take */
    uint8_t shares[CHECK_MEMBERS];  /* percent of them */
    uint64_t flows[CHECK_FLOWS];    /* the chosen id; 0 = none */
};

struct kept_row {
    uint64_t birth;
    struct hash128 definition;
    uint8_t state;
    uint64_t drain_revision, drain_ns, verdict_ns;
    uint64_t at_ns; /* when it was written, by the node's clock, which goes on over restarts */
    bool is_bad;
    uint64_t bad_earliest_ns, bad_latest_ns;
    struct flaps flaps;
    bool has_alarm;                            /* its group */
    uint64_t shadow_began_ns, shadow_error_ns; /* its group's; 0 = it was in none */
};

/* The alarm of a group, and what it was judged by at the step before (alarm.c). */
struct alarm {
    bool is_on, is_wanted;
    unsigned n_bad, n_members;
    uint64_t must_ns,
        must_not_ns; /* since when it is off and must be on, and the other way round */
};

/* The shadow of a changed check of a group, and what was known at the step before (shadow.c). */
struct shadow {
    bool is_on, was_stopped, has_adopted;
    bool stops;
    unsigned n_would, limit;
    uint64_t cycles_ns;             /* that it lasts; 0 = there is to be none */
    uint64_t began_ns, error_ns;    /* error: of one of before a restart */
    uint64_t late_ns, unstopped_ns; /* since when it should have ended, or be stopped */
};

#define CHECK_EJECTIONS 64

/* The order in which who waits goes: more votes for it first, then the lower id. */
struct turn {
    unsigned n_fail; /* of a return: pass */
    uint64_t backend_id;
};

/* Returns of a group, and what was known at the step before (returns.c). */
struct returns {
    uint64_t n;
    uint64_t at_ns[CHECK_EJECTIONS]; /* of the last of them, in turn */
    uint64_t n_forgotten;            /* of before the window became longer */
    uint32_t guards_on, flap_hold_ms, limit;
    uint64_t window_ns;
    bool was_bad;     /* in fail-open or closed */
    uint64_t well_ns; /* when that ended; 0 = never */
    unsigned n_waiting;
    uint64_t idle_ns; /* since when a guard is at work for nobody */
    bool has_left, has_stayed;
    struct turn left, stayed;
};

/* Ejections of a group, and who waits for his. */
struct guarded {
    uint64_t birth;                  /* of the scope */
    struct scope_line line;          /* what the engine says after this step */
    bool node_hold;                  /* the node's own, of this group */
    bool is_held;                    /* by anything, at the last step */
    uint64_t n;                      /* ejections under the limit, ever */
    uint64_t at_ns[CHECK_EJECTIONS]; /* of the last of them, in turn */
    uint32_t limit, limit_before;    /* 0 = none; now and at the step before */
    uint64_t window_ns, window_before_ns;
    uint32_t n_pending, n_still_pending; /* still: and at the step before */
    uint64_t turn_ns; /* with somebody waiting: when the first of them is due, if there is room */
    uint64_t n_forgotten;      /* of before the limit, or a longer window */
    bool has_turns, had_turns; /* ejections wait for one V; now and at the step before */
    bool is_full;              /* somebody waits, and there is no room */
    /* Of this step, for the order: the last of those that left, the first of those that stay. */
    bool has_left, has_stayed;
    struct turn left, stayed;
    struct alarm alarm;
    struct shadow shadow;
    struct returns returns;
};

/* Of a target that nobody probes: k of these must pass. */
struct composition {
    unsigned n, k;
    uint32_t slots[LIMIT_CHECKS];
};

/* What the rule last said of the checks of class dependency of a backend. */
struct dependency {
    struct target_id target;
    char followed; /* 'd', 'u'; 0 = nothing yet */
};
struct dependencies {
    unsigned n;
    struct dependency items[LIMIT_CHECKS];
};

/* What is known of one node as a receiver. */
struct witness {
    uint64_t epoch; /* of the node when it was last looked at; another one: everything is new */
    const struct catalog *catalog;
    uint64_t births[CHECK_SLOTS];
    struct own own[CHECK_SLOTS];
    struct sharing sharing[CHECK_SLOTS];
    struct composition compositions[CHECK_SLOTS];
    struct dependencies dependencies[CHECK_ROWS];
    struct told (*told)[CHECK_SLOTS]; /* by sender */
    uint64_t newest_epoch[WORLD_NODES + 1];
    uint64_t newest_vector[WORLD_NODES + 1]; /* its sequence, in that epoch */
    uint64_t vector_ns[WORLD_NODES + 1];     /* when that came; 0 = never */
    bool observes[WORLD_NODES + 1];          /* by its catalog */
    bool entered[WORLD_NODES + 1];           /* in n */
    uint64_t enters_ns[WORLD_NODES + 1];
    struct judged rows[CHECK_ROWS];
    uint64_t scope_births[CHECK_ROWS]; /* by the scope's row */
    uint64_t first_probe_ns[CHECK_ROWS];
    uint32_t suspect_mask;            /* what it doubts of itself, as it says */
    uint64_t suspect_ns[CHECK_KINDS]; /* since when, by enum check_type */
    struct shown shown[CHECK_ROWS];
    struct weighed weighed[CHECK_ROWS];
    struct choices choices[CHECK_ROWS]; /* by the scope's row */
    struct guarded guarded[CHECK_ROWS]; /* by the scope's row */
    uint64_t n_alarms;                  /* that were raised */
    bool node_hold;                     /* the node's own, of everything */
    uint64_t peer_ns[WORLD_NODES + 1];  /* when it last heard a vector of a peer, any; 0 = never */
    uint64_t begun_ns;                  /* its first step */
    uint64_t apart_ns;  /* since when it has heard too few and lost most targets; 0 = has not */
    uint64_t looked_ns; /* that was last found out */
    uint64_t late_ns[CHECK_KINDS]; /* it stood still until then, probing that kind; 0 = never */
    bool is_quiet; /* this step is a tick that changes neither n nor what it doubts */
    struct kept_row kept[CHECK_ROWS];  /* last-known-good, as last written */
    struct kept_row begun[CHECK_ROWS]; /* what of it this life was given; zero = nothing */
};

struct checker;

/* One more judge: what it looks at after each step, beside votes and verdicts. A guard or a doubt
 * adds a file with one of these to the list in checker.c, and its names to SOMETIMES. */
struct checker_part {
    const char *name;
    /* After each step of a node that has a catalog; event times are the node's own. */
    void (*judge)(struct checker *checker, struct witness *witness, const struct world_node *node,
                  const struct engine_event *event);
    /* At the end of the calm, for the cluster as a whole; NULL = nothing. */
    void (*judge_end)(struct checker *checker);
};
extern const struct checker_part checker_table;   /* table.c */
extern const struct checker_part checker_apart;   /* guards.c */
extern const struct checker_part checker_alarm;   /* alarm.c */
extern const struct checker_part checker_shadow;  /* shadow.c, after the alarm */
extern const struct checker_part checker_returns; /* returns.c, after the table */
extern const struct checker_part checker_weights; /* weights.c */
extern const struct checker_part checker_several; /* several.c */
extern const struct checker_part checker_replay;  /* replay.c */

/* What verdicts were, and when: to be compared with that of another run. */
struct verdict_line {
    uint64_t at_ns; /* world time */
    uint32_t node, row;
    uint8_t state, marks;
};
struct verdict_history {
    struct verdict_line *lines;
    size_t n, capacity;
};

struct checker {
    struct world *world;
    uint32_t n_nodes_max; /* ids that this cluster ever has */
    struct witness *nodes[WORLD_NODES + 1];
    struct sometimes *sometimes;
    bool is_doubted;                /* in the calm, a node doubts itself */
    bool was_in_shadow[CHECK_ROWS]; /* likewise, a group on a node; by its row */
    uint64_t calm_ns;               /* world time at which everything was well again; 0 = not yet */
    struct verdict_history *history; /* NULL = not wanted */
    uint64_t slowest_pm;             /* longest way to the truth, in thousandths of its bound */
    bool failed;
    char failure[512];
};

void checker_init(struct checker *checker, struct world *world, uint32_t n_nodes_max,
                  struct sometimes *sometimes);
void checker_close(struct checker *checker);
/* Something is wrong; the first one counts. */
void checker_fail(struct checker *checker, const struct world_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Before last-known-good is written: what it will hold. */
void checker_note_kept(struct checker *checker, uint64_t node_id);
/* Before world_start: whether it gets it. */
void checker_note_start(struct checker *checker, uint64_t node_id, bool with_kept);

/* I-18, with its time. When everything is well from calm_ns on, each verdict on each node is what
 * the backend really is, for good, after at most
 *     2 s (a node started then has its catalog) + T + I (the first probe that begins in the calm)
 *     + W, the longer of the failure and the success window with r = T, + 2 V + 100 ms,
 * stretched by the slowest clock. While a node still doubts itself in the calm, 10 s more, in which
 * its score falls and stays low, and T + I + W, since it counts anew then. In a group with a
 * velocity limit, a window and one V more for each part of its members that may leave together, and
 * once for those that left before a restart, likewise with a limit of returns; with damping, the
 * hold of the backend that flapped most; in one that is in the shadow of a changed check, all of
 * its cycles and 3 V more. What a hold or a stopped shadow keeps in service stays there. */
#define CHECK_CLOCK_PPM_MAX 50000
uint64_t checker_bound_ns(const struct checker *checker, const struct catalog_group *group);
/* The longest bound of the newest catalog. */
uint64_t checker_longest_bound_ns(const struct checker *checker);
/* Each verdict whose time is over. */
void checker_check_truth(struct checker *checker);
/* What the parts have to say at the end. */
void checker_check_end(struct checker *checker);

#endif
