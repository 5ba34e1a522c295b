/* The inside of the store, shared by its store_*.c files and nobody else.
 *
 *   store.c           the owner's side: start, stop, requests in, results out
 *   store_run.c       the thread: directory, opening and closing raft, the clock, the disk
 *   store_raft.c      one raft instance: settings, state machine, leadership
 *   store_requests.c  proposals, barriers, transfers
 *   store_init.c      making a cluster, being admitted to one
 *   store_peers.c     peers, frames in, who may speak, hellos
 *   store_deliver.c   what goes on to raft
 *   store_send.c      frames out
 *   store_members.c   membership follows the state
 *   store_restored.c  directories that are older than what is known of them
 *   store_status.c    what is told to the owner
 */
#ifndef JURY_STORE_STORE_PRIVATE_H
#define JURY_STORE_STORE_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <raft.h>
#include <uv.h>

#include "agent/loop/mailbox.h"
#include "agent/loop/ring.h"
#include "agent/loop/wake.h"
#include "agent/loop/zmq_hub.h"
#include "agent/store/data_dir.h"
#include "agent/store/disk_watch.h"
#include "agent/store/identity.h"
#include "agent/store/raft_frame.h"
#include "agent/store/raft_guard.h"
#include "agent/store/raft_lane.h"
#include "agent/store/raft_wrap.h"
#include "agent/store/snapshot_flow.h"
#include "agent/store/store.h"
#include "common/base/log.h"

/* Requests under way in all, on their way in, queued, in raft or on their way back. */
#define STORE_REQUESTS_MAX 1024
#define STORE_TICK_MS 50
#define STORE_HELLO_NS UINT64_C(1000000000)
#define STORE_SILENT_NS UINT64_C(3000000000)
#define STORE_STATUS_NS UINT64_C(200000000) /* what it tells may be so old */
#define STORE_RETRY_MS_MIN 1000             /* after a failed start */
#define STORE_RETRY_MS_MAX 30000
#define STORE_MEMBERS_NS UINT64_C(100000000)
#define STORE_CHANGE_RETRY_NS UINT64_C(2000000000)
#define STORE_STOP_NS UINT64_C(2000000000)   /* for handing leadership over */
#define STORE_CLOSE_NS UINT64_C(45000000000) /* for closing raft */
#define STORE_FAREWELL_NS UINT64_C(5000000000)
#define STORE_SNAPSHOT_BYTES (8u << 20)  /* of entries: a snapshot before the threshold */
#define STORE_TRAILING_BYTES (16u << 20) /* of entries kept behind it */

/* One request of the owner, from its way in to its completion. */
struct ask {
    struct ask *next;
    uint8_t kind; /* enum store_request_kind; 0 = the store's own */
    uint64_t cookie;
    uint64_t node_id;
    struct cluster_id cluster_id;
    uint8_t *command; /* owned */
    size_t n_command_bytes;
    bool was_refused; /* by check: wait for a barrier, then check again */
    struct store *store;
    struct raft_apply apply;
    uint8_t *answer; /* of apply, until the callback */
    size_t n_answer_bytes;
    bool is_completed; /* acknowledged already (a planted fault) */
};

struct ask_list {
    struct ask *first;
    struct ask *last;
    uint32_t n;
};

struct store_peer {
    uint64_t node_id;
    struct cluster_id cluster_id; /* as heard in its hello; zero: empty directory */
    uint64_t incarnation;         /* as heard */
    uint64_t epoch;
    uint64_t revision;
    uint64_t members_revision;
    uint64_t last_heard_ns; /* monotonic; 0 = never */
    uint64_t last_hello_ns; /* sent */
    uint64_t retry_ns;      /* no membership change for it before */
    uint64_t admit_ns;      /* no further ADMIT to it before */
    uint64_t farewell_ns;   /* removed: dropped at this time; 0 = a member */
    struct guard_order order;
    struct guard_order seen; /* newest message of any kind of the member's directory */
    uint64_t seen_term;      /* highest term that the directory spoke in */
    bool is_restored;        /* by its word, or it speaks with an older epoch than `seen` */
    struct snapshot_out out;
    struct snapshot_in in;
    struct log_limit refusal_log;
    uint8_t state; /* enum store_peer_state, without SILENT */
};

/* Callbacks of raft carry only the request: this leads back. */
struct own_request {
    struct store *store;
    uint64_t term;
};

struct store {
    struct store_options options; /* data_dir is not valid after the start: see dir */
    struct data_dir_owner owner;
    struct sock_options sock;
    uint16_t ports[LIMIT_ENDPOINTS_PER_NODE];
    void *listener; /* given to the lane by the thread */

