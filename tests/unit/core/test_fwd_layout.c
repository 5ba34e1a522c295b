#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/fwd_layout.h"
#include "agent/core/select.h"
#include "agent/table/table_layout.h"
#include "tests/lib/catalog_builder.h"

static void layout_of(struct catalog_state *state, const struct fwd_layout *last,
                      struct fwd_layout *ret_layout, struct table_layout *ret_view)
{
    struct catalog *catalog = catalog_state_catalog(state);
    struct errmsg err = {{0}};

    if (fwd_layout_from_catalog(catalog, last, ret_layout, &err) != 0 ||
        table_layout_check(ret_layout->bytes, ret_layout->n_bytes, "layout", ret_view, &err) != 0) {
        fail_msg("%s", err.text);
    }
    catalog_unref(catalog);
}

static void catalog_becomes_listeners_scopes_and_members(void **state)
{
    (void)state;
    struct catalog_state *catalog = build_state(1);
    struct command command = {.n_changes = 0};
    build_put(&command, "web", "10.0.0.2:80 10.0.0.1:80");
    build_put(&command, "api", "[fd00::1]:8080");
    build_listener(&command, "front", "10.1.1.1:443", "web");
    uint64_t revision = build_commit(catalog, &command);
    struct fwd_layout layout;
    struct table_layout view;

    layout_of(catalog, NULL, &layout, &view);

    assert_int_equal(view.header->revision, revision);
    assert_int_equal(view.header->n_scopes, 2);
    assert_int_equal(view.header->n_members, 3);
    assert_int_equal(view.header->n_listeners, 1);
    const struct jury_scope *api = table_layout_scope(&view, 0);
    const struct jury_scope *web = table_layout_scope(&view, 1);
    assert_string_equal(api->name, "api");
    assert_string_equal(web->name, "web");
    assert_int_equal(web->n_members, 2);
    assert_int_equal(web->n_slots, 251);
    assert_int_equal(web->scheduler, JURY_SCHEDULER_WRR); /* nlb's default */
    assert_int_equal(web->idle_timeout_ms, 900000);
    assert_int_equal(web->all_bad, 1);
    const struct jury_member *first = table_layout_member(&view, web->first_member);
    const struct jury_member *second = table_layout_member(&view, web->first_member + 1);
    assert_memory_equal(first->at.address, "\x0a\x00\x00\x01", 4);
    assert_memory_equal(second->at.address, "\x0a\x00\x00\x02", 4);
    assert_int_equal(first->weight, 100);
    assert_int_equal(first->is_going, 0);
    assert_true(first->row != second->row && first->row != web->row);
    const struct jury_member *six = table_layout_member(&view, api->first_member);
    assert_int_equal(six->at.family, 6);
    assert_int_equal(six->at.port, 8080);
    const struct jury_listener *front = table_layout_listener(&view, 0);
    assert_string_equal(front->name, "front");
    assert_int_equal(front->scope, 1);
    assert_int_equal(front->at.port, 443);
    assert_int_equal(front->port_last, 443);
    fwd_layout_close(&layout);
    catalog_state_free(catalog);
}

static void an_empty_catalog_becomes_an_empty_layout(void **state)
{
    (void)state;
    struct catalog_state *catalog = build_state(1);
    struct fwd_layout layout;
    struct table_layout view;

    layout_of(catalog, NULL, &layout, &view);

    assert_int_equal(view.header->n_scopes, 0);
    assert_int_equal(view.header->n_slots, 0);
    fwd_layout_close(&layout);
    catalog_state_free(catalog);
}

