/* The mesh on the health thread: votes, hellos, drain reports and calls between the nodes of a
 * cluster, calls of people's programs, and the local unix socket.
 *
 * A shell: it knows sockets, keys and who said what, and decides nothing about health. It binds one
 * ROUTER for everybody with a key and one for the unix socket, and keeps one dial to each peer.
 * Who a sender is comes from the ZAP User-Id of each message; a member id in the text that differs
 * is dropped and counted. Messages of a node are taken only after a hello that fits: own cluster,
 * known member, common version. What goes out to a slow peer is replaced by what is newer.
 *
 * Everything on the hub's thread. Hooks may call back into the mesh, except mesh_close. */
#ifndef JURY_MESH_MESH_H
#define JURY_MESH_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/vote_msg.h"
#include "agent/loop/dial.h"
#include "agent/loop/sock.h"
#include "agent/loop/zap.h"
#include "agent/loop/zmq_hub.h"
#include "agent/mesh/peer_codec.h"
#include "agent/mesh/refusals.h"
#include "common/base/addr.h"
#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/model/cluster.h"

#define MESH_VERSION_MIN 1 /* of the message set; a hello carries min..max */
#define MESH_VERSION_MAX 1
#define MESH_ROUTE_BYTES 255

struct mesh;

/* Where an answer goes. */
struct mesh_route {
    bool is_local;
    uint8_t n_bytes;
    uint8_t bytes[MESH_ROUTE_BYTES]; /* routing id */
};

/* The two frames of a call or an answer; payload may be empty. */
struct mesh_frames {
    const uint8_t *envelope;
    size_t n_envelope_bytes;
    const uint8_t *payload;
    size_t n_payload_bytes;
};

/* Who calls. ZAP_ROLE_NONE: the key was good at the handshake and is not any more. */
struct mesh_caller {
    bool is_local;
    enum zap_role role;
    const char *name; /* of the key; of the unix socket "local socket of node 1, uid 0" */
};

/* Everything is borrowed for the call. */
struct mesh_hooks {
    void *user;
    /* HELLO, VOTE_CHUNK, VOTE_CHANGE, VOTE_QUESTION or DRAIN_REPORT of a member. */
    void (*message)(void *user, uint64_t peer, const struct peer_message *message);
    void (*call)(void *user, const struct mesh_caller *caller, const struct mesh_route *route,
                 const struct mesh_frames *frames);
    /* A member forwards a call for somebody whom it authenticated. */
    void (*forward_request)(void *user, const struct peer_forward_request *request,
                            const struct mesh_route *route, const struct mesh_frames *frames);
    void (*forward_response)(void *user, uint64_t peer, uint64_t forward_id,
                             const struct mesh_frames *frames);
};

struct mesh_options {
    void *context; /* ZAP is bound in it */
    struct zmq_hub *hub;
    struct resolver *resolver;                      /* NULL: numeric hosts only */
    const struct curve_keys *keys;                  /* kept */
    struct endpoint bind[LIMIT_ENDPOINTS_PER_NODE]; /* port 0 = any (tests) */
    uint32_t n_bind;
    const char *local_path;    /* of the unix socket; NULL = none. The caller sees to it that nobody
                                  else listens there */
    bool local_is_private;     /* made with mode 0600, else 0660 */
    struct refusals *refusals; /* kept */
    struct mesh_hooks hooks;
};

/* Errors: ERR_CONFIG with a sentence (address), ERR_LIMIT, ERR_NOMEM, ERR_INTERNAL. */
int mesh_open(const struct mesh_options *options, struct mesh **ret_mesh, struct errmsg *err);
/* Frees itself; closed(user) on the loop when all sockets are closed. */
void mesh_close(struct mesh *mesh, void (*closed)(void *user), void *user);
uint16_t mesh_bound_port(const struct mesh *mesh, uint32_t index);

/* --- who is who --- */

