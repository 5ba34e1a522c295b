#include "agent/mesh/mesh.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/mesh/mesh_internal.h"
#include "common/base/log.h"
#include "common/base/str.h"

#define LOCAL_SOCKET_MODE 0660
#define LOCAL_SOCKET_MODE_PRIVATE 0600
#define DIAL_QUEUE_MESSAGES                                               \
    128 /* what libzmq may hold for one peer; the rest waits where it can \
           still be replaced by what is newer */
#define LOCAL_ENDPOINT_BYTES 256

struct mesh_peer *mesh_find_peer(struct mesh *mesh, uint64_t node_id)
{
    for (uint32_t i = 0; i < mesh->n_peers; i++) {
        if (mesh->peers[i].node_id == node_id) {
            return &mesh->peers[i];
        }
    }
    return NULL;
}

static struct mesh_peer *peer_of(struct mesh *mesh, const struct dial *dial)
{
    struct mesh_peer *peer = mesh_find_peer(mesh, dial_peer_id(dial));

    return peer != NULL && peer->dial == dial ? peer : NULL;
}

static void on_router_event(void *user, const struct zmq_event *event)
{
    struct mesh *mesh = user;

    refusals_note_event(mesh->options.refusals, "mesh", event);
}

static void on_dial_writable(void *user, struct dial *dial)
{
    struct mesh *mesh = user;
    struct mesh_peer *peer = peer_of(mesh, dial);

    if (peer != NULL) {
        mesh_flush(mesh, peer);
    }
}

static void on_dial_changed(void *user, struct dial *dial, bool is_up,
                            const struct zmq_event *event)
{
    struct mesh *mesh = user;
    struct mesh_peer *peer = peer_of(mesh, dial);

    if (peer == NULL) {
        return;
    }
    if (is_up) {
        mesh->counters.connects++;
        outbox_restart(&peer->outbox);
        log_event(LOG_LEVEL_INFO, "peer_connected", "lane=mesh node=%llu address=%s",
                  (unsigned long long)peer->node_id, dial_address(dial));
        return;
    }
    if (event->seen == ZMQ_SEEN_DISCONNECTED) {
        mesh->counters.disconnects++;
        log_event(LOG_LEVEL_WARNING, "peer_lost", "lane=mesh node=%llu address=%s",
                  (unsigned long long)peer->node_id, dial_address(dial));
    } else {
        mesh->counters.refused_by_peer++;
        if (dial_n_failures(dial) <= 1) {
            log_event(LOG_LEVEL_WARNING, "peer_refuses",
                      "lane=mesh node=%llu address=%s reason=%s text=\"the connection ended: %s\"",
                      (unsigned long long)peer->node_id, dial_address(dial),
                      zmq_seen_word(event->seen), zmq_seen_sentence(event->seen));
        }
    }
}

static int bind_all(struct mesh *mesh, void *socket, struct errmsg *err)
{
    for (uint32_t i = 0; i < mesh->options.n_bind; i++) {
        const struct endpoint *at = &mesh->options.bind[i];
        char text[ENDPOINT_TEXT_BYTES], endpoint[ENDPOINT_TEXT_BYTES + 8];
        char bound[ENDPOINT_TEXT_BYTES + 8];
        size_t n_bytes = sizeof bound;
        uint64_t port = 0;

        snprintf(endpoint, sizeof endpoint, "tcp://%s", endpoint_format(at, text));
        int rc = sock_bind(socket, "mesh address", endpoint, err);
        if (rc != 0) {
            return rc;
        }
        if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &n_bytes) == 0) {
            str_parse_u64(strrchr(bound, ':') + 1, UINT16_MAX, &port);
        }
        mesh->ports[i] = (uint16_t)port;
    }
    return 0;
}

