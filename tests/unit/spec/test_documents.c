/* What documents become: fields, defaults, spellings; and back to text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/prng.h"
#include "common/base/str.h"
#include "common/model/names.h"
#include "common/model/profile.h"
#include "common/model/validate.h"
#include "common/spec/diff.h"
#include "common/spec/emit.h"
#include "common/spec/example.h"
#include "common/spec/field.h"
#include "common/spec/fields.h"
#include "common/spec/spec.h"
#include "common/spec/value.h"
#include "tests/lib/random_objects.h"
#include "tests/lib/spec_first.h"

static void read_text(struct spec_set *set, const char *text)
{
    struct spec_error error = {0};
    char printed[SPEC_ERROR_TEXT_BYTES];

    if (spec_read_first(set, "f.yaml", text, strlen(text), &error) != 0) {
        fail_msg("%s", spec_error_format(&error, "f.yaml", printed));
    }
}

/* Reads one group and checks that a second spelling means the same. */
static void expect_same(const char *one, const char *other)
{
    struct spec_set a = {0};
    struct spec_set b = {0};
    struct spec_changes changes = {0};

    read_text(&a, one);
    read_text(&b, other);
    assert_int_equal(
        spec_diff(SPEC_GROUP, a.documents[0].u.group, b.documents[0].u.group, &changes), 0);
    if (changes.n_items != 0) {
        fail_msg("%s: %s, %s", changes.items[0].path, changes.items[0].before,
                 changes.items[0].after);
    }
    spec_changes_close(&changes);
    spec_set_close(&a);
    spec_set_close(&b);
}

#define HEAD "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n"
#define GROUP(fields) HEAD "  profile: nlb\n" fields

/* spec.md 3: one word for each of the two, or each by hand. */
static void a_guard_is_a_word_or_a_mapping(void **state)
{
    (void)state;
    expect_same(GROUP("  guard: standard\n"),
                GROUP("  guard: {velocityPercent: 10, velocityWindow: 30s, exemptBelow: 10, "
                      "flapHold: 30s, returnPercent: 25, returnWindow: 10s, slowStart: 30s, "
                      "shadowCycles: 0, shadowStop: true, correlatedAlarm: true}\n"));
    /* By a hash all nodes choose alike, whenever they saw a return; gwlb has no part of a weight.
     */
    expect_same(GROUP("  guard: standard\n  scheduler: 5-tuple\n"),
                GROUP("  scheduler: 5-tuple\n  guard: {velocityPercent: 10, flapHold: 30s, "
                      "returnPercent: 25}\n"));
    expect_same(GROUP("  guard: {slowStart: off}\n"), GROUP(""));
    expect_same(GROUP("  gradedWeight: off\n"), GROUP(""));
    expect_same(GROUP("  guard: off\n"), GROUP(""));
    expect_same(GROUP("  guard: {flapHold: off, returnPercent: 0}\n"), GROUP(""));
}

/* Text and hex, with or without blanks, are two spellings; nothing of it is lost on the way back.
 */
static void data_is_text_or_hex(void **state)
{
    (void)state;
    expect_same(
        GROUP("  check: {type: udp, udp: {method: exchange, payload: ping, expect: \"a b\"}}\n"),
        GROUP("  check: {type: udp, udp: {method: exchange, payload: \"hex:70696E67\",\n"
              "    expect: \"hex:61 20 62\"}}\n"));
    expect_same(GROUP("  check: {type: udp, udp: {payload: \"a\\r\\n\"}}\n"),
                GROUP("  check: {type: udp, udp: {payload: \"hex:61 0d 0a\"}}\n"));
}

/* Printed as it was, data with ends of lines wrote further fields below its own. */
static void data_of_a_check_cannot_write_a_line_of_its_own(void **state)
{
    (void)state;
    struct spec_set set = {0};
    char text[VALUE_TEXT_BYTES];

    read_text(&set,
              GROUP("  check: {type: tcp, tcp: {send: \"a\\r\\n  rule local\", expect: b}}\n"));
    const struct spec_table *check = spec_field_find(&spec_group_table, "check")->fields;
    const struct spec_field *tcp = spec_field_find(check, "tcp");
    const struct spec_field *send = spec_field_find(tcp->fields, "send");
    value_show(send, &set.documents[0].u.group->check.tcp.send, text, sizeof text);
    assert_string_equal(text, "a\\r\\n  rule local");
    spec_set_close(&set);
}

