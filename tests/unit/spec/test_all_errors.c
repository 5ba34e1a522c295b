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
         "10:5 backend 0.0.0.0:80: the address is the unspecified address\n"
         "11:14 scheduler rr is not available yet: write `scheduler: 5-tuple` or `wrr`\n"},
        {GROUP("  check:\n    tcp: {handshake: half-open, close: fin}\n"),
         "7:40 check.tcp.close fin is allowed only with check.tcp.handshake full\n"},
        {LISTENER("  at: \"127.0.0.1:80\"\n  group: web\n  protocol: udp\n  porxy: 1\n"),
         "7:13 protocol udp is not available yet: write `protocol: tcp`\n"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_of_spelling_and_of_meaning_are_told_together),
        cmocka_unit_test(what_may_follow_from_a_field_that_was_not_read_is_not_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
