/* The probe thread as agent.c uses it: plans in, results out, counts at any time, a clean stop. Run
 * under TSan too.
 *
 * ctest labels: threads */
#include <netinet/in.h>
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

#include "agent/probe/probe_thread.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "tests/lib/kept_check.h"

#define MS NS_PER_MS
#define PATIENCE_MS 60000

struct bench {
    struct probe_thread *thread;
    struct probe_plan_editor editor;
    struct wake wake;
    struct watchdog_loop watched;
    int listener;
    uint16_t port;
};

static void open_listener(struct bench *bench)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_ANY), /* every 127.x.y.z is a backend */
    };
    socklen_t n_bytes = sizeof address;

    bench->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(bench->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(bench->listener, 4096), 0);
    assert_int_equal(getsockname(bench->listener, (struct sockaddr *)&address, &n_bytes), 0);
    bench->port = ntohs(address.sin_port);
}

static void bench_init(struct bench *bench, struct probe_thread_options options)
{
    struct errmsg err = {.text = ""};

    memset(bench, 0, sizeof *bench);
    open_listener(bench);
    assert_int_equal(wake_init(&bench->wake), 0);
    probe_plan_editor_init(&bench->editor);
    options.loop.node_id = 1;
    options.results_wake = &bench->wake;
    options.watched = &bench->watched;
    assert_int_equal(probe_thread_start(&options, &bench->thread, &err), 0);
}

static void bench_close(struct bench *bench)
{
    probe_thread_stop(bench->thread);
    probe_plan_editor_close(&bench->editor);
    wake_close(&bench->wake);
    close(bench->listener);
}

/* Slot n is 127.1.n/256.n%256. T is long: the machine may be busy. */
static void set(struct bench *bench, uint32_t slot, uint64_t birth, enum check_type type)
{
    const struct health_check check = {
        .type = (uint8_t)type,
        .pacing = PACING_END_TO_START,
        .timeout_ms = 20000,
        .interval_ms = 100,
        .tcp = {.handshake = TCP_FULL, .close = TCP_CLOSE_RST},
        .http = {.method = HTTP_GET, .version = HTTP_1_0, .host = HTTP_HOST_OMITTED, .path = "/"}};
    struct probe_target target = {
        .id = {.slot = slot, .birth = birth},
        .definition = {.to.port = bench->port, .check = kept_check(&check)},
    };
    char text[ADDR_TEXT_BYTES];

    snprintf(text, sizeof text, "127.1.%u.%u", slot >> 8, slot & 0xff);
    assert_int_equal(addr_parse(text, &target.definition.to.addr, NULL), 0);
    assert_int_equal(probe_plan_editor_set(&bench->editor, &target, false), 0);
}

static void publish(struct bench *bench)
{
    struct probe_plan *plan = probe_plan_editor_publish(&bench->editor);

    assert_non_null(plan);
    probe_thread_plan(bench->thread, plan);
}

/* Waits for the wake-up if there is none yet. */
static struct probe_result next_result(struct bench *bench)
{
    struct pollfd poll_fd = {.fd = wake_fd(&bench->wake), .events = POLLIN};
    struct probe_result result;

    while (!probe_thread_pop(bench->thread, &result)) {
        assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
        wake_clear(&bench->wake);
    }
    return result;
}

static uint64_t count(const struct bench *bench, enum probe_count count)
{
    struct probe_counts counts;

    probe_thread_counts(bench->thread, &counts);
    return counts.values[count];
}

static void wait_for_count(const struct bench *bench, enum probe_count which, uint64_t at_least)
{
    uint64_t give_up_ns = clock_monotonic_ns() + PATIENCE_MS * MS;

    while (count(bench, which) < at_least) {
        assert_true(clock_monotonic_ns() < give_up_ns);
        poll(NULL, 0, 2);
    }
}

static void results_come_with_a_wake_up_and_the_interval_is_kept(void **state)
{
    struct bench bench;
    struct probe_result results[20];

    (void)state;
    bench_init(&bench, (struct probe_thread_options){0});
    set(&bench, 4, 1, CHECK_TYPE_TCP);
    publish(&bench);
    for (unsigned i = 0; i < 20; i++) {
        results[i] = next_result(&bench);
        assert_int_equal(results[i].reason, REASON_OK);
        assert_int_equal(results[i].id.slot, 4);
        assert_true(results[i].end_ns >= results[i].start_ns);
        if (i > 0) {
            assert_true(results[i].start_ns + PROBE_SLOT_NS / PROBE_SLOT_EARLY >=
                        results[i - 1].end_ns + 100 * MS);
        }
    }

    uint64_t mean_ns = (results[19].start_ns - results[0].start_ns) / 19;
    print_message("interval 100 ms, measured period %.2f ms\n", (double)mean_ns / 1e6);
    assert_in_range(mean_ns, 100 * MS - PROBE_SLOT_NS / PROBE_SLOT_EARLY, 1000 * MS);
    assert_int_equal(probe_thread_capabilities(bench.thread), PROBE_CAN_TCP_FULL | PROBE_CAN_HTTP);
    bench_close(&bench);
}

