#include "agent/store/raft_lane.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/loop/zap.h"
#include "common/base/log.h"
#include "common/base/plant.h"
#include "common/base/str.h"

/* --- listening --- */

static int bind_one(void *socket, const struct endpoint *at, uint16_t *ret_port, struct errmsg *err)
{
    char text[ENDPOINT_TEXT_BYTES], bound[128];
    char place[ENDPOINT_TEXT_BYTES + 16];
    size_t n_bytes = sizeof bound;

    endpoint_format(at, text);
    if (at->port == 0) {
        *strrchr(text, ':') = '\0';
        snprintf(place, sizeof place, "tcp://%s:*", text);
    } else {
        snprintf(place, sizeof place, "tcp://%s", text);
    }
    int result = sock_bind(socket, "raft address", place, err);
    if (result != 0) {
        return result;
    }
    uint64_t port = 0;
    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &n_bytes) != 0 ||
        !str_parse_u64(strrchr(bound, ':') + 1, UINT16_MAX, &port)) {
        return errmsg_set(err, ERR_INTERNAL, "raft address %s: libzmq does not tell its port",
                          text);
    }
    *ret_port = (uint16_t)port;
    return 0;
}

int raft_lane_listen(const struct sock_options *options, const struct endpoint bind[],
                     uint32_t n_bind, void **ret_socket, uint16_t ret_ports[], struct errmsg *err)
{
    void *socket = NULL;
    int result = sock_router_open(options, &socket, err);

    for (uint32_t i = 0; i < n_bind && result == 0; i++) {
        result = bind_one(socket, &bind[i], &ret_ports[i], err);
    }
    if (result != 0) {
        if (socket != NULL) {
            zmq_close(socket);
        }
        return result;
    }
    *ret_socket = socket;
    return 0;
}

/* ZAP was asked at the handshake only, which may be long ago: a key that is not the member's any
 * more speaks for nobody. Whose key is not known here was judged by ZAP alone. */
static bool is_key_of(struct raft_lane *lane, uint64_t node_id, zmq_msg_t *body)
{
    const struct lane_peer *peer = raft_lane_peer(lane, node_id);
    uint8_t key[CURVE_KEY_BYTES];

    return peer == NULL || plant_is("raft-key-unseen") ||
           (zmq_frame_key(body, key) &&
            memcmp(key, dial_server_key(peer->dial), CURVE_KEY_BYTES) == 0);
}

static void on_received(void *user, zmq_msg_t frames[], size_t n_frames)
{
    struct raft_lane *lane = user;
    zmq_msg_t *body = &frames[n_frames - 1];
    struct zap_identity identity;

    /* A ROUTER puts its routing id first; a message of ours is one frame behind it. */
    if (n_frames != 2 || !zap_identity_parse(zmq_frame_user_id(body), &identity) ||
        identity.role != ZAP_ROLE_NODE || identity.node_id == 0) {
        lane->n_refused_role++;
        return;
    }
    if (!is_key_of(lane, identity.node_id, body)) {
        lane->n_refused_key++;
        return;
    }
    if (lane->is_open) {
        lane->hooks.received(lane->hooks.user, identity.node_id, zmq_msg_data(body),
                             zmq_msg_size(body));
    }
}

/* --- sending --- */

struct lane_peer *raft_lane_peer(struct raft_lane *lane, uint64_t node_id)
{
    for (uint32_t i = 0; i < lane->n_peers; i++) {
        if (lane->peers[i]->node_id == node_id) {
            return lane->peers[i];
        }
    }
    return NULL;
}

static bool try_send(struct raft_lane *lane, struct lane_peer *peer, const uint8_t *data,
                     size_t n_bytes)
{
    struct zmq_part part = {.data = data, .n_bytes = n_bytes};

    if (dial_send(peer->dial, &part, 1) != 0) {
        return false;
    }
    lane->n_sent++;
    return true;
}

static void pop_oldest(struct lane_peer *peer)
{
    free(peer->queue[peer->queue_first].data);
    peer->queue_first = (peer->queue_first + 1) % LANE_QUEUE;
    peer->n_queued--;
}

static void flush(struct raft_lane *lane, struct lane_peer *peer)
{
    while (peer->n_queued > 0) {
        struct lane_message *message = &peer->queue[peer->queue_first];

        if (!try_send(lane, peer, message->data, message->n_bytes)) {
            dial_want_write(peer->dial);
            return;
        }
        pop_oldest(peer);
    }
}

void raft_lane_send(struct raft_lane *lane, uint64_t node_id, uint8_t *data, size_t n_bytes)
{
    struct lane_peer *peer = raft_lane_peer(lane, node_id);

    if (peer == NULL || !lane->is_open) {
        lane->n_evicted++;
        free(data);
        return;
    }
    if (peer->n_queued == 0 && try_send(lane, peer, data, n_bytes)) {
        free(data);
        return;
    }
    if (peer->n_queued == LANE_QUEUE) {
        pop_oldest(peer);
        lane->n_evicted++;
    }
    peer->queue[(peer->queue_first + peer->n_queued) % LANE_QUEUE] =
        (struct lane_message){.data = data, .n_bytes = n_bytes};
    peer->n_queued++;
    dial_want_write(peer->dial);
}

static void on_writable(void *user, struct dial *dial)
{
    struct raft_lane *lane = user;
    struct lane_peer *peer = raft_lane_peer(lane, dial_peer_id(dial));

    if (peer != NULL && peer->dial == dial) {
        flush(lane, peer);
    }
}

