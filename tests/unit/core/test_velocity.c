/* Who waits under the velocity limit waits for a reason (R-EJ-1): the window is full, or one V has
 * not passed yet in which the nodes come to hold the same votes. */
#include <stdio.h>

#include "tests/unit/core/engine_fixture.h"

#define N_BACKENDS 8

static const char *backend(unsigned number)
{
    static char at[16];

    snprintf(at, sizeof at, "10.0.0.%u:80", number);
    return at;
}

/* One ejection in 30 s; each node by its own votes, which last for 6 s. */
static void put_slow_group(struct fixture *f)
{
    struct command command = {0};
    struct server_group group;
    char endpoints[N_BACKENDS * 16] = "";

    for (unsigned i = 1; i <= N_BACKENDS; i++) {
        strcat(strcat(endpoints, backend(i)), " ");
    }
    build_group(&group, "web", endpoints);
    group.rule.down = group.rule.up = (struct rule_column){.kind = RULE_LOCAL};
    group.check.timeout_ms = group.check.interval_ms = 1000;
    group.check.healthy_threshold = group.check.unhealthy_threshold = 1;
    group.guard = guard_policy_of(GUARD_PRESET_STANDARD);
    server_group_settle(&group);
    group.guard.velocity_percent = 10;
    group.guard.velocity_window_ms = 30000;
    group.guard.exempt_below = 0;
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    server_group_close(&group);
    publish(f);
    for (unsigned i = 1; i <= N_BACKENDS; i++) {
        result(f, target_of(f, backend(i)), REASON_OK);
    }
}

static void set_vote_interval(struct fixture *f, uint32_t ms)
{
    struct catalog *catalog = catalog_state_catalog(f->state);
    struct cluster_settings settings = *catalog_settings(catalog);
    struct command command = {0};

    settings.vote_interval_ms = ms;
    build_settings(&command, &settings);
    build_commit(f->state, &command);
    catalog_unref(catalog);
    publish(f);
}

/* Both of those who wait are taken back as the turn of one comes, since the node stood still and
 * knows nothing new. The guard is still on, and looks again after a V, which was a long one. */
static void a_window_that_nobody_filled_keeps_nobody_waiting(void **state)
{
    struct fixture *f = *state;

    put_slow_group(f);
    set_vote_interval(f, 5000);
    tick(f, 100 * MS);
    result(f, target_of(f, backend(1)), REASON_CONNECT_FAILED);
    result(f, target_of(f, backend(2)), REASON_CONNECT_FAILED);
    assert_true(view_of(f, backend(2)).marks & MARK_PENDING);
    tick(f, 7000 * MS); /* it stood still */
    assert_false(view_of(f, backend(1)).marks & MARK_PENDING);
    assert_false(view_of(f, backend(2)).marks & MARK_PENDING);
    set_vote_interval(f, 200);
    tick(f, 100 * MS);
    result(f, target_of(f, backend(3)), REASON_CONNECT_FAILED);
    assert_true(view_of(f, backend(3)).marks & MARK_PENDING);
    tick(f, 200 * MS);
    assert_int_equal(view_of(f, backend(3)).health_state, HEALTH_UNHEALTHY);
}

/* And a full one does. */
static void a_full_window_makes_wait(void **state)
{
    struct fixture *f = *state;

    put_slow_group(f);
    set_vote_interval(f, 200);
    tick(f, 100 * MS);
    result(f, target_of(f, backend(1)), REASON_CONNECT_FAILED);
    tick(f, 200 * MS);
    assert_int_equal(view_of(f, backend(1)).health_state, HEALTH_UNHEALTHY);
    result(f, target_of(f, backend(2)), REASON_CONNECT_FAILED);
    tick(f, 200 * MS);
    result(f, target_of(f, backend(3)), REASON_CONNECT_FAILED);
    tick(f, 1000 * MS);
    assert_true(view_of(f, backend(2)).marks & MARK_PENDING);
    assert_true(view_of(f, backend(3)).marks & MARK_PENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_window_that_nobody_filled_keeps_nobody_waiting),
        TEST(a_full_window_makes_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
