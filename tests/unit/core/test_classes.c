/* Verdicts to classes and flow policies: the tables of spec.md 6, with S-row ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/classes.h"
#include "agent/table/jury_table.h"
#include "tests/lib/row_words.h"

/* Members in letters: h healthy, r healthy and unreachable from here, i initial, l initial
 * and late, u unhealthy, o checks off, and in upper case the same but not eligible (weight 0,
 * draining, removing, ...). */
static struct class_member member_of(char letter)
{
    struct class_member member = {.is_eligible = letter >= 'a'};

    switch (letter | 0x20) {
    case 'h':
        member.health_state = HEALTH_HEALTHY;
        break;
    case 'r':
        member.health_state = HEALTH_HEALTHY;
        member.is_unreachable = true;
        break;
    case 'i':
        member.health_state = HEALTH_INITIAL;
        break;
    case 'l':
        member.health_state = HEALTH_INITIAL;
        member.is_late = true;
        break;
    case 'u':
        member.health_state = HEALTH_UNHEALTHY;
        break;
    default:
        member.health_state = HEALTH_UNAVAILABLE;
        break;
    }
    return member;
}

/* Classes in letters: 1 healthy, 2 unreachable, 3 fail-open, w warming, - none. */
static char class_letter(uint8_t row_class)
{
    return row_class == ROW_HEALTHY       ? '1'
           : row_class == ROW_UNREACHABLE ? '2'
           : row_class == ROW_FAIL_OPEN   ? '3'
           : row_class == ROW_WARMING     ? 'w'
                                          : '-';
}

static void new_flows_take_the_first_class_that_is_not_empty(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        uint8_t percent;
        bool closed, may_warm, judged;
        const char *classes;
        uint8_t group_state;
    } rows[] = {
        {"hhh", 0, false, false, false, "111", GROUP_OK},
        {"hru", 0, false, false, false, "12-", GROUP_DEGRADED},
        {"rr", 0, false, false, false, "22", GROUP_OK},
        {"uu", 0, false, false, false, "33", GROUP_FAIL_OPEN}, /* S91 */
        {"uu", 0, true, false, false, "--", GROUP_CLOSED},
        {"ui", 0, false, false, false, "33", GROUP_FAIL_OPEN},
        {"oo", 0, false, false, false, "11", GROUP_OK}, /* checks off: used as healthy */
        {"hHU", 0, false, false, false, "1--", GROUP_OK},
        {"HU", 0, false, false, false, "--", GROUP_CLOSED}, /* m = 0 */
        {"", 0, false, false, false, "", GROUP_CLOSED},
        {"HuU", 0, false, false, false, "-3-", GROUP_FAIL_OPEN},
        /* a threshold: below it all of m are one class */
        {"hhuu", 50, false, false, false, "11--", GROUP_DEGRADED},
        {"hhuuu", 50, false, false, false, "33333", GROUP_FAIL_OPEN},
        {"hruuu", 50, false, false, false, "33333", GROUP_FAIL_OPEN},
        {"hhuuu", 50, true, false, false, "-----", GROUP_CLOSED},
        {"hii", 50, false, false, false, "1--", GROUP_DEGRADED}, /* i does not count as bad */
        {"huui", 50, false, false, false, "3333", GROUP_FAIL_OPEN},
        {"h", 100, false, false, false, "1", GROUP_OK},
        /* warming: a cold start */
        {"iii", 0, false, true, false, "www", GROUP_OK},
        {"hii", 0, false, true, false, "www", GROUP_OK},
        {"hiu", 0, false, true, false, "ww-", GROUP_DEGRADED},
        {"hiu", 80, false, true, false, "ww-", GROUP_DEGRADED},
        {"iii", 0, true, true, false, "www", GROUP_OK},        /* before fail-closed is looked at */
        {"iii", 0, false, true, true, "333", GROUP_FAIL_OPEN}, /* judged before: no cold start */
        {"hhh", 0, false, true, false, "111", GROUP_OK},
        {"huu", 0, false, true, false, "1--", GROUP_DEGRADED}, /* nobody is initial */
        {"hI", 0, false, true, false, "1-", GROUP_OK},
        /* warming, and one came later: it gets nothing before it passed (A22) */
        {"hil", 0, false, true, false, "ww-", GROUP_DEGRADED},
        {"iil", 0, false, true, false, "ww-", GROUP_DEGRADED},
        {"hhl", 0, false, true, false, "11-", GROUP_DEGRADED}, /* the start is over */
        {"uil", 0, false, true, false, "-w-", GROUP_DEGRADED},
        {"uul", 0, false, true, false, "333", GROUP_FAIL_OPEN}, /* nobody else is left */
        {"l", 0, true, true, false, "-", GROUP_CLOSED},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct class_policy policy = {.all_bad =
                                          rows[i].closed ? ALL_BAD_FAIL_CLOSED : ALL_BAD_FAIL_OPEN,
                                      .fail_open_percent = rows[i].percent,
                                      .may_warm = rows[i].may_warm};
        struct class_member members[8];
        uint8_t classes[8];
        char letters[9] = "";
        uint32_t n = (uint32_t)strlen(rows[i].members);
        struct class_result result;

        for (uint32_t j = 0; j < n; j++) {
            members[j] = member_of(rows[i].members[j]);
            members[j].was_judged = rows[i].judged;
        }
        classes_decide(&policy, members, n, classes, &result);
        for (uint32_t j = 0; j < n; j++) {
            letters[j] = class_letter(classes[j]);
        }
        if (strcmp(letters, rows[i].classes) != 0 || result.group_state != rows[i].group_state) {
            fail_msg("row %zu: \"%s\" gives %s in state %u", i, rows[i].members, letters,
                     result.group_state);
        }
    }
}

