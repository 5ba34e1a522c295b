/* Target slots, rows, and what vote chunks say about them (design.md 4, "Target slots"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/prng.h"
#include "common/model/profile.h"
#include "tests/lib/catalog_builder.h"

static void put(struct catalog_state *state, const char *name, const char *endpoints)
{
    struct command command = {0};

    build_put(&command, name, endpoints);
    build_commit(state, &command);
}

static struct catalog_backend look(struct catalog_state *state, const char *group, const char *at)
{
    struct catalog *catalog = catalog_state_catalog(state);
    struct endpoint endpoint = build_endpoint(at);
    struct catalog_backend backend =
        *catalog_backend_find(catalog_group_find(catalog, group), &endpoint);

    catalog_unref(catalog);
    return backend;
}

static void put_with_check(struct catalog_state *state, const char *name, const char *endpoints,
                           void (*change)(struct server_group *))
{
    struct command command = {0};
    struct server_group group;

    build_group(&group, name, endpoints);
    change(&group);
    build_put_group(&command, &group);
    server_group_close(&group);
    build_commit(state, &command);
}

static void none(struct server_group *group)
{
    (void)group;
}

static void slower(struct server_group *group)
{
    group->check.interval_ms++;
}

static void stricter(struct server_group *group)
{
    group->check.unhealthy_threshold++;
}

static void other_port(struct server_group *group)
{
    group->check.port = 8080;
}

static void same_port(struct server_group *group)
{
    group->check.port = 80;
}

static void as_http(struct server_group *group)
{
    profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP, CHECK_TYPE_HTTP, &group->check);
}

static void other_code(struct server_group *group)
{
    as_http(group);
    http_codes_add(&group->check.http.expect, 404, 404);
}

static void other_source(struct server_group *group)
{
    group->check.source = CHECK_SOURCE_SHARED_SPACE;
}

static void off(struct server_group *group)
{
    group->check.is_enabled = false;
}

/* N19: groups that agree in all of it share one target; one different field makes two. */
static void equal_definitions_share_a_target(void **unused)
{
    static const struct {
        void (*change)(struct server_group *);
        bool shares;
    } rows[] = {{none, true},        {same_port, true},     {slower, false},
                {stricter, false},   {other_port, false},   {as_http, false},
                {other_code, false}, {other_source, false}, {off, false}};

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct catalog_state *state = build_state(3);

        put(state, "aa", "10.0.0.1:80");
        put_with_check(state, "bb", "10.0.0.1:80", rows[i].change);
        struct catalog_backend a = look(state, "aa", "10.0.0.1:80");
        struct catalog_backend b = look(state, "bb", "10.0.0.1:80");
        assert_int_equal(a.target.slot == b.target.slot, rows[i].shares);
        assert_int_not_equal(a.row.row, b.row.row);
        catalog_state_free(state);
    }
}

static void two_local(struct server_group *group)
{
    build_check(group, "port", CHECK_TYPE_TCP, 0, CHECK_LOCAL);
    build_check(group, "page", CHECK_TYPE_HTTP, 81, CHECK_LOCAL);
}

static void two_local_and_one(struct server_group *group)
{
    two_local(group);
    build_check(group, "db", CHECK_TYPE_TCP, 5432, CHECK_DEPENDENCY);
}

static void renamed(struct server_group *group)
{
    two_local(group);
    strcpy(group->checks[0].name, "tcp");
}

static void any_of_two(struct server_group *group)
{
    two_local(group);
    group->pass.kind = RULE_ANY;
}

static void turned_round(struct server_group *group)
{
    build_check(group, "page", CHECK_TYPE_HTTP, 81, CHECK_LOCAL);
    build_check(group, "port", CHECK_TYPE_TCP, 0, CHECK_LOCAL);
}

static void on_another_port(struct server_group *group)
{
    two_local(group);
    group->checks[1].check.port = 82;
    group_settle_checks(group);
}

static void one_local(struct server_group *group)
{
    build_check(group, "port", CHECK_TYPE_TCP, 0, CHECK_LOCAL);
    build_check(group, "db", CHECK_TYPE_TCP, 5432, CHECK_DEPENDENCY);
}