/* spec.md 3 by hand: what a document that says nothing gets. */
static void a_group_gets_the_defaults_of_profile_nlb(void **state)
{
    (void)state;
    struct spec_set set = {0};

    read_text(&set, GROUP("  backends: [{at: \"10.0.0.1:80\"}]\n"));

    const struct server_group *group = set.documents[0].u.group;
    assert_int_equal(group->type, GROUP_TYPE_IP);
    assert_int_equal(group->protocol, PROTOCOL_TCP);
    assert_int_equal(group->scheduler, SCHEDULER_WRR);
    assert_true(group->check.is_enabled);
    assert_int_equal(group->check.type, CHECK_TYPE_TCP);
    assert_int_equal(group->check.port, 0);
    assert_int_equal(group->check.timeout_ms, 5000);
    assert_int_equal(group->check.interval_ms, 5000);
    assert_int_equal(group->check.healthy_threshold, 2);
    assert_int_equal(group->check.unhealthy_threshold, 2);
    assert_int_equal(group->check.tcp.handshake, TCP_FULL);            /* S95 */
    assert_int_equal(group->check.tcp.on_timeout, TCP_ON_TIMEOUT_RST); /* S94 */
    assert_int_equal(group->rule.down.kind, RULE_LOCAL);               /* S87 */
    assert_int_equal(group->all_bad, ALL_BAD_FAIL_OPEN);               /* S91 */
    assert_int_equal(group->fail_open_percent, 0);
    assert_false(group->drain.is_on);
    assert_int_equal(group->drain.timeout_ms, 300000);
    assert_int_equal(group->idle_timeout_ms, 900000);
    assert_int_equal(group->backends[0].weight, 100);
    assert_int_equal(group->backends[0].admin_state, ADMIN_NONE);
    spec_set_close(&set);
}

static void http_defaults_follow_the_profile(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint8_t method;
        uint8_t version;
        uint8_t host;
        unsigned code_last;
    } rows[] = {
        {GROUP("  check: {type: http}\n"), HTTP_GET, HTTP_1_0, HTTP_HOST_OMITTED, 299}, /* S107 */
        {HEAD "  profile: clb\n  check: {type: http}\n", HTTP_HEAD, HTTP_1_0, HTTP_HOST_OMITTED,
         399}, /* S36, S37, S61 */
        {HEAD "  profile: gwlb\n  protocol: tcp\n  check: {type: http}\n", HTTP_GET, HTTP_1_1,
         HTTP_HOST_ADDRESS_PORT, 299}, /* S7, S25 */
        {GROUP("  check: {type: http, http: {domain: a.example}}\n"), HTTP_GET, HTTP_1_0,
         HTTP_HOST_DOMAIN, 299},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct spec_set set = {0};

        read_text(&set, rows[i].text);

        const struct http_check *http = &set.documents[0].u.group->check.http;
        assert_int_equal(http->method, rows[i].method);
        assert_int_equal(http->version, rows[i].version);
        assert_int_equal(http->host, rows[i].host);
        assert_true(http_codes_has(&http->expect, rows[i].code_last));
        assert_false(http_codes_has(&http->expect, rows[i].code_last + 1));
        spec_set_close(&set);
    }
}

static void words_of_yaml_1_1_stay_the_text_that_was_written(void **state)
{
    (void)state;
    struct spec_set set = {0};

    read_text(&set, "apiVersion: jury/v1\nkind: Group\n"
                    "metadata: {name: web, labels: {country: no, on: yes, at: 12:30, n: 0x1f}}\n"
                    "spec: {profile: nlb, backends: [{at: \"10.0.0.1:80\", zone: no, "
                    "description: 1_000}]}\n");

    const struct server_group *group = set.documents[0].u.group;
    assert_string_equal(group->labels[0].value, "no");
    assert_string_equal(group->labels[1].key, "on");
    assert_string_equal(group->labels[1].value, "yes");
    assert_string_equal(group->labels[2].value, "12:30");
    assert_string_equal(group->labels[3].value, "0x1f");
    assert_string_equal(group->backends[0].zone, "no");
    assert_string_equal(group->backends[0].description, "1_000");
    spec_set_close(&set);
}

