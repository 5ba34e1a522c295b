/* One change to a good object, one sentence (rows 1.10, 1.17). Every sentence names the object, the
 * field and what is allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/profile.h"
#include "common/model/validate.h"
#include "tests/lib/catalog_builder.h"

static void expect(int rc, const struct errmsg *err, int wanted, const char *sentence)
{
    if (rc != wanted || (wanted != 0 && strcmp(err->text, sentence) != 0)) {
        fail_msg("expected %d: %s\n     got %d: %s", wanted, sentence, rc,
                 rc != 0 ? err->text : "");
    }
}

/* EXPECT_GROUP(statement on `g`, code, sentence): a fresh good group with one thing changed. */
#define EXPECT_GROUP(change, code, sentence)                    \
    do {                                                        \
        struct server_group g;                                  \
        struct errmsg err = {{0}};                              \
                                                                \
        build_group(&g, "web", "10.0.0.1:80 10.0.0.2:80");      \
        change;                                                 \
        expect(validate_group(&g, &err), &err, code, sentence); \
        server_group_close(&g);                                 \
    } while (0)

#define WEB "server group \"web\": "

static void http(struct server_group *g)
{
    profile_check_defaults((enum profile)g->profile, PROTOCOL_TCP, CHECK_TYPE_HTTP, &g->check);
}

static void an_nlb_group_is_good_by_its_defaults(void **unused)
{
    (void)unused;
    EXPECT_GROUP(, 0, "");
    EXPECT_GROUP(http(&g), 0, "");
    EXPECT_GROUP(g.n_backends = 0, 0, "");
    EXPECT_GROUP(g.check.is_enabled = false, 0, "");
}

static void a_group_of_each_profile_is_valid_by_its_defaults(void **unused)
{
    static const enum profile profiles[] = {PROFILE_GWLB, PROFILE_NLB, PROFILE_CLB};
    struct server_group group;
    struct errmsg err;

    (void)unused;
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        profile_group_defaults(profiles[i], PROTOCOL_NONE, &group);
        strcpy(group.name, "web");
        expect(validate_group(&group, &err), &err, 0, "");
    }
}

static void what_a_later_stage_brings_is_refused_by_name(void **unused)
{
    (void)unused;
    EXPECT_GROUP(g.type = GROUP_TYPE_INSTANCE, ERR_UNAVAILABLE_YET,
                 WEB "type instance is not available yet: write `type: ip`");
    EXPECT_GROUP(g.scheduler = SCHEDULER_WLC, ERR_UNAVAILABLE_YET,
                 WEB "scheduler wlc is not available yet: write `scheduler: 5-tuple` or `wrr`");
    EXPECT_GROUP(g.profile = PROFILE_GWLB;
                 g.failover = FAILOVER_REBALANCE, ERR_UNAVAILABLE_YET,
                 WEB "failover rebalance is not available yet: write `failover: no-rebalance`");
}

static void times_and_thresholds_have_ranges(void **unused)
{
    (void)unused;
    EXPECT_GROUP(g.check.timeout_ms = 99, ERR_INVALID,
                 WEB "check.timeout must be 0.1s..300s, got 99ms");
    EXPECT_GROUP(g.check.timeout_ms = 100, 0, "");
    EXPECT_GROUP(g.check.timeout_ms = 300000, 0, "");
    EXPECT_GROUP(g.check.timeout_ms = 300001, ERR_INVALID,
                 WEB "check.timeout must be 0.1s..300s, got 300001ms");
    EXPECT_GROUP(g.check.interval_ms = 0, ERR_INVALID,
                 WEB "check.interval must be 0.1s..300s, got 0ms");
    EXPECT_GROUP(g.check.interval_ms = 315360000, ERR_INVALID,
                 WEB "check.interval must be 0.1s..300s, got 315360000ms");
    EXPECT_GROUP(g.check.healthy_threshold = 0, ERR_INVALID,
                 WEB "check.healthyThreshold must be 1..10, got 0");
    EXPECT_GROUP(g.check.healthy_threshold = 1, 0, "");
    EXPECT_GROUP(g.check.unhealthy_threshold = 10, 0, "");
    EXPECT_GROUP(g.check.unhealthy_threshold = 11, ERR_INVALID,
                 WEB "check.unhealthyThreshold must be 1..10, got 11");
    EXPECT_GROUP(g.idle_timeout_ms = 999, ERR_INVALID,
                 WEB "idleTimeout must be 1s..6000s, got 999ms");
    EXPECT_GROUP(g.idle_timeout_ms = 6000000, 0, "");
    EXPECT_GROUP(g.idle_timeout_ms = 6000001, ERR_INVALID,
                 WEB "idleTimeout must be 1s..6000s, got 6000001ms");
    EXPECT_GROUP(g.drain.timeout_ms = 0, 0, "");
    EXPECT_GROUP(g.drain.timeout_ms = 3600001, ERR_INVALID,
                 WEB "drain.timeout must be 0s..3600s, got 3600001ms");
    EXPECT_GROUP(g.fail_open_percent = 101, ERR_INVALID,
                 WEB "failOpenPercent must be 0..100, got 101");
}

