/* An independent judge of a simulated cluster. It keeps a trace of its own: what each node was told
 * (probe results, messages, catalogs), in what order and when by that node's clock. From it alone
 * it works out, after every step, which votes count, what the six rules say of them and which
 * verdict follows, and compares with what the engine says.
 *
 * I-7: no verdict without the threshold: each change to down has its quorum of fresh, distinct
 * votes, each of a node that saw its failures in a row. I-8: an expired, replayed, duplicated or
 * foreign vote never changes one. It shares no code with agent/core's votes, verdict or health, and
 * matches targets by the catalogs that the sender and the receiver really had. */
#ifndef JURY_TESTS_SIM_CHECKER_H
#define JURY_TESTS_SIM_CHECKER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/world.h"

#define CHECK_SLOTS 64
#define CHECK_ROWS 64
#define CHECK_KINDS 8

/* X(name): what must happen somewhere in a run, or the run proves less than it seems to. */
#define SOMETIMES(X)       \
    X(went_down)           \
    X(came_up)             \
    X(gray)                \
    X(held_few_votes)      \
    X(held_check_changed)  \
    X(held_kept)           \
    X(unreachable)         \
    X(down_blocked)        \
    X(up_blocked)          \
    X(quorum_blocked)      \
    X(own_decided)         \
    X(vote_expired)        \
    X(vote_lapsed)         \
    X(vote_withdrawn)      \
    X(opinion_went_stale)  \
    X(message_old_epoch)   \
    X(message_repeated)    \
    X(message_overtaken)   \
    X(vector_overtaken)    \
    X(sender_behind)       \
    X(sender_ahead)        \
    X(slot_of_another)     \
    X(result_of_another)   \
    X(result_inconclusive) \
    X(restart_with_kept)   \
    X(restart_without)     \
    X(store_was_frozen)    \
    X(link_was_cut)        \
    X(catalog_changed)     \
    X(check_was_changed)   \
    X(interval_changed)    \
    X(node_added)          \
    X(node_removed)        \
    X(entered_by_hello)    \
    X(entered_by_time)     \
    X(voter_not_entered)   \
    X(backend_purged)      \
    X(fail_open)           \
    X(group_closed)        \
    X(warming)             \
    X(late_waits)          \
    X(suspect_own)         \
    X(suspect_vote)        \
    X(doubt_dropped)       \
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
    uint64_t heard_ns;        /* when the opinion was last confirmed */
    uint64_t withdrawn_ns;
};

struct own {
    uint32_t passes, fails; /* in a row */
    uint8_t opinion;
    uint64_t conclusive_ns;
    uint64_t since_ns; /* of the opinion */
};

struct judged {
    uint64_t birth; /* 0 = no such row */
    uint64_t target_birth;
    uint32_t target_slot;
    uint8_t state;
    bool gray;
    bool held_check_changed, held_kept;
    uint64_t initial_ns;
    uint64_t joined_ns; /* it was added, or came back from maintenance */
};

struct kept_row {
    uint64_t birth;
    struct hash128 definition;
    uint8_t state;
};

/* What is known of one node as a receiver. */
struct witness {
    uint64_t epoch; /* of the node when it was last looked at; another one: everything is new */
    const struct catalog *catalog;
    uint64_t births[CHECK_SLOTS];
    struct own own[CHECK_SLOTS];
    struct told told[WORLD_NODES + 1][CHECK_SLOTS];
    uint64_t newest_epoch[WORLD_NODES + 1];
    uint64_t newest_vector[WORLD_NODES + 1]; /* its sequence, in that epoch */
    bool observes[WORLD_NODES + 1];          /* by its catalog */
    bool entered[WORLD_NODES + 1];           /* in n */
    uint64_t enters_ns[WORLD_NODES + 1];
    struct judged rows[CHECK_ROWS];
    uint64_t scope_births[CHECK_ROWS]; /* by the scope's row */
    uint64_t first_probe_ns[CHECK_ROWS];
    struct kept_row kept[CHECK_ROWS]; /* at its last stop */
    bool has_kept;                    /* it was started with them */
    uint32_t suspect_mask;            /* what it doubts of itself, as it says */
    uint64_t suspect_ns[CHECK_KINDS]; /* since when, by enum check_type */
};

struct checker {
    struct world *world;
    struct witness nodes[WORLD_NODES + 1];
    struct sometimes *sometimes;
    bool failed;
    char failure[512];
};

void checker_init(struct checker *checker, struct world *world, struct sometimes *sometimes);
/* Before world_stop: what last-known-good will have kept. */
void checker_note_stop(struct checker *checker, uint64_t node_id);
/* After world_start's decision: with or without last-known-good. Call before world_start. */
void checker_note_start(struct checker *checker, uint64_t node_id, bool with_kept);
/* At the end of a calm phase: each verdict on each node is what the backend really is. */
void checker_check_truth(struct checker *checker);

#endif
