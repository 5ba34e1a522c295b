/* What the probe loop guarantees whatever an engine or a reader does: R-PROBE-2, the limit of
 * probes in flight, the node's own list of prefixes, full rings, targets that come and go. Virtual
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/kept_check.h"
#include "tests/lib/probe_world.h"

#define MS NS_PER_MS

struct periods {
    uint64_t last_end_ns[PROBE_WORLD_SLOTS];
    unsigned n_results[PROBE_WORLD_SLOTS];
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
    struct probe_world world;
    struct periods *periods = calloc(1, sizeof *periods);

    (void)state;
    probe_world_init(&world, 64, 64);
    for (uint32_t slot = 0; slot < 10; slot++) {
        probe_world_set(&world, slot, 1, 500);
    }
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 20 * NS_PER_SECOND, check_period, periods);

    for (uint32_t slot = 0; slot < 10; slot++) {
        assert_in_range(periods->n_results[slot], 38, 40);
    }
    free(periods);
    probe_world_close(&world);
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
    struct probe_world world;
    unsigned n_results[100] = {0};
    struct probe_result result;

    (void)state;
    probe_world_init(&world, 10, 4096);
    world.engine->plan = take_half_a_second;
    for (uint32_t slot = 0; slot < 100; slot++) {
        probe_world_set(&world, slot, 1, 1000);
    }
    probe_world_publish(&world);
    /* 100 probes of 0.5 s, ten at a time: a round takes 5 s instead of 1.5 s. */
    probe_world_run_until(&world, world.now_ns + 50 * NS_PER_SECOND, NULL, NULL);

    while (probe_world_pop(&world, &result)) {
        n_results[result.id.slot]++;
    }
    for (unsigned i = 0; i < 100; i++) {
        assert_in_range(n_results[i], 9, 10); /* each target has its turn: order of due times */
    }
    assert_int_equal(world.engine->in_flight_max, 10);
    assert_true(probe_world_count(&world, PROBE_N_DELAYED) > 850);
    assert_in_range(probe_world_count(&world, PROBE_DELAY_MAX_NS), 3 * NS_PER_SECOND,
                    5 * NS_PER_SECOND);
    assert_int_equal(probe_world_count(&world, PROBE_N_STARTED),
                     probe_world_count(&world, PROBE_N_FINISHED) + 10);
    probe_world_close(&world);
}

static void a_removed_target_is_abandoned_without_a_result(void **state)
{
    struct probe_world world;
    struct probe_result result;

    (void)state;
    probe_world_init(&world, 10, 64);
    world.engine->plan = take_half_a_second;
    probe_world_set(&world, 7, 1, 100);
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 200 * MS, NULL, NULL);
    assert_int_equal(world.engine->n_in_flight, 1);

    probe_plan_editor_remove(&world.editor, (struct target_id){.slot = 7, .birth = 1});
    probe_world_publish(&world);
    assert_int_equal(world.engine->n_abandoned, 1);
    probe_world_run_until(&world, world.now_ns + 5 * NS_PER_SECOND, NULL, NULL);

    assert_false(probe_world_pop(&world, &result));
    assert_int_equal(probe_world_count(&world, PROBE_N_STARTED), 1);
    assert_int_equal(probe_world_count(&world, PROBE_N_ABANDONED), 1);
    assert_int_equal(probe_world_count(&world, PROBE_N_FINISHED), 0);
    assert_int_equal(probe_world_count(&world, PROBE_N_TARGETS), 0);
    probe_world_close(&world);
}

/* Row 1.7: a result that belongs to a check changed in flight is dropped. */
static void a_target_replaced_in_flight_gives_results_of_the_new_definition_only(void **state)
{
    struct probe_world world;
    struct probe_result result;
    unsigned n_results = 0;

    (void)state;
    probe_world_init(&world, 10, 64);
    world.engine->plan = take_half_a_second;
    probe_world_set(&world, 7, 1, 100);
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 200 * MS, NULL, NULL);

    probe_world_set(&world, 7, 2, 100);
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 5 * NS_PER_SECOND, NULL, NULL);

    while (probe_world_pop(&world, &result)) {
        assert_int_equal(result.id.birth, 2);
        n_results++;
    }
    assert_in_range(n_results, 7, 9);
    assert_int_equal(probe_world_count(&world, PROBE_N_ABANDONED), 1);
    probe_world_close(&world);
}