static void an_interval_below_the_timeout_is_good(void **unused)
{
    (void)unused;
    /* A19 (a): accepted, never changed. */
    EXPECT_GROUP(g.check.interval_ms = 2000; g.check.timeout_ms = 5000, 0, "");
}

static void rules_are_checked(void **unused)
{
    (void)unused;
    EXPECT_GROUP(g.rule.down.kind = RULE_NONE, ERR_INVALID,
                 WEB "rule must be local, any, majority, all, at-least, percent or zone-majority");
    EXPECT_GROUP(g.rule.down.kind = RULE_MAJORITY, ERR_INVALID,
                 WEB "rule: down and up differ, so both must be written");
    EXPECT_GROUP(g.rule.down.kind = RULE_MAJORITY; g.rule.is_split = true, 0, "");
    EXPECT_GROUP(g.rule.is_split = true;
                 g.rule.up = ((struct rule_column){RULE_AT_LEAST, 0}), ERR_INVALID,
                 WEB "rule.up: the figure of at-least must be 1..64, got 0");
    EXPECT_GROUP(g.rule.is_split = true;
                 g.rule.down = ((struct rule_column){RULE_PERCENT, 101}), ERR_INVALID,
                 WEB "rule.down: the figure of percent must be 1..100, got 101");
    EXPECT_GROUP(g.rule.is_split = true;
                 g.rule.up.value = 3, ERR_INVALID, WEB "rule.up: local takes no figure, got 3");
    EXPECT_GROUP(g.rule.below_quorum = BELOW_QUORUM_NONE, ERR_INVALID,
                 WEB "belowQuorum must be hold or local");
    EXPECT_GROUP(g.rule.below_quorum = BELOW_QUORUM_LOCAL, 0, "");
}

static void http_checks_are_checked(void **unused)
{
    (void)unused;
    EXPECT_GROUP(http(&g); strcpy(g.check.http.path, "/v1/sys/health?sealedcode=200&x=1"), 0, "");
    EXPECT_GROUP(http(&g);
                 strcpy(g.check.http.path, "health"), ERR_INVALID,
                 WEB "check.http.path must be 1..80 visible ASCII characters beginning with \"/\"");
    EXPECT_GROUP(http(&g);
                 strcpy(g.check.http.path, "/a b"), ERR_INVALID,
                 WEB "check.http.path must be 1..80 visible ASCII characters beginning with \"/\"");
    EXPECT_GROUP(http(&g);
                 strcpy(g.check.http.path, "/a\r\nX: y"), ERR_INVALID,
                 WEB "check.http.path must be 1..80 visible ASCII characters beginning with \"/\"");
    EXPECT_GROUP(http(&g);
                 strcpy(g.check.http.domain, "a.example"), ERR_INVALID,
                 WEB "check.http.domain must be set with check.http.host domain and only then");
    EXPECT_GROUP(http(&g);
                 g.check.http.host = HTTP_HOST_DOMAIN, ERR_INVALID,
                 WEB "check.http.domain must be set with check.http.host domain and only then");
    EXPECT_GROUP(http(&g); g.check.http.host = HTTP_HOST_DOMAIN;
                 strcpy(g.check.http.domain, "a.example:8080"), 0, "");
    EXPECT_GROUP(http(&g); g.check.http.host = HTTP_HOST_DOMAIN;
                 strcpy(g.check.http.domain, "a.example\r\nX: y"), ERR_INVALID,
                 WEB "check.http.domain must be 1..80 letters, digits, \".\", \"-\", \"_\", or a "
                     "port behind \":\"");
    EXPECT_GROUP(http(&g); memset(&g.check.http.expect, 0, sizeof g.check.http.expect), ERR_INVALID,
                           WEB
                           "check.http.expect must hold at least one status code within 200..599");
    EXPECT_GROUP(http(&g); g.check.http.expect.words[6] |= UINT64_C(1) << 16, ERR_INVALID,
                           WEB
                           "check.http.expect must hold at least one status code within 200..599");
    EXPECT_GROUP(http(&g);
                 g.check.http.method = 7, ERR_INVALID, WEB "check.http.method must be GET or HEAD");
}

