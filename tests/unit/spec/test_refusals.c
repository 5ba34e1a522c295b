/* Every refusal of the document reader: input, place and the exact sentence.
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/plant.h"
#include "common/spec/spec.h"
#include "tests/lib/spec_first.h"

struct refusal {
    const char *text;
    uint32_t line;
    uint32_t column;
    int err;
    const char *sentence;
};

/* A group up to its spec's fields, and with the fields of a spec. */
#define HEAD "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n"
#define GROUP(fields) HEAD "  profile: nlb\n" fields /* fields begin on line 6, column 3 */
#define LISTENER(fields) \
    "apiVersion: jury/v1\nkind: Listener\nmetadata: {name: front}\nspec:\n" fields
#define NODE(fields) "apiVersion: jury/v1\nkind: Node\nspec:\n" fields
#define KEY64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void check(const struct refusal rows[], size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        struct spec_set set = {0};
        struct spec_error error = {0};
        int rc = spec_read_first(&set, "f.yaml", rows[i].text, strlen(rows[i].text), &error);

        if (rc != rows[i].err || error.at.line != rows[i].line ||
            error.at.column != rows[i].column ||
            strcmp(error.message.text, rows[i].sentence) != 0) {
            fail_msg("row %zu:\n%s\nexpected %d at %u:%u: %s\ngot      %d at %u:%u: %s", i,
                     rows[i].text, rows[i].err, rows[i].line, rows[i].column, rows[i].sentence, rc,
                     error.at.line, error.at.column, error.message.text);
        }
        assert_int_equal(set.n_documents, 0);
        assert_int_equal(set.n_files, 0);
        spec_set_close(&set);
    }
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

static void text_that_is_no_document_is_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"", 0, 0, ERR_INVALID, "there is no document in this file; nothing would be applied"},
        {"# only a comment\n---\n...\n", 0, 0, ERR_INVALID,
         "there is no document in this file; nothing would be applied"},
        {"hello", 1, 1, ERR_INVALID,
         "document: must be a mapping with apiVersion, kind, metadata and spec, got a single "
         "value"},
        {"- a\n", 1, 1, ERR_INVALID,
         "document: must be a mapping with apiVersion, kind, metadata and spec, got a list"},
        {"kind: Group\n", 1, 1, ERR_INVALID,
         "document: apiVersion is missing: write apiVersion: jury/v1"},
        {"apiVersion: jury/v2\nkind: Group\n", 1, 13, ERR_INVALID,
         "document: apiVersion must be jury/v1, which is all that this version understands, got "
         "\"jury/v2\""},
        {"apiVersion: jury/v1\n", 1, 1, ERR_INVALID,
         "document: kind is missing: write Group, Listener, ClusterSettings, Node or Key"},
        {"apiVersion: jury/v1\nkind: Groups\n", 2, 7, ERR_INVALID,
         "document: kind must be Group, Listener, ClusterSettings, Node or Key, got \"Groups\"; "
         "did "
         "you mean \"Group\"?"},
        {"apiVersion: jury/v1\nkind: [Group]\n", 2, 7, ERR_INVALID,
         "document: kind must be Group, Listener, ClusterSettings, Node or Key, got \"\""},
        {"apiVersion: jury/v1\nkind: Instance\n", 2, 7, ERR_UNAVAILABLE_YET,
         "document: kind Instance is not available yet"},
        {"apiVersion: jury/v1\nkind: Group\nstatus: {}\n", 3, 1, ERR_INVALID,
         "server group: unknown field \"status\": a document has apiVersion, kind, metadata and "
         "spec"},
        {"apiVersion: jury/v1\nkind: Group\nmetdata: {}\n", 3, 1, ERR_INVALID,
         "server group: unknown field \"metdata\"; did you mean \"metadata\"?"},
        {"apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\n", 1, 1, ERR_INVALID,
         "server group \"web\": spec is missing"},
        {"apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n", 4, 6, ERR_INVALID,
         "server group \"web\": spec must be a mapping, got nothing"},
        {"apiVersion: jury/v1\nkind: Group\nspec: {profile: nlb}\n", 1, 1, ERR_INVALID,
         "server group: metadata.name is missing"},
        {"apiVersion: jury/v1\nkind: Group\nmetadata: web\nspec: {profile: nlb}\n", 3, 11,
         ERR_INVALID,
         "server group: metadata must be a mapping such as {name: web}, got a single value"},
        {"apiVersion: jury/v1\nkind: Group\nmetadata: {labels: {}}\nspec: {profile: nlb}\n", 3, 11,
         ERR_INVALID, "server group: metadata.name is missing"},
        {"apiVersion: jury/v1\nkind: ClusterSettings\nmetadata: {name: x}\nspec: {}\n", 3, 1,
         ERR_INVALID, "cluster settings: a document of kind ClusterSettings has no metadata"},
    };
    CHECK(rows);
}