static void json_is_read_like_yaml(void **state)
{
    (void)state;
    expect_same(
        GROUP("  rule: at-least 2\n  check: {type: http, timeout: 2s}\n"
              "  backends: [{at: \"[fd00::1]:80\", weight: 5}]\n"),
        "{\n\t\"apiVersion\": \"jury/v1\", \"kind\": \"Group\",\r\n"
        "\t\"metadata\": {\"name\": \"web\"},\n"
        "\t\"spec\": {\"profile\": \"nlb\", \"rule\": \"at-least 2\",\n"
        "\t\t\"check\": {\"type\": \"http\", \"timeout\": \"2s\"},\n"
        "\t\t\"backends\": [{\"address\": \"fd00::0:1\", \"port\": 80, \"weight\": 5}]}\n}");
}

/* "kind is missing", it said, and that a document should begin where one did. */
static void a_file_of_an_editor_that_marks_its_bytes_is_read(void **state)
{
    (void)state;
    static const char *const bodies[] = {GROUP("  rule: majority\n"), "---\n" GROUP(""),
                                         "{\"apiVersion\": \"jury/v1\", \"kind\": \"Group\", "
                                         "\"metadata\": {\"name\": \"web\"},\r\n"
                                         "\"spec\": {\"profile\": \"nlb\"}}"};

    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char text[1024];

        snprintf(text, sizeof text, "\xef\xbb\xbf%s", bodies[i]);
        expect_same(bodies[i], text);
    }
}

/* Case A27, and other spellings of one thing. */
static void spellings_of_one_value_are_equal(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {GROUP("  backends: [{at: \"[2001:db8::10]:80\"}]\n"),
         GROUP("  backends: [{address: \"2001:db8::10\", port: 80}]\n")},
        {GROUP("  backends: [{at: \"[2001:db8::10]:80\"}]\n"),
         GROUP("  backends: [{port: 80, address: 2001:0DB8:0:0:0:0:0:0010}]\n")},
        {GROUP("  check: {timeout: 1500ms}\n"), GROUP("  check: {timeout: 1.5s}\n")},
        {GROUP("  idleTimeout: 15m\n"), GROUP("  idleTimeout: \"900s\"\n")},
        {GROUP("  check: {type: http, http: {expect: 2xx}}\n"),
         GROUP("  check: {type: http, http: {expect: \"200-249, 250-298,299\"}}\n")},
        {GROUP("  rule: majority\n"), GROUP("  rule: \"majority\"\n")},
        {GROUP("  addressFamily: any\n"), GROUP("")},
        {GROUP("  backends: [{at: 10.0.0.2:80}, {at: 10.0.0.1:80}]\n"),
         GROUP("  backends: [{at: 10.0.0.1:80}, {at: 10.0.0.2:80}]\n")},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        expect_same(pairs[i][0], pairs[i][1]);
    }
}

static void a_split_rule_has_two_columns(void **state)
{
    (void)state;
    struct spec_set set = {0};

    read_text(&set, GROUP("  rule: {down: percent 82, up: all}\n  belowQuorum: local\n"));

    const struct verdict_rule *rule = &set.documents[0].u.group->rule;
    assert_true(rule->is_split);
    assert_int_equal(rule->down.kind, RULE_PERCENT);
    assert_int_equal(rule->down.value, 82);
    assert_int_equal(rule->up.kind, RULE_ALL);
    assert_int_equal(rule->below_quorum, BELOW_QUORUM_LOCAL);
    spec_set_close(&set);
}

static void every_kind_is_read(void **state)
{
    (void)state;
    struct spec_set set = {0};
    char name[LIMIT_NAME_BYTES + 1];

    read_text(&set,
              "apiVersion: jury/v1\nkind: Listener\nmetadata: {name: front}\n"
              "spec: {at: \"[::]:8080\", group: web}\n---\n"
              "apiVersion: jury/v1\nkind: ClusterSettings\n"
              "spec: {voteInterval: 200ms, allowedCidrs: [10.0.0.0/8, \"fd00::/8\"]}\n---\n---\n"
              "apiVersion: jury/v1\nkind: Node\nspec:\n  id: 3\n  role: standby\n  zone: b\n"
              "  key: 00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff\n"
              "  endpoints: [{host: n3.example, meshPort: 7400, raftPort: 7401}]\n---\n"
              "apiVersion: jury/v1\nkind: Key\nmetadata: {name: ops}\nspec:\n  role: operator\n"
              "  key: 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
              "  expires: 2027-01-31T12:00:00Z\n");

    assert_int_equal(set.n_documents, 4);
    const struct listener *listener = set.documents[0].u.listener;
    assert_int_equal(listener->at.port, 8080);
    assert_int_equal(listener->port_last, 8080);
    assert_int_equal(listener->protocol, PROTOCOL_TCP);
    assert_int_equal(listener->idle_timeout_ms, 0);
    const struct cluster_settings *settings = set.documents[1].u.settings;
    assert_int_equal(settings->vote_interval_ms, 200);
    assert_int_equal(settings->n_allowed, 2);
    const struct member_node *node = set.documents[2].u.node;
    assert_int_equal(node->node_id, 3);
    assert_int_equal(node->role, ROLE_STANDBY);
    assert_int_equal(node->key.bytes[10], 0xaa);
    assert_string_equal(node->endpoints[0].host, "n3.example");
    assert_string_equal(spec_document_name(&set.documents[2], name, sizeof name), "3");
    const struct access_key *key = set.documents[3].u.key;
    assert_int_equal(key->role, KEY_ROLE_OPERATOR);
    assert_true(key->expires_wall_ms == INT64_C(1801396800000));
    assert_int_equal(set.documents[3].at.line, 20);
    spec_set_close(&set);
}

