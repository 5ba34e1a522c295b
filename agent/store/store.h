/* The replicated store: Raft with its own thread, loop, disk and mesh, behind an interface that
 * another engine could fill as well (R-RAFT-4).
 *
 * It is a shell: it knows commands as bytes and the state machine as a table of functions (fsm.h).
 * The owner (agent.c, on the health thread) asks with store_propose and the like, which never
 * wait, and takes completions, published states and status from bounded rings and one-slot
 * mailboxes after the `wake` hook was called. Unless a comment says otherwise, all functions are
 * for one thread, the owner's.
 *
 * Health never depends on it: a store that cannot start says so in its status and tries again; one
 * that may not go on (a failed disk call) asks for the end of the process by the fail_stop hook. */
#ifndef JURY_STORE_STORE_H
#define JURY_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/store/fsm.h"
#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/limits.h"
#include "common/model/cluster.h"

struct store;
struct curve_keys;
struct resolver;
struct watchdog;
struct watchdog_loop;
struct zmq_event;

/* Exit codes for the fail_stop hook (design.md 8). */
#define STORE_EXIT_OPERATOR 11 /* needs an operator: do not restart */
#define STORE_EXIT_RESTART 12  /* fail-stop: restart me */

/* A node that is trusted before there is a catalog: it may admit this node to a cluster. */
struct store_trusted {
    uint64_t node_id;
    struct public_key key;
};

/* Called on the store thread; none may wait or call back into the store. */
struct store_hooks {
    void *user;
    /* There is something to take: a completion, a state, a status. Coalesces. */
    void (*wake)(void *user);
    /* The process must end now with this exit code; does not return. */
    void (*fail_stop)(void *user, int exit_code, const char *sentence);
    /* What happened to a connection to the Raft lane's listening socket (zmq_monitor.h), for the
     * counters of refused attempts. NULL: nobody asks. */
    void (*seen)(void *user, const struct zmq_event *event);
};

struct store_options {
    const char *data_dir; /* exists; borrowed */
    uint64_t node_id;     /* this node's id as its configuration says; 0: whatever it is made */
    const struct curve_keys *keys; /* kept */

    void *zmq_context; /* kept; its ZAP handler runs already and knows the trusted keys, domain
                          SOCK_DOMAIN_RAFT */
    struct resolver *resolver; /* kept; NULL: numeric hosts only (tests) */
    struct watchdog *watchdog; /* kept; NULL: none. The store's loop is added as "store" */
    struct watchdog_loop *watchdog_loop;            /* kept; with watchdog */
    struct endpoint bind[LIMIT_ENDPOINTS_PER_NODE]; /* of the Raft lane; port 0 = any (tests) */
    uint32_t n_bind;
    struct store_trusted trusted[LIMIT_NODES];
    uint32_t n_trusted;

    const struct store_fsm *fsm; /* kept */
    struct store_hooks hooks;

    uint32_t election_timeout_ms;  /* 0 = 400 */
    uint32_t heartbeat_ms;         /* 0 = 50 */
    uint32_t snapshot_threshold;   /* entries between snapshots; 0 = 1024 */
    uint32_t snapshot_trailing;    /* entries kept behind one; 0 = 2048, at least the threshold */
    uint64_t free_space_min_bytes; /* below it writes are refused; 0 = 100 MB */
    uint32_t segment_bytes;        /* of raft_uv; 0 = 1 MiB */
    bool allow_tmpfs;              /* tests only: a store in memory forgets its votes */
};

/* --- life --- */

/* Before the start, and changing nothing: is this directory one that this agent can use? For a
 * clear end with exit code 3. Errors: ERR_CONFIG (not there, not writable, in memory, in use, of
 * another node or key), ERR_CORRUPT, ERR_VERSION, each with a sentence. */
int store_check(const char *data_dir, uint64_t node_id, const uint8_t *public_key,
                struct errmsg *err);

/* Start the thread. Everything that can go wrong with the directory comes later, in the status, and
 * is tried again. Errors: ERR_CONFIG (a socket that cannot be bound, an option out of range),
 * ERR_NOMEM. */
int store_start(const struct store_options *options, struct store **ret_store, struct errmsg *err);

/* Hand leadership over if there is somebody, close Raft, end the thread, free everything. Waits for
 * the disk, at most about an election timeout more. Outstanding requests are dropped. */
void store_stop(struct store *store);

