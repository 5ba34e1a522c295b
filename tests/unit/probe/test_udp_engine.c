/* The udp engine on loopback, step by step. What is on the wire, and answers that no kernel gives,
 * are judged by tests/integration/udp_wire.py. spec.md 4; S45-S50, S98, S99; R-PROBE-1, R-PROBE-2.
 */
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/lib/engine_bench.h"
#include "tests/lib/kept_check.h"

/* A port of loopback: open, and read by nobody, or closed by now. Returns the socket, or -1. */
static int take_port(struct engine_bench *bench, bool is_open)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n_bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n_bytes), 0);
    bench->port = ntohs(address.sin_port);
    if (is_open) {
        return fd;
    }
    close(fd);
    return -1;
}

/* The next datagram is answered with `text`. */
static void answer(int fd, const char *text)
{
    struct sockaddr_in from;
    socklen_t n_bytes = sizeof from;
    char bytes[64];

    assert_int_equal(recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &n_bytes), 4);
    assert_memory_equal(bytes, "ping", 4);
    assert_true(sendto(fd, text, strlen(text), 0, (struct sockaddr *)&from, n_bytes) >= 0);
}

static struct probe_target exchange(const struct engine_bench *bench, uint32_t slot)
{
    struct probe_target target = bench_udp_target(bench, slot);
    struct udp_check *udp = &own_check(&target.definition)->udp;

    udp->method = UDP_EXCHANGE;
    udp->expect.n_bytes = 4;
    memcpy(udp->expect.bytes, "pong", 4);
    return target;
}

static void a_closed_port_fails_at_once_and_said_so_itself(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init_udp(&bench, 4);
    take_port(&bench, false);
    struct probe_target target = bench_udp_target(&bench, 3);
    bench_submit(&bench, &target);
    assert_int_equal(bench.n_results, 0); /* never from inside submit */
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_PORT_UNREACHABLE);
    assert_true(bench.results[0].is_refused);
    assert_int_equal(bench.results[0].id.slot, 3);
    bench_close(&bench);
}

static void silence_of_an_open_port_passes_at_t(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init_udp(&bench, 1);
    int fd = take_port(&bench, true);
    struct probe_target target = bench_udp_target(&bench, 0);
    own_check(&target.definition)->timeout_ms = BENCH_TIMEOUT_MS;
    bench_submit(&bench, &target);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_SILENT);
    assert_in_range(bench_took_ms(&bench, 0), BENCH_TIMEOUT_MS, 10 * BENCH_TIMEOUT_MS);
    close(fd);
    bench_close(&bench);
}

static void any_answer_passes_a_port_check_and_the_expected_one_an_exchange(void **state)
{
    static const struct {
        bool is_exchange;
        const char *text;
        enum probe_reason reason;
    } rows[] = {{false, "", REASON_OK},
                {false, "whatever", REASON_OK},
                {true, "pong", REASON_OK},
                {true, "ponk", REASON_RESPONSE_MISMATCH},
                {true, "", REASON_RESPONSE_MISMATCH}};
    struct engine_bench bench;

    (void)state;
    bench_init_udp(&bench, 1);
    int fd = take_port(&bench, true);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct probe_target target =
            rows[i].is_exchange ? exchange(&bench, 0) : bench_udp_target(&bench, 0);

        bench_submit(&bench, &target);
        answer(fd, rows[i].text);
        bench_run_until(&bench, i + 1);
        bench_assert_result(&bench, i, rows[i].reason);
    }
    close(fd);
    bench_close(&bench);
}

/* 3.7: all that are under way for the port; one for another port goes on. */
static void a_refusal_ends_every_probe_of_its_address_and_port(void **state)
{
    struct engine_bench bench;
    struct probe_target targets[8];
    struct engine_bench other;

    (void)state;
    bench_init_udp(&bench, 9);
    int fd = take_port(&other, true);
    take_port(&bench, false);
    struct probe_target elsewhere = bench_udp_target(&other, 8);
    bench_submit(&bench, &elsewhere);
    for (uint32_t i = 0; i < 8; i++) {
        targets[i] = i % 2 == 0 ? bench_udp_target(&bench, i) : exchange(&bench, i);
        own_check(&targets[i].definition)->timeout_ms = BENCH_LONG_TIMEOUT_MS + i;
        bench_submit(&bench, &targets[i]);
    }
    bench_run_until(&bench, 8);

    unsigned n_told = 0;
    for (unsigned i = 0; i < 8; i++) {
        bench_assert_result(&bench, i, REASON_PORT_UNREACHABLE);
        n_told += bench.results[i].is_refused;
    }
    assert_int_equal(n_told, 1);
    struct probe_counts counts;
    probe_counters_read(&bench.counters, &counts);
    assert_int_equal(counts.values[PROBE_N_REFUSALS_SHARED], 7);
    assert_int_equal(bench.n_results, 8);
    close(fd);
    bench_close(&bench);
}

static void an_abandoned_probe_has_no_result_and_its_place_is_free(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init_udp(&bench, 1);
    int fd = take_port(&bench, true);
    struct probe_target target = bench_udp_target(&bench, 5);
    bench_submit(&bench, &target);
    bench.engine->ops->abandon(bench.engine, 5);
    bench.engine->ops->abandon(bench.engine, 5); /* nothing under way is fine */
    bench_step(&bench);
    assert_int_equal(bench.n_results, 0);
    bench_submit(&bench, &target);
    answer(fd, "late"); /* of the abandoned one: its socket is gone */
    answer(fd, "pong");
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_OK);
    close(fd);
    bench_close(&bench);
}

static void a_source_that_is_not_here_is_a_local_fault(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init_udp(&bench, 1);
    int fd = take_port(&bench, true);
    struct probe_target target = bench_udp_target(&bench, 0);
    assert_int_equal(addr_parse("192.0.2.1", &target.source, NULL), 0);
    bench_submit(&bench, &target);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_LOCAL_SOURCE_MISSING);
    close(fd);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_port_fails_at_once_and_said_so_itself),
        cmocka_unit_test(silence_of_an_open_port_passes_at_t),
        cmocka_unit_test(any_answer_passes_a_port_check_and_the_expected_one_an_exchange),
        cmocka_unit_test(a_refusal_ends_every_probe_of_its_address_and_port),
        cmocka_unit_test(an_abandoned_probe_has_no_result_and_its_place_is_free),
        cmocka_unit_test(a_source_that_is_not_here_is_a_local_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
