/* What differs between documents, field by field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/spec/diff.h"
#include "common/spec/spec.h"
#include "tests/lib/spec_first.h"

#define HEAD "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n"
#define GROUP(fields) HEAD "  profile: nlb\n" fields

static void read_text(struct spec_set *set, const char *text)
{
    struct spec_error error = {0};
    char printed[SPEC_ERROR_TEXT_BYTES];

    if (spec_read_first(set, "f.yaml", text, strlen(text), &error) != 0) {
        fail_msg("%s", spec_error_format(&error, "f.yaml", printed));
    }
}

/* --- differences --- */

static void expect_changes(const char *before, const char *after, const char *expected)
{
    struct spec_set a = {0};
    struct spec_set b = {0};
    struct spec_changes changes = {0};
    char got[2048] = "";

    if (before != NULL) {
        read_text(&a, before);
    }
    read_text(&b, after);
    assert_int_equal(spec_diff(SPEC_GROUP, before == NULL ? NULL : a.documents[0].u.group,
                               b.documents[0].u.group, &changes),
                     0);
    for (uint32_t i = 0; i < changes.n_items; i++) {
        const struct spec_change *change = &changes.items[i];

        snprintf(got + strlen(got), sizeof got - strlen(got), "%s: %s -> %s\n", change->path,
                 change->before == NULL ? "(none)" : change->before,
                 change->after == NULL ? "(none)" : change->after);
    }
    assert_string_equal(got, expected);
    spec_changes_close(&changes);
    spec_set_close(&a);
    spec_set_close(&b);
}

static void differences_name_each_changed_field(void **state)
{
    (void)state;
    expect_changes(GROUP(""), GROUP(""), "");
    expect_changes(GROUP("  check: {timeout: 1s}\n"), GROUP("  check: {timeout: 2s}\n"),
                   "check.timeout: 1s -> 2s\n");
    expect_changes(GROUP("  rule: majority\n"), GROUP("  rule: {down: any, up: all}\n"),
                   "rule: majority -> down: any, up: all\n");
    expect_changes(
        GROUP("  backends: [{at: 10.0.0.1:80}, {at: 10.0.0.2:80, zone: a}]\n"),
        GROUP("  backends: [{at: 10.0.0.2:80, weight: 5}, {at: 10.0.0.3:80, weight: 7}]\n"),
        "backend 10.0.0.1:80:  -> (none)\n"
        "backend 10.0.0.2:80: weight: 100 -> 5\n"
        "backend 10.0.0.2:80: zone: a -> (none)\n"
        "backend 10.0.0.3:80: (none) -> \n");
    expect_changes(GROUP("  check: {type: http, http: {domain: a.b}}\n"),
                   GROUP("  check: {type: tcp}\n"),
                   "check.type: http -> tcp\n"
                   "check.http.method: GET -> (none)\n"
                   "check.http.version: 1.0 -> (none)\n"
                   "check.http.path: / -> (none)\n"
                   "check.http.host: domain -> (none)\n"
                   "check.http.domain: a.b -> (none)\n"
                   "check.http.expect: 2xx -> (none)\n"
                   "check.tcp.handshake: (none) -> full\n"
                   "check.tcp.close: (none) -> rst\n"
                   "check.tcp.onTimeout: (none) -> rst\n");
}

static void an_admin_state_that_the_document_leaves_open_is_no_difference(void **state)
{
    (void)state;
    expect_changes(GROUP("  backends: [{at: 10.0.0.1:80, adminState: draining}]\n"),
                   GROUP("  backends: [{at: 10.0.0.1:80}]\n"), "");
    expect_changes(GROUP("  backends: [{at: 10.0.0.1:80, adminState: draining}]\n"),
                   GROUP("  backends: [{at: 10.0.0.1:80, adminState: enabled}]\n"),
                   "backend 10.0.0.1:80: adminState: draining -> enabled\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_name_each_changed_field),
        cmocka_unit_test(an_admin_state_that_the_document_leaves_open_is_no_difference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