static void an_unchanged_target_keeps_its_beat_when_the_plan_changes(void **state)
{
    struct probe_world world;
    struct periods *periods = calloc(1, sizeof *periods);

    (void)state;
    probe_world_init(&world, 10, 64);
    probe_world_set(&world, 3, 1, 500);
    for (uint64_t round = 0; round < 40; round++) {
        probe_world_set(&world, 9, 2 + round, 500);
        probe_world_publish(&world);
        probe_world_run_until(&world, world.now_ns + 130 * MS, NULL, NULL);
    }
    struct probe_result result;
    while (probe_world_pop(&world, &result)) {
        if (result.id.slot == 3) {
            check_period(periods, &result);
        }
    }

    assert_in_range(periods->n_results[3], 9, 11);
    free(periods);
    probe_world_close(&world);
}

static void a_full_ring_keeps_the_newest_result_of_each_target(void **state)
{
    struct probe_world world;
    struct probe_result result;
    uint64_t last_ns[3] = {0};
    unsigned n_results = 0;

    (void)state;
    probe_world_init(&world, 10, 4);
    for (uint32_t slot = 0; slot < 3; slot++) {
        probe_world_set(&world, slot, 1, 100);
    }
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 10 * NS_PER_SECOND, NULL, NULL); /* nobody reads */
    uint64_t n_finished = probe_world_count(&world, PROBE_N_FINISHED);
    assert_in_range(n_finished, 290, 300);
    assert_int_equal(probe_world_count(&world, PROBE_N_DROPPED), n_finished - 4 - 3);

    for (unsigned reads = 0; reads < 10; reads++) {
        while (probe_world_pop(&world, &result)) {
            assert_true(result.start_ns > last_ns[result.id.slot]);
            last_ns[result.id.slot] = result.start_ns;
            n_results++;
        }
        probe_world_turn(&world);
    }

    assert_int_equal(n_results, 4 + 3);
    for (unsigned slot = 0; slot < 3; slot++) {
        assert_true(last_ns[slot] + 200 * MS > world.now_ns); /* the newest one */
    }
    probe_world_close(&world);
}

static void a_waiting_result_of_a_removed_target_is_never_handed_out(void **state)
{
    struct probe_world world;
    struct probe_result result;

    (void)state;
    probe_world_init(&world, 10, 1);
    probe_world_set(&world, 0, 1, 100);
    probe_world_set(&world, 1, 1, 100);
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + NS_PER_SECOND, NULL, NULL);
    probe_plan_editor_remove(&world.editor, (struct target_id){.slot = 0, .birth = 1});
    probe_plan_editor_remove(&world.editor, (struct target_id){.slot = 1, .birth = 1});
    probe_world_publish(&world);
    assert_true(probe_world_pop(&world, &result)); /* was in the ring before */
    probe_world_turn(&world);
    assert_false(probe_world_pop(&world, &result));

    probe_world_set(&world, 1, 9, 100);
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + NS_PER_SECOND, NULL, NULL);
    while (probe_world_pop(&world, &result)) {
        assert_int_equal(result.id.birth, 9);
        probe_world_turn(&world);
    }
    probe_world_close(&world);
}

static void an_address_behind_the_nodes_own_list_is_inconclusive_and_not_connected_to(void **state)
{
    struct probe_world world;
    struct probe_result result;

    (void)state;
    probe_world_init(&world, 10, 64);
    world.loop.options.n_allowed = 1;
    assert_int_equal(cidr_parse("10.1.0.0/25", &world.loop.options.allowed[0], NULL), 0);
    probe_world_set(&world, 5, 1, 1000);   /* 10.1.0.5 */
    probe_world_set(&world, 200, 1, 1000); /* 10.1.0.200 */
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 1500 * MS, NULL, NULL);

    unsigned n_passed = 0;
    unsigned n_forbidden = 0;
    while (probe_world_pop(&world, &result)) {
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
    probe_world_close(&world);
}