static struct target_id part_of(struct catalog_state *state, const char *name, const char *at,
                                unsigned index)
{
    struct catalog *catalog = catalog_state_catalog(state);
    struct endpoint endpoint = build_endpoint(at);
    const struct catalog_group *group = catalog_group_find(catalog, name);
    struct target_id part = catalog_parts_of(group, catalog_backend_find(group, &endpoint))[index];

    catalog_unref(catalog);
    return part;
}

static unsigned count_targets(struct catalog_state *state, unsigned *ret_n_users)
{
    struct catalog *catalog = catalog_state_catalog(state);
    unsigned n = 0;

    *ret_n_users = 0;
    for (uint32_t slot = 0; slot < catalog_n_slots(catalog); slot++) {
        const struct catalog_target *target = catalog_target_at(catalog, slot);

        n += target != NULL;
        *ret_n_users += target == NULL ? 0 : target->n_users;
    }
    catalog_unref(catalog);
    return n;
}

/* N20: a target for each check, and one that nobody probes for the vote. */
static void several_checks_make_a_target_each_and_one_of_the_vote(void **unused)
{
    struct catalog_state *state = build_state(3);
    unsigned n_users;

    (void)unused;
    put_with_check(state, "aa", "10.0.0.1:80 10.0.0.2:80", two_local_and_one);
    assert_int_equal(count_targets(state, &n_users), 8);
    assert_int_equal(n_users, 8);
    struct catalog *catalog = catalog_state_catalog(state);
    struct catalog_backend a = look(state, "aa", "10.0.0.1:80");
    const struct catalog_target *vote = catalog_target_at(catalog, a.target.slot);
    const struct catalog_target *page =
        catalog_target_at(catalog, part_of(state, "aa", "10.0.0.1:80", 1).slot);
    assert_int_equal(vote->check->type, CHECK_TYPE_NONE);
    assert_int_equal(vote->to.port, 80);
    assert_int_equal(page->check->type, CHECK_TYPE_HTTP);
    assert_int_equal(page->to.port, 81);
    catalog_unref(catalog);

    /* One local check is the vote by itself. */
    put_with_check(state, "aa", "10.0.0.1:80", one_local);
    a = look(state, "aa", "10.0.0.1:80");
    assert_int_equal(a.target.slot, part_of(state, "aa", "10.0.0.1:80", 0).slot);
    catalog_state_free(state);
}

static void equal_lists_share_their_targets(void **unused)
{
    static const struct {
        void (*change)(struct server_group *);
        bool shares_vote;
        unsigned n_targets; /* with those of two_local: three */
    } rows[] = {
        {two_local, true, 3},   {two_local_and_one, true, 4}, {renamed, true, 3},
        {any_of_two, false, 4}, {turned_round, false, 4},     {on_another_port, false, 5},
        {none, false, 3},       {as_http, false, 4},          {one_local, false, 4},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct catalog_state *state = build_state(3);
        unsigned n_users;

        put_with_check(state, "aa", "10.0.0.1:80", two_local);
        put_with_check(state, "bb", "10.0.0.1:80", rows[i].change);
        struct catalog_backend a = look(state, "aa", "10.0.0.1:80");
        struct catalog_backend b = look(state, "bb", "10.0.0.1:80");
        assert_int_equal(a.target.slot == b.target.slot, rows[i].shares_vote);
        assert_int_equal(count_targets(state, &n_users), rows[i].n_targets);
        catalog_state_free(state);
    }
}

static void targets_of_a_list_come_and_go_with_it(void **unused)
{
    static void (*const changes[])(struct server_group *) = {
        two_local, two_local_and_one, none, one_local, any_of_two, off, on_another_port};
    static const unsigned n_targets[] = {6, 8, 2, 4, 6, 0, 6};
    struct catalog_state *state = build_state(3);
    unsigned n_users;

    (void)unused;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        put_with_check(state, "aa", "10.0.0.1:80 10.0.0.2:80", changes[i]);
        assert_int_equal(count_targets(state, &n_users), n_targets[i]);
    }
    /* In maintenance none of them is probed. */
    struct command command = {0};
    build_admin(&command, "aa", "10.0.0.1:80", ADMIN_MAINTENANCE);
    build_commit(state, &command);
    assert_int_equal(count_targets(state, &n_users), 3);
    assert_int_equal(part_of(state, "aa", "10.0.0.1:80", 0).slot, CATALOG_NO_SLOT);
    catalog_state_free(state);
}

