/* The defaults of each profile, typed by hand from the table of the specification (row 1.10). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/cluster.h"
#include "common/model/names.h"
#include "common/model/profile.h"

static const enum profile columns[3] = {PROFILE_GWLB, PROFILE_NLB, PROFILE_CLB};

/* row: name and the statements of the seed documents it comes from. */
struct expected {
    const char *row;
    uint64_t gwlb, nlb, clb;
};

struct defaults {
    struct server_group group; /* with the profile's own check */
    struct health_check http;
    struct health_check udp;
    struct backend backend;
};

static uint64_t value_of(const char *row, const struct defaults *d)
{
    const struct {
        const char *row;
        uint64_t value;
    } values[] = {
        {"check on", d->group.check.is_enabled},
        {"check type", d->group.check.type},
        {"check port", d->group.check.port},
        {"timeout", d->group.check.timeout_ms},
        {"interval", d->group.check.interval_ms},
        {"healthy threshold", d->group.check.healthy_threshold},
        {"unhealthy threshold", d->group.check.unhealthy_threshold},
        {"pacing", d->group.check.pacing},
        {"probe source", d->group.check.source},
        {"http probe source", d->http.source},
        {"udp probe source", d->udp.source},
        {"tcp handshake", d->group.check.tcp.handshake},
        {"tcp close", d->group.check.tcp.close},
        {"on tcp timeout", d->group.check.tcp.on_timeout},
        {"http method", d->http.http.method},
        {"http version", d->http.http.version},
        {"host", d->http.http.host},
        {"http timeout", d->http.timeout_ms},
        {"http interval", d->http.interval_ms},
        {"udp method", d->udp.udp.method},
        {"udp timeout", d->udp.timeout_ms},
        {"udp interval", d->udp.interval_ms},
        {"udp payload bytes", d->udp.udp.payload.n_bytes},
        {"scheduler", d->group.scheduler},
        {"weight", d->backend.weight},
        {"drain on", d->group.drain.is_on},
        {"drain timeout", d->group.drain.timeout_ms},
        {"idle timeout", d->group.idle_timeout_ms},
        {"failover", d->group.failover},
        {"rule down", d->group.rule.down.kind},
        {"rule up", d->group.rule.up.kind},
        {"below quorum", d->group.rule.below_quorum},
        {"all bad", d->group.all_bad},
        {"fail-open threshold", d->group.fail_open_percent},
    };
    size_t n = strcspn(row, ":");

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (strlen(values[i].row) == n && strncmp(values[i].row, row, n) == 0) {
            return values[i].value;
        }
    }
    fail_msg("no such row: %s", row);
    return 0;
}

static const struct expected table[] = {
    {"check on: S79", 1, 1, 1},
    {"check type: S79", CHECK_TYPE_TCP, CHECK_TYPE_TCP, CHECK_TYPE_TCP},
    {"check port: S79", 80, 0, 0},
    {"timeout", 5000, 5000, 5000},
    {"interval", 10000, 5000, 2000},
    {"healthy threshold", 2, 2, 3},
    {"unhealthy threshold: S19 S58", 3, 2, 3},
    {"pacing", PACING_END_TO_START, PACING_END_TO_START, PACING_END_TO_START},
    {"probe source: S90 S32", CHECK_SOURCE_NODE, CHECK_SOURCE_NODE, CHECK_SOURCE_SHARED_SPACE},
    {"http probe source", CHECK_SOURCE_NODE, CHECK_SOURCE_NODE, CHECK_SOURCE_SHARED_SPACE},
    {"udp probe source", CHECK_SOURCE_NODE, CHECK_SOURCE_NODE, CHECK_SOURCE_SHARED_SPACE},
    {"tcp handshake: S6 S95 S42", TCP_HALF_OPEN, TCP_FULL, TCP_HALF_OPEN},
    {"tcp close", TCP_CLOSE_RST, TCP_CLOSE_RST, TCP_CLOSE_RST},
    {"on tcp timeout: S5 S94 S41", TCP_ON_TIMEOUT_NOTHING, TCP_ON_TIMEOUT_RST, TCP_ON_TIMEOUT_RST},
    {"http method: S7 S36", HTTP_GET, HTTP_GET, HTTP_HEAD},
    {"http version", HTTP_1_1, HTTP_1_0, HTTP_1_0},
    {"host: S25 S107 S61", HTTP_HOST_ADDRESS_PORT, HTTP_HOST_OMITTED, HTTP_HOST_OMITTED},
    {"http timeout", 5000, 5000, 5000},
    {"http interval", 10000, 5000, 2000},
    {"udp method: S78 S98 S45-S48", UDP_METHOD_NONE, UDP_PORT_ECHO, UDP_PORT},
    {"udp timeout", 5000, 5000, 10000},
    {"udp interval", 10000, 5000, 5000},
    {"udp payload bytes", 16, 16, 16},
    {"scheduler", SCHEDULER_5_TUPLE, SCHEDULER_WRR, SCHEDULER_WRR},
    {"weight", 100, 100, 100},
    {"drain on", 0, 0, 0},
    {"drain timeout", 300000, 300000, 300000},
    {"idle timeout", 350000, 900000, 900000},
    {"failover", FAILOVER_NO_REBALANCE, FAILOVER_NONE, FAILOVER_NONE},
    {"rule down: S87", RULE_MAJORITY, RULE_LOCAL, RULE_ANY},
    {"rule up: S87", RULE_MAJORITY, RULE_LOCAL, RULE_ANY},
    {"below quorum", BELOW_QUORUM_HOLD, BELOW_QUORUM_HOLD, BELOW_QUORUM_HOLD},
    {"all bad: S91", ALL_BAD_FAIL_OPEN, ALL_BAD_FAIL_OPEN, ALL_BAD_FAIL_OPEN},
    {"fail-open threshold", 0, 0, 0},
};