static void on_changed(void *user, struct dial *dial, bool is_up, const struct zmq_event *event)
{
    struct raft_lane *lane = user;

    log_event(LOG_LEVEL_INFO, is_up ? "raft_peer_connected" : "raft_peer_disconnected",
              "peer=%" PRIu64 " address=%s reason=%s", dial_peer_id(dial), dial_address(dial),
              zmq_seen_word(event->seen));
    if (is_up && lane->is_open) {
        lane->hooks.connected(lane->hooks.user, dial_peer_id(dial));
    }
}

static void to_dial_peer(const struct member_node *node, struct dial_peer *peer)
{
    *peer = (struct dial_peer){.peer_id = node->node_id};
    memcpy(peer->server_key, node->key.bytes, CURVE_KEY_BYTES);
    for (uint32_t i = 0; i < node->n_endpoints && peer->n_places < DIAL_PLACES; i++) {
        struct dial_place *place = &peer->places[peer->n_places++];

        str_copy(place->host, sizeof place->host, node->endpoints[i].host);
        place->port = node->endpoints[i].raft_port;
    }
}

void raft_lane_set_peer(struct raft_lane *lane, const struct member_node *node)
{
    struct lane_peer *peer = raft_lane_peer(lane, node->node_id);
    struct dial_peer wanted;
    struct errmsg err;

    assert(node->node_id != 0);
    if (node->n_endpoints == 0 || !lane->is_open) {
        return;
    }
    to_dial_peer(node, &wanted);
    if (peer != NULL &&
        memcmp(dial_server_key(peer->dial), node->key.bytes, CURVE_KEY_BYTES) == 0) {
        dial_set_places(peer->dial, &wanted);
        return;
    }
    if (peer != NULL) {
        raft_lane_drop_peer(lane, node->node_id);
    }
    if (lane->n_peers == LIMIT_NODES) {
        log_event(LOG_LEVEL_WARNING, "raft_peer_refused", "peer=%" PRIu64 " reason=limit limit=%d",
                  node->node_id, LIMIT_NODES);
        return;
    }
    peer = calloc(1, sizeof *peer);
    if (peer == NULL || dial_open(&lane->dials, &wanted, &peer->dial, &err) != 0) {
        log_event(LOG_LEVEL_WARNING, "raft_peer_refused", "peer=%" PRIu64 " reason=\"%s\"",
                  node->node_id, peer == NULL ? "out of memory" : err.text);
        free(peer);
        return;
    }
    peer->node_id = node->node_id;
    lane->peers[lane->n_peers++] = peer;
}

void raft_lane_drop_peer(struct raft_lane *lane, uint64_t node_id)
{
    for (uint32_t i = 0; i < lane->n_peers; i++) {
        struct lane_peer *peer = lane->peers[i];

        if (peer->node_id == node_id) {
            while (peer->n_queued > 0) {
                pop_oldest(peer);
            }
            dial_close(peer->dial);
            free(peer);
            lane->peers[i] = lane->peers[--lane->n_peers];
            return;
        }
    }
}

/* --- life --- */

int raft_lane_start(struct raft_lane *lane, struct zmq_hub *hub, void *socket,
                    const struct sock_options *options, const struct raft_lane_hooks *hooks)
{
    const struct zmq_hooks listener = {.user = lane, .message = on_received};

    *lane = (struct raft_lane){.hub = hub, .hooks = *hooks};
    lane->dials =
        (struct dial_lane){.sock = *options,
                           .hub = hub,
                           .resolver = hooks->resolver,
                           .hooks = {.user = lane, .writable = on_writable, .changed = on_changed}};
    int result = dial_lane_start(&lane->dials);
    if (result != 0) {
        zmq_close(socket);
        return result;
    }
    /* On this thread: from here on it owns the socket. */
    result = zmq_monitor_start(&lane->monitor, hub, options->context, socket, true);
    if (result != 0) {
        zmq_close(socket);
        return result;
    }
    if (hooks->seen != NULL) {
        zmq_monitor_set_hook(&lane->monitor, hooks->seen, hooks->user);
    }
    result = zmq_watch_start(&lane->listener, hub, socket, &listener);
    lane->is_open = result == 0;
    return result;
}

static void maybe_closed(struct raft_lane *lane)
{
    if (lane->is_listener_closed && lane->is_monitor_closed && lane->are_dials_closed) {
        lane->closed(lane->hooks.user);
    }
}

static void on_listener_closed(void *user)
{
    struct raft_lane *lane = user;

    lane->is_listener_closed = true;
    maybe_closed(lane);
}

static void on_monitor_closed(void *user)
{
    struct raft_lane *lane = user;

    lane->is_monitor_closed = true;
    maybe_closed(lane);
}

static void on_dials_closed(void *user)
{
    struct raft_lane *lane = user;

    lane->are_dials_closed = true;
    maybe_closed(lane);
}

void raft_lane_close(struct raft_lane *lane, void (*closed)(void *user))
{
    assert(lane->is_open);
    lane->is_open = false;
    lane->closed = closed;
    while (lane->n_peers > 0) {
        raft_lane_drop_peer(lane, lane->peers[0]->node_id);
    }
    dial_lane_close(&lane->dials, on_dials_closed, lane);
    zmq_monitor_close(&lane->monitor, on_monitor_closed, lane);
    zmq_watch_close(&lane->listener, on_listener_closed, lane);
}
