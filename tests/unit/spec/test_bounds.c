/* What bounds a document and a set of them, and how an error is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/spec/spec.h"
#include "tests/lib/spec_first.h"

/* A group up to its spec's fields: those begin on line 6, column 3. */
#define GROUP(fields)                                                  \
    "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n" \
    "  profile: nlb\n" fields
#define LISTENER(fields) \
    "apiVersion: jury/v1\nkind: Listener\nmetadata: {name: front}\nspec:\n" fields

static char *repeated(const char *head, const char *item, size_t n, const char *tail)
{
    size_t n_item = strlen(item);
    char *text = malloc(strlen(head) + n * n_item + strlen(tail) + 1);

    assert_non_null(text);
    strcpy(text, head);
    char *at = text + strlen(head);
    for (size_t i = 0; i < n; i++, at += n_item) {
        memcpy(at, item, n_item);
    }
    strcpy(at, tail);
    return text;
}

static void expect_limit(const char *text, size_t n_bytes, const char *sentence)
{
    struct spec_set set = {0};
    struct spec_error error = {0};

    assert_int_equal(spec_read_first(&set, "f.yaml", text, n_bytes, &error), ERR_LIMIT);
    assert_string_equal(error.message.text, sentence);
    spec_set_close(&set);
}

static void each_bound_is_a_named_error(void **state)
{
    (void)state;
    char *text = repeated("a: [", "1,", LIMIT_SPEC_NODES, "1]");
    expect_limit(text, strlen(text), "the document has more than 65536 values: split it");
    free(text);

    text = repeated(GROUP("  backends: ["), "{at: \"10.0.0.1:80\"},", LIMIT_BACKENDS_PER_GROUP + 1,
                    "]\n");
    expect_limit(text, strlen(text),
                 "server group \"web\": backends: 1001 entries, the limit is 1000");
    free(text);

    char keys[4096] = "";
    for (int i = 0; i <= LIMIT_SPEC_KEYS; i++) {
        snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "k%d: 1\n", i);
    }
    expect_limit(keys, strlen(keys), "more than 128 fields in one mapping");

    char labels[1024] = "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web, labels: {";
    for (int i = 0; i <= LIMIT_LABELS; i++) {
        snprintf(labels + strlen(labels), sizeof labels - strlen(labels), "k%d: v,", i);
    }
    strcat(labels, "}}\nspec: {profile: nlb}\n");
    expect_limit(labels, strlen(labels),
                 "server group \"web\": labels: 21 entries, the limit is 20");

    text = repeated("#", "x", LIMIT_SPEC_FILE_BYTES, "");
    expect_limit(text, strlen(text), "the file has 16777217 bytes, the limit is 16777216");
    free(text);

    text = repeated("", "[", 100000, "");
    expect_limit(text, strlen(text), "nested deeper than 16 levels");
    free(text);
}

static void a_bad_document_among_twenty_leaves_the_set_as_it_was(void **state)
{
    (void)state;
    char text[8192] = "";
    struct spec_set set = {0};
    struct spec_error error = {0};

    /* Case A26: 20 groups, the 17th has an unknown field. */
    assert_int_equal(spec_read_first(&set, "first.yaml", GROUP(""), strlen(GROUP("")), &error), 0);
    for (int i = 1; i <= 20; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "---\napiVersion: jury/v1\nkind: Group\nmetadata: {name: group-%d}\nspec:\n"
                 "  profile: nlb\n%s",
                 i, i == 17 ? "  conect_port: 80\n" : "");
    }

    assert_int_equal(spec_read_first(&set, "second.yaml", text, strlen(text), &error), ERR_INVALID);

    assert_string_equal(error.message.text,
                        "server group \"group-17\": unknown field \"conect_port\"");
    assert_int_equal(error.at.line, 103);
    assert_int_equal(error.at.column, 3);
    assert_int_equal(set.n_documents, 1);
    assert_int_equal(set.n_files, 1);
    assert_string_equal(set.documents[0].u.group->name, "web");
    spec_set_close(&set);
}

