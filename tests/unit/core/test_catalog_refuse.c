/* Every refusal across objects: the sentence, and that nothing changed (cases A24, A26; row 1.17).
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/plant.h"
#include "common/model/profile.h"
#include "tests/lib/catalog_builder.h"

/* Three voters, groups web (two backends) and api (three), listener front on web. */
static struct catalog_state *make_state(void)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    build_put(&command, "web", "10.0.0.1:80 10.0.0.2:80");
    build_put(&command, "api", "10.0.1.1:80 10.0.1.2:80 10.0.1.3:80");
    build_listener(&command, "front", "192.0.2.1:80", "web");
    build_commit(state, &command);
    return state;
}

/* The command is refused alike at check and at apply (R-CFG-1), and changes nothing. */
static void expect_on(struct catalog_state *state, struct command *command, int err,
                      const char *sentence)
{
    struct catalog *before = catalog_state_catalog(state);
    struct catalog *after;
    struct apply_answer checked;
    struct apply_answer applied;

    catalog_check(state, command, &checked);
    catalog_apply(state, command, &applied);
    after = catalog_state_catalog(state);
    if (applied.err != err || strcmp(applied.message.text, sentence) != 0) {
        fail_msg("expected %d: %s\n     got %d: %s", err, sentence, applied.err,
                 applied.message.text);
    }
    assert_memory_equal(&checked, &applied, sizeof checked);
    assert_ptr_equal(before, after);
    assert_int_equal(applied.revision, catalog_revision(before));
    catalog_unref(before);
    catalog_unref(after);
    command_close(command);
}

#define EXPECT(build, err, sentence)                \
    do {                                            \
        struct catalog_state *state = make_state(); \
        struct command c = {0};                     \
                                                    \
        build;                                      \
        expect_on(state, &c, err, sentence);        \
        catalog_state_free(state);                  \
    } while (0)

static void groups_and_backends_that_do_not_exist(void **unused)
{
    (void)unused;
    EXPECT(build_delete_group(&c, "none"), ERR_NOTFOUND, "server group \"none\" does not exist");
    EXPECT(build_admin(&c, "none", "10.0.0.1:80", ADMIN_DRAINING), ERR_NOTFOUND,
           "server group \"none\" does not exist");
    EXPECT(build_admin(&c, "web", "10.0.0.9:80", ADMIN_DRAINING), ERR_NOTFOUND,
           "backend 10.0.0.9:80 of server group \"web\" does not exist");
    EXPECT(build_listener(&c, "new", "192.0.2.9:80", "none"), ERR_NOTFOUND,
           "listener \"new\": server group \"none\" does not exist");
    EXPECT(build_delete_listener(&c, "none"), ERR_NOTFOUND, "listener \"none\" does not exist");
    EXPECT(build_delete_node(&c, 8), ERR_NOTFOUND, "node \"8\" does not exist");
    EXPECT(build_delete_key(&c, "none"), ERR_NOTFOUND, "key \"none\" does not exist");
}

static void a_backend_that_is_being_removed(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_put(&c, "web", "10.0.0.1:80");
    build_commit(state, &c);
    build_weight(&c, "web", "10.0.0.2:80", 5);
    expect_on(state, &c, ERR_NOTFOUND,
              "backend 10.0.0.2:80 of server group \"web\" is being removed");
    catalog_state_free(state);
}

/* A24. */
static void the_same_place_twice(void **unused)
{
    (void)unused;
    EXPECT(
        build_listener(&c, "other", "192.0.2.1:80", "api"), ERR_EXISTS,
        "listener \"other\": at 192.0.2.1:80 (tcp) is taken by listener \"front\" of server group "
        "\"web\"");
    EXPECT((build_listener(&c, "one", "192.0.2.5:80", "api"),
            build_listener(&c, "two", "192.0.2.5:80", "web")),
           ERR_EXISTS,
           "listener \"two\": at 192.0.2.5:80 (tcp) is taken by listener \"one\" of server group "
           "\"api\"");
}