static int open_router(struct mesh *mesh, struct errmsg *err)
{
    const struct sock_options options = {.context = mesh->options.context,
                                         .domain = SOCK_DOMAIN_MESH,
                                         .keys = mesh->options.keys,
                                         .message_bytes_max = LIMIT_RPC_MESSAGE_BYTES,
                                         .queue_messages = LIMIT_SEND_QUEUE_MESSAGES};
    const struct zmq_hooks hooks = {.user = mesh, .message = mesh_on_router_message};
    void *socket;
    int rc = sock_router_open(&options, &socket, err);

    if (rc != 0) {
        return rc;
    }
    rc = zmq_monitor_start(&mesh->monitor, mesh->options.hub, mesh->options.context, socket, true);
    if (rc != 0) {
        zmq_close(socket);
        return errmsg_set(err, rc, "cannot watch the mesh socket");
    }
    zmq_monitor_set_hook(&mesh->monitor, on_router_event, mesh);
    mesh->n_closing++;
    rc = bind_all(mesh, socket, err);
    if (rc != 0) {
        zmq_close(socket);
        return rc;
    }
    rc = zmq_watch_start(&mesh->router, mesh->options.hub, socket, &hooks);
    if (rc != 0) {
        return errmsg_set(err, rc, "cannot watch the mesh socket");
    }
    mesh->n_closing++;
    return 0;
}

static int open_local(struct mesh *mesh, struct errmsg *err)
{
    const struct sock_options options = {.context = mesh->options.context,
                                         .domain = SOCK_DOMAIN_LOCAL,
                                         .message_bytes_max = LIMIT_RPC_MESSAGE_BYTES,
                                         .queue_messages = LIMIT_SEND_QUEUE_MESSAGES};
    const struct zmq_hooks hooks = {.user = mesh, .message = mesh_on_local_message};
    char endpoint[LOCAL_ENDPOINT_BYTES];
    void *socket;
    int rc = sock_router_open(&options, &socket, err);

    if (rc != 0) {
        return rc;
    }
    snprintf(endpoint, sizeof endpoint, "ipc://%s", mesh->options.local_path);
    /* The mode is right from the first moment on; chmod only says it once more. */
    mode_t mode = mesh->options.local_is_private ? LOCAL_SOCKET_MODE_PRIVATE : LOCAL_SOCKET_MODE;
    mode_t before = umask(0777 & ~mode);
    rc = sock_bind(socket, "unix socket", endpoint, err);
    umask(before);
    if (rc == 0 && chmod(mesh->options.local_path, mode) != 0) {
        rc = errmsg_set(err, ERR_CONFIG, "unix socket %s: cannot set its mode",
                        mesh->options.local_path);
    }
    if (rc != 0) {
        zmq_close(socket);
        return rc;
    }
    rc = zmq_watch_start(&mesh->local, mesh->options.hub, socket, &hooks);
    if (rc != 0) {
        return errmsg_set(err, rc, "cannot watch the unix socket");
    }
    mesh->has_local = true;
    mesh->n_closing++;
    return 0;
}

static int open_lane(struct mesh *mesh, struct errmsg *err)
{
    mesh->lane = (struct dial_lane){
        .sock = {.context = mesh->options.context,
                 .domain = SOCK_DOMAIN_MESH,
                 .keys = mesh->options.keys,
                 .message_bytes_max = LIMIT_RPC_MESSAGE_BYTES,
                 .queue_messages = DIAL_QUEUE_MESSAGES},
        .hub = mesh->options.hub,
        .resolver = mesh->options.resolver,
        .hooks = {.user = mesh,
                  .message = mesh_on_dial_message,
                  .writable = on_dial_writable,
                  .changed = on_dial_changed},
    };
    int rc = dial_lane_start(&mesh->lane);
    if (rc != 0) {
        return errmsg_set(err, rc, "cannot start the resolver of the mesh");
    }
    mesh->n_closing++;
    return 0;
}

