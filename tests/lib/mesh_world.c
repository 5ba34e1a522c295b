#include "tests/lib/mesh_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/clock.h"

void mesh_world_make_keys(struct curve_keys *keys)
{
    char public_text[41], secret_text[41];

    assert_int_equal(zmq_curve_keypair(public_text, secret_text), 0);
    assert_non_null(zmq_z85_decode(keys->public_key, public_text));
    assert_non_null(zmq_z85_decode(keys->secret_key, secret_text));
}

/* --- hooks --- */

static void on_message(void *user, uint64_t peer, const struct peer_message *message)
{
    struct mesh_world_node *node = user;

    node->n_by_kind[message->kind]++;
    node->last_peer = peer;
    node->last = *message;
}

static void note_payload(struct mesh_world_node *node, const struct mesh_frames *frames)
{
    size_t n = frames->n_payload_bytes < 63 ? frames->n_payload_bytes : 63;

    memcpy(node->last_payload, frames->payload, n);
    node->last_payload[n] = '\0';
}

static void on_call(void *user, const struct mesh_caller *caller, const struct mesh_route *route,
                    const struct mesh_frames *frames)
{
    struct mesh_world_node *node = user;

    node->n_calls++;
    node->last_role = caller->role;
    node->last_was_local = caller->is_local;
    snprintf(node->last_name, sizeof node->last_name, "%s", caller->name);
    note_payload(node, frames);
    mesh_answer(node->mesh, route, frames);
}

static void on_forward_request(void *user, const struct peer_forward_request *request,
                               const struct mesh_route *route, const struct mesh_frames *frames)
{
    struct mesh_world_node *node = user;

    node->n_forwards++;
    snprintf(node->last_name, sizeof node->last_name, "%s", request->name);
    note_payload(node, frames);
    mesh_answer_forward(node->mesh, route, request->forward_id, frames);
}

static void on_forward_response(void *user, uint64_t peer, uint64_t forward_id,
                                const struct mesh_frames *frames)
{
    struct mesh_world_node *node = user;

    node->n_responses++;
    node->last_peer = peer;
    node->last_forward_id = forward_id;
    note_payload(node, frames);
}

/* --- life --- */

void mesh_world_set_table(struct mesh_world *f, bool with_viewer)
{
    struct zap_key keys[MESH_WORLD_NODES + 1];
    size_t n = 0;

    memset(keys, 0, sizeof keys);
    for (; n < MESH_WORLD_NODES; n++) {
        memcpy(keys[n].public_key, f->nodes[n].keys.public_key, CURVE_KEY_BYTES);
        zap_node_user_id(n + 1, keys[n].user_id);
    }
    if (with_viewer) {
        memcpy(keys[n].public_key, f->viewer.public_key, CURVE_KEY_BYTES);
        zap_user_id(ZAP_ROLE_VIEWER, "eve", keys[n].user_id);
        n++;
    }
    struct zap_table *table = zap_table_new(keys, n);
    for (size_t i = 0; i < MESH_WORLD_NODES; i++) {
        mesh_set_table(f->nodes[i].mesh, table);
    }
    zap_set_table(f->zap, table);
}

static void open_node(struct mesh_world *f, size_t index)
{
    struct mesh_world_node *node = &f->nodes[index];
    struct errmsg err = {""};
    struct mesh_options options = {.context = f->context,
                                   .hub = &f->hub,
                                   .keys = &node->keys,
                                   .n_bind = 1,
                                   .refusals = &node->refusals,
                                   .hooks = {.user = node,
                                             .message = on_message,
                                             .call = on_call,
                                             .forward_request = on_forward_request,
                                             .forward_response = on_forward_response}};

    endpoint_parse("127.0.0.1:1", &options.bind[0], NULL);
    options.bind[0].port = 0;
    if (index == 0) {
        options.local_path = f->socket_path;
    } else if (index == 1) {
        options.local_path = f->private_path;
        options.local_is_private = true;
    }
    mesh_world_make_keys(&node->keys);
    assert_int_equal(mesh_open(&options, &node->mesh, &err), 0);
    mesh_set_self(node->mesh, &f->cluster, index + 1);
    node->member = (struct member_node){.node_id = index + 1, .n_endpoints = 1};
    memcpy(node->member.key.bytes, node->keys.public_key, PUBLIC_KEY_BYTES);
    strcpy(node->member.endpoints[0].host, "127.0.0.1");
    node->member.endpoints[0].mesh_port = mesh_bound_port(node->mesh, 0);
}

/* Nodes 1 and 2 know each other; 3 is known to ZAP and a member to nobody. */
static void introduce(struct mesh_world *f)
{
    struct member_node members[2] = {f->nodes[0].member, f->nodes[1].member};

    mesh_set_peers(f->nodes[0].mesh, members, 2);
    mesh_set_peers(f->nodes[1].mesh, members, 2);
}

