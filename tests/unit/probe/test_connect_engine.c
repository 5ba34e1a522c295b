/* The connect engine against sockets of this process on loopback: both ends are driven step by step
 * from one thread. spec.md 4; cases A01, A04-A08, A12-A14; R-PROBE-1, R-PROBE-3, R-SELF-3. */
#include <errno.h>
#include <fcntl.h>
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

#include "agent/core/http_request.h"
#include "agent/probe/connect_engine.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/str.h"

#define MS NS_PER_MS
/* T where the probe is to time out, and T where it is not, however busy the machine. */
#define TIMEOUT_MS 300
#define LONG_TIMEOUT_MS 10000
#define PATIENCE_NS (3 * LONG_TIMEOUT_MS * MS)

struct bench {
    struct probe_engine *engine;
    struct probe_lateness lateness;
    struct probe_result results[16];
    unsigned n_results;
    int listener;
    uint16_t port;
};

static void keep_result(void *user, const struct probe_result *result)
{
    struct bench *bench = user;

    assert_true(bench->n_results < 16);
    bench->results[bench->n_results++] = *result;
}

/* family: AF_INET or AF_INET6. backlog < 0: the port is taken, but nobody listens. */
static void open_listener(struct bench *bench, int family, int backlog)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    socklen_t n_bytes = sizeof address;

    bench->listener = socket(family, SOCK_STREAM, 0);
    assert_true(bench->listener >= 0);
    if (family == AF_INET6) {
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    } else {
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    assert_int_equal(bind(bench->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(bench->listener, (struct sockaddr *)&address, &n_bytes), 0);
    bench->port = ntohs(family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                           : ((struct sockaddr_in *)&address)->sin_port);
    if (backlog >= 0) {
        assert_int_equal(listen(bench->listener, backlog), 0);
    }
}

static void bench_init(struct bench *bench, uint32_t capacity)
{
    uint64_t now_ns = clock_monotonic_ns();

    memset(bench, 0, sizeof *bench);
    bench->listener = -1;
    probe_lateness_init(&bench->lateness, now_ns, now_ns);
    assert_int_equal(connect_engine_new(capacity, &bench->lateness, &bench->engine, NULL), 0);
}

static void bench_close(struct bench *bench)
{
    bench->engine->ops->free(bench->engine);
    if (bench->listener >= 0) {
        close(bench->listener);
    }
}

static struct probe_target tcp_target(const struct bench *bench, uint32_t slot)
{
    struct probe_target target = {
        .id = {.slot = slot, .birth = 1},
        .definition = {.to.port = bench->port,
                       .check = {.type = CHECK_TYPE_TCP,
                                 .timeout_ms = LONG_TIMEOUT_MS,
                                 .interval_ms = 100,
                                 .tcp = {.handshake = TCP_FULL, .close = TCP_CLOSE_RST}}},
    };

    assert_int_equal(addr_parse("127.0.0.1", &target.definition.to.addr, NULL), 0);
    return target;
}

static struct probe_target http_target(const struct bench *bench, uint32_t slot)
{
    struct probe_target target = tcp_target(bench, slot);

    target.definition.check.type = CHECK_TYPE_HTTP;
    target.definition.check.http.method = HTTP_GET;
    target.definition.check.http.version = HTTP_1_1;
    target.definition.check.http.host = HTTP_HOST_ADDRESS_PORT;
    str_copy(target.definition.check.http.path, LIMIT_PATH_BYTES, "/");
    http_codes_add(&target.definition.check.http.expect, 200, 399);
    return target;
}

/* One wait and one run, of at most 5 ms, so that the other end can act in between. */
static void step(struct bench *bench)
{
    const struct probe_sink sink = {.result = keep_result, .user = bench};
    struct pollfd poll_fd = {.fd = bench->engine->fd, .events = POLLIN};
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t next_ns = bench->engine->ops->next_ns(bench->engine);
    int wait_ms = next_ns <= now_ns ? 0 : 5;

    poll(&poll_fd, 1, wait_ms);
    bench->engine->ops->run(bench->engine, &sink);
}

static void run_until_results(struct bench *bench, unsigned n_results)
{
    uint64_t give_up_ns = clock_monotonic_ns() + PATIENCE_NS;

    while (bench->n_results < n_results) {
        assert_true(clock_monotonic_ns() < give_up_ns);
        step(bench);
    }
}

static void submit(struct bench *bench, const struct probe_target *target)
{
    bench->engine->ops->submit(bench->engine, target);
}

/* The next connection, non-blocking; the engine runs meanwhile. */
static int accept_one(struct bench *bench)
{
    uint64_t give_up_ns = clock_monotonic_ns() + PATIENCE_NS;

    fcntl(bench->listener, F_SETFL, O_NONBLOCK);
    for (;;) {
        int fd = accept4(bench->listener, NULL, NULL, SOCK_NONBLOCK);
        if (fd >= 0) {
            return fd;
        }
        assert_true(clock_monotonic_ns() < give_up_ns);
        step(bench);
    }
}

/* Until the connection ends at the server's side: 0 = FIN, else the errno. Bytes before it are
 * kept in text, which may be NULL. */
static int read_to_end(struct bench *bench, int fd, char *text, size_t text_bytes)
{
    uint64_t give_up_ns = clock_monotonic_ns() + PATIENCE_NS;
    size_t n_kept = 0;
    char buffer[4096];

    for (;;) {
        ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            return n == 0 ? 0 : errno;
        }
        if (n > 0 && text != NULL) {
            assert_true(n_kept + (size_t)n < text_bytes);
            memcpy(text + n_kept, buffer, (size_t)n);
            n_kept += (size_t)n;
            text[n_kept] = '\0';
        }
        assert_true(clock_monotonic_ns() < give_up_ns);
        step(bench);
    }
}

