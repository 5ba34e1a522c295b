/* Rise and fall counting (spec.md 3, cases A21, A22). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/health.h"

/* Feed a row of results ('S' pass, 'F' fail, '?' inconclusive) and compare the opinion after each:
 * '+' pass, '-' fail, '.' none. */
static void feed(struct health *health, const struct health_policy *policy, const char *results,
                 const char *opinions)
{
    for (size_t i = 0; results[i] != '\0'; i++) {
        enum probe_class class = results[i] == 'S'   ? PROBE_PASS
                                 : results[i] == 'F' ? PROBE_FAIL
                                                     : PROBE_INCONCLUSIVE;
        uint8_t before = health->opinion;
        bool changed = health_record(health, policy, class);
        char now = health->opinion == OPINION_PASS   ? '+'
                   : health->opinion == OPINION_FAIL ? '-'
                                                     : '.';

        if (now != opinions[i]) {
            fail_msg("after %zu of \"%s\": \"%c\", expected \"%c\"", i + 1, results, now,
                     opinions[i]);
        }
        assert_int_equal(changed, before != health->opinion);
    }
}

static void thresholds_count_consecutive_results(void **state)
{
    (void)state;
    static const struct {
        struct health_policy policy;
        const char *results, *opinions;
    } rows[] = {
        {{1, 1}, "SFSF", "+-+-"},
        {{2, 3}, "SS", ".+"},
        {{2, 3}, "FFF", "..-"},
        {{2, 3}, "SFSFFSFFF", "........-"},
        {{3, 2}, "SSFSSS", ".....+"},
        {{3, 2}, "FSFF", "...-"},
        {{10, 10}, "SSSSSSSSSS", ".........+"},
        {{10, 10}, "FFFFFFFFFFSSSSSSSSSS", ".........----------+"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct health health = {0};
        feed(&health, &rows[i].policy, rows[i].results, rows[i].opinions);
    }
}

/* A21: fall 3, rise 2. */
static void rare_misses_never_add_up(void **state)
{
    (void)state;
    const struct health_policy policy = {.healthy_threshold = 2, .unhealthy_threshold = 3};
    struct health health = {0};

    feed(&health, &policy, "SS", ".+");
    feed(&health, &policy, "FSFSFFS", "+++++++");
    feed(&health, &policy, "FFF", "++-");
    feed(&health, &policy, "SFSS", "---+");
}

static void inconclusive_results_move_no_streak(void **state)
{
    (void)state;
    const struct health_policy policy = {.healthy_threshold = 2, .unhealthy_threshold = 2};
    struct health health = {0};

    feed(&health, &policy, "?S?S?", "...++");
    feed(&health, &policy, "?F?F?", "+++--");
    feed(&health, &policy, "????", "----");
    assert_int_equal(health_fail_streak(&health), 2);
}

static void forgotten_opinion_needs_the_thresholds_again(void **state)
{
    (void)state;
    const struct health_policy policy = {.healthy_threshold = 2, .unhealthy_threshold = 3};
    struct health health = {0};

    feed(&health, &policy, "SS", ".+");
    assert_true(health_forget(&health));
    assert_false(health_forget(&health));
    feed(&health, &policy, "SFFF", "...-");
}

static void streak_is_the_one_that_agrees_with_the_opinion(void **state)
{
    (void)state;
    const struct health_policy policy = {.healthy_threshold = 2, .unhealthy_threshold = 3};
    struct health health = {0};

    assert_int_equal(health_streak(&health), 0);
    feed(&health, &policy, "F", ".");
    assert_int_equal(health_streak(&health), 1);
    feed(&health, &policy, "SSS", ".++");
    assert_int_equal(health_streak(&health), 3);
    feed(&health, &policy, "FF", "++");
    assert_int_equal(health_streak(&health), 0);
    assert_int_equal(health_fail_streak(&health), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds_count_consecutive_results),
        cmocka_unit_test(rare_misses_never_add_up),
        cmocka_unit_test(inconclusive_results_move_no_streak),
        cmocka_unit_test(forgotten_opinion_needs_the_thresholds_again),
        cmocka_unit_test(streak_is_the_one_that_agrees_with_the_opinion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
