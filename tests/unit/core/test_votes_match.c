/* Votes are matched by slot and birth: never one for another target (design.md 4). */
#include "common/base/prng.h"
#include "tests/unit/core/votes_fixture.h"

/* The rule of design.md 4, row by row: Q here, R and B of the sender, b the birth here, what the
 * sender lists for the slot (0 = nothing). */
static void slots_match_by_birth_and_floor(void **state)
{
    struct fixture *f = *state;
    static const struct {
        uint64_t q, r, floor, birth, listed;
        bool counts;
    } rows[] = {
        {10, 10, 0, 5, 0, true},   {10, 10, 0, 5, 5, true}, {10, 10, 9, 5, 0, true},
        {10, 8, 0, 5, 5, true},                             /* sender behind, slot known to it */
        {10, 8, 0, 9, 0, false},                            /* sender behind the birth */
        {10, 8, 7, 8, 8, true},    {10, 12, 0, 5, 0, true}, /* ahead, nothing new there */
        {10, 12, 0, 5, 11, false},                          /* ahead, another target there now */
        {10, 12, 0, 5, 5, true},   {10, 12, 9, 5, 0, true}, {10, 12, 10, 5, 0, true},
        {10, 12, 11, 5, 0, false}, /* too far ahead: it may have been reborn without being listed */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        votes_set_slot(f->votes, 0, 1000 + i, 1U << CHECK_TYPE_TCP, MEMORY_MS); /* clears it */
        votes_set_slot(f->votes, 0, rows[i].birth, 1U << CHECK_TYPE_TCP, MEMORY_MS);
        f->here.revision = rows[i].q;
        f->chunk.revision = rows[i].r;
        f->chunk.floor = rows[i].floor;
        f->chunk.n_births = rows[i].listed != 0;
        f->chunk.births[0] = (struct target_id){.slot = 0, .birth = rows[i].listed};
        f->chunk.sequence++;
        set_opinion(&f->chunk, 0, OPINION_PASS);
        take(f, START);
        if ((count(f, 0, START).n_pass == 1) != rows[i].counts) {
            fail_msg("row %zu", i);
        }
    }
}

static void another_digest_at_the_same_revision_is_refused(void **state)
{
    struct fixture *f = *state;
    struct votes_peer_look look;

    set_opinion(&f->chunk, 0, OPINION_FAIL);
    f->chunk.digest.high++;
    assert_int_equal(take(f, START), VOTES_DIFFER);
    assert_tally(count(f, 0, START), 0, 0, 0, 0);
    votes_look_peer(f->votes, PEER, &look);
    assert_true(look.catalog_differs);

    f->chunk.revision = 9; /* at another revision nothing can be compared */
    f->chunk.sequence++;
    assert_int_equal(take(f, START), VOTES_TAKEN);
    votes_look_peer(f->votes, PEER, &look);
    assert_false(look.catalog_differs);
}

static void a_new_birth_clears_what_was_kept(void **state)
{
    struct fixture *f = *state;

    set_opinion(&f->chunk, 0, OPINION_FAIL);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    votes_set_slot(f->votes, 0, 5, 1U << CHECK_TYPE_TCP, 2 * MEMORY_MS);
    assert_tally(count(f, 0, START), 1, 0, 0, 0); /* the same target */
    votes_set_slot(f->votes, 0, 11, 1U << CHECK_TYPE_TCP, MEMORY_MS);
    assert_tally(count(f, 0, START), 0, 0, 0, 0);
}

/* --- the matching rule against truth, over random histories --- */

#define HISTORY 400
#define SLOTS 200

/* births[r][s]: the birth of slot s at revision r; 0 = free. */
static void make_history(struct prng *prng, uint64_t births[HISTORY][SLOTS])
{
    memset(births[0], 0, sizeof births[0]);
    for (uint64_t r = 1; r < HISTORY; r++) {
        memcpy(births[r], births[r - 1], sizeof births[r]);
        uint64_t n_changes = prng_below(prng, 5);
        for (uint64_t i = 0; i < n_changes; i++) {
            births[r][prng_below(prng, SLOTS)] = prng_below(prng, 4) == 0 ? 0 : r;
        }
    }
}

