/* The connect engine on loopback, step by step: tcp probes, places, and faults of this node.
 * spec.md 4; cases A12-A14; R-PROBE-1, R-SELF-3. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/lib/engine_bench.h"
#include "tests/lib/kept_check.h"

#define MS NS_PER_MS

/* --- tcp --- */

static void tcp_passes_and_ends_with_a_reset(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_tcp_target(&bench, 3);
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_OK);
    assert_int_equal(bench.results[0].id.slot, 3);
    assert_int_equal(bench_read_to_end(&bench, fd), ECONNRESET);
    close(fd);
    bench_close(&bench);
}

/* A listener of 127.0.0.2 whose queue a connection fills: further SYNs are dropped. */
static void open_silent(struct probe_target *target, int ret_fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
    socklen_t n_bytes = sizeof at;

    ret_fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    ret_fds[1] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(ret_fds[0], (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(ret_fds[0], 0), 0);
    assert_int_equal(getsockname(ret_fds[0], (struct sockaddr *)&at, &n_bytes), 0);
    assert_int_equal(connect(ret_fds[1], (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(addr_parse("127.0.0.2", &target->definition.to.addr, NULL), 0);
    target->definition.to.port = ntohs(at.sin_port);
    own_check(&target->definition)->timeout_ms = BENCH_TIMEOUT_MS;
}

/* A socket that is kept must bring nothing of its last probe along: neither its error, nor its
 * connection, nor what the server sent. */
static void a_kept_socket_serves_a_closed_and_a_silent_backend_as_a_new_one(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target open = bench_tcp_target(&bench, 0);
    struct probe_target closed = bench_tcp_target(&bench, 1);
    struct probe_target silent = bench_tcp_target(&bench, 2);
    closed.definition.to.port = 1;
    int queued[2];
    open_silent(&silent, queued);
    for (unsigned i = 0; i < 4; i++) {
        bench_submit(&bench, &open);
        int fd = bench_accept(&bench);
        assert_int_equal(send(fd, "hello", 5, MSG_NOSIGNAL), 5);
        bench_run_until(&bench, 3 * i + 1);
        bench_assert_result(&bench, 3 * i, REASON_OK);
        assert_int_equal(bench_read_to_end(&bench, fd), ECONNRESET);
        bench_submit(&bench, i % 2 == 0 ? &closed : &silent);
        bench_run_until(&bench, 3 * i + 2);
        bench_assert_result(&bench, 3 * i + 1,
                            i % 2 == 0 ? REASON_CONNECT_FAILED : REASON_CONNECT_TIMEOUT);
        bench_submit(&bench, &open);
        bench_run_until(&bench, 3 * i + 3);
        bench_assert_result(&bench, 3 * i + 2, REASON_OK);
        close(bench_accept(&bench));
        close(fd);
    }
    close(queued[0]);
    close(queued[1]);
    bench_close(&bench);
}

static void tcp_close_by_fin_is_a_fin(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_tcp_target(&bench, 3);
    own_check(&target.definition)->tcp.close = TCP_CLOSE_FIN;
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_OK);
    assert_int_equal(bench_read_to_end(&bench, fd), 0);
    close(fd);
    bench_close(&bench);
}

static void tcp_passes_over_ipv6(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET6, 8);
    struct probe_target target = bench_tcp_target(&bench, 0);
    assert_int_equal(addr_parse("::1", &target.definition.to.addr, NULL), 0);
    bench_submit(&bench, &target);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_OK);
    bench_close(&bench);
}

static void a_closed_port_fails_at_once(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, -1);
    struct probe_target tcp = bench_tcp_target(&bench, 0);
    struct probe_target http = bench_http_target(&bench, 1);
    bench_submit(&bench, &tcp);
    bench_submit(&bench, &http);
    assert_int_equal(bench.n_results, 0); /* never from inside submit */
    bench_run_until(&bench, 2);

    bench_assert_result(&bench, 0, REASON_CONNECT_FAILED);
    bench_assert_result(&bench, 1, REASON_CONNECT_FAILED);
    bench_close(&bench);
}

