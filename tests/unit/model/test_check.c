/* Windows (S14, S15, S20-S22), codes, rules and words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/check.h"
#include "common/model/names.h"
#include "common/model/profile.h"
#include "common/model/reason.h"
#include "common/model/rule.h"

static void windows_follow_the_formula(void **unused)
{
    static const struct {
        uint32_t timeout_ms, interval_ms;
        uint8_t rise, fall;
        uint64_t response_ms, failure_ms, success_ms;
    } rows[] = {
        {5000, 2000, 3, 3, 1000, 19000, 7000},              /* S20, S21, S22 */
        {10000, 5000, 3, 3, 10000, 40000, 40000},           /* clb over udp: r = T */
        {5000, 10000, 2, 3, 0, 35000, 10000},               /* gwlb */
        {5000, 5000, 2, 2, 0, 15000, 5000},                 /* nlb */
        {100, 100, 1, 1, 50, 100, 50},                      /* the smallest */
        {300000, 300000, 10, 10, 300000, 5700000, 5700000}, /* the largest */
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct health_check check = {.timeout_ms = rows[i].timeout_ms,
                                     .interval_ms = rows[i].interval_ms,
                                     .healthy_threshold = rows[i].rise,
                                     .unhealthy_threshold = rows[i].fall};

        assert_int_equal(check_failure_window_ms(&check), rows[i].failure_ms);
        assert_int_equal(check_success_window_ms(&check, rows[i].response_ms), rows[i].success_ms);
    }
}

/* From start to start: a beat that falls into a probe is skipped. */
static void with_fixed_pacing_the_windows_count_beats(void **unused)
{
    static const struct {
        uint32_t timeout_ms, interval_ms;
        uint64_t failure_ms, success_ms; /* U = 3, H = 2, r = 100 ms */
    } rows[] = {
        {500, 1000, 500 + 2 * 1000, 100 + 1000},
        {1000, 1000, 1000 + 2 * 2000, 100 + 1000}, /* the beat comes while the timeout is noticed */
        {2500, 1000, 2500 + 2 * 3000, 100 + 1000},
        {100, 100, 100 + 2 * 200, 100 + 200},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct health_check check = {.pacing = PACING_FIXED,
                                     .timeout_ms = rows[i].timeout_ms,
                                     .interval_ms = rows[i].interval_ms,
                                     .healthy_threshold = 2,
                                     .unhealthy_threshold = 3};

        assert_int_equal(check_failure_window_ms(&check), rows[i].failure_ms);
        assert_int_equal(check_success_window_ms(&check, 100), rows[i].success_ms);
    }
}

/* They were cut: 0.142 for one node each 7 s, and so 0.284 at most. */
static void probes_a_second_are_rounded_and_no_more_than_all_probe(void **unused)
{
    static const struct {
        uint32_t interval_ms;
        uint8_t probers;
        unsigned n_observers;
        unsigned n_probers;
        uint64_t steady, worst;
    } rows[] = {
        {7000, 0, 1, 1, 143, 143},
        {7000, 2, 3, 2, 286, 857},
        {3000, 0, 2, 2, 667, 667},
        {300000, 0, 1, 1, 3, 3},
        {1000, 3, 3, 3, 3000, 3000},
        {1000, 9, 4, 4, 4000, 4000}, /* more probers than there are nodes */
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct health_check check = {.interval_ms = rows[i].interval_ms,
                                     .probers = rows[i].probers};
        struct check_load load = check_load_of(&check, rows[i].n_observers);

        assert_int_equal(load.n_probers, rows[i].n_probers);
        assert_int_equal(load.steady_per_1000s, rows[i].steady);
        assert_int_equal(load.worst_per_1000s, rows[i].worst);
    }
}

/* Checks with `probers` were taken for what each node probes. */
static void a_node_begins_its_share_and_twice_an_interval_at_worst(void **unused)
{
    static const struct {
        uint8_t probers;
        bool recheck;
        unsigned n_observers;
        double steady, worst;
    } rows[] = {
        {0, false, 5, 4, 4}, {2, false, 5, 1.6, 8}, {2, false, 2, 4, 4},
        {0, true, 5, 4, 8},  {2, false, 0, 4, 8}, /* of how many is not known */
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct health_check check = {
            .interval_ms = 250, .probers = rows[i].probers, .recheck = rows[i].recheck};
        struct check_demand demand = check_demand_of(&check, rows[i].n_observers);

        assert_float_equal(demand.steady, rows[i].steady, 1e-9);
        assert_float_equal(demand.worst, rows[i].worst, 1e-9);
    }
}

