/* The small parts under the engine: timers, sets of ids, the event log, the drain barrier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/drain_barrier.h"
#include "agent/core/events.h"
#include "agent/core/id_set.h"
#include "agent/core/timers.h"
#include "common/base/prng.h"

#define IDS 200

/* Against a plain array, over random operations. */
static void timers_give_the_earliest_first_and_equal_ones_by_id(void **state)
{
    (void)state;
    struct timers timers;
    uint64_t wanted[IDS];
    struct prng prng;

    prng_init(&prng, 3);
    timers_init(&timers);
    assert_int_equal(timers_reserve(&timers, 10), 0);
    assert_int_equal(timers_reserve(&timers, IDS), 0);
    memset(wanted, 0xff, sizeof wanted);
    for (unsigned n = 0; n < 20000; n++) {
        uint32_t id = (uint32_t)prng_below(&prng, IDS);
        uint64_t at_ns = prng_below(&prng, 50);

        if (prng_below(&prng, 4) != 0) {
            timers_set(&timers, id, at_ns == 0 ? TIMER_NEVER : at_ns);
            wanted[id] = at_ns == 0 ? TIMER_NEVER : at_ns;
        } else if (prng_below(&prng, 2) == 0) {
            timers_clear(&timers, id);
            wanted[id] = TIMER_NEVER;
        } else {
            uint32_t best = 0;
            for (uint32_t i = 1; i < IDS; i++) {
                best = wanted[i] < wanted[best] ? i : best;
            }
            uint64_t now_ns = prng_below(&prng, 60);
            uint32_t got;
            bool is_due = wanted[best] <= now_ns;
            assert_true(timers_next(&timers) == wanted[best]);
            assert_int_equal(timers_pop(&timers, now_ns, &got), is_due);
            if (is_due) {
                assert_int_equal(got, best);
                wanted[best] = TIMER_NEVER;
            }
        }
        assert_true(timers_get(&timers, id) == wanted[id]);
    }
    timers_close(&timers);
}

static void ids_come_out_once_and_in_order(void **state)
{
    (void)state;
    struct id_set set;
    static bool wanted[20000];
    struct prng prng;
    uint32_t n_wanted = 0;
    uint32_t id;

    prng_init(&prng, 5);
    id_set_init(&set);
    assert_false(id_set_take(&set, &id));
    assert_int_equal(id_set_reserve(&set, 70), 0);
    assert_int_equal(id_set_reserve(&set, 20000), 0);
    for (unsigned n = 0; n < 3000; n++) {
        id = (uint32_t)(prng_below(&prng, 3) == 0 ? prng_below(&prng, 20000)
                                                  : 9000 + prng_below(&prng, 100));
        bool add = prng_below(&prng, 3) != 0;

        n_wanted += (add && !wanted[id]) ? 1 : 0;
        n_wanted -= (!add && wanted[id]) ? 1 : 0;
        wanted[id] = add;
        if (add) {
            id_set_add(&set, id);
        } else {
            id_set_remove(&set, id);
        }
        assert_int_equal(set.n_set, n_wanted);
    }
    uint32_t next = id_set_next(&set, 0);
    for (uint32_t i = 0; i < 20000; i++) {
        assert_int_equal(id_set_has(&set, i), wanted[i]);
        if (wanted[i]) {
            assert_int_equal(next, i);
            next = id_set_next(&set, i + 1);
        }
    }
    assert_true(next == ID_SET_END);
    for (uint32_t i = 0; i < 20000; i++) {
        if (wanted[i]) {
            assert_true(id_set_take(&set, &id));
            assert_int_equal(id, i);
        }
    }
    assert_false(id_set_take(&set, &id));
    id_set_close(&set);
}

static void event_log_keeps_the_newest(void **state)
{
    (void)state;
    struct event_ring ring;

    assert_int_equal(event_ring_init(&ring), 0);
    assert_null(event_ring_get(&ring, 1));
    for (uint64_t i = 1; i <= LIMIT_EVENTS + 10; i++) {
        event_ring_add(&ring)->at_ns = i * 7;
    }
    assert_true(event_ring_first(&ring) == 11);
    assert_null(event_ring_get(&ring, 10));
    assert_true(event_ring_get(&ring, 11)->at_ns == 77);
    assert_true(event_ring_get(&ring, LIMIT_EVENTS + 10)->sequence == LIMIT_EVENTS + 10);
    assert_null(event_ring_get(&ring, LIMIT_EVENTS + 11));
    event_ring_close(&ring);
}

