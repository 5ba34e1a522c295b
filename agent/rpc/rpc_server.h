/* The RPC server: from the two frames of a call to the two frames of its answer.
 *
 * A shell without sockets and clocks: frames come in with the caller's authenticated identity, time
 * comes in as a number, answers leave by a hook, and everything that it must ask for goes through
 * `struct rpc_hooks`, which agent.c fills in. Health thread only; no hook may wait, and none may
 * call back into the server before it has returned.
 *
 * The table of methods, with the role each needs and whether it is local, a read or a write, is
 * made from the .proto options (common/wire/method.h). What happens to a call:
 *
 * local: answered at once from the views (`why` first asks the peers, 1 s at most; `probe` sends a
 * call of its own to each node that is named, and waits for the probes of all).
 *
 * read: with `stale` at once, with revision and age. Else a barrier on the leader (asked through
 * `forward` from elsewhere, shared by all reads that wait), then from this node's engine when it
 * has that revision.
 *
 * write: on the leader it becomes a command, is proposed, and is answered when applied. Elsewhere
 * it is forwarded with the caller's identity, once; a forwarded call is never forwarded again.
 * Without a leader it waits 900 ms for one and is then refused as NO_LEADER, with the peers and
 * their last contact. When the leader or the store is lost on the way, it is asked again under the
 * same request id until its deadline: the catalog keeps the answers. */
#ifndef JURY_RPC_SERVER_H
#define JURY_RPC_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/catalog.h"
#include "agent/core/catalog_apply.h"
#include "agent/core/engine.h"
#include "agent/core/probe.h"
#include "agent/rpc/rpc_view.h"
#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/units.h"
#include "common/model/change.h"

#define RPC_LEADER_WAIT_NS (900 * NS_PER_MS)    /* then NO_LEADER: under a second */
#define RPC_REVISION_WAIT_NS (1000 * NS_PER_MS) /* min_revision: 1 s at most */
#define RPC_ROUTE_BYTES 255                     /* longest routing id of ZeroMQ */

struct rpc_server;

/* How the caller came. */
enum rpc_caller {
    RPC_CALLER_NONE = 0,
    RPC_CALLER_LOCAL = 1, /* unix socket, guarded by its file mode */
    RPC_CALLER_KEY = 2,   /* a key of the catalog, by CURVE */
    RPC_CALLER_PEER = 3   /* a member node forwards for the identity that it authenticated */
};

struct rpc_identity {
    uint8_t caller;                  /* enum rpc_caller */
    uint8_t role;                    /* enum key_role; KEY_ROLE_NONE is refused everything */
    char name[LIMIT_NAME_BYTES + 1]; /* of the key, or words for the unix socket */
};

/* Where the answer goes: kept with the call and given back, not looked into. */
struct rpc_route {
    uint32_t socket;     /* the caller's choice */
    uint64_t forward_id; /* of a forwarded call */
    uint8_t n_bytes;
    uint8_t bytes[RPC_ROUTE_BYTES]; /* routing id */
};

struct rpc_frames {
    const uint8_t *envelope;
    size_t n_envelope_bytes;
    const uint8_t *payload; /* may be NULL when empty */
    size_t n_payload_bytes;
};

/* How a proposal, barrier or init ended; the same words as the store's. */
enum rpc_outcome {
    RPC_OUTCOME_NONE = 0,
    RPC_DONE,       /* propose: *answer says what came of it */
    RPC_NOT_LEADER, /* nothing was done */
    RPC_UNKNOWN,    /* lost on the way: may be applied or not */
    RPC_DISK_FULL,
    RPC_BUSY,
    RPC_NOT_READY, /* message says why */
    RPC_REFUSED,   /* message says why */
    RPC_EXISTS     /* init: there is a cluster already; message says which */
};

