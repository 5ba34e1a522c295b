/* What commands do to the catalog: life of groups, backends, listeners, nodes and keys. */
#include "agent/core/catalog_parts.h"
#include "catalog_fixture.h"

/* --- the cluster --- */

static void an_empty_catalog_has_revision_0_and_waits_for_init(void **unused)
{
    struct catalog_state *state = catalog_state_new();
    struct catalog *catalog = catalog_state_catalog(state);
    struct command command = {0};

    (void)unused;
    assert_int_equal(catalog_revision(catalog), 0);
    assert_int_equal(catalog_n_groups(catalog) + catalog_n_nodes(catalog), 0);
    assert_int_equal(catalog_settings(catalog)->vote_interval_ms, 1000);
    catalog_unref(catalog);
    build_put(&command, "web", "");
    assert_int_equal(build_apply(state, &command).err, ERR_NOTREADY);
    catalog_state_free(state);
}

static void init_makes_the_cluster(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct catalog *catalog = catalog_state_catalog(state);

    (void)unused;
    assert_int_equal(catalog_revision(catalog), 1);
    assert_int_equal(catalog->wall_ms, 1000);
    assert_memory_equal(catalog_cluster_id(catalog).bytes, "0123456789abcdef", 16);
    assert_int_equal(catalog_n_nodes(catalog), 3);
    assert_int_equal(catalog_n_observers(catalog), 3);
    assert_int_equal(catalog_node_find(catalog, 2)->spec.role, ROLE_VOTER);
    assert_int_equal(catalog_node_find(catalog, 2)->added_revision, 1);
    assert_int_equal(catalog_key_find(catalog, "root")->spec.role, KEY_ROLE_ADMIN);
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void wall_time_never_goes_back(void **unused)
{
    static const struct {
        int64_t command_ms, catalog_ms;
    } rows[] = {
        {5000, 5000}, {3600000, 3600000}, {1000, 3600000}, {-5, 3600000}, {3600001, 3600001}};
    struct catalog_state *state = build_state(1);

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct command command = {.wall_ms = rows[i].command_ms};

        build_put(&command, "web", i % 2 == 0 ? "10.0.0.1:80" : "10.0.0.2:80");
        build_commit(state, &command);
        struct catalog *catalog = catalog_state_catalog(state);
        assert_int_equal(catalog->wall_ms, rows[i].catalog_ms);
        catalog_unref(catalog);
    }
    catalog_state_free(state);
}

static void a_held_catalog_does_not_change(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct catalog *old;
    struct hash128 hash;

    (void)unused;
    put(state, "web", "10.0.0.1:80");
    old = catalog_state_catalog(state);
    hash = catalog_state_hash(old);
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    put(state, "api", "10.0.0.9:80");
    assert_int_equal(catalog_revision(old), 2);
    assert_int_equal(catalog_n_groups(old), 1);
    assert_int_equal(group_of(old, "web")->n_backends, 1);
    assert_int_equal(catalog_n_slots(old), 1);
    struct hash128 still = catalog_state_hash(old);
    assert_memory_equal(&hash, &still, sizeof hash);
    catalog_state_free(state);
    assert_string_equal(catalog_group_at(old, 0)->spec.name, "web");
    catalog_unref(old);
}

/* --- groups and backends --- */

static void a_new_group_gets_ids_rows_and_targets(void **unused)
{
    struct catalog *catalog = build_catalog(3, "web", "10.0.0.2:80 10.0.0.1:80");
    const struct catalog_group *web = group_of(catalog, "web");

    (void)unused;
    assert_int_equal(catalog_revision(catalog), 2);
    assert_int_equal(web->changed_revision, 2);
    assert_int_equal(web->row.row, 0);
    assert_int_equal(web->row.birth, 2);
    assert_int_equal(web->n_backends, 2);
    assert_null(web->spec.backends);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(web->backends[i].row.row, 1 + i);
        assert_int_equal(web->backends[i].id, 1 + i);
        assert_int_equal(web->backends[i].target.slot, i);
        assert_int_equal(web->backends[i].target.birth, 2);
        assert_int_equal(web->backends[i].life, LIFE_AVAILABLE);
        assert_int_equal(web->backends[i].spec.admin_state, ADMIN_ENABLED);
        assert_int_equal(web->backends[i].drain_revision, 0);
    }
    assert_int_equal(catalog_n_rows(catalog), 3);
    assert_int_equal(catalog_n_slots(catalog), 2);
    catalog_unref(catalog);
}

static void the_same_document_twice_changes_nothing(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct catalog *before;
    struct catalog *after;

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    before = catalog_state_catalog(state);
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    after = catalog_state_catalog(state);
    assert_int_equal(catalog_revision(after), 2);
    assert_ptr_equal(group_of(before, "web"), group_of(after, "web"));
    catalog_unref(before);
    catalog_unref(after);
    catalog_state_free(state);
}