/* Case A02: 200-299 and 302. */
static void a_set_of_codes_holds_what_was_added(void **unused)
{
    static const struct {
        unsigned code;
        bool is_expected;
    } rows[] = {{200, true},  {204, true},  {302, true},  {303, false}, {206, true},
                {404, false}, {199, false}, {299, true},  {300, false}, {600, false},
                {99, false},  {599, false}, {101, false}, {0, false}};
    struct http_codes codes = {{0}};

    (void)unused;
    http_codes_add(&codes, 200, 299);
    http_codes_add(&codes, 302, 302);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(http_codes_has(&codes, rows[i].code), rows[i].is_expected);
    }
    http_codes_add(&codes, HTTP_CODE_MIN, HTTP_CODE_MAX);
    assert_true(http_codes_has(&codes, 599));
    assert_false(http_codes_has(&codes, 600));
    assert_int_equal(codes.words[6] >> 16, 0);
}

static void rules_have_one_spelling(void **unused)
{
    static const struct {
        const char *text;
        enum rule_kind kind;
        unsigned value;
    } rows[] = {
        {"local", RULE_LOCAL, 0},           {"any", RULE_ANY, 0},
        {"majority", RULE_MAJORITY, 0},     {"all", RULE_ALL, 0},
        {"at-least 1", RULE_AT_LEAST, 1},   {"at-least 64", RULE_AT_LEAST, 64},
        {"percent 1", RULE_PERCENT, 1},     {"percent 82", RULE_PERCENT, 82},
        {"percent 100", RULE_PERCENT, 100}, {"zone-majority", RULE_ZONE_MAJORITY, 0},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rule_column column;
        char text[RULE_TEXT_BYTES];

        assert_int_equal(rule_column_parse(rows[i].text, &column, NULL), 0);
        assert_int_equal(column.kind, rows[i].kind);
        assert_int_equal(column.value, rows[i].value);
        assert_string_equal(rule_column_format(&column, text), rows[i].text);
    }
}

static void wrong_rules_are_refused(void **unused)
{
    static const char *const texts[] = {"",
                                        "most",
                                        "at-least",
                                        "at-least 0",
                                        "at-least 65",
                                        "at-least -1",
                                        "at-least 2x",
                                        "at-least2",
                                        "percent",
                                        "percent 0",
                                        "percent 101",
                                        "percent 8.5",
                                        "Majority",
                                        "all 3",
                                        "local "};

    (void)unused;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rule_column column = {.kind = 99};
        struct errmsg err;

        assert_int_equal(rule_column_parse(texts[i], &column, &err), ERR_INVALID);
        assert_int_equal(column.kind, 99);
        assert_non_null(strstr(err.text, "percent X"));
    }
}

/* S32: 100.64.0.0/10 is IPv4 alone, so checks that ask for it are probed over IPv6 as all are. */
static void the_shared_space_ends_where_its_ten_bits_do(void **unused)
{
    static const struct {
        const char *text;
        bool is_in;
    } rows[] = {
        {"100.64.0.0", true},   {"100.127.255.255", true}, {"100.63.255.255", false},
        {"100.128.0.0", false}, {"101.64.0.0", false},     {"::ffff:100.64.0.1", false},
        {"6440::", false},
    };
    const struct health_check asks = {.source = CHECK_SOURCE_SHARED_SPACE};
    const struct health_check asks_not = {.source = CHECK_SOURCE_NODE};

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct addr addr = {.family = ADDR_IPV6, .bytes = {[10] = 255, [11] = 255, [12] = 100}};

        if (addr_parse(rows[i].text, &addr, NULL) == 0) {
            assert_int_equal(check_is_from_shared_space(&asks, &addr), addr.family == ADDR_IPV4);
        }
        assert_int_equal(addr_is_shared_space(&addr), rows[i].is_in);
        assert_false(check_is_from_shared_space(&asks_not, &addr));
    }
}

static void every_word_leads_back_to_its_value(void **unused)
{
    const struct name_table *const tables[] = {
        &names_profile,       &names_group_type, &names_protocol,       &names_scheduler,
        &names_admin_state,   &names_all_bad,    &names_failover,       &names_check_type,
        &names_tcp_handshake, &names_tcp_close,  &names_tcp_on_timeout, &names_http_method,
        &names_http_version,  &names_http_host,  &names_udp_method,     &names_pacing,
        &names_check_source,  &names_rule,       &names_below_quorum,   &names_raft_role,
        &names_key_role,
    };
    char list[200];

    (void)unused;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (size_t j = 0; j < tables[i]->n_rows; j++) {
            const struct name_row *row = &tables[i]->rows[j];

            assert_int_not_equal(row->value, 0);
            assert_int_equal(names_value(tables[i], row->word), row->value);
            assert_string_equal(names_word(tables[i], row->value), row->word);
            assert_non_null(strstr(names_list(tables[i], list, sizeof list), row->word));
        }
        assert_int_equal(names_value(tables[i], "nonsense"), 0);
        assert_string_equal(names_word(tables[i], 0), "?");
    }
    assert_string_equal(names_list(&names_profile, list, sizeof list), "gwlb, nlb or clb");
    assert_string_equal(names_list(&names_profile, list, 8), "gwlb, n");
}

