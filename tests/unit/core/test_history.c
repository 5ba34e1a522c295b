/* The kept past: bounds, what goes out first, and that what is left can be read from its own
 * beginning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/catalog_apply.h"
#include "agent/core/history.h"
#include "agent/core/votes.h"
#include "common/base/limits.h"
#include "tests/lib/catalog_builder.h"

static struct history_entry vote(uint64_t at, uint32_t slot, uint32_t peer, enum opinion opinion)
{
    return (struct history_entry){.at_ns = at,
                                  .step = (uint32_t)at,
                                  .index = slot & 0xfffffU,
                                  .kind = HISTORY_VOTE,
                                  .from = peer & 63U,
                                  .to = opinion & 15U,
                                  .hold = VOTE_COUNTS};
}

static struct history *make(uint32_t n_entries)
{
    struct history *history = history_new(0, n_entries);

    assert_non_null(history);
    assert_int_equal(history_reserve_nodes(history, LIMIT_NODES), 0);
    assert_int_equal(history_reserve(history, 64, 64), 0);
    for (uint32_t slot = 0; slot < 64; slot++) {
        history_reset_slot(history, slot, 1);
        history_reset_row(history, (struct row_id){.row = slot, .birth = 1}, 5);
    }
    return history;
}

/* The votes on a slot, from its base and its entries. */
static struct history_votes read_slot(const struct history *history, uint32_t slot, uint64_t birth)
{
    struct history_chain chain = history_slot(history, slot, birth);

    assert_true(chain.birth_matches);
    struct history_votes votes = history_slot_base(history, chain.index);
    for (uint32_t place = chain.first; place != 0; place = history_at(history, place)->next) {
        history_fold(&votes, history_at(history, place));
    }
    return votes;
}

static void assert_same_votes(struct history_votes a, struct history_votes b)
{
    assert_true(a.fails == b.fails && a.passes == b.passes && a.lost_fails == b.lost_fails &&
                a.lost_passes == b.lost_passes && a.own_opinion == b.own_opinion &&
                a.own_is_suspect == b.own_is_suspect);
}

static void an_entry_is_24_bytes(void **unused)
{
    (void)unused;
    assert_int_equal(sizeof(struct history_entry), 24);
}

static void the_oldest_goes_out_first_and_what_is_left_reads_the_same(void **unused)
{
    struct history *history = make(100);

    (void)unused;
    for (uint64_t at = 1; at <= 1000; at++) {
        struct history_entry entry =
            vote(at, at % 64, at % 7, at / 64 % 2 == 0 ? OPINION_FAIL : OPINION_PASS);

        history_add(history, &entry);
    }
    assert_int_equal(history_next(history) - history_first(history), 100);
    assert_int_equal(history_complete_from(history).at_ns, 900);
    for (uint32_t slot = 0; slot < 64; slot++) {
        struct history_votes votes = read_slot(history, slot, 1);

        assert_same_votes(votes, history_votes_now(history, slot));
    }
    history_free(history);
}

static void a_cluster_that_grows_keeps_what_was_known(void **unused)
{
    static const uint32_t sizes[] = {8, 9, 17, 64};
    struct history *history = history_new(0, 2);
    struct history_votes wanted = {.passes = 1};
    struct history_entry own = {.kind = HISTORY_OWN, .to = OPINION_FAIL, .hold = 1};

    (void)unused;
    assert_int_equal(votes_store_slot_bytes(8), 6);
    assert_int_equal(votes_store_slot_bytes(16), 11);
    assert_int_equal(votes_store_slot_bytes(64), 41);
    assert_int_equal(history_reserve_nodes(history, 7), 0);
    assert_int_equal(history_reserve(history, 1, 1), 0);
    history_reset_slot(history, 0, 1);
    struct history_entry first = vote(1, 0, 0, OPINION_PASS);
    history_add(history, &first);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct history_entry entry = vote(2 + i, 0, sizes[i] - 1, OPINION_FAIL);

        assert_int_equal(history_reserve_nodes(history, sizes[i]), 0);
        history_add(history, &entry); /* and an older one goes into the base */
        wanted.fails |= UINT64_C(1) << (sizes[i] - 1);
        assert_same_votes(history_votes_now(history, 0), wanted);
        assert_same_votes(read_slot(history, 0, 1), wanted);
    }
    history_add(history, &own);
    wanted.own_opinion = OPINION_FAIL;
    wanted.own_is_suspect = true;
    assert_same_votes(read_slot(history, 0, 1), wanted);
    history_free(history);
}

static void a_restless_target_does_not_push_the_others_out(void **unused)
{
    struct history *history = make(0);
    struct history_entry calm = vote(1, 1, 2, OPINION_FAIL);
    uint64_t n = LIMIT_HISTORY_ENTRIES_PER_TARGET + 500;

    (void)unused;
    history_add(history, &calm);
    for (uint64_t at = 2; at < n + 2; at++) {
        struct history_entry entry = vote(at, 0, 3, at % 2 == 0 ? OPINION_FAIL : OPINION_PASS);

        history_add(history, &entry);
    }
    assert_int_equal(history_complete_from(history).at_ns, 0);
    assert_int_equal(history_slot(history, 1, 1).from.at_ns, 0);
    assert_int_equal(history_slot(history, 0, 1).from.at_ns, 501);
    struct history_votes votes = read_slot(history, 0, 1);
    assert_same_votes(votes, history_votes_now(history, 0));
    history_free(history);
}