int mesh_world_setup(void **state)
{
    struct mesh_world *f = calloc(1, sizeof *f);
    struct errmsg err = {""};
    struct zap_options options = {.n_contexts = 1};

    log_init("test", LOG_LEVEL_ERROR);
    f->context = zmq_ctx_new();
    options.contexts[0] = f->context;
    assert_int_equal(zap_start(&options, &f->zap, &err), 0);
    uv_loop_init(&f->loop);
    assert_int_equal(zmq_hub_start(&f->hub, &f->loop), 0);
    memset(&f->cluster, 7, sizeof f->cluster);
    mesh_world_make_keys(&f->viewer);
    mesh_world_make_keys(&f->stranger);
    strcpy(f->dir, "/tmp/jury-mesh-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->socket_path, sizeof f->socket_path, "%s/agent.sock", f->dir);
    snprintf(f->private_path, sizeof f->private_path, "%s/private.sock", f->dir);
    for (size_t i = 0; i < MESH_WORLD_NODES; i++) {
        open_node(f, i);
    }
    mesh_world_set_table(f, true);
    introduce(f);
    *state = f;
    return 0;
}

static void on_closed(void *user)
{
    struct mesh_world *f = user;

    f->n_closed++;
}

int mesh_world_teardown(void **state)
{
    struct mesh_world *f = *state;

    for (size_t i = 0; i < MESH_WORLD_NODES; i++) {
        mesh_close(f->nodes[i].mesh, on_closed, f);
    }
    while (f->n_closed < MESH_WORLD_NODES) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    zmq_hub_stop(&f->hub);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    zap_stop(f->zap);
    zmq_ctx_term(f->context);
    unlink(f->socket_path);
    unlink(f->private_path);
    rmdir(f->dir);
    free(f);
    return 0;
}

/* --- waiting --- */

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

bool mesh_world_run_until(struct mesh_world *f, const uint32_t *counter, uint32_t at_least)
{
    uint64_t end_ns = clock_monotonic_ns() + MESH_WORLD_WAIT_NS;
    uv_timer_t timer;

    uv_timer_init(&f->loop, &timer);
    uv_timer_start(&timer, on_tick, 20, 20);
    while (*counter < at_least && clock_monotonic_ns() < end_ns) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    return *counter >= at_least;
}

uint64_t mesh_world_n_refused(const struct refusals *refusals, enum refusal refusal)
{
    const uint64_t *counts = (const uint64_t *)(const void *)&refusals->counts; /* in that order */

    return counts[refusal];
}

bool mesh_world_run_until_refused(struct mesh_world *f, size_t index, enum refusal refusal)
{
    uint64_t end_ns = clock_monotonic_ns() + MESH_WORLD_WAIT_NS;
    uv_timer_t timer;

    uv_timer_init(&f->loop, &timer);
    uv_timer_start(&timer, on_tick, 20, 20);
    while (mesh_world_n_refused(&f->nodes[index].refusals, refusal) == 0 &&
           clock_monotonic_ns() < end_ns) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    return mesh_world_n_refused(&f->nodes[index].refusals, refusal) > 0;
}

/* --- a bare client --- */

struct hello mesh_world_hello(const struct mesh_world *f, uint64_t node_id)
{
    return (struct hello){.cluster_id = f->cluster, .node_id = node_id, .epoch = 1, .revision = 9};
}

void *mesh_world_client(struct mesh_world *f, const struct curve_keys *keys)
{
    char endpoint[64];
    void *socket = zmq_socket(f->context, ZMQ_DEALER);
    int linger_ms = 0;

    zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, f->nodes[0].keys.public_key, CURVE_KEY_BYTES);
    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->public_key, CURVE_KEY_BYTES);
    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->secret_key, CURVE_KEY_BYTES);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", mesh_bound_port(f->nodes[0].mesh, 0));
    assert_int_equal(zmq_connect(socket, endpoint), 0);
    return socket;
}

void mesh_world_send(void *socket, const struct peer_message *message)
{
    uint8_t *data;
    size_t n_bytes;

    assert_int_equal(peer_encode(message, &data, &n_bytes), 0);
    assert_int_equal(zmq_send(socket, data, n_bytes, 0), n_bytes);
    free(data);
}

void mesh_world_send_hello(void *socket, const struct hello *hello)
{
    struct peer_message message = {.kind = PEER_HELLO, .u.hello = *hello};

    message.u.hello.version_min = MESH_VERSION_MIN;
    message.u.hello.version_max = MESH_VERSION_MAX;
    mesh_world_send(socket, &message);
}