    /* between the threads */
    pthread_t thread;
    struct wake wake;         /* owner -> store */
    struct ring *requests;    /* struct ask *, owner -> store */
    struct ring *completions; /* struct store_completion, store -> owner */
    struct mailbox states;    /* fsm.publish */
    struct mailbox statuses;  /* struct store_status, malloc */
    struct mailbox members;   /* struct store_members, malloc */
    _Atomic bool must_stop;
    uint32_t n_requests; /* owner: not completed yet */

    /* the loop */
    uv_loop_t loop;
    uv_timer_t ticker;
    uv_timer_t retry;
    uv_prepare_t turn;
    struct wake_watch wake_watch;
    struct zmq_hub hub;
    struct raft_lane lane;
    bool is_stopping;
    uint64_t stop_ns;  /* when that began */
    uint64_t close_ns; /* when closing raft began */
    bool is_wake_due;
    uint64_t now_ns; /* of this turn */

    /* the directory */
    struct data_dir dir;
    struct identity identity; /* valid when has_identity */
    bool has_identity;
    bool is_empty; /* the directory, when it was opened; damage is not emptiness */
    uint64_t epoch;
    uint64_t sequence;
    bool is_restored; /* raft is closed for good */
    uint8_t state;    /* enum store_state */
    int err;
    struct errmsg message;
    uint64_t retry_ms;
    uint64_t free_bytes;
    uint64_t free_checked_ns;
    bool is_disk_full;
    bool is_disk_slow;
    struct disk_tester *tester;
    struct disk_watch watch;
    uint64_t fsync_max_us; /* of the running minute and the one before */
    uint64_t fsync_max_before_us;
    uint64_t minute_ns;

    /* raft */
    struct raft_wrap wrap;
    struct raft raft;
    struct raft_fsm raft_fsm;
    bool is_raft_open;    /* raft_init succeeded, not closed yet */
    bool is_raft_started; /* messages and requests may go in */
    bool is_raft_closing;
    bool must_reopen; /* after the close that runs, at once */
    uint64_t published_revision;
    struct raft_message held_snapshot; /* RN1: the newest one that could not be delivered */
    char held_address[RAFT_ADDRESS_BYTES];
    bool has_held_snapshot;
    uint16_t last_raft_state;
    uint64_t last_term;
    uint64_t last_leader_id;
    uint64_t last_leader_ns;
    bool is_ready;
    bool is_ready_asked; /* ready_barrier is under way */
    uint64_t ready_retry_ns;
    struct raft_barrier ready_barrier;
    struct own_request ready;
    uint64_t log_bytes; /* applied since the newest snapshot */
    uint64_t n_log_entries;
    uint64_t snapshot_index; /* as last seen */
    bool is_state_dirty;

    /* requests */
    struct ask_list queue;    /* proposals that raft has not got yet */
    struct ask_list applying; /* in raft, in the order of their indexes */
    struct ask_list barrier_now;
    struct ask_list barrier_next;
    struct ask_list inits;
    struct raft_barrier barrier;
    bool is_barrier_running;
    struct raft_transfer transfer;
    struct ask *transfer_ask;
    bool is_transfer_running;
    uint8_t *init_command; /* of the `init` file; NULL: none */
    size_t n_init_bytes;
    bool is_init_proposed;

    /* members and peers */
    struct store_members *wanted;     /* of the state machine */
    struct store_members *introduced; /* newer than it, of a member's ADMIT */
    uint64_t introduced_revision;
    uint64_t members_revision; /* at which `wanted` last changed, as seen here */
    uint64_t members_ns;       /* last look at the membership */
    struct raft_change change;
    uint64_t change_id; /* node whose change runs; 0 = none */
    struct store_peer *peers[LIMIT_NODES];
    uint32_t n_peers;

    uint64_t status_ns;
    struct store_counters counters;
};

/* store_run.c */
void *store_main(void *arg);
/* Ends the process by the owner's hook. */
void store_fail_stop(struct store *store, int exit_code, const char *sentence)
    __attribute__((noreturn));
