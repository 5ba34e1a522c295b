/* ctest labels: threads */
/* Real sockets on loopback with ephemeral ports: hub, ZAP, monitor, dial. Every wait has a deadline
 * and ends as soon as its condition holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>
#include <zmq.h>

#include "agent/loop/dial.h"
#include "agent/loop/zap.h"
#include "common/base/clock.h"
#include "common/base/units.h"

#define WAIT_NS (20 * NS_PER_SECOND)

struct fixture {
    void *context;
    struct wake report_wake;
    struct zap *zap;
    struct resolver *resolver;
    uv_loop_t loop;
    struct zmq_hub hub;
    struct curve_keys server;
    struct curve_keys client;
    /* the listening side */
    struct zmq_watch router;
    struct zmq_monitor monitor;
    char endpoint[128];
    uint16_t port;
    uint32_t n_received;
    char last_user[ZAP_USER_ID_BYTES];
    uint32_t seen[ZMQ_SEEN_COUNT];
    /* the dialling side */
    struct dial_lane lane;
    uint32_t n_answers;
    uint32_t n_up;
    uint32_t n_refused;
    bool is_lane_closed;
};

static void make_keys(struct curve_keys *keys)
{
    char public_text[41], secret_text[41];

    assert_int_equal(zmq_curve_keypair(public_text, secret_text), 0);
    assert_non_null(zmq_z85_decode(keys->public_key, public_text));
    assert_non_null(zmq_z85_decode(keys->secret_key, secret_text));
}

static void on_request(void *user, zmq_msg_t frames[], size_t n_frames)
{
    struct fixture *f = user;
    struct zmq_part parts[2];

    f->n_received++;
    snprintf(f->last_user, sizeof f->last_user, "%s", zmq_frame_user_id(&frames[0]));
    if (n_frames != 2) {
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        parts[i] = (struct zmq_part){zmq_msg_data(&frames[i]), zmq_msg_size(&frames[i])};
    }
    assert_int_equal(zmq_watch_send(&f->router, parts, 2), 0);
}

static void on_seen(void *user, const struct zmq_event *event)
{
    struct fixture *f = user;

    f->seen[event->seen]++;
}

static void on_answer(void *user, struct dial *dial, zmq_msg_t frames[], size_t n_frames)
{
    struct fixture *f = user;

    (void)dial;
    (void)frames;
    (void)n_frames;
    f->n_answers++;
}

static void on_changed(void *user, struct dial *dial, bool is_up, const struct zmq_event *event)
{
    struct fixture *f = user;

    (void)dial;
    f->n_up += is_up;
    f->n_refused += event->seen == ZMQ_SEEN_REFUSED;
}

static void set_keys(struct fixture *f, const uint8_t public_key[CURVE_KEY_BYTES], bool is_revoked)
{
    struct zap_key key = {.is_revoked = is_revoked};

    memcpy(key.public_key, public_key, CURVE_KEY_BYTES);
    zap_node_user_id(7, key.user_id);
    zap_set_table(f->zap, zap_table_new(&key, 1));
}

static void open_router(struct fixture *f, const char *endpoint)
{
    struct errmsg err = {""};
    struct sock_options options = {.context = f->context,
                                   .domain = SOCK_DOMAIN_MESH,
                                   .keys = &f->server,
                                   .message_bytes_max = 1024 * 1024,
                                   .queue_messages = 1000};
    struct zmq_hooks hooks = {.user = f, .message = on_request};
    void *socket;
    size_t n_bytes = sizeof f->endpoint;

    assert_int_equal(sock_router_open(&options, &socket, &err), 0);
    assert_int_equal(zmq_monitor_start(&f->monitor, &f->hub, f->context, socket, true), 0);
    zmq_monitor_set_hook(&f->monitor, on_seen, f);
    /* libzmq closes a former listener of this address on its own thread: the address is free soon.
     */
    uint64_t give_up_ns = uv_hrtime() + 10 * NS_PER_SECOND;
    while (sock_bind(socket, "mesh address", endpoint, &err) != 0) {
        assert_true(uv_hrtime() < give_up_ns);
    }
    assert_int_equal(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, f->endpoint, &n_bytes), 0);
    f->port = (uint16_t)atoi(strrchr(f->endpoint, ':') + 1);
    assert_int_equal(zmq_watch_start(&f->router, &f->hub, socket, &hooks), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct zap_options zap_options = {.n_contexts = 1, .report_wake = &f->report_wake};
    struct errmsg err = {""};

    f->context = zmq_ctx_new();
    zap_options.contexts[0] = f->context;
    assert_int_equal(wake_init(&f->report_wake), 0);
    assert_int_equal(zap_start(&zap_options, &f->zap, &err), 0);
    assert_int_equal(resolver_start(&f->resolver), 0);
    uv_loop_init(&f->loop);
    assert_int_equal(zmq_hub_start(&f->hub, &f->loop), 0);
    make_keys(&f->server);
    make_keys(&f->client);
    open_router(f, "tcp://127.0.0.1:*");
    f->lane = (struct dial_lane){
        .sock = {.context = f->context,
                 .domain = SOCK_DOMAIN_MESH,
                 .keys = &f->client,
                 .message_bytes_max = 1024 * 1024,
                 .queue_messages = 1000},
        .hub = &f->hub,
        .resolver = f->resolver,
        .hooks = {.user = f, .message = on_answer, .changed = on_changed},
    };
    assert_int_equal(dial_lane_start(&f->lane), 0);
    *state = f;
    return 0;
}

