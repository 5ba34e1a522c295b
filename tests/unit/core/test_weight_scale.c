/* How much of a weight counts, as pure values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/weight_scale.h"
#include "common/base/units.h"

#define SECONDS(n) ((n)*1000 * NS_PER_MS)

static void a_slow_start_rises_in_ten_equal_steps(void **state)
{
    (void)state;
    static const struct {
        uint64_t elapsed_ns;
        uint8_t percent;
    } rows[] = {
        {0, 10},
        {1, 10},
        {SECONDS(3) - 1, 10},
        {SECONDS(3), 19},
        {SECONDS(15), 55},
        {SECONDS(27), 91},
        {SECONDS(30) - 1, 91},
        {SECONDS(30), 100},
        {SECONDS(31), 100},
        {UINT64_MAX / 100, 100},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(weight_slow_percent(rows[i].elapsed_ns, SECONDS(30)), rows[i].percent);
    }
}

static void the_next_step_is_when_the_percent_changes(void **state)
{
    (void)state;
    static const uint64_t durations_ns[] = {SECONDS(1), SECONDS(30), SECONDS(900), 7, 999};

    for (size_t i = 0; i < sizeof durations_ns / sizeof durations_ns[0]; i++) {
        uint64_t at_ns = 0;
        unsigned n_steps = 0;

        while (at_ns < durations_ns[i]) {
            uint64_t next_ns = weight_slow_next_ns(at_ns, durations_ns[i]);
            uint8_t percent = weight_slow_percent(at_ns, durations_ns[i]);

            assert_true(next_ns > at_ns);
            assert_int_equal(weight_slow_percent(next_ns - 1, durations_ns[i]), percent);
            assert_true(weight_slow_percent(next_ns, durations_ns[i]) > percent);
            at_ns = next_ns;
            n_steps++;
        }
        assert_true(n_steps <= WEIGHT_SLOW_STEPS);
        assert_int_equal(weight_slow_percent(at_ns, durations_ns[i]), WEIGHT_WHOLE);
    }
}

static void two_causes_multiply_and_leave_at_least_one_percent(void **state)
{
    (void)state;
    assert_int_equal(weight_join(100, 100), 100);
    assert_int_equal(weight_join(55, 67), 36);
    assert_int_equal(weight_join(10, 10), 1);
    assert_int_equal(weight_join(1, 1), 1);
}

static void votes_give_the_part_that_passes_and_never_less_than_a_tenth(void **state)
{
    (void)state;
    static const struct {
        unsigned n_pass, n_fail;
        uint8_t percent;
    } rows[] = {
        {3, 0, 100}, {2, 1, 67}, {1, 2, 33}, {1, 63, 10}, {0, 3, 10}, {0, 0, 100}, {63, 1, 98},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(weight_votes_percent(rows[i].n_pass, rows[i].n_fail), rows[i].percent);
    }
}

static void a_response_time_is_known_after_eight_answers_and_smoothed(void **state)
{
    (void)state;
    struct weight_latency latency = {0};

    for (unsigned i = 0; i < 8; i++) {
        assert_false(weight_latency_is_known(&latency));
        weight_latency_note(&latency, 8000);
    }
    assert_true(weight_latency_is_known(&latency));
    assert_int_equal(weight_latency_us(&latency), 8000);
    weight_latency_note(&latency, 16000);
    assert_int_equal(weight_latency_us(&latency), 9000);
    for (unsigned i = 0; i < 100; i++) {
        weight_latency_note(&latency, 1000);
    }
    assert_in_range(weight_latency_us(&latency), 1000, 1001);
    weight_latency_note(&latency, UINT32_MAX); /* bounded, and no overflow */
    assert_in_range(weight_latency_us(&latency), 60000000, 70000000);
    for (unsigned i = 0; i < 1000; i++) {
        weight_latency_note(&latency, UINT32_MAX);
    }
    assert_in_range(weight_latency_us(&latency), 530000000, UINT32_MAX / 8);
}

static void the_middle_is_the_higher_of_two(void **state)
{
    (void)state;
    uint32_t odd[] = {30, 10, 20};
    uint32_t even[] = {30, 10, 20, 40};
    uint32_t one[] = {7};

    assert_int_equal(weight_median_us(odd, 3), 20);
    assert_int_equal(weight_median_us(even, 4), 30);
    assert_int_equal(weight_median_us(one, 1), 7);
}

static void latency_gives_median_by_own_with_a_dead_band(void **state)
{
    (void)state;
    static const struct {
        uint32_t own_us, median_us;
        uint8_t before, percent;
    } rows[] = {
        {40000, 10000, 100, 25},  {10000, 40000, 25, 100}, /* faster than the middle is no more */
        {13000, 10000, 100, 100},                          /* 76 %: less than 25 off */
        {13400, 10000, 100, 74},  {11000, 10000, 74, 100}, /* 90.9 % */
        {11200, 10000, 74, 74},                            /* 89 %: less than 25 % off 74 */
        {35000, 10000, 25, 25},   {30000, 10000, 25, 33},   {1000000, 10000, 100, 10},
        {900, 40, 100, 100}, /* both below a millisecond */
        {4000, 40, 100, 25},      {UINT32_MAX, 1, 100, 10}, {1, UINT32_MAX, 10, 100},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(weight_latency_percent(rows[i].own_us, rows[i].median_us, rows[i].before),
                         rows[i].percent);
    }
}

/* Whatever was in force, what is so for long is followed: nothing sticks. */
static void from_any_share_the_whole_weight_comes_back_and_no_two_alternate(void **state)
{
    (void)state;
    for (unsigned before = 1; before <= 100; before++) {
        assert_int_equal(weight_latency_percent(10000, 10000, (uint8_t)before), 100);
        for (uint32_t own_us = 1000; own_us < 2000000; own_us += own_us / 3) {
            uint8_t once = weight_latency_percent(own_us, 10000, (uint8_t)before);

            assert_in_range(once, 1, 100);
            assert_int_equal(weight_latency_percent(own_us, 10000, once), once);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_start_rises_in_ten_equal_steps),
        cmocka_unit_test(the_next_step_is_when_the_percent_changes),
        cmocka_unit_test(two_causes_multiply_and_leave_at_least_one_percent),
        cmocka_unit_test(votes_give_the_part_that_passes_and_never_less_than_a_tenth),
        cmocka_unit_test(a_response_time_is_known_after_eight_answers_and_smoothed),
        cmocka_unit_test(the_middle_is_the_higher_of_two),
        cmocka_unit_test(latency_gives_median_by_own_with_a_dead_band),
        cmocka_unit_test(from_any_share_the_whole_weight_comes_back_and_no_two_alternate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
