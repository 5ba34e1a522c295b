/* What is told of a document with several faults: all that stand for themselves, in the order of
 * the text, and none that may follow from another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/spec/spec.h"

/* A group up to its spec's fields, and with the fields of a spec. */
#define HEAD "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n"
#define GROUP(fields) HEAD "  profile: nlb\n" fields /* fields begin on line 6, column 3 */
#define LISTENER(fields) \
    "apiVersion: jury/v1\nkind: Listener\nmetadata: {name: front}\nspec:\n" fields

struct told {
    const char *text;
    const char *lines; /* of all errors: "LINE:COLUMN SENTENCE\n", without the object's name */
};

static void list_errors(const char *text, char *lines, size_t lines_bytes)
{
    struct spec_set set = {0};
    struct spec_errors errors;
    size_t used = 0;

    lines[0] = '\0';
    assert_int_not_equal(spec_read(&set, "f.yaml", text, strlen(text), &errors), 0);
    for (uint32_t i = 0; i < errors.n; i++) {
        const struct spec_error *error = &errors.items[i];
        const char *sentence = strstr(error->message.text, "\": ");

        used += (size_t)snprintf(lines + used, lines_bytes - used, "%u:%u %s\n", error->at.line,
                                 error->at.column, sentence == NULL ? "?" : sentence + 3);
    }
}

static void check_told(const struct told rows[], size_t n_rows)
{
    char lines[4096];

    for (size_t i = 0; i < n_rows; i++) {
        list_errors(rows[i].text, lines, sizeof lines);
        if (strcmp(lines, rows[i].lines) != 0) {
            fail_msg("row %zu:\n%s\nexpected\n%s\ngot\n%s", i, rows[i].text, rows[i].lines, lines);
        }
    }
}

static void a_missing_version_hides_no_misspelt_kind(void **state)
{
    (void)state;
    static const char text[] = "kind: Gruop\nmetadata: {name: web}\nspec: {profile: nlb}\n";
    struct spec_set set = {0};
    struct spec_errors errors;

    assert_int_equal(spec_read(&set, "f.yaml", text, strlen(text), &errors), ERR_INVALID);

    assert_int_equal(errors.n, 2);
    assert_non_null(strstr(errors.items[0].message.text, "apiVersion is missing"));
    assert_non_null(strstr(errors.items[1].message.text, "did you mean \"Group\"?"));
}

static void faults_of_spelling_and_of_meaning_are_told_together(void **state)
{
    (void)state;
    static const struct told rows[] = {
        {GROUP("  shceduler: wrr\n  type: instance\n  existingFlows: keep\n"),
         "6:3 unknown field \"shceduler\"; did you mean \"scheduler\"?\n"
         "7:9 type instance is not available yet: write `type: ip`\n"
         "8:3 existingFlows is not available yet\n"},
        {GROUP("  backends:\n  - {at: \"10.0.0.1:80\", wieght: 5}\n  - at: \"10.0.0.1:80\"\n"
               "  - at: nowhere\n  - at: \"0.0.0.0:80\"\n  scheduler: rr\n"),
         "7:25 unknown field \"backend 10.0.0.1:80: wieght\"; did you mean \"weight\"?\n"
         "8:5 backend 10.0.0.1:80 is listed twice: first on line 7\n"
         "9:9 backend 3: at: \"nowhere\" has no port: write address:port\n"
         "10:9 backend 0.0.0.0:80: the address is the unspecified address\n"
         "11:14 scheduler rr is not available yet: write `scheduler: 5-tuple` or `wrr`\n"},
        {GROUP("  check:\n    tcp: {handshake: half-open, close: fin}\n"),
         "7:40 check.tcp.close fin is allowed only with check.tcp.handshake full\n"},
        {LISTENER("  at: \"127.0.0.1:80\"\n  group: web\n  protocol: udp\n  porxy: 1\n"),
         "7:13 protocol udp is not available yet: listeners serve tcp so far; leave this one out, "
         "its group is checked without it\n"
         "8:3 unknown field \"porxy\"\n"},
    };
    check_told(rows, sizeof rows / sizeof rows[0]);
}

/* A fault that is there only because another field was not read would send its reader astray. */
static void what_may_follow_from_a_field_that_was_not_read_is_not_told(void **state)
{
    (void)state;
    static const struct told rows[] = {
        {GROUP("  check: {http: {path: /}, tpye: http}\n"),
         "6:28 unknown field \"check.tpye\"; did you mean \"type\"?\n"},
        {GROUP("  check: {type: htpp, http: {path: /}}\n"),
         "6:17 check.type must be tcp, http, udp, tls or grpc, got \"htpp\"; did you mean "
         "\"http\"?\n"},
        {HEAD "  profle: gwlb\n  failover: no-rebalance\n",
         "5:3 unknown field \"profle\"; did you mean \"profile\"?\n"},
        {HEAD "  failover: no-rebalance\n", "5:3 profile is missing\n"},
        {HEAD "  profile: gwbl\n  failover: no-rebalance\n",
         "5:12 profile must be gwlb, nlb or clb, got \"gwbl\"; did you mean \"gwlb\"?\n"},
        {HEAD "  profile: clb\n  chekc: {tcp: {handshake: full}}\n",
         "6:3 unknown field \"chekc\"; did you mean \"check\"?\n"},
        {HEAD "  profile: clb\n  check: {tcp: {hadshake: full}}\n",
         "6:17 unknown field \"check.tcp.hadshake\"; did you mean \"handshake\"?\n"},
        {GROUP("  check: {type: http, http: {host: domain, domian: a.b}}\n"),
         "6:44 unknown field \"check.http.domian\"; did you mean \"domain\"?\n"},
        {LISTENER("  at: nowhere\n  group: web\n"),
         "5:7 at: \"nowhere\" has no port: write address:port\n"},
        {GROUP("  backends:\n  - {address: 10.0.0.1, port: 0}\n"),
         "7:31 backend 10.0.0.1:0: port must be 1..65535, got \"0\"\n"},
    };
    check_told(rows, sizeof rows / sizeof rows[0]);
}

