/* The limit on returns on one engine; stories of clusters are in tests/scenario. */
#include "tests/unit/core/engine_fixture.h"

/* One of them may return in a minute; one result is an opinion, and the own one decides. */
static void put_limited(struct fixture *f)
{
    struct command command = {0};
    struct server_group group;

    build_group(&group, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    group.rule.down = group.rule.up = (struct rule_column){.kind = RULE_LOCAL};
    group.check.healthy_threshold = group.check.unhealthy_threshold = 1;
    group.guard.return_percent = 25;
    group.guard.return_window_ms = 60000;
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    server_group_close(&group);
    publish(f);
}

static void a_turn_that_was_not_taken_is_no_return(void **state)
{
    struct fixture *f = *state;

    put_limited(f);
    result(f, target_of(f, b1), REASON_OK);
    result(f, target_of(f, b2), REASON_OK);
    result(f, target_of(f, b1), REASON_CONNECT_FAILED);
    result(f, target_of(f, b1), REASON_OK);
    f->now_ns += SECOND; /* its turn, and in the same step it fails once more */
    result(f, target_of(f, b1), REASON_CONNECT_FAILED);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_UNHEALTHY);
    tick(f, 2 * SECOND);
    result(f, target_of(f, b1), REASON_OK);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_UNHEALTHY);
    tick(f, SECOND);

    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
}

static void a_group_that_comes_into_need_in_a_short_break_waits_for_no_return(void **state)
{
    struct fixture *f = *state;

    put_limited(f);
    result(f, target_of(f, b1), REASON_OK);
    result(f, target_of(f, b2), REASON_OK);
    result(f, target_of(f, "10.0.0.3:80"), REASON_CONNECT_FAILED);
    result(f, target_of(f, b1), REASON_CONNECT_FAILED);
    result(f, target_of(f, b1), REASON_OK); /* waits */
    result(f, target_of(f, b1), REASON_CONNECT_FAILED);
    result(f, target_of(f, b2), REASON_CONNECT_FAILED); /* nobody is left */
    result(f, target_of(f, b1), REASON_OK);

    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
}

static void set_admin(struct fixture *f, enum admin_state admin_state)
{
    struct command command = {0};

    build_admin(&command, "web", b1, admin_state);
    build_commit(f->state, &command);
    publish(f);
}

static void one_that_waited_before_its_maintenance_returns_after_it(void **state)
{
    struct fixture *f = *state;

    put_limited(f);
    result(f, target_of(f, b1), REASON_OK);
    result(f, target_of(f, b2), REASON_OK);
    result(f, target_of(f, b1), REASON_CONNECT_FAILED);
    result(f, target_of(f, b1), REASON_OK); /* waits */
    set_admin(f, ADMIN_MAINTENANCE);
    tick(f, 10 * SECOND);
    set_admin(f, ADMIN_ENABLED);
    result(f, target_of(f, b1), REASON_CONNECT_FAILED);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_UNHEALTHY);
    result(f, target_of(f, b1), REASON_OK);
    assert_true(view_of(f, b1).is_returning);
    tick(f, SECOND);

    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_turn_that_was_not_taken_is_no_return),
        TEST(a_group_that_comes_into_need_in_a_short_break_waits_for_no_return),
        TEST(one_that_waited_before_its_maintenance_returns_after_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