static void settings_that_say_nothing_are_the_defaults(void **state)
{
    (void)state;
    struct spec_set set = {0};

    read_text(&set, "apiVersion: jury/v1\nkind: ClusterSettings\nspec: {}\n");

    assert_int_equal(set.documents[0].u.settings->vote_interval_ms, 1000);
    assert_int_equal(set.documents[0].u.settings->n_allowed, 5);
    spec_set_close(&set);
}

/* --- the table's own ranges --- */

static void the_ends_of_each_range_are_accepted(void **state)
{
    (void)state;
    static const char *const texts[] = {
        GROUP("  check: {timeout: 0.1s, interval: 300s, healthyThreshold: 1, "
              "unhealthyThreshold: 10, port: 65535}\n"),
        GROUP("  check: {timeout: 300s, interval: 100ms, healthyThreshold: 10, "
              "unhealthyThreshold: 1, port: 0}\n"),
        GROUP("  failOpenPercent: 100\n  idleTimeout: 6000s\n  drain: {enabled: true, timeout: "
              "3600s}\n"),
        GROUP("  failOpenPercent: 0\n  idleTimeout: 1s\n  drain: {enabled: true, timeout: 0s}\n"),
        GROUP("  backends: [{at: 10.0.0.1:1, weight: 0}, {at: \"10.0.0.1:65535\", weight: 100}]\n"),
        GROUP("  rule: at-least 64\n"),
        GROUP("  rule: percent 100\n"),
        GROUP("  check: {type: http, http: {expect: \"200,599\"}}\n"),
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct spec_set set = {0};

        read_text(&set, texts[i]);
        spec_set_close(&set);
    }
}

/* --- writing --- */

static uint8_t pick(struct prng *prng, const struct name_table *names)
{
    return (uint8_t)names->rows[prng_below(prng, names->n_rows)].value;
}

static void pick_text(struct prng *prng, char *text, size_t n_max)
{
    static const char *const words[] = {
        "no",   "yes",  "on",    "~",    "null",  "1.0",    "0x1f", "1e3",      "12:30",
        "- a",  "a: b", "a #b",  " a ",  "[x]",   "{y}",    "'q'",  "\"d\"",    "%tag",
        "@at",  "`t`",  "*al",   "&an",  "!t",    "|",      "> f",  "<<",       "=",
        ".inf", "-",    "?",     ": ",   "a\\nb", "Zürich", "日本", "\xc2\x85", "2001-01-01",
        "+1",   ".5",   "1_000", "True", "a,b",   "\\"};
    const char *word = words[prng_below(prng, sizeof words / sizeof words[0])];

    snprintf(text, n_max + 1, "%s", word);
    if (!str_is_text(text)) {
        snprintf(text, n_max + 1, "text");
    }
}

static void pick_address(struct prng *prng, struct addr *addr)
{
    char text[ADDR_TEXT_BYTES];

    if (prng_below(prng, 2) == 0) {
        snprintf(text, sizeof text, "10.%u.%u.%u", (unsigned)prng_below(prng, 256),
                 (unsigned)prng_below(prng, 256), (unsigned)prng_below(prng, 256));
    } else {
        snprintf(text, sizeof text, "fd00::%x:%x", (unsigned)prng_below(prng, 65536),
                 (unsigned)prng_below(prng, 65536));
    }
    assert_int_equal(addr_parse(text, addr, NULL), 0);
}