enum cause {
    REMOVED,
    UNHEALTHY,
    DRAIN,
    MAINTENANCE,
    NOTHING
};

/* The second table of spec.md 6: existing flows. */
static void existing_flows_follow_the_cause(void **state)
{
    (void)state;
    static const struct {
        uint8_t profile, failover;
        enum cause cause;
        bool drain_on;
        uint32_t timeout_ms;
        uint8_t policy, deadline;
    } rows[] = {
        {PROFILE_GWLB, 0, REMOVED, false, 0, FLOW_KEEP, DEADLINE_NONE},             /* S74 */
        {PROFILE_GWLB, 0, REMOVED, true, 300000, FLOW_HOLD_IDLE, DEADLINE_REMOVED}, /* S75 */
        {PROFILE_GWLB, 0, UNHEALTHY, false, 0, FLOW_KEEP, DEADLINE_NONE},           /* S82 */
        {PROFILE_GWLB, 0, UNHEALTHY, true, 300000, FLOW_KEEP, DEADLINE_NONE},
        {PROFILE_NLB, 0, REMOVED, false, 0, FLOW_KEEP, DEADLINE_NONE},
        {PROFILE_NLB, 0, REMOVED, true, 300000, FLOW_CLOSE_AT, DEADLINE_REMOVED},
        {PROFILE_CLB, 0, REMOVED, false, 0, FLOW_KEEP, DEADLINE_NONE},
        {PROFILE_CLB, 0, REMOVED, true, 300000, FLOW_CLOSE_AT, DEADLINE_REMOVED},
        {PROFILE_NLB, 0, UNHEALTHY, false, 0, FLOW_KEEP, DEADLINE_NONE},            /* S88 */
        {PROFILE_NLB, 0, UNHEALTHY, true, 300000, FLOW_CLOSE_AT, DEADLINE_VERDICT}, /* S89 */
        {PROFILE_NLB, 0, UNHEALTHY, true, 0, FLOW_CLOSE_NOW, DEADLINE_NONE},
        {PROFILE_CLB, 0, UNHEALTHY, false, 0, FLOW_KEEP, DEADLINE_NONE},
        {PROFILE_CLB, 0, UNHEALTHY, true, 300000, FLOW_KEEP, DEADLINE_NONE},
        {PROFILE_NLB, 0, DRAIN, false, 30000, FLOW_CLOSE_AT, DEADLINE_DRAIN},
        {PROFILE_GWLB, 0, DRAIN, true, 30000, FLOW_CLOSE_AT, DEADLINE_DRAIN},
        {PROFILE_CLB, 0, DRAIN, true, 0, FLOW_CLOSE_NOW, DEADLINE_NONE},
        {PROFILE_NLB, 0, MAINTENANCE, false, 0, FLOW_CLOSE_NOW, DEADLINE_NONE},
        {PROFILE_NLB, 0, MAINTENANCE, false, 60000, FLOW_CLOSE_AT, DEADLINE_DRAIN},
        {PROFILE_NLB, 0, NOTHING, true, 300000, FLOW_KEEP, DEADLINE_NONE},
        {PROFILE_GWLB, FAILOVER_REBALANCE, UNHEALTHY, false, 0, FLOW_MOVE, DEADLINE_NONE},
        {PROFILE_GWLB, FAILOVER_REBALANCE, REMOVED, false, 0, FLOW_MOVE, DEADLINE_NONE},
        {PROFILE_GWLB, FAILOVER_REBALANCE, REMOVED, true, 5000, FLOW_MOVE_AT, DEADLINE_REMOVED},
        {PROFILE_GWLB, FAILOVER_NO_REBALANCE, UNHEALTHY, true, 5000, FLOW_KEEP, DEADLINE_NONE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct flow_question question = {
            .profile = rows[i].profile,
            .failover = rows[i].failover,
            .drain = {.is_on = rows[i].drain_on, .timeout_ms = rows[i].timeout_ms},
            .admin_state = rows[i].cause == DRAIN         ? ADMIN_DRAINING
                           : rows[i].cause == MAINTENANCE ? ADMIN_MAINTENANCE
                                                          : ADMIN_ENABLED,
            .is_removing = rows[i].cause == REMOVED,
            .is_unhealthy = rows[i].cause == UNHEALTHY,
            .drain_timeout_ms = rows[i].timeout_ms,
        };
        struct flow_answer answer =
            rows[i].cause == UNHEALTHY ? flows_by_verdict(&question) : flows_by_admin(&question);

        if (answer.flow_policy != rows[i].policy || answer.cause != rows[i].deadline ||
            (answer.cause != DEADLINE_NONE && answer.timeout_ms != rows[i].timeout_ms)) {
            fail_msg("row %zu: %s, deadline %u", i, flow_policy_word(answer.flow_policy),
                     answer.cause);
        }
        question.is_fail_open = true; /* the unhealthy policy is suspended */
        assert_int_equal(flows_by_verdict(&question).flow_policy, FLOW_KEEP);
    }
}

static void ranks_are_those_of_the_table(void **state)
{
    (void)state;
    assert_int_equal(jury_class_rank(ROW_HEALTHY), 1);
    assert_int_equal(jury_class_rank(ROW_WARMING), 1);
    assert_int_equal(jury_class_rank(ROW_UNREACHABLE), 2);
    assert_int_equal(jury_class_rank(ROW_FAIL_OPEN), 3);
    assert_int_equal(jury_class_rank(ROW_NONE), 0);
    assert_int_equal(jury_class_rank(ROW_REMOVED), 0);
    assert_int_equal(jury_class_rank(200), 0);
    struct class_result warming = {.group_state = GROUP_OK, .is_warming = true};
    assert_int_equal(classes_scope_class(&warming), ROW_SCOPE_WARMING);
}

/* R-EJ-2: fail-open below the threshold, compared without rounding: 100 h < threshold x (m - i), so
 * the least that avoids it is the threshold's share rounded up, and at least one. */
static void the_threshold_is_rounded_up_in_groups_of_1_to_10(void **state)
{
    static const struct {
        uint8_t percent;
        uint32_t least[10]; /* healthy ones that a group of 1, 2, ... needs */
    } rows[] = {{0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},   {10, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
                {34, {1, 1, 2, 2, 2, 3, 3, 3, 4, 4}},  {50, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5}},
                {51, {1, 2, 2, 3, 3, 4, 4, 5, 5, 6}},  {99, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
                {100, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint32_t m = 1; m <= 10; m++) {
            for (uint32_t h = 0; h <= m; h++) {
                struct class_member members[10] = {{0}};
                struct class_policy policy = {.all_bad = ALL_BAD_FAIL_OPEN,
                                              .fail_open_percent = rows[i].percent};
                struct class_result result;
                uint8_t classes[10];

                for (uint32_t j = 0; j < m; j++) {
                    members[j].is_eligible = true;
                    members[j].health_state = j < h ? HEALTH_HEALTHY : HEALTH_UNHEALTHY;
                }
                classes_decide(&policy, members, m, classes, &result);
                assert_int_equal(result.group_state == GROUP_FAIL_OPEN, h < rows[i].least[m - 1]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_threshold_is_rounded_up_in_groups_of_1_to_10),
        cmocka_unit_test(new_flows_take_the_first_class_that_is_not_empty),
        cmocka_unit_test(existing_flows_follow_the_cause),
        cmocka_unit_test(ranks_are_those_of_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