static void udp(struct server_group *g)
{
    profile_check_defaults(PROFILE_NLB, PROTOCOL_UDP, CHECK_TYPE_UDP, &g->check);
}

static void udp_checks_have_what_their_method_needs_and_no_more(void **unused)
{
    (void)unused;
    EXPECT_GROUP(udp(&g), 0, "");
    EXPECT_GROUP(g.protocol = PROTOCOL_UDP, 0, ""); /* S100: tcp and http checks of UDP groups */
    EXPECT_GROUP(g.protocol = PROTOCOL_TCP_UDP, 0, "");
    EXPECT_GROUP(udp(&g); g.check.udp.method = UDP_METHOD_NONE, ERR_INVALID,
                          WEB "check.udp.method must be port, port+echo or exchange");
    EXPECT_GROUP(udp(&g); g.check.udp.payload.n_bytes = 0, ERR_INVALID,
                          WEB "check.udp.payload must be 1..512 bytes");
    EXPECT_GROUP(udp(&g); g.check.udp.payload.bytes[100] = 1, ERR_INVALID,
                          WEB "check.udp.payload must be 1..512 bytes");
    EXPECT_GROUP(udp(&g); g.check.udp.method = UDP_EXCHANGE, ERR_INVALID,
                          WEB "check.udp.expect must be set with check.udp.method exchange and "
                              "only then");
    EXPECT_GROUP(udp(&g); g.check.udp.expect.n_bytes = 1, ERR_INVALID,
                          WEB "check.udp.expect must be set with check.udp.method exchange and "
                              "only then");
    EXPECT_GROUP(udp(&g); g.check.udp.method = UDP_EXCHANGE; g.check.udp.expect.n_bytes = 1;
                 g.check.udp.mask.n_bytes = 2, ERR_INVALID,
                 WEB "check.udp.mask must have 1..128 bytes and no more than check.udp.expect, "
                     "got 2");
    EXPECT_GROUP(udp(&g); g.check.udp.method = UDP_EXCHANGE; g.check.udp.expect.n_bytes = 1;
                 g.check.udp.mask.n_bytes = 1, 0, "");
}

/* g: a group with a tls check. */
#define EXPECT_TLS(change, rc, text)                                                          \
    EXPECT_GROUP(profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP, CHECK_TYPE_TLS, &g.check); \
                 change, rc, text)

static void tls_checks_are_checked(void **unused)
{
    struct http_check http;

    (void)unused;
    profile_http_defaults(PROFILE_NLB, &http);
    EXPECT_TLS((void)0, 0, "");
    EXPECT_TLS(g.check.http = http, 0, "");
    EXPECT_TLS(strcpy(g.check.tls.server_name, "a_b.example-1.com"), 0, "");
    EXPECT_TLS(strcpy(g.check.tls.server_name, "a b"), ERR_INVALID,
               WEB "check.tls.serverName must be 1..80 letters, digits, \".\", \"-\" or \"_\"");
    EXPECT_TLS(g.check.tls.verify = TLS_VERIFY_CA, ERR_INVALID,
               WEB "check.tls.serverName must be set with check.tls.verify ca: it is the name that "
                   "the certificate must have");
    EXPECT_TLS(strcpy(g.check.tls.server_name, "a"); g.check.tls.verify = TLS_VERIFY_CA, 0, "");
    EXPECT_TLS(g.check.tls.verify = 3, ERR_INVALID, WEB "check.tls.verify must be none or ca");
    EXPECT_TLS(g.check.tls.min_version = 0, ERR_INVALID,
               WEB "check.tls.minVersion must be 1.0, 1.1, 1.2 or 1.3");
    EXPECT_TLS(g.check.tls.warn_days = 366, ERR_INVALID,
               WEB "check.tls.warnDays must be 0..365, got 366");
    EXPECT_TLS(strcpy(g.check.tls.alpn, "h 2"), ERR_INVALID,
               WEB "check.tls.alpn must be 1..16 visible ASCII characters, such as \"h2\" or "
                   "\"imap\"");
    EXPECT_TLS(g.check.http = http;
               g.check.http.path[0] = 'x', ERR_INVALID,
               WEB "check.http.path must be 1..80 visible ASCII characters beginning with \"/\"");
    EXPECT_GROUP(g.check.tls.verify = TLS_VERIFY_NONE, ERR_INVALID,
                 WEB "check.tls is allowed only with check.type tls or grpc, this check is tcp");
    EXPECT_GROUP(
        profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP, CHECK_TYPE_HTTP, &g.check);
        g.check.tls.verify = TLS_VERIFY_NONE, ERR_INVALID,
        WEB "check.tls is allowed only with check.type tls or grpc, this check is http; for https "
            "write check.type tls and keep check.http");
    EXPECT_GROUP(g.profile = PROFILE_GWLB; g.failover = FAILOVER_NO_REBALANCE;
                 profile_check_defaults(PROFILE_GWLB, PROTOCOL_TCP, CHECK_TYPE_TLS, &g.check),
                 ERR_INVALID, WEB "check.type must be tcp or http with profile gwlb, got tls");
}