static void yaml_that_hides_or_grows_is_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"a: &x 1\n", 1, 4, ERR_INVALID, "anchors (&x) are not supported: write each value out"},
        {"a: 1\nb: *x\n", 2, 4, ERR_INVALID,
         "aliases (*x) are not supported: write each value out"},
        {"a: &x [1, 2]\n", 1, 4, ERR_INVALID,
         "anchors (&x) are not supported: write each value out"},
        {"a: !!int 5\n", 1, 4, ERR_INVALID,
         "tags (tag:yaml.org,2002:int) are not supported: the field decides the type"},
        {"&k a: 1\n", 1, 1, ERR_INVALID, "anchors (&k) are not supported: write each value out"},
        {"<<: {a: 1}\n", 1, 1, ERR_INVALID,
         "merge keys (<<) are not supported: write each value out"},
        {"? [a, b]\n: 1\n", 1, 3, ERR_INVALID, "a field name must be a word"},
        {"a: 1\nb: 2\na: 3\n", 3, 1, ERR_INVALID, "\"a\" is set twice: first on line 1"},
        {"{\"a\": 1,\n \"a\": 2}", 2, 2, ERR_INVALID, "\"a\" is set twice: first on line 1"},
        {"a: \"x\\0y\"\n", 1, 4, ERR_INVALID, "a text cannot contain a NUL character"},
        {"\"x\\0y\": 1\n", 1, 1, ERR_INVALID, "a field name cannot contain a NUL character"},
        {"a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: {m: {n: {o: {p: {q: 1}}}}}}}}}}}}}}}}}", 1,
         64, ERR_LIMIT, "nested deeper than 16 levels"},
        {"a:\n\tb: 1\n", 2, 1, ERR_INVALID, "not valid YAML: a tab cannot indent; use blanks"},
        {"a: [1, 2\n", 2, 1, ERR_INVALID,
         "not valid YAML or JSON: did not find expected ',' or ']' while parsing a flow sequence"},
        {"a: b: c\n", 1, 5, ERR_INVALID,
         "not valid YAML or JSON: mapping values are not allowed in this context"},
        {"a: \"\xff\"\n", 1, 5, ERR_INVALID,
         "not a text file in UTF-8: invalid leading UTF-8 octet (0xff)"},
        {"a: 1\nb: \x01\n", 2, 4, ERR_INVALID,
         "not a text file in UTF-8: control characters are not allowed (0x1)"},
    };
    CHECK(rows);
}

