/* Every file in deploy/examples and every generated example is valid as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>

#include "common/spec/example.h"
#include "common/spec/spec.h"
#include "tests/lib/spec_first.h"

static void read_file(struct spec_set *set, const char *path)
{
    struct spec_error error = {0};
    char printed[SPEC_ERROR_TEXT_BYTES];
    char text[65536];
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_true(n < sizeof text);
    if (spec_read_first(set, path, text, n, &error) != 0) {
        fail_msg("%s", spec_error_format(&error, path, printed));
    }
}

/* All in one set: so their names differ too. */
static void every_example_file_is_valid(void **state)
{
    (void)state;
    struct spec_set set = {0};
    glob_t files;

    assert_int_equal(glob("deploy/examples/*.yaml", 0, NULL, &files), 0);
    assert_int_equal(glob("deploy/examples/checks/*.yaml", GLOB_APPEND, NULL, &files), 0);
    assert_true(files.gl_pathc >= 4 + 13);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        read_file(&set, files.gl_pathv[i]);
    }
    globfree(&files);
    spec_set_close(&set);
}

static void the_quickstart_group_decides_by_votes_and_has_three_private_backends(void **state)
{
    (void)state;
    struct spec_set set = {0};
    struct cidr private_net;

    read_file(&set, "deploy/examples/web.yaml");

    assert_int_equal(set.n_documents, 2);
    const struct server_group *group = set.documents[0].u.group;
    assert_string_equal(group->name, "web");
    assert_int_equal(group->profile, PROFILE_NLB);
    assert_int_equal(group->rule.down.kind, RULE_MAJORITY);
    assert_int_equal(group->n_backends, 3);
    assert_int_equal(cidr_parse("10.0.0.0/8", &private_net, NULL), 0);
    for (uint32_t i = 0; i < group->n_backends; i++) {
        assert_true(cidr_contains(&private_net, &group->backends[i].at.addr));
    }
    assert_string_equal(set.documents[1].u.listener->group, "web");
    spec_set_close(&set);
}

/* What stands between "```yaml" and "```". All in one set, as one file may hold them; the group of
 * the first tour is the one of the quickstart and is shown without its listener. */
static void the_documents_of_the_readme_are_valid(void **state)
{
    (void)state;
    static const char fence[] = "```yaml\n";
    static char text[262144];
    FILE *file = fopen("README.md", "r");
    struct spec_set set = {0};
    unsigned n_blocks = 0;

    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    for (char *at = strstr(text, fence); at != NULL; at = strstr(at, fence)) {
        struct spec_error error = {0};
        char printed[SPEC_ERROR_TEXT_BYTES];

        at += strlen(fence);
        char *end = strstr(at, "```");
        assert_non_null(end);
        if (spec_read_first(&set, "README.md", at, (size_t)(end - at), &error) != 0) {
            fail_msg("%s", spec_error_format(&error, "README.md", printed));
        }
        n_blocks++;
    }
    assert_true(n_blocks >= 2);
    spec_set_close(&set);
}

static void every_generated_example_is_valid(void **state)
{
    (void)state;

    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        struct spec_set set = {0};
        struct spec_error error = {0};
        char printed[SPEC_ERROR_TEXT_BYTES];
        char *text = NULL;

        assert_int_equal(spec_example(&spec_kinds[i], &text), 0);
        if (spec_read_first(&set, spec_kinds[i].word, text, strlen(text), &error) != 0) {
            fail_msg("%s", spec_error_format(&error, spec_kinds[i].word, printed));
        }
        assert_int_equal(set.n_documents, 1);
        assert_int_equal(set.documents[0].kind, spec_kinds[i].kind);
        free(text);
        spec_set_close(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_file_is_valid),
        cmocka_unit_test(the_quickstart_group_decides_by_votes_and_has_three_private_backends),
        cmocka_unit_test(the_documents_of_the_readme_are_valid),
        cmocka_unit_test(every_generated_example_is_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