/* Two local checks, on the backend's port and on 81, and one dependency. */
static void several(struct server_group *g)
{
    build_check(g, "port", CHECK_TYPE_TCP, 0, CHECK_LOCAL);
    build_check(g, "page", CHECK_TYPE_HTTP, 81, CHECK_LOCAL);
    build_check(g, "db", CHECK_TYPE_TCP, 5432, CHECK_DEPENDENCY);
}

#define EXPECT_LIST(change, code, sentence) \
    EXPECT_GROUP(several(&g); change; group_settle_checks(&g), code, sentence)

static void several_checks_are_good_or_refused_by_their_names(void **unused)
{
    (void)unused;
    EXPECT_LIST(, 0, "");
    EXPECT_LIST(g.pass.kind = RULE_ANY, 0, "");
    EXPECT_LIST(g.pass = ((struct rule_column){.kind = RULE_AT_LEAST, .value = 2}), 0, "");
    EXPECT_LIST(g.pass = ((struct rule_column){.kind = RULE_AT_LEAST, .value = 3}), ERR_INVALID,
                WEB "pass: the figure of at-least must be 1..2, the number of local checks, got 3");
    EXPECT_LIST(g.pass.kind = RULE_MAJORITY, ERR_INVALID,
                WEB "pass must be all, any or at-least N");
    EXPECT_LIST(g.pass.value = 1, ERR_INVALID, WEB "pass must be all, any or at-least N");
    EXPECT_LIST(g.n_checks = 1, ERR_INVALID,
                WEB "checks must be 2..8; one alone is written `check`, got 1");
    EXPECT_LIST(strcpy(g.checks[1].name, "port"), ERR_INVALID,
                WEB "check port: name is there twice");
    EXPECT_LIST(strcpy(g.checks[1].name, "2nd"), ERR_INVALID,
                WEB "check 2: name must be 1..32 letters, digits, \".\", \"_\" or \"-\", a letter "
                    "first");
    EXPECT_LIST(g.checks[0].check_class = g.checks[1].check_class = CHECK_DEPENDENCY, ERR_INVALID,
                WEB "checks: at least one must be of class local, or nothing would say whether a "
                    "backend is well");
    EXPECT_LIST(g.checks[1].check_class = 7, ERR_INVALID,
                WEB "check page: class must be local or dependency");
    EXPECT_LIST(g.checks[1].check.timeout_ms = 99, ERR_INVALID,
                WEB "check page: timeout must be 0.1s..300s, got 99ms");
    EXPECT_LIST(strcpy(g.checks[1].check.http.path, "x"), ERR_INVALID,
                WEB "check page: http.path must be 1..80 visible ASCII characters beginning with "
                    "\"/\"");
    EXPECT_LIST(g.checks[1].check.probers = 2, ERR_UNAVAILABLE_YET,
                WEB "check page: probers is not available yet in a list of checks: leave it out, "
                    "and all nodes probe");
    EXPECT_LIST(g.checks[2].check.recheck = true, ERR_UNAVAILABLE_YET,
                WEB "check db: recheck is not available yet in a list of checks: leave it out");
    EXPECT_LIST(g.checks[0].check.is_enabled = false, ERR_INVALID,
                WEB "check port: enabled must be true in a list of checks: leave the check out, or "
                    "write `check: {enabled: false}` in place of the list");
    EXPECT_LIST(g.checks[1].check = g.checks[0].check, ERR_INVALID,
                WEB "check page: it is the same probe as check port: one of them is enough");
    EXPECT_LIST(g.checks[2].check = g.checks[0].check, 0, ""); /* it may degrade earlier */
    EXPECT_GROUP(several(&g);
                 g.check.interval_ms++, ERR_INVALID, WEB "check and checks exclude each other");
    EXPECT_GROUP(g.pass.kind = RULE_ALL, ERR_INVALID, WEB "pass is allowed only with checks");
}

/* S78 is of each. */
static void a_gwlb_group_has_tcp_and_http_checks_only_in_a_list_too(void **unused)
{
    (void)unused;
    EXPECT_GROUP(g.profile = PROFILE_GWLB; g.failover = FAILOVER_NO_REBALANCE; several(&g);
                 build_check(&g, "dns", CHECK_TYPE_UDP, 53, CHECK_DEPENDENCY), ERR_INVALID,
                 WEB "check dns: type must be tcp or http with profile gwlb, got udp");
}