int mesh_open(const struct mesh_options *options, struct mesh **ret_mesh, struct errmsg *err)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);

    if (mesh == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the mesh");
    }
    assert(options->n_bind <= LIMIT_ENDPOINTS_PER_NODE);
    mesh->options = *options;
    mesh->table = zap_table_new(NULL, 0);
    mesh->unsent =
        unsent_new(&(struct unsent_limits){LIMIT_RPC_UNSENT_BYTES, LIMIT_RPC_UNSENT_BYTES_ALL});
    int rc = mesh->table == NULL || mesh->unsent == NULL
                 ? errmsg_set(err, ERR_NOMEM, "no memory for the mesh")
                 : open_lane(mesh, err);
    if (rc == 0) {
        rc = open_router(mesh, err);
    }
    if (rc == 0 && options->local_path != NULL) {
        rc = open_local(mesh, err);
    }
    if (rc != 0) {
        mesh_close(mesh, NULL, NULL);
        return rc;
    }
    *ret_mesh = mesh;
    return 0;
}

static void on_part_closed(void *user)
{
    struct mesh *mesh = user;

    if (--mesh->n_closing > 0) {
        return;
    }
    void (*closed)(void *user) = mesh->closed;
    void *closed_user = mesh->closed_user;

    zap_table_unref(mesh->table);
    unsent_close(mesh->unsent);
    free(mesh);
    if (closed != NULL) {
        closed(closed_user);
    }
}

void mesh_close(struct mesh *mesh, void (*closed)(void *user), void *user)
{
    mesh->closed = closed;
    mesh->closed_user = user;
    for (uint32_t i = 0; i < mesh->n_peers; i++) {
        outbox_close(&mesh->peers[i].outbox);
    }
    mesh->n_peers = 0;
    frame_unref(mesh->hello);
    frame_set_unref(mesh->vector);
    frame_unref(mesh->report);
    mesh->n_closing++; /* this function */
    if (mesh->monitor.socket != NULL) {
        if (mesh->router.socket != NULL) {
            zmq_monitor_close(&mesh->monitor, on_part_closed, mesh);
        } else {
            zmq_watch_close(&mesh->monitor.watch, on_part_closed, mesh);
        }
    }
    if (mesh->router.socket != NULL) {
        zmq_watch_close(&mesh->router, on_part_closed, mesh);
    }
    if (mesh->has_local) {
        zmq_watch_close(&mesh->local, on_part_closed, mesh);
    }
    if (mesh->lane.hub != NULL) {
        dial_lane_close(&mesh->lane, on_part_closed, mesh);
    }
    on_part_closed(mesh);
}

uint16_t mesh_bound_port(const struct mesh *mesh, uint32_t index)
{
    assert(index < mesh->options.n_bind);
    return mesh->ports[index];
}

/* --- who is who --- */

void mesh_set_self(struct mesh *mesh, const struct cluster_id *cluster_id, uint64_t node_id)
{
    mesh->cluster_id = *cluster_id;
    mesh->node_id = node_id;
}

void mesh_set_table(struct mesh *mesh, struct zap_table *table)
{
    zap_table_ref(table);
    zap_table_unref(mesh->table);
    mesh->table = table;
}

static void dial_peer_from(const struct member_node *node, struct dial_peer *ret_peer)
{
    *ret_peer = (struct dial_peer){.peer_id = node->node_id};
    memcpy(ret_peer->server_key, node->key.bytes, CURVE_KEY_BYTES);
    for (uint32_t i = 0; i < node->n_endpoints && i < DIAL_PLACES; i++) {
        struct dial_place *place = &ret_peer->places[ret_peer->n_places++];

        str_copy(place->host, sizeof place->host, node->endpoints[i].host);
        place->port = node->endpoints[i].mesh_port;
    }
}

static void open_dial(struct mesh *mesh, struct mesh_peer *peer, const struct dial_peer *to)
{
    struct errmsg err = {""};

    if (dial_open(&mesh->lane, to, &peer->dial, &err) != 0) {
        peer->dial = NULL;
        log_event(LOG_LEVEL_ERROR, "dial_failed", "lane=mesh node=%llu text=\"%s\"",
                  (unsigned long long)peer->node_id, err.text);
    }
}

static void add_peer(struct mesh *mesh, const struct member_node *node, const struct dial_peer *to)
{
    struct mesh_peer *peer = &mesh->peers[mesh->n_peers++];

    *peer = (struct mesh_peer){.node_id = node->node_id, .key = node->key};
    if (mesh->hello != NULL) {
        outbox_put_hello(&peer->outbox, mesh->hello);
    }
    if (mesh->vector != NULL) {
        outbox_put_vector(&peer->outbox, mesh->vector);
    }
    if (mesh->report != NULL) {
        outbox_put_report(&peer->outbox, mesh->report);
    }
    open_dial(mesh, peer, to);
}