static void the_same_backend_in_another_group_is_fine(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_put(&c, "third", "10.0.0.1:80"); /* A24 */
    build_commit(state, &c);
    catalog_state_free(state);
}

static void addresses_outside_the_allowed_prefixes(void **unused)
{
    (void)unused;
    EXPECT(build_put(&c, "web", "10.0.0.1:80 203.0.113.5:80"), ERR_INVALID,
           "server group \"web\": backend 203.0.113.5:80 is outside the prefixes that the cluster "
           "settings allow (allowedCidrs): 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, "
           "192.168.0.0/16, fc00::/7");
    EXPECT(build_put(&c, "web", "127.0.0.1:80"), ERR_INVALID,
           "server group \"web\": backend 127.0.0.1:80 is outside the prefixes that the cluster "
           "settings allow (allowedCidrs): 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, "
           "192.168.0.0/16, fc00::/7");
    EXPECT(build_put(&c, "web", "169.254.0.1:80"), ERR_INVALID,
           "server group \"web\": backend 169.254.0.1:80 is outside the prefixes that the cluster "
           "settings allow (allowedCidrs): 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, "
           "192.168.0.0/16, fc00::/7");
}

static void prefixes_that_would_shut_out_a_backend(void **unused)
{
    struct cluster_settings settings;

    (void)unused;
    cluster_settings_default(&settings);
    settings.n_allowed = 1;
    assert_int_equal(cidr_parse("10.0.1.0/24", &settings.allowed[0], NULL), 0);
    EXPECT(build_settings(&c, &settings), ERR_INVALID,
           "server group \"web\": backend 10.0.0.1:80 is outside the prefixes that the cluster "
           "settings allow (allowedCidrs): 10.0.1.0/24");
    settings.n_allowed = 0;
    EXPECT(build_settings(&c, &settings), ERR_INVALID,
           "server group \"api\": backend 10.0.1.1:80 is outside the prefixes that the cluster "
           "settings allow (allowedCidrs): none");

    /* Settings and the groups that fit them may come in one command, in any order. */
    struct catalog_state *state = make_state();
    struct command c = {0};
    settings.n_allowed = 2;
    assert_int_equal(cidr_parse("10.0.0.0/8", &settings.allowed[0], NULL), 0);
    assert_int_equal(cidr_parse("203.0.113.0/24", &settings.allowed[1], NULL), 0);
    build_put(&c, "pub", "203.0.113.5:80");
    build_settings(&c, &settings);
    build_commit(state, &c);
    catalog_state_free(state);
}

static void a_group_in_use_is_not_deleted(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_delete_group(&c, "web");
    expect_on(state, &c, ERR_CONFLICT,
              "server group \"web\" is used by listener \"front\": delete the listener first or in "
              "the same command");
    build_delete_group(&c, "web");
    build_delete_listener(&c, "front");
    build_commit(state, &c);
    build_listener(&c, "front", "192.0.2.1:80", "web");
    expect_on(state, &c, ERR_NOTFOUND, "listener \"front\": server group \"web\" does not exist");
    catalog_state_free(state);
}

static void an_object_named_twice(void **unused)
{
    (void)unused;
    EXPECT((build_put(&c, "web", "10.0.0.1:80"), build_put(&c, "web", "10.0.0.2:80")), ERR_INVALID,
           "server group \"web\" is named twice in one command");
    EXPECT((build_put(&c, "web", "10.0.0.1:80"), build_delete_group(&c, "web")), ERR_INVALID,
           "server group \"web\" is named twice in one command");
    EXPECT((build_put(&c, "web", "10.0.0.1:80 10.0.0.2:80"),
            build_weight(&c, "web", "10.0.0.1:80", 1)),
           ERR_INVALID, "server group \"web\" is named twice in one command");
    EXPECT((build_weight(&c, "web", "10.0.0.1:80", 1), build_put(&c, "web", "10.0.0.1:80")),
           ERR_INVALID, "server group \"web\" is named twice in one command");
    EXPECT((build_weight(&c, "web", "10.0.0.1:80", 1), build_weight(&c, "web", "10.0.0.1:80", 2)),
           ERR_INVALID, "\"web\" backend 10.0.0.1:80 is named twice in one command");
    EXPECT((build_node(&c, 4, ROLE_VOTER), build_delete_node(&c, 4)), ERR_INVALID,
           "\"4\" is named twice in one command");
}

