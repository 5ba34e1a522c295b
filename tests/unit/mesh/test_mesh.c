/* Meshes on loopback in one loop; a hostile sender is a bare DEALER with a key of its own.
 * ctest labels: threads twin
 *
 * Every wait has a deadline and ends as soon as its condition holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>
#include <zmq.h>

#include "agent/mesh/mesh.h"
#include "common/base/clock.h"
#include "common/base/plant.h"
#include "common/base/units.h"

#define WAIT_NS (20 * NS_PER_SECOND)
#define N_NODES 3

struct node {
    struct fixture *fixture;
    struct mesh *mesh;
    struct curve_keys keys;
    struct member_node member;
    struct refusals refusals;
    uint32_t n_by_kind[8];
    uint64_t last_peer;
    struct peer_message last;
    uint32_t n_calls;
    enum zap_role last_role;
    char last_name[192];
    bool last_was_local;
    uint32_t n_forwards;
    uint32_t n_responses;
    uint64_t last_forward_id;
    char last_payload[64];
};

struct fixture {
    void *context;
    struct zap *zap;
    uv_loop_t loop;
    struct zmq_hub hub;
    struct node nodes[N_NODES];
    struct curve_keys viewer;
    struct curve_keys stranger;
    struct cluster_id cluster;
    char dir[64];
    char socket_path[128];  /* of the first node */
    char private_path[128]; /* of the second */
    uint32_t n_closed;
};

static void make_keys(struct curve_keys *keys)
{
    char public_text[41], secret_text[41];

    assert_int_equal(zmq_curve_keypair(public_text, secret_text), 0);
    assert_non_null(zmq_z85_decode(keys->public_key, public_text));
    assert_non_null(zmq_z85_decode(keys->secret_key, secret_text));
}

/* --- hooks --- */

static void on_message(void *user, uint64_t peer, const struct peer_message *message)
{
    struct node *node = user;

    node->n_by_kind[message->kind]++;
    node->last_peer = peer;
    node->last = *message;
}

static void note_payload(struct node *node, const struct mesh_frames *frames)
{
    size_t n = frames->n_payload_bytes < 63 ? frames->n_payload_bytes : 63;

    memcpy(node->last_payload, frames->payload, n);
    node->last_payload[n] = '\0';
}

static void on_call(void *user, const struct mesh_caller *caller, const struct mesh_route *route,
                    const struct mesh_frames *frames)
{
    struct node *node = user;

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
    struct node *node = user;

    node->n_forwards++;
    snprintf(node->last_name, sizeof node->last_name, "%s", request->name);
    note_payload(node, frames);
    mesh_answer_forward(node->mesh, route, request->forward_id, frames);
}

static void on_forward_response(void *user, uint64_t peer, uint64_t forward_id,
                                const struct mesh_frames *frames)
{
    struct node *node = user;

    node->n_responses++;
    node->last_peer = peer;
    node->last_forward_id = forward_id;
    note_payload(node, frames);
}

/* --- life --- */

static void set_table(struct fixture *f, bool with_viewer)
{
    struct zap_key keys[N_NODES + 1];
    size_t n = 0;

    memset(keys, 0, sizeof keys);
    for (; n < N_NODES; n++) {
        memcpy(keys[n].public_key, f->nodes[n].keys.public_key, CURVE_KEY_BYTES);
        zap_node_user_id(n + 1, keys[n].user_id);
    }
    if (with_viewer) {
        memcpy(keys[n].public_key, f->viewer.public_key, CURVE_KEY_BYTES);
        zap_user_id(ZAP_ROLE_VIEWER, "eve", keys[n].user_id);
        n++;
    }
    struct zap_table *table = zap_table_new(keys, n);
    for (size_t i = 0; i < N_NODES; i++) {
        mesh_set_table(f->nodes[i].mesh, table);
    }
    zap_set_table(f->zap, table);
}

static void open_node(struct fixture *f, size_t index)
{
    struct node *node = &f->nodes[index];
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
    node->fixture = f;
    make_keys(&node->keys);
    assert_int_equal(mesh_open(&options, &node->mesh, &err), 0);
    mesh_set_self(node->mesh, &f->cluster, index + 1);
    node->member = (struct member_node){.node_id = index + 1, .n_endpoints = 1};
    memcpy(node->member.key.bytes, node->keys.public_key, PUBLIC_KEY_BYTES);
    strcpy(node->member.endpoints[0].host, "127.0.0.1");
    node->member.endpoints[0].mesh_port = mesh_bound_port(node->mesh, 0);
}

