/* Warnings on documents that are valid but unwise: each where its field departs from the profile,
 * at the line of the field, and none by the defaults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>

#include "common/model/advice.h"
#include "common/model/profile.h"
#include "common/spec/spec.h"
#include "tests/lib/spec_first.h"

#define GROUP(text) \
    "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n  profile: " text
#define SETTINGS(text) "apiVersion: jury/v1\nkind: ClusterSettings\nspec:\n  " text
#define NODE(text)                                                              \
    "apiVersion: jury/v1\nkind: Node\nspec:\n  id: 1\n"                         \
    "  key: 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20\n" \
    "  endpoints: [{host: 10.0.0.1, meshPort: 7701, raftPort: 7702}]\n  probeSources: " text

static void read_set(struct spec_set *set, const char *name, const char *text)
{
    char printed[SPEC_ERROR_TEXT_BYTES];
    struct spec_error error = {0};

    if (spec_read_first(set, name, text, strlen(text), &error) != 0) {
        fail_msg("%s", spec_error_format(&error, name, printed));
    }
}

/* "LINE FIELD ID", of those that are warnings, one behind the other. */
static void expect_warnings(const char *text, const char *expected)
{
    struct spec_set set = {0};
    char got[512] = "";

    read_set(&set, "test", text);
    for (uint32_t i = 0; i < set.documents[0].n_remarks; i++) {
        const struct spec_remark *remark = &set.documents[0].remarks[i];
        char field[ADVICE_FIELD_BYTES];

        if (remark->due.row->warning != NULL) {
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%u %s %s",
                     got[0] == '\0' ? "" : ", ", (unsigned)remark->at.line,
                     advice_field(&remark->due, field), remark->due.row->id);
        }
    }
    assert_string_equal(got, expected);
    spec_set_close(&set);
}

/* shows: S28 */
static void checks_that_are_off_are_warned_of(void **state)
{
    (void)state;
    expect_warnings(GROUP("nlb\n  check:\n    enabled: false\n"), "7 check.enabled check-off");
    expect_warnings(GROUP("nlb\n  check:\n    enabled: true\n"), "");
}

/* shows: S32 */
static void a_probe_source_outside_the_shared_range_is_warned_of(void **state)
{
    (void)state;
    expect_warnings(NODE("{ipv4: 10.0.0.1}\n"), "7 probeSources.ipv4 source-range");
    expect_warnings(NODE("{ipv4: 100.128.0.1}\n"), "7 probeSources.ipv4 source-range");
    expect_warnings(NODE("{ipv4: 100.127.255.254}\n"), "");
    expect_warnings(NODE("{ipv6: \"fd00::1\"}\n"), "");
}

/* shows: S33 */
static void networks_that_are_everything_are_warned_of(void **state)
{
    (void)state;
    expect_warnings(SETTINGS("allowedCidrs: [10.0.0.0/8, 0.0.0.0/0]\n"),
                    "4 allowedCidrs source-rules");
    expect_warnings(SETTINGS("allowedCidrs: [\"::/0\"]\n"), "4 allowedCidrs source-rules");
    expect_warnings(SETTINGS("allowedCidrs: [10.0.0.0/8, 100.64.0.0/10]\n"), "");
}

/* shows: S38 */
static void errors_that_pass_are_warned_of(void **state)
{
    (void)state;
    expect_warnings(GROUP("clb\n  check:\n    type: http\n    http: {domain: a.b,\n"
                          "           expect: \"2xx,503\"}\n"),
                    "9 check.http.expect own-page");
    expect_warnings(GROUP("clb\n  check: {type: http, http: {domain: a.b, expect: \"200-399\"}}\n"),
                    "");
}

