/* What the probe loop guarantees whatever an engine or a reader does: R-PROBE-2, LIMIT_PROBES_IN_
 * FLIGHT, A18, the node's own list of prefixes, full rings, targets that come and go. Virtual time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/probe/probe_loop.h"
#include "common/base/prng.h"
#include "tests/lib/fake_probe_engine.h"

#define MS NS_PER_MS
#define N_SLOTS 2048

struct world {
    struct probe_loop loop;
    struct fake_probe_engine *engine;
    struct ring *results;
    struct probe_plan_editor editor;
    uint64_t now_ns;
};

static void world_init(struct world *world, uint32_t in_flight_max, uint32_t ring_results)
{
    struct probe_loop_options options = {.node_id = 1, .in_flight_max = in_flight_max};

    memset(world, 0, sizeof *world);
    world->now_ns = 1000 * NS_PER_SECOND;
    world->results = ring_new(sizeof(struct probe_result), ring_results);
    probe_loop_init(&world->loop, &options, world->results);
    world->engine =
        fake_probe_engine_new(N_SLOTS, in_flight_max, PROBE_CAN_TCP_FULL | PROBE_CAN_HTTP);
    world->engine->now_ns = world->now_ns;
    probe_loop_add_engine(&world->loop, &world->engine->base);
    probe_plan_editor_init(&world->editor);
}

static void world_close(struct world *world)
{
    probe_loop_close(&world->loop);
    probe_plan_editor_close(&world->editor);
    ring_free(world->results);
}

static struct probe_target target_of(uint32_t slot, uint64_t birth, uint32_t interval_ms)
{
    struct probe_target target = {
        .id = {.slot = slot, .birth = birth},
        .definition.check = {.type = CHECK_TYPE_TCP,
                             .pacing = PACING_END_TO_START,
                             .timeout_ms = 1000,
                             .interval_ms = interval_ms,
                             .tcp = {.handshake = TCP_FULL, .close = TCP_CLOSE_RST}},
        .definition.to.port = 80,
    };
    char text[ADDR_TEXT_BYTES];

    snprintf(text, sizeof text, "10.1.%u.%u", (slot >> 8) & 0xff, slot & 0xff);
    assert_int_equal(addr_parse(text, &target.definition.to.addr, NULL), 0);
    return target;
}

static void set(struct world *world, uint32_t slot, uint64_t birth, uint32_t interval_ms)
{
    struct probe_target target = target_of(slot, birth, interval_ms);

    assert_int_equal(probe_plan_editor_set(&world->editor, &target, true), 0);
}

static void publish(struct world *world)
{
    struct probe_plan *plan = probe_plan_editor_publish(&world->editor);

    assert_non_null(plan);
    assert_int_equal(probe_loop_take_plan(&world->loop, plan, world->now_ns), 0);
}

static uint64_t count(const struct world *world, enum probe_count count)
{
    struct probe_counts counts;

    probe_counters_read(&world->loop.counters, &counts);
    return counts.values[count];
}

static void turn(struct world *world)
{
    world->engine->now_ns = world->now_ns;
    probe_loop_turn(&world->loop, world->now_ns);
}

/* Turn at each moment the loop asks for, until end_ns; results go to on_result if there is one. */
static void run_until(struct world *world, uint64_t end_ns,
                      void (*on_result)(void *user, const struct probe_result *result), void *user)
{
    struct probe_result result;

    for (;;) {
        turn(world);
        while (on_result != NULL && ring_pop(world->results, &result)) {
            on_result(user, &result);
        }
        uint64_t next_ns = probe_loop_next_ns(&world->loop, world->now_ns);
        if (next_ns > end_ns) {
            break;
        }
        world->now_ns = next_ns > world->now_ns ? next_ns : world->now_ns;
    }
    world->now_ns = end_ns;
}

static bool pop(struct world *world, struct probe_result *ret_result)
{
    return ring_pop(world->results, ret_result);
}