static void pick_rule(struct prng *prng, struct rule_column *column)
{
    column->kind = pick(prng, &names_rule);
    column->value = 0;
    if (column->kind == RULE_AT_LEAST) {
        column->value = (uint8_t)(1 + prng_below(prng, 64));
    } else if (column->kind == RULE_PERCENT) {
        column->value = (uint8_t)(1 + prng_below(prng, 100));
    }
}

/* Letters, ends of lines, quotes, or any bytes at all. */
static uint16_t pick_data(struct prng *prng, uint8_t bytes[], size_t n_max)
{
    static const char words[] = "hex:ab \r\n\t\"'#: {-";
    size_t n_bytes = 1 + prng_below(prng, n_max);
    bool is_text = prng_below(prng, 2) == 0;

    for (size_t i = 0; i < n_bytes; i++) {
        bytes[i] = is_text ? (uint8_t)words[prng_below(prng, sizeof words - 1)]
                           : (uint8_t)prng_below(prng, 256);
    }
    return (uint16_t)n_bytes;
}

static void pick_udp(struct prng *prng, struct udp_check *udp)
{
    *udp = (struct udp_check){.method = pick(prng, &names_udp_method)};
    udp->payload.n_bytes = pick_data(prng, udp->payload.bytes, sizeof udp->payload.bytes);
    if (udp->method == UDP_EXCHANGE) {
        udp->expect.n_bytes = pick_data(prng, udp->expect.bytes, sizeof udp->expect.bytes);
        size_t n_max = udp->expect.n_bytes < sizeof udp->mask.bytes ? udp->expect.n_bytes
                                                                    : sizeof udp->mask.bytes;
        udp->mask.n_bytes = prng_below(prng, 2) == 0 ? 0 : pick_data(prng, udp->mask.bytes, n_max);
    }
}

static void pick_tls(struct prng *prng, struct tls_check *tls)
{
    static const char *const names[] = {"no", "1.2", "www.example.com"};

    tls->verify = pick(prng, &names_tls_verify);
    tls->min_version = pick(prng, &names_tls_version);
    tls->warn_days = (uint16_t)prng_below(prng, LIMIT_WARN_DAYS + 1);
    snprintf(tls->server_name, sizeof tls->server_name, "%s", names[prng_below(prng, 3)]);
    snprintf(tls->alpn, sizeof tls->alpn, "%s", prng_below(prng, 2) == 0 ? "" : "http/1.1");
}

static void pick_check(struct prng *prng, struct server_group *group)
{
    struct health_check *check = &group->check;
    static const enum check_type types[] = {CHECK_TYPE_TCP, CHECK_TYPE_HTTP, CHECK_TYPE_UDP,
                                            CHECK_TYPE_TLS, CHECK_TYPE_GRPC};
    enum check_type type = types[prng_below(prng, group->profile == PROFILE_GWLB ? 2 : 5)];

    profile_check_defaults((enum profile)group->profile, PROTOCOL_TCP, type, check);
    check->is_enabled = prng_below(prng, 4) != 0;
    check->port = (uint16_t)prng_below(prng, 65536);
    check->timeout_ms = (uint32_t)(100 + prng_below(prng, 299901));
    check->interval_ms = (uint32_t)(100 + prng_below(prng, 299901));
    check->healthy_threshold = (uint8_t)(1 + prng_below(prng, 10));
    check->unhealthy_threshold = (uint8_t)(1 + prng_below(prng, 10));
    if (type == CHECK_TYPE_TCP) {
        check->tcp.handshake = TCP_FULL;
        check->tcp.on_timeout = pick(prng, &names_tcp_on_timeout);
        return;
    }
    if (type == CHECK_TYPE_UDP) {
        pick_udp(prng, &check->udp);
        return;
    }
    if (type == CHECK_TYPE_GRPC) {
        snprintf(check->grpc.service, sizeof check->grpc.service, "%s",
                 prng_below(prng, 2) == 0 ? "" : "shop.Orders");
        if (prng_below(prng, 2) == 0) {
            pick_tls(prng, &check->tls);
            memset(check->tls.alpn, 0, sizeof check->tls.alpn);
        }
        return;
    }
    if (type == CHECK_TYPE_TLS) {
        pick_tls(prng, &check->tls);
        if (prng_below(prng, 2) == 0) {
            return;
        }
    }
    check->http.method = pick(prng, &names_http_method);
    check->http.version = pick(prng, &names_http_version);
    check->http.host = pick(prng, &names_http_host);
    snprintf(check->http.path, sizeof check->http.path, "/%s",
             prng_below(prng, 2) == 0 ? "" : "a?b=#&c:'\"{}[]*!|>%@`");
    if (check->http.host == HTTP_HOST_DOMAIN) {
        snprintf(check->http.domain, sizeof check->http.domain, "%s",
                 prng_below(prng, 2) == 0 ? "no" : "[fd00::1]:80");
    }
    check->http.expect = (struct http_codes){{0}};
    for (uint64_t n = 1 + prng_below(prng, 6); n > 0; n--) {
        unsigned first = 200 + (unsigned)prng_below(prng, 400);
        unsigned last = first + (unsigned)prng_below(prng, 600 - first);

        http_codes_add(&check->http.expect, first, last);
    }
}

