/* Refusals of values: ranges, contradictions, spellings and doubles. */
#include "tests/unit/spec/refusals_fixture.h"

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

/* Who comes from another program is told our word for it. */
static void fields_of_other_programs_are_told_what_they_are_called_here(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  check: {rise: 2}\n"), 6, 11, ERR_INVALID,
         "server group \"web\": unknown field \"check.rise\": it is called healthyThreshold here"},
        {GROUP("  check: {fall: 3}\n"), 6, 11, ERR_INVALID,
         "server group \"web\": unknown field \"check.fall\": it is called unhealthyThreshold "
         "here"},
        {GROUP("  check: {inter: 2000}\n"), 6, 11, ERR_INVALID,
         "server group \"web\": unknown field \"check.inter\": it is called interval here"},
        {GROUP("  check: {timeout_ms: 2000}\n"), 6, 11, ERR_INVALID,
         "server group \"web\": unknown field \"check.timeout_ms\": it is called timeout here"},
        {GROUP("  rise: 2\n"), 6, 3, ERR_INVALID,
         "server group \"web\": unknown field \"rise\": it is called check.healthyThreshold here"},
        {GROUP("  balance: wrr\n"), 6, 3, ERR_INVALID,
         "server group \"web\": unknown field \"balance\": it is called scheduler here"},
        {GROUP("  servers: []\n"), 6, 3, ERR_INVALID,
         "server group \"web\": unknown field \"servers\": it is called backends here"},
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
         "1..100, or what a product does: gwlb, nlb, clb, r53; did you mean \"majority\"?"},
        {LISTENER("  at: \"127.0.0.1:80\"\n"), 5, 3, ERR_INVALID,
         "listener \"front\": group is missing"},
        {LISTENER("  group: web\n"), 5, 3, ERR_INVALID,
         "listener \"front\": at is missing: write at: ADDRESS:PORT, or address and port"},
        {GROUP("  check: {type: tcp, http: {path: /}}\n"), 6, 22, ERR_INVALID,
         "server group \"web\": check.http is allowed only with check.type http or tls, this "
         "check is tcp"},
        {GROUP("  check: {type: http, tcp: {close: rst}}\n"), 6, 23, ERR_INVALID,
         "server group \"web\": check.tcp is allowed only with check.type tcp, this "
         "check is http"},
        {GROUP("  check:\n    http: {path: /}\n    type: grpc\n"), 7, 5, ERR_INVALID,
         "server group \"web\": check.http is allowed only with check.type http or tls, this check "
         "is grpc"},
        {GROUP("  check:\n    type: tls\n    grpc: {service: a}\n"), 8, 5, ERR_INVALID,
         "server group \"web\": check.grpc is allowed only with check.type grpc, this check is "
         "tls"},
        {GROUP("  check:\n    type: grpc\n    tls: {alpn: h2}\n"), 8, 17, ERR_INVALID,
         "server group \"web\": check.tls.alpn must be left out with check.type grpc: it is h2"},
        {GROUP("  check:\n    type: grpc\n    grpc: {service: \"a b\"}\n"), 8, 21, ERR_INVALID,
         "server group \"web\": check.grpc.service must be 1..80 visible ASCII characters"},
        {GROUP("  check:\n    type: tls\n    tls: {verify: ca}\n"), 8, 19, ERR_INVALID,
         "server group \"web\": check.tls.serverName must be set with check.tls.verify ca: it is "
         "the "
         "name that the certificate must have"},
        {GROUP("  check:\n    type: tls\n    http: {}\n    tls:\n      serverName: a b\n"), 10, 19,
         ERR_INVALID,
         "server group \"web\": check.tls.serverName must be 1..80 letters, digits, \".\", \"-\" "
         "or "
         "\"_\""},
        {GROUP("  check:\n    type: tls\n    tls: {sreverName: a}\n"), 8, 11, ERR_INVALID,
         "server group \"web\": unknown field \"check.tls.sreverName\"; did you mean "
         "\"serverName\"?"},
        {GROUP("  check:\n    type: http\n    tls: {}\n"), 8, 5, ERR_INVALID,
         "server group \"web\": check.tls is allowed only with check.type tls or grpc, this check "
         "is "
         "http; for "
         "https write check.type tls and keep check.http"},
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
        {GROUP("  backends:\n  - at: 0.0.0.0:80\n"), 7, 9, ERR_INVALID,
         "server group \"web\": backend 0.0.0.0:80: the address is the unspecified address"},
        {GROUP("  addressFamily: ipv4\n  backends:\n  - at: \"[fd00::1]:80\"\n"), 8, 9, ERR_INVALID,
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_without_unit_or_out_of_range_are_refused),
        cmocka_unit_test(fields_of_other_programs_are_told_what_they_are_called_here),
        cmocka_unit_test(numbers_and_texts_out_of_range_are_refused),
        cmocka_unit_test(missing_and_contradicting_fields_are_refused),
        cmocka_unit_test(endpoints_in_ambiguous_spellings_are_refused),
        cmocka_unit_test(backends_and_objects_that_are_there_twice_are_refused),
        cmocka_unit_test(codes_prefixes_keys_and_times_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