/* X(name, help): what came and what was refused, since the start. */
#define RPC_COUNTERS(X)                                                                     \
    X(calls, "calls that came, from clients and peers")                                     \
    X(answered, "calls that were answered with OK")                                         \
    X(forwarded, "calls that were forwarded to the leader")                                 \
    X(asked_again, "writes that were asked again after a leader was lost on the way")       \
    X(barriers, "barriers that reads shared")                                               \
    X(dropped_malformed, "messages whose envelope cannot be read")                          \
    X(refused_version, "calls of another major version, or with fields of a newer one")     \
    X(refused_method, "calls of an unknown method")                                         \
    X(refused_unauthenticated, "calls without a role")                                      \
    X(refused_role, "calls that the caller's role does not allow")                          \
    X(refused_invalid, "calls with a bad request id, deadline or payload, or invalid data") \
    X(refused_size, "calls that are too large")                                             \
    X(refused_busy, "calls beyond the limits of calls or bytes under way")                  \
    X(refused_no_leader, "calls that found no leader")                                      \
    X(deadline_passed, "calls whose deadline passed")                                       \
    X(refused_other, "calls that ended in another error")

typedef counter_emit rpc_emit_counter;

struct rpc_counters {
#define RPC_COUNTER_FIELD(name, help) uint64_t name;
    RPC_COUNTERS(RPC_COUNTER_FIELD)
#undef RPC_COUNTER_FIELD
};

struct rpc_simulation;

struct rpc_hooks {
    void *user;

    /* --- answers --- */
    /* Borrowed. Called exactly once for each call that rpc_server_handle took. */
    void (*reply)(void *user, const struct rpc_route *route, const struct rpc_frames *frames);

    /* --- the store --- */
    /* Each with a cookie that comes back once in rpc_server_done; an error means that it will not:
     * ERR_BUSY, ERR_LIMIT, ERR_NOTREADY, ERR_NOMEM. command: borrowed, encoded by
     * command_encode. */
    int (*propose)(void *user, uint64_t cookie, const uint8_t *command, size_t n_bytes);
    int (*barrier)(void *user, uint64_t cookie);
    /* Make a cluster (store_init with a CHANGE_INIT command); borrowed. Its id comes from the
     * request id, so that asking again goes on where it was. err: has a sentence already, which
     * the hook may replace by a better one. */
    int (*init)(void *user, uint64_t cookie, const struct cluster_init *init, struct errmsg *err);
    /* Dry run: what catalog_apply would answer on the catalog in use. Off this thread, since it
     * may take long; rpc_check_catalog does the work. Ends in rpc_server_done. command: taken,
     * command_close and free; also on error. */
    int (*check)(void *user, uint64_t cookie, struct command *command);
    /* Likewise a simulation: rpc_simulation_run does the work, and rpc_server_simulated ends it.
     * job: taken, rpc_simulation_free; also on error. */
    int (*simulate)(void *user, uint64_t cookie, struct rpc_simulation *job);
    /* One probe of the target's definition now, off this thread; where it comes from is the
     * hook's to say. Ends in rpc_server_probed. Errors, with a sentence: ERR_BUSY, ERR_LIMIT,
     * ERR_NOMEM, ERR_NOTREADY. */
    int (*probe)(void *user, uint64_t cookie, const struct probe_target *target,
                 struct errmsg *err);
    void (*store)(void *user, struct rpc_store *ret_store);

    /* --- the mesh --- */
    /* Send a call to a peer (normally the leader); its answer comes back in
     * rpc_server_forward_answer with the forward_id. Borrowed. ERR_UNREACHABLE: not connected. */
    int (*forward)(void *user, uint64_t forward_id, uint64_t node_id,
                   const struct rpc_identity *identity, const struct rpc_frames *frames);
    /* Ask all heard peers for what they know about their vote on a target (an ENGINE_ASK step of
     * the engine); what they answer goes into the engine and shows as has_detail. */
    void (*ask_peers)(void *user, struct target_id target);
    /* This node's own hold on or off (an ENGINE_HOLD step). Borrowed. ERR_NOTREADY: no catalog is
     * in use yet. */
    int (*override_hold)(void *user, const struct hold_override *hold);

