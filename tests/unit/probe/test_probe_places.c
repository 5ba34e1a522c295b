/* What the engines have in common: places, buckets, and the one result of a probe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/probe/probe_attempt.h"
#include "agent/probe/probe_buckets.h"
#include "agent/probe/probe_places.h"
#include "common/base/clock.h"
#include "common/base/limits.h"

static void every_place_is_had_once_and_comes_back(void **state)
{
    struct probe_places places = {0};

    (void)state;
    assert_int_equal(probe_places_init(&places, 3), 0);
    for (uint32_t slot = 10; slot < 13; slot++) {
        assert_true(probe_places_have_room(&places));
        uint32_t place = probe_places_take(&places, slot);
        assert_in_range(place, 0, 2);
        assert_int_equal(probe_places_of_slot(&places, slot), place);
    }
    assert_false(probe_places_have_room(&places));
    uint32_t place = probe_places_of_slot(&places, 11);
    probe_places_release(&places, place);
    assert_int_equal(probe_places_of_slot(&places, 11), NO_PLACE);
    assert_int_equal(probe_places_take(&places, LIMIT_TARGETS - 1), place);
    assert_int_equal(probe_places_of_slot(&places, LIMIT_TARGETS - 1), place);
    probe_places_close(&places);
}

static void release_ends_the_timer_and_the_token(void **state)
{
    struct probe_places places = {0};
    uint32_t due;

    (void)state;
    assert_int_equal(probe_places_init(&places, 2), 0);
    uint32_t place = probe_places_take(&places, 0);
    uint64_t token = probe_places_token(&places, place);
    timers_set(&places.timers, place, 5);
    assert_int_equal(probe_places_of_token(&places, token), place);
    probe_places_release(&places, place);
    assert_false(timers_pop(&places.timers, 5, &due));
    assert_int_equal(probe_places_of_token(&places, token), NO_PLACE);
    assert_int_equal(probe_places_take(&places, 0), place);
    assert_int_equal(probe_places_of_token(&places, token), NO_PLACE);
    probe_places_close(&places);
}

static void buckets_give_what_is_in_them_youngest_first(void **state)
{
    const struct hash_key secret = {1, 2};
    const struct endpoint to = {.addr = {.family = ADDR_IPV4, .bytes = {10, 0, 0, 1}}, .port = 53};
    struct probe_buckets buckets;

    (void)state;
    assert_int_equal(probe_buckets_init(&buckets, 4, &secret), 0);
    uint32_t bucket = probe_buckets_find(&buckets, &to, 7);
    assert_int_equal(probe_buckets_first(&buckets, bucket), NO_PLACE);
    for (uint32_t place = 0; place < 4; place++) {
        probe_buckets_enter(&buckets, bucket, place);
    }
    probe_buckets_leave(&buckets, 2);
    assert_int_equal(probe_buckets_first(&buckets, bucket), 3);
    assert_int_equal(probe_buckets_next(&buckets, 3), 1);
    assert_int_equal(probe_buckets_next(&buckets, 1), 0);
    assert_int_equal(probe_buckets_next(&buckets, 0), NO_PLACE);
    probe_buckets_leave(&buckets, 3);
    assert_int_equal(probe_buckets_first(&buckets, bucket), 1);
    assert_int_equal(probe_buckets_first(&buckets, probe_buckets_find(&buckets, &to, 8)), NO_PLACE);
    probe_buckets_close(&buckets);
}

static void refused_is_said_only_of_an_ending_that_stands(void **state)
{
    const struct health_check check = {.type = CHECK_TYPE_UDP, .timeout_ms = 60000};
    const struct probe_target target = {.id = {.slot = 3, .birth = 9}, .definition.check = &check};
    const struct probe_ending refused = {.reason = REASON_PORT_UNREACHABLE, .is_refused = true};
    struct silent_ways ways = {0};
    struct probe_lateness lateness;
    uint64_t now_ns = clock_monotonic_ns();

    (void)state;
    probe_lateness_init(&lateness, now_ns, now_ns);
    probe_lateness_sleep(&lateness, UINT64_MAX);
    struct probe_attempt attempt = probe_attempt_begin(&target, &lateness, now_ns);
    assert_int_equal(attempt.deadline_ns, now_ns + 60 * NS_PER_SECOND);
    assert_false(probe_attempt_is_overdue(&attempt));
    struct probe_result result = probe_attempt_result(&attempt, &lateness, &ways, refused);
    assert_int_equal(result.reason, REASON_PORT_UNREACHABLE);
    assert_int_equal(result.probe_class, PROBE_FAIL);
    assert_true(result.is_refused);
    assert_int_equal(result.id.birth, 9);

    /* The machine was suspended for a second meanwhile. */
    probe_lateness_wake(&lateness, now_ns, now_ns + NS_PER_SECOND);
    result = probe_attempt_result(&attempt, &lateness, &ways, refused);
    assert_int_equal(result.reason, REASON_LOCAL_LATE);
    assert_false(result.is_refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_is_had_once_and_comes_back),
        cmocka_unit_test(release_ends_the_timer_and_the_token),
        cmocka_unit_test(buckets_give_what_is_in_them_youngest_first),
        cmocka_unit_test(refused_is_said_only_of_an_ending_that_stands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
