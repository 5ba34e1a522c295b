/* The http probe of the connect engine, step by step: spec.md 4; cases A01, A03-A08, A13;
 * R-PROBE-1, R-PROBE-3. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/core/http_request.h"
#include "common/base/clock.h"
#include "tests/lib/engine_bench.h"
#include "tests/lib/kept_check.h"

#define MS NS_PER_MS

struct reply_row {
    const char *reply;
    enum probe_reason reason;
    unsigned status;
};

static void http_replies_have_their_outcome_at_the_empty_line(void **state)
{
    static const struct reply_row rows[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", REASON_OK, 200},
        {"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", REASON_OK, 200},      /* A01 */
        {"HTTP/1.1 200 OK\r\nContent-Length: 1192\r\n\r\n", REASON_OK, 200}, /* A04 */
        {"HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", REASON_OK, 304},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", REASON_OK, 200}, /* A08 a */
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", REASON_OK, 200},
        {"HTTP/1.1 302 x\r\nLocation: http://198.51.100.9/up\r\n\r\n", REASON_OK, 302}, /* A03 */
        {"HTTP/1.1 100 x\r\n\r\nHTTP/1.1 204 x\r\n\r\n", REASON_OK, 204},
        {"HTTP/1.1 101 x\r\n\r\n", REASON_HTTP_CODE_NOT_MATCH, 101},
        {"HTTP/1.1 404 x\r\n\r\n", REASON_HTTP_CODE_NOT_MATCH, 404},
        {"HTTP/1.1 600 x\r\n\r\n", REASON_HTTP_INVALID_HEADER, 0},
        {"SSH-2.0-OpenSSH\r\n", REASON_HTTP_INVALID_HEADER, 0},
        {"\x15\x03\x01\x02\x02\x16", REASON_HTTP_INVALID_HEADER, 0},
    };
    struct engine_bench bench;
    char text[1024];

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct probe_target target = bench_http_target(&bench, 1);

        bench.n_results = 0;
        bench_submit(&bench, &target);
        int fd = bench_accept(&bench);
        bench_read_request(&bench, fd, text, sizeof text);
        bench_say(fd, rows[i].reply);
        bench_run_until(&bench, 1);

        bench_assert_result(&bench, 0, rows[i].reason);
        assert_int_equal(bench.results[0].http_status, rows[i].status);
        close(fd);
    }
    bench_close(&bench);
}

static void the_request_on_the_wire_is_the_built_one(void **state)
{
    struct engine_bench bench;
    char text[1024];
    char expected[HTTP_REQUEST_BYTES_MAX + 1];

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_http_target(&bench, 1);
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    bench_read_request(&bench, fd, text, sizeof text);

    expected[http_request_build(&target.definition, expected)] = '\0';
    assert_string_equal(text, expected);
    close(fd);
    bench_close(&bench);
}

/* A07, A13: a server that closes in time sees FIN for its FIN, and TIME_WAIT is its own. */
static void a_server_that_closes_first_is_answered_by_fin(void **state)
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
    bench_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    bench_run_until(&bench, 1);
    bench_say(fd, "hello");
    shutdown(fd, SHUT_WR);

    assert_int_equal(bench_read_to_end(&bench, fd), 0);
    bench_assert_result(&bench, 0, REASON_OK);
    assert_int_equal(bench.n_results, 1);
    close(fd);
    bench_close(&bench);
}

static void a_server_that_keeps_the_connection_is_reset_after_the_linger_time(void **state)
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
    bench_say(fd, "HTTP/1.1 200 OK\r\n\r\n");
    bench_run_until(&bench, 1);
    uint64_t result_ns = clock_monotonic_ns();

    assert_int_equal(bench_read_to_end(&bench, fd), ECONNRESET);
    assert_in_range((clock_monotonic_ns() - result_ns) / MS, 90, 1000);
    assert_int_equal(bench.engine->ops->next_ns(bench.engine), UINT64_MAX);
    close(fd);
    bench_close(&bench);
}

/* A06. */
static void a_body_that_never_ends_is_cut_at_once(void **state)
{
    struct engine_bench bench;
    char text[1024];
    char body[4096] = {0};
    uint64_t n_sent = 0;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_http_target(&bench, 1);
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    bench_read_request(&bench, fd, text, sizeof text);
    bench_say(fd, "HTTP/1.1 200 OK\r\n\r\n");
    bench_run_until(&bench, 1);
    uint64_t result_ns = clock_monotonic_ns();
    for (;;) {
        ssize_t n = send(fd, body, sizeof body, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN) {
            break;
        }
        n_sent += n > 0 ? (uint64_t)n : 0;
        assert_true(clock_monotonic_ns() < result_ns + BENCH_PATIENCE_NS);
        bench_step(&bench);
    }

    bench_assert_result(&bench, 0, REASON_OK);
    print_message("reset after %llu body bytes, %llu ms\n", (unsigned long long)n_sent,
                  (unsigned long long)((clock_monotonic_ns() - result_ns) / MS));
    assert_true(n_sent < 1024 * 1024);
    assert_int_equal(bench.engine->ops->next_ns(bench.engine), UINT64_MAX);
    close(fd);
    bench_close(&bench);
}