/* --- tests --- */

struct periods {
    uint64_t last_end_ns[N_SLOTS];
    unsigned n_results[N_SLOTS];
};

static void check_period(void *user, const struct probe_result *result)
{
    struct periods *periods = user;
    uint32_t slot = result->id.slot;

    if (periods->n_results[slot] > 0) {
        assert_int_equal(result->start_ns, periods->last_end_ns[slot] + 500 * MS);
    }
    periods->last_end_ns[slot] = result->end_ns;
    periods->n_results[slot]++;
}

static void the_interval_runs_from_end_to_start(void **state)
{
    struct world world;
    struct periods *periods = calloc(1, sizeof *periods);

    (void)state;
    world_init(&world, 64, 64);
    for (uint32_t slot = 0; slot < 10; slot++) {
        set(&world, slot, 1, 500);
    }
    publish(&world);
    run_until(&world, world.now_ns + 20 * NS_PER_SECOND, check_period, periods);

    for (uint32_t slot = 0; slot < 10; slot++) {
        assert_in_range(periods->n_results[slot], 38, 40);
    }
    free(periods);
    world_close(&world);
}

static uint64_t take_half_a_second(void *user, const struct probe_target *target,
                                   enum probe_reason *ret_reason)
{
    (void)user;
    (void)target;
    *ret_reason = REASON_CONNECT_TIMEOUT;
    return 500 * MS;
}

static void at_the_limit_probes_wait_are_counted_and_none_is_skipped(void **state)
{
    struct world world;
    unsigned n_results[100] = {0};
    struct probe_result result;

    (void)state;
    world_init(&world, 10, 4096);
    world.engine->plan = take_half_a_second;
    for (uint32_t slot = 0; slot < 100; slot++) {
        set(&world, slot, 1, 1000);
    }
    publish(&world);
    /* 100 probes of 0.5 s, ten at a time: a round takes 5 s instead of 1.5 s. */
    run_until(&world, world.now_ns + 50 * NS_PER_SECOND, NULL, NULL);

    while (pop(&world, &result)) {
        n_results[result.id.slot]++;
    }
    for (unsigned i = 0; i < 100; i++) {
        assert_in_range(n_results[i], 9, 10); /* each target has its turn: order of due times */
    }
    assert_int_equal(world.engine->in_flight_max, 10);
    assert_true(count(&world, PROBE_N_DELAYED) > 850);
    assert_in_range(count(&world, PROBE_DELAY_MAX_NS), 3 * NS_PER_SECOND, 5 * NS_PER_SECOND);
    assert_int_equal(count(&world, PROBE_N_STARTED), count(&world, PROBE_N_FINISHED) + 10);
    world_close(&world);
}

static void a_removed_target_is_abandoned_without_a_result(void **state)
{
    struct world world;
    struct probe_result result;

    (void)state;
    world_init(&world, 10, 64);
    world.engine->plan = take_half_a_second;
    set(&world, 7, 1, 100);
    publish(&world);
    run_until(&world, world.now_ns + 200 * MS, NULL, NULL);
    assert_int_equal(world.engine->n_in_flight, 1);

    probe_plan_editor_remove(&world.editor, (struct target_id){.slot = 7, .birth = 1});
    publish(&world);
    assert_int_equal(world.engine->n_abandoned, 1);
    run_until(&world, world.now_ns + 5 * NS_PER_SECOND, NULL, NULL);

    assert_false(pop(&world, &result));
    assert_int_equal(count(&world, PROBE_N_STARTED), 1);
    assert_int_equal(count(&world, PROBE_N_ABANDONED), 1);
    assert_int_equal(count(&world, PROBE_N_FINISHED), 0);
    assert_int_equal(count(&world, PROBE_N_TARGETS), 0);
    world_close(&world);
}