static void the_windows_of_several_checks_are_those_of_the_slowest_local_one(void **unused)
{
    struct server_group g;

    (void)unused;
    build_group(&g, "web", "10.0.0.1:80");
    several(&g);
    struct health_check *port = &g.checks[0].check;
    struct health_check *page = &g.checks[1].check;
    port->timeout_ms = 1000;
    port->interval_ms = 1000;
    port->healthy_threshold = 5;
    port->unhealthy_threshold = 2;
    page->timeout_ms = 5000;
    page->interval_ms = 2000;
    page->healthy_threshold = 2;
    page->unhealthy_threshold = 3;
    g.checks[2].check.unhealthy_threshold = 10; /* a dependency makes nothing slower */
    group_settle_checks(&g);
    assert_int_equal(group_failure_window_ms(&g), 19000);
    assert_int_equal(group_success_window_ms(&g, 1000), 9000); /* of port: 1 s x 5 + 1 s x 4 */
    assert_int_equal(group_cycle_ms(&g), 7000);
    assert_int_equal(check_failure_window_ms(&g.check), 19000);
    assert_int_equal((g.check.timeout_ms + g.check.interval_ms) * g.check.unhealthy_threshold,
                     21000); /* how long a lost vote is remembered: U x (T + I) */
    assert_int_equal(check_kinds(&g.check), 1 << CHECK_TYPE_TCP | 1 << CHECK_TYPE_HTTP);
    server_group_close(&g);
}

static void grpc_checks_are_checked(void **unused)
{
    (void)unused;
#define EXPECT_GRPC(change, rc, text)                                                          \
    EXPECT_GROUP(profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP, CHECK_TYPE_GRPC, &g.check); \
                 change, rc, text)
    EXPECT_GRPC((void)0, 0, "");
    EXPECT_GRPC(strcpy(g.check.grpc.service, "shop.Orders/v1"), 0, "");
    EXPECT_GRPC(strcpy(g.check.grpc.service, "a b"), ERR_INVALID,
                WEB "check.grpc.service must be 1..80 visible ASCII characters");
    EXPECT_GRPC(profile_tls_defaults(&g.check.tls), 0, "");
    EXPECT_GRPC(profile_tls_defaults(&g.check.tls);
                strcpy(g.check.tls.alpn, "h2"), ERR_INVALID,
                WEB "check.tls.alpn must be left out with check.type grpc: it is h2");
    EXPECT_GRPC(profile_tls_defaults(&g.check.tls);
                g.check.tls.verify = TLS_VERIFY_CA, ERR_INVALID,
                WEB
                "check.tls.serverName must be set with check.tls.verify ca: it is the name that "
                "the certificate must have");
    EXPECT_GRPC(profile_http_defaults(PROFILE_NLB, &g.check.http), ERR_INVALID,
                WEB "check.http is allowed only with check.type http or tls, this check is grpc");
    EXPECT_GROUP(strcpy(g.check.grpc.service, "a"), ERR_INVALID,
                 WEB "check.grpc is allowed only with check.type grpc, this check is tcp");
}

static void fields_of_another_check_type_are_refused(void **unused)
{
    (void)unused;
    EXPECT_GROUP(g.check.http.method = HTTP_GET, ERR_INVALID,
                 WEB "check.http is allowed only with check.type http or tls, this check is tcp");
    EXPECT_GROUP(http(&g); g.check.tcp.close = TCP_CLOSE_RST, ERR_INVALID,
                           WEB "check.tcp is allowed only with check.type tcp, this check is http");
    EXPECT_GROUP(g.check.udp.payload.n_bytes = 4, ERR_INVALID,
                 WEB "check.udp is allowed only with check.type udp, this check is tcp");
    EXPECT_GROUP(g.check.tcp.close = TCP_CLOSE_FIN, 0, "");
    EXPECT_GROUP(g.check.tcp.handshake = TCP_HALF_OPEN;
                 g.check.tcp.close = TCP_CLOSE_FIN, ERR_INVALID,
                 WEB "check.tcp.close fin is allowed only with check.tcp.handshake full");
    EXPECT_GROUP(g.check.tcp.expect.n_bytes = 1, 0, "");
    EXPECT_GROUP(g.check.tcp.send.n_bytes = 1, ERR_INVALID,
                 WEB "check.tcp.send is allowed only with check.tcp.expect");
    EXPECT_GROUP(g.check.tcp.handshake = TCP_HALF_OPEN;
                 g.check.tcp.expect.n_bytes = 1, ERR_INVALID,
                 WEB "check.tcp.expect is allowed only with check.tcp.handshake full");
    EXPECT_GROUP(g.profile = PROFILE_GWLB; g.failover = FAILOVER_NO_REBALANCE;
                 profile_check_defaults(PROFILE_GWLB, PROTOCOL_TCP, CHECK_TYPE_UDP, &g.check),
                 ERR_INVALID, WEB "check.type must be tcp or http with profile gwlb, got udp");
    EXPECT_GROUP(g.failover = FAILOVER_NO_REBALANCE, ERR_INVALID,
                 WEB "failover is allowed only with profile gwlb");
    EXPECT_GROUP(strcpy(g.vpc, "vpc-1"), ERR_INVALID, WEB "vpc is allowed only with type instance");
}