static void the_ring_ends_at_its_limit(void **unused)
{
    struct history *history = make(0);

    (void)unused;
    for (uint64_t at = 1; at <= LIMIT_HISTORY_ENTRIES + 10; at++) {
        struct history_entry entry = vote(at, at % 64, 0, OPINION_FAIL);

        history_add(history, &entry);
    }
    assert_int_equal(history_next(history) - history_first(history), LIMIT_HISTORY_ENTRIES);
    history_free(history);
}

static void a_former_owner_of_a_slot_is_put_aside_and_read(void **unused)
{
    struct history *history = make(0);
    struct history_entry first = vote(1, 0, 1, OPINION_FAIL), second = vote(2, 0, 2, OPINION_PASS);

    (void)unused;
    history_add(history, &first);
    history_reset_slot(history, 0, 2);
    history_add(history, &second);
    assert_int_equal(read_slot(history, 0, 1).fails, 1 << 1);
    assert_int_equal(read_slot(history, 0, 2).passes, 1 << 2);
    assert_int_equal(read_slot(history, 0, 2).fails, 0);
    assert_false(history_slot(history, 0, 3).birth_matches);
    for (uint64_t birth = 3; birth < 3 + LIMIT_HISTORY_FORMER; birth++) {
        history_reset_slot(history, 0, birth);
    }
    assert_false(history_slot(history, 0, 1).birth_matches);
    history_free(history);
}

static void each_former_owner_is_found_while_its_place_is_its_own(void **unused)
{
    enum {
        N = 3 * LIMIT_HISTORY_FORMER
    };
    struct history *history = make(0);
    uint64_t birth_of[N], births[5] = {1, 1, 1, 1, 1};

    (void)unused;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t slot = i * i % 5; /* some never, others often */
        struct history_entry entry = vote(i + 1, slot, i % 64, OPINION_FAIL);

        history_add(history, &entry);
        birth_of[i] = births[slot]++;
        history_reset_slot(history, slot, births[slot]);
    }
    for (uint32_t i = 0; i < N; i++) {
        bool is_kept = i >= N - LIMIT_HISTORY_FORMER;

        assert_int_equal(history_slot(history, i * i % 5, birth_of[i]).birth_matches, is_kept);
        if (is_kept) {
            assert_int_equal(read_slot(history, i * i % 5, birth_of[i]).fails, UINT64_C(1)
                                                                                   << i % 64);
        }
    }
    history_free(history);
}

static void a_row_tells_its_last_state_when_its_entries_are_gone(void **unused)
{
    struct history *history = make(2);
    struct history_entry entry = {
        .at_ns = 7, .step = 7, .index = 3, .kind = HISTORY_VERDICT, .from = 5, .to = 1};

    (void)unused;
    history_add(history, &entry);
    for (uint64_t at = 8; at < 10; at++) {
        struct history_entry other = vote(at, 0, 0, OPINION_FAIL);

        history_add(history, &other);
    }
    struct history_chain chain = history_row(history, 3, 1);
    assert_int_equal(chain.first, 0);
    assert_int_equal(chain.before.state, HEALTH_INITIAL);
    assert_int_equal(chain.before.joined_ns, 7); /* it came from maintenance */
    assert_int_equal(history_row(history, 4, 1).before.joined_ns, 5);
    history_free(history);
}

static void surroundings_and_versions_have_limits(void **unused)
{
    struct history *history = make(0);
    struct catalog *catalog = build_catalog(3, "web", "10.0.0.1:80");
    const struct catalog_group *group = catalog_group_find(catalog, "web");

    (void)unused;
    for (uint32_t i = 1; i <= LIMIT_HISTORY_SURROUNDINGS + 10; i++) {
        history_add_surroundings(history, &(struct history_surroundings){.at_ns = i, .step = i});
    }
    assert_int_equal(history_n_surroundings(history), LIMIT_HISTORY_SURROUNDINGS);
    assert_int_equal(history_surroundings_at(history, 0)->at_ns, 11);
    assert_int_equal(history_complete_from(history).at_ns, 11);
    for (uint32_t i = 1; i <= LIMIT_HISTORY_VERSIONS + 10; i++) {
        history_add_version(history, &(struct history_version){.from_ns = i, .group = group});
    }
    assert_int_equal(history_n_versions(history), LIMIT_HISTORY_VERSIONS);
    assert_int_equal(history_version_at(history, 0)->from_ns, 11);
    catalog_unref(catalog); /* versions outlive it */
    assert_string_equal(history_version_at(history, 0)->group->spec.name, "web");
    history_free(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_24_bytes),
        cmocka_unit_test(the_oldest_goes_out_first_and_what_is_left_reads_the_same),
        cmocka_unit_test(a_cluster_that_grows_keeps_what_was_known),
        cmocka_unit_test(a_restless_target_does_not_push_the_others_out),
        cmocka_unit_test(the_ring_ends_at_its_limit),
        cmocka_unit_test(a_former_owner_of_a_slot_is_put_aside_and_read),
        cmocka_unit_test(each_former_owner_is_found_while_its_place_is_its_own),
        cmocka_unit_test(a_row_tells_its_last_state_when_its_entries_are_gone),
        cmocka_unit_test(surroundings_and_versions_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
