/* Two Raft lanes on loopback in one loop. Every wait has a deadline and ends as soon as its
 * condition holds. ctest labels: threads twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <zmq.h>

#include "agent/loop/zap.h"
#include "agent/store/raft_lane.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/plant.h"
#include "common/base/units.h"

#define WAIT_NS (20 * NS_PER_SECOND)

struct node {
    struct fixture *fixture;
    struct raft_lane lane;
    struct curve_keys keys;
    struct sock_options sock;
    uint16_t port;
    uint32_t n_received;
    uint64_t last_from;
};

struct fixture {
    void *context;
    struct zap *zap;
    uv_loop_t loop;
    struct zmq_hub hub;
    struct resolver *resolver;
    struct node nodes[2]; /* 1 and 2 */
    uint32_t n_closed;
};

static void make_keys(struct curve_keys *keys)
{
    char public_text[41], secret_text[41];

    assert_int_equal(zmq_curve_keypair(public_text, secret_text), 0);
    assert_non_null(zmq_z85_decode(keys->public_key, public_text));
    assert_non_null(zmq_z85_decode(keys->secret_key, secret_text));
}

static void on_received(void *user, uint64_t from, const uint8_t *data, size_t n_bytes)
{
    struct node *node = user;

    (void)data;
    (void)n_bytes;
    node->n_received++;
    node->last_from = from;
}

static void on_connected(void *user, uint64_t peer_id)
{
    (void)user;
    (void)peer_id;
}

static void open_node(struct fixture *f, size_t index)
{
    struct node *node = &f->nodes[index];
    struct raft_lane_hooks hooks = {
        .user = node, .received = on_received, .connected = on_connected, .resolver = f->resolver};
    struct endpoint at;
    struct errmsg err = {""};
    void *socket = NULL;

    make_keys(&node->keys);
    node->fixture = f;
    node->sock = (struct sock_options){.context = f->context,
                                       .domain = SOCK_DOMAIN_RAFT,
                                       .keys = &node->keys,
                                       .message_bytes_max = 1 << 20,
                                       .queue_messages = 100};
    assert_int_equal(endpoint_parse("127.0.0.1:1", &at, &err), 0);
    at.port = 0;
    assert_int_equal(raft_lane_listen(&node->sock, &at, 1, &socket, &node->port, &err), 0);
    assert_int_equal(raft_lane_start(&node->lane, &f->hub, socket, &node->sock, &hooks), 0);
}

/* What `node` is told of the node at the other index. */
static void introduce(struct fixture *f, size_t index, const uint8_t key[CURVE_KEY_BYTES])
{
    struct member_node member = {.node_id = 2 - index, .n_endpoints = 1};

    memcpy(member.key.bytes, key, CURVE_KEY_BYTES);
    strcpy(member.endpoints[0].host, "127.0.0.1");
    member.endpoints[0].raft_port = f->nodes[1 - index].port;
    raft_lane_set_peer(&f->nodes[index].lane, &member);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct zap_options options = {.n_contexts = 1};
    struct zap_key keys[2] = {{.is_revoked = false}};
    struct errmsg err = {""};

    assert_non_null(f);
    log_init("test", LOG_LEVEL_ERROR);
    f->context = zmq_ctx_new();
    options.contexts[0] = f->context;
    assert_int_equal(zap_start(&options, &f->zap, &err), 0);
    assert_int_equal(resolver_start(&f->resolver), 0);
    uv_loop_init(&f->loop);
    assert_int_equal(zmq_hub_start(&f->hub, &f->loop), 0);
    for (size_t i = 0; i < 2; i++) {
        open_node(f, i);
        memcpy(keys[i].public_key, f->nodes[i].keys.public_key, CURVE_KEY_BYTES);
        zap_node_user_id(i + 1, keys[i].user_id);
    }
    zap_set_table(f->zap, zap_table_new(keys, 2));
    introduce(f, 0, f->nodes[1].keys.public_key);
    introduce(f, 1, f->nodes[0].keys.public_key);
    *state = f;
    return 0;
}

static void on_closed(void *user)
{
    ((struct node *)user)->fixture->n_closed++;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    raft_lane_close(&f->nodes[0].lane, on_closed);
    raft_lane_close(&f->nodes[1].lane, on_closed);
    while (f->n_closed < 2) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    zmq_hub_stop(&f->hub);
    resolver_stop(f->resolver);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    zap_stop(f->zap);
    zmq_ctx_term(f->context);
    free(f);
    return 0;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Until the number at `count` is `wanted`; node 2 goes on sending meanwhile. */
static bool run_until(struct fixture *f, const void *count, size_t n_bytes, uint64_t wanted)
{
    uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;
    uint64_t now = 0;
    uv_timer_t timer;

    uv_timer_init(&f->loop, &timer);
    uv_timer_start(&timer, on_tick, 10, 10);
    while (now < wanted && clock_monotonic_ns() < end_ns) {
        uv_run(&f->loop, UV_RUN_ONCE);
        memcpy(&now, count, n_bytes);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    return now >= wanted;
}

static void say(struct fixture *f)
{
    uint8_t *data = malloc(1);

    assert_non_null(data);
    data[0] = 1;
    raft_lane_send(&f->nodes[1].lane, 1, data, 1);
}

/* The messages of node 2 were judged by the id that ZAP once gave its connection. Returns true if
 * what it says with a key that is not its own any more is refused. */
static bool refuses_a_replaced_key(struct fixture *f)
{
    struct node *node = &f->nodes[0];
    struct curve_keys other;

    say(f);
    assert_true(run_until(f, &node->n_received, sizeof node->n_received, 1));
    assert_int_equal(node->last_from, 2);

    make_keys(&other);
    introduce(f, 0, other.public_key);
    say(f);
    if (plant_is("raft-key-unseen")) {
        assert_true(run_until(f, &node->n_received, sizeof node->n_received, 2));
        return node->lane.n_refused_key > 0;
    }
    assert_true(run_until(f, &node->lane.n_refused_key, sizeof node->lane.n_refused_key, 1));
    return node->n_received == 1;
}

static void a_key_that_is_not_the_nodes_any_more_is_not_heard_by_raft(void **state)
{
    assert_true(refuses_a_replaced_key(*state));
}

#ifdef JURY_PLANTS
static void twin_a_lane_that_knows_ids_alone_is_caught(void **state)
{
    plant_set("raft-key-unseen");
    assert_false(refuses_a_replaced_key(*state));
    plant_set(NULL);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_that_is_not_the_nodes_any_more_is_not_heard_by_raft,
                                        setup, teardown),
#ifdef JURY_PLANTS
        cmocka_unit_test_setup_teardown(twin_a_lane_that_knows_ids_alone_is_caught, setup,
                                        teardown),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