/* The listener's queue is full, so the kernel drops further SYNs: silence. */
static void no_answer_to_the_syn_is_a_connect_timeout_at_t(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 8);
    bench_listen(&bench, AF_INET, 0);
    struct probe_target fill = bench_tcp_target(&bench, 9);
    bench_submit(&bench, &fill);
    bench_run_until(&bench, 1);
    bench_assert_result(&bench, 0, REASON_OK);

    struct probe_target tcp = bench_tcp_target(&bench, 0);
    struct probe_target http = bench_http_target(&bench, 1);
    own_check(&tcp.definition)->timeout_ms = BENCH_TIMEOUT_MS;
    own_check(&http.definition)->timeout_ms = BENCH_TIMEOUT_MS;
    bench_submit(&bench, &tcp);
    bench_submit(&bench, &http);
    bench_run_until(&bench, 3);

    for (unsigned i = 1; i < 3; i++) {
        bench_assert_result(&bench, i, REASON_CONNECT_TIMEOUT);
        assert_in_range(bench_took_ms(&bench, i), BENCH_TIMEOUT_MS, 10 * BENCH_TIMEOUT_MS);
    }
    bench_close(&bench);
}

/* --- slots and lanes --- */

static void an_abandoned_probe_closes_its_connection_and_says_nothing(void **state)
{
    struct engine_bench bench;
    char text[1024];

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_http_target(&bench, 1);
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    bench_read_request(&bench, fd, text, sizeof text);
    bench.engine->ops->abandon(bench.engine, 1);
    bench.engine->ops->abandon(bench.engine, 1); /* nothing under way is fine */

    assert_int_equal(bench_read_to_end(&bench, fd), ECONNRESET);
    assert_int_equal(bench.n_results, 0);
    assert_int_equal(bench.engine->ops->next_ns(bench.engine), UINT64_MAX);
    close(fd);
    bench_close(&bench);
}

/* A13: never more than one open socket per target. */
static void a_new_probe_ends_the_connection_that_lingers(void **state)
{
    struct engine_bench bench;
    char text[1024];

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_http_target(&bench, 1);
    bench_submit(&bench, &target);
    int first = bench_accept(&bench);
    bench_read_request(&bench, first, text, sizeof text);
    bench_say(first, "HTTP/1.1 200 OK\r\n\r\n");
    bench_run_until(&bench, 1);
    bench_submit(&bench, &target);

    char byte;
    assert_int_equal(recv(first, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, ECONNRESET);
    int second = bench_accept(&bench);
    bench_read_request(&bench, second, text, sizeof text);
    bench_say(second, "HTTP/1.1 204 OK\r\n\r\n");
    bench_run_until(&bench, 2);
    assert_int_equal(bench.results[1].http_status, 204);
    close(first);
    close(second);
    bench_close(&bench);
}

static void lingering_connections_never_keep_a_probe_waiting(void **state)
{
    struct engine_bench bench;
    char text[1024];
    int fds[6];
    struct probe_target targets[6];

    (void)state;
    bench_init(&bench, 2); /* two places, six probes one after the other */
    bench_listen(&bench, AF_INET, 8);
    for (unsigned i = 0; i < 6; i++) {
        targets[i] = bench_http_target(&bench, i);
        bench_submit(&bench, &targets[i]);
        fds[i] = bench_accept(&bench);
        bench_read_request(&bench, fds[i], text, sizeof text);
        bench_say(fds[i], "HTTP/1.1 200 OK\r\n\r\n");
        bench_run_until(&bench, i + 1);
        bench_assert_result(&bench, i, REASON_OK);
    }

    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(bench_read_to_end(&bench, fds[i]), ECONNRESET);
        close(fds[i]);
    }
    bench_close(&bench);
}

/* --- this node's own faults --- */

