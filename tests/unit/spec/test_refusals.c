/* Refusals of what a document is made of: its text, its fields and their types.
 * ctest labels: twin */
#include "common/base/plant.h"
#include "tests/unit/spec/refusals_fixture.h"

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
         ERR_INVALID,
         "cluster settings: a document of kind ClusterSettings takes no metadata: remove it"},
    };
    CHECK(rows);
}

/* The words of other readers, of other products, and of people in a hurry. */
static void words_in_wrong_case_or_misspelt_are_refused_with_the_right_one(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  protocol: TCP\n"), 6, 13, ERR_INVALID,
         "server group \"web\": protocol must be geneve, tcp, udp or tcp_udp, got \"TCP\"; did you "
         "mean \"tcp\"?"},
        {GROUP("  allBad: FailOpen\n"), 6, 11, ERR_INVALID,
         "server group \"web\": allBad must be fail-open or fail-closed, got \"FailOpen\"; did you "
         "mean \"fail-open\"?"},
        {GROUP("  check: {type: http, http: {method: get}}\n"), 6, 38, ERR_INVALID,
         "server group \"web\": check.http.method must be GET or HEAD, got \"get\"; did you mean "
         "\"GET\"?"},
        {GROUP("  check: {source: 100.64.0.0/8}\n"), 6, 19, ERR_INVALID,
         "server group \"web\": check.source must be node or 100.64.0.0/10, got \"100.64.0.0/8\"; "
         "did you mean \"100.64.0.0/10\"?"},
        {GROUP("  check: {source: 10.0.0.1}\n"), 6, 19, ERR_INVALID,
         "server group \"web\": check.source must be node or 100.64.0.0/10, got \"10.0.0.1\""},
        {GROUP("  check: {enabled: Yes}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.enabled must be true or false, got \"Yes\"; did you mean "
         "\"true\"?"},
        {GROUP("  check: {enabled: \"off\"}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.enabled must be true or false, got \"off\"; did you mean "
         "\"false\" without quotes?"},
        {GROUP("  check: {probers: All}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.probers must be all or 1..64, got \"All\"; did you mean "
         "\"all\"?"},
        {GROUP("  check: {probers: 2}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.probers must be all with rule local, the default of profile "
         "nlb, where each node judges by its own probes, got 2: write another rule, such as "
         "majority, or leave probers out"},
        {GROUP("  check: {type: tls, tls: {minVersion: TLSv1.2}}\n"), 6, 40, ERR_INVALID,
         "server group \"web\": check.tls.minVersion must be 1.0, 1.1, 1.2 or 1.3, got "
         "\"TLSv1.2\"; "
         "did you mean \"1.2\"?"},
        {GROUP("  check: {type: http, http: {version: HTTP/1.1}}\n"), 6, 39, ERR_INVALID,
         "server group \"web\": check.http.version must be 1.0 or 1.1, got \"HTTP/1.1\"; did you "
         "mean "
         "\"1.1\"?"},
        {GROUP("  check: {checkTimeout: 5s}\n"), 6, 11, ERR_INVALID,
         "server group \"web\": unknown field \"check.checkTimeout\"; did you mean \"timeout\"?"},
        {GROUP("  guard: Standart\n"), 6, 10, ERR_INVALID,
         "server group \"web\": guard must be off or standard, or a mapping, got \"Standart\"; did "
         "you mean \"standard\"?"},
    };
    CHECK(rows);
}

static void a_misspelt_rule_is_refused_with_the_right_one(void **state)
{
    (void)state;
#define RULE_REFUSED(text, end)                                                                   \
    {                                                                                             \
        GROUP("  rule: \"" text "\"\n"), 6, 9, ERR_INVALID,                                       \
            "server group \"web\": rule: \"" text "\" is not a verdict rule: write local, any, "  \
            "majority, zone-majority, all, \"at-least K\" with K in 1..64, \"percent X\" with X " \
            "in 1..100, or what a product does: gwlb, nlb, clb, r53" end                          \
    }
    static const struct refusal rows[] = {
        RULE_REFUSED("Majorty", "; did you mean \"majority\"?"),
        RULE_REFUSED("zone_majority", "; did you mean \"zone-majority\"?"),
        RULE_REFUSED("atleast 2", "; did you mean \"at-least 2\"?"),
        RULE_REFUSED("at-least:3", "; did you mean \"at-least 3\"?"),
        RULE_REFUSED("percnt", "; did you mean \"percent X\"?"),
        RULE_REFUSED("NLB", "; did you mean \"nlb\"?"),
        RULE_REFUSED("whatever", ""),
    };
#undef RULE_REFUSED
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
        {GROUP("  rule: any\n  rule: majority\n"), 7, 3, ERR_INVALID,
         "server group \"web\": \"rule\" is set twice: first on line 6"},
        {"{\"apiVersion\": \"jury/v1\", \"kind\": \"Group\", \"metadata\": {\"name\": \"web\"},\n"
         "\"spec\": {\"profile\": \"nlb\",\n \"profile\": \"nlb\"}}",
         3, 2, ERR_INVALID, "server group \"web\": \"profile\" is set twice: first on line 2"},
        {"apiVersion: jury/v1\nkind: Group\nkind: Key\nmetadata: {name: web}\nspec: {profile: "
         "nlb}\n",
         3, 1, ERR_INVALID, "server group \"web\": \"kind\" is set twice: first on line 2"},
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
        {GROUP("  check: {rule: any}\n"), 6, 11, ERR_INVALID,
         "server group \"web\": unknown field \"check.rule\"; did you mean \"rule\" beside "
         "\"check\"?"},
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
        {GROUP("  guard: {slowStart: 500ms}\n"), 6, 22, ERR_INVALID,
         "server group \"web\": guard.slowStart must be off or 1s..15m, got \"500ms\""},
        {GROUP("  guard: {slowStart: 901s}\n"), 6, 22, ERR_INVALID,
         "server group \"web\": guard.slowStart must be off or 1s..15m, got \"901s\""},
        {GROUP("  guard: {slowStart: 30s}\n  scheduler: 5-tuple\n"), 6, 22, ERR_INVALID,
         "server group \"web\": guard.slowStart is not allowed with scheduler 5-tuple, by which "
         "all "
         "nodes choose alike; use wrr, or set 0s"},
        {HEAD "  profile: gwlb\n  protocol: tcp\n  guard: {slowStart: 30s}\n", 7, 22, ERR_INVALID,
         "server group \"web\": guard.slowStart is not allowed with profile gwlb: its weights are "
         "0 "
         "or 100; leave it out, or set 0s"},
        {GROUP("  gradedWeight: load\n"), 6, 17, ERR_INVALID,
         "server group \"web\": gradedWeight must be off, votes or latency, got \"load\""},
        {GROUP("  gradedWeight: votes\n  scheduler: 5-tuple\n"), 6, 17, ERR_INVALID,
         "server group \"web\": gradedWeight is not allowed with scheduler 5-tuple, by which all "
         "nodes choose alike; use wrr, or set off"},
        {HEAD "  profile: gwlb\n  protocol: tcp\n  gradedWeight: latency\n", 7, 17, ERR_INVALID,
         "server group \"web\": gradedWeight is not allowed with profile gwlb: its weights are 0 "
         "or "
         "100; leave it out, or set off"},
        {GROUP("  gradedWeight: votes\n  check: {enabled: false}\n"), 6, 17, ERR_INVALID,
         "server group \"web\": gradedWeight needs check.enabled true: without checks there are "
         "neither votes nor response times"},
        {GROUP("  gradedWeight: latency\n  check: {type: udp}\n"), 6, 17, ERR_INVALID,
         "server group \"web\": gradedWeight latency needs answers that have a time: with "
         "check.udp.method port+echo silence passes; use exchange, or gradedWeight votes"},
        {GROUP("  guard: strict\n"), 6, 10, ERR_INVALID,
         "server group \"web\": guard must be off or standard, or a mapping, got \"strict\""},
        {GROUP("  vpc: main\n"), 6, 3, ERR_UNAVAILABLE_YET,
         "server group \"web\": vpc is not available yet"},
        {GROUP("  existingFlows: keep\n"), 6, 3, ERR_UNAVAILABLE_YET,
         "server group \"web\": existingFlows is not available yet"},
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
        {NODE("  id: 1\n  probeSources: {ipv4: fd00::1}\n"), 5, 24, ERR_INVALID,
         "node \"1\": probeSources.ipv4 must be an IPv4 address, got \"fd00::1\""},
    };
    CHECK(rows);
}

static void values_of_a_later_stage_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {GROUP("  type: instance\n"), 6, 9, ERR_UNAVAILABLE_YET,
         "server group \"web\": type instance is not available yet: write `type: ip`"},
        {GROUP("  scheduler: rr\n"), 6, 14, ERR_UNAVAILABLE_YET,
         "server group \"web\": scheduler rr is not available yet: write `scheduler: 5-tuple` or "
         "`wrr`"},
        {HEAD "  profile: gwlb\n  protocol: tcp\n  check: {tcp: {handshake: full}}\n"
              "  failover: rebalance\n",
         8, 13, ERR_UNAVAILABLE_YET,
         "server group \"web\": failover rebalance is not available yet: write `failover: "
         "no-rebalance`"},
        {LISTENER("  at: \"127.0.0.1:80\"\n  group: web\n  protocol: udp\n"), 7, 13,
         ERR_UNAVAILABLE_YET,
         "listener \"front\": protocol udp is not available yet: listeners serve tcp so far; leave "
         "this one out, its group is checked without it"},
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
         "server group \"web\": check.enabled must be true or false, got \"yes\"; did you "
         "mean \"true\"?"},
        {GROUP("  check: {enabled: \"true\"}\n"), 6, 20, ERR_INVALID,
         "server group \"web\": check.enabled must be true or false, got \"true\"; did you "
         "mean \"true\" without quotes?"},
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
         "quic-id, rr, wrr or wlc, got \"WRR\"; did you mean \"wrr\"?"},
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
        cmocka_unit_test(words_in_wrong_case_or_misspelt_are_refused_with_the_right_one),
        cmocka_unit_test(a_misspelt_rule_is_refused_with_the_right_one),
        cmocka_unit_test(yaml_that_hides_or_grows_is_refused),
        cmocka_unit_test(unknown_and_later_fields_are_refused),
        cmocka_unit_test(values_of_a_later_stage_are_refused_at_their_place),
        cmocka_unit_test(values_of_the_wrong_type_are_refused),
#ifdef JURY_PLANTS
        cmocka_unit_test(a_guard_that_is_switched_off_is_seen),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