static void unknown_and_later_fields_are_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  conect_port: 80\n"), 6, 3, ERR_INVALID,
         "server group \"web\": unknown field \"conect_port\""},
        {GROUP("  interval: 5s\n"), 6, 3, ERR_INVALID,
         "server group \"web\": unknown field \"interval\"; did you mean \"check.interval\"?"},
        {GROUP("  shceduler: wrr\n"), 6, 3, ERR_INVALID,
         "server group \"web\": unknown field \"shceduler\"; did you mean \"scheduler\"?"},
        {GROUP("  check: {unhealthy_threshold: 3}\n"), 6, 11, ERR_INVALID,
         "server group \"web\": unknown field \"check.unhealthy_threshold\"; did you mean "
         "\"unhealthyThreshold\"?"},
        {GROUP("  backends: [{at: \"10.0.0.1:80\", wieght: 5}]\n"), 6, 34, ERR_INVALID,
         "server group \"web\": unknown field \"backend 10.0.0.1:80: wieght\"; did you mean "
         "\"weight\"?"},
        {GROUP("  guard: {velocityPercent: 101}\n"), 6, 28, ERR_INVALID,
         "server group \"web\": guard.velocityPercent must be 0..100, got \"101\""},
        {GROUP("  guard: {flapHold: 500ms}\n"), 6, 21, ERR_INVALID,
         "server group \"web\": guard.flapHold must be off or 1s..5m, got \"500ms\""},
        {GROUP("  guard: {returnPercent: 200}\n"), 6, 26, ERR_INVALID,
         "server group \"web\": guard.returnPercent must be 0..100, got \"200\""},
        {GROUP("  guard: {shadowCycles: 1001}\n"), 6, 25, ERR_INVALID,
         "server group \"web\": guard.shadowCycles must be 0..1000, got \"1001\""},
        {GROUP("  guard: strict\n"), 6, 10, ERR_INVALID,
         "server group \"web\": guard must be off or standard, or a mapping, got \"strict\""},
        {GROUP("  vpc: main\n"), 6, 3, ERR_UNAVAILABLE_YET,
         "server group \"web\": vpc is not available yet"},
        {GROUP("  existingFlows: keep\n"), 6, 3, ERR_UNAVAILABLE_YET,
         "server group \"web\": existingFlows is not available yet"},
        {GROUP("  check: {source: 10.0.0.1}\n"), 6, 11, ERR_UNAVAILABLE_YET,
         "server group \"web\": check.source is not available yet"},
        {GROUP("  check: {udp: {method: port}}\n"), 6, 11, ERR_INVALID,
         "server group \"web\": check.udp is allowed only with check.type udp, this check is tcp"},
        {GROUP("  check: {type: udp, udp: {payload: \"\"}}\n"), 6, 37, ERR_INVALID,
         "server group \"web\": check.udp.payload must have 1..512 bytes, got 0"},
        {GROUP("  check: {type: udp, udp: {payload: \"hex:0g\"}}\n"), 6, 37, ERR_INVALID,
         "server group \"web\": check.udp.payload must be text, or \"hex:\" and pairs of hex "
         "digits, got \"hex:0g\""},
        {GROUP("  check: {type: udp, udp: {payload: \"hex:012\"}}\n"), 6, 37, ERR_INVALID,
         "server group \"web\": check.udp.payload must be text, or \"hex:\" and pairs of hex "
         "digits, got \"hex:012\""},
        {GROUP("  check: {type: udp, udp: {method: exchange}}\n"), 6, 36, ERR_INVALID,
         "server group \"web\": check.udp.expect must be set with check.udp.method exchange and "
         "only then"},
        {GROUP("  check: {type: udp, udp: {method: exchange, expect: a, mask: \"hex: ff ff\"}}\n"),
         6, 63, ERR_INVALID,
         "server group \"web\": check.udp.mask must have 1..128 bytes and no more than "
         "check.udp.expect, got 2"},
        {GROUP("  backends: [{instance: i-1}]\n"), 6, 15, ERR_UNAVAILABLE_YET,
         "server group \"web\": backend 1: instance is not available yet"},
        {LISTENER("  check: {}\n"), 5, 3, ERR_UNAVAILABLE_YET,
         "listener \"front\": check is not available yet"},
        {LISTENER("  proxyProtocol: true\n"), 5, 3, ERR_UNAVAILABLE_YET,
         "listener \"front\": proxyProtocol is not available yet"},
        {LISTENER("  lastPort: 90\n"), 5, 3, ERR_UNAVAILABLE_YET,
         "listener \"front\": lastPort is not available yet"},
        {"apiVersion: jury/v1\nkind: ClusterSettings\nspec: {hold: true}\n", 3, 14, ERR_INVALID,
         "cluster settings: hold must be off or on, got \"true\""},
        {NODE("  id: 1\n  probeSources: [10.0.0.1]\n"), 5, 3, ERR_UNAVAILABLE_YET,
         "node \"1\": probeSources is not available yet"},
    };
    CHECK(rows);
}

static void values_of_a_later_stage_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  type: instance\n"), 6, 9, ERR_UNAVAILABLE_YET,
         "server group \"web\": type instance is not available yet: write `type: ip`"},
        {GROUP("  protocol: geneve\n"), 6, 13, ERR_UNAVAILABLE_YET,
         "server group \"web\": protocol geneve is not available yet: write `protocol: tcp`"},
        {GROUP("  scheduler: rr\n"), 6, 14, ERR_UNAVAILABLE_YET,
         "server group \"web\": scheduler rr is not available yet: write `scheduler: 5-tuple` or "
         "`wrr`"},
        {GROUP("  check: {type: tls}\n"), 6, 17, ERR_UNAVAILABLE_YET,
         "server group \"web\": check.type tls is not available yet: write `check.type: tcp`, "
         "`http` or `udp`"},
        {GROUP("  check:\n    pacing: fixed\n"), 7, 13, ERR_UNAVAILABLE_YET,
         "server group \"web\": check.pacing fixed is not available yet: write `check.pacing: "
         "end-to-start`"},
        {GROUP("  check:\n    tcp:\n      close: fin\n"), 8, 14, ERR_UNAVAILABLE_YET,
         "server group \"web\": check.tcp.close fin is not available yet: write `check.tcp.close: "
         "rst`"},
        /* The default is at fault, so the profile's word is shown. */
        {HEAD "  profile: gwlb\n", 5, 12, ERR_UNAVAILABLE_YET,
         "server group \"web\": protocol geneve is not available yet: write `protocol: tcp` (a "
         "default of profile gwlb)"},
        {HEAD "  profile: gwlb\n  protocol: tcp\n  check: {tcp: {handshake: full}}\n"
              "  failover: rebalance\n",
         8, 13, ERR_UNAVAILABLE_YET,
         "server group \"web\": failover rebalance is not available yet: write `failover: "
         "no-rebalance`"},
        {LISTENER("  at: \"127.0.0.1:80\"\n  group: web\n  protocol: udp\n"), 7, 13,
         ERR_UNAVAILABLE_YET,
         "listener \"front\": protocol udp is not available yet: write `protocol: tcp`"},
    };
    CHECK(rows);
}

