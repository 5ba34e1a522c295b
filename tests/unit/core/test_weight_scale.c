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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_start_rises_in_ten_equal_steps),
        cmocka_unit_test(the_next_step_is_when_the_percent_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