/* It was the only fault that was told. */
static void a_key_that_is_set_twice_hides_no_other_fault(void **state)
{
    (void)state;
    static const struct told rows[] = {
        {GROUP("  rule: any\n  rule: majority\n  check: {timeout: 5, port: 1, port: 2}\n"),
         "7:3 \"rule\" is set twice: first on line 6\n"
         "8:20 check.timeout: \"5\" is not a time: write a number and a unit such as 5s, 250ms or "
         "5m (allowed: 100ms..5m)\n"
         "8:32 \"port\" is set twice: first on line 8\n"},
        /* The first one counts for what is told beside. */
        {GROUP("  type: instance\n  type: ip\n"),
         "6:9 type instance is not available yet: write `type: ip`\n"
         "7:3 \"type\" is set twice: first on line 6\n"},
        {GROUP("  rule: any\n  rule: {down: any, down: all}\n---\n") LISTENER("  at: nowhere\n"),
         "7:3 \"rule\" is set twice: first on line 6\n"
         "7:21 \"down\" is set twice: first on line 7\n"
         "13:7 at: \"nowhere\" has no port: write address:port\n"},
    };
    check_told(rows, sizeof rows / sizeof rows[0]);
}

/* "checks must be 2..8, got 1" of a list of two. */
static void checks_that_are_left_out_are_not_counted(void **state)
{
    (void)state;
    static const struct told rows[] = {
        {GROUP("  checks:\n  - {name: a}\n  - {name: a, type: http}\n"),
         "8:5 check a is listed twice: names are the checks' own\n"},
        {GROUP("  pass: at-least 2\n  checks:\n  - {name: a}\n  - {name: a, port: 1}\n"),
         "9:5 check a is listed twice: names are the checks' own\n"},
        {GROUP("  checks:\n  - {name: a, class: dependency}\n  - {name: a}\n"),
         "8:5 check a is listed twice: names are the checks' own\n"},
        {GROUP("  checks:\n  - {name: a, tcp: {close: fin, handshake: half-open}}\n"
               "  - {name: a}\n"),
         "7:28 check a: tcp.close fin is allowed only with tcp.handshake full\n"
         "8:5 check a is listed twice: names are the checks' own\n"},
        {GROUP("  checks:\n  - {name: a}\n"),
         "7:3 checks must be 2..8; one alone is written `check`, got 1\n"},
    };
    check_told(rows, sizeof rows / sizeof rows[0]);
}

/* `server group "":` */
static void an_object_whose_name_is_refused_is_called_as_it_is_written(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"w", "server group \"w\": check.tcp.close fin is allowed only"},
        {"", "server group: check.tcp.close fin is allowed only"},
        {"9web", "server group \"9web\": check.tcp.close fin is allowed only"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct spec_set set = {0};
        struct spec_errors errors;
        char text[512];

        snprintf(text, sizeof text,
                 "apiVersion: jury/v1\nkind: Group\nmetadata: {name: \"%s\"}\nspec:\n"
                 "  profile: nlb\n  check: {tcp: {handshake: half-open, close: fin}}\n",
                 rows[i][0]);
        assert_int_equal(spec_read(&set, "f.yaml", text, strlen(text), &errors), ERR_INVALID);
        assert_int_equal(errors.n, 2);
        assert_memory_equal(errors.items[1].message.text, rows[i][1], strlen(rows[i][1]));
    }
}

static void all_faults_of_listeners_nodes_and_settings_are_told(void **state)
{
    (void)state;
    static const struct told rows[] = {
        {LISTENER("  at: \"224.0.0.1:80\"\n  group: web\n  protocol: udp\n"),
         "5:7 address 224.0.0.1 is a multicast address\n"
         "7:13 protocol udp is not available yet: listeners serve tcp so far; leave this one out, "
         "its "
         "group is checked without it\n"},
        {"apiVersion: jury/v1\nkind: Node\nspec:\n  id: 4\n"
         "  key: 6f1d0a5b9c3e47d28a1b5c6d7e8f90123456789abcdef0123456789abcdef012\n"
         "  endpoints:\n  - {host: \"a b\", meshPort: 1, raftPort: 2}\n"
         "  - {host: b, meshPort: 7, raftPort: 7}\n",
         "7:12 endpoint host \"a b\" is neither a DNS name nor an IP address without brackets\n"
         "8:25 endpoint b: meshPort and raftPort must differ, both are 7\n"},
    };
    check_told(rows, sizeof rows / sizeof rows[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_version_hides_no_misspelt_kind),
        cmocka_unit_test(faults_of_spelling_and_of_meaning_are_told_together),
        cmocka_unit_test(what_may_follow_from_a_field_that_was_not_read_is_not_told),
        cmocka_unit_test(a_key_that_is_set_twice_hides_no_other_fault),
        cmocka_unit_test(checks_that_are_left_out_are_not_counted),
        cmocka_unit_test(an_object_whose_name_is_refused_is_called_as_it_is_written),
        cmocka_unit_test(all_faults_of_listeners_nodes_and_settings_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