static void values_of_the_wrong_type_are_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  check: 5s\n"), 6, 10, ERR_INVALID,
         "server group \"web\": check must be a mapping, got a single value"},
        {GROUP("  check:\n"), 6, 9, ERR_INVALID,
         "server group \"web\": check has no value: write one or leave the field out"},
        {GROUP("  backends: {at: x}\n"), 6, 13, ERR_INVALID,
         "server group \"web\": backends must be a list, got a mapping"},
        {GROUP("  backends: [10.0.0.1:80]\n"), 6, 14, ERR_INVALID,
         "server group \"web\": backend 1 must be a mapping, got a single value"},
        {GROUP("  scheduler: [wrr]\n"), 6, 14, ERR_INVALID,
         "server group \"web\": scheduler must be a single value, got a list"},
        {GROUP("  scheduler: ~\n"), 6, 14, ERR_INVALID,
         "server group \"web\": scheduler has no value: write one or leave the field out"},
        {GROUP("  scheduler: null\n"), 6, 14, ERR_INVALID,
         "server group \"web\": scheduler has no value: write one or leave the field out"},
        {GROUP("  check: {enabled: yes}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.enabled must be true or false, got \"yes\""},
        {GROUP("  check: {enabled: \"true\"}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.enabled must be true or false, got \"true\""},
        {GROUP("  check: {port: \"80\"}\n"), 6, 17, ERR_INVALID,
         "server group \"web\": check.port must be a number without quotes, got \"80\""},
        {GROUP("  check: {port: 0x50}\n"), 6, 17, ERR_INVALID,
         "server group \"web\": check.port must be 0..65535, got \"0x50\""},
        {GROUP("  check: {port: 080}\n"), 6, 17, ERR_INVALID,
         "server group \"web\": check.port must be 0..65535, got \"080\""},
        {GROUP("  check: {port: -1}\n"), 6, 17, ERR_INVALID,
         "server group \"web\": check.port must be 0..65535, got \"-1\""},
        {GROUP("  check: {port: 8.0}\n"), 6, 17, ERR_INVALID,
         "server group \"web\": check.port must be 0..65535, got \"8.0\""},
        {GROUP("  scheduler: WRR\n"), 6, 14, ERR_INVALID,
         "server group \"web\": scheduler must be 5-tuple, 4-tuple, 3-tuple, 2-tuple, source, "
         "quic-id, rr, wrr or wlc, got \"WRR\""},
        {GROUP("  allBad: failopen\n"), 6, 11, ERR_INVALID,
         "server group \"web\": allBad must be fail-open or fail-closed, got \"failopen\"; did you "
         "mean \"fail-open\"?"},
        {GROUP("  addressFamily: inet\n"), 6, 18, ERR_INVALID,
         "server group \"web\": addressFamily must be any, ipv4 or ipv6, got \"inet\""},
        {"apiVersion: jury/v1\nkind: Group\nmetadata: {name: web, labels: [a]}\nspec: {profile: "
         "nlb}\n",
         3, 31, ERR_INVALID,
         "server group \"web\": labels must be a mapping such as {tier: front}, got a list"},
        {"apiVersion: jury/v1\nkind: Group\nmetadata: {name: web, labels: {a: [b]}}\nspec: "
         "{profile: nlb}\n",
         3, 35, ERR_INVALID,
         "server group \"web\": labels: the value of \"a\" must be text, got a list"},
    };
    CHECK(rows);
}