static void an_error_is_printed_with_its_source_line_and_a_mark(void **state)
{
    (void)state;
    const char *text = GROUP("  check:\r\n    interval: 5\r\n");
    struct spec_set set = {0};
    struct spec_error error = {0};
    char printed[SPEC_ERROR_TEXT_BYTES];

    assert_int_equal(spec_read_first(&set, "web.yaml", text, strlen(text), &error), ERR_INVALID);

    assert_string_equal(spec_error_format(&error, "web.yaml", printed),
                        "web.yaml:7:15: server group \"web\": check.interval: \"5\" is not a time: "
                        "write a number and a unit such as 5s, 250ms or 5m (allowed: 100ms..5m)\n"
                        "     7 |     interval: 5\n"
                        "       |               ^");
    assert_int_equal(spec_read_first(&set, "e.yaml", "", 0, &error), ERR_INVALID);
    assert_string_equal(spec_error_format(&error, "e.yaml", printed),
                        "e.yaml: there is no document in this file; nothing would be applied");
}

static void a_long_source_line_is_cut_between_characters(void **state)
{
    (void)state;
    char *text = repeated("a: &x ", "\xc3\xa4", 400, "\n");
    struct spec_set set = {0};
    struct spec_error error = {0};

    assert_int_equal(spec_read_first(&set, "f", text, strlen(text), &error), ERR_INVALID);

    size_t n = strlen(error.source);
    assert_true(n < SPEC_SOURCE_BYTES);
    assert_string_equal(error.source + n - 3, "...");
    assert_true((n - 3 - 6) % 2 == 0);
    free(text);
}

/* Only the first was told, so a document with three faults took four runs. */
static void all_errors_of_a_file_are_told_in_one_run(void **state)
{
    (void)state;
    const char *text =
        GROUP("  rulle: any\n  check: {interval: 5, timeout: 1s}\n  backends:\n"
              "  - {at: 10.0.0.1:80, weight: 500}\n  - {at: 10.0.0.2}\n  - {att: 10.0.0.3:80}\n"
              "---\n") LISTENER("  address: 10.0.0.1\n---\n") GROUP("");
    static const uint32_t places[][2] = {{6, 3}, {7, 21}, {9, 31}, {10, 10}, {11, 6}};
    struct spec_set set = {0};
    struct spec_errors errors;

    assert_int_equal(spec_read(&set, "f.yaml", text, strlen(text), &errors), ERR_INVALID);

    assert_int_equal(set.n_documents, 0);
    assert_false(errors.has_more);
    assert_true(errors.n > 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(errors.items[i].at.line, places[i][0]);
        assert_int_equal(errors.items[i].at.column, places[i][1]);
        assert_true(errors.items[i].source[0] != '\0');
    }
    for (uint32_t i = 5; i < errors.n; i++) { /* of the next document */
        assert_true(errors.items[i].at.line > 12);
    }
}

static void a_file_full_of_errors_tells_the_first_twenty(void **state)
{
    (void)state;
    char text[4096] = GROUP("");
    struct spec_set set = {0};
    struct spec_errors errors;

    for (int i = 0; i < 30; i++) {
        size_t used = strlen(text);

        snprintf(text + used, sizeof text - used, "  field%d: 1\n", i);
    }
    assert_int_equal(spec_read(&set, "f.yaml", text, strlen(text), &errors), ERR_INVALID);
    assert_int_equal(errors.n, SPEC_ERRORS);
    assert_true(errors.has_more);
    assert_int_equal(errors.items[SPEC_ERRORS - 1].at.line, 6 + SPEC_ERRORS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bound_is_a_named_error),
        cmocka_unit_test(a_bad_document_among_twenty_leaves_the_set_as_it_was),
        cmocka_unit_test(an_error_is_printed_with_its_source_line_and_a_mark),
        cmocka_unit_test(all_errors_of_a_file_are_told_in_one_run),
        cmocka_unit_test(a_file_full_of_errors_tells_the_first_twenty),
        cmocka_unit_test(a_long_source_line_is_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
