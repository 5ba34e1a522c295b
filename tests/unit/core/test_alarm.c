/* The alarm of many that go bad at once, on one engine; stories of clusters are in tests/scenario.
 */
#include "tests/unit/core/engine_fixture.h"

static const struct guard_view *find_alarm(const struct group_view *view)
{
    for (unsigned i = 0; i < view->n_guards; i++) {
        if (view->guards[i].guard == GUARD_CORRELATED) {
            return &view->guards[i];
        }
    }
    return NULL;
}

static void fail_all(struct fixture *f, const char *const backends[], size_t n)
{
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < 10; i++) {
            f->now_ns += 10 * MS;
            for (size_t b = 0; b < n; b++) {
                result(f, target_of(f, backends[b]), pass == 0 ? REASON_OK : REASON_CONNECT_FAILED);
            }
        }
    }
    tick(f, SECOND);
    tick(f, SECOND);
}

static void a_backend_that_is_being_removed_is_not_counted_by_the_alarm(void **state)
{
    static const char *const backends[] = {"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80",
                                           "10.0.0.4:80"};
    struct fixture *f = *state;
    struct group_view view;

    put(f, "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 10.0.0.4:80", RULE_LOCAL);
    fail_all(f, backends, 4);
    assert_int_equal(engine_view_group(f->engine, "web", f->now_ns, &view), 0);
    assert_non_null(find_alarm(&view));
    assert_int_equal(find_alarm(&view)->n_backends, 4);

    put(f, "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80", RULE_LOCAL);
    assert_int_equal(engine_view_group(f->engine, "web", f->now_ns, &view), 0);
    assert_int_equal(find_alarm(&view)->n_backends, 3);
    assert_non_null(strstr(find_alarm(&view)->sentence, "3 of 3 backends"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_backend_that_is_being_removed_is_not_counted_by_the_alarm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