/* Nodes 1 and 2 know each other; 3 is known to ZAP and a member to nobody. */
static void introduce(struct fixture *f)
{
    struct member_node members[2] = {f->nodes[0].member, f->nodes[1].member};

    mesh_set_peers(f->nodes[0].mesh, members, 2);
    mesh_set_peers(f->nodes[1].mesh, members, 2);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct errmsg err = {""};
    struct zap_options options = {.n_contexts = 1};

    log_init("test", LOG_LEVEL_ERROR);
    f->context = zmq_ctx_new();
    options.contexts[0] = f->context;
    assert_int_equal(zap_start(&options, &f->zap, &err), 0);
    uv_loop_init(&f->loop);
    assert_int_equal(zmq_hub_start(&f->hub, &f->loop), 0);
    memset(&f->cluster, 7, sizeof f->cluster);
    make_keys(&f->viewer);
    make_keys(&f->stranger);
    strcpy(f->dir, "/tmp/jury-mesh-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->socket_path, sizeof f->socket_path, "%s/agent.sock", f->dir);
    snprintf(f->private_path, sizeof f->private_path, "%s/private.sock", f->dir);
    for (size_t i = 0; i < N_NODES; i++) {
        open_node(f, i);
    }
    set_table(f, true);
    introduce(f);
    *state = f;
    return 0;
}

static void on_closed(void *user)
{
    struct fixture *f = user;

    f->n_closed++;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < N_NODES; i++) {
        mesh_close(f->nodes[i].mesh, on_closed, f);
    }
    while (f->n_closed < N_NODES) {
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

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop until *counter >= at_least or the deadline passes. */
static bool run_until(struct fixture *f, const uint32_t *counter, uint32_t at_least)
{
    uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;
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

static uint64_t n_refused(const struct refusals *refusals, enum refusal refusal)
{
    const uint64_t *counts = (const uint64_t *)(const void *)&refusals->counts; /* in that order */

    return counts[refusal];
}

static bool run_until_refused(struct fixture *f, size_t index, enum refusal refusal)
{
    uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;
    uv_timer_t timer;

    uv_timer_init(&f->loop, &timer);
    uv_timer_start(&timer, on_tick, 20, 20);
    while (n_refused(&f->nodes[index].refusals, refusal) == 0 && clock_monotonic_ns() < end_ns) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    return n_refused(&f->nodes[index].refusals, refusal) > 0;
}

static struct hello hello_of(const struct fixture *f, uint64_t node_id)
{
    return (struct hello){.cluster_id = f->cluster, .node_id = node_id, .epoch = 1, .revision = 9};
}

/* A bare client of node 1 with somebody's keys. */
static void *bare_client(struct fixture *f, const struct curve_keys *keys)
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

static void send_message(void *socket, const struct peer_message *message)
{
    uint8_t *data;
    size_t n_bytes;

    assert_int_equal(peer_encode(message, &data, &n_bytes), 0);
    assert_int_equal(zmq_send(socket, data, n_bytes, 0), n_bytes);
    free(data);
}

static void send_hello(void *socket, const struct hello *hello)
{
    struct peer_message message = {.kind = PEER_HELLO, .u.hello = *hello};

    message.u.hello.version_min = MESH_VERSION_MIN;
    message.u.hello.version_max = MESH_VERSION_MAX;
    send_message(socket, &message);
}

/* --- tests --- */

static void peers_hear_hello_and_vector_even_if_they_were_sent_before_the_connection(void **state)
{
    struct fixture *f = *state;
    struct hello hello = hello_of(f, 1);
    struct vote_chunk *chunk = calloc(1, sizeof *chunk);

    chunk->epoch = 1;
    chunk->n_chunks = 1;
    chunk->revision = 9;
    for (uint64_t sequence = 1; sequence <= 3; sequence++) {
        chunk->sequence = sequence;
        mesh_send_hello(f->nodes[0].mesh, &hello);
        mesh_send_vector(f->nodes[0].mesh, chunk, 1);
    }
    assert_true(run_until(f, &f->nodes[1].n_by_kind[PEER_VOTE_CHUNK], 1));
    assert_int_equal(f->nodes[1].n_by_kind[PEER_HELLO], 1);
    assert_int_equal(f->nodes[1].n_by_kind[PEER_VOTE_CHUNK], 1); /* the newest and no backlog */
    assert_int_equal(f->nodes[1].last_peer, 1);
    assert_int_equal(f->nodes[1].last.u.chunk.sequence, 3);
    free(chunk);
}

static void an_id_in_the_text_that_is_not_the_keys_is_dropped(void **state)
{
    struct fixture *f = *state;
    void *socket = bare_client(f, &f->nodes[1].keys); /* member 2, by its key */
    struct hello lie = hello_of(f, 1);
    struct hello truth = hello_of(f, 2);

    send_hello(socket, &lie);
    send_hello(socket, &truth);
    assert_true(run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    assert_int_equal(f->nodes[0].last_peer, 2);
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 1);
    assert_int_equal(n_refused(&f->nodes[0].refusals, REFUSAL_identity_differs), 1);
    zmq_close(socket);
}

#ifdef JURY_PLANTS
/* Node 2 says that it is node 3, which is a member as well: with the guard off it is believed. */
static void twin_a_mesh_that_trusts_the_text_is_caught(void **state)
{
    struct fixture *f = *state;
    struct member_node members[3] = {f->nodes[0].member, f->nodes[1].member, f->nodes[2].member};
    struct hello lie = hello_of(f, 3);
    void *socket;

    mesh_set_peers(f->nodes[0].mesh, members, 3);
    plant_set("mesh-trust-text");
    socket = bare_client(f, &f->nodes[1].keys);
    send_hello(socket, &lie);
    assert_true(run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    plant_set(NULL);
    assert_int_equal(f->nodes[0].last_peer, 3); /* what the guarded mesh never says */
    zmq_close(socket);
}
#endif

static void a_hello_of_another_cluster_is_refused_and_so_is_what_follows(void **state)
{
    struct fixture *f = *state;
    void *socket = bare_client(f, &f->nodes[1].keys);
    struct hello hello = hello_of(f, 2);
    struct peer_message change = {.kind = PEER_VOTE_CHANGE,
                                  .u.change = {.epoch = 1,
                                               .sequence = 1,
                                               .target = {.slot = 0, .birth = 1},
                                               .opinion = OPINION_FAIL,
                                               .reason = REASON_CONNECT_FAILED}};

    hello.cluster_id.bytes[0] ^= 1;
    send_message(socket, &change);
    send_hello(socket, &hello);
    assert_true(run_until_refused(f, 0, REFUSAL_other_cluster));
    assert_int_equal(n_refused(&f->nodes[0].refusals, REFUSAL_before_hello), 1);
    send_message(socket, &change);
    hello.cluster_id = f->cluster;
    send_hello(socket, &hello);
    send_message(socket, &change);
    assert_true(run_until(f, &f->nodes[0].n_by_kind[PEER_VOTE_CHANGE], 1));
    assert_int_equal(n_refused(&f->nodes[0].refusals, REFUSAL_before_hello), 2);
    assert_int_equal(f->nodes[0].n_by_kind[PEER_VOTE_CHANGE], 1);
    zmq_close(socket);
}

static void a_hello_without_a_common_version_is_refused(void **state)
{
    struct fixture *f = *state;
    void *socket = bare_client(f, &f->nodes[1].keys);
    struct peer_message message = {.kind = PEER_HELLO, .u.hello = hello_of(f, 2)};

    message.u.hello.version_min = MESH_VERSION_MAX + 1;
    message.u.hello.version_max = MESH_VERSION_MAX + 4;
    send_message(socket, &message);
    assert_true(run_until_refused(f, 0, REFUSAL_version));
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 0);
    zmq_close(socket);
}

static void a_node_that_is_no_member_is_not_heard_whatever_it_says(void **state)
{
    struct fixture *f = *state;
    void *socket = bare_client(f, &f->nodes[2].keys);
    struct hello hello = hello_of(f, 3);

    send_hello(socket, &hello);
    assert_true(run_until_refused(f, 0, REFUSAL_not_member));
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 0);
    zmq_close(socket);
}

static void bytes_that_do_not_decode_are_counted_and_harm_nothing(void **state)
{
    struct fixture *f = *state;
    void *socket = bare_client(f, &f->nodes[1].keys);
    struct hello hello = hello_of(f, 2);
    static const uint8_t rows[][8] = {
        "", "x", "JM", {'J', 'M', 9, 1}, {'J', 'M', 1, 99}, {'J', 'M', 1, 2, 0xff, 0xff, 0xff}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n_bytes = i < 3 ? strlen((const char *)rows[i]) : i < 5 ? 4 : 7;

        assert_true(zmq_send(socket, rows[i], n_bytes, 0) >= 0);
    }
    send_hello(socket, &hello);
    assert_true(run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    assert_int_equal(n_refused(&f->nodes[0].refusals, REFUSAL_malformed), 4);
    assert_int_equal(n_refused(&f->nodes[0].refusals, REFUSAL_version), 1);
    assert_int_equal(n_refused(&f->nodes[0].refusals, REFUSAL_unknown_kind), 1);
    zmq_close(socket);
}

static void a_stranger_never_gets_in(void **state)
{
    struct fixture *f = *state;
    void *socket = bare_client(f, &f->stranger);
    struct hello hello = hello_of(f, 2);
    uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;

    send_hello(socket, &hello);
    while (zap_n_refused(f->zap, ZAP_REFUSED_UNKNOWN_KEY) == 0 && clock_monotonic_ns() < end_ns) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_true(zap_n_refused(f->zap, ZAP_REFUSED_UNKNOWN_KEY) > 0);
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 0);
    zmq_close(socket);
}

static void call(void *socket, const char *payload)
{
    assert_true(zmq_send(socket, "", 0, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(socket, "envelope", 8, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(socket, payload, strlen(payload), 0) >= 0);
}

static void expect_answer(struct fixture *f, void *socket, const char *payload)
{
    char text[64];
    uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;
    int n = -1;

    while ((n = zmq_recv(socket, text, sizeof text, ZMQ_DONTWAIT)) < 0 &&
           clock_monotonic_ns() < end_ns) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(n, 0); /* as a REQ socket wants it */
    n = zmq_recv(socket, text, sizeof text, 0);
    assert_int_equal(n, 8);
    assert_memory_equal(text, "envelope", 8);
    n = zmq_recv(socket, text, sizeof text, 0);
    assert_int_equal(n, strlen(payload));
    assert_memory_equal(text, payload, strlen(payload));
}

static void a_key_calls_with_its_role_and_with_none_once_it_is_removed(void **state)
{
    struct fixture *f = *state;
    void *socket = bare_client(f, &f->viewer);

    call(socket, "one");
    expect_answer(f, socket, "one");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_VIEWER);
    assert_string_equal(f->nodes[0].last_name, "eve");
    assert_false(f->nodes[0].last_was_local);

    set_table(f, false); /* the connection lives on: ZAP is asked at the handshake only */

    call(socket, "two");
    expect_answer(f, socket, "two");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_NONE);
    assert_int_equal(n_refused(&f->nodes[0].refusals, REFUSAL_key_gone), 1);
    zmq_close(socket);
}

/* The name and the role are the same, so only the key of the handshake tells. */
static void a_key_that_was_replaced_under_its_name_has_no_role_at_its_next_message(void **state)
{
    struct fixture *f = *state;
    void *socket = bare_client(f, &f->viewer);

    call(socket, "one");
    expect_answer(f, socket, "one");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_VIEWER);

    make_keys(&f->viewer);
    set_table(f, true);

    call(socket, "two");
    expect_answer(f, socket, "two");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_NONE);
    zmq_close(socket);
    socket = bare_client(f, &f->viewer);
    call(socket, "three");
    expect_answer(f, socket, "three");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_VIEWER);
    zmq_close(socket);
}