static void a_removed_backend_stays_as_going_with_its_row_until_the_purge(void **state)
{
    (void)state;
    struct catalog_state *catalog = build_state(1);
    struct command put = {.n_changes = 0};
    struct command smaller = {.n_changes = 0};
    struct fwd_layout before;
    struct fwd_layout after;
    struct table_layout view_before;
    struct table_layout view_after;
    build_put(&put, "web", "10.0.0.1:80 10.0.0.2:80");
    build_commit(catalog, &put);
    layout_of(catalog, NULL, &before, &view_before);
    build_put(&smaller, "web", "10.0.0.1:80");
    build_commit(catalog, &smaller);

    layout_of(catalog, &before, &after, &view_after);

    const struct jury_scope *was = table_layout_scope(&view_before, 0);
    const struct jury_scope *web = table_layout_scope(&view_after, 0);
    assert_int_equal(web->n_members, 2);
    assert_int_equal(table_layout_member(&view_after, 0)->is_going, 0);
    assert_int_equal(table_layout_member(&view_after, 1)->is_going, 1);
    assert_int_equal(table_layout_member(&view_after, 1)->row,
                     table_layout_member(&view_before, 1)->row);
    assert_true(table_layout_member(&view_after, 1)->birth ==
                table_layout_member(&view_before, 1)->birth);
    /* So the selection array does not move either, before the row is purged. */
    assert_memory_equal(table_layout_slots(&view_after, web), table_layout_slots(&view_before, was),
                        web->n_slots * sizeof(uint16_t));
    fwd_layout_close(&before);
    fwd_layout_close(&after);
    catalog_state_free(catalog);
}

static void the_last_layout_saves_work_and_changes_no_byte(void **state)
{
    (void)state;
    struct catalog_state *catalog = build_state(1);
    struct command first = {.n_changes = 0};
    struct command second = {.n_changes = 0};
    struct fwd_layout last;
    struct fwd_layout fresh;
    struct fwd_layout helped;
    struct table_layout view;
    build_put(&first, "aa", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    build_put(&first, "bb", "10.0.0.1:81 10.0.0.2:81");
    build_put(&first, "cc", "10.0.0.1:82");
    build_commit(catalog, &first);
    layout_of(catalog, NULL, &last, &view);
    build_put(&second, "ab", "10.0.0.9:80");
    build_put(&second, "bb", "10.0.0.1:81 10.0.0.2:81 10.0.0.3:81");
    build_weight(&second, "cc", "10.0.0.1:82", 7);
    build_commit(catalog, &second);

    layout_of(catalog, NULL, &fresh, &view);
    layout_of(catalog, &last, &helped, &view);

    assert_int_equal(fresh.n_bytes, helped.n_bytes);
    assert_memory_equal(fresh.bytes, helped.bytes, fresh.n_bytes);
    fwd_layout_close(&last);
    fwd_layout_close(&fresh);
    fwd_layout_close(&helped);
    catalog_state_free(catalog);
}

static void select_ids_depend_on_the_address_and_the_cluster_alone(void **state)
{
    (void)state;
    struct catalog_state *catalog = build_state(1);
    struct command command = {.n_changes = 0};
    struct fwd_layout layout;
    struct table_layout view;
    build_put(&command, "aa", "10.0.0.1:80");
    build_put(&command, "bb", "10.0.0.1:80 10.0.0.1:81");
    build_commit(catalog, &command);

    layout_of(catalog, NULL, &layout, &view);

    assert_true(table_layout_member(&view, 0)->select_id ==
                table_layout_member(&view, 1)->select_id);
    assert_true(table_layout_member(&view, 1)->select_id !=
                table_layout_member(&view, 2)->select_id);
    fwd_layout_close(&layout);
    catalog_state_free(catalog);
}

static void endpoints_come_back_as_they_went_in(void **state)
{
    (void)state;
    static const char *const rows[] = {"192.0.2.1:80", "[2001:db8::10]:65535", "0.0.0.0:1"};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct endpoint from = build_endpoint(rows[i]);
        struct endpoint back;
        struct jury_endpoint table;

        fwd_endpoint_put(&from, &table);
        fwd_endpoint_get(&table, &back);
        assert_int_equal(endpoint_compare(&from, &back), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(catalog_becomes_listeners_scopes_and_members),
        cmocka_unit_test(an_empty_catalog_becomes_an_empty_layout),
        cmocka_unit_test(a_removed_backend_stays_as_going_with_its_row_until_the_purge),
        cmocka_unit_test(the_last_layout_saves_work_and_changes_no_byte),
        cmocka_unit_test(select_ids_depend_on_the_address_and_the_cluster_alone),
        cmocka_unit_test(endpoints_come_back_as_they_went_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