static void names_have_a_form(void **unused)
{
    static const struct {
        const char *name;
        bool is_good;
    } rows[] = {{"ab", true},         {"Web-1._x", true}, {"a", false},    {"", false},
                {"1web", false},      {"-web", false},    {"we b", false}, {"web/x", false},
                {"w\xc3\xa9", false}, {"web\n", false}};
    char longest[LIMIT_NAME_BYTES + 2];
    struct errmsg err;

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(validate_name("listener", rows[i].name, &err),
                         rows[i].is_good ? 0 : ERR_INVALID);
    }
    memset(longest, 'a', sizeof longest);
    longest[LIMIT_NAME_BYTES] = '\0';
    assert_int_equal(validate_name("listener", longest, &err), 0);
    longest[LIMIT_NAME_BYTES] = 'a';
    longest[LIMIT_NAME_BYTES + 1] = '\0';
    assert_int_equal(validate_name("listener", longest, &err), ERR_INVALID);
    assert_int_equal(validate_name("listener", "1", &err), ERR_INVALID);
    assert_string_equal(err.text, "listener \"1\": name must be 2..128 letters, digits, \".\", "
                                  "\"_\" or \"-\", a letter first");
}

static struct addr address(const char *text)
{
    struct addr addr;

    assert_int_equal(addr_parse(text, &addr, NULL), 0);
    return addr;
}

static void backends_are_checked(void **unused)
{
    (void)unused;
    EXPECT_GROUP(g.backends[1].at = g.backends[0].at;
                 g.backends[1].weight = 5, ERR_INVALID,
                 WEB
                 "backend 10.0.0.1:80 is there twice: once with weight 100, once with weight 5");
    EXPECT_GROUP(g.backends[1].at = build_endpoint("10.0.0.0:80"), ERR_INVALID,
                 WEB "backends must be sorted by address and port, 10.0.0.0:80 is not");
    EXPECT_GROUP(g.backends[1].weight = 101, ERR_INVALID,
                 WEB "backend 10.0.0.2:80: weight must be 0..100, got 101");
    EXPECT_GROUP(g.backends[1].weight = 0, 0, "");
    EXPECT_GROUP(g.backends[1].at.port = 0, ERR_INVALID,
                 WEB "backend 10.0.0.2:0: port must be 1..65535");
    EXPECT_GROUP(g.backends[1].at.addr = address("224.0.0.1"), ERR_INVALID,
                 WEB "backend 224.0.0.1:80: the address is a multicast address");
    EXPECT_GROUP(g.backends[1].at.addr = address("::"), ERR_INVALID,
                 WEB "backend [::]:80: the address is the unspecified address");
    EXPECT_GROUP(g.backends[1].at.addr = address("255.255.255.255"), ERR_INVALID,
                 WEB "backend 255.255.255.255:80: the address is the broadcast address");
    EXPECT_GROUP(g.backends[1].at.addr.bytes[5] = 1, ERR_INVALID,
                 WEB "backend 10.0.0.2:80: the address is not an address that can be probed");
    EXPECT_GROUP(g.address_family = ADDR_IPV6, ERR_INVALID,
                 WEB
                 "backend 10.0.0.1:80: the address must be an IPv6 address (addressFamily ipv6)");
    EXPECT_GROUP(g.address_family = ADDR_IPV4, 0, "");
    EXPECT_GROUP(g.address_family = 9, ERR_INVALID, WEB "addressFamily must be ipv4 or ipv6");
    EXPECT_GROUP(g.backends[0].admin_state = 9, ERR_INVALID,
                 WEB "backend 10.0.0.1:80: adminState must be enabled, draining or maintenance");
    EXPECT_GROUP(strcpy(g.backends[0].description, "a\tb"), ERR_INVALID,
                 WEB "backend 10.0.0.1:80: description must be UTF-8 text without control "
                     "characters");
    EXPECT_GROUP(g.profile = PROFILE_GWLB; g.failover = FAILOVER_NO_REBALANCE;
                 g.backends[0].weight = 50, ERR_INVALID,
                 WEB "backend 10.0.0.1:80: weight must be 0 or 100 with profile gwlb, got 50");
}

