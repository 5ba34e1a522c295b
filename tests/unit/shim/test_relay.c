/* The relay between two real sockets: every order in which the two sides may speak and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/shim/relay.h"

struct rig {
    struct relay relay;
    struct relay_buffers buffers;
    int client; /* the test's ends */
    int backend;
};

static void rig_init(struct rig *rig, uint32_t n_buffers)
{
    int client[2];
    int backend[2];

    memset(rig, 0, sizeof *rig);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, client), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, backend), 0);
    assert_int_equal(relay_buffers_init(&rig->buffers, n_buffers), 0);
    rig->client = client[0];
    rig->backend = backend[0];
    rig->relay.ends[RELAY_CLIENT].fd = client[1];
    rig->relay.ends[RELAY_BACKEND].fd = backend[1];
}

static void rig_close(struct rig *rig)
{
    relay_release(&rig->relay, &rig->buffers);
    assert_true(rig->buffers.n_free == rig->buffers.n_touched); /* every buffer came back */
    relay_buffers_close(&rig->buffers);
    close(rig->relay.ends[RELAY_CLIENT].fd);
    close(rig->relay.ends[RELAY_BACKEND].fd);
    close(rig->client);
    close(rig->backend);
}

/* As if epoll had told of an edge on all four. */
static enum relay_outcome pump(struct rig *rig)
{
    for (int i = 0; i < 2; i++) {
        rig->relay.ends[i].is_readable = true;
        rig->relay.ends[i].is_writable = true;
    }
    return relay_pump(&rig->relay, &rig->buffers);
}

static void assert_reads(int fd, const char *wanted)
{
    char text[64] = "";
    ssize_t n = recv(fd, text, sizeof text - 1, 0);

    assert_int_equal(n, strlen(wanted));
    assert_string_equal(text, wanted);
}

static void bytes_go_both_ways_and_an_idle_flow_holds_no_buffer(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig, 2);

    assert_int_equal(send(rig.client, "up", 2, 0), 2);
    assert_int_equal(send(rig.backend, "down", 4, 0), 4);
    assert_int_equal(pump(&rig), RELAY_WAIT);

    assert_reads(rig.backend, "up");
    assert_reads(rig.client, "down");
    assert_int_equal(rig.relay.n_bytes[RELAY_CLIENT], 2);
    assert_int_equal(rig.relay.n_bytes[RELAY_BACKEND], 4);
    assert_null(rig.relay.pipes[0].bytes);
    assert_null(rig.relay.pipes[1].bytes);
    rig_close(&rig);
}

static void half_close_passes_after_the_bytes_and_the_other_way_goes_on(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig, 2);

    send(rig.client, "last", 4, 0);
    shutdown(rig.client, SHUT_WR);
    assert_int_equal(pump(&rig), RELAY_WAIT);
    assert_reads(rig.backend, "last");
    assert_reads(rig.backend, ""); /* FIN */
    send(rig.backend, "answer", 6, 0);
    assert_int_equal(pump(&rig), RELAY_WAIT);
    assert_reads(rig.client, "answer");
    shutdown(rig.backend, SHUT_WR);
    assert_int_equal(pump(&rig), RELAY_DONE);
    assert_reads(rig.client, "");
    rig_close(&rig);
}

static void a_reader_that_stops_holds_its_writer_and_nothing_is_lost(void **state)
{
    (void)state;
    struct rig rig;
    size_t n_sent = 0;
    size_t n_got = 0;
    uint8_t chunk[4096];
    rig_init(&rig, 2);

    for (int idle = 0; idle < 3;) {
        memset(chunk, (int)(n_sent / sizeof chunk % 251), sizeof chunk);
        ssize_t n = send(rig.client, chunk, sizeof chunk, 0);
        idle = n == (ssize_t)sizeof chunk ? 0 : idle + 1;
        n_sent += n > 0 ? (size_t)n : 0;
        pump(&rig);
    }
    assert_non_null(rig.relay.pipes[RELAY_CLIENT].bytes);
    shutdown(rig.client, SHUT_WR);
    while (n_got < n_sent) {
        ssize_t n = recv(rig.backend, chunk, sizeof chunk, 0);

        for (ssize_t i = 0; i < n; i++) {
            assert_int_equal(chunk[i], (n_got + (size_t)i) / sizeof chunk % 251);
        }
        n_got += n > 0 ? (size_t)n : 0;
        pump(&rig);
    }
    assert_reads(rig.backend, "");
    rig_close(&rig);
}

static void one_flow_gives_way_after_its_budget(void **state)
{
    (void)state;
    struct rig rig;
    uint8_t *block = calloc(1, RELAY_BUFFER_BYTES);
    uint64_t n_moved = 0;
    int size = 4 * RELAY_BUDGET_BYTES;
    rig_init(&rig, 2);
    setsockopt(rig.client, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    setsockopt(rig.relay.ends[RELAY_BACKEND].fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    while (send(rig.client, block, RELAY_BUFFER_BYTES, 0) > 0) {
        n_moved += RELAY_BUFFER_BYTES;
    }

    enum relay_outcome outcome = pump(&rig);

    if (n_moved > 2 * RELAY_BUDGET_BYTES) { /* the kernel took that much */
        assert_int_equal(outcome, RELAY_MORE);
        assert_in_range(rig.relay.n_bytes[RELAY_CLIENT], RELAY_BUDGET_BYTES,
                        RELAY_BUDGET_BYTES + RELAY_BUFFER_BYTES);
    }
    free(block);
    rig_close(&rig);
}

static void without_a_buffer_a_flow_waits_and_goes_on_with_one(void **state)
{
    (void)state;
    struct rig rig;
    struct rig hog;
    rig_init(&rig, 1);
    rig_init(&hog, 1);
    send(rig.client, "up", 2, 0);
    uint8_t *only = NULL;
    /* Somebody else has the only buffer. */
    rig.buffers.n_touched = 1;
    only = rig.buffers.memory;

    assert_int_equal(pump(&rig), RELAY_STARVED);
    assert_false(relay_buffers_left(&rig.buffers));
    rig.buffers.free[rig.buffers.n_free++] = only;
    assert_true(relay_buffers_left(&rig.buffers));
    assert_int_equal(pump(&rig), RELAY_WAIT);
    assert_reads(rig.backend, "up");
    rig_close(&hog);
    rig_close(&rig);
}

static void a_side_that_is_gone_breaks_the_flow(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig, 2);

    send(rig.client, "up", 2, 0);
    close(rig.backend);
    rig.backend = -1;
    assert_int_equal(pump(&rig), RELAY_BROKEN);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways_and_an_idle_flow_holds_no_buffer),
        cmocka_unit_test(half_close_passes_after_the_bytes_and_the_other_way_goes_on),
        cmocka_unit_test(a_reader_that_stops_holds_its_writer_and_nothing_is_lost),
        cmocka_unit_test(one_flow_gives_way_after_its_budget),
        cmocka_unit_test(without_a_buffer_a_flow_waits_and_goes_on_with_one),
        cmocka_unit_test(a_side_that_is_gone_breaks_the_flow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