/* The whole request; the connection stays open. */
static void read_request(struct bench *bench, int fd, char *text, size_t text_bytes)
{
    uint64_t give_up_ns = clock_monotonic_ns() + PATIENCE_NS;
    size_t n_kept = 0;

    text[0] = '\0';
    while (strstr(text, "\r\n\r\n") == NULL) {
        ssize_t n = recv(fd, text + n_kept, text_bytes - n_kept - 1, MSG_DONTWAIT);
        if (n > 0) {
            n_kept += (size_t)n;
            text[n_kept] = '\0';
        }
        assert_true(n != 0 && clock_monotonic_ns() < give_up_ns);
        step(bench);
    }
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void assert_result(const struct bench *bench, unsigned index, enum probe_reason reason)
{
    assert_true(index < bench->n_results);
    if (bench->results[index].reason != reason) {
        fail_msg("result %u is %s, expected %s", index,
                 probe_reason_word(bench->results[index].reason), probe_reason_word(reason));
    }
    assert_int_equal(bench->results[index].probe_class, probe_reason_class(reason));
}

static uint64_t took_ms(const struct bench *bench, unsigned index)
{
    return (bench->results[index].end_ns - bench->results[index].start_ns) / MS;
}

/* --- tcp --- */

static void tcp_passes_and_ends_with_a_reset(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = tcp_target(&bench, 3);
    submit(&bench, &target);
    int fd = accept_one(&bench);
    run_until_results(&bench, 1);

    assert_result(&bench, 0, REASON_OK);
    assert_int_equal(bench.results[0].id.slot, 3);
    assert_int_equal(read_to_end(&bench, fd, NULL, 0), ECONNRESET);
    close(fd);
    bench_close(&bench);
}

static void tcp_close_by_fin_is_a_fin(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = tcp_target(&bench, 3);
    target.definition.check.tcp.close = TCP_CLOSE_FIN;
    submit(&bench, &target);
    int fd = accept_one(&bench);
    run_until_results(&bench, 1);

    assert_result(&bench, 0, REASON_OK);
    assert_int_equal(read_to_end(&bench, fd, NULL, 0), 0);
    close(fd);
    bench_close(&bench);
}

static void tcp_passes_over_ipv6(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET6, 8);
    struct probe_target target = tcp_target(&bench, 0);
    assert_int_equal(addr_parse("::1", &target.definition.to.addr, NULL), 0);
    submit(&bench, &target);
    run_until_results(&bench, 1);

    assert_result(&bench, 0, REASON_OK);
    bench_close(&bench);
}

static void a_closed_port_fails_at_once(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, -1);
    struct probe_target tcp = tcp_target(&bench, 0);
    struct probe_target http = http_target(&bench, 1);
    submit(&bench, &tcp);
    submit(&bench, &http);
    assert_int_equal(bench.n_results, 0); /* never from inside submit */
    run_until_results(&bench, 2);

    assert_result(&bench, 0, REASON_CONNECT_FAILED);
    assert_result(&bench, 1, REASON_CONNECT_FAILED);
    bench_close(&bench);
}

