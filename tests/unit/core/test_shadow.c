/* The shadow of a changed check on one engine; stories of whole clusters are in tests/scenario. */
#include "agent/core/engine_state.h"
#include "tests/unit/core/engine_fixture.h"

/* Both backends, whose check has that timeout, by this node's own votes. */
static void put_check_and_stop(struct fixture *f, uint32_t timeout_ms, bool shadow_stop)
{
    struct command command = {0};
    struct server_group group;

    build_group(&group, "web", "10.0.0.1:80 10.0.0.2:80");
    group.rule.down = group.rule.up = (struct rule_column){.kind = RULE_LOCAL};
    group.check.timeout_ms = timeout_ms;
    group.check.interval_ms = 5000;
    group.check.healthy_threshold = group.check.unhealthy_threshold = 2;
    group.guard.shadow_cycles = 2;
    group.guard.shadow_stop = shadow_stop;
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    server_group_close(&group);
    publish(f);
}

static void put_check(struct fixture *f, uint32_t timeout_ms)
{
    put_check_and_stop(f, timeout_ms, true);
}

static void probe(struct fixture *f, const char *at, enum probe_reason reason)
{
    for (unsigned i = 0; i < 2; i++) {
        f->now_ns += 100 * MS;
        result(f, target_of(f, at), reason);
    }
}

static const struct engine_scope *scope_of(const struct fixture *f)
{
    const struct catalog_group *group = catalog_group_find(engine_catalog(f->engine), "web");

    return &f->engine->scopes[f->engine->rows[group->row.row].scope];
}

/* The changed check fails for both, and one is what the group may lose. */
static void stop_shadow(struct fixture *f)
{
    put_check(f, 5000);
    probe(f, b1, REASON_OK);
    probe(f, b2, REASON_OK);
    put_check(f, 4000);
    probe(f, b1, REASON_CONNECT_FAILED);
    probe(f, b2, REASON_CONNECT_FAILED);
    tick(f, 20 * SECOND);
    tick(f, SECOND);
    assert_true(scope_of(f)->shadow_is_kept);
}

static void a_stopped_shadow_waits_without_work_or_history(void **state)
{
    struct fixture *f = *state;

    stop_shadow(f);
    probe(f, b1, REASON_CONNECT_FAILED);
    probe(f, b2, REASON_CONNECT_FAILED);
    uint64_t n_entries = history_next(f->engine->history);
    for (unsigned i = 0; i < 10; i++) {
        tick(f, SECOND);
        assert_true(timers_next(&f->engine->guard_timers) == TIMER_NEVER);
    }
    assert_int_equal(history_next(f->engine->history), n_entries);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
}

static void a_stopped_shadow_ends_when_fewer_would_go_out(void **state)
{
    struct fixture *f = *state;

    stop_shadow(f);
    probe(f, b1, REASON_OK);
    tick(f, SECOND);
    tick(f, SECOND);
    assert_false(scope_of(f)->guards[GUARD_SHADOW].is_on);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
    assert_int_equal(view_of(f, b2).health_state, HEALTH_UNHEALTHY);
}

static void one_backend_that_nobody_can_judge_keeps_no_group_in_its_shadow(void **state)
{
    struct fixture *f = *state;

    put_check(f, 5000);
    probe(f, b1, REASON_OK);
    probe(f, b2, REASON_OK);
    put_check(f, 4000);
    probe(f, b2, REASON_OK); /* b1 is never probed by the new check */
    tick(f, 18 * SECOND - 300 * MS);
    assert_true(scope_of(f)->guards[GUARD_SHADOW].is_on);
    tick(f, 300 * MS);

    assert_false(scope_of(f)->guards[GUARD_SHADOW].is_on);
}

static void with_the_stop_those_that_may_turn_out_bad_keep_it(void **state)
{
    struct fixture *f = *state;

    put_check(f, 5000);
    probe(f, b1, REASON_OK);
    probe(f, b2, REASON_OK);
    put_check(f, 4000);
    tick(f, 60 * SECOND);
    tick(f, 60 * SECOND);

    assert_true(scope_of(f)->guards[GUARD_SHADOW].is_on);
}

static void without_the_stop_a_shadow_ends_with_its_cycles_whoever_is_not_judged(void **state)
{
    struct fixture *f = *state;

    put_check_and_stop(f, 5000, false);
    probe(f, b1, REASON_OK);
    probe(f, b2, REASON_OK);
    put_check_and_stop(f, 4000, false);
    tick(f, 18 * SECOND);

    assert_false(scope_of(f)->guards[GUARD_SHADOW].is_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stopped_shadow_waits_without_work_or_history),
        TEST(a_stopped_shadow_ends_when_fewer_would_go_out),
        TEST(one_backend_that_nobody_can_judge_keeps_no_group_in_its_shadow),
        TEST(with_the_stop_those_that_may_turn_out_bad_keep_it),
        TEST(without_the_stop_a_shadow_ends_with_its_cycles_whoever_is_not_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
