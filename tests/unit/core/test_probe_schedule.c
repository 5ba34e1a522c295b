/* When probes start: phases, interval from end to start, one in flight (spec.md 4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/probe_schedule.h"
#include "tests/lib/kept_check.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static struct probe_target target_of(uint32_t slot, uint32_t interval_ms)
{
    struct probe_target target = {.id = {.slot = slot, .birth = 7}};

    target.definition.to.addr.family = ADDR_IPV4;
    target.definition.to.addr.bytes[3] = (uint8_t)slot;
    target.definition.to.port = 80;
    target.definition.check = kept_check(
        &(struct health_check){.interval_ms = interval_ms, .pacing = PACING_END_TO_START});
    return target;
}

static void first_start_is_within_the_interval_at_start(void **state)
{
    (void)state;
    for (uint32_t slot = 0; slot < 1000; slot++) {
        struct probe_target target = target_of(slot, 10000);

        assert_in_range(probe_schedule_phase_ns(1, &target, true), 0, 10 * SECOND - 1);
        assert_in_range(probe_schedule_phase_ns(1, &target, false), 0, SECOND - 1);
    }
    struct probe_target fast = target_of(1, 200);
    assert_in_range(probe_schedule_phase_ns(1, &fast, false), 0, 200 * MS - 1);
}

/* A18: 1,000 targets with 10 s: at most 30 starts in each 100 ms of the first and the tenth round;
 * mean period 10 s; two nodes differ by over 0.5 s for at least 85 % of the targets. */
static void thousand_targets_spread_over_the_interval(void **state)
{
    (void)state;
    struct probe_schedule schedule;
    unsigned first[100] = {0};
    unsigned tenth[100] = {0};
    unsigned apart = 0;

    probe_schedule_init(&schedule, 42);
    for (uint32_t slot = 0; slot < 1000; slot++) {
        struct probe_target target = target_of(slot, 10000);
        uint64_t here = probe_schedule_phase_ns(42, &target, true);
        uint64_t there = probe_schedule_phase_ns(43, &target, true);
        uint64_t difference = here > there ? here - there : there - here;

        assert_int_equal(probe_schedule_add(&schedule, &target, true, 0), 0);
        apart += difference > SECOND / 2 && difference < 10 * SECOND - SECOND / 2;
    }
    for (unsigned n = 0; n < 10000; n++) {
        uint64_t now = probe_schedule_next_ns(&schedule);
        struct target_id id;

        assert_true(probe_schedule_start(&schedule, now, &id));
        if (now < 10 * SECOND) {
            first[now / (100 * MS)]++;
        }
        if (now >= 90 * SECOND && now < 100 * SECOND) {
            tenth[(now - 90 * SECOND) / (100 * MS)]++;
        }
        probe_schedule_end(&schedule, id, now);
    }

    for (unsigned bucket = 0; bucket < 100; bucket++) {
        assert_in_range(first[bucket], 0, 30);
        assert_in_range(tenth[bucket], 0, 30);
    }
    assert_true(apart >= 850);
    probe_schedule_close(&schedule);
}

static void interval_runs_from_the_end_to_the_next_start(void **state)
{
    (void)state;
    struct probe_schedule schedule;
    struct probe_target target = target_of(3, 2000);
    struct target_id id;

    probe_schedule_init(&schedule, 1);
    assert_int_equal(probe_schedule_add(&schedule, &target, false, 0), 0);
    uint64_t start = probe_schedule_next_ns(&schedule);
    assert_false(probe_schedule_start(&schedule, start - 1, &id));
    assert_true(probe_schedule_start(&schedule, start, &id));
    assert_true(id.slot == 3 && id.birth == 7);

    assert_true(probe_schedule_next_ns(&schedule) == TIMER_NEVER); /* one in flight */
    probe_schedule_end(&schedule, id, start + 5 * SECOND);
    assert_true(probe_schedule_next_ns(&schedule) == start + 7 * SECOND);
    probe_schedule_close(&schedule);
}

static void fixed_pacing_keeps_its_beat_and_never_overlaps(void **state)
{
    (void)state;
    static const struct {
        uint64_t took_ms, next_ms;
    } rows[] = {{0, 2000}, {1999, 2000}, {2000, 2000}, {2001, 4000}, {5000, 6000}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct probe_schedule schedule;
        struct probe_target target = target_of(0, 2000);
        struct target_id id;

        own_check(&target.definition)->pacing = PACING_FIXED;
        probe_schedule_init(&schedule, 1);
        assert_int_equal(probe_schedule_add(&schedule, &target, false, 0), 0);
        uint64_t start = probe_schedule_next_ns(&schedule);
        assert_true(probe_schedule_start(&schedule, start, &id));
        probe_schedule_end(&schedule, id, start + rows[i].took_ms * MS);
        assert_true(probe_schedule_next_ns(&schedule) == start + rows[i].next_ms * MS);
        probe_schedule_close(&schedule);
    }
}