/* A08 d. */
static void a_server_that_hangs_up_is_an_interrupt(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_http_target(&bench, 1);
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    shutdown(fd, SHUT_WR);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_CONNECT_INTERRUPT);
    close(fd);
    bench_close(&bench);
}

static void reset(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

static void a_reset_inside_the_header_is_an_interrupt(void **state)
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
    bench_say(fd, "HTTP/1.1 200 OK\r\nServer:");
    bench_step(&bench);
    reset(fd);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_CONNECT_INTERRUPT);
    assert_int_equal(bench.results[0].http_status, 200);
    bench_close(&bench);
}

/* Whether the reset is seen together with the SYN-ACK or after it depends on the scheduler; the
 * outcome must not. */
static void a_reset_right_behind_the_handshake_passes_tcp_and_interrupts_http(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target tcp = bench_tcp_target(&bench, 0);
    bench_submit(&bench, &tcp);
    reset(accept(bench.listener, NULL, NULL)); /* the engine has not looked yet */
    bench_run_until(&bench, 1);
    bench_assert_result(&bench, 0, REASON_OK);

    struct probe_target http = bench_http_target(&bench, 1);
    bench_submit(&bench, &http);
    reset(accept(bench.listener, NULL, NULL));
    bench_run_until(&bench, 2);
    bench_assert_result(&bench, 1, REASON_CONNECT_INTERRUPT);
    bench_close(&bench);
}

/* An overloaded server answers and closes without reading. */
static void an_answer_before_the_request_counts(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_http_target(&bench, 1);
    bench_submit(&bench, &target);
    int fd = accept(bench.listener, NULL, NULL);
    bench_say(fd, "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n");
    close(fd);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_HTTP_CODE_NOT_MATCH);
    assert_int_equal(bench.results[0].http_status, 503);
    bench_close(&bench);
}

/* A05, R-PROBE-1. */
static void dripping_bytes_do_not_move_the_deadline(void **state)
{
    struct engine_bench bench;
    char text[1024];
    unsigned n_drops = 0;

    (void)state;
    bench_init(&bench, 4);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = bench_http_target(&bench, 1);
    own_check(&target.definition)->timeout_ms = BENCH_TIMEOUT_MS;
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    bench_read_request(&bench, fd, text, sizeof text);
    bench_say(fd, "HTTP/1.1 200 OK\r\nA: ");
    uint64_t give_up_ns = clock_monotonic_ns() + BENCH_PATIENCE_NS;
    while (bench.n_results == 0) {
        send(fd, "x", 1, MSG_NOSIGNAL);
        n_drops++;
        assert_true(clock_monotonic_ns() < give_up_ns);
        bench_step(&bench);
        poll(NULL, 0, 3);
    }

    bench_assert_result(&bench, 0, REASON_RECV_RESPONSE_TIMEOUT);
    assert_in_range(bench_took_ms(&bench, 0), BENCH_TIMEOUT_MS, 10 * BENCH_TIMEOUT_MS);
    print_message("%u single bytes, deadline %u ms, ended after %llu ms\n", n_drops,
                  BENCH_TIMEOUT_MS, (unsigned long long)bench_took_ms(&bench, 0));
    assert_int_equal(bench_read_to_end(&bench, fd), ECONNRESET);
    close(fd);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_replies_have_their_outcome_at_the_empty_line),
        cmocka_unit_test(the_request_on_the_wire_is_the_built_one),
        cmocka_unit_test(a_server_that_closes_first_is_answered_by_fin),
        cmocka_unit_test(a_server_that_keeps_the_connection_is_reset_after_the_linger_time),
        cmocka_unit_test(a_body_that_never_ends_is_cut_at_once),
        cmocka_unit_test(a_server_that_hangs_up_is_an_interrupt),
        cmocka_unit_test(a_reset_inside_the_header_is_an_interrupt),
        cmocka_unit_test(a_reset_right_behind_the_handshake_passes_tcp_and_interrupts_http),
        cmocka_unit_test(an_answer_before_the_request_counts),
        cmocka_unit_test(dripping_bytes_do_not_move_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
