/* The one word of `status` and the order in which it says what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/findings.h"

static void only_nothing_found_is_healthy(void **state)
{
    (void)state;
    assert_int_equal(findings_word(NULL, 0), CLUSTER_HEALTHY);
    for (unsigned kind = 0; kind <= UINT8_MAX; kind++) { /* those of a later version, too */
        struct finding finding = {.kind = (uint8_t)kind};

        assert_int_not_equal(findings_word(&finding, 1), CLUSTER_HEALTHY);
    }
}

static void each_kind_has_its_word(void **state)
{
    static const struct {
        enum finding_kind kind;
        enum cluster_word word;
    } rows[] = {
        {FINDING_NOT_FORMED, CLUSTER_UNKNOWN},
        {FINDING_STORE_DOWN, CLUSTER_UNAVAILABLE},
        {FINDING_NO_LEADER, CLUSTER_UNAVAILABLE},
        {FINDING_GROUP_CLOSED, CLUSTER_DEGRADED},
        {FINDING_GROUP_EMPTY, CLUSTER_DEGRADED},
        {FINDING_GROUP_FAIL_OPEN, CLUSTER_DEGRADED},
        {FINDING_FEW_VOTES, CLUSTER_DEGRADED},
        {FINDING_NODE_BLIND, CLUSTER_DEGRADED},
        {FINDING_NODE_DOUBTS, CLUSTER_DEGRADED},
        {FINDING_PEER_BLIND, CLUSTER_DEGRADED},
        {FINDING_PEER_DOUBTS, CLUSTER_DEGRADED},
        {FINDING_HOLD, CLUSTER_DEGRADED},
        {FINDING_ALARM, CLUSTER_DEGRADED},
        {FINDING_SHADOW, CLUSTER_DEGRADED},
        {FINDING_LAST_KNOWN_GOOD, CLUSTER_DEGRADED},
        {FINDING_MEMBER_SILENT, CLUSTER_DEGRADED},
        {FINDING_MEMBER_RESTORED, CLUSTER_DEGRADED},
        {FINDING_CATALOG_DIFFERS, CLUSTER_DEGRADED},
        {FINDING_STORE_TROUBLE, CLUSTER_DEGRADED},
        {FINDING_DISK, CLUSTER_DEGRADED},
        {FINDING_TABLE, CLUSTER_DEGRADED},
        {FINDING_DATA_PLANE, CLUSTER_DEGRADED},
        {FINDING_LISTENER, CLUSTER_DEGRADED},
        {FINDING_VERSION, CLUSTER_DEGRADED},
        {FINDING_MEMBER_STORE_DOWN, CLUSTER_DEGRADED},
        {FINDING_MORE, CLUSTER_DEGRADED},
    };

    (void)state;
    assert_int_equal(sizeof rows / sizeof rows[0], FINDING_MORE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct finding finding = {.kind = (uint8_t)rows[i].kind};

        assert_int_equal(findings_word(&finding, 1), rows[i].word);
    }
}

static void the_worst_of_several_gives_the_word_wherever_it_stands(void **state)
{
    static const struct {
        uint8_t kinds[3];
        enum cluster_word word;
    } rows[] = {
        {{FINDING_HOLD, FINDING_NO_LEADER, FINDING_DISK}, CLUSTER_UNAVAILABLE},
        {{FINDING_NO_LEADER, FINDING_HOLD, FINDING_HOLD}, CLUSTER_UNAVAILABLE},
        {{FINDING_NO_LEADER, FINDING_HOLD, FINDING_NOT_FORMED}, CLUSTER_UNKNOWN},
        {{FINDING_HOLD, FINDING_DISK, FINDING_VERSION}, CLUSTER_DEGRADED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct finding findings[3];

        for (size_t j = 0; j < 3; j++) {
            findings[j] = (struct finding){.kind = rows[i].kinds[j]};
        }
        assert_int_equal(findings_word(findings, 3), rows[i].word);
    }
}

static void the_worst_is_told_first_and_those_of_one_kind_keep_their_order(void **state)
{
    struct finding findings[] = {{.kind = FINDING_LISTENER, .node_id = 1},
                                 {.kind = FINDING_MEMBER_SILENT, .node_id = 2},
                                 {.kind = FINDING_GROUP_FAIL_OPEN, .node_id = 3},
                                 {.kind = FINDING_MEMBER_SILENT, .node_id = 4},
                                 {.kind = FINDING_NO_LEADER, .node_id = 5}};
    static const uint64_t order[] = {5, 3, 2, 4, 1};

    (void)state;
    findings_sort(findings, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(findings[i].node_id, order[i]);
    }
    findings_sort(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_nothing_found_is_healthy),
        cmocka_unit_test(each_kind_has_its_word),
        cmocka_unit_test(the_worst_of_several_gives_the_word_wherever_it_stands),
        cmocka_unit_test(the_worst_is_told_first_and_those_of_one_kind_keep_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