/* Case A19: a time has a unit and a range, and nothing is replaced silently. */
static void times_without_unit_or_out_of_range_are_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  check: {interval: 5}\n"), 6, 21, ERR_INVALID,
         "server group \"web\": check.interval: \"5\" is not a time: write a number and a unit "
         "such "
         "as 5s, 250ms or 5m (allowed: 100ms..5m)"},
        {GROUP("  check: {interval: 0s}\n"), 6, 21, ERR_INVALID,
         "server group \"web\": check.interval must be 100ms..5m, got \"0s\""},
        {GROUP("  check: {interval: -1s}\n"), 6, 21, ERR_INVALID,
         "server group \"web\": check.interval: \"-1s\" is not a time: write a number and a unit "
         "such as 5s, 250ms or 5m (allowed: 100ms..5m)"},
        {GROUP("  check: {timeout: 10y}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.timeout: \"10y\" is not a time: write a number and a unit "
         "such as 5s, 250ms or 5m (allowed: 100ms..5m)"},
        {GROUP("  check: {timeout: 87600h}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.timeout must be 100ms..5m, got \"87600h\""},
        {GROUP("  check: {timeout: 1e3}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.timeout: \"1e3\" is not a time: write a number and a unit "
         "such as 5s, 250ms or 5m (allowed: 100ms..5m)"},
        {GROUP("  check: {timeout: 1.2345s}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.timeout: \"1.2345s\" is finer than a millisecond (allowed: "
         "100ms..5m)"},
        {GROUP("  check: {timeout: 99ms}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.timeout must be 100ms..5m, got \"99ms\""},
        {GROUP("  check: {timeout: 300001ms}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.timeout must be 100ms..5m, got \"300001ms\""},
        {GROUP("  drain: {timeout: 3600001ms}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": drain.timeout must be 0s..1h, got \"3600001ms\""},
        {GROUP("  idleTimeout: 999ms\n"), 6, 16, ERR_INVALID,
         "server group \"web\": idleTimeout must be 1s..100m, got \"999ms\""},
        {LISTENER("  at: \"127.0.0.1:80\"\n  group: web\n  idleTimeout: 500ms\n"), 7, 16,
         ERR_INVALID, "listener \"front\": idleTimeout must be group or 1s..100m, got \"500ms\""},
        {"apiVersion: jury/v1\nkind: ClusterSettings\nspec: {voteInterval: 100ms}\n", 3, 22,
         ERR_INVALID, "cluster settings: voteInterval must be 200ms..5s, got \"100ms\""},
    };
    CHECK(rows);
}

static void numbers_and_texts_out_of_range_are_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  check: {healthyThreshold: 0}\n"), 6, 29, ERR_INVALID,
         "server group \"web\": check.healthyThreshold must be 1..10, got \"0\""},
        {GROUP("  check: {unhealthyThreshold: 11}\n"), 6, 31, ERR_INVALID,
         "server group \"web\": check.unhealthyThreshold must be 1..10, got \"11\""},
        {GROUP("  check: {port: 65536}\n"), 6, 17, ERR_INVALID,
         "server group \"web\": check.port must be 0..65535, got \"65536\""},
        {GROUP("  failOpenPercent: 101\n"), 6, 20, ERR_INVALID,
         "server group \"web\": failOpenPercent must be 0..100, got \"101\""},
        {GROUP("  backends: [{at: \"10.0.0.1:80\", weight: 101}]\n"), 6, 42, ERR_INVALID,
         "server group \"web\": backend 10.0.0.1:80: weight must be 0..100, got \"101\""},
        {GROUP("  backends: [{at: \"10.0.0.1:80\", zone: "
               "abcdefghijklmnopqrstuvwxyzabcdefg}]\n"),
         6, 40, ERR_INVALID,
         "server group \"web\": backend 10.0.0.1:80: zone must have 1..32 bytes, got 33"},
        {GROUP("  backends: [{at: \"10.0.0.1:80\", description: \"a\\tb\"}]\n"), 6, 47, ERR_INVALID,
         "server group \"web\": backend 10.0.0.1:80: description must not contain control "
         "characters"},
        {GROUP("  backends: [{at: \"10.0.0.1:80\", description: \"\"}]\n"), 6, 47, ERR_INVALID,
         "server group \"web\": backend 10.0.0.1:80: description must have 1..128 bytes, got 0"},
        {"apiVersion: jury/v1\nkind: Group\nmetadata: {name: w}\nspec: {profile: nlb}\n", 3, 18,
         ERR_INVALID, "server group \"w\": metadata.name must have 2..128 bytes, got 1"},
        {"apiVersion: jury/v1\nkind: Group\nmetadata: {name: 9web}\nspec: {profile: nlb}\n", 3, 18,
         ERR_INVALID,
         "server group \"9web\": name must be 2..128 letters, digits, \".\", \"_\" or \"-\", a "
         "letter first"},
        {"apiVersion: jury/v1\nkind: Group\nmetadata: {name: web, labels: {\"a b\": c}}\nspec: "
         "{profile: nlb}\n",
         3, 31, ERR_INVALID,
         "server group \"web\": labels: a key must be 1..63 letters, digits, \".\", \"_\", \"-\" "
         "or "
         "\"/\", got \"a b\""},
        {HEAD "  profile: gwlb\n  protocol: tcp\n  check: {tcp: {handshake: full}}\n"
              "  backends:\n  - {at: \"10.0.0.1:80\", weight: 50}\n",
         9, 33, ERR_INVALID,
         "server group \"web\": backend 10.0.0.1:80: weight must be 0 or 100 with profile gwlb, "
         "got "
         "50"},
        {GROUP("  failover: no-rebalance\n"), 6, 13, ERR_INVALID,
         "server group \"web\": failover is allowed only with profile gwlb"},
    };
    CHECK(rows);
}

static void missing_and_contradicting_fields_are_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {HEAD "  rule: any\n", 5, 3, ERR_INVALID, "server group \"web\": profile is missing"},
        {HEAD "  rule: majorty\n", 5, 9, ERR_INVALID,
         "server group \"web\": rule: \"majorty\" is not a verdict rule: write local, any, "
         "majority, zone-majority, all, \"at-least K\" with K in 1..64, \"percent X\" with X in "
         "1..100, or what a product does: gwlb, nlb, clb, r53"},
        {LISTENER("  at: \"127.0.0.1:80\"\n"), 5, 3, ERR_INVALID,
         "listener \"front\": group is missing"},
        {LISTENER("  group: web\n"), 5, 3, ERR_INVALID,
         "listener \"front\": at is missing: write at: ADDRESS:PORT, or address and port"},
        {GROUP("  check: {type: tcp, http: {path: /}}\n"), 6, 22, ERR_INVALID,
         "server group \"web\": check.http is allowed only with check.type http, this "
         "check is tcp"},
        {GROUP("  check: {type: http, tcp: {close: rst}}\n"), 6, 23, ERR_INVALID,
         "server group \"web\": check.tcp is allowed only with check.type tcp, this "
         "check is http"},
        /* The first cause alone is told: that there is no such check yet. */
        {GROUP("  check:\n    http: {path: /}\n    type: grpc\n"), 8, 11, ERR_UNAVAILABLE_YET,
         "server group \"web\": check.type grpc is not available yet: write `check.type: tcp`, "
         "`http` or `udp`"},
        {GROUP("  check:\n    type: http\n    http:\n      host: domain\n"), 9, 13, ERR_INVALID,
         "server group \"web\": check.http.domain must be set with check.http.host domain and only "
         "then"},
        {GROUP("  check:\n    type: http\n    http:\n      host: omitted\n      domain: a.b\n"), 10,
         15, ERR_INVALID,
         "server group \"web\": check.http.domain must be set with check.http.host domain and only "
         "then"},
        {GROUP("  check:\n    type: http\n    http:\n      path: health\n"), 9, 13, ERR_INVALID,
         "server group \"web\": check.http.path must be 1..80 visible ASCII characters beginning "
         "with \"/\""},
        {GROUP("  rule: {down: any}\n"), 6, 9, ERR_INVALID,
         "server group \"web\": rule needs both down and up; up is missing"},
        {GROUP("  rule: {down: any, sideways: all}\n"), 6, 9, ERR_INVALID,
         "server group \"web\": rule knows down and up, got \"sideways\""},
        {GROUP("  rule: {down: any, up: [all]}\n"), 6, 9, ERR_INVALID,
         "server group \"web\": rule: up must be a rule such as majority, got a list"},
        {GROUP("  rule: at-least 65\n"), 6, 9, ERR_INVALID,
         "server group \"web\": rule: \"at-least 65\" is not a verdict rule: write local, any, "
         "majority, zone-majority, all, \"at-least K\" with K in 1..64, \"percent X\" with X in "
         "1..100, or what a product does: gwlb, nlb, clb, r53"},
        {GROUP("  rule: percent 0\n"), 6, 9, ERR_INVALID,
         "server group \"web\": rule: \"percent 0\" is not a verdict rule: write local, any, "
         "majority, zone-majority, all, \"at-least K\" with K in 1..64, \"percent X\" with X in "
         "1..100, or what a product does: gwlb, nlb, clb, r53"},
    };
    CHECK(rows);
}