/* The cluster and node that this agent belongs to; before, every hello is refused. */
void mesh_set_self(struct mesh *mesh, const struct cluster_id *cluster_id, uint64_t node_id);
/* The members but this node: dials are opened, closed, moved. Nobody else is ever taken off (A48).
 * Two nodes of one id: the first counts. */
void mesh_set_peers(struct mesh *mesh, const struct member_node nodes[], size_t n_nodes);
/* The newest key table, a reference is taken: callers are checked against it at each call. */
void mesh_set_table(struct mesh *mesh, struct zap_table *table);

/* --- out --- */

/* To all peers, now or when they read again. What cannot be encoded for lack of memory is left out;
 * the next vector brings it. */
void mesh_send_hello(struct mesh *mesh, const struct hello *hello);
void mesh_send_vector(struct mesh *mesh, const struct vote_chunk chunks[], uint16_t n_chunks);
void mesh_send_report(struct mesh *mesh, const struct drain_report *report);
void mesh_send_change(struct mesh *mesh, const struct vote_change *change);
void mesh_send_question(struct mesh *mesh, const struct vote_question *question);
/* To one. */
void mesh_reply_change(struct mesh *mesh, uint64_t peer, const struct vote_change *change);
/* Errors: ERR_UNREACHABLE (no such peer, or not connected), ERR_BUSY (its queue is full),
 * ERR_NOMEM. */
int mesh_forward(struct mesh *mesh, uint64_t peer, const struct peer_forward_request *request,
                 const struct mesh_frames *frames);
/* An answer to a call, or with forward_id to a forwarded one. Dropped and counted if the caller is
 * gone. */
void mesh_answer(struct mesh *mesh, const struct mesh_route *route,
                 const struct mesh_frames *frames);
void mesh_answer_forward(struct mesh *mesh, const struct mesh_route *route, uint64_t forward_id,
                         const struct mesh_frames *frames);

/* --- for people --- */

struct mesh_peer_status {
    bool is_up;              /* our connection to it */
    bool is_welcome;         /* its last hello was good */
    bool is_unresolved;      /* a name has no address */
    bool lacks_shared_space; /* of its last hello */
    uint8_t unbuilt;         /* likewise; set of enum hello_unbuilt */
    bool store_is_down;      /* likewise */
    uint32_t n_failures;     /* attempts since the connection was last up */
    uint32_t feature_level;  /* of its last hello */
    uint64_t last_heard_ns;  /* monotonic; 0 = never */
    uint64_t n_received;
    uint64_t n_dropped;
    char address[ENDPOINT_TEXT_BYTES]; /* where we reach it; may be empty */
};
/* False: no such peer. */
bool mesh_peer_status(const struct mesh *mesh, uint64_t peer, struct mesh_peer_status *ret_status);

/* X(name, help) */
#define MESH_COUNTERS(X)                                                               \
    X(received, "messages of other nodes that were taken")                             \
    X(calls, "calls received from keys and the unix socket")                           \
    X(forwards, "calls received that another node forwarded")                          \
    X(sent, "messages handed to libzmq for other nodes")                               \
    X(vectors_replaced, "vote vectors replaced by a newer one before a peer read")     \
    X(changes_dropped, "change messages left to the next vector: a peer did not read") \
    X(answers_dropped, "answers whose caller was gone or did not read")                \
    X(answers_unread, "those of them whose caller left too many bytes unread")         \
    X(connects, "connections to peers that came up")                                   \
    X(disconnects, "connections to peers that were lost")                              \
    X(before_cluster, "messages of nodes dropped: this one belongs to no cluster yet") \
    X(refused_by_peer, "connections that a peer refused")

struct mesh_counters {
#define MESH_COUNTER_FIELD(name, help) uint64_t name;
    MESH_COUNTERS(MESH_COUNTER_FIELD)
#undef MESH_COUNTER_FIELD
};
/* As a set for the registry; points into the mesh. */
struct counter_set mesh_counter_set(struct mesh *mesh);

#endif