static void members_that_cannot_be(void **unused)
{
    (void)unused;
    EXPECT((build_delete_node(&c, 1), build_delete_node(&c, 2), build_delete_node(&c, 3)),
           ERR_INVALID, "the cluster would have no voter left: make another node a voter first");
    EXPECT((build_delete_node(&c, 1), build_delete_node(&c, 2), build_node(&c, 3, ROLE_STANDBY)),
           ERR_INVALID, "the cluster would have no voter left: make another node a voter first");
    EXPECT(for (uint64_t id = 4; id <= 8; id++) build_node(&c, id, ROLE_VOTER), ERR_LIMIT,
           "the cluster would have 8 voters, the limit is 7");
    EXPECT(for (uint64_t id = 4; id <= 65; id++) build_node(&c, id, ROLE_SPARE), ERR_LIMIT,
           "node \"65\": the cluster has 64 nodes, the limit is 64");
    EXPECT(build_node(&c, 4, ROLE_VOTER)->u.node->key = build_node(&c, 5, ROLE_VOTER)->u.node->key,
           ERR_EXISTS, "nodes \"4\" and \"5\" have the same public key");
    EXPECT(strcpy(build_node(&c, 4, ROLE_VOTER)->u.node->endpoints[0].host, "node-1.example"),
           ERR_EXISTS,
           "nodes \"1\" and \"4\" have the same endpoint node-1.example with a port in common");
}

static void a_node_id_is_never_used_again(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_delete_node(&c, 2);
    build_commit(state, &c);
    build_node(&c, 2, ROLE_VOTER);
    expect_on(state, &c, ERR_EXISTS,
              "node \"2\": a removed node had this id and no other may get it: choose another");
    catalog_state_free(state);
}

static void keys_that_are_not_unique(void **unused)
{
    (void)unused;
    EXPECT(build_key(&c, "copy", KEY_ROLE_VIEWER, 1), ERR_EXISTS,
           "keys \"copy\" and \"root\" are the same public key");
    EXPECT(build_key(&c, "fake", KEY_ROLE_ADMIN, 9)->u.key->key =
               build_node(&c, 4, ROLE_SPARE)->u.node->key,
           ERR_EXISTS, "key \"fake\" is the public key of node \"4\"");
}

static void rules_that_need_more_observers(void **unused)
{
    struct server_group group;

    (void)unused;
    build_group(&group, "web", "10.0.0.1:80 10.0.0.2:80");
    group.rule.down = (struct rule_column){RULE_AT_LEAST, 4};
    group.rule.up = group.rule.down;
    EXPECT(build_put_group(&c, &group), ERR_INVALID,
           "server group \"web\": rule at-least 4 needs 4 observers, the cluster would have 3");
    /* One membership change later (spec.md 5): named by group. */
    struct catalog_state *state = make_state();
    struct command c = {0};
    group.rule.down.value = 3;
    group.rule.up.value = 3;
    build_put_group(&c, &group);
    build_commit(state, &c);
    build_delete_node(&c, 3);
    expect_on(state, &c, ERR_INVALID,
              "server group \"web\": rule at-least 3 needs 3 observers, the cluster would have 2");
    build_node(&c, 3, ROLE_SPARE);
    expect_on(state, &c, ERR_INVALID,
              "server group \"web\": rule at-least 3 needs 3 observers, the cluster would have 2");
    /* A standby observes. */
    build_node(&c, 3, ROLE_STANDBY);
    build_commit(state, &c);
    server_group_close(&group);
    catalog_state_free(state);
}