/* A list, of checks that are unlike by their timeouts. */
static void pick_checks(struct prng *prng, struct server_group *group)
{
    uint32_t n = 2 + (uint32_t)prng_below(prng, LIMIT_CHECKS - 1);
    struct named_check *checks = calloc(n, sizeof *checks);

    for (uint32_t i = 0; i < n; i++) {
        pick_check(prng, group);
        checks[i].check = group->check;
        checks[i].check.is_enabled = true;
        checks[i].check.timeout_ms = 1000 + i;
        checks[i].check_class = i == 0 ? CHECK_LOCAL : pick(prng, &names_check_class);
        snprintf(checks[i].name, sizeof checks[i].name, "%s%u", i % 2 == 0 ? "no" : "c.", i);
    }
    group->checks = checks;
    group->n_checks = n;
    group->pass.kind = prng_below(prng, 2) == 0 ? RULE_ALL : RULE_AT_LEAST;
    if (group->pass.kind == RULE_AT_LEAST) {
        group->pass.value = (uint8_t)(1 + prng_below(prng, group_n_local(group)));
    }
    group_settle_checks(group);
}

static void pick_group(struct prng *prng, struct server_group *group)
{
    spec_defaults(SPEC_GROUP, (enum profile)pick(prng, &names_profile), PROTOCOL_TCP, group);
    snprintf(group->name, sizeof group->name, "%s", prng_below(prng, 2) == 0 ? "no" : "web-1.a_b");
    pick_check(prng, group);
    if (prng_below(prng, 4) == 0) {
        pick_checks(prng, group);
    }
    group->scheduler = prng_below(prng, 2) == 0 ? SCHEDULER_WRR : SCHEDULER_5_TUPLE;
    pick_rule(prng, &group->rule.down);
    group->rule.up = group->rule.down;
    group->rule.is_split = prng_below(prng, 2) == 0;
    if (group->rule.is_split) {
        pick_rule(prng, &group->rule.up);
    }
    group->rule.below_quorum = pick(prng, &names_below_quorum);
    group->all_bad = pick(prng, &names_all_bad);
    group->fail_open_percent = (uint8_t)prng_below(prng, 101);
    group->drain.is_on = prng_below(prng, 2) == 0;
    group->drain.timeout_ms = (uint32_t)prng_below(prng, 3600001);
    group->idle_timeout_ms = (uint32_t)(1000 + prng_below(prng, 5999001));
    group->n_labels = (uint32_t)prng_below(prng, 3);
    for (uint32_t i = 0; i < group->n_labels; i++) {
        snprintf(group->labels[i].key, sizeof group->labels[i].key, "%s%u",
                 prng_below(prng, 2) == 0 ? "" : "no/", i);
        pick_text(prng, group->labels[i].value, LIMIT_LABEL_VALUE_BYTES);
    }
    group->n_backends = (uint32_t)prng_below(prng, 5);
    group->backends = calloc(5, sizeof *group->backends);
    for (uint32_t i = 0; i < group->n_backends; i++) {
        struct backend *backend = &group->backends[i];

        pick_address(prng, &backend->at.addr);
        backend->at.port = (uint16_t)(i + 1);
        backend->weight = group->profile == PROFILE_GWLB ? 100 : (uint8_t)prng_below(prng, 101);
        backend->admin_state =
            prng_below(prng, 2) == 0 ? ADMIN_NONE : pick(prng, &names_admin_state);
        if (prng_below(prng, 2) == 0) {
            pick_text(prng, backend->zone, LIMIT_ZONE_BYTES);
            pick_text(prng, backend->description, LIMIT_DESCRIPTION_BYTES);
        }
    }
    server_group_sort_backends(group);
}

