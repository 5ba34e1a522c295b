/* When this node was too slow or asleep, an outcome proves nothing (spec.md 4, R-SELF-3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/probe/probe_lateness.h"

#define MS NS_PER_MS
#define BOOT_GAP_NS (5000 * MS) /* of suspends before the agent began */

static struct probe_lateness lateness;

static void begin(void)
{
    probe_lateness_init(&lateness, 1000 * MS, 1000 * MS + BOOT_GAP_NS);
}

static void wake(uint64_t due_ms, uint64_t woke_ms)
{
    probe_lateness_sleep(&lateness, due_ms * MS);
    probe_lateness_wake(&lateness, woke_ms * MS, woke_ms * MS + BOOT_GAP_NS);
}

/* A probe from 1000 ms with T = 400 ms that ended at end_ms. */
static enum probe_reason judge(struct probe_mark mark, uint64_t end_ms, bool is_answered,
                               enum probe_reason reason)
{
    struct probe_life life = {
        .start_ns = 1000 * MS,
        .deadline_ns = 1400 * MS,
        .end_ns = end_ms * MS,
        .mark = mark,
        .is_answered = is_answered,
    };

    return probe_lateness_judge(&lateness, &life, reason);
}

static void a_timeout_of_a_loop_in_time_is_a_failure(void **state)
{
    (void)state;
    begin();
    struct probe_mark mark = probe_lateness_mark(&lateness);
    for (uint64_t ms = 1025; ms <= 1400; ms += 25) {
        wake(ms, ms + 9); /* noise below the slack, in every turn */
    }

    assert_int_equal(judge(mark, 1400, false, REASON_CONNECT_TIMEOUT), REASON_CONNECT_TIMEOUT);
    assert_int_equal(judge(mark, 1400, false, REASON_RECV_RESPONSE_TIMEOUT),
                     REASON_RECV_RESPONSE_TIMEOUT);
    assert_int_equal(lateness.stalled_ns, 0);
}

static void a_timeout_that_the_loop_slept_through_is_late(void **state)
{
    (void)state;
    begin();
    struct probe_mark mark = probe_lateness_mark(&lateness);
    wake(1025, 3025);

    assert_int_equal(judge(mark, 3025, false, REASON_CONNECT_TIMEOUT), REASON_LOCAL_LATE);
    assert_int_equal(judge(mark, 3025, false, REASON_RECV_RESPONSE_TIMEOUT), REASON_LOCAL_LATE);
    assert_int_equal(judge(mark, 3025, false, REASON_CONNECT_INTERRUPT), REASON_LOCAL_LATE);
    assert_int_equal(lateness.stalled_ns, 2000 * MS);
    assert_int_equal(lateness.late_max_ns, 2000 * MS);
}

static void a_quarter_of_the_timeout_is_the_bound(void **state)
{
    (void)state;
    begin();
    struct probe_mark mark = probe_lateness_mark(&lateness);
    wake(1100, 1150);
    wake(1200, 1250);
    wake(1399, 1400);
    assert_int_equal(judge(mark, 1400, false, REASON_CONNECT_TIMEOUT), REASON_CONNECT_TIMEOUT);

    wake(1400, 1411);

    assert_int_equal(judge(mark, 1411, false, REASON_CONNECT_TIMEOUT), REASON_LOCAL_LATE);
}

/* The thread was held up between looking at the sockets and judging them. */
static void a_stall_inside_the_present_turn_counts(void **state)
{
    (void)state;
    begin();
    struct probe_mark mark = probe_lateness_mark(&lateness);
    wake(1025, 1025);

    assert_int_equal(judge(mark, 1100, false, REASON_CONNECT_INTERRUPT), REASON_CONNECT_INTERRUPT);
    assert_int_equal(judge(mark, 1300, false, REASON_CONNECT_INTERRUPT), REASON_LOCAL_LATE);
    assert_int_equal(judge(mark, 1300, false, REASON_CONNECT_FAILED), REASON_CONNECT_FAILED);
}

static void a_stall_before_the_probe_does_not_touch_it(void **state)
{
    (void)state;
    begin();
    wake(1025, 9025);
    struct probe_mark mark = probe_lateness_mark(&lateness);
    wake(9400, 9400);

    struct probe_life life = {
        .start_ns = 9025 * MS,
        .deadline_ns = 9425 * MS,
        .end_ns = 9425 * MS,
        .mark = mark,
    };
    assert_int_equal(probe_lateness_judge(&lateness, &life, REASON_CONNECT_TIMEOUT),
                     REASON_CONNECT_TIMEOUT);
}