static void plans_may_change_all_the_time_while_probes_run(void **state)
{
    struct bench bench;
    uint64_t births[32] = {0};
    unsigned n_results[32] = {0};
    unsigned n_stale = 0;

    (void)state;
    bench_init(&bench, (struct probe_thread_options){0});
    for (uint64_t round = 1; round <= 200; round++) {
        uint32_t slot = 1 + (uint32_t)(round % 31);

        set(&bench, 0, 1, CHECK_TYPE_TCP); /* never changes */
        set(&bench, slot, round, CHECK_TYPE_TCP);
        births[slot] = round;
        if (round % 3 == 0) {
            probe_plan_editor_remove(&bench.editor,
                                     (struct target_id){.slot = slot, .birth = round});
            births[slot] = 0;
        }
        publish(&bench);
        struct probe_result result = next_result(&bench);
        n_results[result.id.slot]++;
        n_stale += result.id.slot != 0 && result.id.birth != births[result.id.slot];
    }
    wait_for_count(&bench, PROBE_N_TARGETS, bench.editor.n_targets);

    assert_true(n_results[0] > 0);
    print_message("%u results of slot 0; %u came for a target that was replaced meanwhile\n",
                  n_results[0], n_stale);
    assert_int_equal(count(&bench, PROBE_N_LOST), 0);
    bench_close(&bench);
}

static void nobody_reading_stops_no_probe(void **state)
{
    struct bench bench;
    struct probe_result result;
    unsigned n_popped = 0;

    (void)state;
    bench_init(&bench, (struct probe_thread_options){.ring_results = 4});
    for (uint32_t slot = 0; slot < 8; slot++) {
        set(&bench, slot, 1, CHECK_TYPE_TCP);
    }
    publish(&bench);
    wait_for_count(&bench, PROBE_N_FINISHED, 40);
    while (probe_thread_pop(bench.thread, &result)) {
        n_popped++;
    }

    assert_in_range(n_popped, 4, 4 + 8 + 8);
    assert_true(count(&bench, PROBE_N_DROPPED) >= 20);
    assert_int_equal(next_result(&bench).reason, REASON_OK); /* what waited follows */
    bench_close(&bench);
}

/* No reply ever comes, so every started probe stays in flight. */
static void stop_ends_probes_under_way_at_once(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, (struct probe_thread_options){0});
    for (uint32_t slot = 0; slot < 50; slot++) {
        set(&bench, slot, 1, CHECK_TYPE_HTTP);
    }
    publish(&bench);
    wait_for_count(&bench, PROBE_N_IN_FLIGHT, 50);
    uint64_t begin_ns = clock_monotonic_ns();
    bench_close(&bench);

    print_message("stopped with 50 probes in flight in %.1f ms\n",
                  (double)(clock_monotonic_ns() - begin_ns) / 1e6);
    assert_true(clock_monotonic_ns() - begin_ns < 5 * NS_PER_SECOND);
}

static void the_limit_delays_probes_on_real_sockets_too(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, (struct probe_thread_options){.loop = {.in_flight_max = 3}});
    for (uint32_t slot = 0; slot < 3; slot++) {
        set(&bench, slot, 1, CHECK_TYPE_HTTP); /* holds its place */
    }
    publish(&bench);
    wait_for_count(&bench, PROBE_N_IN_FLIGHT, 3);
    set(&bench, 3, 1, CHECK_TYPE_TCP);
    publish(&bench);
    wait_for_count(&bench, PROBE_N_TARGETS, 4);
    for (uint32_t slot = 0; slot < 3; slot++) {
        probe_plan_editor_remove(&bench.editor, (struct target_id){.slot = slot, .birth = 1});
        poll(NULL, 0, 150); /* long enough for the fourth to become due */
    }
    assert_int_equal(count(&bench, PROBE_N_FINISHED), 0);
    publish(&bench);

    assert_int_equal(next_result(&bench).id.slot, 3);
    assert_int_equal(count(&bench, PROBE_N_ABANDONED), 3);
    bench_close(&bench);
}

