#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shim/wheel.h"
#include "common/base/prng.h"

#define START 1000050 /* within a slot */

static void a_timer_comes_at_its_time_or_up_to_one_slot_later(void **state)
{
    (void)state;
    static struct wheel wheel;
    struct wheel_timer timers[3] = {{0}};

    wheel_init(&wheel, START);
    wheel_set(&wheel, &timers[0], START + 250);
    wheel_set(&wheel, &timers[1], START + 50); /* on the edge of a slot */
    wheel_set(&wheel, &timers[2], START + 5 * WHEEL_SLOTS * WHEEL_SLOT_MS);

    assert_null(wheel_pop(&wheel, START + 49));
    assert_ptr_equal(wheel_pop(&wheel, START + 50), &timers[1]);
    assert_null(wheel_pop(&wheel, START + 249));
    assert_ptr_equal(wheel_pop(&wheel, START + 349), &timers[0]);
    for (uint64_t turn = 1; turn < 5; turn++) {
        assert_null(wheel_pop(&wheel, START + turn * WHEEL_SLOTS * WHEEL_SLOT_MS + 100));
    }
    assert_ptr_equal(wheel_pop(&wheel, START + 5 * WHEEL_SLOTS * WHEEL_SLOT_MS + 100), &timers[2]);
    assert_null(wheel_pop(&wheel, START + 9 * WHEEL_SLOTS * WHEEL_SLOT_MS));
}

static void a_timer_can_be_moved_removed_and_set_again_from_its_own_call(void **state)
{
    (void)state;
    static struct wheel wheel;
    struct wheel_timer moved = {0};
    struct wheel_timer removed = {0};

    wheel_init(&wheel, START);
    wheel_set(&wheel, &moved, START + 100);
    wheel_set(&wheel, &moved, START + 1000);
    wheel_set(&wheel, &removed, START + 100);
    wheel_remove(&removed);
    wheel_remove(&removed);

    assert_null(wheel_pop(&wheel, START + 900));
    assert_ptr_equal(wheel_pop(&wheel, START + 1100), &moved);
    wheel_set(&wheel, &moved, START + 1200);
    assert_null(wheel_pop(&wheel, START + 1100));
    assert_ptr_equal(wheel_pop(&wheel, START + 1300), &moved);
}

static void a_time_that_has_passed_comes_at_the_next_slot(void **state)
{
    (void)state;
    static struct wheel wheel;
    struct wheel_timer late = {0};

    wheel_init(&wheel, START);
    assert_null(wheel_pop(&wheel, START + 500));
    wheel_set(&wheel, &late, START - 500);

    assert_ptr_equal(wheel_pop(&wheel, START + 600), &late);
}

static void thousands_of_random_timers_each_come_once_and_never_early(void **state)
{
    (void)state;
    enum {
        N = 5000
    };
    static struct wheel wheel;
    struct wheel_timer *timers = calloc(N, sizeof *timers);
    struct wheel_timer *timer;
    struct prng prng;
    unsigned n_came = 0;

    prng_init(&prng, 7);
    wheel_init(&wheel, START);
    for (int i = 0; i < N; i++) {
        wheel_set(&wheel, &timers[i], START + prng_below(&prng, 300000));
    }
    for (uint64_t now = START; now < START + 301000; now += 37) {
        while ((timer = wheel_pop(&wheel, now)) != NULL) {
            assert_true(timer->due_ms <= now && now <= timer->due_ms + WHEEL_SLOT_MS + 37);
            n_came++;
        }
    }

    assert_int_equal(n_came, N);
    free(timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_comes_at_its_time_or_up_to_one_slot_later),
        cmocka_unit_test(a_timer_can_be_moved_removed_and_set_again_from_its_own_call),
        cmocka_unit_test(a_time_that_has_passed_comes_at_the_next_slot),
        cmocka_unit_test(thousands_of_random_timers_each_come_once_and_never_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
