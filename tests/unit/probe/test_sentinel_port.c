/* The port by which nodes test their own probes, and a probe of it as the agent makes them.
 * ctest labels: twin */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/probe/connect_socket.h"
#include "agent/probe/sentinel_port.h"
#include "common/base/plant.h"
#include "tests/lib/engine_bench.h"
#include "tests/lib/kept_check.h"

#define STRANGERS 1000 /* several times the queue that the port once had */

static struct addr address(const char *text)
{
    struct addr addr;

    assert_int_equal(addr_parse(text, &addr, NULL), 0);
    return addr;
}

/* As many connections as that, none of them waited for. */
static void flood(const struct addr *addr, uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t n_bytes = connect_socket_address(addr, port, &to);

    for (unsigned i = 0; i < STRANGERS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

        assert_true(fd >= 0);
        (void)connect(fd, (struct sockaddr *)&to, n_bytes);
        connect_socket_finish(fd);
    }
}

/* What a probe of the port says. */
static struct probe_result probe(const struct addr *addr, uint16_t port, uint32_t timeout_ms)
{
    struct engine_bench bench;

    bench_init(&bench, 1);
    struct probe_target target = bench_tcp_target(&bench, 0);
    target.definition.to = (struct endpoint){.addr = *addr, .port = port};
    own_check(&target.definition)->timeout_ms = timeout_ms;
    bench_submit(&bench, &target);
    bench_run_until(&bench, 1);
    struct probe_result result = bench.results[0];
    bench_close(&bench);
    return result;
}

static void the_kernel_answers_with_a_refusal_on_both_families(void **state)
{
    static const char *const texts[] = {"127.0.0.1", "::1"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sentinel_port port;
        struct addr addr = address(texts[i]);

        assert_int_equal(sentinel_port_open(&port, &addr, NULL), 0);
        assert_int_not_equal(port.port, 0);
        struct probe_result result = probe(&addr, port.port, BENCH_LONG_TIMEOUT_MS);
        assert_int_equal(result.reason, REASON_CONNECT_FAILED);
        assert_true(result.is_refused);
        sentinel_port_close(&port);
        assert_int_equal(port.fd, -1);
        sentinel_port_close(&port); /* again is fine */
    }
}

/* Whether a probe is answered that comes after a flood, while nobody in this process serves the
 * port. */
static bool answers_after_a_flood(uint32_t timeout_ms)
{
    struct sentinel_port port;
    struct addr addr = address("127.0.0.1");

    assert_int_equal(sentinel_port_open(&port, &addr, NULL), 0);
    flood(&addr, port.port);
    struct probe_result result = probe(&addr, port.port, timeout_ms);
    sentinel_port_close(&port);
    return result.is_refused || result.reason == REASON_OK;
}

static void a_flood_of_strangers_leaves_the_port_as_it_was(void **state)
{
    (void)state;
    assert_true(answers_after_a_flood(BENCH_LONG_TIMEOUT_MS));
}

#ifdef JURY_PLANTS
static void twin_a_port_with_a_queue_falls_silent_under_a_flood(void **state)
{
    (void)state;
    plant_set("sentinel-listens");
    assert_false(answers_after_a_flood(BENCH_TIMEOUT_MS));
    plant_set(NULL);
}
#endif

static void a_fault_of_this_node_is_no_answer(void **state)
{
    struct addr nowhere = address("127.0.0.1");

    (void)state;
    struct engine_bench bench;
    bench_init(&bench, 1);
    struct probe_target target = bench_tcp_target(&bench, 0);
    target.definition.to = (struct endpoint){.addr = nowhere, .port = 1};
    target.source = address("192.0.2.1"); /* not an address of this machine */
    bench_submit(&bench, &target);
    bench_run_until(&bench, 1);
    assert_int_not_equal(bench.results[0].reason, REASON_OK);
    assert_false(bench.results[0].is_refused);
    bench_close(&bench);
}

static void an_address_that_is_not_ours_is_refused_with_a_sentence(void **state)
{
    struct sentinel_port port;
    struct addr addr = address("192.0.2.1");
    struct errmsg err = {""};

    (void)state;
    assert_int_equal(sentinel_port_open(&port, &addr, &err), ERR_IO);
    assert_non_null(strstr(err.text, "sentinel port"));
    assert_int_equal(port.fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_answers_with_a_refusal_on_both_families),
        cmocka_unit_test(a_flood_of_strangers_leaves_the_port_as_it_was),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_a_port_with_a_queue_falls_silent_under_a_flood),
#endif
        cmocka_unit_test(a_fault_of_this_node_is_no_answer),
        cmocka_unit_test(an_address_that_is_not_ours_is_refused_with_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