/* Case A27: addresses and ports. */
static void endpoints_in_ambiguous_spellings_are_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  backends:\n  - at: 2001:db8::10:80\n"), 7, 9, ERR_INVALID,
         "server group \"web\": backend 1: at: \"2001:db8::10:80\" is ambiguous: write an IPv6 "
         "address as [address]:port"},
        {GROUP("  backends:\n  - at: \"[2001:db8::10]\"\n"), 7, 9, ERR_INVALID,
         "server group \"web\": backend 1: at: \"[2001:db8::10]\" has no port: write "
         "address:port"},
        {GROUP("  backends:\n  - at: 10.0.0.1\n"), 7, 9, ERR_INVALID,
         "server group \"web\": backend 1: at: \"10.0.0.1\" has no port: write address:port"},
        {GROUP("  backends:\n  - {address: \"fe80::1\", port: 80}\n"), 7, 15, ERR_INVALID,
         "server group \"web\": backend 1: address: \"fe80::1\" is link-local: it needs a zone, "
         "which is not supported"},
        {GROUP("  backends:\n  - {address: \"[2001:db8::10]\", port: 80}\n"), 7, 15, ERR_INVALID,
         "server group \"web\": backend 1: address: \"[2001:db8::10]\" is not an IP address (names "
         "are not resolved)"},
        {GROUP("  backends:\n  - {address: web1.example.com, port: 80}\n"), 7, 15, ERR_INVALID,
         "server group \"web\": backend 1: address: \"web1.example.com\" is not an IP address "
         "(names are not resolved)"},
        {GROUP("  backends:\n  - {at: \"10.0.0.1:80\", port: 80}\n"), 7, 25, ERR_INVALID,
         "server group \"web\": backend 10.0.0.1:80: write at, or address and port, not both"},
        {GROUP("  backends:\n  - {address: 10.0.0.1}\n"), 7, 6, ERR_INVALID,
         "server group \"web\": backend 1: port is missing beside address"},
        {GROUP("  backends:\n  - {port: 80}\n"), 7, 6, ERR_INVALID,
         "server group \"web\": backend 1: address is missing beside port"},
        {GROUP("  backends:\n  - {weight: 5}\n"), 7, 5, ERR_INVALID,
         "server group \"web\": backend 1: at is missing: write at: ADDRESS:PORT, or address and "
         "port"},
        {GROUP("  backends:\n  - {address: 10.0.0.1, port: 0}\n"), 7, 31, ERR_INVALID,
         "server group \"web\": backend 10.0.0.1:0: port must be 1..65535, got \"0\""},
        {GROUP("  backends:\n  - at: 0.0.0.0:80\n"), 7, 5, ERR_INVALID,
         "server group \"web\": backend 0.0.0.0:80: the address is the unspecified address"},
        {GROUP("  addressFamily: ipv4\n  backends:\n  - at: \"[fd00::1]:80\"\n"), 8, 5, ERR_INVALID,
         "server group \"web\": backend [fd00::1]:80: the address must be an IPv4 address "
         "(addressFamily ipv4)"},
        {LISTENER("  group: web\n  at: \":80\"\n"), 6, 7, ERR_INVALID,
         "listener \"front\": at: \"\" is not an IP address (names are not resolved)"},
    };
    CHECK(rows);
}