/* Row 1.7: a result that belongs to a check changed in flight is dropped. */
static void a_target_replaced_in_flight_gives_results_of_the_new_definition_only(void **state)
{
    struct world world;
    struct probe_result result;
    unsigned n_results = 0;

    (void)state;
    world_init(&world, 10, 64);
    world.engine->plan = take_half_a_second;
    set(&world, 7, 1, 100);
    publish(&world);
    run_until(&world, world.now_ns + 200 * MS, NULL, NULL);

    set(&world, 7, 2, 100);
    publish(&world);
    run_until(&world, world.now_ns + 5 * NS_PER_SECOND, NULL, NULL);

    while (pop(&world, &result)) {
        assert_int_equal(result.id.birth, 2);
        n_results++;
    }
    assert_in_range(n_results, 7, 9);
    assert_int_equal(count(&world, PROBE_N_ABANDONED), 1);
    world_close(&world);
}

static void an_unchanged_target_keeps_its_beat_when_the_plan_changes(void **state)
{
    struct world world;
    struct periods *periods = calloc(1, sizeof *periods);

    (void)state;
    world_init(&world, 10, 64);
    set(&world, 3, 1, 500);
    for (uint64_t round = 0; round < 40; round++) {
        set(&world, 9, 2 + round, 500);
        publish(&world);
        run_until(&world, world.now_ns + 130 * MS, NULL, NULL);
    }
    struct probe_result result;
    while (pop(&world, &result)) {
        if (result.id.slot == 3) {
            check_period(periods, &result);
        }
    }

    assert_in_range(periods->n_results[3], 9, 11);
    free(periods);
    world_close(&world);
}

static void a_full_ring_keeps_the_newest_result_of_each_target(void **state)
{
    struct world world;
    struct probe_result result;
    uint64_t last_ns[3] = {0};
    unsigned n_results = 0;

    (void)state;
    world_init(&world, 10, 4);
    for (uint32_t slot = 0; slot < 3; slot++) {
        set(&world, slot, 1, 100);
    }
    publish(&world);
    run_until(&world, world.now_ns + 10 * NS_PER_SECOND, NULL, NULL); /* nobody reads */
    uint64_t n_finished = count(&world, PROBE_N_FINISHED);
    assert_in_range(n_finished, 290, 300);
    assert_int_equal(count(&world, PROBE_N_DROPPED), n_finished - 4 - 3);

    for (unsigned reads = 0; reads < 10; reads++) {
        while (pop(&world, &result)) {
            assert_true(result.start_ns > last_ns[result.id.slot]);
            last_ns[result.id.slot] = result.start_ns;
            n_results++;
        }
        turn(&world);
    }

    assert_int_equal(n_results, 4 + 3);
    for (unsigned slot = 0; slot < 3; slot++) {
        assert_true(last_ns[slot] + 200 * MS > world.now_ns); /* the newest one */
    }
    world_close(&world);
}

static void a_waiting_result_of_a_removed_target_is_never_handed_out(void **state)
{
    struct world world;
    struct probe_result result;

    (void)state;
    world_init(&world, 10, 1);
    set(&world, 0, 1, 100);
    set(&world, 1, 1, 100);
    publish(&world);
    run_until(&world, world.now_ns + NS_PER_SECOND, NULL, NULL);
    probe_plan_editor_remove(&world.editor, (struct target_id){.slot = 0, .birth = 1});
    probe_plan_editor_remove(&world.editor, (struct target_id){.slot = 1, .birth = 1});
    publish(&world);
    assert_true(pop(&world, &result)); /* was in the ring before */
    turn(&world);
    assert_false(pop(&world, &result));

    set(&world, 1, 9, 100);
    publish(&world);
    run_until(&world, world.now_ns + NS_PER_SECOND, NULL, NULL);
    while (pop(&world, &result)) {
        assert_int_equal(result.id.birth, 9);
        turn(&world);
    }
    world_close(&world);
}

