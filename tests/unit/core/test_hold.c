/* The hold switch in the catalog: who switched it, and that a document does not undo it; how the
 * engine tells what it keeps.
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/catalog_apply.h"
#include "common/base/plant.h"
#include "tests/lib/catalog_builder.h"
#include "tests/unit/core/engine_fixture.h"

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

#define MANY 200

/* Backends that events told since `first`, and how many events that took. */
static unsigned count_held(const struct fixture *f, uint64_t first, bool is_held, unsigned *ret_n)
{
    unsigned n_backends = 0;

    *ret_n = 0;
    for (uint64_t i = first; i < engine_event_next(f->engine); i++) {
        const struct event *event = engine_event_at(f->engine, i);

        if (event->kind == EVENT_HELD_CHANGED && event->to == is_held) {
            n_backends += event->n_backends > 0 ? event->n_backends : 1;
            (*ret_n)++;
        }
    }
    return n_backends;
}

static void hold_all(struct fixture *f, bool is_on)
{
    struct hold_override override = {.group = "", .is_on = is_on, .actor = "ops"};

    step(f, &(struct engine_event){.kind = ENGINE_HOLD, .u.hold = &override});
}

/* All of a group fail under hold, and the hold ends. ret_n: events that told it, of each. */
static void fail_many(struct fixture *f, unsigned ret_n[2])
{
    static char at[MANY][24];
    static char endpoints[MANY * 24];

    endpoints[0] = '\0';
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(at[i], sizeof at[i], "10.0.0.%u:80", i + 1);
        strcat(strcat(endpoints, i == 0 ? "" : " "), at[i]);
    }
    put(f, endpoints, RULE_LOCAL);
    hold_all(f, true);
    uint64_t first = engine_event_next(f->engine);
    for (unsigned turn = 0; turn < 20; turn++) {
        f->now_ns += MS;
        for (unsigned i = 0; i < MANY; i++) {
            result(f, target_of(f, at[i]), turn < 10 ? REASON_OK : REASON_CONNECT_FAILED);
        }
    }
    tick(f, SECOND);
    tick(f, SECOND);
    assert_int_equal(view_of(f, at[MANY - 1]).health_state, HEALTH_HEALTHY);
    assert_int_equal(count_held(f, first, true, &ret_n[1]), MANY);

    hold_all(f, false);
    tick(f, SECOND);
    tick(f, SECOND);
    assert_int_equal(view_of(f, at[MANY - 1]).health_state, HEALTH_UNHEALTHY);
    assert_int_equal(count_held(f, first, false, &ret_n[0]), MANY);
}

/* One event a backend pushed the verdicts before it out of the log. */
static void a_mass_failure_under_hold_is_two_events_of_a_group(void **state)
{
    unsigned n[2];

    fail_many(*state, n);
    assert_int_equal(n[1], 2);
    assert_int_equal(n[0], 2);
}

#ifdef JURY_PLANTS
static void twin_one_event_a_backend_is_caught(void **state)
{
    unsigned n[2];

    plant_set("held-one-by-one");
    fail_many(*state, n);
    plant_set(NULL);
    assert_int_equal(n[1], MANY);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hold_says_who_switched_it_and_a_document_keeps_it),
        cmocka_unit_test(the_same_switch_again_changes_nothing),
        cmocka_unit_test(a_hold_of_no_group_is_refused_by_name),
        TEST(a_mass_failure_under_hold_is_two_events_of_a_group),
#ifdef JURY_PLANTS
        TEST(twin_one_event_a_backend_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