static void drains_are_known_by_row_birth_and_revision(void **state)
{
    (void)state;
    struct drains drains;
    struct drain_word busy = {.n_flows = 5, .is_counting = true};
    struct drain_word done = {.is_counting = true, .is_done = true};

    drains_init(&drains);
    assert_int_equal(drains_reserve(&drains, 100), 0);
    assert_true(drains_follow(&drains, 7, 3, 10, 1000));
    drains_note(&drains, (struct drain_id){7, 3, 10}, 0, &busy);
    drains_note(&drains, (struct drain_id){7, 3, 10}, 1, &busy);
    drains_note(&drains, (struct drain_id){7, 3, 9}, 2, &done);  /* another drain */
    drains_note(&drains, (struct drain_id){7, 2, 10}, 2, &done); /* another row of that number */
    drains_note(&drains, (struct drain_id){8, 3, 10}, 2, &done); /* not followed */
    struct drain *drain = drains_find(&drains, 7);
    assert_true(drain->done == 0 && drain->reported == 3);
    assert_int_equal(drain_flows(drain, UINT64_MAX), 10);

    drains_note(&drains, (struct drain_id){7, 3, 10}, 1, &done);
    drains_note(&drains, (struct drain_id){7, 3, 10}, 1, &busy); /* done stays done */
    assert_true(drain->done == 2);
    drains_forget_node(&drains, 1);
    assert_true(drain->done == 0);
    assert_true(drains_follow(&drains, 7, 3, 10, 2000)); /* the same: nothing is lost */
    assert_true(drains_find(&drains, 7)->since_ns == 1000);
    assert_true(drains_follow(&drains, 7, 3, 11, 3000)); /* drained again */
    assert_true(drains_find(&drains, 7)->reported == 0);
    drains_drop(&drains, 7);
    assert_null(drains_find(&drains, 7));
    drains_close(&drains);
}

/* "0 flows left" was said of nodes where nobody counts. */
static void flows_that_nobody_counts_are_not_zero(void **state)
{
    (void)state;
    struct drains drains;
    struct drain_word busy = {.n_flows = 5, .is_counting = true};
    struct drain_word empty = {.is_counting = true, .is_done = true};
    struct drain_word blind = {.is_done = true};

    drains_init(&drains);
    assert_int_equal(drains_reserve(&drains, 10), 0);
    assert_true(drains_follow(&drains, 7, 3, 10, 1000));
    struct drain *drain = drains_find(&drains, 7);
    assert_int_equal(drain_uncounted(drain, 7, 0), 0); /* nothing said yet: pending */
    drains_note(&drains, (struct drain_id){7, 3, 10}, 0, &busy);
    drains_note(&drains, (struct drain_id){7, 3, 10}, 1, &empty);
    drains_note(&drains, (struct drain_id){7, 3, 10}, 2, &blind);
    assert_int_equal(drain_uncounted(drain, 7, 0), 4);
    drains_note(&drains, (struct drain_id){7, 3, 10}, 0,
                &blind); /* its data plane went away with 5 flows */
    assert_int_equal(drain_uncounted(drain, 7, 0), 5);
    drains_note(&drains, (struct drain_id){7, 3, 10}, 1, &blind); /* this one had none left */
    assert_int_equal(drain_uncounted(drain, 7, 2), 5);
    drains_note(&drains, (struct drain_id){7, 3, 10}, 0, &busy);
    assert_int_equal(drain_uncounted(drain, 7, 1), 5); /* not heard now */
    drains_forget_node(&drains, 1);
    assert_int_equal(drain_uncounted(drain, 2, 2), 2);
    drains_close(&drains);
}

static void closed_flows_are_counted_from_the_beginning_of_the_drain(void **state)
{
    (void)state;
    struct closed_count count = {0};
    struct closed_count late = {0};

    closed_count_note(&count, 40, false); /* closed by earlier drains */
    assert_int_equal(count.n_closed, 0);
    closed_count_note(&count, 43, false);
    assert_int_equal(count.n_closed, 3);
    closed_count_note(&count, 1, true); /* a data plane was started again */
    assert_int_equal(count.n_closed, 3);
    closed_count_note(&count, 2, true);
    assert_int_equal(count.n_closed, 4);
    closed_count_note(&late, 2, true); /* closed before the first look */
    assert_int_equal(late.n_closed, 2);
}

static void drains_are_bounded(void **state)
{
    (void)state;
    struct drains drains;

    drains_init(&drains);
    assert_int_equal(drains_reserve(&drains, LIMIT_DRAINS + 1), 0);
    for (uint32_t row = 0; row < LIMIT_DRAINS; row++) {
        assert_true(drains_follow(&drains, row, 1, 1, 0));
    }
    assert_false(drains_follow(&drains, LIMIT_DRAINS, 1, 1, 0));
    drains_drop(&drains, 5);
    assert_true(drains_follow(&drains, LIMIT_DRAINS, 1, 1, 0));
    drains_close(&drains);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_give_the_earliest_first_and_equal_ones_by_id),
        cmocka_unit_test(ids_come_out_once_and_in_order),
        cmocka_unit_test(event_log_keeps_the_newest),
        cmocka_unit_test(drains_are_known_by_row_birth_and_revision),
        cmocka_unit_test(flows_that_nobody_counts_are_not_zero),
        cmocka_unit_test(closed_flows_are_counted_from_the_beginning_of_the_drain),
        cmocka_unit_test(drains_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