struct emitted {
    uint64_t n_ok;
    uint64_t n_started;
    unsigned n_lines;
};

static void keep_line(void *to, const struct counter_value *value)
{
    struct emitted *emitted = to;

    assert_true(strlen(value->help) > 0);
    emitted->n_lines++;
    if (strcmp(value->name, "probe_results") == 0 && strcmp(value->label, "ok") == 0) {
        emitted->n_ok = value->value;
    }
    if (strcmp(value->name, "probes_started") == 0) {
        assert_null(value->label);
        assert_false(value->is_gauge);
        emitted->n_started = value->value;
    }
    if (strcmp(value->name, "probes_in_flight") == 0 ||
        strcmp(value->name, "probe_late_max_ns") == 0) {
        assert_true(value->is_gauge); /* they fall, or stand still: no rate can be told of them */
    }
}

static void counts_are_emitted_by_name_and_reason(void **state)
{
    struct bench bench;
    struct probe_counts counts;
    struct emitted emitted = {0};

    (void)state;
    bench_init(&bench, (struct probe_thread_options){0});
    set(&bench, 4, 1, CHECK_TYPE_TCP);
    publish(&bench);
    wait_for_count(&bench, PROBE_N_FINISHED, 2);
    probe_thread_counts(bench.thread, &counts);
    probe_counts_emit(&counts, keep_line, &emitted);

    assert_true(emitted.n_ok >= 2 && emitted.n_started >= 2);
    assert_int_equal(emitted.n_ok, counts.results[REASON_OK]);
    assert_int_equal(emitted.n_lines, PROBE_N_COUNTS + 32);
    bench_close(&bench);
}

/* What an agent is built without it does not make in another way, and blames nobody. */
static void a_kind_that_is_not_built_says_so(void **state)
{
    static const struct {
        enum check_type type;
        uint32_t capability;
        bool is_built;
    } rows[] = {{CHECK_TYPE_TLS, PROBE_CAN_TLS, JURY_TLS_IS_BUILT},
                {CHECK_TYPE_GRPC, PROBE_CAN_GRPC, JURY_GRPC_IS_BUILT}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench bench;

        bench_init(&bench, (struct probe_thread_options){.makes_packets = true});
        set(&bench, 4, 1, rows[i].type);
        publish(&bench);
        bool is_there = (probe_thread_capabilities(bench.thread) & rows[i].capability) != 0;
        assert_int_equal(is_there, rows[i].is_built);
        if (!is_there) {
            struct probe_result result = next_result(&bench);

            assert_int_equal(result.reason, REASON_LOCAL_NOT_BUILT);
            assert_int_equal(result.probe_class, PROBE_INCONCLUSIVE);
            assert_int_equal(count(&bench, PROBE_N_BY_CONNECT), 0);
        }
        bench_close(&bench);
    }
}

/* Half-open probes go on without it. */
static void an_agent_without_xdp_says_so(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench,
               (struct probe_thread_options){.makes_packets = true,
                                             .loop = {.half_open_receive = PACKET_RECEIVE_XDP}});
    if ((probe_thread_capabilities(bench.thread) & PROBE_CAN_TCP_HALF_OPEN) == 0) {
        bench_close(&bench);
        skip();
    }
    const struct packet_way_words way = packet_way_words(probe_thread_way(bench.thread));
    const char *why = way.receive_why;
    assert_string_equal(way.receive, "ring"); /* no probe has left yet */
    assert_int_equal(strstr(why, "was built without XDP") != NULL, !JURY_XDP_IS_BUILT);
    bench_close(&bench);
}

static void the_watchdog_sees_an_idle_thread_beat(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench, (struct probe_thread_options){0});
    uint64_t give_up_ns = clock_monotonic_ns() + PATIENCE_MS * MS;
    while (atomic_load(&bench.watched.n_beats) < 5) {
        assert_true(clock_monotonic_ns() < give_up_ns);
        poll(NULL, 0, 10);
    }
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_with_a_wake_up_and_the_interval_is_kept),
        cmocka_unit_test(plans_may_change_all_the_time_while_probes_run),
        cmocka_unit_test(nobody_reading_stops_no_probe),
        cmocka_unit_test(stop_ends_probes_under_way_at_once),
        cmocka_unit_test(the_limit_delays_probes_on_real_sockets_too),
        cmocka_unit_test(counts_are_emitted_by_name_and_reason),
        cmocka_unit_test(a_kind_that_is_not_built_says_so),
        cmocka_unit_test(an_agent_without_xdp_says_so),
        cmocka_unit_test(the_watchdog_sees_an_idle_thread_beat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