static void an_address_behind_the_nodes_own_list_is_inconclusive_and_not_connected_to(void **state)
{
    struct world world;
    struct probe_result result;

    (void)state;
    world_init(&world, 10, 64);
    world.loop.options.n_allowed = 1;
    assert_int_equal(cidr_parse("10.1.0.0/25", &world.loop.options.allowed[0], NULL), 0);
    set(&world, 5, 1, 1000);   /* 10.1.0.5 */
    set(&world, 200, 1, 1000); /* 10.1.0.200 */
    publish(&world);
    run_until(&world, world.now_ns + 1500 * MS, NULL, NULL);

    unsigned n_passed = 0;
    unsigned n_forbidden = 0;
    while (pop(&world, &result)) {
        if (result.id.slot == 5) {
            assert_int_equal(result.reason, REASON_OK);
            n_passed++;
        } else {
            assert_int_equal(result.probe_class, PROBE_INCONCLUSIVE);
            assert_int_equal(result.reason, REASON_LOCAL_FORBIDDEN);
            n_forbidden++;
        }
    }
    assert_true(n_passed > 0 && n_forbidden > 0);
    assert_int_equal(world.engine->n_submitted, n_passed);
    world_close(&world);
}

static void a_kind_that_no_engine_makes_is_inconclusive(void **state)
{
    struct world world;
    struct probe_result result;
    struct probe_target target = target_of(1, 1, 100);

    (void)state;
    world_init(&world, 10, 64);
    target.definition.check.tcp.handshake = TCP_HALF_OPEN;
    probe_plan_editor_set(&world.editor, &target, true);
    publish(&world);
    run_until(&world, world.now_ns + 200 * MS, NULL, NULL);

    assert_true(pop(&world, &result));
    assert_int_equal(result.reason, REASON_LOCAL_UNSUPPORTED);
    assert_int_equal(result.probe_class, PROBE_INCONCLUSIVE);
    assert_int_equal(world.engine->n_submitted, 0);
    world_close(&world);
}

static void the_first_engine_that_can_is_used(void **state)
{
    struct world world;
    struct probe_result result;
    struct probe_target http = target_of(2, 1, 100);

    (void)state;
    world_init(&world, 10, 64);
    world.engine->base.capabilities = PROBE_CAN_TCP_FULL;
    struct fake_probe_engine *second =
        fake_probe_engine_new(N_SLOTS, 10, PROBE_CAN_TCP_FULL | PROBE_CAN_HTTP);
    second->now_ns = UINT64_MAX / 2; /* its probes end at once */
    probe_loop_add_engine(&world.loop, &second->base);
    http.definition.check.type = CHECK_TYPE_HTTP;
    probe_plan_editor_set(&world.editor, &http, true);
    set(&world, 1, 1, 10000);
    publish(&world);
    run_until(&world, world.now_ns + 10 * NS_PER_SECOND, NULL, NULL);

    assert_int_equal(world.engine->n_submitted, 1);
    assert_true(second->n_submitted > 0);
    assert_true(pop(&world, &result));
    world_close(&world);
}

static uint64_t lose_each_third(void *user, const struct probe_target *target,
                                enum probe_reason *ret_reason)
{
    unsigned *n = user;

    (void)target;
    *ret_reason = REASON_OK;
    return (*n)++ % 3 == 2 ? UINT64_MAX : 10 * MS;
}

/* The planted defect: an engine that forgets. HAProxy's "down, never up again". */
static void a_lost_probe_is_counted_and_its_target_probed_again(void **state)
{
    struct world world;
    struct probe_result result;
    unsigned n = 0;
    unsigned n_passed = 0;
    unsigned n_late = 0;

    (void)state;
    world_init(&world, 10, 64);
    world.engine->plan = lose_each_third;
    world.engine->user = &n;
    set(&world, 1, 1, 100);
    publish(&world);
    run_until(&world, world.now_ns + 30 * NS_PER_SECOND, NULL, NULL);

    while (pop(&world, &result)) {
        n_passed += result.reason == REASON_OK;
        n_late += result.reason == REASON_LOCAL_LATE;
    }
    assert_in_range(n_late, 3, 5); /* each takes T + 5 s and a sweep */
    assert_int_equal(count(&world, PROBE_N_LOST), n_late);
    assert_in_range(n_passed, 2 * n_late, 2 * n_late + 2);
    world_close(&world);
}