static void no_free_descriptor_is_inconclusive_and_the_next_probe_counts(void **state)
{
    struct engine_bench bench;
    struct rlimit before;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_tcp_target(&bench, 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bench_submit(&bench, &target);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    bench_run_until(&bench, 1);
    bench_submit(&bench, &target);
    bench_run_until(&bench, 2);

    bench_assert_result(&bench, 0, REASON_LOCAL_NO_DESCRIPTOR);
    bench_assert_result(&bench, 1, REASON_OK);
    bench_close(&bench);
}

/* A14. */
static void a_source_that_is_not_here_is_inconclusive(void **state)
{
    static const char *const sources[] = {"192.0.2.77", "2001:db8::77"};
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    for (unsigned i = 0; i < 2; i++) {
        struct probe_target target = bench_tcp_target(&bench, 1);

        assert_int_equal(addr_parse(sources[i], &target.source, NULL), 0);
        bench_submit(&bench, &target);
        bench_run_until(&bench, i + 1);
        bench_assert_result(&bench, i, REASON_LOCAL_SOURCE_MISSING);
    }
    bench_close(&bench);
}

/* A14. */
static void probes_leave_from_the_given_source(void **state)
{
    struct engine_bench bench;
    struct sockaddr_in peer;
    socklen_t n_bytes = sizeof peer;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_tcp_target(&bench, 1);
    assert_int_equal(addr_parse("127.0.0.2", &target.source, NULL), 0);
    bench_submit(&bench, &target);
    int fd = accept(bench.listener, (struct sockaddr *)&peer, &n_bytes);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_OK);
    assert_int_equal(ntohl(peer.sin_addr.s_addr), 0x7f000002);
    close(fd);
    bench_close(&bench);
}

static void a_timeout_that_this_thread_slept_through_is_late(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_http_target(&bench, 1);
    own_check(&target.definition)->timeout_ms = BENCH_TIMEOUT_MS;
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    bench.lateness.stalled_ns += BENCH_TIMEOUT_MS * MS / 2;
    bench_run_until(&bench, 1);
    bench_assert_result(&bench, 0, REASON_LOCAL_LATE);

    bench_submit(&bench, &target); /* the stall is over */
    bench_run_until(&bench, 2);
    bench_assert_result(&bench, 1, REASON_RECV_RESPONSE_TIMEOUT);
    close(fd);
    bench_close(&bench);
}

/* The engine is not run until long after the deadline; the answer is there by then. */
static void an_answer_found_long_after_the_deadline_is_late(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_tcp_target(&bench, 1);
    own_check(&target.definition)->timeout_ms = 100;
    bench_submit(&bench, &target);
    for (uint64_t until_ns = clock_monotonic_ns() + 120 * MS; clock_monotonic_ns() < until_ns;) {
        poll(NULL, 0, 20);
    }
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_LOCAL_LATE);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_passes_and_ends_with_a_reset),
        cmocka_unit_test(a_kept_socket_serves_a_closed_and_a_silent_backend_as_a_new_one),
        cmocka_unit_test(tcp_close_by_fin_is_a_fin),
        cmocka_unit_test(tcp_passes_over_ipv6),
        cmocka_unit_test(a_closed_port_fails_at_once),
        cmocka_unit_test(no_answer_to_the_syn_is_a_connect_timeout_at_t),
        cmocka_unit_test(an_abandoned_probe_closes_its_connection_and_says_nothing),
        cmocka_unit_test(a_new_probe_ends_the_connection_that_lingers),
        cmocka_unit_test(lingering_connections_never_keep_a_probe_waiting),
        cmocka_unit_test(no_free_descriptor_is_inconclusive_and_the_next_probe_counts),
        cmocka_unit_test(a_source_that_is_not_here_is_inconclusive),
        cmocka_unit_test(probes_leave_from_the_given_source),
        cmocka_unit_test(a_timeout_that_this_thread_slept_through_is_late),
        cmocka_unit_test(an_answer_found_long_after_the_deadline_is_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
