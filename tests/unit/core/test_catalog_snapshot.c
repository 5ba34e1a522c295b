/* Snapshots as chunks: nothing is lost, nothing damaged is taken (row 1.3, 1.13). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/catalog_codec.h"
#include "common/base/prng.h"
#include "tests/lib/catalog_builder.h"

static struct catalog_state *make_state(void)
{
    struct catalog_state *state = build_state(3);
    struct command command = {.request_id = {{5}}};
    char endpoints[1200 * 24] = "";
    size_t used = 0;

    for (unsigned i = 0; i < 900; i++) {
        used += (size_t)sprintf(endpoints + used, "10.1.%u.%u:80 ", i / 250, 1 + i % 250);
    }
    build_put(&command, "large", endpoints); /* two chunks */
    build_put(&command, "web", "10.0.0.1:80 10.0.0.2:80 [fc00::1]:80");
    build_listener(&command, "front", "192.0.2.1:80", "web");
    build_commit(state, &command);
    command.request_id.bytes[0] = 6;
    build_delete_group(&command, "none");
    build_apply(state, &command);
    return state;
}

struct snapshot {
    struct catalog_snapshot *snapshot;
    struct catalog_chunk_view *views;
    size_t n;
};

static struct snapshot snapshot_of(struct catalog_state *state)
{
    struct snapshot s = {.snapshot = catalog_state_snapshot(state)};

    s.n = catalog_snapshot_n_chunks(s.snapshot);
    s.views = calloc(s.n + 1, sizeof *s.views);
    for (size_t i = 0; i < s.n; i++) {
        s.views[i].data = catalog_snapshot_chunk_at(s.snapshot, i, &s.views[i].n_bytes);
        assert_in_range(s.views[i].n_bytes, 8, LIMIT_CHUNK_BYTES);
    }
    return s;
}

static void snapshot_close(struct snapshot *s)
{
    free(s->views);
    catalog_snapshot_free(s->snapshot);
}

static void assert_same(struct catalog_state *a, struct catalog_state *b)
{
    struct snapshot snapshot_a = snapshot_of(a);
    struct snapshot snapshot_b = snapshot_of(b);

    assert_int_equal(snapshot_a.n, snapshot_b.n);
    for (size_t i = 0; i < snapshot_a.n; i++) {
        assert_int_equal(snapshot_a.views[i].n_bytes, snapshot_b.views[i].n_bytes);
        assert_memory_equal(snapshot_a.views[i].data, snapshot_b.views[i].data,
                            snapshot_a.views[i].n_bytes);
    }
    snapshot_close(&snapshot_a);
    snapshot_close(&snapshot_b);
}

static void chunks_may_come_in_any_order(void **unused)
{
    struct catalog_state *state = make_state();
    struct catalog_state *copy = catalog_state_new();
    struct snapshot s = snapshot_of(state);
    struct prng prng;

    (void)unused;
    assert_int_equal(s.n, 4 + 2 + 1 + 1 + 1);
    prng_init(&prng, 3);
    for (unsigned round = 0; round < 20; round++) {
        for (size_t i = s.n - 1; i > 0; i--) {
            size_t j = prng_below(&prng, i + 1);
            struct catalog_chunk_view view = s.views[i];

            s.views[i] = s.views[j];
            s.views[j] = view;
        }
        assert_int_equal(catalog_state_restore(copy, s.views, s.n, NULL), 0);
        assert_same(state, copy);
    }
    snapshot_close(&s);
    catalog_state_free(state);
    catalog_state_free(copy);
}

static void a_snapshot_stays_while_commands_go_on(void **unused)
{
    struct catalog_state *state = make_state();
    struct catalog_state *copy = catalog_state_new();
    struct snapshot s = snapshot_of(state);
    struct command command = {.request_id = {{7}}};
    struct catalog *catalog;

    (void)unused;
    build_put(&command, "later", "10.0.0.1:80");
    build_commit(state, &command);
    assert_int_equal(catalog_state_restore(copy, s.views, s.n, NULL), 0);
    catalog = catalog_state_catalog(copy);
    assert_int_equal(catalog_revision(catalog), 2);
    assert_null(catalog_group_find(catalog, "later"));
    catalog_unref(catalog);
    snapshot_close(&s);
    catalog_state_free(state);
    catalog_state_free(copy);
}

static void answers_survive_a_restore(void **unused)
{
    struct catalog_state *state = make_state();
    struct catalog_state *copy = catalog_state_new();
    struct snapshot s = snapshot_of(state);
    struct command command = {.request_id = {{6}}};

    (void)unused;
    assert_int_equal(catalog_state_restore(copy, s.views, s.n, NULL), 0);
    build_put(&command, "new", "");
    struct apply_answer answer = build_apply(copy, &command);
    assert_true(answer.is_repeat);
    assert_int_equal(answer.err, ERR_NOTFOUND);
    assert_string_equal(answer.message.text, "server group \"none\" does not exist");
    snapshot_close(&s);
    catalog_state_free(state);
    catalog_state_free(copy);
}