static void update_peer(struct mesh *mesh, struct mesh_peer *peer, const struct member_node *node,
                        const struct dial_peer *to)
{
    if (peer->dial != NULL && memcmp(&peer->key, &node->key, sizeof node->key) != 0) {
        dial_close(peer->dial); /* another key is another connection */
        peer->dial = NULL;
    }
    peer->key = node->key;
    if (peer->dial == NULL) {
        open_dial(mesh, peer, to);
    } else {
        dial_set_places(peer->dial, to);
    }
}

static void remove_peer(struct mesh *mesh, uint32_t index)
{
    struct mesh_peer *peer = &mesh->peers[index];

    log_event(LOG_LEVEL_INFO, "peer_removed", "lane=mesh node=%llu",
              (unsigned long long)peer->node_id);
    if (peer->dial != NULL) {
        dial_close(peer->dial);
    }
    outbox_close(&peer->outbox);
    mesh->n_peers--;
    memmove(peer, peer + 1, (mesh->n_peers - index) * sizeof *peer);
}

void mesh_set_peers(struct mesh *mesh, const struct member_node nodes[], size_t n_nodes)
{
    bool is_kept[LIMIT_NODES] = {false};
    uint32_t n_before = mesh->n_peers;

    for (size_t i = 0; i < n_nodes; i++) {
        struct mesh_peer *peer = mesh_find_peer(mesh, nodes[i].node_id);
        struct dial_peer to;

        dial_peer_from(&nodes[i], &to);
        if (nodes[i].node_id == mesh->node_id || to.n_places == 0) {
            continue;
        }
        if (peer == NULL) {
            if (mesh->n_peers < LIMIT_NODES) {
                add_peer(mesh, &nodes[i], &to);
            }
        } else if (peer - mesh->peers < n_before && !is_kept[peer - mesh->peers]) {
            is_kept[peer - mesh->peers] = true;
            update_peer(mesh, peer, &nodes[i], &to);
        }
    }
    for (uint32_t i = n_before; i-- > 0;) {
        if (!is_kept[i]) {
            remove_peer(mesh, i);
        }
    }
}

/* --- for people --- */

bool mesh_peer_status(const struct mesh *mesh, uint64_t node_id,
                      struct mesh_peer_status *ret_status)
{
    for (uint32_t i = 0; i < mesh->n_peers; i++) {
        const struct mesh_peer *peer = &mesh->peers[i];

        if (peer->node_id != node_id) {
            continue;
        }
        *ret_status = (struct mesh_peer_status){.is_welcome = peer->is_welcome,
                                                .lacks_shared_space = peer->lacks_shared_space,
                                                .unbuilt = peer->unbuilt,
                                                .store_is_down = peer->store_is_down,
                                                .feature_level = peer->feature_level,
                                                .last_heard_ns = peer->last_heard_ns,
                                                .n_received = peer->n_received,
                                                .n_dropped = peer->n_dropped};
        if (peer->dial != NULL) {
            ret_status->is_up = dial_is_up(peer->dial);
            ret_status->is_unresolved = dial_is_unresolved(peer->dial);
            ret_status->n_failures = dial_n_failures(peer->dial);
            str_copy(ret_status->address, sizeof ret_status->address, dial_address(peer->dial));
        }
        return true;
    }
    return false;
}

struct counter_set mesh_counter_set(struct mesh *mesh)
{
    static const struct counter_field fields[] = {
#define MESH_FIELD(name, help) COUNTER_FIELD(struct mesh_counters, name, help)
        MESH_COUNTERS(MESH_FIELD)
#undef MESH_FIELD
    };
    return (struct counter_set){.prefix = "mesh",
                                .fields = fields,
                                .n_fields = sizeof fields / sizeof fields[0],
                                .values = &mesh->counters};
}