static uint64_t take_anything(void *user, const struct probe_target *target,
                              enum probe_reason *ret_reason)
{
    static const enum probe_reason reasons[] = {
        REASON_OK,
        REASON_CONNECT_FAILED,
        REASON_CONNECT_TIMEOUT,
        REASON_RECV_RESPONSE_TIMEOUT,
        REASON_HTTP_INVALID_HEADER,
        REASON_LOCAL_NO_PORT,
        REASON_LOCAL_NO_DESCRIPTOR,
    };
    struct prng *prng = user;

    (void)target;
    *ret_reason = reasons[prng_below(prng, sizeof reasons / sizeof reasons[0])];
    return prng_below(prng, 1000 * MS);
}

static void count_result(void *user, const struct probe_result *result)
{
    (void)result;
    ++*(uint64_t *)user;
}

/* R-PROBE-2: a day of simulated probing, targets coming and going all the time. */
static void in_a_day_every_probe_has_exactly_one_result_or_abandonment(void **state)
{
    struct world world;
    struct prng prng;
    uint64_t n_results = 0;

    (void)state;
    world_init(&world, 8, 256);
    prng_init(&prng, 3);
    world.engine->plan = take_anything;
    world.engine->user = &prng;
    uint64_t end_ns = world.now_ns + 86400 * NS_PER_SECOND;
    for (uint64_t birth = 1; world.now_ns < end_ns; birth++) {
        uint32_t slot = (uint32_t)prng_below(&prng, 12);

        if (prng_chance(&prng, 300000)) {
            for (uint32_t i = 0; i < world.editor.n_slots; i++) {
                if (i == slot && world.editor.by_slot[i] != NULL) {
                    probe_plan_editor_remove(&world.editor, world.editor.by_slot[i]->target.id);
                }
            }
        } else {
            set(&world, slot, birth, 500 + (uint32_t)prng_below(&prng, 2000));
        }
        publish(&world);
        run_until(&world, world.now_ns + prng_below(&prng, 60) * NS_PER_SECOND, count_result,
                  &n_results);
    }

    assert_int_equal(count(&world, PROBE_N_STARTED), count(&world, PROBE_N_FINISHED) +
                                                         count(&world, PROBE_N_ABANDONED) +
                                                         world.engine->n_in_flight);
    assert_int_equal(count(&world, PROBE_N_FINISHED), n_results + count(&world, PROBE_N_DROPPED));
    assert_int_equal(count(&world, PROBE_N_DROPPED), 0);
    assert_int_equal(count(&world, PROBE_N_LOST), 0);
    assert_int_equal(count(&world, PROBE_N_STARTED), world.engine->n_submitted);
    print_message("%llu probes, %llu abandoned, 0 lost\n",
                  (unsigned long long)count(&world, PROBE_N_STARTED),
                  (unsigned long long)count(&world, PROBE_N_ABANDONED));
    assert_true(n_results > 200000);
    world_close(&world);
}

struct spread {
    uint64_t begin_ns;
    unsigned buckets[2][100]; /* of the first and of the tenth round */
    unsigned n_results[1000];
    uint64_t first_ns[1000];
    uint64_t last_ns[1000];
};

