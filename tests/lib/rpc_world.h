/* A cluster of RPC servers on a virtual clock: real servers, catalogs and engines, a simulated
 * mesh and a simulated replicated log. Nodes can be killed and come back, leaders change, messages
 * and entries take their time or get lost; the same seed gives the same run. */
#ifndef JURY_TESTS_RPC_WORLD_H
#define JURY_TESTS_RPC_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/catalog_apply.h"
#include "agent/core/engine.h"
#include "agent/rpc/rpc_server.h"
#include "common/base/prng.h"
#include "common/wire/arena.h"
#include "jury/v1/envelope.pb-c.h"

#define RPC_WORLD_NODES 5
#define RPC_WORLD_CALLS 512
#define RPC_WORLD_QUEUE 256
#define RPC_WORLD_LOG 4096
#define RPC_WORLD_MS UINT64_C(1000000)

struct rpc_world;

struct rpc_world_node {
    struct rpc_world *world;
    uint64_t id;
    bool is_up;
    uint32_t feature_level;
    struct rpc_probe_budget probe_budget;
    struct rpc_server *server;
    struct catalog_state *state;
    size_t n_applied; /* entries of the log */
    uint64_t apply_ns;
    struct engine *engine;
    uint64_t engine_lag_ns; /* between the state and the engine */
    uint64_t adopt_ns;
    bool is_cut;       /* its mesh delivers nothing, either way */
    bool store_is_off; /* neither leads nor follows: knows no leader */
    uint64_t n_asked;  /* ask_peers */
    uint64_t n_checks;
    int propose_error;     /* of the propose hook, 0 = takes it */
    int forward_error;     /* of the forward hook */
    int probe_error;       /* of the probe hook */
    uint32_t n_probes;     /* asked of the probe hook */
    uint64_t probe_cookie; /* the last */
    struct probe_target probe_target;
    struct health_check probe_check; /* what it points to */
    struct cluster_init init;        /* of the init hook */
    uint64_t init_cookie;            /* 0 = not called */
};

/* One thing to come: a message, or what a store promised. */
struct rpc_world_event {
    uint8_t kind; /* 0 = free */
    uint64_t at_ns;
    uint64_t from, to; /* node ids */
    uint64_t cookie;
    struct rpc_identity identity;
    uint8_t *envelope, *payload; /* owned; of a proposal: the command */
    size_t n_envelope_bytes, n_payload_bytes;
    struct command *command; /* of a dry run */
    struct rpc_simulation *simulation;
};

struct rpc_world_reply {
    bool has_come;
    uint8_t *envelope, *payload;
    size_t n_envelope_bytes, n_payload_bytes;
    uint64_t at_ns;
    uint32_t n_times; /* must be 1 */
    /* Out of the envelope. */
    int code; /* 0 or ERR_* by reason */
    char reason[64];
    char message[512];
    char document_index[16]; /* metadata, or empty */
    char refusals[2048];     /* of a dry run: "INDEX SENTENCE\n" each */
    uint64_t revision;
    uint64_t node_id;
    bool is_stale;
};

struct rpc_world {
    uint64_t now_ns;
    struct prng prng;
    uint32_t n_nodes;
    struct rpc_world_node nodes[RPC_WORLD_NODES + 1]; /* by id */
    uint64_t leader_id;                               /* 0 = none */
    bool leader_is_ready;
    struct rpc_world_event queue[RPC_WORLD_QUEUE];
    struct {
        uint8_t *data;
        size_t n_bytes;
    } log[RPC_WORLD_LOG]; /* committed entries */
    size_t n_log;
    uint64_t commit_ns_min, commit_ns_max;
    struct rpc_world_reply replies[RPC_WORLD_CALLS];
    uint32_t n_calls;
    struct engine_actions *actions;
    struct rpc_data_plane plane; /* the only one of each node; state 0 = a healthy one */
    uint64_t n_forwarded;        /* messages */
    uint64_t n_barriers;         /* asked of a store */
    uint64_t n_effective;  /* committed entries that changed something: no repeats, no refusals */
    int64_t wall_step_ms;  /* so much does the wall clock go on with each reading */
    int64_t wall_ahead_ms; /* and has it gone on */
};

/* n voters, a committed init and node 1 leading. Large: make it static or on the heap. */
void rpc_world_open(struct rpc_world *world, uint32_t n_nodes, uint64_t seed);
void rpc_world_close(struct rpc_world *world);

struct rpc_world_ask {
    uint64_t node_id;
    enum key_role role;   /* 0 = admin */
    const char *caller;   /* NULL = "alice" */
    const char *method;   /* "GroupService/GetGroup" */
    const void *request;  /* a message; NULL = empty payload */
    const uint8_t *id;    /* NULL = a new one */
    uint32_t deadline_ms; /* 0 = 5000 */
    bool stale;
    uint64_t min_revision;
    uint32_t api_version; /* 0 = 1 */
};
/* Returns the number of the call, for rpc_world.replies. */
uint32_t rpc_world_call(struct rpc_world *world, const struct rpc_world_ask *ask);
/* Raw frames, for broken ones. */
uint32_t rpc_world_frames(struct rpc_world *world, uint64_t node_id, enum key_role role,
                          const struct rpc_frames *frames);
/* Let time pass. */
void rpc_world_run(struct rpc_world *world, uint64_t ms);
/* Until the call is answered; fails the test after `ms`. */
const struct rpc_world_reply *rpc_world_wait(struct rpc_world *world, uint32_t call, uint64_t ms);
/* The answer's message in the arena; fails the test when it is none. */
ProtobufCMessage *rpc_world_message(const struct rpc_world_reply *reply,
                                    const ProtobufCMessageDescriptor *type,
                                    struct wire_arena *arena);

/* The process is gone with all it had in flight; what it proposed and was not committed is lost
 * with it. */
void rpc_world_kill(struct rpc_world *world, uint64_t node_id);
/* It comes back with its log. */
void rpc_world_start(struct rpc_world *world, uint64_t node_id);
/* 0 = nobody. Proposals of the last leader that are not committed yet are lost; it is told UNKNOWN
 * if it is up. */
void rpc_world_set_leader(struct rpc_world *world, uint64_t node_id);
/* Commit everything that waits now; with `silently` the proposer is not told (it is about to be
 * killed). */
void rpc_world_commit(struct rpc_world *world, bool silently);
/* Proposals that wait to be committed. */
size_t rpc_world_n_proposals(const struct rpc_world *world);
uint64_t rpc_world_revision(const struct rpc_world *world, uint64_t node_id);

#endif
