/* What the RPC handlers read besides the catalog: small plain values, filled in by agent.c from the
 * engine's views, the store's status, the mesh and the data planes. Copies only; nothing here
 * points into anybody's state. Ages are by the monotonic clock. */
#ifndef JURY_RPC_VIEW_H
#define JURY_RPC_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/vote_msg.h"
#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/limits.h"
#include "common/model/cluster.h"
#include "common/model/reason.h"

#define RPC_REASONS_MAX 8       /* distinct reasons of the deciding votes */
#define RPC_SENTENCE_BYTES 256  /* one sentence of "what would change it" */
#define RPC_SENTENCES_MAX 4     /* of them */
#define RPC_NEVER_NS UINT64_MAX /* an age: never heard */

/* What this node concludes for one backend (spec.md 5). */
struct rpc_verdict {
    uint8_t state;      /* enum health_state; HEALTH_NONE: the engine does not know it (yet) */
    uint8_t marks;      /* enum health_mark bits */
    bool is_reachable;  /* own opinion as the second axis (N5) */
    uint64_t since_ns;  /* how long the state has held */
    uint16_t n_pass;    /* p of the counted votes */
    uint16_t n_fail;    /* f */
    uint16_t n_counted; /* c */
    uint16_t n_observers;
    uint16_t quorum;
    uint8_t n_reasons;
    uint8_t reasons[RPC_REASONS_MAX]; /* enum probe_reason */
};

/* Why a vote does not count; numbers of jury.v1.VoteExclusion. */
enum rpc_exclusion {
    RPC_COUNTED = 0,
    RPC_NO_OPINION = 1,
    RPC_NEVER_HEARD = 2,
    RPC_TOO_OLD = 3,
    RPC_SUSPECT = 4,
    RPC_OTHER_DEFINITION = 5
};

/* One observer's vote. */
struct rpc_vote {
    uint64_t node_id;
    bool is_self;
    uint8_t opinion;   /* enum opinion */
    uint8_t exclusion; /* enum rpc_exclusion */
    uint64_t age_ns;   /* since its vector arrived; RPC_NEVER_NS */
    bool has_detail;   /* the fields below are known: own vote, change message or answer */
    uint8_t reason;    /* enum probe_reason */
    uint16_t http_status;
    uint32_t response_us;
    uint32_t streak;
    uint64_t since_ns;
};

struct rpc_why {
    struct rpc_verdict verdict;
    uint32_t n_votes;
    struct rpc_vote votes[LIMIT_NODES]; /* sorted by node id, this node included */
    uint32_t n_sentences;
    char would_change[RPC_SENTENCES_MAX][RPC_SENTENCE_BYTES];
};

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
    struct errmsg message; /* what it waits for or what is wrong */
};

/* A peer as the mesh and the engine know it. */
struct rpc_peer {
    uint64_t node_id;
    bool is_heard;   /* within 3 V */
    uint64_t age_ns; /* since its last message on the vote mesh; RPC_NEVER_NS */
    uint64_t epoch;
    uint64_t revision;
    uint64_t n_received;
    uint64_t n_dropped;
    char endpoint[ENDPOINT_TEXT_BYTES]; /* where it is connected to; may be empty */
};

struct rpc_node {
    uint64_t node_id;             /* 0 before it belongs to a cluster */
    struct cluster_id cluster_id; /* zero before */
    uint64_t epoch;
    struct public_key key;
    uint64_t uptime_ns;
    uint32_t n_targets;
    uint32_t n_probes_in_flight;
    uint64_t published_generation;
    bool is_last_known_good; /* the catalog in use is from the file, not from the store */
    const char *probe_engine;
    const char *capabilities; /* comma-separated */
    char mesh_address[ENDPOINT_TEXT_BYTES];
    char raft_address[ENDPOINT_TEXT_BYTES];
    const char *libraries; /* comma-separated, "raft 0.22.1,libzmq 4.3.4" */
    uint32_t feature_level;
};

struct rpc_data_plane {
    uint32_t pid;
    bool is_alive;
    uint64_t age_ns;
    uint64_t adopted_generation;
    uint64_t flows;
    char name[64];
};

struct rpc_ready_check {
    char name[32]; /* lower_snake */
    bool is_ok;
    struct errmsg message; /* when not */
};

/* One observer's part of a drain or removal. */
struct rpc_node_drain {
    uint64_t node_id;
    bool is_heard; /* reported since the drain began */
    bool is_done;
    uint64_t flows;
};

struct rpc_drain {
    bool has_deadline;
    uint64_t remaining_ns; /* until this node's deadline */
    bool is_done;          /* on every observer */
    uint32_t n_nodes;
    struct rpc_node_drain nodes[LIMIT_NODES];
};

/* Numbers of jury.v1.EventType. */
enum rpc_event_type {
    RPC_EVENT_NONE = 0,
    RPC_EVENT_VERDICT = 1,
    RPC_EVENT_GROUP = 2,
    RPC_EVENT_OPINION = 3,
    RPC_EVENT_PEER = 4,
    RPC_EVENT_CATALOG = 5,
    RPC_EVENT_STORE = 6,
    RPC_EVENT_DATA_PLANE = 7,
    RPC_EVENT_ALARM = 8
};

struct rpc_event {
    uint64_t sequence; /* from 1 at each start, without gaps */
    int64_t wall_ms;
    uint8_t type;                     /* enum rpc_event_type */
    char group[LIMIT_NAME_BYTES + 1]; /* empty = none */
    struct endpoint backend;          /* port 0 = none */
    char from[32];                    /* words of states; may be empty */
    char to[32];
    uint8_t n_reasons;
    uint8_t reasons[RPC_REASONS_MAX];
    uint16_t n_pass;
    uint16_t n_fail;
    uint64_t revision;
    uint64_t node_id; /* 0 = none */
    char message[RPC_SENTENCE_BYTES];
};

#endif