static int newest_first(const void *a, const void *b)
{
    const struct target_id *x = a;
    const struct target_id *y = b;

    return x->birth < y->birth ? 1 : x->birth > y->birth ? -1 : x->slot < y->slot ? -1 : 1;
}

static void fill_births(struct vote_chunk *chunk, const uint64_t births[SLOTS])
{
    struct target_id all[SLOTS];
    uint16_t n = 0;

    for (uint32_t s = 0; s < SLOTS; s++) {
        if (births[s] != 0) {
            all[n++] = (struct target_id){.slot = s, .birth = births[s]};
        }
    }
    qsort(all, n, sizeof all[0], newest_first);
    chunk->n_births = n < LIMIT_BIRTHS_PER_CHUNK ? n : LIMIT_BIRTHS_PER_CHUNK;
    memcpy(chunk->births, all, chunk->n_births * sizeof all[0]);
    chunk->floor = n > LIMIT_BIRTHS_PER_CHUNK ? all[LIMIT_BIRTHS_PER_CHUNK].birth : 0;
}

/* Never a vote for another target; and none missed but where the floor is above Q. */
static void matching_is_never_wrong_over_random_histories(void **state)
{
    (void)state;
    static uint64_t births[HISTORY][SLOTS];
    struct prng prng;
    unsigned n_counted = 0;
    unsigned n_ahead = 0;

    prng_init(&prng, 7);
    for (unsigned round = 0; round < 300; round++) {
        if (round % 30 == 0) {
            make_history(&prng, births);
        }
        struct votes *votes = votes_new();
        struct id_set changed;
        id_set_init(&changed);
        assert_int_equal(id_set_reserve(&changed, SLOTS), 0);
        assert_int_equal(votes_reserve(votes, SLOTS), 0);
        votes_set_interval(votes, V);

        uint64_t q = 1 + prng_below(&prng, HISTORY - 1);
        uint64_t r = prng_below(&prng, 2) == 0 ? 1 + prng_below(&prng, HISTORY - 1)
                                               : q + prng_below(&prng, HISTORY - q);
        struct vote_chunk chunk = {.epoch = 1, .sequence = 1, .revision = r, .n_chunks = 1};
        fill_births(&chunk, births[r]);
        for (uint32_t s = 0; s < SLOTS; s++) {
            votes_set_slot(votes, s, births[q][s], 1U << CHECK_TYPE_TCP, MEMORY_MS);
            set_opinion(&chunk, s, births[r][s] != 0 ? OPINION_PASS : OPINION_NONE);
        }
        enum votes_outcome outcome = votes_take_chunk(
            votes, PEER, &chunk, &(struct votes_here){.revision = q, .now_ns = START}, &changed);

        assert_int_equal(outcome, q < r && q < chunk.floor ? VOTES_AHEAD : VOTES_TAKEN);
        n_ahead += outcome == VOTES_AHEAD;
        for (uint32_t s = 0; s < SLOTS; s++) {
            struct tally tally = {0};
            bool same = births[q][s] != 0 && births[q][s] == births[r][s];

            votes_count(votes, s, UINT64_C(1) << PEER, START, &tally);
            assert_int_equal(tally.n_pass, same && outcome == VOTES_TAKEN);
            n_counted += tally.n_pass;
        }
        id_set_close(&changed);
        votes_free(votes);
    }
    assert_in_range(n_counted, 10000, 60000);
    assert_in_range(n_ahead, 10, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(slots_match_by_birth_and_floor),
        TEST(another_digest_at_the_same_revision_is_refused),
        TEST(a_new_birth_clears_what_was_kept),
        cmocka_unit_test(matching_is_never_wrong_over_random_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