/* The port that bind[index] got. */
uint16_t store_bound_port(const struct store *store, uint32_t index);

/* --- requests --- */

enum store_request_kind {
    STORE_REQUEST_NONE = 0,
    STORE_REQUEST_PROPOSE,
    STORE_REQUEST_BARRIER,
    STORE_REQUEST_TRANSFER,
    STORE_REQUEST_INIT
};

enum store_outcome {
    STORE_OUTCOME_NONE = 0,
    STORE_DONE,       /* propose: applied, or judged by fsm.check: see `answer` */
    STORE_NOT_LEADER, /* nothing was done; leader_id says where to go, 0 = nobody is known */
    STORE_UNKNOWN,    /* leadership or the store was lost meanwhile: it may be applied or not; ask
                         again with the same request id */
    STORE_DISK_FULL,  /* refused early: less than free_space_min_bytes are left on this disk */
    STORE_BUSY,       /* LIMIT_PROPOSALS_QUEUED are waiting already */
    STORE_NOT_READY,  /* no store yet, or the cluster is still being made; see `message` */
    STORE_REFUSED,    /* transfer, init, or a command of another version: see `message` */
    STORE_EXISTS      /* init: there is a cluster already; see `message` */
};

struct store_completion {
    uint64_t cookie; /* of the request */
    uint8_t kind;    /* enum store_request_kind */
    uint8_t outcome; /* enum store_outcome */
    uint64_t leader_id;
    uint64_t term;
    uint64_t index;    /* propose: of its entry; barrier: everything up to here is applied */
    uint64_t revision; /* of the state machine at the completion */
    uint8_t *answer;   /* propose, DONE: what the state machine answered; owned, free() */
    size_t n_answer_bytes;
    struct errmsg message; /* of every outcome but DONE */
};

/* Each takes a cookie of the caller's choice and ends in exactly one completion, unless it returns
 * an error (ERR_BUSY: the ring is full; ERR_LIMIT: too large; ERR_NOMEM) or the store is stopped.
 */

/* command: 1..LIMIT_COMMAND_BYTES bytes, a multiple of 8; copied. */
int store_propose(struct store *store, uint64_t cookie, const uint8_t *command, size_t n_bytes);
/* Linearizable read: when it is DONE, the state machine of this node (the leader) holds everything
 * that was committed when this was called. All callers that wait share one barrier. */
int store_barrier(struct store *store, uint64_t cookie);
/* Hand leadership to node_id, or to any voter with 0. */
int store_transfer(struct store *store, uint64_t cookie, uint64_t node_id);

/* Make a new cluster with this node as its first voter and propose `command`, which must name all
 * first members; the others are admitted as they answer (bootstrap.h). DONE when the command is
 * applied and more than half of the named voters hold it. Idempotent: with the same cluster id it
 * goes on where it was; with another one it is REFUSED. */
struct store_init {
    struct cluster_id cluster_id; /* not zero */
    uint64_t node_id;             /* of this node among the members */
    const uint8_t *command;       /* as in store_propose; copied */
    size_t n_command_bytes;
};
int store_init(struct store *store, uint64_t cookie, const struct store_init *init);

/* --- what comes back --- */

/* The oldest completion not taken yet; false when there is none. */
bool store_next_completion(struct store *store, struct store_completion *ret_completion);
void store_completion_close(struct store_completion *completion);

/* The newest state (fsm.publish) not taken yet, its reference given to the caller; NULL: nothing
 * new. */
void *store_take_state(struct store *store);

/* The nodes whose keys may speak on the Raft and vote lanes, when they have changed: those of the
 * state machine and, while this node is behind, those that an authenticated member has introduced
 * (a member that was added while this one was away may be the leader it must hear). The ZAP table
 * is made of this, the trusted keys and the access keys. false: nothing new. */
bool store_take_members(struct store *store, struct store_members *ret_members);

enum store_state {
    STORE_STATE_NONE = 0,
    STORE_STARTING,
    STORE_WAITING, /* empty directory: waits for `cluster init` or to be admitted; see `message` */
    STORE_RUNNING,
    STORE_FAILED,        /* cannot start (disk full, I/O error): tried again by itself */
    STORE_NEEDS_OPERATOR /* corrupt, wiped, of another cluster or key: see `message`; tried again */
};

enum store_raft_state {
    STORE_RAFT_NONE = 0,
    STORE_RAFT_FOLLOWER,
    STORE_RAFT_CANDIDATE,
    STORE_RAFT_LEADER
};