static void removed_and_replaced_targets_ignore_the_end_of_an_old_probe(void **state)
{
    (void)state;
    struct probe_schedule schedule;
    struct probe_target target = target_of(0, 2000);
    struct target_id old;

    probe_schedule_init(&schedule, 1);
    assert_int_equal(probe_schedule_add(&schedule, &target, false, 0), 0);
    assert_true(probe_schedule_start(&schedule, SECOND, &old));
    target.id.birth = 8;
    assert_int_equal(probe_schedule_add(&schedule, &target, false, SECOND), 0);
    uint64_t start = probe_schedule_next_ns(&schedule);

    probe_schedule_end(&schedule, old, 2 * SECOND);
    probe_schedule_remove(&schedule, old);
    assert_true(probe_schedule_next_ns(&schedule) == start);
    probe_schedule_remove(&schedule, target.id);
    assert_true(probe_schedule_next_ns(&schedule) == TIMER_NEVER);
    probe_schedule_close(&schedule);
}

/* However far it begins from its beat, and whatever a probe takes up to a sixteenth of the
 * interval: no pause is longer than the interval or shorter than seven eighths, and it comes to the
 * beat. */
static void a_beat_is_reached_by_shorter_pauses_alone(void **state)
{
    (void)state;
    for (unsigned row = 0; row < 160; row++) {
        struct probe_schedule schedule;
        struct probe_target target = target_of(0, 2000);
        struct probe_order order = {
            .id = target.id, .is_on = true, .beat_ns = 1 + row / 8 * 100 * MS};
        uint64_t took = row % 8 * 15 * MS;
        struct target_id id;

        probe_schedule_init(&schedule, 1);
        assert_int_equal(probe_schedule_add(&schedule, &target, false, 0), 0);
        probe_schedule_order(&schedule, &order, 0);
        for (unsigned n = 0; n < 20; n++) {
            uint64_t start = probe_schedule_next_ns(&schedule);

            assert_true(n < 14 || (start - order.beat_ns) % (2 * SECOND) == 0);
            assert_true(probe_schedule_start(&schedule, start, &id));
            probe_schedule_end(&schedule, id, start + took);
            uint64_t pause = probe_schedule_next_ns(&schedule) - start - took;
            assert_in_range(pause, 1750 * MS, 2000 * MS);
        }
        probe_schedule_close(&schedule);
    }
}

static void a_target_rests_and_is_called(void **state)
{
    (void)state;
    struct probe_schedule schedule;
    struct probe_target target = target_of(0, 2000);
    struct probe_order order = {.id = target.id, .beat_ns = 5 * SECOND};
    struct target_id id;

    probe_schedule_init(&schedule, 1);
    assert_int_equal(probe_schedule_add(&schedule, &target, false, 0), 0);
    probe_schedule_order(&schedule, &order, 0);
    assert_true(probe_schedule_next_ns(&schedule) == TIMER_NEVER);
    order.is_on = true;
    probe_schedule_order(&schedule, &order, 8 * SECOND); /* on its next beat */
    assert_true(probe_schedule_next_ns(&schedule) == 9 * SECOND);
    order.is_now = true;
    probe_schedule_order(&schedule, &order, 8 * SECOND + 5);
    assert_true(probe_schedule_next_ns(&schedule) == 8 * SECOND + 5);
    assert_true(probe_schedule_start(&schedule, 8 * SECOND + 5, &id));
    probe_schedule_order(&schedule, &order, 9 * SECOND); /* one is in flight */
    assert_true(probe_schedule_next_ns(&schedule) == TIMER_NEVER);
    order.is_on = order.is_now = false;
    probe_schedule_order(&schedule, &order, 9 * SECOND);
    probe_schedule_end(&schedule, id, 10 * SECOND); /* and it rests */
    assert_true(probe_schedule_next_ns(&schedule) == TIMER_NEVER);
    order.id.birth = 9; /* another target's: nothing */
    order.is_on = true;
    probe_schedule_order(&schedule, &order, 10 * SECOND);
    assert_true(probe_schedule_next_ns(&schedule) == TIMER_NEVER);
    probe_schedule_close(&schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_start_is_within_the_interval_at_start),
        cmocka_unit_test(thousand_targets_spread_over_the_interval),
        cmocka_unit_test(interval_runs_from_the_end_to_the_next_start),
        cmocka_unit_test(fixed_pacing_keeps_its_beat_and_never_overlaps),
        cmocka_unit_test(removed_and_replaced_targets_ignore_the_end_of_an_old_probe),
        cmocka_unit_test(a_beat_is_reached_by_shorter_pauses_alone),
        cmocka_unit_test(a_target_rests_and_is_called),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
