/* Orders that wait for a probe thread: none is lost, and no more than one a target has to wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/probe/order_batch.h"
#include "common/base/limits.h"

static struct probe_order order_of(uint32_t slot, uint64_t birth, bool is_on, bool is_now)
{
    return (struct probe_order){
        .id = {.slot = slot, .birth = birth}, .is_on = is_on, .is_now = is_now, .beat_ns = 1};
}

static void orders_stay_in_their_order(void **state)
{
    struct probe_order first[2] = {order_of(1, 5, true, false), order_of(2, 5, false, false)};
    struct probe_order second = order_of(1, 5, false, false);

    (void)state;
    struct order_batch *batch = order_batch_join(NULL, first, 2);
    batch = order_batch_join(batch, &second, 1);
    assert_non_null(batch);
    assert_int_equal(batch->n_orders, 3);
    assert_int_equal(batch->orders[0].id.slot, 1);
    assert_true(batch->orders[0].is_on);
    assert_int_equal(batch->orders[2].id.slot, 1);
    assert_false(batch->orders[2].is_on);
    free(batch);
}

static void too_many_become_one_of_each_target(void **state)
{
    struct probe_order *many = calloc(LIMIT_TARGETS, sizeof *many);
    struct probe_order last[3] = {order_of(0, 5, true, false), order_of(1, 5, false, false),
                                  order_of(2, 6, true, false)};

    (void)state;
    assert_non_null(many);
    for (uint32_t i = 0; i < LIMIT_TARGETS; i++) {
        many[i] = order_of(i % 10, 5, true, true);
    }
    struct order_batch *batch = order_batch_join(NULL, many, LIMIT_TARGETS);
    batch = order_batch_join(batch, last, 3);
    assert_non_null(batch);
    assert_int_equal(batch->n_orders, 10);
    assert_true(batch->orders[0].is_on && batch->orders[0].is_now);   /* still wanted at once */
    assert_true(!batch->orders[1].is_on && !batch->orders[1].is_now); /* it rests */
    assert_true(batch->orders[2].id.birth == 6 && !batch->orders[2].is_now);
    assert_true(batch->orders[9].is_now);
    free(batch);
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_stay_in_their_order),
        cmocka_unit_test(too_many_become_one_of_each_target),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