static struct defaults defaults_of(enum profile profile)
{
    struct defaults d;

    profile_group_defaults(profile, PROTOCOL_NONE, &d.group);
    profile_check_defaults(profile, PROTOCOL_TCP, CHECK_TYPE_HTTP, &d.http);
    profile_check_defaults(profile, PROTOCOL_TCP, CHECK_TYPE_UDP, &d.udp);
    profile_backend_defaults(profile, &d.backend);
    return d;
}

static void every_default_is_the_specified_one(void **unused)
{
    (void)unused;
    for (size_t column = 0; column < 3; column++) {
        struct defaults d = defaults_of(columns[column]);

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
            const uint64_t wanted[3] = {table[i].gwlb, table[i].nlb, table[i].clb};
            uint64_t got = value_of(table[i].row, &d);

            if (got != wanted[column]) {
                fail_msg("%s, %s: expected %llu, got %llu", table[i].row,
                         names_word(&names_profile, columns[column]),
                         (unsigned long long)wanted[column], (unsigned long long)got);
            }
        }
    }
}

static void expected_codes_are_2xx_and_for_clb_3xx_too(void **unused)
{
    (void)unused;
    for (size_t column = 0; column < 3; column++) {
        struct defaults d = defaults_of(columns[column]);

        for (unsigned code = 0; code < 700; code++) {
            unsigned last = columns[column] == PROFILE_CLB ? 399 : 299; /* S37 */

            assert_int_equal(http_codes_has(&d.http.http.expect, code),
                             code >= 200 && code <= last);
        }
        assert_string_equal(d.http.http.path, "/");
        assert_string_equal(d.http.http.domain, "");
    }
}

static void a_clb_group_probes_by_its_protocol(void **unused)
{
    static const struct {
        enum protocol protocol;
        enum check_type type;
        uint32_t timeout_ms, interval_ms;
    } rows[] = {
        {PROTOCOL_TCP, CHECK_TYPE_TCP, 5000, 2000},
        {PROTOCOL_UDP, CHECK_TYPE_UDP, 10000, 5000},
        {PROTOCOL_TCP_UDP, CHECK_TYPE_TCP, 5000, 2000},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server_group group;

        profile_group_defaults(PROFILE_CLB, rows[i].protocol, &group);
        assert_int_equal(group.protocol, rows[i].protocol);
        assert_int_equal(group.check.type, rows[i].type);
        assert_int_equal(group.check.timeout_ms, rows[i].timeout_ms);
        assert_int_equal(group.check.interval_ms, rows[i].interval_ms);
    }
}

static void protocols_and_types_have_defaults(void **unused)
{
    static const enum protocol protocols[3] = {PROTOCOL_GENEVE, PROTOCOL_TCP, PROTOCOL_TCP};

    (void)unused;
    for (size_t column = 0; column < 3; column++) {
        struct defaults d = defaults_of(columns[column]);

        assert_int_equal(d.group.protocol, protocols[column]);
        assert_int_equal(d.group.type, GROUP_TYPE_IP);
        assert_int_equal(d.group.address_family, ADDR_NONE);
        assert_false(d.group.rule.is_split);
        /* A document that does not say keeps the operator's word. */
        assert_int_equal(d.backend.admin_state, ADMIN_NONE);
    }
}

static void settings_default_to_one_second_and_private_prefixes(void **unused)
{
    static const char *const prefixes[] = {"10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12",
                                           "192.168.0.0/16", "fc00::/7"}; /* S66 */
    struct cluster_settings settings;
    char text[CIDR_TEXT_BYTES];

    (void)unused;
    cluster_settings_default(&settings);
    assert_int_equal(settings.vote_interval_ms, 1000);
    assert_int_equal(settings.n_allowed, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(cidr_format(&settings.allowed[i], text), prefixes[i]);
    }
    assert_int_equal(settings.hold, HOLD_KEEP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_is_the_specified_one),
        cmocka_unit_test(expected_codes_are_2xx_and_for_clb_3xx_too),
        cmocka_unit_test(a_clb_group_probes_by_its_protocol),
        cmocka_unit_test(protocols_and_types_have_defaults),
        cmocka_unit_test(settings_default_to_one_second_and_private_prefixes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
