#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/drain.h"

static void policies_mean_what_the_table_of_spec_6_says(void **state)
{
    (void)state;
    static const struct {
        unsigned flow_policy;
        uint64_t deadline, now;
        enum drain_action wanted;
    } rows[] = {
        {FLOW_KEEP, 0, 100, DRAIN_KEEP},
        {FLOW_KEEP, 50, 100, DRAIN_KEEP}, /* a deadline without a policy cuts nothing */
        {FLOW_CLOSE_AT, 100, 99, DRAIN_KEEP},
        {FLOW_CLOSE_AT, 100, 100, DRAIN_CLOSE},
        {FLOW_CLOSE_AT, 0, 100, DRAIN_KEEP}, /* nor a policy without a deadline (I-13) */
        {FLOW_CLOSE_NOW, 0, 1, DRAIN_CLOSE},
        {FLOW_MOVE, 0, 1, DRAIN_MOVE},
        {FLOW_MOVE_AT, 100, 99, DRAIN_KEEP},
        {FLOW_MOVE_AT, 100, 100, DRAIN_MOVE},
        {FLOW_HOLD_IDLE, 100, 99, DRAIN_KEEP_IDLE},
        {FLOW_HOLD_IDLE, 100, 100, DRAIN_KEEP},
        {15, 1, 100, DRAIN_KEEP}, /* a newer agent's word */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(drain_decide(rows[i].flow_policy, rows[i].deadline, rows[i].now),
                         rows[i].wanted);
    }
}

static void deadlines_never_overflow_and_are_never_none(void **state)
{
    (void)state;

    assert_int_equal(drain_deadline(1000, 300000), UINT64_C(300000001000));
    assert_true(drain_deadline(UINT64_MAX - 5, 1) == UINT64_MAX);
    assert_int_equal(drain_deadline(0, 0), 1);
}

static void time_left_is_rounded_up_so_that_zero_means_passed(void **state)
{
    (void)state;

    assert_int_equal(drain_left_ms(2000000, 1000000), 1);
    assert_int_equal(drain_left_ms(2000001, 1000000), 2);
    assert_int_equal(drain_left_ms(1000001, 1000000), 1);
    assert_int_equal(drain_left_ms(1000000, 1000000), 0);
    assert_true(drain_left_ms(0, 1000000) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_mean_what_the_table_of_spec_6_says),
        cmocka_unit_test(deadlines_never_overflow_and_are_never_none),
        cmocka_unit_test(time_left_is_rounded_up_so_that_zero_means_passed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