    /* --- views --- */
    /* The engine: read by engine_view.h alone, which changes nothing. NULL before there is one. Its
     * catalog is the one in use here. */
    const struct engine *(*engine)(void *user);
    /* Each fills *ret in or leaves it as it is (zeroed). */
    void (*node)(void *user, struct rpc_node *ret_node);
    void (*peer)(void *user, uint64_t node_id, struct rpc_peer *ret_peer);
    /* Each false when there are no more. */
    bool (*data_plane)(void *user, size_t index, struct rpc_data_plane *ret_data_plane);
    bool (*ready_check)(void *user, size_t index, struct rpc_ready_check *ret_check);
    /* Every counter of the node, the server's own among them (rpc_server_counter_set). */
    void (*counters)(void *user, counter_emit emit, void *to);
    /* Wall time; and CLOCK_BOOTTIME, which the views want for deadlines. */
    int64_t (*wall_ms)(void *user);
    uint64_t (*boot_ns)(void *user);
};

/* hooks: copied. seed: for forward ids and cookies. NULL: no memory. */
struct rpc_server *rpc_server_new(const struct rpc_hooks *hooks, uint64_t seed);
/* Calls under way are dropped without an answer. NULL is allowed. */
void rpc_server_free(struct rpc_server *server);

/* Take one call. frames: borrowed. Bad input is answered when its envelope can be read and dropped
 * else, and counted in any case. */
void rpc_server_handle(struct rpc_server *server, uint64_t now_ns,
                       const struct rpc_identity *identity, const struct rpc_route *route,
                       const struct rpc_frames *frames);

/* What the hooks promised. answer: of a proposal or check that is DONE, borrowed, else NULL;
 * revision: of the state machine (barrier and init). message: NULL or why not. A cookie that is not
 * waited for any more is ignored. */
struct rpc_done {
    uint8_t outcome; /* enum rpc_outcome */
    uint64_t revision;
    const struct apply_answer *answer;
    const struct catalog_refusals *refusals; /* of a dry run that is refused; else NULL */
    const char *message;
};
void rpc_server_done(struct rpc_server *server, uint64_t now_ns, uint64_t cookie,
                     const struct rpc_done *done);
/* A forwarded call was answered by node_id. frames: borrowed. */
void rpc_server_forward_answer(struct rpc_server *server, uint64_t now_ns, uint64_t node_id,
                               uint64_t forward_id, const struct rpc_frames *frames);

/* Look at what waits: for a revision, a leader, answers of peers, a deadline. Call it after the
 * engine took a catalog, the store's status changed or a peer's answer came, and when the time of
 * rpc_server_next_ns has come. */
void rpc_server_poll(struct rpc_server *server, uint64_t now_ns);
/* Monotonic time of the next thing to do; UINT64_MAX: nothing waits. */
uint64_t rpc_server_next_ns(const struct rpc_server *server);

/* For the program's registry; valid as long as the server. */
struct counter_set rpc_server_counter_set(const struct rpc_server *server);

/* A simulation that was run, or not. job: taken. */
void rpc_server_simulated(struct rpc_server *server, uint64_t now_ns, uint64_t cookie,
                          struct rpc_simulation *job);
/* Any thread, once. */
void rpc_simulation_run(struct rpc_simulation *job);
void rpc_simulation_free(struct rpc_simulation *job); /* NULL is allowed */

/* A probe has come to its end. report: borrowed. A cookie that is not waited for any more is
 * ignored. */
struct probe_report;
void rpc_server_probed(struct rpc_server *server, uint64_t now_ns, uint64_t cookie,
                       const struct probe_report *report);

/* The dry run's work, for a thread of its own: judge a command on a catalog. Neither is kept.
 * Errors: ERR_NOMEM; else *ret_answer and *ret_refusals are filled in. */
int rpc_check_catalog(const struct catalog *catalog, const struct command *command,
                      struct apply_answer *ret_answer, struct catalog_refusals *ret_refusals,
                      struct errmsg *err);

#endif