static void every_reason_has_word_sentence_and_class(void **unused)
{
    static const unsigned reasons[] = {
#define REASON(name, number, class, word, sentence) name,
        PROBE_REASONS(REASON)
#undef REASON
    };

    (void)unused;
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        const char *word = probe_reason_word(reasons[i]);
        /* All but one are faults of this node; that one is a silence without proof. */
        bool is_local = strncmp(word, "LOCAL_", 6) == 0 || reasons[i] == REASON_ICMP_LIMITED;

        assert_string_not_equal(word, "UNKNOWN_REASON");
        assert_true(strlen(probe_reason_sentence(reasons[i])) > 10);
        assert_int_equal(probe_reason_class(reasons[i]) == PROBE_INCONCLUSIVE, is_local);
    }
    assert_string_equal(probe_reason_word(REASON_HTTP_CODE_NOT_MATCH), "HTTP_CODE_NOT_MATCH");
    assert_int_equal(probe_reason_class(REASON_CONNECT_TIMEOUT), PROBE_FAIL);
    assert_int_equal(probe_reason_class(REASON_OK), PROBE_PASS);
    assert_string_equal(probe_reason_word(250), "UNKNOWN_REASON");
    assert_int_equal(probe_reason_class(250), PROBE_CLASS_NONE);
    assert_string_equal(opinion_word(OPINION_FAIL), "fail");
    assert_string_equal(health_state_word(HEALTH_UNAVAILABLE), "unavailable");
    assert_string_equal(group_state_word(GROUP_FAIL_OPEN), "fail-open");
}

/* "connected, but no complete answer" was told of datagrams, too. */
static void a_udp_check_is_told_about_without_a_connection(void **unused)
{
    static const unsigned reasons[] = {REASON_OK,
                                       REASON_CONNECT_FAILED,
                                       REASON_RECV_RESPONSE_TIMEOUT,
                                       REASON_PORT_UNREACHABLE,
                                       REASON_NO_ECHO_REPLY,
                                       REASON_RESPONSE_MISMATCH,
                                       REASON_SILENT,
                                       REASON_ECHO,
                                       REASON_ICMP_LIMITED};

    (void)unused;
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        assert_null(strstr(probe_reason_sentence_of(reasons[i], CHECK_TYPE_UDP), "connect"));
    }
    for (unsigned type = CHECK_TYPE_TCP; type <= CHECK_TYPE_GRPC; type++) {
        const char *text = probe_reason_sentence_of(REASON_RECV_RESPONSE_TIMEOUT, type);

        assert_int_equal(strstr(text, "connected, but") != NULL, type != CHECK_TYPE_UDP);
    }
    /* Of all kinds at once nothing is said that is true of some. */
    assert_null(strstr(probe_reason_sentence(REASON_RECV_RESPONSE_TIMEOUT), "connect"));
}

static void a_reason_is_found_by_its_word_in_any_case(void **state)
{
    (void)state;
    for (unsigned reason = REASON_OK; reason < 64; reason++) {
        if (probe_reason_class(reason) != PROBE_CLASS_NONE) {
            assert_int_equal(probe_reason_find(probe_reason_word(reason)), reason);
        }
    }
    assert_int_equal(probe_reason_find("connect_timeout"), REASON_CONNECT_TIMEOUT);
    assert_int_equal(probe_reason_find("Connect_Timeout"), REASON_CONNECT_TIMEOUT);
    assert_int_equal(probe_reason_find("CONNECT_TIMEOU"), REASON_NONE);
    assert_int_equal(probe_reason_find("CONNECT_TIMEOUTS"), REASON_NONE);
    assert_int_equal(probe_reason_find("UNKNOWN_REASON"), REASON_NONE);
    assert_int_equal(probe_reason_find(""), REASON_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_follow_the_formula),
        cmocka_unit_test(with_fixed_pacing_the_windows_count_beats),
        cmocka_unit_test(probes_a_second_are_rounded_and_no_more_than_all_probe),
        cmocka_unit_test(a_node_begins_its_share_and_twice_an_interval_at_worst),
        cmocka_unit_test(a_set_of_codes_holds_what_was_added),
        cmocka_unit_test(rules_have_one_spelling),
        cmocka_unit_test(wrong_rules_are_refused),
        cmocka_unit_test(the_shared_space_ends_where_its_ten_bits_do),
        cmocka_unit_test(every_word_leads_back_to_its_value),
        cmocka_unit_test(every_reason_has_word_sentence_and_class),
        cmocka_unit_test(a_udp_check_is_told_about_without_a_connection),
        cmocka_unit_test(a_reason_is_found_by_its_word_in_any_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