static void on_lane_closed(void *user)
{
    struct fixture *f = user;

    f->is_lane_closed = true;
    zmq_hub_stop(&f->hub);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    zmq_monitor_close(&f->monitor, NULL, NULL);
    zmq_watch_close(&f->router, NULL, NULL);
    dial_lane_close(&f->lane, on_lane_closed, f);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->is_lane_closed);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    resolver_stop(f->resolver);
    zap_stop(f->zap);
    zmq_ctx_term(f->context);
    wake_close(&f->report_wake);
    free(f);
    return 0;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop until the counter reaches `at_least` or the deadline passes. The timer only lets
 * the deadline be seen. */
static bool run_until(struct fixture *f, const uint32_t *counter, uint32_t at_least)
{
    uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;
    uv_timer_t timer;

    uv_timer_init(&f->loop, &timer);
    uv_timer_start(&timer, on_tick, 500, 500);
    while (*counter < at_least && clock_monotonic_ns() < end_ns) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    return *counter >= at_least;
}

static struct dial *open_dial(struct fixture *f, const char *host)
{
    struct dial_peer peer = {.peer_id = 9, .n_places = 1};
    struct dial *dial = NULL;
    struct errmsg err = {""};

    memcpy(peer.server_key, f->server.public_key, CURVE_KEY_BYTES);
    snprintf(peer.places[0].host, sizeof peer.places[0].host, "%s", host);
    peer.places[0].port = f->port;
    assert_int_equal(dial_open(&f->lane, &peer, &dial, &err), 0);
    return dial;
}

static void a_burst_of_messages_comes_back_whole_and_with_the_users_id(void **state)
{
    struct fixture *f = *state;
    const uint32_t n_messages = 900; /* more than one turn drains, fewer than the queue holds */
    struct dial *dial;

    set_keys(f, f->client.public_key, false);
    dial = open_dial(f, "127.0.0.1");
    assert_true(run_until(f, &f->n_up, 1));
    assert_true(dial_is_up(dial));
    for (uint32_t i = 0; i < n_messages; i++) {
        assert_int_equal(dial_send(dial, &(struct zmq_part){"hello", 5}, 1), 0);
    }
    assert_true(run_until(f, &f->n_answers, n_messages));
    assert_int_equal(f->n_received, n_messages);
    assert_string_equal(f->last_user, "node:7");
    assert_int_equal(f->seen[ZMQ_SEEN_CONNECTED], 1);
    assert_int_equal(zap_n_accepted(f->zap), 1);
}

static void single_messages_never_wait_for_a_lost_edge(void **state)
{
    struct fixture *f = *state;
    struct dial *dial;

    set_keys(f, f->client.public_key, false);
    dial = open_dial(f, "127.0.0.1");
    assert_true(run_until(f, &f->n_up, 1));
    uint64_t start_ns = clock_monotonic_ns();
    for (uint32_t i = 1; i <= 200; i++) {
        assert_int_equal(dial_send(dial, &(struct zmq_part){"ping", 4}, 1), 0);
        assert_true(run_until(f, &f->n_answers, i));
    }
    /* A lost edge would wait for the loop's next timer, 500 ms later. */
    uint64_t took_ms = (clock_monotonic_ns() - start_ns) / NS_PER_MS;
    print_message("200 round trips in %llu ms, %llu of %llu messages found by the second look\n",
                  (unsigned long long)took_ms, (unsigned long long)f->hub.n_found_late,
                  (unsigned long long)f->hub.n_messages);
    assert_true(took_ms < 10000);
}