/* The listener's queue is full, so the kernel drops further SYNs: silence. */
static void no_answer_to_the_syn_is_a_connect_timeout_at_t(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, 8);
    open_listener(&bench, AF_INET, 0);
    struct probe_target fill = tcp_target(&bench, 9);
    submit(&bench, &fill);
    run_until_results(&bench, 1);
    assert_result(&bench, 0, REASON_OK);

    struct probe_target tcp = tcp_target(&bench, 0);
    struct probe_target http = http_target(&bench, 1);
    tcp.definition.check.timeout_ms = TIMEOUT_MS;
    http.definition.check.timeout_ms = TIMEOUT_MS;
    submit(&bench, &tcp);
    submit(&bench, &http);
    run_until_results(&bench, 3);

    for (unsigned i = 1; i < 3; i++) {
        assert_result(&bench, i, REASON_CONNECT_TIMEOUT);
        assert_in_range(took_ms(&bench, i), TIMEOUT_MS, 10 * TIMEOUT_MS);
    }
    bench_close(&bench);
}

/* --- http --- */

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
    struct bench bench;
    char text[1024];

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct probe_target target = http_target(&bench, 1);

        bench.n_results = 0;
        submit(&bench, &target);
        int fd = accept_one(&bench);
        read_request(&bench, fd, text, sizeof text);
        say(fd, rows[i].reply);
        run_until_results(&bench, 1);

        assert_result(&bench, 0, rows[i].reason);
        assert_int_equal(bench.results[0].http_status, rows[i].status);
        close(fd);
    }
    bench_close(&bench);
}

static void the_request_on_the_wire_is_the_built_one(void **state)
{
    struct bench bench;
    char text[1024];
    char expected[HTTP_REQUEST_BYTES_MAX + 1];

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    submit(&bench, &target);
    int fd = accept_one(&bench);
    read_request(&bench, fd, text, sizeof text);

    expected[http_request_build(&target.definition, expected)] = '\0';
    assert_string_equal(text, expected);
    close(fd);
    bench_close(&bench);
}

/* A07, A13: a server that closes in time sees FIN for its FIN, and TIME_WAIT is its own. */
static void a_server_that_closes_first_is_answered_by_fin(void **state)
{
    struct bench bench;
    char text[1024];

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    submit(&bench, &target);
    int fd = accept_one(&bench);
    read_request(&bench, fd, text, sizeof text);
    say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    run_until_results(&bench, 1);
    say(fd, "hello");
    shutdown(fd, SHUT_WR);

    assert_int_equal(read_to_end(&bench, fd, NULL, 0), 0);
    assert_result(&bench, 0, REASON_OK);
    assert_int_equal(bench.n_results, 1);
    close(fd);
    bench_close(&bench);
}

static void a_server_that_keeps_the_connection_is_reset_after_the_linger_time(void **state)
{
    struct bench bench;
    char text[1024];

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    submit(&bench, &target);
    int fd = accept_one(&bench);
    read_request(&bench, fd, text, sizeof text);
    say(fd, "HTTP/1.1 200 OK\r\n\r\n");
    run_until_results(&bench, 1);
    uint64_t result_ns = clock_monotonic_ns();

    assert_int_equal(read_to_end(&bench, fd, NULL, 0), ECONNRESET);
    assert_in_range((clock_monotonic_ns() - result_ns) / MS, 90, 1000);
    assert_int_equal(bench.engine->ops->next_ns(bench.engine), UINT64_MAX);
    close(fd);
    bench_close(&bench);
}

/* A06. */
static void a_body_that_never_ends_is_cut_at_once(void **state)
{
    struct bench bench;
    char text[1024];
    char body[4096] = {0};
    uint64_t n_sent = 0;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    submit(&bench, &target);
    int fd = accept_one(&bench);
    read_request(&bench, fd, text, sizeof text);
    say(fd, "HTTP/1.1 200 OK\r\n\r\n");
    run_until_results(&bench, 1);
    uint64_t result_ns = clock_monotonic_ns();
    for (;;) {
        ssize_t n = send(fd, body, sizeof body, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN) {
            break;
        }
        n_sent += n > 0 ? (uint64_t)n : 0;
        assert_true(clock_monotonic_ns() < result_ns + PATIENCE_NS);
        step(&bench);
    }

    assert_result(&bench, 0, REASON_OK);
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
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    submit(&bench, &target);
    int fd = accept_one(&bench);
    shutdown(fd, SHUT_WR);
    run_until_results(&bench, 1);

    assert_result(&bench, 0, REASON_CONNECT_INTERRUPT);
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
    struct bench bench;
    char text[1024];

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    submit(&bench, &target);
    int fd = accept_one(&bench);
    read_request(&bench, fd, text, sizeof text);
    say(fd, "HTTP/1.1 200 OK\r\nServer:");
    step(&bench);
    reset(fd);
    run_until_results(&bench, 1);

    assert_result(&bench, 0, REASON_CONNECT_INTERRUPT);
    assert_int_equal(bench.results[0].http_status, 200);
    bench_close(&bench);
}