static void updates_that_make_no_sense(void **unused)
{
    (void)unused;
    EXPECT(build_admin(&c, "web", "10.0.0.1:80", ADMIN_NONE), ERR_INVALID,
           "backend 10.0.0.1:80 of server group \"web\": the change sets nothing");
    EXPECT(build_admin(&c, "web", "10.0.0.1:80", (enum admin_state)7), ERR_INVALID,
           "backend 10.0.0.1:80 of server group \"web\": adminState must be enabled, draining or "
           "maintenance");
    EXPECT(build_weight(&c, "web", "10.0.0.1:80", 101), ERR_INVALID,
           "server group \"web\": backend 10.0.0.1:80: weight must be 0..100, got 101");
    EXPECT(build_admin(&c, "web", "10.0.0.1:80", ADMIN_ENABLED)->u.backend->has_drain_timeout =
               true,
           ERR_INVALID,
           "backend 10.0.0.1:80 of server group \"web\": a drain timeout goes with draining only");
    EXPECT(
        {
            struct backend_update *update =
                build_admin(&c, "web", "10.0.0.1:80", ADMIN_DRAINING)->u.backend;
            update->has_drain_timeout = true;
            update->drain_timeout_ms = 3600001;
        },
        ERR_INVALID,
        "backend 10.0.0.1:80 of server group \"web\": the drain timeout must be 0s..3600s, got "
        "3600001ms");
}

static void commands_that_are_none(void **unused)
{
    (void)unused;
    EXPECT((void)0, ERR_INVALID, "a command without a change");
    EXPECT(build_init(&c, 3), ERR_EXISTS, "the cluster was made already");
}

static void whole_commands_or_nothing(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};
    char name[16];
    struct apply_answer answer;

    (void)unused;
    /* A26: the 17th of 20 groups is bad. */
    for (unsigned i = 1; i <= 20; i++) {
        sprintf(name, "group%u", i);
        build_put(&c, name, i == 17 ? "203.0.113.1:80" : "10.0.0.1:80");
    }
    answer = build_apply(state, &c);
    assert_int_equal(answer.err, ERR_INVALID);
    assert_int_equal(answer.change_index, 16);
    assert_non_null(strstr(answer.message.text, "server group \"group17\""));
    struct catalog *catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_n_groups(catalog), 2);
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void a_wrong_first_command(void **unused)
{
    struct catalog_state *state = catalog_state_new();
    struct command c = {0};

    (void)unused;
    build_init(&c, 3);
    c.changes[0].u.init->nodes[1].node_id = 1;
    expect_on(state, &c, ERR_INVALID, "node \"1\" is there twice");
    build_init(&c, 3);
    memset(&c.changes[0].u.init->cluster_id, 0, sizeof(struct cluster_id));
    expect_on(state, &c, ERR_INVALID, "the cluster id is missing");
    build_init(&c, 3);
    build_put(&c, "web", "");
    expect_on(state, &c, ERR_INVALID, "making the cluster must be the only change");
    build_init(&c, 0);
    expect_on(state, &c, ERR_INVALID,
              "the cluster would have no voter left: make another node a voter first");
    catalog_state_free(state);
}