static void a_kind_that_no_engine_makes_is_inconclusive(void **state)
{
    struct probe_world world;
    struct probe_result result;
    struct probe_target target = probe_world_target(1, 1, 100);

    (void)state;
    probe_world_init(&world, 10, 64);
    own_check(&target.definition)->tcp.handshake = TCP_HALF_OPEN;
    probe_plan_editor_set(&world.editor, &target, true);
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 200 * MS, NULL, NULL);

    assert_true(probe_world_pop(&world, &result));
    assert_int_equal(result.reason, REASON_LOCAL_UNSUPPORTED);
    assert_int_equal(result.probe_class, PROBE_INCONCLUSIVE);
    assert_int_equal(world.engine->n_submitted, 0);
    probe_world_close(&world);
}

static void a_kind_that_rights_are_missing_for_is_never_made_in_another_way(void **state)
{
    struct probe_world world;
    struct probe_result result;
    struct probe_target target = probe_world_target(1, 1, 100);

    (void)state;
    probe_world_init(&world, 10, 64);
    probe_loop_deny(&world.loop, PROBE_CAN_TCP_HALF_OPEN);
    own_check(&target.definition)->tcp.handshake = TCP_HALF_OPEN;
    probe_plan_editor_set(&world.editor, &target, true);
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 200 * MS, NULL, NULL);

    assert_true(probe_world_pop(&world, &result));
    assert_int_equal(result.reason, REASON_LOCAL_NO_PERMISSION);
    assert_int_equal(result.probe_class, PROBE_INCONCLUSIVE);
    assert_int_equal(world.engine->n_submitted, 0);
    probe_world_close(&world);
}

static void capabilities_have_words(void **state)
{
    char text[PROBE_CAPABILITIES_TEXT_BYTES];
    char few[8];

    (void)state;
    assert_string_equal(
        probe_capabilities_format(PROBE_CAN_TCP_FULL | PROBE_CAN_HTTP, text, sizeof text),
        "tcp-full,http");
    assert_string_equal(probe_capabilities_format(0x3f, text, sizeof text),
                        "tcp-full,tcp-half-open,http,udp-port,udp-port+echo,udp-exchange");
    assert_string_equal(probe_capabilities_format(0, text, sizeof text), "");
    assert_string_equal(probe_capabilities_format(0x3f, few, sizeof few), "tcp-ful");
}

static void the_first_engine_that_can_is_used(void **state)
{
    struct probe_world world;
    struct probe_result result;
    struct probe_target http = probe_world_target(2, 1, 100);

    (void)state;
    probe_world_init(&world, 10, 64);
    world.engine->base.capabilities = PROBE_CAN_TCP_FULL;
    struct fake_probe_engine *second =
        fake_probe_engine_new(PROBE_WORLD_SLOTS, 10, PROBE_CAN_TCP_FULL | PROBE_CAN_HTTP);
    second->now_ns = UINT64_MAX / 2; /* its probes end at once */
    probe_loop_add_engine(&world.loop, &second->base);
    own_check(&http.definition)->type = CHECK_TYPE_HTTP;
    probe_plan_editor_set(&world.editor, &http, true);
    probe_world_set(&world, 1, 1, 10000);
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 10 * NS_PER_SECOND, NULL, NULL);

    assert_int_equal(world.engine->n_submitted, 1);
    assert_true(second->n_submitted > 0);
    assert_true(probe_world_pop(&world, &result));
    probe_world_close(&world);
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
    struct probe_world world;
    struct probe_result result;
    unsigned n = 0;
    unsigned n_passed = 0;
    unsigned n_late = 0;

    (void)state;
    probe_world_init(&world, 10, 64);
    world.engine->plan = lose_each_third;
    world.engine->user = &n;
    probe_world_set(&world, 1, 1, 100);
    probe_world_publish(&world);
    probe_world_run_until(&world, world.now_ns + 30 * NS_PER_SECOND, NULL, NULL);

    while (probe_world_pop(&world, &result)) {
        n_passed += result.reason == REASON_OK;
        n_late += result.reason == REASON_LOCAL_LATE;
    }
    assert_in_range(n_late, 3, 5); /* each takes T + 5 s and a sweep */
    assert_int_equal(probe_world_count(&world, PROBE_N_LOST), n_late);
    assert_in_range(n_passed, 2 * n_late, 2 * n_late + 2);
    probe_world_close(&world);
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
        cmocka_unit_test(a_kind_that_rights_are_missing_for_is_never_made_in_another_way),
        cmocka_unit_test(capabilities_have_words),
        cmocka_unit_test(the_first_engine_that_can_is_used),
        cmocka_unit_test(a_lost_probe_is_counted_and_its_target_probed_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