/* Whether the reset is seen together with the SYN-ACK or after it depends on the scheduler; the
 * outcome must not. */
static void a_reset_right_behind_the_handshake_passes_tcp_and_interrupts_http(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target tcp = tcp_target(&bench, 0);
    submit(&bench, &tcp);
    reset(accept(bench.listener, NULL, NULL)); /* the engine has not looked yet */
    run_until_results(&bench, 1);
    assert_result(&bench, 0, REASON_OK);

    struct probe_target http = http_target(&bench, 1);
    submit(&bench, &http);
    reset(accept(bench.listener, NULL, NULL));
    run_until_results(&bench, 2);
    assert_result(&bench, 1, REASON_CONNECT_INTERRUPT);
    bench_close(&bench);
}

/* An overloaded server answers and closes without reading. */
static void an_answer_before_the_request_counts(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    submit(&bench, &target);
    int fd = accept(bench.listener, NULL, NULL);
    say(fd, "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n");
    close(fd);
    run_until_results(&bench, 1);

    assert_result(&bench, 0, REASON_HTTP_CODE_NOT_MATCH);
    assert_int_equal(bench.results[0].http_status, 503);
    bench_close(&bench);
}

/* A05, R-PROBE-1. */
static void dripping_bytes_do_not_move_the_deadline(void **state)
{
    struct bench bench;
    char text[1024];
    unsigned n_drops = 0;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    target.definition.check.timeout_ms = TIMEOUT_MS;
    submit(&bench, &target);
    int fd = accept_one(&bench);
    read_request(&bench, fd, text, sizeof text);
    say(fd, "HTTP/1.1 200 OK\r\nA: ");
    uint64_t give_up_ns = clock_monotonic_ns() + PATIENCE_NS;
    while (bench.n_results == 0) {
        send(fd, "x", 1, MSG_NOSIGNAL);
        n_drops++;
        assert_true(clock_monotonic_ns() < give_up_ns);
        step(&bench);
        poll(NULL, 0, 3);
    }

    assert_result(&bench, 0, REASON_RECV_RESPONSE_TIMEOUT);
    assert_in_range(took_ms(&bench, 0), TIMEOUT_MS, 10 * TIMEOUT_MS);
    print_message("%u single bytes, deadline %u ms, ended after %llu ms\n", n_drops, TIMEOUT_MS,
                  (unsigned long long)took_ms(&bench, 0));
    assert_int_equal(read_to_end(&bench, fd, NULL, 0), ECONNRESET);
    close(fd);
    bench_close(&bench);
}

/* --- slots and lanes --- */

static void an_abandoned_probe_closes_its_connection_and_says_nothing(void **state)
{
    struct bench bench;
    char text[1024];

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    submit(&bench, &target);
    int fd = accept_one(&bench);
    read_request(&bench, fd, text, sizeof text);
    bench.engine->ops->abandon(bench.engine, 1);
    bench.engine->ops->abandon(bench.engine, 1); /* nothing under way is fine */

    assert_int_equal(read_to_end(&bench, fd, NULL, 0), ECONNRESET);
    assert_int_equal(bench.n_results, 0);
    assert_int_equal(bench.engine->ops->next_ns(bench.engine), UINT64_MAX);
    close(fd);
    bench_close(&bench);
}