static void what_the_backend_said_stays_said_after_a_stall(void **state)
{
    (void)state;
    begin();
    struct probe_mark mark = probe_lateness_mark(&lateness);
    wake(1025, 1325);

    assert_int_equal(judge(mark, 1330, false, REASON_OK), REASON_OK);
    assert_int_equal(judge(mark, 1330, false, REASON_CONNECT_FAILED), REASON_CONNECT_FAILED);
    assert_int_equal(judge(mark, 1330, false, REASON_HTTP_CODE_NOT_MATCH),
                     REASON_HTTP_CODE_NOT_MATCH);
    assert_int_equal(judge(mark, 1330, false, REASON_LOCAL_NO_PORT), REASON_LOCAL_NO_PORT);
}

static void a_suspend_makes_every_failure_late(void **state)
{
    (void)state;
    begin();
    struct probe_mark mark = probe_lateness_mark(&lateness);
    probe_lateness_sleep(&lateness, 1025 * MS);
    /* Monotonic time stood still for an hour. */
    probe_lateness_wake(&lateness, 1025 * MS, 1025 * MS + BOOT_GAP_NS + 3600 * NS_PER_SECOND);

    assert_int_equal(judge(mark, 1100, false, REASON_CONNECT_TIMEOUT), REASON_LOCAL_LATE);
    assert_int_equal(judge(mark, 1100, false, REASON_CONNECT_FAILED), REASON_LOCAL_LATE);
    assert_int_equal(judge(mark, 1100, false, REASON_HTTP_INVALID_HEADER), REASON_LOCAL_LATE);
    assert_int_equal(judge(mark, 1100, false, REASON_OK), REASON_OK);
    assert_int_equal(lateness.suspended_ns, 3600 * NS_PER_SECOND);

    mark = probe_lateness_mark(&lateness);
    assert_int_equal(judge(mark, 1100, false, REASON_CONNECT_FAILED), REASON_CONNECT_FAILED);
}

static void an_answer_found_after_the_deadline_fails_or_is_late(void **state)
{
    (void)state;
    begin();
    struct probe_mark mark = probe_lateness_mark(&lateness);
    wake(1400, 1400);

    assert_int_equal(judge(mark, 1405, true, REASON_CONNECT_TIMEOUT), REASON_CONNECT_TIMEOUT);
    assert_int_equal(judge(mark, 1411, true, REASON_CONNECT_TIMEOUT), REASON_LOCAL_LATE);
}

static void waiting_for_an_event_alone_is_no_stall(void **state)
{
    (void)state;
    begin();
    probe_lateness_sleep(&lateness, UINT64_MAX);
    probe_lateness_wake(&lateness, 90000 * MS, 90000 * MS + BOOT_GAP_NS);

    assert_int_equal(lateness.stalled_ns, 0);
}

/* A namespace may set the boot clock back behind the monotonic one. */
static void the_boot_clock_may_be_behind(void **state)
{
    (void)state;
    probe_lateness_init(&lateness, 9000 * MS, 10 * MS);
    probe_lateness_sleep(&lateness, 9025 * MS);
    probe_lateness_wake(&lateness, 9025 * MS, 35 * MS);
    assert_int_equal(lateness.suspended_ns, 0);

    probe_lateness_wake(&lateness, 9050 * MS, 10060 * MS);

    assert_int_equal(lateness.suspended_ns, 10000 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeout_of_a_loop_in_time_is_a_failure),
        cmocka_unit_test(a_timeout_that_the_loop_slept_through_is_late),
        cmocka_unit_test(a_quarter_of_the_timeout_is_the_bound),
        cmocka_unit_test(a_stall_inside_the_present_turn_counts),
        cmocka_unit_test(a_stall_before_the_probe_does_not_touch_it),
        cmocka_unit_test(what_the_backend_said_stays_said_after_a_stall),
        cmocka_unit_test(a_suspend_makes_every_failure_late),
        cmocka_unit_test(an_answer_found_after_the_deadline_fails_or_is_late),
        cmocka_unit_test(waiting_for_an_event_alone_is_no_stall),
        cmocka_unit_test(the_boot_clock_may_be_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
