/* The hold switch in the catalog: who switched it, and that a document does not undo it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/catalog_apply.h"
#include "tests/lib/catalog_builder.h"

static const struct server_group *group_of(const struct catalog *catalog, const char *name)
{
    return &catalog_group_find(catalog, name)->spec;
}

static void apply(struct catalog_state *state, struct command *command, const char *actor,
                  int64_t wall_ms, struct apply_answer *answer)
{
    strcpy(command->actor, actor);
    command->wall_ms = wall_ms;
    catalog_apply(state, command, answer);
    command_close(command);
}

static void a_hold_says_who_switched_it_and_a_document_keeps_it(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct apply_answer answer;

    (void)unused;
    build_put(&command, "web", "10.0.0.1:80");
    apply(state, &command, "root", 1000, &answer);
    build_hold(&command, "web", true);
    apply(state, &command, "anna", 2000, &answer);
    assert_int_equal(answer.err, 0);
    build_put(&command, "web", "10.0.0.1:80 10.0.0.2:80");
    apply(state, &command, "root", 3000, &answer);
    struct catalog *catalog = catalog_state_catalog(state);
    const struct server_group *group = group_of(catalog, "web");
    assert_int_equal(group->hold, HOLD_ON);
    assert_string_equal(group->held_by.actor, "anna");
    assert_int_equal(group->held_by.wall_ms, 2000);
    catalog_unref(catalog);

    build_hold(&command, "", true);
    apply(state, &command, "bert", 4000, &answer);
    struct cluster_settings settings;
    cluster_settings_default(&settings);
    build_settings(&command, &settings);
    apply(state, &command, "root", 5000, &answer);
    catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_settings(catalog)->hold, HOLD_ON);
    assert_string_equal(catalog_settings(catalog)->held_by.actor, "bert");
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void the_same_switch_again_changes_nothing(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct apply_answer answer;

    (void)unused;
    build_put(&command, "web", "10.0.0.1:80");
    apply(state, &command, "root", 1000, &answer);
    build_hold(&command, "web", true);
    apply(state, &command, "anna", 2000, &answer);
    build_hold(&command, "web", true);
    apply(state, &command, "bert", 3000, &answer);
    struct catalog *catalog = catalog_state_catalog(state);
    assert_string_equal(group_of(catalog, "web")->held_by.actor, "anna");
    assert_int_equal(catalog_group_find(catalog, "web")->changed_revision,
                     catalog_revision(catalog));
    assert_int_equal(answer.revision, catalog_revision(catalog));
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void a_hold_of_no_group_is_refused_by_name(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct apply_answer answer;

    (void)unused;
    build_hold(&command, "web", true);
    apply(state, &command, "anna", 1000, &answer);
    assert_int_equal(answer.err, ERR_NOTFOUND);
    assert_string_equal(answer.message.text, "server group \"web\" does not exist");
    build_put(&command, "web", "10.0.0.1:80");
    build_hold(&command, "web", true);
    apply(state, &command, "anna", 2000, &answer);
    assert_int_equal(answer.err, ERR_INVALID);
    assert_string_equal(answer.message.text, "server group \"web\" is named twice in one command");
    catalog_state_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hold_says_who_switched_it_and_a_document_keeps_it),
        cmocka_unit_test(the_same_switch_again_changes_nothing),
        cmocka_unit_test(a_hold_of_no_group_is_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
