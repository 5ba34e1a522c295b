/* Starts in slots (row 3.4): one wake-up serves many probes, and what a start is early or late adds
 * up to nothing. Ten simulated minutes; real ones are judged by tests/integration/probe_pacing.py.
 */
/* ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/plant.h"
#include "common/base/prng.h"
#include "tests/lib/kept_check.h"
#include "tests/lib/probe_world.h"

#define MS NS_PER_MS
#define TEN_MINUTES_NS (600 * NS_PER_SECOND)
#define INTERVAL_MS 1000

struct starts {
    struct prng prng;
    uint64_t first_ns[PROBE_WORLD_SLOTS];
    uint64_t last_start_ns[PROBE_WORLD_SLOTS];
    uint64_t last_end_ns[PROBE_WORLD_SLOTS];
    uint32_t n[PROBE_WORLD_SLOTS];
    uint64_t early_max_ns; /* against end-of-last + interval */
    uint64_t late_max_ns;
    uint64_t beat_max_ns; /* against the first start + n intervals */
};

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static uint64_t take_up_to_30_ms(void *user, const struct probe_target *target,
                                 enum probe_reason *ret_reason)
{
    struct starts *starts = user;

    (void)target;
    *ret_reason = REASON_OK;
    return prng_below(&starts->prng, 30 * MS);
}

static void note(void *user, const struct probe_result *result)
{
    struct starts *starts = user;
    uint32_t slot = result->id.slot;

    if (starts->n[slot] == 0) {
        starts->first_ns[slot] = result->start_ns;
    } else {
        uint64_t due_ns = starts->last_end_ns[slot] + INTERVAL_MS * MS;
        uint64_t off_ns = distance(result->start_ns, due_ns);
        uint64_t *max_ns = result->start_ns < due_ns ? &starts->early_max_ns : &starts->late_max_ns;
        uint64_t beat_ns =
            distance(result->start_ns, starts->first_ns[slot] + starts->n[slot] * INTERVAL_MS * MS);

        *max_ns = off_ns > *max_ns ? off_ns : *max_ns;
        starts->beat_max_ns = beat_ns > starts->beat_max_ns ? beat_ns : starts->beat_max_ns;
    }
    starts->last_start_ns[slot] = result->start_ns;
    starts->last_end_ns[slot] = result->end_ns;
    starts->n[slot]++;
}

static struct starts *begin(struct probe_world *world, uint32_t n_targets, enum check_pacing pacing)
{
    struct starts *starts = calloc(1, sizeof *starts);

    prng_init(&starts->prng, 5);
    probe_world_init(world, 1024, 4096);
    world->loop.options.slot_ns = PROBE_SLOT_NS;
    world->engine->plan = take_up_to_30_ms;
    world->engine->user = starts;
    for (uint32_t slot = 0; slot < n_targets; slot++) {
        struct probe_target target = probe_world_target(slot, 1, INTERVAL_MS);

        own_check(&target.definition)->pacing = (uint8_t)pacing;
        assert_int_equal(probe_plan_editor_set(&world->editor, &target, true), 0);
    }
    probe_world_publish(world);
    return starts;
}

static void a_start_is_less_than_a_slot_off_over_ten_minutes(void **state)
{
    struct probe_world world;

    (void)state;
    struct starts *starts = begin(&world, 20, PACING_END_TO_START);
    probe_world_run_until(&world, world.now_ns + TEN_MINUTES_NS, note, starts);

    assert_in_range(starts->early_max_ns, 1, PROBE_SLOT_NS / PROBE_SLOT_EARLY);
    assert_in_range(starts->late_max_ns, 1, PROBE_SLOT_NS - PROBE_SLOT_NS / PROBE_SLOT_EARLY);
    for (uint32_t slot = 0; slot < 20; slot++) {
        /* 1 s and 15 ms a round on the average, and 1.5 ms of rounding. */
        assert_in_range(starts->n[slot], 587, 593);
    }
    free(starts);
    probe_world_close(&world);
}

static void fixed_pacing_is_on_its_beat_after_ten_minutes(void **state)
{
    struct probe_world world;

    (void)state;
    struct starts *starts = begin(&world, 20, PACING_FIXED);
    probe_world_run_until(&world, world.now_ns + TEN_MINUTES_NS, note, starts);

    assert_in_range(starts->beat_max_ns, 0, PROBE_SLOT_NS);
    for (uint32_t slot = 0; slot < 20; slot++) {
        assert_in_range(starts->n[slot], 599, 601);
    }
    free(starts);
    probe_world_close(&world);
}

static uint64_t take_a_tenth_of_a_ms(void *user, const struct probe_target *target,
                                     enum probe_reason *ret_reason)
{
    (void)user;
    (void)target;
    *ret_reason = REASON_OK;
    return MS / 10;
}

/* Each edge of a slot is one turn for all that start there, and here one for the results, too. */
static void one_wake_up_starts_many_probes(void **state)
{
    struct probe_world world;
    uint32_t n_turns = 0;

    (void)state;
    struct starts *starts = begin(&world, 256, PACING_END_TO_START);
    world.engine->plan = take_a_tenth_of_a_ms;
    uint64_t end_ns = world.now_ns + 10 * NS_PER_SECOND;
    while (world.now_ns < end_ns) {
        uint32_t before = world.engine->n_submitted;

        probe_world_turn(&world);
        n_turns += world.engine->n_submitted > before ? 1 : 0;
        uint64_t next_ns = probe_loop_next_ns(&world.loop, world.now_ns);
        world.now_ns = next_ns > world.now_ns ? next_ns : world.now_ns + 1;
    }

    assert_in_range(world.engine->n_submitted, 2500, 2570);
    assert_in_range(n_turns, 100, 10 * NS_PER_SECOND / PROBE_SLOT_NS);
    free(starts);
    probe_world_close(&world);
}

#ifdef JURY_PLANTS
/* The twin of the beat: counted from the starts themselves it would wander off. */
static void a_beat_that_drifts_is_seen(void **state)
{
    struct probe_world world;

    (void)state;
    struct starts *starts = begin(&world, 20, PACING_FIXED);
    plant_set("fixed-drifts");
    for (unsigned i = 0; i < 60000; i++) {
        probe_world_run_until(&world, world.now_ns + 8 * MS, note, starts);
        world.now_ns += 3 * MS; /* a wake-up comes late by more than a start may be early */
    }
    plant_set(NULL);
    assert_true(starts->beat_max_ns > PROBE_SLOT_NS);
    free(starts);
    probe_world_close(&world);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_is_less_than_a_slot_off_over_ten_minutes),
        cmocka_unit_test(fixed_pacing_is_on_its_beat_after_ten_minutes),
        cmocka_unit_test(one_wake_up_starts_many_probes),
#ifdef JURY_PLANTS
        cmocka_unit_test(a_beat_that_drifts_is_seen),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