/* Change state with its sentence (printf; "" = none), log it, publish it. */
void store_set_state(struct store *store, enum store_state state, int err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The directory is READY: raise the epoch and open raft. */
void store_open(struct store *store);
/* How much is left on the disk, and what follows from it. */
void store_look_at_space(struct store *store);
/* Close raft; open it again afterwards, or finish the stop. */
void store_close_raft(struct store *store, bool must_reopen);

/* store_raft.c */
int store_raft_open(struct store *store, struct errmsg *err);
/* Look for changes of leadership, of the state, of the snapshot; once a turn. */
void store_raft_turn(struct store *store);
bool store_is_leader(struct store *store);
uint64_t store_leader_id(struct store *store);
/* The server of this id in raft's configuration; NULL. */
const struct raft_server *store_server(struct store *store, uint64_t node_id);
/* The incarnation that raft's configuration binds to the id; 0 = none. */
uint64_t store_bound_incarnation(struct store *store, uint64_t node_id);

/* store_requests.c */
void ask_push(struct ask_list *list, struct ask *ask);
struct ask *ask_pop(struct ask_list *list);
void ask_free(struct ask *ask);
/* Answer and free. format: the sentence, for every outcome but STORE_DONE. */
void store_complete(struct store *store, struct ask *ask, enum store_outcome outcome,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
void store_take_requests(struct store *store);
/* Give raft what it may have now. */
void store_pump(struct store *store);
/* This node is not, or no longer, the leader. */
void store_drop_queue(struct store *store);
/* The state machine has answered the entry at index. */
void store_note_answer(struct store *store, uint64_t index, uint8_t *answer, size_t n_bytes);
/* Hand leadership to node_id (0 = any). ask: NULL = at the stop. False: nobody to hand it to. */
bool store_start_transfer(struct store *store, uint64_t node_id, struct ask *ask);

/* store_init.c */
void store_begin_init(struct store *store, struct ask *ask);
void store_init_turn(struct store *store);
void store_on_admit(struct store *store, const struct frame *frame);
/* What an empty directory waits for, or why it waits in vain. */
void store_say_waiting(struct store *store);

/* store_peers.c */
struct store_peer *store_peer(struct store *store, uint64_t node_id); /* NULL: no room */
struct store_peer *store_find_peer(struct store *store, uint64_t node_id);
void store_drop_peer(struct store *store, uint64_t node_id);
void store_on_frame(void *user, uint64_t from, const uint8_t *data, size_t n_bytes);
void store_on_connected(void *user, uint64_t peer_id);
void store_peers_turn(struct store *store);
void store_close_peers(struct store *store);

/* store_deliver.c */
/* frame: one of raft's kinds, past all questions of who; what it owns is taken. */
void store_on_raft_frame(struct store *store, struct store_peer *peer, struct frame *frame);
/* A snapshot that RN1 held back, when its time has come. */
void store_deliver_held(struct store *store);

/* store_send.c */
/* Fill in the head and send. */
void store_send_frame(struct store *store, uint64_t to, struct frame *frame);
void store_send_raft(void *user, const struct raft_message *message);
void store_send_hello(struct store *store, uint64_t to);
/* What the window of the peer's snapshot has room for. */
void store_send_parts(struct store *store, struct store_peer *peer);

/* store_members.c */
/* The state machine may name other members now. */
void store_members_changed(struct store *store);
void store_members_turn(struct store *store);
/* The node may speak here: a member, introduced, one of Raft's servers, or trusted while there are
 * no members. */
bool store_is_known(struct store *store, uint64_t node_id);
bool store_is_trusted(const struct store *store, uint64_t node_id);
const struct member_node *store_find_member(const struct store *store, uint64_t node_id);
void store_send_admit(struct store *store, uint64_t to);
void store_introduce(struct store *store, const struct frame_admit *admit);
/* Of the `members` file, when the directory is opened. */
void store_recall_members(struct store *store);

/* store_restored.c */
/* Raise the start counter above itself and `above`; says so if its file was damaged. */
int store_raise_epoch(struct store *store, uint64_t above, struct errmsg *err);
/* A frame of the member's own directory, for what is known of it. */
void store_note_seen(struct store_peer *peer, const struct frame *frame);
/* A hello of the peer: is its directory an older one? Before store_note_seen. */
void store_judge_age(struct store *store, struct store_peer *peer, const struct frame *frame);
/* What goes into a hello to the peer about its directory. */
void store_tell_seen(struct store *store, const struct store_peer *peer, struct frame_hello *hello);
/* What a member knows of this directory: if more than it holds itself, raft is closed for good. */
void store_hear_seen(struct store *store, const struct frame *frame);
/* Somebody removed the directory, or put another one into its place: raft is closed for good. */
void store_look_at_directory(struct store *store);
/* The directory was marked at an earlier start: true, and raft must not be opened. */
bool store_is_marked_restored(struct store *store);

/* store_status.c */
void store_publish_status(struct store *store);
void store_publish_state(struct store *store);
void store_publish_members(struct store *store);

#endif