static void an_unknown_key_is_refused_reported_and_gets_in_once_known(void **state)
{
    struct fixture *f = *state;
    struct zap_refusal refusal;
    struct dial *dial = open_dial(f, "127.0.0.1");

    assert_true(run_until(f, &f->seen[ZMQ_SEEN_REFUSED], 1));
    assert_false(dial_is_up(dial));
    assert_true(zap_n_refused(f->zap, ZAP_REFUSED_UNKNOWN_KEY) >= 1);
    assert_true(zap_next_refusal(f->zap, &refusal));
    assert_int_equal(refusal.reason, ZAP_REFUSED_UNKNOWN_KEY);
    assert_string_equal(refusal.domain, "mesh");
    assert_string_equal(refusal.address, "127.0.0.1");
    assert_memory_equal(refusal.public_key, f->client.public_key, CURVE_KEY_BYTES);
    assert_int_equal(f->n_received, 0);

    set_keys(f, f->client.public_key, false);

    assert_true(run_until(f, &f->n_up, 1));
}

static void a_revoked_key_is_refused_for_good_by_libzmq_but_dial_asks_again(void **state)
{
    struct fixture *f = *state;

    set_keys(f, f->client.public_key, true);
    open_dial(f, "127.0.0.1");
    assert_true(run_until(f, &f->n_refused, 2)); /* the second is ours: libzmq had given up */
    assert_true(zap_n_refused(f->zap, ZAP_REFUSED_REVOKED_KEY) >= 2);

    set_keys(f, f->client.public_key, false);

    assert_true(run_until(f, &f->n_up, 1));
}

static void a_name_is_resolved_off_the_loop_and_reached(void **state)
{
    struct fixture *f = *state;
    struct dial *dial;

    set_keys(f, f->client.public_key, false);
    dial = open_dial(f, "localhost"); /* may answer ::1 first, where nobody listens */
    assert_true(run_until(f, &f->n_up, 1));
    assert_true(dial_is_up(dial));
}

static void a_dial_takes_the_next_place_while_one_does_not_answer(void **state)
{
    struct fixture *f = *state;
    struct dial_peer peer = {.peer_id = 9, .n_places = 2};
    struct dial *dial = NULL;
    struct errmsg err = {""};

    set_keys(f, f->client.public_key, false);
    memcpy(peer.server_key, f->server.public_key, CURVE_KEY_BYTES);
    strcpy(peer.places[0].host, "127.0.0.1");
    peer.places[0].port = 1; /* nobody */
    strcpy(peer.places[1].host, "127.0.0.1");
    peer.places[1].port = f->port;
    assert_int_equal(dial_open(&f->lane, &peer, &dial, &err), 0);
    assert_true(run_until(f, &f->n_up, 1));
}

static void a_peer_that_goes_and_comes_back_is_reached_again(void **state)
{
    struct fixture *f = *state;
    char endpoint[128];
    struct dial *dial;

    set_keys(f, f->client.public_key, false);
    dial = open_dial(f, "127.0.0.1");
    assert_true(run_until(f, &f->n_up, 1));
    strcpy(endpoint, f->endpoint);
    zmq_monitor_close(&f->monitor, NULL, NULL);
    zmq_watch_close(&f->router, NULL, NULL);
    while (dial_is_up(dial)) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    /* The monitor may know of the end before the socket does. */
    while (dial_send(dial, &(struct zmq_part){"x", 1}, 1) != ERR_BUSY) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }

    open_router(f, endpoint);

    assert_true(run_until(f, &f->n_up, 2));
}