/* shows: S43 S44. The half-open probes of gwlb and clb are not seen by an application. */
static void resets_that_the_profile_would_not_send_are_warned_of(void **state)
{
    (void)state;
    static const char *const profiles[] = {"gwlb\n  protocol: tcp", "clb"};
    static const char *const lines[] = {"8", "7"};

    for (size_t i = 0; i < 2; i++) {
        char text[256], expected[64];

        snprintf(text, sizeof text, GROUP("%s\n  check:\n    tcp: {handshake: full}\n"),
                 profiles[i]);
        snprintf(expected, sizeof expected, "%s check.tcp reset-logs", lines[i]);
        expect_warnings(text, expected);
        snprintf(text, sizeof text, GROUP("%s\n  check: {tcp: {handshake: half-open}}\n"),
                 profiles[i]);
        expect_warnings(text, "");
    }
}

/* shows: S49 */
static void silence_with_less_proof_than_the_profile_has_is_warned_of(void **state)
{
    (void)state;
    expect_warnings(GROUP("nlb\n  check:\n    type: udp\n    udp: {method: port}\n"),
                    "8 check.udp rate-limited-icmp");
    expect_warnings(GROUP("clb\n  protocol: udp\n  check: {interval: 1s, timeout: 1s}\n"),
                    "7 check.udp rate-limited-icmp");
    expect_warnings(GROUP("nlb\n  check: {type: udp}\n"), "");
    expect_warnings(GROUP("nlb\n  check: {type: udp, interval: 1s, timeout: 1s,\n"
                          "    udp: {method: exchange, payload: a, expect: b}}\n"),
                    "");
}

/* shows: S96 S97 */
static void resets_more_often_than_by_the_profile_are_warned_of(void **state)
{
    (void)state;
    expect_warnings(GROUP("nlb\n  check:\n    timeout: 1s\n    interval: 1s\n"),
                    "6 check.tcp connection-pools");
    expect_warnings(GROUP("nlb\n  check: {timeout: 1s, interval: 2s}\n"), "");
    expect_warnings(GROUP("nlb\n  check: {timeout: 1s, interval: 1s, tcp: {close: fin}}\n"), "");
    expect_warnings(GROUP("nlb\n  check: {interval: 10s}\n"), "");
}

/* shows: S108 */
static void a_site_without_its_name_is_warned_of(void **state)
{
    (void)state;
    expect_warnings(GROUP("nlb\n  check:\n    type: tls\n    http: {path: /health}\n"),
                    "8 check.http.domain host-checked");
    expect_warnings(GROUP("nlb\n  check: {type: tls, http: {domain: a.b}}\n"), "");
    expect_warnings(GROUP("nlb\n  check: {type: http, http: {expect: \"2xx,404\"}}\n"),
                    "6 check.http.expect own-page, 6 check.http.domain host-checked");
    expect_warnings(GROUP("nlb\n  check: {type: http, http: {path: /health}}\n"), "");
}

/* shows: S107 */
static void http_1_1_without_a_host_is_warned_of_once(void **state)
{
    (void)state;
    expect_warnings(GROUP("nlb\n  check: {type: http, http: {version: \"1.1\"}}\n"),
                    "6 check.http.host host-missing");
}

/* Case A19 (a): accepted with a warning; by the profile's own times, which are clb's, without. */
static void a_timeout_above_the_interval_is_warned_of(void **state)
{
    (void)state;
    expect_warnings(GROUP("nlb\n  check:\n    interval: 2s\n    timeout: 5s\n"),
                    "8 check.timeout slow-timeout");
    expect_warnings(GROUP("clb\n  check: {interval: 1s}\n"), "6 check.timeout slow-timeout");
    expect_warnings(GROUP("clb\n  check: {timeout: 4s}\n"), "");
}

static void of_several_checks_the_one_is_named(void **state)
{
    (void)state;
    expect_warnings(GROUP("nlb\n  checks:\n"
                          "  - {name: port, type: tcp}\n"
                          "  - name: page\n    type: http\n    http: {domain: a.b,\n"
                          "           expect: \"404\"}\n"),
                    "11 check page: http.expect own-page");
}

/* --- none by the defaults --- */

