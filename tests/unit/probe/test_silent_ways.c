/* What probes that heard nothing ask of the ways of this node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "agent/probe/packet_local.h"
#include "agent/probe/silent_ways.h"
#include "common/base/units.h"

#define NOW_NS (1000 * NS_PER_SECOND)

static struct probe_target target_of(const char *to, const char *source)
{
    struct probe_target target = {.definition.to.port = 9};

    assert_int_equal(addr_parse(to, &target.definition.to.addr, NULL), 0);
    if (source != NULL) {
        assert_int_equal(addr_parse(source, &target.source, NULL), 0);
    }
    return target;
}

static void a_way_is_kept_by_address_and_source(void **state)
{
    const struct probe_target here = target_of("127.0.0.1", NULL);
    const struct probe_target from_elsewhere = target_of("127.0.0.1", "192.0.2.77");
    struct silent_ways ways = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(silent_ways_ask(&ways, &here, NOW_NS), REASON_NONE);
        assert_int_equal(silent_ways_ask(&ways, &from_elsewhere, NOW_NS),
                         REASON_LOCAL_SOURCE_MISSING);
    }
    silent_ways_close(&ways);
    silent_ways_close(&ways);
}

/* Processor time of so many questions. */
static double asking_takes(struct silent_ways *ways, uint64_t step_ns)
{
    const struct probe_target target = target_of("127.0.0.1", NULL);
    struct addr source;
    clock_t begin = clock();

    for (uint64_t i = 0; i < 20000; i++) {
        if (ways != NULL) {
            assert_int_equal(silent_ways_ask(ways, &target, NOW_NS + i * step_ns), REASON_NONE);
        } else {
            assert_int_equal(packet_source_find(&target, &source), REASON_NONE);
        }
    }
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* Each silent probe opened a socket of its own for this. Fails when the half is not saved. */
static void what_is_kept_is_not_asked_for_again(void **state)
{
    struct silent_ways ways = {0};

    (void)state;
    double asked = asking_takes(NULL, 0);
    double kept = asking_takes(&ways, 0);
    double out_of_date = asking_takes(&ways, SILENT_WAY_MAX_AGE_S * NS_PER_SECOND);
    print_message("20000 questions: %.1f ms asked, %.1f ms kept, %.1f ms too old\n", 1000 * asked,
                  1000 * kept, 1000 * out_of_date);
    assert_true(kept < asked / 2);
    assert_true(out_of_date > 2 * kept);
    silent_ways_close(&ways);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_way_is_kept_by_address_and_source),
        cmocka_unit_test(what_is_kept_is_not_asked_for_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
