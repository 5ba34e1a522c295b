/* What the files of the mesh share; nobody else includes it. */
#ifndef JURY_MESH_INTERNAL_H
#define JURY_MESH_INTERNAL_H

#include "agent/loop/unsent.h"
#include "agent/loop/zmq_monitor.h"
#include "agent/mesh/mesh.h"
#include "agent/mesh/outbox.h"
#include "common/base/log.h"

struct mesh_peer {
    uint64_t node_id;
    struct public_key key;
    struct dial *dial; /* NULL when it could not be opened; tried again at each mesh_set_peers */
    struct outbox outbox;
    bool is_welcome;
    bool lacks_shared_space;
    uint8_t unbuilt;
    bool store_is_down;
    uint32_t feature_level;
    uint64_t last_heard_ns;
    uint64_t n_received;
    uint64_t n_dropped;
};

struct mesh {
    struct mesh_options options;
    struct cluster_id cluster_id;
    uint64_t node_id; /* 0 = of no cluster */
    struct zap_table *table;

    struct zmq_watch router;
    struct zmq_monitor monitor;
    struct zmq_watch local;
    bool has_local;
    struct unsent *unsent; /* answers of both */
    struct log_limit unread_log;
    uint16_t ports[LIMIT_ENDPOINTS_PER_NODE];

    struct dial_lane lane;
    struct mesh_peer peers[LIMIT_NODES];
    uint32_t n_peers;
    /* The newest of each, for peers that connect later. */
    struct frame *hello;
    struct frame_set *vector;
    struct frame *report;

    /* Large, so used again for each message. */
    struct peer_message incoming;
    struct peer_message outgoing;
    struct mesh_counters counters;

    int n_closing; /* sockets, monitors and the lane that are not closed yet */
    void (*closed)(void *user);
    void *closed_user;
};

struct mesh_peer *mesh_find_peer(struct mesh *mesh, uint64_t node_id);
/* Send what its outbox holds until it is empty or the peer does not take more. */
void mesh_flush(struct mesh *mesh, struct mesh_peer *peer);

/* Hooks of the sockets (mesh_in.c). */
void mesh_on_router_message(void *user, zmq_msg_t frames[], size_t n_frames);
void mesh_on_local_message(void *user, zmq_msg_t frames[], size_t n_frames);
void mesh_on_dial_message(void *user, struct dial *dial, zmq_msg_t frames[], size_t n_frames);

#endif