static void expect_none(const struct server_group *group)
{
    struct advice_due due[N_ADVICE];
    size_t n = advice_of_group(group, due);

    for (size_t i = 0; i < n; i++) {
        if (due[i].row->warning != NULL) {
            fail_msg("profile %u, protocol %u, check %u: %s", group->profile, group->protocol,
                     group->check.type, due[i].row->id);
        }
    }
}

static void the_defaults_of_no_profile_are_warned_of(void **state)
{
    (void)state;
    static const struct {
        enum profile profile;
        enum protocol first, last;
        enum check_type last_type;
    } rows[] = {{PROFILE_GWLB, PROTOCOL_GENEVE, PROTOCOL_GENEVE, CHECK_TYPE_HTTP},
                {PROFILE_NLB, PROTOCOL_TCP, PROTOCOL_TCP_UDP, CHECK_TYPE_GRPC},
                {PROFILE_CLB, PROTOCOL_TCP, PROTOCOL_TCP_UDP, CHECK_TYPE_GRPC}};
    struct advice_due due[N_ADVICE];
    struct cluster_settings settings;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned p = rows[i].first; p <= rows[i].last; p++) {
            for (unsigned t = CHECK_TYPE_NONE; t <= rows[i].last_type; t++) {
                struct server_group group;

                profile_group_defaults(rows[i].profile, (enum protocol)p, &group);
                profile_check_defaults(rows[i].profile, (enum protocol)p, (enum check_type)t,
                                       &group.check);
                expect_none(&group);
            }
        }
    }
    cluster_settings_default(&settings);
    assert_int_equal(advice_of_settings(&settings, due), 0);
}

static void read_file(struct spec_set *set, const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    read_set(set, path, text);
}

static void no_example_is_warned_of(void **state)
{
    (void)state;
    struct spec_set set = {0};
    glob_t files;

    assert_int_equal(glob("deploy/examples/*.yaml", 0, NULL, &files), 0);
    assert_int_equal(glob("deploy/examples/checks/*.yaml", GLOB_APPEND, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        read_file(&set, files.gl_pathv[i]);
    }
    globfree(&files);
    assert_true(set.n_documents >= 4 + 13);
    for (uint32_t d = 0; d < set.n_documents; d++) {
        for (uint32_t i = 0; i < set.documents[d].n_remarks; i++) {
            const struct advice *row = set.documents[d].remarks[i].due.row;

            if (row->warning != NULL) {
                fail_msg("%s: %s", set.files[set.documents[d].file], row->id);
            }
        }
    }
    spec_set_close(&set);
}

/* One line each, and what is better in each. */
static void every_warning_says_what_is_better(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ADVICE; i++) {
        const char *warning = advice_rows[i].warning;

        if (warning != NULL) {
            assert_non_null(strstr(warning, "better"));
            assert_null(strchr(warning, '\n'));
            assert_true(strlen(warning) <= 160);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_that_are_off_are_warned_of),
        cmocka_unit_test(a_probe_source_outside_the_shared_range_is_warned_of),
        cmocka_unit_test(networks_that_are_everything_are_warned_of),
        cmocka_unit_test(errors_that_pass_are_warned_of),
        cmocka_unit_test(resets_that_the_profile_would_not_send_are_warned_of),
        cmocka_unit_test(silence_with_less_proof_than_the_profile_has_is_warned_of),
        cmocka_unit_test(resets_more_often_than_by_the_profile_are_warned_of),
        cmocka_unit_test(a_site_without_its_name_is_warned_of),
        cmocka_unit_test(http_1_1_without_a_host_is_warned_of_once),
        cmocka_unit_test(a_timeout_above_the_interval_is_warned_of),
        cmocka_unit_test(of_several_checks_the_one_is_named),
        cmocka_unit_test(the_defaults_of_no_profile_are_warned_of),
        cmocka_unit_test(no_example_is_warned_of),
        cmocka_unit_test(every_warning_says_what_is_better),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