enum store_peer_state {
    STORE_PEER_NONE = 0,
    STORE_PEER_SILENT,  /* nothing heard for 3 s */
    STORE_PEER_WAITING, /* heard, empty directory, not a member yet */
    STORE_PEER_OK,
    STORE_PEER_WIPED,         /* answers under its old id with an empty or new directory: refused */
    STORE_PEER_OTHER_CLUSTER, /* its directory is of another cluster: refused */
    STORE_PEER_UNRESOLVED,    /* its host name has no address */
    STORE_PEER_RESTORED       /* its directory is an older copy of the one that spoke before */
};

struct store_peer_status {
    uint64_t node_id;
    uint8_t state;     /* enum store_peer_state */
    uint8_t raft_role; /* enum raft_role as Raft has it now; the catalog says what it shall be */
    uint64_t epoch;    /* as last heard */
    uint64_t last_contact_ns; /* monotonic; 0 = never */
    uint64_t match_index;     /* leader only */
};

/* Counters of what was refused or dropped, all since the start: dropped_stale and dropped_state
 * guard against RN3, cut_changes against RN2, held_snapshots against RN1; states_differ is
 * R-RAFT-6. */
#define STORE_COUNTERS(X)                                                                  \
    X(received, "messages that reached the Raft lane")                                     \
    X(dropped_identity, "a sender in the text that differs from the key's")                \
    X(dropped_cluster, "another cluster id")                                               \
    X(dropped_incarnation, "a wiped, replaced or unknown member, or not for this one")     \
    X(dropped_malformed, "bytes that do not decode")                                       \
    X(dropped_version, "an unknown major version")                                         \
    X(dropped_stale, "older than the last one delivered of that sender")                   \
    X(dropped_state, "of no use in the present state (stray vote results and rejections)") \
    X(cut_changes, "AppendEntries cut before a membership entry")                          \
    X(held_snapshots, "snapshots held back while an own one was taken")                    \
    X(sent, "messages handed to libzmq")                                                   \
    X(send_evicted, "messages dropped because a peer was not reachable")                   \
    X(snapshot_repeats, "repeated InstallSnapshot not sent")                               \
    X(proposals, "commands given to Raft")                                                 \
    X(barriers, "barriers given to Raft")                                                  \
    X(old_epochs, "hellos of a start of the peer before its newest: a restored directory") \
    X(states_differ, "hellos with another state hash at the same revision")                \
    X(snapshots, "snapshots taken")                                                        \
    X(elections_won, "times this node became leader")

struct store_counters {
#define STORE_COUNTER_FIELD(name, text) uint64_t name;
    STORE_COUNTERS(STORE_COUNTER_FIELD)
#undef STORE_COUNTER_FIELD
};

struct store_status {
    uint8_t state;                /* enum store_state */
    uint8_t raft_state;           /* enum store_raft_state */
    bool is_ready;                /* leader: its first barrier of the term has passed */
    struct cluster_id cluster_id; /* zero while WAITING */
    uint64_t node_id;             /* of the directory, else of the options */
    uint64_t incarnation;         /* of the directory */
    uint64_t epoch;               /* start counter of the directory; 0: not known, send no votes */
    uint64_t leader_id;           /* 0 = nobody is known */
    uint64_t term;
    uint64_t last_index;
    uint64_t stored_index;
    uint64_t commit_index;
    uint64_t applied_index;
    uint64_t revision;
    struct hash128 state_hash;
    uint64_t last_leader_ns; /* monotonic, when a leader was last known here */
    uint64_t free_bytes;     /* of the data directory's file system */
    bool is_disk_full;       /* below the limit: writes are refused */
    bool is_disk_slow;       /* no progress for 2.5 s, the test write is blocked */
    uint64_t fsync_last_us;  /* newest write with sync */
    uint64_t fsync_max_us;   /* of the last minute */
    int err;                 /* of FAILED and NEEDS_OPERATOR */
    struct errmsg message;   /* what it waits for or what is wrong; empty when RUNNING well */
    struct store_counters counters;
    struct store_peer_status peers[LIMIT_NODES];
    uint32_t n_peers;
};

/* The newest status not taken yet; false: nothing new. Published at each change of state, leader
 * or revision and at least each second. */
bool store_take_status(struct store *store, struct store_status *ret_status);

#endif
