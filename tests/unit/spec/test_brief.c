/* Documents without what is a default anyway mean what the whole ones mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>

#include "common/base/prng.h"
#include "common/model/validate.h"
#include "common/spec/emit.h"
#include "common/spec/field.h"
#include "common/spec/spec.h"
#include "tests/lib/random_objects.h"
#include "tests/lib/spec_first.h"

/* What a brief document leaves to the cluster. */
static void forget_enabled(struct server_group *group)
{
    group->hold = group->hold == HOLD_OFF ? HOLD_KEEP : group->hold;
    for (uint32_t i = 0; i < group->n_backends; i++) {
        struct backend *backend = &group->backends[i];

        backend->admin_state =
            backend->admin_state == ADMIN_ENABLED ? ADMIN_NONE : backend->admin_state;
    }
}

/* Writes the group briefly and reads that. False: it has what the reader does not take yet. */
static bool comes_back(struct server_group *group, size_t *ret_n_bytes)
{
    struct spec_document document = {.kind = SPEC_GROUP, .u.group = group};
    struct spec_set set = {0};
    struct spec_error error = {0};
    struct errmsg err = {{0}};
    char printed[SPEC_ERROR_TEXT_BYTES];
    char *text = NULL;

    assert_int_equal(spec_emit_brief(&document, 1, &text, ret_n_bytes, &err), 0);
    int rc = spec_read_first(&set, "brief", text, *ret_n_bytes, &error);
    if (rc == 0) {
        forget_enabled(group);
        if (!is_same_group(set.documents[0].u.group, group)) {
            fail_msg("another group: %s", text);
        }
        spec_set_close(&set);
    } else if (rc != ERR_UNAVAILABLE_YET) {
        fail_msg("%s", spec_error_format(&error, "brief", printed));
    }
    free(text);
    return rc == 0;
}

/* Fields of later stages, and combinations that no document may have, are put right. */
static void make_fit(struct server_group *group)
{
    struct errmsg err = {{0}};
    struct server_group plain = {0};

    memset(&group->held_by, 0, sizeof group->held_by);
    if (validate_group(group, &err) == 0) {
        return;
    }
    /* Of a group that does not fit, the fields one by one as far as they do. */
    spec_defaults(SPEC_GROUP, (enum profile)group->profile, (enum protocol)group->protocol, &plain);
    snprintf(plain.name, sizeof plain.name, "%s", group->name);

#define KEEP(field)                            \
    do {                                       \
        struct server_group before = plain;    \
        plain.field = group->field;            \
        if (validate_group(&plain, &err) != 0) \
            plain = before;                    \
    } while (0)
    KEEP(check);
    KEEP(check.timeout_ms);
    KEEP(check.interval_ms);
    KEEP(check.port);
    KEEP(check.pacing);
    KEEP(check.source);
    KEEP(check.is_enabled);
    KEEP(check.healthy_threshold);
    KEEP(check.unhealthy_threshold);
    KEEP(check.probers);
    KEEP(rule);
    KEEP(guard);
    KEEP(guard.velocity_percent);
    KEEP(guard.flap_hold_ms);
    KEEP(guard.shadow_stop);
    KEEP(hold);
    KEEP(scheduler);
    KEEP(graded_weight);
    KEEP(all_bad);
    KEEP(fail_open_percent);
    KEEP(failover);
    KEEP(drain);
    KEEP(idle_timeout_ms);
    KEEP(address_family);
#undef KEEP
    server_group_close(group);
    *group = plain;
}

static void random_groups_come_back_equal(void **state)
{
    (void)state;
    struct prng prng;
    unsigned n_read = 0;

    prng_init(&prng, 20261201);
    for (unsigned round = 0; round < 2000; round++) {
        struct server_group group = {0};
        size_t n_bytes = 0;

        random_group(&prng, 5, &group);
        make_fit(&group);
        n_read += comes_back(&group, &n_bytes);
        server_group_close(&group);
    }
    print_message("%u of 2000 random groups\n", n_read);
    assert_true(n_read > 500);
}

static void read_file(struct spec_set *set, const char *path)
{
    struct spec_error error = {0};
    char printed[SPEC_ERROR_TEXT_BYTES];
    char text[65536];
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text, file);
    fclose(file);
    if (spec_read_first(set, path, text, n, &error) != 0) {
        fail_msg("%s", spec_error_format(&error, path, printed));
    }
}

static void every_example_comes_back_equal_and_shorter(void **state)
{
    (void)state;
    static const char *const patterns[] = {"deploy/examples/*.yaml",
                                           "deploy/examples/checks/*.yaml"};
    glob_t files;
    unsigned n_groups = 0;

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(glob(patterns[i], i == 0 ? 0 : GLOB_APPEND, NULL, &files), 0);
    }
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct spec_set set = {0};

        read_file(&set, files.gl_pathv[i]);
        for (uint32_t d = 0; d < set.n_documents; d++) {
            size_t n_whole = 0;
            size_t n_brief = 0;
            char *whole = NULL;

            if (set.documents[d].kind != SPEC_GROUP) {
                continue;
            }
            assert_int_equal(spec_emit(&set.documents[d], 1, &whole, &n_whole, NULL), 0);
            free(whole);
            assert_true(comes_back(set.documents[d].u.group, &n_brief));
            assert_true(n_brief < n_whole);
            n_groups++;
        }
        spec_set_close(&set);
    }
    globfree(&files);
    assert_true(n_groups >= 20);
}

static void a_brief_group_has_what_its_author_wrote(void **state)
{
    (void)state;
    static const char wrote[] =
        "---\napiVersion: jury/v1\nkind: Group\nmetadata:\n  name: web\nspec:\n  profile: nlb\n"
        "  check:\n    timeout: 1s\n  rule: majority\n  backends:\n  - {at: '10.0.0.1:80'}\n"
        "  - {at: '10.0.0.2:80', weight: 50, adminState: maintenance}\n";
    struct spec_set set = {0};
    struct spec_error error = {0};
    char *text = NULL;
    size_t n_bytes = 0;

    assert_int_equal(spec_read_first(&set, "f", wrote, strlen(wrote), &error), 0);
    assert_int_equal(spec_emit_brief(set.documents, 1, &text, &n_bytes, NULL), 0);

    assert_string_equal(text, wrote);
    free(text);
    spec_set_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_groups_come_back_equal),
        cmocka_unit_test(every_example_comes_back_equal_and_shorter),
        cmocka_unit_test(a_brief_group_has_what_its_author_wrote),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
