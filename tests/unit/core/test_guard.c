/* The velocity limit and the order of admission, as values.
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/guard.h"
#include "common/base/plant.h"
#include "common/base/units.h"

#define WINDOW_NS (30 * NS_PER_SECOND)

static void the_limit_is_rounded_down_and_at_least_one(void **unused)
{
    static const struct {
        uint32_t n_members;
        uint8_t percent;
        uint32_t limit;
    } rows[] = {{1, 10, 1},    {9, 10, 1},  {10, 10, 1}, {19, 10, 1},   {20, 10, 2},
                {100, 10, 10}, {3, 100, 3}, {0, 10, 1},  {1000, 1, 10}, {3, 50, 1}};

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(guard_velocity_limit(rows[i].n_members, rows[i].percent), rows[i].limit);
    }
}

/* R-EJ-6: 25 % of groups of 1 to 10, by hand. */
static void a_quarter_is_rounded_down_and_at_least_one(void **unused)
{
    static const uint32_t limits[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 2};

    (void)unused;
    for (uint32_t n = 1; n <= 10; n++) {
        assert_int_equal(guard_velocity_limit(n, 25), limits[n - 1]);
    }
}

/* R-EJ-5: at least 3, and over 30 %. */
static void three_and_over_30_percent_are_correlated(void **unused)
{
    static const struct {
        uint32_t n_bad, n_members;
        bool is_correlated;
    } rows[] = {{0, 0, false},    {1, 1, false},    {2, 2, false},   {3, 3, true},
                {3, 9, true},     {3, 10, false},   {4, 10, true},   {4, 13, true},
                {4, 14, false},   {30, 100, false}, {31, 100, true}, {300, 1000, false},
                {301, 1000, true}};

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(guard_is_correlated(rows[i].n_bad, rows[i].n_members),
                         rows[i].is_correlated);
    }
}

static void more_fail_votes_go_first_then_the_lower_id(void **unused)
{
    struct guard_candidate candidates[] = {{.row = 1, .n_votes = 2, .backend_id = 4},
                                           {.row = 2, .n_votes = 3, .backend_id = 9},
                                           {.row = 3, .n_votes = 2, .backend_id = 1},
                                           {.row = 4, .n_votes = 3, .backend_id = 7}};
    static const uint32_t order[] = {4, 2, 3, 1};

    (void)unused;
    guard_sort(candidates, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(candidates[i].row, order[i]);
    }
}

static void the_window_slides(void **unused)
{
    struct velocity velocity = {0};
    uint64_t t0 = 100 * NS_PER_SECOND;

    (void)unused;
    assert_int_equal(velocity_next_ns(&velocity, WINDOW_NS), 0);
    velocity_note(&velocity, t0);
    velocity_note(&velocity, t0);
    velocity_note(&velocity, t0 + NS_PER_SECOND);
    assert_int_equal(velocity_used(&velocity, t0 + WINDOW_NS - 1, WINDOW_NS), 3);
    assert_int_equal(velocity_next_ns(&velocity, WINDOW_NS), t0 + WINDOW_NS);
    assert_int_equal(velocity_used(&velocity, t0 + WINDOW_NS, WINDOW_NS), 1);
    assert_int_equal(velocity_used(&velocity, t0 + NS_PER_SECOND + WINDOW_NS, WINDOW_NS), 0);
}

/* What does not fit is counted for too long, never too short. */
static void more_moments_than_there_is_room_never_let_more_through(void **unused)
{
    struct velocity velocity = {0};

    (void)unused;
    for (uint64_t i = 1; i <= 40; i++) {
        uint64_t now_ns = i * NS_PER_SECOND / 10;

        velocity_note(&velocity, now_ns);
        assert_int_equal(velocity_used(&velocity, now_ns, WINDOW_NS), i);
    }
    for (uint64_t i = 1; i <= 40; i++) {
        uint64_t now_ns = i * NS_PER_SECOND / 10 + WINDOW_NS;

        assert_true(velocity_used(&velocity, now_ns, WINDOW_NS) >= 40 - i);
    }
    assert_int_equal(velocity_used(&velocity, 4 * NS_PER_SECOND + WINDOW_NS, WINDOW_NS), 0);
}

/* Of before a restart: told in the order of the rows, counted in the order of time. */
static void what_left_before_a_restart_is_counted(void **unused)
{
    struct velocity velocity = {0};
    uint64_t t0 = 100 * NS_PER_SECOND;

    (void)unused;
    velocity_note_past(&velocity, t0 + 20 * NS_PER_SECOND);
    velocity_note_past(&velocity, t0);
    velocity_note_past(&velocity, t0 + 10 * NS_PER_SECOND);
    velocity_note_past(&velocity, t0 + 10 * NS_PER_SECOND);
    velocity_note(&velocity, t0 + 25 * NS_PER_SECOND);
    assert_int_equal(velocity_used(&velocity, t0 + 25 * NS_PER_SECOND, WINDOW_NS), 5);
    assert_int_equal(velocity_used(&velocity, t0 + 30 * NS_PER_SECOND, WINDOW_NS), 4);
    assert_int_equal(velocity_used(&velocity, t0 + 40 * NS_PER_SECOND, WINDOW_NS), 2);
    assert_int_equal(velocity_used(&velocity, t0 + 50 * NS_PER_SECOND, WINDOW_NS), 1);
}

static void more_of_before_a_restart_than_there_is_room_never_let_more_through(void **unused)
{
    struct velocity velocity = {0};
    uint64_t t0 = 100 * NS_PER_SECOND;

    (void)unused;
    for (uint64_t i = 40; i > 0; i--) {
        velocity_note_past(&velocity, t0 + (i * 7 % 41) * NS_PER_SECOND / 10);
    }
    for (uint64_t i = 0; i <= 41; i++) {
        uint64_t now_ns = t0 + i * NS_PER_SECOND / 10 + WINDOW_NS;

        assert_true(velocity_used(&velocity, now_ns, WINDOW_NS) >= (i < 40 ? 40 - i : 0));
    }
}

#ifdef JURY_PLANTS
/* Nodes that hold the same votes would then choose by the id alone. */
static void twin_an_order_that_ignores_the_votes_is_caught(void **unused)
{
    struct guard_candidate candidates[] = {{.row = 1, .n_votes = 2, .backend_id = 1},
                                           {.row = 2, .n_votes = 3, .backend_id = 2}};

    (void)unused;
    plant_set("guard-order");
    guard_sort(candidates, 2);
    plant_set(NULL);
    assert_int_not_equal(candidates[0].row, 2);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_rounded_down_and_at_least_one),
        cmocka_unit_test(a_quarter_is_rounded_down_and_at_least_one),
        cmocka_unit_test(three_and_over_30_percent_are_correlated),
        cmocka_unit_test(more_fail_votes_go_first_then_the_lower_id),
        cmocka_unit_test(the_window_slides),
        cmocka_unit_test(more_moments_than_there_is_room_never_let_more_through),
        cmocka_unit_test(what_left_before_a_restart_is_counted),
        cmocka_unit_test(more_of_before_a_restart_than_there_is_room_never_let_more_through),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_an_order_that_ignores_the_votes_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
