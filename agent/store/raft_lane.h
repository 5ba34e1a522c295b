/* The Raft lane: one ROUTER that listens and one DEALER a peer that sends.
 *
 * Knows keys, connections and bytes, nothing of Raft. Who sent a message is what ZAP wrote on its
 * connection; the lane hands that on beside the bytes. While a peer is not reachable the newest
 * LANE_QUEUE messages for it are kept and older ones dropped: raft repeats what matters
 * (raft-zmq.md rules 13, 14). Store thread, but for raft_lane_listen. */
#ifndef JURY_STORE_RAFT_LANE_H
#define JURY_STORE_RAFT_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/loop/dial.h"
#include "agent/loop/zmq_hub.h"
#include "agent/loop/zmq_monitor.h"
#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/model/cluster.h"

#define LANE_QUEUE 16

struct raft_lane_hooks {
    void *user;
    /* from: the node that ZAP authenticated. data: borrowed. */
    void (*received)(void *user, uint64_t from, const uint8_t *data, size_t n_bytes);
    /* The connection to the peer is new. */
    void (*connected)(void *user, uint64_t peer_id);
    /* What happened to a connection to the ROUTER: scanners, no key, garbage. NULL = nobody asks.
     */
    void (*seen)(void *user, const struct zmq_event *event);
    struct resolver *resolver; /* of the peers' names; NULL = numeric ones only */
};

struct lane_message {
    uint8_t *data; /* owned */
    size_t n_bytes;
};

struct lane_peer {
    uint64_t node_id;
    struct dial *dial;
    struct lane_message queue[LANE_QUEUE]; /* oldest first from queue_first */
    uint32_t queue_first;
    uint32_t n_queued;
};

struct raft_lane {
    struct zmq_hub *hub;
    struct zmq_watch listener;
    struct zmq_monitor monitor; /* of the listener */
    struct dial_lane dials;
    struct raft_lane_hooks hooks;
    struct lane_peer *peers[LIMIT_NODES];
    uint32_t n_peers;
    uint64_t n_sent;
    uint64_t n_evicted;
    uint64_t n_refused_role; /* messages of connections that are no node's */
    uint64_t n_refused_key;  /* of a key that is not that node's any more */
    bool is_open;
    bool is_listener_closed;
    bool is_monitor_closed;
    bool are_dials_closed;
    void (*closed)(void *user);
};

/* Any thread, before the lane starts: open and bind the ROUTER. ret_ports: as many as bind[].
 * Errors: ERR_CONFIG with a sentence, ERR_LIMIT. */
int raft_lane_listen(const struct sock_options *options, const struct endpoint bind[],
                     uint32_t n_bind, void **ret_socket, uint16_t ret_ports[], struct errmsg *err);

/* socket: taken. options and their keys: kept. */
int raft_lane_start(struct raft_lane *lane, struct zmq_hub *hub, void *socket,
                    const struct sock_options *options, const struct raft_lane_hooks *hooks);
/* closed(hooks.user) once, when the loop has let everything go. */
void raft_lane_close(struct raft_lane *lane, void (*closed)(void *user));

/* Dial the node, or its new endpoints or key. Nothing if it is all the same. node_id > 0, at least
 * one endpoint. Errors are logged: a peer that cannot be dialled stays away. */
void raft_lane_set_peer(struct raft_lane *lane, const struct member_node *node);
void raft_lane_drop_peer(struct raft_lane *lane, uint64_t node_id);
struct lane_peer *raft_lane_peer(struct raft_lane *lane, uint64_t node_id); /* NULL = not dialled */

/* Send to a dialled peer. data: taken, free(). */
void raft_lane_send(struct raft_lane *lane, uint64_t node_id, uint8_t *data, size_t n_bytes);

#endif
