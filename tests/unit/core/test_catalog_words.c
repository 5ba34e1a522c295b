/* What operators say (admin states, expected revisions, retries) and the other objects of a
 * catalog. */
#include "catalog_fixture.h"

/* --- admin states --- */

static void a_drain_keeps_its_start_when_repeated(void **unused)
{
    struct catalog_state *state = build_state(3);

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    admin(state, "web", "10.0.0.1:80", ADMIN_DRAINING);
    assert_int_equal(look(state, "web", "10.0.0.1:80").drain_revision, 3);
    assert_int_equal(look(state, "web", "10.0.0.1:80").drain_timeout_ms, 300000);
    admin(state, "web", "10.0.0.1:80", ADMIN_DRAINING);
    assert_int_equal(look(state, "web", "10.0.0.1:80").drain_revision, 3);
    admin(state, "web", "10.0.0.1:80", ADMIN_ENABLED);
    assert_int_equal(look(state, "web", "10.0.0.1:80").drain_revision, 0);
    assert_int_equal(look(state, "web", "10.0.0.1:80").drain_timeout_ms, 0);
    admin(state, "web", "10.0.0.1:80", ADMIN_DRAINING);
    assert_int_equal(look(state, "web", "10.0.0.1:80").drain_revision, 5);
    catalog_state_free(state);
}

static void a_drain_timeout_is_given_once(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct backend_update *update;

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    update = build_admin(&command, "web", "10.0.0.1:80", ADMIN_DRAINING)->u.backend;
    update->has_drain_timeout = true;
    update->drain_timeout_ms = 30000;
    build_commit(state, &command);
    assert_int_equal(look(state, "web", "10.0.0.1:80").drain_timeout_ms, 30000);

    update = build_admin(&command, "web", "10.0.0.1:80", ADMIN_DRAINING)->u.backend;
    update->has_drain_timeout = true;
    update->drain_timeout_ms = 60000;
    struct apply_answer answer = build_apply(state, &command);
    assert_int_equal(answer.err, ERR_EXISTS);
    assert_string_equal(answer.message.text,
                        "backend 10.0.0.1:80 of server group \"web\" drains already, with a "
                        "timeout of 30s since revision 3: cancel that drain first");
    catalog_state_free(state);
}

static void maintenance_is_not_probed(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct catalog_backend backend;

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    admin(state, "web", "10.0.0.1:80", ADMIN_MAINTENANCE);
    backend = look(state, "web", "10.0.0.1:80");
    assert_int_equal(backend.target.slot, CATALOG_NO_SLOT);
    assert_int_equal(backend.drain_revision, 0);
    admin(state, "web", "10.0.0.1:80", ADMIN_ENABLED);
    backend = look(state, "web", "10.0.0.1:80");
    assert_int_equal(backend.target.slot, 0);
    assert_int_equal(backend.target.birth, 4); /* another target: its opinions begin anew */
    catalog_state_free(state);
}

