/* Flap damping as a value, with the figures of R-FLAP-1 by hand.
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/guard_flap.h"
#include "common/base/plant.h"
#include "common/base/units.h"

#define T0 (1000 * NS_PER_SECOND)
#define HOLD_MS 30000

static uint64_t hold_s(const struct flap_memory *memory, uint64_t now_ns)
{
    return flap_hold_ns(memory, HOLD_MS, now_ns) / NS_PER_SECOND;
}

static void each_further_flap_within_10_minutes_doubles_the_hold_up_to_5(void **unused)
{
    static const uint64_t holds[] = {0, 30, 60, 120, 240, 300, 300, 300};
    struct flap_memory memory = {0};

    (void)unused;
    assert_int_equal(hold_s(&memory, T0), 0);
    for (uint64_t i = 0; i < sizeof holds / sizeof holds[0]; i++) {
        uint64_t now_ns = T0 + i * 599 * NS_PER_SECOND;

        flap_note_ejection(&memory, now_ns);
        assert_int_equal(hold_s(&memory, now_ns), holds[i]);
        assert_int_equal(flap_is_flapping(&memory, now_ns), i > 0);
    }
}

static void ten_minutes_after_the_last_ejection_all_is_forgotten(void **unused)
{
    struct flap_memory memory = {0};
    uint64_t last_ns = T0 + 10 * NS_PER_SECOND;

    (void)unused;
    flap_note_ejection(&memory, T0);
    flap_note_ejection(&memory, last_ns);
    assert_true(flap_is_flapping(&memory, last_ns + 600 * NS_PER_SECOND - 1));
    assert_false(flap_is_flapping(&memory, last_ns + 600 * NS_PER_SECOND));
    assert_int_equal(hold_s(&memory, last_ns + 600 * NS_PER_SECOND), 0);
    flap_note_ejection(&memory, last_ns + 600 * NS_PER_SECOND);
    assert_false(flap_is_flapping(&memory, last_ns + 600 * NS_PER_SECOND));
    flap_note_ejection(&memory, last_ns + 601 * NS_PER_SECOND);
    assert_int_equal(hold_s(&memory, last_ns + 601 * NS_PER_SECOND), 30);
}

static void it_returns_after_the_hold_or_when_all_is_forgotten(void **unused)
{
    struct flap_memory memory = {0};
    uint64_t since_ns = T0 + 5 * NS_PER_SECOND;

    (void)unused;
    assert_int_equal(flap_return_ns(&memory, HOLD_MS, since_ns, since_ns), since_ns);
    flap_note_ejection(&memory, T0);
    assert_int_equal(flap_return_ns(&memory, HOLD_MS, since_ns, since_ns), since_ns);
    flap_note_ejection(&memory, T0 + NS_PER_SECOND);
    assert_int_equal(flap_return_ns(&memory, HOLD_MS, since_ns, since_ns),
                     since_ns + 30 * NS_PER_SECOND);
    /* The votes came round only shortly before the end of the memory. */
    since_ns = T0 + 590 * NS_PER_SECOND;
    assert_int_equal(flap_return_ns(&memory, HOLD_MS, since_ns, since_ns),
                     T0 + 601 * NS_PER_SECOND);
    since_ns = T0 + 700 * NS_PER_SECOND;
    assert_int_equal(flap_return_ns(&memory, HOLD_MS, since_ns, since_ns), since_ns);
}

static void many_flaps_do_not_overflow(void **unused)
{
    struct flap_memory memory = {0};

    (void)unused;
    for (uint64_t i = 0; i < 1000; i++) {
        flap_note_ejection(&memory, T0 + i * NS_PER_SECOND);
    }
    assert_int_equal(flap_hold_ns(&memory, 300000, T0 + 1000 * NS_PER_SECOND), 300 * NS_PER_SECOND);
    assert_int_equal(flap_hold_ns(&memory, 1000, T0 + 1000 * NS_PER_SECOND), 300 * NS_PER_SECOND);
}

#ifdef JURY_PLANTS
static void twin_no_damping_is_caught(void **unused)
{
    struct flap_memory memory = {0};

    (void)unused;
    flap_note_ejection(&memory, T0);
    flap_note_ejection(&memory, T0 + NS_PER_SECOND);
    plant_set("damping-off");
    uint64_t hold = hold_s(&memory, T0 + NS_PER_SECOND);
    plant_set(NULL);
    assert_int_not_equal(hold, 30);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_further_flap_within_10_minutes_doubles_the_hold_up_to_5),
        cmocka_unit_test(ten_minutes_after_the_last_ejection_all_is_forgotten),
        cmocka_unit_test(it_returns_after_the_hold_or_when_all_is_forgotten),
        cmocka_unit_test(many_flaps_do_not_overflow),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_no_damping_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
