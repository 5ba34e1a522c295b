/* Probes on demand are few: so many at a time, and one of a backend in a while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "agent/core/probe_limit.h"
#include "common/base/units.h"

#define PAUSE_NS (LIMIT_PROBE_NOW_PAUSE_MS * NS_PER_MS)
#define NOW_NS (1000 * NS_PER_SECOND)

static struct endpoint backend(unsigned n)
{
    struct endpoint at;
    char text[32];

    snprintf(text, sizeof text, "10.0.0.%u:80", n);
    assert_int_equal(endpoint_parse(text, &at, NULL), 0);
    return at;
}

static void the_same_backend_is_probed_again_after_the_pause(void **state)
{
    struct probe_limit limit = {0};
    struct endpoint one = backend(1), other = backend(2);
    struct errmsg err;

    (void)state;
    assert_int_equal(probe_limit_admit(&limit, &one, 0, NOW_NS, &err), 0);
    assert_int_equal(probe_limit_admit(&limit, &one, 1, NOW_NS + PAUSE_NS - 1, &err), ERR_BUSY);
    assert_string_equal(err.text, "this node probed 10.0.0.1:80 on demand less than 1000 ms ago: "
                                  "ask again in a moment");
    assert_int_equal(probe_limit_admit(&limit, &other, 1, NOW_NS + PAUSE_NS - 1, &err), 0);
    assert_int_equal(probe_limit_admit(&limit, &one, 1, NOW_NS + PAUSE_NS, &err), 0);
    /* What was refused does not put the next one off. */
    assert_int_equal(probe_limit_admit(&limit, &one, 1, NOW_NS + 2 * PAUSE_NS, &err), 0);
}

static void another_port_of_the_same_address_is_another_backend(void **state)
{
    struct probe_limit limit = {0};
    struct endpoint one = backend(1), other = backend(1);
    struct errmsg err;

    (void)state;
    other.port = 81;
    assert_int_equal(probe_limit_admit(&limit, &one, 0, NOW_NS, &err), 0);
    assert_int_equal(probe_limit_admit(&limit, &other, 0, NOW_NS, &err), 0);
}

static void beyond_so_many_at_a_time_none_begins(void **state)
{
    struct probe_limit limit = {0};
    struct endpoint one = backend(1);
    struct errmsg err;

    (void)state;
    assert_int_equal(probe_limit_admit(&limit, &one, LIMIT_PROBES_NOW, NOW_NS, &err), ERR_BUSY);
    /* And it does not count as one that began. */
    assert_int_equal(probe_limit_admit(&limit, &one, LIMIT_PROBES_NOW - 1, NOW_NS, &err), 0);
}

static void more_backends_than_are_remembered_are_refused_for_a_moment(void **state)
{
    struct probe_limit limit = {0};
    struct errmsg err;

    (void)state;
    for (unsigned n = 0; n < PROBE_LIMIT_REMEMBERED; n++) {
        struct endpoint at = backend(n);

        assert_int_equal(probe_limit_admit(&limit, &at, 0, NOW_NS + n, &err), 0);
    }
    struct endpoint next = backend(200);
    assert_int_equal(probe_limit_admit(&limit, &next, 0, NOW_NS + PAUSE_NS - 1, &err), ERR_BUSY);
    assert_int_equal(probe_limit_admit(&limit, &next, 0, NOW_NS + PAUSE_NS, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_backend_is_probed_again_after_the_pause),
        cmocka_unit_test(another_port_of_the_same_address_is_another_backend),
        cmocka_unit_test(beyond_so_many_at_a_time_none_begins),
        cmocka_unit_test(more_backends_than_are_remembered_are_refused_for_a_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
