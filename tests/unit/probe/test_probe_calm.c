/* When the reader of a probe thread is woken: for what may change an opinion at once, for passes
 * after passes several together. With the virtual clock and an engine that says what comes of a
 * probe; the reader reads when it is woken, and only then. */
/* ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/plant.h"
#include "tests/lib/probe_world.h"

#define MS NS_PER_MS
#define TARGETS 20
#define INTERVAL_MS 100
#define ILL 3 /* the one target that fails, for a time */
#define H_MAX 10

struct reading {
    struct probe_world world;
    uint64_t ill_from_ns, ill_to_ns;
    unsigned n_wakes, n_results;
    unsigned n_failures;
    unsigned n_passes[TARGETS]; /* in a row */
    /* How long after its end one was read, at most: passes above H_MAX in a row, and all others. */
    uint64_t calm_late_ns, late_ns;
};

static uint64_t answer(void *user, const struct probe_target *target, enum probe_reason *ret_reason)
{
    const struct reading *reading = user;
    uint64_t now_ns = reading->world.now_ns;

    *ret_reason =
        target->id.slot == ILL && now_ns >= reading->ill_from_ns && now_ns < reading->ill_to_ns
            ? REASON_CONNECT_FAILED
            : REASON_OK;
    return MS;
}

static void read_one(struct reading *reading, const struct probe_result *result)
{
    unsigned *n_passes = &reading->n_passes[result->id.slot];
    uint64_t late_ns = reading->world.now_ns - result->end_ns;

    reading->n_results++;
    *n_passes = result->probe_class == PROBE_PASS ? *n_passes + 1 : 0;
    uint64_t *most_ns = *n_passes > H_MAX ? &reading->calm_late_ns : &reading->late_ns;
    *most_ns = late_ns > *most_ns ? late_ns : *most_ns;
    reading->n_failures += result->probe_class == PROBE_FAIL;
}

static void run_until(struct reading *reading, uint64_t end_ns)
{
    struct probe_world *world = &reading->world;
    struct probe_result result;

    while (world->now_ns < end_ns) {
        probe_world_turn(world);
        uint64_t next_ns = probe_loop_next_ns(&world->loop, world->now_ns);

        if (probe_loop_wants_reader(&world->loop, next_ns)) {
            reading->n_wakes++;
            while (probe_world_pop(world, &result)) {
                read_one(reading, &result);
            }
        }
        world->now_ns = next_ns > world->now_ns ? next_ns : world->now_ns + 1;
    }
}

static void begin(struct reading *reading, uint32_t n_targets, uint32_t interval_ms)
{
    *reading = (struct reading){.n_wakes = 0};
    probe_world_init(&reading->world, TARGETS, 4096);
    reading->world.engine->plan = answer;
    reading->world.engine->user = reading;
    for (uint32_t slot = 0; slot < n_targets; slot++) {
        probe_world_set(&reading->world, slot, 1, interval_ms);
    }
    probe_world_publish(&reading->world);
}

static void passes_after_passes_are_told_together(void **state)
{
    struct reading reading;

    (void)state;
    begin(&reading, TARGETS, INTERVAL_MS);
    run_until(&reading, reading.world.now_ns + 5 * NS_PER_SECOND);
    reading.n_wakes = reading.n_results = 0;
    run_until(&reading, reading.world.now_ns + 5 * NS_PER_SECOND);

    assert_in_range(reading.n_results, 900, 1000);
    assert_in_range(reading.n_wakes, 1, 5000 / 15);
    assert_in_range(reading.calm_late_ns, MS, PROBE_CALM_NS);
    assert_int_equal(reading.late_ns, 0);
    probe_world_close(&reading.world);
}

/* Ill for less than a round, and the passes that lead out of it. */
static uint64_t late_of_one_that_was_ill(void)
{
    struct reading reading;

    begin(&reading, TARGETS, INTERVAL_MS);
    run_until(&reading, reading.world.now_ns + 5 * NS_PER_SECOND);
    reading.ill_from_ns = reading.world.now_ns;
    reading.ill_to_ns = reading.world.now_ns + 5 * INTERVAL_MS * MS;
    run_until(&reading, reading.world.now_ns + 5 * NS_PER_SECOND);

    assert_in_range(reading.n_failures, 4, 6);
    probe_world_close(&reading.world);
    return reading.late_ns;
}

static void a_failure_and_what_leads_out_of_it_is_told_at_once(void **state)
{
    (void)state;
    assert_int_equal(late_of_one_that_was_ill(), 0);
}

static void a_thread_that_will_sleep_tells_before(void **state)
{
    struct reading reading;

    (void)state;
    begin(&reading, 1, 1000);
    run_until(&reading, reading.world.now_ns + 60 * NS_PER_SECOND);

    assert_in_range(reading.n_results, 58, 60);
    assert_int_equal(reading.calm_late_ns, 0);
    assert_int_equal(reading.late_ns, 0);
    probe_world_close(&reading.world);
}

#ifdef JURY_PLANTS
static void twin_a_failure_that_waits_is_seen(void **state)
{
    (void)state;
    plant_set("all-results-wait");
    assert_true(late_of_one_that_was_ill() > 0);
    plant_set(NULL);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_after_passes_are_told_together),
        cmocka_unit_test(a_failure_and_what_leads_out_of_it_is_told_at_once),
        cmocka_unit_test(a_thread_that_will_sleep_tells_before),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_a_failure_that_waits_is_seen),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
