/* What the RPC handlers read besides the catalog and the engine's views: small plain values, filled
 * in by agent.c from the store's status, the mesh and the data planes. Copies only; nothing here
 * points into anybody's state. Ages are by the monotonic clock. */
#ifndef JURY_RPC_VIEW_H
#define JURY_RPC_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/model/cluster.h"

#define RPC_NEVER_NS UINT64_MAX /* an age: never heard */

/* Numbers of jury.v1.StoreState and jury.v1.StoreRole. */
enum rpc_store_state {
    RPC_STORE_NONE = 0,
    RPC_STORE_WAITING = 1,
    RPC_STORE_STARTING = 2,
    RPC_STORE_RUNNING = 3,
    RPC_STORE_FAILED = 4
};
enum rpc_store_role {
    RPC_ROLE_NONE = 0,
    RPC_ROLE_FOLLOWER = 1,
    RPC_ROLE_CANDIDATE = 2,
    RPC_ROLE_LEADER = 3
};

struct rpc_store {
    uint8_t state;          /* enum rpc_store_state */
    uint8_t role;           /* enum rpc_store_role */
    bool is_ready;          /* leader: may propose */
    uint64_t leader_id;     /* 0 = nobody is known */
    uint64_t leader_age_ns; /* since a leader was last known here; RPC_NEVER_NS */
    uint64_t term;
    uint64_t applied_index;
    uint64_t last_index;
    uint64_t revision; /* applied by the store; the engine may be a moment behind */
    struct hash128 state_hash;
    uint64_t free_bytes;
    bool is_disk_full;
    bool is_disk_slow;
    uint64_t fsync_max_us;
    struct errmsg message; /* what it waits for or what is wrong */
};

/* A peer as the mesh knows it; what the engine knows comes from engine_view_peers. */
struct rpc_peer {
    uint64_t age_ns;      /* since its last message of any kind; RPC_NEVER_NS */
    uint64_t raft_age_ns; /* since the store last heard it; RPC_NEVER_NS */
    uint64_t n_received;
    uint64_t n_dropped;
    uint32_t feature_level;  /* of its last hello; 0 = none */
    bool lacks_shared_space; /* likewise */
    uint8_t unbuilt;         /* likewise; set of enum hello_unbuilt (vote_msg.h) */
    bool store_is_down;      /* likewise */
    bool is_restored;        /* its data directory is an older copy: it takes no part in Raft */
    char endpoint[ENDPOINT_TEXT_BYTES]; /* where it is connected to; may be empty */
};

#define RPC_PROBE_SOURCES 16

/* An address that probes of this node come from, and of how many targets. */
struct rpc_probe_source {
    struct addr addr;
    uint32_t n_targets;
    uint32_t n_shared_space; /* of them those whose check asks for one in 100.64.0.0/10 */
};

/* What the kernel and the configuration said when each target was last looked at. */
struct rpc_probe_sources {
    struct rpc_probe_source sources[RPC_PROBE_SOURCES];
    uint32_t n_sources;
    uint32_t n_left_out; /* targets whose source found no room there */
    uint32_t n_without;  /* targets that no packet can leave for */
    uint8_t reason;      /* enum probe_reason, of the first of them */
};

/* Starts of probes in a second; probe_budget.h. */
struct rpc_probe_budget {
    uint32_t per_node; /* 0 = this node does not probe yet */
    uint32_t per_address;
    uint32_t used;
    uint32_t demand;
    uint32_t top_demand;
    struct addr top_address; /* ADDR_NONE = not known */
    uint32_t n_waiting;
    bool is_pressed;
    uint64_t n_delayed;
    uint64_t delay_ns;
    uint64_t delay_max_ns;
};

struct rpc_node {
    struct rpc_probe_sources probe_sources;
    bool lacks_shared_space; /* no address in 100.64.0.0/10, and none named by the operator */
    struct rpc_probe_budget probe_budget;
    uint64_t node_id;             /* 0 before it belongs to a cluster */
    struct cluster_id cluster_id; /* zero before */
    uint64_t epoch;
    struct public_key key;
    uint64_t uptime_ns;
    uint32_t n_probes_in_flight;
    uint64_t published_generation;
    /* Why data planes do not get what is decided here; empty = they do. */
    struct errmsg table_problem;
    bool is_last_known_good; /* the catalog in use is from the file, not from the store */
    const char *probe_engine;
    char capabilities[128]; /* comma-separated */
    const char
        *half_open_problem; /* why there are no half-open probes; NULL or empty = there are */
    /* How they leave, and why so; NULL or empty without them. Static. */
    const char *half_open_send;
    const char *half_open_send_reason;
    const char *half_open_receive; /* and their answers are seen */
    const char *half_open_receive_reason;
    const char *libraries; /* comma-separated, "raft 0.22.1,libzmq 4.3.4" */
    char mesh_address[ENDPOINT_TEXT_BYTES];
    char raft_address[ENDPOINT_TEXT_BYTES];
    uint32_t feature_level;
};

#define RPC_LISTENER_FAILURES 64

/* A listener that a data plane could not open. */
struct rpc_listener_failure {
    uint64_t listener_id; /* may be unknown to the catalog: the word is another program's */
    const char *reason;   /* static */
};

/* Numbers of jury.v1.DataPlaneState. */
enum rpc_plane_state {
    RPC_PLANE_NONE = 0,
    RPC_PLANE_ALIVE = 1,
    RPC_PLANE_ABSENT = 2,
    RPC_PLANE_REFUSED = 3,
    RPC_PLANE_GONE = 4
};

struct rpc_data_plane {
    uint32_t pid;
    uint8_t state;   /* enum rpc_plane_state */
    uint64_t age_ns; /* of its heartbeat; RPC_NEVER_NS */
    uint64_t adopted_generation;
    uint64_t flows;
    char name[64];
    struct rpc_listener_failure failures[RPC_LISTENER_FAILURES];
    uint32_t n_failures;
    uint32_t n_failures_all; /* at least n_failures */
    struct errmsg problem;   /* why it is refused or gone; else empty */
};

struct rpc_ready_check {
    char name[32]; /* lower_snake */
    bool is_ok;
    struct errmsg message; /* when not; else empty, or what one should know all the same */
};

#endif