static void a_catalog_alone_can_be_decoded(void **unused)
{
    struct catalog_state *state = make_state();
    struct snapshot s = snapshot_of(state);
    struct catalog *catalog;
    struct catalog *original = catalog_state_catalog(state);

    (void)unused;
    assert_int_equal(catalog_decode(s.views, s.n, &catalog, NULL), 0);
    struct hash128 a = catalog_state_hash(catalog);
    struct hash128 b = catalog_state_hash(original);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(catalog_n_chunks(catalog), catalog_n_chunks(original));
    assert_int_equal(catalog_n_slots(catalog), catalog_n_slots(original));
    catalog_unref(catalog);
    catalog_unref(original);
    snapshot_close(&s);
    catalog_state_free(state);
}

static void expect_damage(struct catalog_state *victim, const struct snapshot *s, size_t n)
{
    struct catalog *before = catalog_state_catalog(victim);
    struct catalog *after;
    struct errmsg err = {{0}};
    int rc = catalog_state_restore(victim, s->views, n, &err);

    if (rc != ERR_CORRUPT && rc != ERR_VERSION) {
        fail_msg("damage was taken: %d", rc);
    }
    assert_true(strlen(err.text) > 10);
    after = catalog_state_catalog(victim);
    assert_ptr_equal(before, after);
    catalog_unref(before);
    catalog_unref(after);
}

static void a_damaged_snapshot_leaves_the_state_as_it_was(void **unused)
{
    struct catalog_state *state = make_state();
    struct catalog_state *victim = build_state(1);
    struct snapshot s = snapshot_of(state);
    struct prng prng;

    (void)unused;
    prng_init(&prng, 4);
    for (size_t i = 0; i < s.n; i++) {
        struct catalog_chunk_view view = s.views[i];
        uint8_t *copy = malloc(view.n_bytes);
        size_t step = view.n_bytes > 2000 ? 97 : 1;

        memcpy(copy, view.data, view.n_bytes);
        s.views[i].data = copy;
        for (size_t at = 0; at < view.n_bytes; at += step) {
            uint8_t flip = (uint8_t)(1 << prng_below(&prng, 8));

            copy[at] ^= flip;
            expect_damage(victim, &s, s.n);
            copy[at] ^= flip;
            s.views[i].n_bytes = at;
            expect_damage(victim, &s, s.n);
            s.views[i].n_bytes = view.n_bytes;
        }
        free(copy);
        s.views[i] = view;
    }
    assert_int_equal(catalog_state_restore(victim, s.views, s.n, NULL), 0);
    snapshot_close(&s);
    catalog_state_free(state);
    catalog_state_free(victim);
}

static void a_missing_or_doubled_chunk_is_refused(void **unused)
{
    struct catalog_state *state = make_state();
    struct catalog_state *victim = build_state(1);
    struct snapshot s = snapshot_of(state);

    (void)unused;
    for (size_t i = 0; i < s.n - 1; i++) { /* the last holds answers; none is an empty set */
        struct catalog_chunk_view view = s.views[i];

        s.views[i] = s.views[s.n - 1];
        expect_damage(victim, &s, s.n - 1);
        s.views[i] = view;
        s.views[s.n] = view;
        expect_damage(victim, &s, s.n + 1);
        s.views[s.n] = s.views[i];
    }
    expect_damage(victim, &s, 0);
    snapshot_close(&s);
    catalog_state_free(state);
    catalog_state_free(victim);
}

static void a_newer_snapshot_is_refused_in_one_sentence(void **unused)
{
    struct catalog_state *state = make_state();
    struct snapshot s = snapshot_of(state);
    struct errmsg err;
    uint8_t *copy = malloc(s.views[0].n_bytes);

    (void)unused;
    memcpy(copy, s.views[0].data, s.views[0].n_bytes);
    copy[4] = 2;
    s.views[0].data = copy;
    assert_int_equal(catalog_state_restore(state, s.views, s.n, &err), ERR_VERSION);
    assert_string_equal(err.text, "catalog: a chunk of version 2.2 and kind 1: this node reads up "
                                  "to 1.3, update it");
    free(copy);
    snapshot_close(&s);
    catalog_state_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_may_come_in_any_order),
        cmocka_unit_test(a_snapshot_stays_while_commands_go_on),
        cmocka_unit_test(answers_survive_a_restore),
        cmocka_unit_test(a_catalog_alone_can_be_decoded),
        cmocka_unit_test(a_damaged_snapshot_leaves_the_state_as_it_was),
        cmocka_unit_test(a_missing_or_doubled_chunk_is_refused),
        cmocka_unit_test(a_newer_snapshot_is_refused_in_one_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