static void a_removed_backend_stays_until_its_purge(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct catalog_backend before;
    struct catalog_backend removed;
    struct catalog *catalog;

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    before = look(state, "web", "10.0.0.2:80");
    put(state, "web", "10.0.0.1:80");
    removed = look(state, "web", "10.0.0.2:80");
    assert_int_equal(removed.life, LIFE_REMOVING);
    assert_int_equal(removed.drain_revision, 3);
    assert_int_equal(removed.drain_timeout_ms, 300000);
    assert_int_equal(removed.row.row, before.row.row);
    assert_int_equal(removed.target.slot, before.target.slot);
    purge(state, "web", "10.0.0.2:80");
    catalog = catalog_state_catalog(state);
    assert_int_equal(group_of(catalog, "web")->n_backends, 1);
    assert_int_equal(group_of(catalog, "web")->changed_revision, 3); /* a purge does not count */
    assert_int_equal(catalog_n_slots(catalog), 1);
    assert_int_equal(catalog_n_rows(catalog), 2);
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void a_backend_added_again_while_removing_is_the_same_one(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct catalog_backend before;
    struct catalog_backend again;

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    before = look(state, "web", "10.0.0.2:80");
    put(state, "web", "10.0.0.1:80");
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    again = look(state, "web", "10.0.0.2:80");
    assert_int_equal(again.life, LIFE_AVAILABLE);
    assert_int_equal(again.drain_revision, 0);
    assert_int_equal(again.id, before.id);
    assert_int_equal(again.row.row, before.row.row);
    assert_int_equal(again.row.birth, before.row.birth);
    assert_int_equal(again.target.slot, before.target.slot);
    assert_int_equal(again.target.birth, before.target.birth);
    catalog_state_free(state);
}

/* The leader judged a removal that is no longer the running one. */
static void a_late_purge_does_nothing(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command early = {0};
    struct catalog *catalog;

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    put(state, "web", "10.0.0.1:80");
    catalog = catalog_state_catalog(state);
    build_purge(&early, catalog, "web", "10.0.0.2:80");
    catalog_unref(catalog);
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");

    struct apply_answer answer;
    catalog_apply(state, &early, &answer);
    assert_int_equal(answer.err, 0);
    assert_int_equal(look(state, "web", "10.0.0.2:80").life, LIFE_AVAILABLE);
    put(state, "web", "10.0.0.1:80");
    catalog_apply(state, &early, &answer);
    assert_int_equal(answer.err, 0);
    assert_int_equal(look(state, "web", "10.0.0.2:80").life, LIFE_REMOVING);
    command_close(&early);
    purge(state, "web", "10.0.0.9:80");
    purge(state, "none", "10.0.0.9:80");
    catalog_state_free(state);
}

static void a_deleted_group_goes_with_its_last_purge(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct catalog *catalog;

    (void)unused;
    put(state, "other", "10.0.0.9:80");
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    build_delete_group(&command, "web");
    build_commit(state, &command);
    catalog = catalog_state_catalog(state);
    assert_true(group_of(catalog, "web")->is_deleted);
    assert_int_equal(backend_of(catalog, "web", "10.0.0.1:80")->life, LIFE_REMOVING);
    assert_int_equal(catalog_n_rows(catalog), 5);
    catalog_unref(catalog);
    purge(state, "web", "10.0.0.1:80");
    assert_true(is_there(state, "web"));
    purge(state, "web", "10.0.0.2:80");
    assert_false(is_there(state, "web"));
    catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_n_rows(catalog), 2);
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void a_group_without_backends_goes_at_once(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    (void)unused;
    put(state, "other", "");
    put(state, "web", "");
    build_delete_group(&command, "web");
    build_commit(state, &command);
    assert_false(is_there(state, "web"));
    catalog_state_free(state);
}

static void a_deleted_group_that_is_put_again_lives_on(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct catalog *before;
    struct catalog *after;

    (void)unused;
    put(state, "other", "10.0.0.9:80");
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    before = catalog_state_catalog(state);
    build_delete_group(&command, "web");
    build_commit(state, &command);
    build_put(&command, "web", "10.0.0.1:80")->has_expected_revision = true; /* must not exist */
    build_commit(state, &command);
    after = catalog_state_catalog(state);
    assert_false(group_of(after, "web")->is_deleted);
    assert_int_equal(group_of(after, "web")->id, group_of(before, "web")->id);
    assert_int_equal(group_of(after, "web")->row.row, group_of(before, "web")->row.row);
    assert_int_equal(backend_of(after, "web", "10.0.0.1:80")->life, LIFE_AVAILABLE);
    assert_int_equal(backend_of(after, "web", "10.0.0.2:80")->life, LIFE_REMOVING);
    catalog_unref(before);
    catalog_unref(after);
    catalog_state_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_catalog_has_revision_0_and_waits_for_init),
        cmocka_unit_test(init_makes_the_cluster),
        cmocka_unit_test(wall_time_never_goes_back),
        cmocka_unit_test(a_held_catalog_does_not_change),
        cmocka_unit_test(a_new_group_gets_ids_rows_and_targets),
        cmocka_unit_test(the_same_document_twice_changes_nothing),
        cmocka_unit_test(a_removed_backend_stays_until_its_purge),
        cmocka_unit_test(a_backend_added_again_while_removing_is_the_same_one),
        cmocka_unit_test(a_late_purge_does_nothing),
        cmocka_unit_test(a_deleted_group_goes_with_its_last_purge),
        cmocka_unit_test(a_group_without_backends_goes_at_once),
        cmocka_unit_test(a_deleted_group_that_is_put_again_lives_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
