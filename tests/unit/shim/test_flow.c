#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/shim/flow.h"

static void flows_are_bounded_and_their_slots_come_back(void **state)
{
    (void)state;
    struct flow_pool pool;
    struct flow *flows[3];

    assert_int_equal(flow_pool_init(&pool, 3), 0);
    for (int i = 0; i < 3; i++) {
        flows[i] = flow_take(&pool);
        assert_non_null(flows[i]);
        assert_ptr_equal(flow_at(&pool, flow_index(&pool, flows[i])), flows[i]);
    }
    assert_null(flow_take(&pool));
    flow_give_back(&pool, flows[1]);

    assert_int_equal(pool.n_flows, 2);
    assert_ptr_equal(flow_take(&pool), flows[1]);
    assert_int_equal(flows[1]->relay.ends[RELAY_CLIENT].fd, -1);
    assert_null(flow_take(&pool));
    flow_pool_close(&pool);
}

static void uses_count_flows_by_row_and_birth(void **state)
{
    (void)state;
    struct flow_pool pool;
    struct flow *flows[4];
    struct jury_status_row old_counts = {.birth = 1};
    struct jury_status_row new_counts = {.birth = 2};
    unsigned n_uses = 0;

    assert_int_equal(flow_pool_init(&pool, 4), 0);
    for (int i = 0; i < 4; i++) {
        flows[i] = flow_take(&pool);
    }
    flow_join(&pool, flows[0], 7, 1, &old_counts);
    flow_join(&pool, flows[1], 7, 1, &old_counts);
    flow_join(&pool, flows[2], 7, 2, &new_counts);        /* the row was given out again */
    flow_join(&pool, flows[3], 7 + ROW_BUCKETS, 1, NULL); /* same bucket, not counted */
    for (struct row_use *use = pool.used; use != NULL; use = use->next_used) {
        n_uses++;
    }

    assert_int_equal(n_uses, 3);
    assert_int_equal(old_counts.flows, 2);
    assert_int_equal(new_counts.flows, 1);
    assert_int_equal(flows[0]->use->n_flows, 2);
    flow_leave(&pool, flows[0]);
    flow_leave(&pool, flows[0]);
    assert_int_equal(old_counts.flows, 1);
    flow_leave(&pool, flows[1]);
    flow_leave(&pool, flows[2]);
    flow_leave(&pool, flows[3]);
    assert_null(pool.used);
    assert_int_equal(old_counts.flows + new_counts.flows, 0);
    assert_int_equal(old_counts.new_flows, 2);
    flow_pool_close(&pool);
}

static void words_that_count_for_another_birth_are_left_alone(void **state)
{
    (void)state;
    struct flow_pool pool;
    struct jury_status_row counts = {.birth = 1};

    assert_int_equal(flow_pool_init(&pool, 1), 0);
    struct flow *flow = flow_take(&pool);
    flow_join(&pool, flow, 7, 1, &counts);
    counts = (struct jury_status_row){.birth = 2, .flows = 5};
    flow_leave(&pool, flow);
    flow_count(&counts, 1, &counts.closed, 1);

    assert_int_equal(counts.flows, 5);
    assert_int_equal(counts.closed, 0);
    flow_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flows_are_bounded_and_their_slots_come_back),
        cmocka_unit_test(uses_count_flows_by_row_and_birth),
        cmocka_unit_test(words_that_count_for_another_birth_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