/* A13: never more than one open socket per target. */
static void a_new_probe_ends_the_connection_that_lingers(void **state)
{
    struct bench bench;
    char text[1024];

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    submit(&bench, &target);
    int first = accept_one(&bench);
    read_request(&bench, first, text, sizeof text);
    say(first, "HTTP/1.1 200 OK\r\n\r\n");
    run_until_results(&bench, 1);
    submit(&bench, &target);

    char byte;
    assert_int_equal(recv(first, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, ECONNRESET);
    int second = accept_one(&bench);
    read_request(&bench, second, text, sizeof text);
    say(second, "HTTP/1.1 204 OK\r\n\r\n");
    run_until_results(&bench, 2);
    assert_int_equal(bench.results[1].http_status, 204);
    close(first);
    close(second);
    bench_close(&bench);
}

static void lingering_connections_never_keep_a_probe_waiting(void **state)
{
    struct bench bench;
    char text[1024];
    int fds[6];
    struct probe_target targets[6];

    (void)state;
    bench_init(&bench, 2); /* two places, six probes one after the other */
    open_listener(&bench, AF_INET, 8);
    for (unsigned i = 0; i < 6; i++) {
        targets[i] = http_target(&bench, i);
        submit(&bench, &targets[i]);
        fds[i] = accept_one(&bench);
        read_request(&bench, fds[i], text, sizeof text);
        say(fds[i], "HTTP/1.1 200 OK\r\n\r\n");
        run_until_results(&bench, i + 1);
        assert_result(&bench, i, REASON_OK);
    }

    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(read_to_end(&bench, fds[i], NULL, 0), ECONNRESET);
        close(fds[i]);
    }
    bench_close(&bench);
}

/* --- this node's own faults --- */

static void no_free_descriptor_is_inconclusive_and_the_next_probe_counts(void **state)
{
    struct bench bench;
    struct rlimit before;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = tcp_target(&bench, 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    submit(&bench, &target);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    run_until_results(&bench, 1);
    submit(&bench, &target);
    run_until_results(&bench, 2);

    assert_result(&bench, 0, REASON_LOCAL_NO_DESCRIPTOR);
    assert_result(&bench, 1, REASON_OK);
    bench_close(&bench);
}

/* A14. */
static void a_source_that_is_not_here_is_inconclusive(void **state)
{
    static const char *const sources[] = {"192.0.2.77", "2001:db8::77"};
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    for (unsigned i = 0; i < 2; i++) {
        struct probe_target target = tcp_target(&bench, 1);

        assert_int_equal(addr_parse(sources[i], &target.source, NULL), 0);
        submit(&bench, &target);
        run_until_results(&bench, i + 1);
        assert_result(&bench, i, REASON_LOCAL_SOURCE_MISSING);
    }
    bench_close(&bench);
}

/* A14. */
static void probes_leave_from_the_given_source(void **state)
{
    struct bench bench;
    struct sockaddr_in peer;
    socklen_t n_bytes = sizeof peer;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = tcp_target(&bench, 1);
    assert_int_equal(addr_parse("127.0.0.2", &target.source, NULL), 0);
    submit(&bench, &target);
    int fd = accept(bench.listener, (struct sockaddr *)&peer, &n_bytes);
    run_until_results(&bench, 1);

    assert_result(&bench, 0, REASON_OK);
    assert_int_equal(ntohl(peer.sin_addr.s_addr), 0x7f000002);
    close(fd);
    bench_close(&bench);
}

static void a_timeout_that_this_thread_slept_through_is_late(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = http_target(&bench, 1);
    target.definition.check.timeout_ms = TIMEOUT_MS;
    submit(&bench, &target);
    int fd = accept_one(&bench);
    bench.lateness.stalled_ns += TIMEOUT_MS * MS / 2;
    run_until_results(&bench, 1);
    assert_result(&bench, 0, REASON_LOCAL_LATE);

    submit(&bench, &target); /* the stall is over */
    run_until_results(&bench, 2);
    assert_result(&bench, 1, REASON_RECV_RESPONSE_TIMEOUT);
    close(fd);
    bench_close(&bench);
}

/* The engine is not run until long after the deadline; the answer is there by then. */
static void an_answer_found_long_after_the_deadline_is_late(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, 4);
    open_listener(&bench, AF_INET, 8);
    struct probe_target target = tcp_target(&bench, 1);
    target.definition.check.timeout_ms = 100;
    submit(&bench, &target);
    while (clock_monotonic_ns() < bench.engine->ops->next_ns(bench.engine) + 20 * MS) {
        poll(NULL, 0, 20);
    }
    run_until_results(&bench, 1);

    assert_result(&bench, 0, REASON_LOCAL_LATE);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_passes_and_ends_with_a_reset),
        cmocka_unit_test(tcp_close_by_fin_is_a_fin),
        cmocka_unit_test(tcp_passes_over_ipv6),
        cmocka_unit_test(a_closed_port_fails_at_once),
        cmocka_unit_test(no_answer_to_the_syn_is_a_connect_timeout_at_t),
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
