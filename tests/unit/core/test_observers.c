/* Who is in n, and when an added observer enters it (spec.md 5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "agent/core/observers.h"
#include "tests/lib/catalog_builder.h"

#define SECOND UINT64_C(1000000000)

struct fixture {
    struct catalog_state *state;
    struct observers observers;
    uint64_t removed;
};

static bool follow(struct fixture *f, uint64_t now_ns)
{
    struct catalog *catalog = catalog_state_catalog(f->state);
    bool changed = observers_follow(&f->observers, catalog, now_ns, &f->removed);

    catalog_unref(catalog);
    return changed;
}

static void put_node(struct fixture *f, uint64_t node_id, enum raft_role role)
{
    struct command command = {0};

    build_node(&command, node_id, role);
    build_commit(f->state, &command);
}

static void delete_node(struct fixture *f, uint64_t node_id)
{
    struct command command = {0};

    build_delete_node(&command, node_id);
    build_commit(f->state, &command);
}

static void begin(struct fixture *f)
{
    *f = (struct fixture){.state = build_state(3)};
    observers_init(&f->observers, 1);
}

static void those_of_the_first_catalog_count_at_once(void **state)
{
    (void)state;
    struct fixture f;

    begin(&f);
    assert_int_equal(observers_n(&f.observers), 0);
    put_node(&f, 4, ROLE_STANDBY);
    put_node(&f, 5, ROLE_SPARE);
    assert_true(follow(&f, SECOND));
    assert_int_equal(observers_n(&f.observers), 4); /* a spare does not observe */
    assert_true(observers_self_counts(&f.observers));
    assert_int_equal(__builtin_popcountll(observers_peers(&f.observers)), 3);
    assert_int_not_equal(observers_index(&f.observers, 5), OBSERVER_NO_INDEX);
    assert_int_equal(observers_index(&f.observers, 9), OBSERVER_NO_INDEX);
    assert_false(follow(&f, SECOND));
    catalog_state_free(f.state);
}

static void added_observer_enters_with_its_first_hello(void **state)
{
    (void)state;
    struct fixture f;

    begin(&f);
    follow(&f, SECOND);
    put_node(&f, 4, ROLE_VOTER);
    assert_false(follow(&f, 2 * SECOND));
    assert_int_equal(observers_n(&f.observers), 3);
    assert_true(observers_heard(&f.observers, 4));
    assert_int_equal(observers_n(&f.observers), 4);
    assert_false(observers_heard(&f.observers, 4));
    assert_false(observers_heard(&f.observers, 9));
    assert_true(observers_next_ns(&f.observers) == UINT64_MAX);
    catalog_state_free(f.state);
}

static void added_observer_enters_after_a_minute_without_hello(void **state)
{
    (void)state;
    struct fixture f;

    begin(&f);
    follow(&f, SECOND);
    put_node(&f, 4, ROLE_STANDBY);
    follow(&f, 2 * SECOND);
    assert_true(observers_next_ns(&f.observers) == 62 * SECOND);
    assert_false(observers_enter_due(&f.observers, 62 * SECOND - 1));
    assert_true(observers_enter_due(&f.observers, 62 * SECOND));
    assert_int_equal(observers_n(&f.observers), 4);
    catalog_state_free(f.state);
}

static void removed_or_demoted_observer_leaves_at_once(void **state)
{
    (void)state;
    struct fixture f;

    begin(&f);
    put_node(&f, 4, ROLE_STANDBY);
    follow(&f, SECOND);
    uint32_t index = observers_index(&f.observers, 4);
    put_node(&f, 4, ROLE_SPARE);
    assert_true(follow(&f, SECOND));
    assert_true(f.removed == UINT64_C(1) << index);
    assert_int_equal(observers_n(&f.observers), 3);
    put_node(&f, 4, ROLE_STANDBY); /* back: it is an added observer again */
    follow(&f, SECOND);
    assert_int_equal(observers_n(&f.observers), 3);

    delete_node(&f, 4);
    put_node(&f, 5, ROLE_STANDBY);
    follow(&f, SECOND);
    assert_true(f.removed == UINT64_C(1) << index);
    assert_int_equal(observers_index(&f.observers, 4), OBSERVER_NO_INDEX);
    assert_int_equal(observers_index(&f.observers, 5), index); /* places are used again */
    catalog_state_free(f.state);
}

static void own_node_counts_as_soon_as_the_catalog_says_so(void **state)
{
    (void)state;
    struct fixture f;

    begin(&f);
    observers_init(&f.observers, 7);
    follow(&f, SECOND);
    assert_false(observers_self_counts(&f.observers));
    assert_int_equal(__builtin_popcountll(observers_peers(&f.observers)), 3);
    put_node(&f, 7, ROLE_STANDBY);
    assert_true(follow(&f, SECOND));
    assert_true(observers_self_counts(&f.observers));
    assert_int_equal(observers_n(&f.observers), 4);
    catalog_state_free(f.state);
}

static void put_zone(struct fixture *f, uint64_t node_id, const char *zone)
{
    struct command command = {0};
    struct change *change = build_node(&command, node_id, ROLE_VOTER);

    snprintf(change->u.node->zone, sizeof change->u.node->zone, "%s", zone);
    build_commit(f->state, &command);
}

/* N23. A change of a zone is told like one of n, as verdicts may hang on it. */
static void observers_are_counted_by_zone_and_those_without_are_one_together(void **state)
{
    (void)state;
    struct fixture f;

    begin(&f);
    assert_true(follow(&f, SECOND));
    assert_int_equal(f.observers.zones.n_zones, 1);
    assert_true(f.observers.zones.members[0] == 7);
    put_zone(&f, 1, "a");
    put_zone(&f, 4, "a");
    assert_true(follow(&f, SECOND));
    assert_int_equal(f.observers.zones.n_zones, 2); /* node 4 is not in n yet */
    assert_true(f.observers.zones.members[0] == 1);
    assert_true(f.observers.zones.members[1] == 6);
    assert_true(observers_heard(&f.observers, 4));
    assert_true(f.observers.zones.members[0] == 9);
    assert_true(observers_self_bit(&f.observers) == 1);

    put_zone(&f, 2, "b");
    assert_true(follow(&f, SECOND));
    assert_int_equal(f.observers.zones.n_zones, 3);
    assert_false(follow(&f, SECOND));
    delete_node(&f, 2);
    assert_true(follow(&f, SECOND));
    assert_int_equal(f.observers.zones.n_zones, 2);
    catalog_state_free(f.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_the_first_catalog_count_at_once),
        cmocka_unit_test(added_observer_enters_with_its_first_hello),
        cmocka_unit_test(added_observer_enters_after_a_minute_without_hello),
        cmocka_unit_test(removed_or_demoted_observer_leaves_at_once),
        cmocka_unit_test(own_node_counts_as_soon_as_the_catalog_says_so),
        cmocka_unit_test(observers_are_counted_by_zone_and_those_without_are_one_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