/* Case A24. */
static void backends_and_objects_that_are_there_twice_are_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  backends:\n  - at: 10.0.0.1:80\n  - at: 10.0.0.2:80\n  - {address: 10.0.0.1, "
               "port: 80}\n"),
         9, 5, ERR_INVALID,
         "server group \"web\": backend 10.0.0.1:80 is listed twice: first on line 7"},
        {GROUP("  backends:\n  - at: \"[fd00::1]:80\"\n  - at: \"[fd00:0:0::0001]:80\"\n"), 8, 5,
         ERR_INVALID,
         "server group \"web\": backend [fd00::1]:80 is listed twice: first on line 7"},
        {GROUP("") "---\n" GROUP(""), 7, 1, ERR_INVALID,
         "server group \"web\" is defined twice: first in f.yaml, line 1"},
        {"apiVersion: jury/v1\nkind: ClusterSettings\nspec: {}\n---\napiVersion: jury/v1\nkind: "
         "ClusterSettings\nspec: {}\n",
         5, 1, ERR_INVALID, "cluster settings is defined twice: first in f.yaml, line 1"},
        {"apiVersion: jury/v1\nkind: ClusterSettings\nspec: {allowedCidrs: [10.0.0.0/8, "
         "10.0.0.0/8]}\n",
         3, 35, ERR_INVALID, "cluster settings: allowedCidrs has \"10.0.0.0/8\" twice"},
    };
    CHECK(rows);
}

