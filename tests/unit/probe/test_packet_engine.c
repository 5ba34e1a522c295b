/* The packet engine on loopback, step by step. What is on the wire, and answers that no kernel
 * gives, are judged by tests/integration/half_open_wire.py. spec.md 4; S6, S42; R-PROBE-1,
 * R-SELF-3. Without CAP_NET_RAW what needs it is skipped. */
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/probe/packet_local.h"
#include "agent/probe/packet_socket.h"
#include "common/base/clock.h"
#include "tests/lib/engine_bench.h"
#include "tests/lib/kept_check.h"

/* A listener whose queue is full is silent to further SYNs, once a connection fills it. */
static int fill_queue(struct engine_bench *bench)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(bench->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    bench_listen(bench, AF_INET, 0);
    to.sin_port = htons(bench->port);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void an_open_port_passes_and_nobody_gets_a_connection(void **state)
{
    struct engine_bench bench;

    (void)state;
    if (!bench_init_packet(&bench, 4)) {
        skip();
    }
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_tcp_target(&bench, 3);
    for (unsigned i = 0; i < 4; i++) {
        bench_submit(&bench, &target);
        assert_int_equal(bench.n_results, i); /* never from inside submit */
        bench_run_until(&bench, i + 1);
        bench_assert_result(&bench, i, REASON_OK);
        assert_int_equal(bench.results[i].id.slot, 3);
    }
    struct pollfd queue = {.fd = bench.listener, .events = POLLIN};
    assert_int_equal(poll(&queue, 1, 0), 0);
    bench_close(&bench);
}

static void an_open_port_passes_over_ipv6(void **state)
{
    struct engine_bench bench;

    (void)state;
    if (!bench_init_packet(&bench, 4)) {
        skip();
    }
    bench_listen(&bench, AF_INET6, 8);
    struct probe_target target = bench_tcp_target(&bench, 0);
    assert_int_equal(addr_parse("::1", &target.definition.to.addr, NULL), 0);
    bench_submit(&bench, &target);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_OK);
    bench_close(&bench);
}

static void a_closed_port_fails_at_once_and_said_so_itself(void **state)
{
    struct engine_bench bench;

    (void)state;
    if (!bench_init_packet(&bench, 4)) {
        skip();
    }
    bench_listen(&bench, AF_INET, -1);
    struct probe_target target = bench_tcp_target(&bench, 0);
    bench_submit(&bench, &target);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_CONNECT_FAILED);
    assert_true(bench.results[0].is_refused);
    bench_close(&bench);
}

static void silence_is_a_connect_timeout_at_t(void **state)
{
    struct engine_bench bench;

    (void)state;
    if (!bench_init_packet(&bench, 4)) {
        skip();
    }
    int fd = fill_queue(&bench);
    struct probe_target target = bench_tcp_target(&bench, 0);
    own_check(&target.definition)->timeout_ms = BENCH_TIMEOUT_MS;
    bench_submit(&bench, &target);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_CONNECT_TIMEOUT);
    assert_in_range(bench_took_ms(&bench, 0), BENCH_TIMEOUT_MS, 10 * BENCH_TIMEOUT_MS);
    close(fd);
    bench_close(&bench);
}

static void an_abandoned_probe_has_no_result_and_its_place_is_free(void **state)
{
    struct engine_bench bench;

    (void)state;
    if (!bench_init_packet(&bench, 1)) {
        skip();
    }
    bench_listen(&bench, AF_INET, 8);
    struct probe_target first = bench_tcp_target(&bench, 0);
    struct probe_target second = bench_tcp_target(&bench, 1);
    bench_submit(&bench, &first);
    bench.engine->ops->abandon(bench.engine, 0);
    bench.engine->ops->abandon(bench.engine, 0); /* again is fine */
    bench_submit(&bench, &second);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_OK);
    assert_int_equal(bench.results[0].id.slot, 1);
    bench_close(&bench);
}

/* Each port serves one probe of a backend at a time, so that no answer can be another probe's. */
static void more_definitions_of_one_backend_than_ports_wait_for_no_port(void **state)
{
    struct engine_bench bench;
    struct probe_target targets[PACKET_PORTS + 1];

    (void)state;
    if (!bench_init_packet(&bench, PACKET_PORTS + 1)) {
        skip();
    }
    int fd = fill_queue(&bench);
    for (uint32_t i = 0; i <= PACKET_PORTS; i++) {
        targets[i] = bench_tcp_target(&bench, i);
        bench_submit(&bench, &targets[i]);
    }
    bench_run_until(&bench, 1);
    bench_assert_result(&bench, 0, REASON_LOCAL_NO_PORT);
    assert_int_equal(bench.results[0].id.slot, PACKET_PORTS);

    struct probe_target other = bench_tcp_target(&bench, PACKET_PORTS);
    assert_int_equal(addr_parse("127.0.0.2", &other.definition.to.addr, NULL), 0);
    bench_submit(&bench, &other);
    bench_run_until(&bench, 2);
    bench_assert_result(&bench, 1, REASON_CONNECT_FAILED); /* nobody listens there */
    close(fd);
    bench_close(&bench);
}