static void what_is_not_the_check_never_touches_a_target(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct server_group group;
    struct catalog_backend before;
    struct catalog_backend after;

    (void)unused;
    put(state, "web", "10.0.0.1:80 10.0.0.2:80");
    before = look(state, "web", "10.0.0.1:80");
    build_group(&group, "web", "10.0.0.1:80 10.0.0.2:80");
    group.scheduler = SCHEDULER_5_TUPLE;
    group.rule.down.kind = group.rule.up.kind = RULE_MAJORITY;
    group.drain.is_on = true;
    group.all_bad = ALL_BAD_FAIL_CLOSED;
    group.idle_timeout_ms = 5000;
    group.n_labels = 1;
    strcpy(group.labels[0].key, "team");
    group.backends[0].weight = 7;
    strcpy(group.backends[0].description, "the first");
    build_put_group(&command, &group);
    build_commit(state, &command);
    server_group_close(&group);
    after = look(state, "web", "10.0.0.1:80");
    assert_int_equal(after.spec.weight, 7);
    assert_int_equal(after.target.slot, before.target.slot);
    assert_int_equal(after.target.birth, before.target.birth);
    assert_int_equal(after.row.row, before.row.row);
    assert_int_equal(after.row.birth, before.row.birth);
    catalog_state_free(state);
}

