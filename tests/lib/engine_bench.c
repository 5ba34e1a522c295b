#include "tests/lib/engine_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "tests/lib/kept_check.h"

static void keep_result(void *user, const struct probe_result *result)
{
    struct engine_bench *bench = user;

    assert_true(bench->n_results < BENCH_RESULTS_MAX);
    bench->results[bench->n_results++] = *result;
}

void bench_listen(struct engine_bench *bench, int family, int backlog)
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

static void prepare(struct engine_bench *bench)
{
    uint64_t now_ns = clock_monotonic_ns();

    memset(bench, 0, sizeof *bench);
    bench->listener = -1;
    bench->handshake = TCP_FULL;
    probe_lateness_init(&bench->lateness, now_ns, now_ns);
    probe_counters_init(&bench->counters);
}

void bench_init(struct engine_bench *bench, uint32_t capacity)
{
    prepare(bench);
    assert_int_equal(connect_engine_new(capacity, &bench->lateness, &bench->engine, NULL), 0);
}

bool bench_init_packet(struct engine_bench *bench, uint32_t capacity)
{
    prepare(bench);
    bench->handshake = TCP_HALF_OPEN;
    const struct packet_engine_options options = {
        .capacity = capacity, .lateness = &bench->lateness, .counters = &bench->counters};
    int rc = packet_engine_new(&options, &bench->engine, NULL);
    assert_true(rc == 0 || rc == ERR_DENIED);
    return rc == 0;
}

void bench_init_udp(struct engine_bench *bench, uint32_t capacity)
{
    prepare(bench);
    assert_int_equal(
        udp_engine_new(capacity, &bench->lateness, &bench->counters, &bench->engine, NULL), 0);
}

void bench_close(struct engine_bench *bench)
{
    bench->engine->ops->free(bench->engine);
    if (bench->listener >= 0) {
        close(bench->listener);
    }
}

struct probe_target bench_tcp_target(const struct engine_bench *bench, uint32_t slot)
{
    const struct health_check check = {
        .type = CHECK_TYPE_TCP,
        .timeout_ms = BENCH_LONG_TIMEOUT_MS,
        .interval_ms = 100,
        .tcp = {.handshake = bench->handshake, .close = TCP_CLOSE_RST}};
    struct probe_target target = {
        .id = {.slot = slot, .birth = 1},
        .definition = {.to.port = bench->port, .check = kept_check(&check)},
    };

    assert_int_equal(addr_parse("127.0.0.1", &target.definition.to.addr, NULL), 0);
    return target;
}

struct probe_target bench_udp_target(const struct engine_bench *bench, uint32_t slot)
{
    struct probe_target target = bench_tcp_target(bench, slot);
    struct health_check *check = own_check(&target.definition);

    check->type = CHECK_TYPE_UDP;
    check->tcp = (struct tcp_check){0};
    check->udp.method = UDP_PORT;
    check->udp.payload.n_bytes = 4;
    memcpy(check->udp.payload.bytes, "ping", 4);
    return target;
}

struct probe_target bench_http_target(const struct engine_bench *bench, uint32_t slot)
{
    struct probe_target target = bench_tcp_target(bench, slot);
    struct health_check *check = own_check(&target.definition);

    check->type = CHECK_TYPE_HTTP;
    check->http.method = HTTP_GET;
    check->http.version = HTTP_1_1;
    check->http.host = HTTP_HOST_ADDRESS_PORT;
    str_copy(check->http.path, LIMIT_PATH_BYTES, "/");
    http_codes_add(&check->http.expect, 200, 399);
    return target;
}

void bench_step(struct engine_bench *bench)
{
    const struct probe_sink sink = {.result = keep_result, .user = bench};
    struct pollfd poll_fd = {.fd = bench->engine->fd, .events = POLLIN};
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t next_ns = bench->engine->ops->next_ns(bench->engine);
    int wait_ms = next_ns <= now_ns ? 0 : 5;

    poll(&poll_fd, 1, wait_ms);
    now_ns = clock_monotonic_ns();
    probe_lateness_wake(&bench->lateness, now_ns, now_ns);
    bench->engine->ops->run(bench->engine, &sink);
}

void bench_run_until(struct engine_bench *bench, unsigned n_results)
{
    uint64_t give_up_ns = clock_monotonic_ns() + BENCH_PATIENCE_NS;

    while (bench->n_results < n_results) {
        assert_true(clock_monotonic_ns() < give_up_ns);
        bench_step(bench);
    }
}

void bench_submit(struct engine_bench *bench, const struct probe_target *target)
{
    bench->engine->ops->submit(bench->engine, target);
}

int bench_accept(struct engine_bench *bench)
{
    uint64_t give_up_ns = clock_monotonic_ns() + BENCH_PATIENCE_NS;

    fcntl(bench->listener, F_SETFL, O_NONBLOCK);
    for (;;) {
        int fd = accept4(bench->listener, NULL, NULL, SOCK_NONBLOCK);
        if (fd >= 0) {
            return fd;
        }
        assert_true(clock_monotonic_ns() < give_up_ns);
        bench_step(bench);
    }
}

int bench_read_to_end(struct engine_bench *bench, int fd)
{
    uint64_t give_up_ns = clock_monotonic_ns() + BENCH_PATIENCE_NS;
    char buffer[4096];

    for (;;) {
        ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            return n == 0 ? 0 : errno;
        }
        assert_true(clock_monotonic_ns() < give_up_ns);
        bench_step(bench);
    }
}

void bench_read_request(struct engine_bench *bench, int fd, char *text, size_t text_bytes)
{
    uint64_t give_up_ns = clock_monotonic_ns() + BENCH_PATIENCE_NS;
    size_t n_kept = 0;

    text[0] = '\0';
    while (strstr(text, "\r\n\r\n") == NULL) {
        ssize_t n = recv(fd, text + n_kept, text_bytes - n_kept - 1, MSG_DONTWAIT);
        if (n > 0) {
            n_kept += (size_t)n;
            text[n_kept] = '\0';
        }
        assert_true(n != 0 && clock_monotonic_ns() < give_up_ns);
        bench_step(bench);
    }
}

void bench_say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

void bench_assert_result(const struct engine_bench *bench, unsigned index, enum probe_reason reason)
{
    assert_true(index < bench->n_results);
    if (bench->results[index].reason != reason) {
        fail_msg("result %u is %s, expected %s", index,
                 probe_reason_word(bench->results[index].reason), probe_reason_word(reason));
    }
    assert_int_equal(bench->results[index].probe_class, probe_reason_class(reason));
}

uint64_t bench_took_ms(const struct engine_bench *bench, unsigned index)
{
    return (bench->results[index].end_ns - bench->results[index].start_ns) / NS_PER_MS;
}