static int raw_connection(struct fixture *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(f->port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void garbage_silence_and_a_client_without_a_key_have_each_its_reason(void **state)
{
    struct fixture *f = *state;
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    int fd = raw_connection(f);

    assert_int_equal(write(fd, http, sizeof http - 1), sizeof http - 1);
    assert_true(run_until(f, &f->seen[ZMQ_SEEN_GARBAGE], 1));
    close(fd);

    fd = raw_connection(f);
    assert_true(run_until(f, &f->seen[ZMQ_SEEN_SILENT], 1));
    close(fd);

    fd = raw_connection(f);
    close(fd);
    assert_true(run_until(f, &f->seen[ZMQ_SEEN_GAVE_UP], 1));

    void *plain = zmq_socket(f->context, ZMQ_DEALER);
    int linger_ms = 0;
    zmq_setsockopt(plain, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    assert_int_equal(zmq_connect(plain, f->endpoint), 0);
    assert_true(run_until(f, &f->seen[ZMQ_SEEN_NO_KEY], 1));
    zmq_close(plain);
    assert_int_equal(f->n_received, 0);
}

static void a_wrong_server_key_is_seen_as_such(void **state)
{
    struct fixture *f = *state;
    struct curve_keys server = f->server;

    set_keys(f, f->client.public_key, false);
    make_keys(&f->server); /* open_dial pins this one */
    open_dial(f, "127.0.0.1");
    assert_true(run_until(f, &f->seen[ZMQ_SEEN_WRONG_KEY], 1));
    f->server = server;
    assert_int_equal(f->n_up, 0);
}

static void a_busy_port_is_one_clear_sentence(void **state)
{
    struct fixture *f = *state;
    struct errmsg err = {""};
    struct sock_options options = {.context = f->context,
                                   .domain = SOCK_DOMAIN_MESH,
                                   .keys = &f->server,
                                   .message_bytes_max = 1024,
                                   .queue_messages = 10};
    void *socket;

    assert_int_equal(sock_router_open(&options, &socket, &err), 0);
    assert_int_equal(sock_bind(socket, "mesh address", f->endpoint, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "in use by another process"));
    zmq_close(socket);
}

static void identities_are_read_back_and_forgeries_are_not(void **state)
{
    static const char *const bad[] = {"",        "node",        "node:",   "node:0", "node:-1",
                                      "node:x",  "root:alice",  "adm:in",  ":",      "nodes:1",
                                      "node:1 ", "Admin:alice", "node:1:2"};
    struct zap_identity identity;
    char user_id[ZAP_USER_ID_BYTES];

    (void)state;
    assert_true(zap_identity_parse(zap_node_user_id(18446744073709551615u, user_id), &identity));
    assert_int_equal(identity.role, ZAP_ROLE_NODE);
    assert_int_equal(identity.node_id, 18446744073709551615u);
    assert_true(zap_identity_parse(zap_user_id(ZAP_ROLE_VIEWER, "a:b", user_id), &identity));
    assert_int_equal(identity.role, ZAP_ROLE_VIEWER);
    assert_string_equal(identity.name, "a:b");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(zap_identity_parse(bad[i], &identity));
        assert_int_equal(identity.role, ZAP_ROLE_NONE);
    }
}

static void a_table_finds_each_key_and_knows_revoked_users(void **state)
{
    struct zap_key keys[64] = {0};
    struct zap_table *table;

    (void)state;
    for (size_t i = 0; i < 64; i++) {
        keys[i].public_key[0] = (uint8_t)(i * 37 % 64);
        keys[i].is_revoked = i == 5;
        zap_node_user_id(i + 1, keys[i].user_id);
    }
    table = zap_table_new(keys, 64);
    for (size_t i = 0; i < 64; i++) {
        const struct zap_key *found = zap_table_find(table, keys[i].public_key);

        assert_non_null(found);
        assert_string_equal(found->user_id, keys[i].user_id);
        assert_int_equal(zap_table_admits(table, keys[i].public_key, keys[i].user_id), i != 5);
        assert_false(zap_table_admits(table, keys[i].public_key, "node:65"));
    }
    keys[0].public_key[1] = 1;
    assert_null(zap_table_find(table, keys[0].public_key));
    assert_false(zap_table_admits(table, keys[0].public_key, keys[0].user_id));
    zap_table_unref(table);
}

int main(void)
{
#define WITH_SOCKETS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_SOCKETS(a_burst_of_messages_comes_back_whole_and_with_the_users_id),
        WITH_SOCKETS(single_messages_never_wait_for_a_lost_edge),
        WITH_SOCKETS(an_unknown_key_is_refused_reported_and_gets_in_once_known),
        WITH_SOCKETS(a_revoked_key_is_refused_for_good_by_libzmq_but_dial_asks_again),
        WITH_SOCKETS(a_name_is_resolved_off_the_loop_and_reached),
        WITH_SOCKETS(a_dial_takes_the_next_place_while_one_does_not_answer),
        WITH_SOCKETS(a_peer_that_goes_and_comes_back_is_reached_again),
        WITH_SOCKETS(garbage_silence_and_a_client_without_a_key_have_each_its_reason),
        WITH_SOCKETS(a_wrong_server_key_is_seen_as_such),
        WITH_SOCKETS(a_busy_port_is_one_clear_sentence),
        cmocka_unit_test(identities_are_read_back_and_forgeries_are_not),
        cmocka_unit_test(a_table_finds_each_key_and_knows_revoked_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