static void spread_result(void *user, const struct probe_result *result)
{
    struct spread *spread = user;
    uint64_t at_ms = (result->start_ns - spread->begin_ns) / MS;
    uint32_t slot = result->id.slot;

    if (spread->n_results[slot] == 0) {
        spread->first_ns[slot] = result->start_ns - spread->begin_ns;
    }
    if (at_ms < 10000) {
        spread->buckets[0][at_ms / 100]++;
    } else if (at_ms >= 90000 && at_ms < 100000) {
        spread->buckets[1][(at_ms - 90000) / 100]++;
    }
    spread->last_ns[slot] = result->start_ns - spread->begin_ns;
    spread->n_results[slot]++;
}

/* A18: 1,000 targets, I = 10 s, 100 rounds. */
static void probes_are_spread_over_the_interval_and_stay_so(void **state)
{
    struct world world;
    struct spread *spread = calloc(1, sizeof *spread);
    unsigned bucket_max = 0;

    (void)state;
    world_init(&world, 1000, 4096);
    for (uint32_t slot = 0; slot < 1000; slot++) {
        set(&world, slot, 1, 10000);
    }
    publish(&world);
    spread->begin_ns = world.now_ns;
    run_until(&world, world.now_ns + 1000 * NS_PER_SECOND, spread_result, spread);

    for (unsigned i = 0; i < 100; i++) {
        for (unsigned round = 0; round < 2; round++) {
            assert_in_range(spread->buckets[round][i], 0, 30);
            bucket_max =
                spread->buckets[round][i] > bucket_max ? spread->buckets[round][i] : bucket_max;
        }
    }
    for (unsigned slot = 0; slot < 1000; slot++) {
        uint64_t period_ns =
            (spread->last_ns[slot] - spread->first_ns[slot]) / (spread->n_results[slot] - 1);

        assert_true(spread->first_ns[slot] < 10 * NS_PER_SECOND);
        assert_in_range(spread->n_results[slot], 99, 100);
        assert_in_range(period_ns, 9900 * MS, 10100 * MS);
    }
    print_message("largest 100 ms bucket: %u of 1000 (bound 30)\n", bucket_max);
    free(spread);
    world_close(&world);
}

static void two_nodes_probe_one_target_at_different_times(void **state)
{
    unsigned n_apart = 0;

    (void)state;
    for (uint32_t slot = 0; slot < 1000; slot++) {
        struct probe_target target = target_of(slot, 1, 10000);
        uint64_t a_ms = probe_schedule_phase_ns(1, &target, true) / MS;
        uint64_t b_ms = probe_schedule_phase_ns(2, &target, true) / MS;
        uint64_t apart_ms = a_ms > b_ms ? a_ms - b_ms : b_ms - a_ms;

        n_apart += apart_ms > 500;
    }
    print_message("%u of 1000 targets more than 0.5 s apart (bound 850)\n", n_apart);
    assert_true(n_apart >= 850);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interval_runs_from_end_to_start),
        cmocka_unit_test(at_the_limit_probes_wait_are_counted_and_none_is_skipped),
        cmocka_unit_test(a_removed_target_is_abandoned_without_a_result),
        cmocka_unit_test(a_target_replaced_in_flight_gives_results_of_the_new_definition_only),
        cmocka_unit_test(an_unchanged_target_keeps_its_beat_when_the_plan_changes),
        cmocka_unit_test(a_full_ring_keeps_the_newest_result_of_each_target),
        cmocka_unit_test(a_waiting_result_of_a_removed_target_is_never_handed_out),
        cmocka_unit_test(an_address_behind_the_nodes_own_list_is_inconclusive_and_not_connected_to),
        cmocka_unit_test(a_kind_that_no_engine_makes_is_inconclusive),
        cmocka_unit_test(the_first_engine_that_can_is_used),
        cmocka_unit_test(a_lost_probe_is_counted_and_its_target_probed_again),
        cmocka_unit_test(in_a_day_every_probe_has_exactly_one_result_or_abandonment),
        cmocka_unit_test(probes_are_spread_over_the_interval_and_stay_so),
        cmocka_unit_test(two_nodes_probe_one_target_at_different_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