static void labels_and_numbers_are_bounded(void **unused)
{
    (void)unused;
    EXPECT_GROUP(g.n_labels = 1; strcpy(g.labels[0].key, "team"), 0, "");
    EXPECT_GROUP(g.n_labels = 2; strcpy(g.labels[0].key, "team");
                 strcpy(g.labels[1].key, "team"), ERR_INVALID,
                 WEB "labels: \"team\" is there twice");
    EXPECT_GROUP(g.n_labels = 1;
                 strcpy(g.labels[0].key, "a b"), ERR_INVALID,
                 WEB "labels: a key must be 1..63 letters, digits, \".\", \"_\", \"-\" or \"/\", "
                     "got \"a b\"");
    EXPECT_GROUP(g.n_labels = 21, ERR_LIMIT, WEB "labels: 21 entries, the limit is 20");
    EXPECT_GROUP(g.n_backends = 1001, ERR_LIMIT, WEB "backends: 1001 entries, the limit is 1000");
}

static void listeners_are_checked(void **unused)
{
    struct listener good = {.name = "front", .protocol = PROTOCOL_TCP, .group = "web"};
    struct listener l;
    struct errmsg err = {{0}};

    (void)unused;
    good.at = build_endpoint("192.0.2.1:80");
    good.port_last = 80;
    l = good;
    expect(validate_listener(&l, &err), &err, 0, "");
    l.at = build_endpoint("[::]:80");
    expect(validate_listener(&l, &err), &err, 0, "");
    l = good;
    l.port_last = 90;
    expect(validate_listener(&l, &err), &err, ERR_UNAVAILABLE_YET,
           "listener \"front\": a port range (80-90) is not available yet: write one port");
    l.port_last = 70;
    expect(validate_listener(&l, &err), &err, ERR_INVALID,
           "listener \"front\": the last port of a range must not be below the first, got 80-70");
    l = good;
    l.at.port = 0;
    expect(validate_listener(&l, &err), &err, ERR_INVALID,
           "listener \"front\": port must be 1..65535, got 0");
    l = good;
    l.protocol = PROTOCOL_UDP;
    expect(validate_listener(&l, &err), &err, ERR_UNAVAILABLE_YET,
           "listener \"front\": protocol udp is not available yet: listeners serve tcp so far; "
           "leave this one out, its group is checked without it");
    l = good;
    l.at.addr = (struct addr){0};
    expect(validate_listener(&l, &err), &err, ERR_INVALID,
           "listener \"front\": address is missing or not an IP address");
    l = good;
    l.at.addr = address("ff02::1");
    expect(validate_listener(&l, &err), &err, ERR_INVALID,
           "listener \"front\": address ff02::1 is a multicast address");
    l = good;
    l.idle_timeout_ms = 6000001;
    expect(validate_listener(&l, &err), &err, ERR_INVALID,
           "listener \"front\": idleTimeout must be 1s..6000s, got 6000001ms");
    l = good;
    l.group[0] = '\0';
    assert_int_equal(validate_listener(&l, &err), ERR_INVALID);
}

static void settings_are_checked(void **unused)
{
    struct cluster_settings s;
    struct errmsg err = {{0}};

    (void)unused;
    cluster_settings_default(&s);
    expect(validate_settings(&s, &err), &err, 0, "");
    s.vote_interval_ms = 199;
    expect(validate_settings(&s, &err), &err, ERR_INVALID,
           "cluster settings: voteInterval must be 200ms..5s, got 199ms");
    s.vote_interval_ms = 5001;
    expect(validate_settings(&s, &err), &err, ERR_INVALID,
           "cluster settings: voteInterval must be 200ms..5s, got 5001ms");
    s.vote_interval_ms = 5000;
    s.allowed[1] = s.allowed[0];
    expect(validate_settings(&s, &err), &err, ERR_INVALID,
           "cluster settings: allowedCidrs holds 10.0.0.0/8 twice");
    s.allowed[1].prefix_bits = 40;
    expect(validate_settings(&s, &err), &err, ERR_INVALID,
           "cluster settings: allowedCidrs: entry 2 is not a prefix");
    s.n_allowed = 65;
    expect(validate_settings(&s, &err), &err, ERR_LIMIT,
           "cluster settings: allowedCidrs: 65 entries, the limit is 64");
    cluster_settings_default(&s);
    s.hold = HOLD_ON;
    assert_int_equal(validate_settings(&s, &err), 0);
    s.hold = HOLD_ON + 1;
    expect(validate_settings(&s, &err), &err, ERR_INVALID,
           "cluster settings: hold must be off or on");
}