static void codes_prefixes_keys_and_times_are_checked(void **state)
{
    (void)state;
#define EXPECT(codes) GROUP("  check:\n    type: http\n    http:\n      expect: " codes "\n")
#define CODES_SENTENCE(got)                                                                     \
    "server group \"web\": check.http.expect must be codes, ranges or classes within 200..599 " \
    "such as \"200-299,302\" or \"2xx\", got \"" got "\""
    static const struct refusal rows[] = {
        {EXPECT("99"), 9, 15, ERR_INVALID, CODES_SENTENCE("99")},
        {EXPECT("600"), 9, 15, ERR_INVALID, CODES_SENTENCE("600")},
        {EXPECT("300-200"), 9, 15, ERR_INVALID, CODES_SENTENCE("300-200")},
        {EXPECT("1xx"), 9, 15, ERR_INVALID, CODES_SENTENCE("1xx")},
        {EXPECT("2xx,"), 9, 15, ERR_INVALID, CODES_SENTENCE("")},
        {EXPECT("2xx 3xx"), 9, 15, ERR_INVALID, CODES_SENTENCE("2xx 3xx")},
        {EXPECT("[200]"), 9, 15, ERR_INVALID,
         "server group \"web\": check.http.expect must be a single value, got a list"},
        {"apiVersion: jury/v1\nkind: ClusterSettings\nspec: {allowedCidrs: [10.0.0.1/8]}\n", 3, 23,
         ERR_INVALID,
         "cluster settings: allowedCidrs: \"10.0.0.1/8\" has bits set behind the "
         "prefix"},
        {NODE("  id: 1\n  key: abc\n"), 5, 8, ERR_INVALID,
         "node \"1\": key must be a public key of 64 hex digits, got 3 characters"},
        {NODE("  id: 0\n"), 4, 7, ERR_INVALID,
         "node \"0\": id must be 1..9223372036854775807, got \"0\""},
        {NODE("  id: 1\n  key: " KEY64 "\n"), 4, 3, ERR_INVALID,
         "node \"1\": endpoints is missing"},
        {NODE("  id: 1\n  key: " KEY64 "\n  endpoints: [{host: a, meshPort: 1}]\n"), 6, 15,
         ERR_INVALID, "node \"1\": endpoint a: raftPort is missing"},
        {NODE("  id: 1\n  key: " KEY64 "\n  endpoints: [{host: a, meshPort: 1, raftPort: 1}]\n"), 6,
         35, ERR_INVALID, "node \"1\": endpoint a: meshPort and raftPort must differ, both are 1"},
        {NODE("  id: 1\n  key: " KEY64
              "\n  endpoints: [{host: \"[::1]\", meshPort: 1, raftPort: 2}]\n"),
         6, 22, ERR_INVALID,
         "node \"1\": endpoint host \"[::1]\" is neither a DNS name nor an IP address without "
         "brackets"},
        {"apiVersion: jury/v1\nkind: Key\nmetadata: {name: ops}\nspec: {key: " KEY64
         ", role: root}\n",
         4, 85, ERR_INVALID, "key \"ops\": role must be viewer, operator or admin, got \"root\""},
        {"apiVersion: jury/v1\nkind: Key\nmetadata: {name: ops}\nspec: {key: " KEY64
         ", role: viewer, expires: 2027-02-30T00:00:00Z}\n",
         4, 102, ERR_INVALID,
         "key \"ops\": expires must be a time in UTC such as 2027-01-31T00:00:00Z, got "
         "\"2027-02-30T00:00:00Z\""},
        {"apiVersion: jury/v1\nkind: Key\nmetadata: {name: ops}\nspec: {key: " KEY64
         ", role: viewer, expires: 5d}\n",
         4, 102, ERR_INVALID,
         "key \"ops\": expires must be a time in UTC such as 2027-01-31T00:00:00Z, got \"5d\""},
    };
    CHECK(rows);
}

#ifdef JURY_PLANTS
/* The twin of the tables above: with its guard off, each of these would be another answer. */
static void a_guard_that_is_switched_off_is_seen(void **state)
{
    (void)state;
    static const struct {
        const char *plant;
        const char *text;
        int err; /* with the guard off */
    } rows[] = {
        {"spec-unknown", GROUP("  conect_port: 80\n"), 0},
        {"spec-twice", GROUP("  backends: [{at: \"10.0.0.1:80\"}, {at: \"10.0.0.1:80\"}]\n"),
         ERR_INVALID}, /* the model's validation finds it, without the line */
        {"spec-range", "apiVersion: jury/v1\nkind: ClusterSettings\nspec: {voteInterval: 0s}\n",
         ERR_INVALID},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct spec_set set = {0};
        struct spec_error guarded = {0};
        struct spec_error open = {0};
        size_t n = strlen(rows[i].text);

        assert_int_not_equal(spec_read_first(&set, "f", rows[i].text, n, &guarded), 0);
        plant_set(rows[i].plant);
        int rc = spec_read_first(&set, "f", rows[i].text, n, &open);
        plant_set(NULL);

        assert_int_equal(rc, rows[i].err);
        assert_string_not_equal(open.message.text, guarded.message.text);
        spec_set_close(&set);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_that_is_no_document_is_refused),
        cmocka_unit_test(yaml_that_hides_or_grows_is_refused),
        cmocka_unit_test(unknown_and_later_fields_are_refused),
        cmocka_unit_test(values_of_a_later_stage_are_refused_at_their_place),
        cmocka_unit_test(values_of_the_wrong_type_are_refused),
        cmocka_unit_test(times_without_unit_or_out_of_range_are_refused),
        cmocka_unit_test(numbers_and_texts_out_of_range_are_refused),
        cmocka_unit_test(missing_and_contradicting_fields_are_refused),
        cmocka_unit_test(endpoints_in_ambiguous_spellings_are_refused),
        cmocka_unit_test(backends_and_objects_that_are_there_twice_are_refused),
        cmocka_unit_test(codes_prefixes_keys_and_times_are_checked),
#ifdef JURY_PLANTS
        cmocka_unit_test(a_guard_that_is_switched_off_is_seen),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