#ifdef JURY_PLANTS
/* The twin: with its guard off each of these would go through. */
static void a_guard_that_is_switched_off_is_seen(void **unused)
{
    static const char *const plants[] = {"catalog-expected-revision", "catalog-listener-twice",
                                         "catalog-node-id-again",     "catalog-no-voter",
                                         "catalog-allowed",           "catalog-at-least",
                                         "force-without-weights",     "catalog-force"};

    (void)unused;
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        struct catalog_state *state = make_state();
        struct command c = {0};
        struct apply_answer guarded;
        struct server_group group;

        build_group(&group, "third", "10.0.0.1:80");
        group.rule.down = (struct rule_column){RULE_AT_LEAST, 4};
        group.rule.up = group.rule.down;
        build_delete_node(&c, 3);
        build_commit(state, &c);
        switch (i) {
        case 0:
            build_put(&c, "web", "10.0.0.1:80")->has_expected_revision = true;
            break;
        case 1:
            build_listener(&c, "other", "192.0.2.1:80", "web");
            break;
        case 2:
            build_node(&c, 3, ROLE_VOTER);
            break;
        case 3:
            build_delete_node(&c, 1);
            build_delete_node(&c, 2);
            break;
        case 4:
            build_put(&c, "web", "203.0.113.1:80");
            break;
        case 5:
            build_put_group(&c, &group);
            break;
        case 6:
            build_weight(&c, "api", "10.0.1.1:80", 0);
            build_weight(&c, "api", "10.0.1.2:80", 0);
            build_weight(&c, "api", "10.0.1.3:80", 0);
            break;
        default:
            build_put(&c, "api", "");
            break;
        }
        catalog_check(state, &c, &guarded);
        assert_int_not_equal(guarded.err, 0);
        plant_set(plants[i]);
        struct apply_answer open = build_apply(state, &c);
        plant_set(NULL);
        if (open.err != 0) {
            fail_msg("%s: %s", plants[i], open.message.text);
        }
        server_group_close(&group);
        catalog_state_free(state);
    }
}

static void a_forgotten_request_id_is_seen(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {.request_id = {{1}}};
    struct apply_answer first;
    struct apply_answer again;

    (void)unused;
    build_put(&c, "new", "10.0.0.1:80");
    catalog_apply(state, &c, &first);
    struct command other = {0};
    build_put(&other, "new", "10.0.0.2:80");
    build_commit(state, &other);
    plant_set("catalog-request-id");
    catalog_apply(state, &c, &again);
    plant_set(NULL);
    assert_false(again.is_repeat);
    assert_int_not_equal(first.revision, again.revision);
    command_close(&c);
    catalog_state_free(state);
}

static void a_revision_that_changes_nothing_is_seen(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_put(&c, "new", "10.0.0.1:80");
    struct apply_answer made = build_apply(state, &c);
    plant_set("catalog-empty-revision");
    build_put(&c, "new", "10.0.0.1:80");
    struct apply_answer same = build_apply(state, &c);
    plant_set(NULL);
    assert_int_not_equal(made.revision, same.revision);
    catalog_state_free(state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_and_backends_that_do_not_exist),
        cmocka_unit_test(a_backend_that_is_being_removed),
        cmocka_unit_test(the_same_place_twice),
        cmocka_unit_test(the_same_backend_in_another_group_is_fine),
        cmocka_unit_test(addresses_outside_the_allowed_prefixes),
        cmocka_unit_test(prefixes_that_would_shut_out_a_backend),
        cmocka_unit_test(a_group_in_use_is_not_deleted),
        cmocka_unit_test(an_object_named_twice),
        cmocka_unit_test(members_that_cannot_be),
        cmocka_unit_test(a_node_id_is_never_used_again),
        cmocka_unit_test(keys_that_are_not_unique),
        cmocka_unit_test(rules_that_need_more_observers),
        cmocka_unit_test(updates_that_make_no_sense),
        cmocka_unit_test(commands_that_are_none),
        cmocka_unit_test(whole_commands_or_nothing),
        cmocka_unit_test(a_wrong_first_command),
#ifdef JURY_PLANTS
        cmocka_unit_test(a_guard_that_is_switched_off_is_seen),
        cmocka_unit_test(a_forgotten_request_id_is_seen),
        cmocka_unit_test(a_revision_that_changes_nothing_is_seen),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