/* A member whose key was replaced: what its old connection says counts nowhere. */
static void a_node_with_a_replaced_key_is_not_heard_any_more(void **state)
{
    struct fixture *f = *state;
    struct hello hello = hello_of(f, 2);
    struct curve_keys old = f->nodes[1].keys;
    void *socket = bare_client(f, &old);

    send_hello(socket, &hello);
    assert_true(run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    make_keys(&f->nodes[1].keys);
    set_table(f, true);
    f->nodes[1].keys = old; /* the mesh of node 2 lives on with it */

    send_hello(socket, &hello);
    assert_true(run_until_refused(f, 0, REFUSAL_key_gone));
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 1);
    zmq_close(socket);
}

static void the_unix_socket_is_guarded_by_its_mode_and_calls_as_admin(void **state)
{
    struct fixture *f = *state;
    struct stat info;
    char endpoint[160];
    int linger_ms = 0;
    void *socket = zmq_socket(f->context, ZMQ_DEALER);

    assert_int_equal(stat(f->socket_path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    assert_int_equal(info.st_mode & 07777, 0660);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    snprintf(endpoint, sizeof endpoint, "ipc://%s", f->socket_path);
    assert_int_equal(zmq_connect(socket, endpoint), 0);
    call(socket, "hi");
    expect_answer(f, socket, "hi");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_ADMIN);
    char who[80];
    snprintf(who, sizeof who, "local socket of node 1, uid %u", (unsigned)getuid());
    assert_string_equal(f->nodes[0].last_name, who);
    assert_true(f->nodes[0].last_was_local);
    zmq_close(socket);
}

/* A shim that ran in the agent's group could administer. */
static void a_private_socket_is_not_for_the_group(void **state)
{
    struct fixture *f = *state;
    struct stat info;

    assert_int_equal(stat(f->private_path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    assert_int_equal(info.st_mode & 07777, 0600);
}

static void a_call_is_forwarded_and_its_answer_comes_back(void **state)
{
    struct fixture *f = *state;
    struct hello hello = hello_of(f, 1);
    struct peer_forward_request request = {.forward_id = 42, .role = KEY_ROLE_ADMIN, .name = "ann"};
    const struct mesh_frames frames = {(const uint8_t *)"env", 3, (const uint8_t *)"pay", 3};

    assert_int_equal(mesh_forward(f->nodes[0].mesh, 2, &request, &frames), ERR_UNREACHABLE);
    assert_int_equal(mesh_forward(f->nodes[0].mesh, 9, &request, &frames), ERR_UNREACHABLE);
    mesh_send_hello(f->nodes[0].mesh, &hello);
    assert_true(run_until(f, &f->nodes[1].n_by_kind[PEER_HELLO], 1));
    assert_int_equal(mesh_forward(f->nodes[0].mesh, 2, &request, &frames), 0);
    assert_true(run_until(f, &f->nodes[0].n_responses, 1));
    assert_int_equal(f->nodes[1].n_forwards, 1);
    assert_string_equal(f->nodes[1].last_name, "ann");
    assert_string_equal(f->nodes[1].last_payload, "pay");
    assert_int_equal(f->nodes[0].last_forward_id, 42);
    assert_int_equal(f->nodes[0].last_peer, 2);
    assert_string_equal(f->nodes[0].last_payload, "pay");
}

static void a_removed_peer_is_not_heard_and_one_that_stays_is_kept(void **state)
{
    struct fixture *f = *state;
    struct hello hello = hello_of(f, 2);
    struct mesh_peer_status status;

    mesh_send_hello(f->nodes[1].mesh, &hello);
    assert_true(run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    assert_true(mesh_peer_status(f->nodes[0].mesh, 2, &status));
    assert_true(status.is_welcome);
    assert_true(status.last_heard_ns > 0);

    mesh_set_peers(f->nodes[0].mesh, &f->nodes[0].member, 1);

    assert_false(mesh_peer_status(f->nodes[0].mesh, 2, &status));
    mesh_send_hello(f->nodes[1].mesh, &hello);
    assert_true(run_until_refused(f, 0, REFUSAL_not_member));
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 1);
}

int main(void)
{
#define WITH_MESHES(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_MESHES(peers_hear_hello_and_vector_even_if_they_were_sent_before_the_connection),
        WITH_MESHES(an_id_in_the_text_that_is_not_the_keys_is_dropped),
#ifdef JURY_PLANTS
        WITH_MESHES(twin_a_mesh_that_trusts_the_text_is_caught),
#endif
        WITH_MESHES(a_hello_of_another_cluster_is_refused_and_so_is_what_follows),
        WITH_MESHES(a_hello_without_a_common_version_is_refused),
        WITH_MESHES(a_node_that_is_no_member_is_not_heard_whatever_it_says),
        WITH_MESHES(bytes_that_do_not_decode_are_counted_and_harm_nothing),
        WITH_MESHES(a_stranger_never_gets_in),
        WITH_MESHES(a_key_calls_with_its_role_and_with_none_once_it_is_removed),
        WITH_MESHES(a_key_that_was_replaced_under_its_name_has_no_role_at_its_next_message),
        WITH_MESHES(a_node_with_a_replaced_key_is_not_heard_any_more),
        WITH_MESHES(the_unix_socket_is_guarded_by_its_mode_and_calls_as_admin),
        WITH_MESHES(a_private_socket_is_not_for_the_group),
        WITH_MESHES(a_call_is_forwarded_and_its_answer_comes_back),
        WITH_MESHES(a_removed_peer_is_not_heard_and_one_that_stays_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