static void weight_0_draining_and_removing_are_probed(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 10.0.0.4:80");
    build_weight(&command, "web", "10.0.0.1:80", 0); /* A25 */
    build_commit(state, &command);
    admin(state, "web", "10.0.0.2:80", ADMIN_DRAINING);
    put(state, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.4:80");
    assert_int_equal(look(state, "web", "10.0.0.1:80").target.slot, 0);
    assert_int_equal(look(state, "web", "10.0.0.2:80").target.slot, 1);
    assert_int_equal(look(state, "web", "10.0.0.3:80").target.slot, 2);
    catalog_state_free(state);
}

static void a_document_that_does_not_say_keeps_the_operators_word(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct server_group group;
    struct command command = {0};

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    admin(state, "web", "10.0.0.1:80", ADMIN_DRAINING);
    put(state, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    assert_int_equal(look(state, "web", "10.0.0.1:80").spec.admin_state, ADMIN_DRAINING);
    assert_int_equal(look(state, "web", "10.0.0.1:80").drain_revision, 3);
    build_group(&group, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    group.backends[0].admin_state = ADMIN_ENABLED;
    group.backends[1].admin_state = ADMIN_DRAINING;
    build_put_group(&command, &group);
    server_group_close(&group);
    build_commit(state, &command);
    assert_int_equal(look(state, "web", "10.0.0.1:80").spec.admin_state, ADMIN_ENABLED);
    assert_int_equal(look(state, "web", "10.0.0.1:80").drain_revision, 0);
    assert_int_equal(look(state, "web", "10.0.0.2:80").drain_revision, 5);
    catalog_state_free(state);
}

/* --- expected revisions and retries --- */

static struct apply_answer put_expecting(struct catalog_state *state, const char *name,
                                         const char *endpoints, uint64_t expected)
{
    struct command command = {0};
    struct change *change = build_put(&command, name, endpoints);

    change->has_expected_revision = true;
    change->expected_revision = expected;
    return build_apply(state, &command);
}

static void expected_revisions_are_of_the_object(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct apply_answer answer;

    (void)unused;
    put(state, "web", "10.0.0.1:80");                                                   /* 2 */
    put(state, "api", "10.0.0.2:80");                                                   /* 3 */
    assert_int_equal(put_expecting(state, "web", "10.0.0.1:80 10.0.0.3:80", 2).err, 0); /* 4 */
    answer = put_expecting(state, "web", "10.0.0.1:80", 2);
    assert_int_equal(answer.err, ERR_CONFLICT);
    assert_int_equal(answer.revision, 4);
    assert_string_equal(answer.message.text, "server group \"web\" last changed at revision 4, "
                                             "expected 2: read it again");
    answer = put_expecting(state, "web", "", 0);
    assert_string_equal(answer.message.text, "server group \"web\" exists already, last changed at "
                                             "revision 4, expected none");
    answer = put_expecting(state, "new", "", 7);
    assert_string_equal(answer.message.text,
                        "server group \"new\" does not exist, expected it at revision 7");
    assert_int_equal(put_expecting(state, "new", "", 0).err, 0);
    /* A backend's change is its group's change too. */
    admin(state, "api", "10.0.0.2:80", ADMIN_DRAINING);
    assert_int_equal(put_expecting(state, "api", "10.0.0.2:80", 3).err, ERR_CONFLICT);
    assert_int_equal(put_expecting(state, "api", "10.0.0.2:80", 6).err, 0);
    catalog_state_free(state);
}

static struct apply_answer put_with_id(struct catalog_state *state, uint32_t id, const char *group,
                                       const char *endpoints)
{
    struct command command = {0};

    memcpy(command.request_id.bytes, &id, sizeof id);
    command.request_id.bytes[15] = 1;
    build_put(&command, group, endpoints);
    return build_apply(state, &command);
}

static void a_retry_gets_the_answer_of_the_first_try(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct apply_answer first;
    struct apply_answer again;

    (void)unused;
    first = put_with_id(state, 1, "web", "10.0.0.1:80");
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    again = put_with_id(state, 1, "web", "10.0.0.1:80");
    assert_true(again.is_repeat);
    assert_int_equal(again.err, 0);
    assert_int_equal(again.revision, first.revision);
    assert_int_equal(look(state, "web", "10.0.0.2:80").life, LIFE_AVAILABLE);
    /* A refusal is kept like a success. */
    first = put_with_id(state, 2, "web", "192.0.2.1:80");
    assert_int_equal(first.err, ERR_INVALID);
    again = put_with_id(state, 2, "web", "10.0.0.1:80");
    assert_true(again.is_repeat);
    assert_int_equal(again.err, ERR_INVALID);
    assert_string_equal(again.message.text, first.message.text);
    catalog_state_free(state);
}

/* Applying a document again made a new revision each time. */
static void a_command_that_changes_nothing_makes_no_revision(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    (void)unused;
    build_put(&command, "web", "10.0.0.1:80");
    build_listener(&command, "front", "192.0.2.1:80", "web");
    struct apply_answer made = build_apply(state, &command);
    assert_int_equal(made.err, 0);
    assert_int_equal(apply_outcome(&made, 0), OUTCOME_CREATED);
    assert_int_equal(apply_outcome(&made, 1), OUTCOME_CREATED);

    command = (struct command){0};
    memcpy(command.request_id.bytes, "same", 4);
    build_put(&command, "web", "10.0.0.1:80");
    build_listener(&command, "front", "192.0.2.1:80", "web");
    struct apply_answer same = build_apply(state, &command);
    assert_int_equal(same.err, 0);
    assert_int_equal(same.revision, made.revision);
    assert_int_equal(apply_outcome(&same, 0), OUTCOME_UNCHANGED);
    assert_int_equal(apply_outcome(&same, 1), OUTCOME_UNCHANGED);

    /* One that changes something names what. */
    command = (struct command){0};
    build_put(&command, "web", "10.0.0.1:80 10.0.0.2:80");
    build_listener(&command, "front", "192.0.2.1:80", "web");
    struct apply_answer other = build_apply(state, &command);
    assert_int_equal(other.revision, made.revision + 1);
    assert_int_equal(apply_outcome(&other, 0), OUTCOME_CHANGED);
    assert_int_equal(apply_outcome(&other, 1), OUTCOME_UNCHANGED);

    /* A retry of the one that changed nothing does not take the other's change back. */
    command = (struct command){0};
    memcpy(command.request_id.bytes, "same", 4);
    build_put(&command, "web", "10.0.0.1:80");
    build_listener(&command, "front", "192.0.2.1:80", "web");
    struct apply_answer again = build_apply(state, &command);
    assert_true(again.is_repeat);
    assert_int_equal(again.revision, made.revision);
    assert_int_equal(apply_outcome(&again, 0), OUTCOME_UNCHANGED);
    assert_int_equal(look(state, "web", "10.0.0.2:80").life, LIFE_AVAILABLE);
    catalog_state_free(state);
}

static void the_last_4096_answers_are_kept(void **unused)
{
    struct catalog_state *state = build_state(3);

    (void)unused;
    for (uint32_t id = 1; id <= LIMIT_REQUEST_IDS; id++) {
        assert_false(put_with_id(state, id, "web", "").is_repeat);
    }
    assert_true(put_with_id(state, 1, "web", "").is_repeat);
    assert_false(put_with_id(state, LIMIT_REQUEST_IDS + 1, "web", "").is_repeat);
    assert_false(put_with_id(state, 1, "web", "").is_repeat); /* pushed out; now 2 is, too */
    assert_true(put_with_id(state, 3, "web", "").is_repeat);
    assert_false(put_with_id(state, 2, "web", "").is_repeat);
    catalog_state_free(state);
}

/* --- listeners, nodes, keys --- */

static void listeners_follow_their_group_by_id(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct catalog *catalog;

    (void)unused;
    /* In one command the listener may come before its group. */
    build_listener(&command, "front", "192.0.2.1:80", "web");
    build_put(&command, "web", "10.0.0.1:80");
    build_commit(state, &command);
    catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_n_listeners(catalog), 1);
    assert_int_equal(catalog_listener_at(catalog, 0)->group_id, group_of(catalog, "web")->id);
    assert_int_equal(catalog_listener_at(catalog, 0)->changed_revision, 2);
    catalog_unref(catalog);
    build_delete_listener(&command, "front");
    build_commit(state, &command);
    catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_n_listeners(catalog), 0);
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void two_listeners_may_swap_places_in_one_command(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    (void)unused;
    build_put(&command, "web", "10.0.0.1:80");
    build_listener(&command, "aa", "192.0.2.1:80", "web");
    build_listener(&command, "bb", "192.0.2.2:80", "web");
    build_commit(state, &command);
    build_listener(&command, "aa", "192.0.2.2:80", "web");
    build_listener(&command, "bb", "192.0.2.1:80", "web");
    build_commit(state, &command);
    build_delete_listener(&command, "aa");
    build_listener(&command, "cc", "192.0.2.2:80", "web");
    build_commit(state, &command);
    catalog_state_free(state);
}

static void nodes_come_and_go(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct catalog *catalog;

    (void)unused;
    build_node(&command, 9, ROLE_STANDBY);
    build_node(&command, 5, ROLE_SPARE);
    build_commit(state, &command);
    catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_n_nodes(catalog), 5);
    assert_int_equal(catalog_n_observers(catalog), 4);
    assert_int_equal(catalog_node_at(catalog, 3)->spec.node_id, 5);
    assert_int_equal(catalog_node_find(catalog, 9)->added_revision, 2);
    catalog_unref(catalog);
    build_delete_node(&command, 1);
    build_node(&command, 9, ROLE_VOTER);
    build_commit(state, &command);
    catalog = catalog_state_catalog(state);
    assert_null(catalog_node_find(catalog, 1));
    assert_int_equal(catalog_node_find(catalog, 9)->added_revision, 2);
    assert_int_equal(catalog_node_find(catalog, 9)->changed_revision, 3);
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void keys_come_and_go(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct catalog *catalog;

    (void)unused;
    build_key(&command, "zoe", KEY_ROLE_VIEWER, 7);
    build_key(&command, "ann", KEY_ROLE_OPERATOR, 8);
    build_commit(state, &command);
    build_delete_key(&command, "root");
    build_commit(state, &command);
    catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_n_keys(catalog), 2);
    assert_string_equal(catalog_key_at(catalog, 0)->spec.name, "ann");
    assert_string_equal(catalog_key_at(catalog, 1)->spec.name, "zoe");
    catalog_unref(catalog);
    catalog_state_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drain_keeps_its_start_when_repeated),
        cmocka_unit_test(a_drain_timeout_is_given_once),
        cmocka_unit_test(maintenance_is_not_probed),
        cmocka_unit_test(weight_0_draining_and_removing_are_probed),
        cmocka_unit_test(a_document_that_does_not_say_keeps_the_operators_word),
        cmocka_unit_test(expected_revisions_are_of_the_object),
        cmocka_unit_test(a_retry_gets_the_answer_of_the_first_try),
        cmocka_unit_test(a_command_that_changes_nothing_makes_no_revision),
        cmocka_unit_test(the_last_4096_answers_are_kept),
        cmocka_unit_test(listeners_follow_their_group_by_id),
        cmocka_unit_test(two_listeners_may_swap_places_in_one_command),
        cmocka_unit_test(nodes_come_and_go),
        cmocka_unit_test(keys_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