static void nodes_are_checked(void **unused)
{
    struct member_node good = {
        .node_id = 7,
        .role = ROLE_VOTER,
        .n_endpoints = 1,
        .key = {{1}},
        .endpoints = {{.host = "a.example", .mesh_port = 1, .raft_port = 2}}};
    struct member_node n = good;
    struct errmsg err = {{0}};

    (void)unused;
    expect(validate_node(&n, &err), &err, 0, "");
    strcpy(n.endpoints[0].host, "2001:db8::1");
    expect(validate_node(&n, &err), &err, 0, "");
    strcpy(n.endpoints[0].host, "[2001:db8::1]");
    expect(validate_node(&n, &err), &err, ERR_INVALID,
           "node \"7\": endpoint host \"[2001:db8::1]\" is neither a DNS name nor an IP address "
           "without brackets");
    n = good;
    n.endpoints[0].raft_port = 1;
    expect(validate_node(&n, &err), &err, ERR_INVALID,
           "node \"7\": endpoint a.example: meshPort and raftPort must differ, both are 1");
    n.endpoints[0].raft_port = 0;
    expect(validate_node(&n, &err), &err, ERR_INVALID,
           "node \"7\": endpoint a.example: meshPort and raftPort must be 1..65535");
    n = good;
    n.role = 9;
    expect(validate_node(&n, &err), &err, ERR_INVALID,
           "node \"7\": role must be voter, standby or spare");
    n = good;
    n.key = (struct public_key){{0}};
    expect(validate_node(&n, &err), &err, ERR_INVALID, "node \"7\": public key is missing");
    n = good;
    n.n_endpoints = 0;
    expect(validate_node(&n, &err), &err, ERR_INVALID,
           "node \"7\": at least one endpoint must be given");
    n = good;
    n.n_endpoints = 5;
    expect(validate_node(&n, &err), &err, ERR_LIMIT,
           "node \"7\": endpoints: 5 entries, the limit is 4");
    n = good;
    n.probe_sources[0] = address("10.0.0.1");
    assert_int_equal(validate_node(&n, &err), 0);
    n.probe_sources[1] = address("::");
    expect(validate_node(&n, &err), &err, ERR_INVALID,
           "node \"7\": probeSources.ipv6 must be an address of the node, got ::");
    n = good;
    n.node_id = 0;
    expect(validate_node(&n, &err), &err, ERR_INVALID, "node \"0\": id must be 1 or more");
}

static void keys_are_checked(void **unused)
{
    struct access_key good = {.name = "root", .role = KEY_ROLE_ADMIN, .key = {{1}}};
    struct access_key k = good;
    struct errmsg err = {{0}};

    (void)unused;
    expect(validate_key(&k, &err), &err, 0, "");
    k.role = KEY_ROLE_NONE;
    expect(validate_key(&k, &err), &err, ERR_INVALID,
           "key \"root\": role must be viewer, operator or admin");
    k = good;
    k.key = (struct public_key){{0}};
    expect(validate_key(&k, &err), &err, ERR_INVALID, "key \"root\": public key is missing");
    k = good;
    k.expires_wall_ms = -1;
    expect(validate_key(&k, &err), &err, ERR_INVALID,
           "key \"root\": expiry must not lie before 1970");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_nlb_group_is_good_by_its_defaults),
        cmocka_unit_test(a_group_of_each_profile_is_valid_by_its_defaults),
        cmocka_unit_test(what_a_later_stage_brings_is_refused_by_name),
        cmocka_unit_test(times_and_thresholds_have_ranges),
        cmocka_unit_test(an_interval_below_the_timeout_is_good),
        cmocka_unit_test(rules_are_checked),
        cmocka_unit_test(http_checks_are_checked),
        cmocka_unit_test(udp_checks_have_what_their_method_needs_and_no_more),
        cmocka_unit_test(tls_checks_are_checked),
        cmocka_unit_test(several_checks_are_good_or_refused_by_their_names),
        cmocka_unit_test(a_gwlb_group_has_tcp_and_http_checks_only_in_a_list_too),
        cmocka_unit_test(the_windows_of_several_checks_are_those_of_the_slowest_local_one),
        cmocka_unit_test(grpc_checks_are_checked),
        cmocka_unit_test(fields_of_another_check_type_are_refused),
        cmocka_unit_test(names_have_a_form),
        cmocka_unit_test(backends_are_checked),
        cmocka_unit_test(labels_and_numbers_are_bounded),
        cmocka_unit_test(listeners_are_checked),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(nodes_are_checked),
        cmocka_unit_test(keys_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