static void a_source_that_is_not_ours_is_our_fault(void **state)
{
    struct engine_bench bench;

    (void)state;
    if (!bench_init_packet(&bench, 4)) {
        skip();
    }
    bench_listen(&bench, AF_INET, 8);
    struct probe_target missing = bench_tcp_target(&bench, 0);
    struct probe_target other_family = bench_tcp_target(&bench, 1);
    struct probe_target own = bench_tcp_target(&bench, 2);
    assert_int_equal(addr_parse("192.0.2.99", &missing.source, NULL), 0);
    assert_int_equal(addr_parse("::1", &other_family.source, NULL), 0);
    assert_int_equal(addr_parse("127.0.0.9", &own.source, NULL), 0);
    bench_submit(&bench, &missing);
    bench_submit(&bench, &other_family);
    bench_run_until(&bench, 2);
    bench_submit(&bench, &own);
    bench_run_until(&bench, 3);

    bench_assert_result(&bench, 0, REASON_LOCAL_SOURCE_MISSING);
    bench_assert_result(&bench, 1, REASON_LOCAL_SOURCE_MISSING);
    bench_assert_result(&bench, 2, REASON_OK);
    bench_close(&bench);
}

static void a_process_without_descriptors_does_not_blame_the_backend(void **state)
{
    struct engine_bench bench;
    struct rlimit before;

    (void)state;
    if (!bench_init_packet(&bench, 4)) {
        skip();
    }
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_tcp_target(&bench, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bench_submit(&bench, &target);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_LOCAL_NO_DESCRIPTOR);
    bench_close(&bench);
}

/* More answers than the ring holds, all of probes that nobody waits for any more. */
static void a_timeout_while_answers_were_dropped_proves_nothing(void **state)
{
    struct engine_bench bench;

    (void)state;
    if (!bench_init_packet(&bench, 4)) {
        skip();
    }
    bench_listen(&bench, AF_INET, -1);
    struct probe_target closed = bench_tcp_target(&bench, 0);
    for (unsigned i = 0; i < PACKET_FRAMES + 100; i++) {
        bench_submit(&bench, &closed);
        bench.engine->ops->flush(bench.engine);
        bench.engine->ops->abandon(bench.engine, 0);
    }
    int taken = bench.listener;
    int fd = fill_queue(&bench);
    struct probe_target silent = bench_tcp_target(&bench, 1);
    own_check(&silent.definition)->timeout_ms = BENCH_TIMEOUT_MS;
    bench_submit(&bench, &silent);
    bench_run_until(&bench, 1);
    bench_assert_result(&bench, 0, REASON_LOCAL_NO_BUFFER);

    bench_submit(&bench, &silent); /* the next one counts again */
    bench_run_until(&bench, 2);
    bench_assert_result(&bench, 1, REASON_CONNECT_TIMEOUT);
    struct probe_counts counts;
    probe_counters_read(&bench.counters, &counts);
    assert_true(counts.values[PROBE_N_PACKETS_DROPPED] > 0);
    assert_int_equal(counts.values[PROBE_N_PACKETS_IGNORED], PACKET_FRAMES);
    close(taken);
    close(fd);
    bench_close(&bench);
}

/* spec.md 4: the ports are the engine's, so that what comes for them is answered with RST. */
static void nobody_else_gets_the_ports(void **state)
{
    struct packet_ports ports;
    const int yes = 1;

    (void)state;
    assert_int_equal(packet_ports_open(&ports, NULL), 0);
    for (unsigned i = 0; i < PACKET_PORTS; i++) {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(ports.ports[i])};
        struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(ports.ports[i])};
        int fds[2] = {socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET6, SOCK_STREAM, 0)};

        setsockopt(fds[0], SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        setsockopt(fds[1], SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        assert_int_equal(bind(fds[0], (struct sockaddr *)&four, sizeof four), -1);
        assert_int_equal(bind(fds[1], (struct sockaddr *)&six, sizeof six), -1);
        close(fds[0]);
        close(fds[1]);
    }
    packet_ports_close(&ports);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_port_passes_and_nobody_gets_a_connection),
        cmocka_unit_test(an_open_port_passes_over_ipv6),
        cmocka_unit_test(a_closed_port_fails_at_once_and_said_so_itself),
        cmocka_unit_test(silence_is_a_connect_timeout_at_t),
        cmocka_unit_test(an_abandoned_probe_has_no_result_and_its_place_is_free),
        cmocka_unit_test(more_definitions_of_one_backend_than_ports_wait_for_no_port),
        cmocka_unit_test(a_source_that_is_not_ours_is_our_fault),
        cmocka_unit_test(a_process_without_descriptors_does_not_blame_the_backend),
        cmocka_unit_test(a_timeout_while_answers_were_dropped_proves_nothing),
        cmocka_unit_test(nobody_else_gets_the_ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