static void what_is_written_is_read_back_equal(void **state)
{
    (void)state;
    struct prng prng;

    prng_init(&prng, 20261130);
    for (unsigned round = 0; round < 3000; round++) {
        struct server_group group = {0};
        struct spec_document document = {.kind = SPEC_GROUP, .u.group = &group};
        struct spec_set set = {0};
        struct errmsg err = {{0}};
        size_t n_bytes = 0;
        char *text = NULL;

        pick_group(&prng, &group);
        if (validate_group(&group, &err) != 0) {
            fail_msg("round %u: %s", round, err.text);
        }
        assert_int_equal(spec_emit(&document, 1, &text, &n_bytes, &err), 0);
        assert_int_equal(strlen(text), n_bytes);

        read_text(&set, text);

        assert_int_equal(set.n_documents, 1);
        /* Byte for byte, which the catalog's encoding of equal groups relies on. */
        assert_true(is_same_group(set.documents[0].u.group, &group));
        free(text);
        spec_set_close(&set);
        server_group_close(&group);
    }
}

static void other_kinds_are_written_and_read_back(void **state)
{
    (void)state;
    struct spec_set first = {0};
    struct spec_set second = {0};
    struct errmsg err = {{0}};
    char *text = NULL;
    size_t n_bytes = 0;

    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        char *example = NULL;

        assert_int_equal(spec_example(&spec_kinds[i], &example), 0);
        read_text(&first, example);
        free(example);
    }
    assert_int_equal(spec_emit(first.documents, first.n_documents, &text, &n_bytes, &err), 0);

    read_text(&second, text);

    assert_int_equal(second.n_documents, SPEC_N_KINDS);
    for (size_t i = 1; i < SPEC_N_KINDS; i++) {
        assert_int_equal(second.documents[i].kind, spec_kinds[i].kind);
        assert_memory_equal(first.documents[i].u.group, second.documents[i].u.group,
                            spec_kinds[i].bytes);
    }
    assert_true(is_same_group(first.documents[0].u.group, second.documents[0].u.group));
    free(text);
    spec_set_close(&first);
    spec_set_close(&second);
}

static void text_that_others_would_retype_is_quoted(void **state)
{
    (void)state;
    static const char *const quoted[] = {
        "no", "Yes", "ON",  "off",  "true", "null",  "~",          "",
        "y",  "1",   "1.5", "0x1f", "0o17", "1_000", "12:30",      "1e3",
        "+1", "-1",  ".5",  ".inf", "=",    "<<",    "2027-01-31", "2027-01-31T00:00:00Z"};
    static const char *const plain[] = {"web",  "5s",         "250ms",     "2xx",     "200-299,302",
                                        "nope", "at-least 2", "half-open", "5-tuple", "/health"};

    for (size_t i = 0; i < sizeof quoted / sizeof quoted[0]; i++) {
        if (!spec_must_quote(quoted[i])) {
            fail_msg("%s", quoted[i]);
        }
    }
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (spec_must_quote(plain[i])) {
            fail_msg("%s", plain[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guard_is_a_word_or_a_mapping),
        cmocka_unit_test(data_is_text_or_hex),
        cmocka_unit_test(data_of_a_check_cannot_write_a_line_of_its_own),
        cmocka_unit_test(a_group_gets_the_defaults_of_profile_nlb),
        cmocka_unit_test(http_defaults_follow_the_profile),
        cmocka_unit_test(words_of_yaml_1_1_stay_the_text_that_was_written),
        cmocka_unit_test(json_is_read_like_yaml),
        cmocka_unit_test(a_file_of_an_editor_that_marks_its_bytes_is_read),
        cmocka_unit_test(spellings_of_one_value_are_equal),
        cmocka_unit_test(a_split_rule_has_two_columns),
        cmocka_unit_test(every_kind_is_read),
        cmocka_unit_test(settings_that_say_nothing_are_the_defaults),
        cmocka_unit_test(the_ends_of_each_range_are_accepted),
        cmocka_unit_test(what_is_written_is_read_back_equal),
        cmocka_unit_test(other_kinds_are_written_and_read_back),
        cmocka_unit_test(text_that_others_would_retype_is_quoted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
