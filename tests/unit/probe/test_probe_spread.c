/* Long runs of the probe loop in virtual time: a day without a lost probe (R-PROBE-2), and how
 * starts are spread over the interval and between nodes (A18). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/prng.h"
#include "tests/lib/probe_world.h"

#define MS NS_PER_MS

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
    struct probe_world world;
    struct prng prng;
    uint64_t n_results = 0;

    (void)state;
    probe_world_init(&world, 8, 256);
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
            probe_world_set(&world, slot, birth, 500 + (uint32_t)prng_below(&prng, 2000));
        }
        probe_world_publish(&world);
        probe_world_run_until(&world, world.now_ns + prng_below(&prng, 60) * NS_PER_SECOND,
                              count_result, &n_results);
    }

    assert_int_equal(probe_world_count(&world, PROBE_N_STARTED),
                     probe_world_count(&world, PROBE_N_FINISHED) +
                         probe_world_count(&world, PROBE_N_ABANDONED) + world.engine->n_in_flight);
    assert_int_equal(probe_world_count(&world, PROBE_N_FINISHED),
                     n_results + probe_world_count(&world, PROBE_N_DROPPED));
    assert_int_equal(probe_world_count(&world, PROBE_N_DROPPED), 0);
    assert_int_equal(probe_world_count(&world, PROBE_N_LOST), 0);
    assert_int_equal(probe_world_count(&world, PROBE_N_STARTED), world.engine->n_submitted);
    print_message("%llu probes, %llu abandoned, 0 lost\n",
                  (unsigned long long)probe_world_count(&world, PROBE_N_STARTED),
                  (unsigned long long)probe_world_count(&world, PROBE_N_ABANDONED));
    assert_true(n_results > 200000);
    probe_world_close(&world);
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
    struct probe_world world;
    struct spread *spread = calloc(1, sizeof *spread);
    unsigned bucket_max = 0;

    (void)state;
    probe_world_init(&world, 1000, 4096);
    for (uint32_t slot = 0; slot < 1000; slot++) {
        probe_world_set(&world, slot, 1, 10000);
    }
    probe_world_publish(&world);
    spread->begin_ns = world.now_ns;
    probe_world_run_until(&world, world.now_ns + 1000 * NS_PER_SECOND, spread_result, spread);

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
    probe_world_close(&world);
}

static void two_nodes_probe_one_target_at_different_times(void **state)
{
    unsigned n_apart = 0;

    (void)state;
    for (uint32_t slot = 0; slot < 1000; slot++) {
        struct probe_target target = probe_world_target(slot, 1, 10000);
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
        cmocka_unit_test(in_a_day_every_probe_has_exactly_one_result_or_abandonment),
        cmocka_unit_test(probes_are_spread_over_the_interval_and_stay_so),
        cmocka_unit_test(two_nodes_probe_one_target_at_different_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