static void the_lowest_free_slot_is_given_with_its_birth(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct catalog_backend backend;

    (void)unused;
    put(state, "aa", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");                    /* slots 0 1 2 */
    put(state, "bb", "10.0.0.9:80");                                            /* slot 3 */
    put_with_check(state, "aa", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80", slower); /* revision 4 */
    /* The old three came free first. */
    for (unsigned i = 0; i < 3; i++) {
        char at[32];

        sprintf(at, "10.0.0.%u:80", i + 1);
        backend = look(state, "aa", at);
        assert_int_equal(backend.target.slot, i);
        assert_int_equal(backend.target.birth, 4);
    }
    backend = look(state, "bb", "10.0.0.9:80");
    assert_int_equal(backend.target.slot, 3);
    assert_int_equal(backend.target.birth, 3);
    catalog_state_free(state);
}

static void a_target_that_moves_between_groups_keeps_its_slot(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct catalog_backend before;
    struct catalog_backend after;

    (void)unused;
    put(state, "aa", "10.0.0.1:80 10.0.0.2:80");
    before = look(state, "aa", "10.0.0.2:80");
    build_admin(&command, "aa", "10.0.0.2:80", ADMIN_MAINTENANCE);
    build_put(&command, "bb", "10.0.0.2:80");
    build_commit(state, &command);
    after = look(state, "bb", "10.0.0.2:80");
    assert_int_equal(after.target.slot, before.target.slot);
    assert_int_equal(after.target.birth, before.target.birth);
    catalog_state_free(state);
}

static void two_new_users_of_one_definition_get_one_slot(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    (void)unused;
    build_put(&command, "aa", "10.0.0.1:80");
    build_put(&command, "bb", "10.0.0.1:80");
    build_commit(state, &command);
    assert_int_equal(look(state, "aa", "10.0.0.1:80").target.slot, 0);
    assert_int_equal(look(state, "bb", "10.0.0.1:80").target.slot, 0);
    struct catalog *catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_target_at(catalog, 0)->n_users, 2);
    assert_int_equal(catalog_n_slots(catalog), 1);
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void a_target_shows_its_definition(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct target_definition definition;

    (void)unused;
    put_with_check(state, "web", "10.0.0.1:80", other_port);
    struct catalog *catalog = catalog_state_catalog(state);
    catalog_target_definition(catalog_target_at(catalog, 0), &definition);
    assert_int_equal(definition.to.port, 8080); /* A11 */
    assert_int_equal(definition.check->port, 0);
    assert_int_equal(definition.check->type, CHECK_TYPE_TCP);
    assert_int_equal(definition.check->unhealthy_threshold, 2);
    assert_null(catalog_target_at(catalog, 1));
    assert_null(catalog_target_at(catalog, LIMIT_TARGETS));
    catalog_unref(catalog);
    catalog_state_free(state);
}

/* --- chunks of slots --- */

static int compare_births(const void *a, const void *b)
{
    const struct target_id *id_a = a;
    const struct target_id *id_b = b;

    if (id_a->birth != id_b->birth) {
        return id_a->birth > id_b->birth ? -1 : 1;
    }
    return (id_a->slot > id_b->slot) - (id_a->slot < id_b->slot);
}

/* The newest births of a chunk by sorting all of them. */
static void check_births(const struct catalog *catalog, uint16_t chunk)
{
    static struct target_id all[LIMIT_VOTE_SLOTS_PER_CHUNK];
    struct target_id births[LIMIT_BIRTHS_PER_CHUNK];
    uint64_t floor = 99;
    size_t n_all = 0;

    for (uint32_t i = 0; i < LIMIT_VOTE_SLOTS_PER_CHUNK; i++) {
        const struct catalog_target *target =
            catalog_target_at(catalog, chunk * (uint32_t)LIMIT_VOTE_SLOTS_PER_CHUNK + i);

        if (target != NULL) {
            all[n_all++] = target->id;
        }
    }
    qsort(all, n_all, sizeof all[0], compare_births);
    uint16_t n = catalog_chunk_births(catalog, chunk, births, &floor);
    assert_int_equal(n, n_all < LIMIT_BIRTHS_PER_CHUNK ? n_all : LIMIT_BIRTHS_PER_CHUNK);
    for (uint16_t i = 0; i < n; i++) {
        assert_int_equal(births[i].slot, all[i].slot);
        assert_int_equal(births[i].birth, all[i].birth);
    }
    assert_int_equal(floor, n_all > n ? all[n].birth : 0);
}

static void put_many(struct catalog_state *state, unsigned group, unsigned n)
{
    char *endpoints = calloc(n + 1, 24);
    char name[16];
    size_t used = 0;

    for (unsigned i = 0; i < n; i++) {
        used += (size_t)sprintf(endpoints + used, "10.%u.%u.%u:80 ", group, i / 250, 1 + i % 250);
    }
    sprintf(name, "group%u", group);
    struct command command = {.is_forced = true};
    struct apply_answer answer;
    build_put(&command, name, endpoints);
    catalog_check(state, &command, &answer);
    if (answer.err == ERR_FORCE) {
        command.forced_count =
            (uint32_t)strtoul(strstr(answer.message.text, "the count ") + 10, NULL, 10);
    }
    build_commit(state, &command);
    free(endpoints);
}

static void the_newest_births_are_listed_with_a_floor(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct prng prng;

    (void)unused;
    prng_init(&prng, 21);
    for (unsigned round = 0; round < 60; round++) {
        unsigned group = (unsigned)prng_below(&prng, 12);

        put_many(state, group, (unsigned)prng_below(&prng, round % 3 == 0 ? 900 : 12));
        struct catalog *catalog = catalog_state_catalog(state);
        check_births(catalog, 0);
        check_births(catalog, 1);
        catalog_unref(catalog);
    }
    catalog_state_free(state);
}

/* The digest depends on who is in the slots and not on the way there. */
static void digests_are_equal_for_equal_slots_only(void **unused)
{
    struct catalog_state *a = build_state(3);
    struct catalog_state *b = build_state(3);
    struct hash128 digests[4];

    (void)unused;
    put(a, "web", "10.0.0.1:80 10.0.0.2:80");
    put(b, "web", "10.0.0.1:80 10.0.0.2:80");
    struct catalog *catalog = catalog_state_catalog(a);
    digests[0] = catalog_chunk_digest(catalog, 0);
    digests[1] = catalog_chunk_digest(catalog, 1);
    catalog_unref(catalog);
    put(b, "api", "10.0.0.9:80");
    catalog = catalog_state_catalog(b);
    digests[2] = catalog_chunk_digest(catalog, 0);
    catalog_unref(catalog);
    put(a, "api", "10.0.0.9:80");
    catalog = catalog_state_catalog(a);
    digests[3] = catalog_chunk_digest(catalog, 0);
    catalog_unref(catalog);
    assert_memory_not_equal(&digests[0], &digests[1], sizeof digests[0]);
    assert_memory_not_equal(&digests[0], &digests[2], sizeof digests[0]);
    assert_memory_equal(&digests[2], &digests[3], sizeof digests[0]);
    catalog_state_free(a);
    catalog_state_free(b);
}

static void slots_beyond_the_first_chunk_are_counted_there(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct target_id births[LIMIT_BIRTHS_PER_CHUNK];
    uint64_t floor;

    (void)unused;
    for (unsigned group = 0; group < 5; group++) {
        put_many(state, group, 1000);
    }
    struct catalog *catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_n_slots(catalog), 5000);
    assert_int_equal(catalog_n_rows(catalog), 5005);
    assert_int_equal(catalog_chunk_births(catalog, 1, births, &floor), 64);
    assert_int_equal(births[0].slot, 4096);
    assert_int_equal(catalog_chunk_births(catalog, 2, births, &floor), 0);
    assert_int_equal(floor, 0);
    catalog_unref(catalog);
    catalog_state_free(state);
}

/* What a chunk of one sender carries. */
struct sent {
    uint64_t revision;
    uint64_t floor;
    uint16_t n_births;
    struct target_id births[LIMIT_BIRTHS_PER_CHUNK];
};

/* The receiver's rule (design.md 4), played with two nodes at different revisions of one history:
 * a slot is counted only when it is the same target for both, and always at equal revision. */
static bool counts(const struct catalog *receiver, const struct sent *sent, uint32_t slot)
{
    uint64_t q = catalog_revision(receiver);
    uint64_t r = sent->revision;

    if (catalog_target_at(receiver, slot)->id.birth > r || (q < r && q < sent->floor)) {
        return false;
    }
    for (uint16_t i = 0; i < sent->n_births && q < r; i++) {
        if (sent->births[i].slot == slot && sent->births[i].birth > q) {
            return false;
        }
    }
    return true;
}

static void no_vote_is_counted_for_another_target(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct catalog *history[80];
    struct prng prng;
    unsigned n_counted = 0;

    (void)unused;
    prng_init(&prng, 77);
    for (size_t i = 0; i < 80; i++) {
        put_many(state, (unsigned)prng_below(&prng, 6), (unsigned)prng_below(&prng, 30));
        history[i] = catalog_state_catalog(state);
    }
    for (size_t q = 0; q < 80; q++) {
        for (size_t r = 0; r < 80; r++) {
            struct sent sent = {.revision = catalog_revision(history[r])};

            sent.n_births = catalog_chunk_births(history[r], 0, sent.births, &sent.floor);
            for (uint32_t slot = 0; slot < catalog_n_slots(history[q]); slot++) {
                const struct catalog_target *mine = catalog_target_at(history[q], slot);
                const struct catalog_target *theirs = catalog_target_at(history[r], slot);
                bool is_counted = mine != NULL && counts(history[q], &sent, slot);

                if (is_counted && theirs != NULL) {
                    assert_int_equal(mine->id.birth, theirs->id.birth);
                    n_counted++;
                }
                if (q == r && mine != NULL) {
                    assert_true(is_counted);
                }
            }
        }
    }
    assert_true(n_counted > 10000);
    for (size_t i = 0; i < 80; i++) {
        catalog_unref(history[i]);
    }
    catalog_state_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_checks_make_a_target_each_and_one_of_the_vote),
        cmocka_unit_test(equal_lists_share_their_targets),
        cmocka_unit_test(targets_of_a_list_come_and_go_with_it),
        cmocka_unit_test(equal_definitions_share_a_target),
        cmocka_unit_test(what_is_not_the_check_never_touches_a_target),
        cmocka_unit_test(the_lowest_free_slot_is_given_with_its_birth),
        cmocka_unit_test(a_target_that_moves_between_groups_keeps_its_slot),
        cmocka_unit_test(two_new_users_of_one_definition_get_one_slot),
        cmocka_unit_test(a_target_shows_its_definition),
        cmocka_unit_test(the_newest_births_are_listed_with_a_floor),
        cmocka_unit_test(digests_are_equal_for_equal_slots_only),
        cmocka_unit_test(slots_beyond_the_first_chunk_are_counted_there),
        cmocka_unit_test(no_vote_is_counted_for_another_target),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
