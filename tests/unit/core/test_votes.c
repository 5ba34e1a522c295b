/* Votes: matching by slot and birth, order, age, memory (design.md 4, spec.md 5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/votes.h"
#include "common/base/prng.h"

#define MS UINT64_C(1000000)
#define V (1000 * MS)
#define MEMORY_MS 20000
#define MEMORY (MEMORY_MS * MS)
#define START (100 * V)
#define PEER 3

struct fixture {
    struct votes *votes;
    struct id_set changed;
    struct vote_chunk chunk;
    struct votes_here here;
};

static void set_opinion(struct vote_chunk *chunk, uint32_t slot, enum opinion opinion)
{
    uint32_t offset = slot % LIMIT_VOTE_SLOTS_PER_CHUNK;
    uint8_t *byte = &chunk->opinions[offset / 4];

    *byte = (uint8_t)(*byte & ~(3 << (offset % 4 * 2)));
    *byte = (uint8_t)(*byte | (int)opinion << (offset % 4 * 2));
}

/* Slots 0..9 with birth 5 at revision 10, V = 1 s, check type tcp. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->votes = votes_new();
    assert_non_null(f->votes);
    votes_set_interval(f->votes, V);
    assert_int_equal(votes_reserve(f->votes, 10), 0);
    id_set_init(&f->changed);
    assert_int_equal(id_set_reserve(&f->changed, 10), 0);
    for (uint32_t slot = 0; slot < 10; slot++) {
        votes_set_slot(f->votes, slot, 5, CHECK_TYPE_TCP, MEMORY_MS);
    }
    f->here = (struct votes_here){.revision = 10, .digest = {.low = 1, .high = 2}};
    f->chunk = (struct vote_chunk){
        .epoch = 1, .sequence = 1, .revision = 10, .n_chunks = 1, .digest = f->here.digest};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    votes_free(f->votes);
    id_set_close(&f->changed);
    free(f);
    return 0;
}

static enum votes_outcome take(struct fixture *f, uint64_t now_ns)
{
    return votes_take_chunk(f->votes, PEER, &f->chunk, &f->here, now_ns, &f->changed);
}

static struct tally count(struct fixture *f, uint32_t slot, uint64_t now_ns)
{
    struct tally tally = {0};

    votes_count(f->votes, slot, UINT64_C(1) << PEER, now_ns, &tally);
    return tally;
}

static void assert_tally(struct tally tally, unsigned fail, unsigned pass, unsigned lost_fail,
                         unsigned lost_pass)
{
    assert_int_equal(tally.n_fail, fail);
    assert_int_equal(tally.n_pass, pass);
    assert_int_equal(tally.n_lost_fail, lost_fail);
    assert_int_equal(tally.n_lost_pass, lost_pass);
}

static uint32_t take_changed(struct fixture *f)
{
    uint32_t slot;
    uint32_t n = 0;

    while (id_set_take(&f->changed, &slot)) {
        n++;
    }
    return n;
}

static void a_vector_counts_and_a_repeated_one_changes_nothing(void **state)
{
    struct fixture *f = *state;

    set_opinion(&f->chunk, 0, OPINION_PASS);
    set_opinion(&f->chunk, 1, OPINION_FAIL);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    assert_int_equal(take_changed(f), 2);
    assert_tally(count(f, 0, START), 0, 1, 0, 0);
    assert_tally(count(f, 1, START), 1, 0, 0, 0);
    assert_tally(count(f, 2, START), 0, 0, 0, 0);

    f->chunk.sequence++;
    assert_int_equal(take(f, START + V), VOTES_TAKEN);
    assert_int_equal(take_changed(f), 0);
}

/* R-VOTE-1: by the receiver's clock, to the nanosecond. */
static void a_vote_counts_for_three_intervals_and_is_then_remembered(void **state)
{
    struct fixture *f = *state;
    const uint64_t lapse = START + 3 * V + MEMORY + 3 * V;

    set_opinion(&f->chunk, 0, OPINION_FAIL);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    assert_tally(count(f, 0, START + 3 * V), 1, 0, 0, 0);
    assert_tally(count(f, 0, START + 3 * V + 1), 0, 0, 1, 0);
    assert_tally(count(f, 0, lapse), 0, 0, 1, 0);
    assert_tally(count(f, 0, lapse + 1), 0, 0, 0, 0);

    take_changed(f);
    assert_true(votes_next_ns(f->votes) == START + 3 * V + 1);
    votes_age(f->votes, START + 3 * V, &f->changed);
    assert_int_equal(take_changed(f), 0);
    votes_age(f->votes, START + 3 * V + 1, &f->changed);
    assert_int_equal(take_changed(f), 1);
    assert_true(votes_next_ns(f->votes) == lapse + 1);
    assert_tally(count(f, 0, lapse), 0, 0, 1, 0);
    votes_age(f->votes, lapse + 1, &f->changed);
    assert_int_equal(take_changed(f), 1);
    assert_true(votes_next_ns(f->votes) == UINT64_MAX);
}

static void a_withdrawn_vote_is_remembered_from_its_withdrawal(void **state)
{
    struct fixture *f = *state;
    const uint64_t withdrawn = START + 2 * V;

    set_opinion(&f->chunk, 0, OPINION_PASS);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    for (uint64_t at = withdrawn; at < withdrawn + 5 * V; at += V) {
        set_opinion(&f->chunk, 0, OPINION_NONE);
        f->chunk.sequence++;
        assert_int_equal(take(f, at), VOTES_TAKEN);
        assert_tally(count(f, 0, at), 0, 0, 0, 1);
    }
    assert_tally(count(f, 0, withdrawn + MEMORY + 3 * V), 0, 0, 0, 1);
    assert_tally(count(f, 0, withdrawn + MEMORY + 3 * V + 1), 0, 0, 0, 0);
}

static void none_after_expiry_does_not_prolong_the_memory(void **state)
{
    struct fixture *f = *state;
    const uint64_t lapse = START + 3 * V + MEMORY + 3 * V;

    set_opinion(&f->chunk, 0, OPINION_PASS);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    set_opinion(&f->chunk, 0, OPINION_NONE);
    f->chunk.sequence++;
    assert_int_equal(take(f, START + 10 * V), VOTES_TAKEN);
    assert_tally(count(f, 0, lapse), 0, 0, 0, 1);
    assert_tally(count(f, 0, lapse + 1), 0, 0, 0, 0);
}

/* R-VOTE-2. */
static void duplicates_replays_and_older_epochs_are_dropped(void **state)
{
    struct fixture *f = *state;

    f->chunk.epoch = 2;
    f->chunk.sequence = 7;
    set_opinion(&f->chunk, 0, OPINION_FAIL);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    assert_int_equal(take(f, START + V), VOTES_STALE); /* duplicate: does not refresh the age */
    assert_tally(count(f, 0, START + 3 * V + 1), 0, 0, 1, 0);

    set_opinion(&f->chunk, 0, OPINION_PASS);
    f->chunk.sequence = 6;
    assert_int_equal(take(f, START + V), VOTES_STALE);
    f->chunk.epoch = 1;
    f->chunk.sequence = 1000;
    assert_int_equal(take(f, START + V), VOTES_OLD_EPOCH);
    assert_tally(count(f, 0, START + V), 1, 0, 0, 0);

    f->chunk.epoch = 3; /* a new start counts from one again */
    f->chunk.sequence = 1;
    assert_int_equal(take(f, START + V), VOTES_TAKEN);
    assert_tally(count(f, 0, START + V), 0, 1, 0, 0);
    assert_false(votes_note_epoch(f->votes, PEER, 3));
    assert_true(votes_note_epoch(f->votes, PEER, 4));
    f->chunk.sequence = 2;
    assert_int_equal(take(f, START + V), VOTES_OLD_EPOCH);
    struct votes_peer_look look;
    votes_look_peer(f->votes, PEER, &look);
    assert_int_equal(look.n_stale, 4);
}

static void a_change_counts_at_once_and_an_older_vector_does_not_undo_it(void **state)
{
    struct fixture *f = *state;
    struct vote_change change = {.epoch = 1,
                                 .sequence = 5,
                                 .target = {.slot = 0, .birth = 5},
                                 .opinion = OPINION_FAIL,
                                 .reason = REASON_CONNECT_TIMEOUT,
                                 .response_us = 5000000,
                                 .streak = 3,
                                 .since_ms = 19000};
    struct vote_look look;

    set_opinion(&f->chunk, 0, OPINION_PASS);
    set_opinion(&f->chunk, 1, OPINION_PASS);
    f->chunk.sequence = 4;
    assert_int_equal(votes_take_change(f->votes, PEER, &change, START, &f->changed), VOTES_TAKEN);
    assert_tally(count(f, 0, START), 1, 0, 0, 0);
    assert_int_equal(take(f, START + 1),
                     VOTES_TAKEN); /* older than the change, but not for slot 1 */
    assert_tally(count(f, 0, START + 1), 1, 0, 0, 0);
    assert_tally(count(f, 1, START + 1), 0, 1, 0, 0);
    votes_look(f->votes, PEER, 0, START + V, &look);
    assert_true(look.has_detail && look.reason == REASON_CONNECT_TIMEOUT && look.streak == 3);
    assert_true(look.since_ns == (int64_t)(START - 19 * V));

    f->chunk.sequence = 6; /* newer: it holds, and the detail is of another opinion */
    assert_int_equal(take(f, START + 2), VOTES_TAKEN);
    assert_tally(count(f, 0, START + 2), 0, 1, 0, 0);
    votes_look(f->votes, PEER, 0, START + 2, &look);
    assert_false(look.has_detail);
    change.sequence = 6;
    assert_int_equal(votes_take_change(f->votes, PEER, &change, START, &f->changed), VOTES_STALE);
    change.sequence = 7;
    change.target.birth = 4;
    assert_int_equal(votes_take_change(f->votes, PEER, &change, START, &f->changed),
                     VOTES_OTHER_TARGET);
    change.target.slot = 10;
    assert_int_equal(votes_take_change(f->votes, PEER, &change, START, &f->changed),
                     VOTES_OTHER_TARGET);
}

static void changes_that_overtake_each_other_are_taken_slot_by_slot(void **state)
{
    struct fixture *f = *state;
    struct vote_change first = {
        .epoch = 1, .sequence = 5, .target = {.slot = 0, .birth = 5}, .opinion = OPINION_FAIL};
    struct vote_change second = {
        .epoch = 1, .sequence = 6, .target = {.slot = 1, .birth = 5}, .opinion = OPINION_FAIL};
    struct vote_change third = {
        .epoch = 1, .sequence = 7, .target = {.slot = 0, .birth = 5}, .opinion = OPINION_PASS};

    assert_int_equal(votes_take_change(f->votes, PEER, &third, START, &f->changed), VOTES_TAKEN);
    assert_int_equal(votes_take_change(f->votes, PEER, &second, START, &f->changed), VOTES_TAKEN);
    assert_int_equal(votes_take_change(f->votes, PEER, &first, START, &f->changed), VOTES_STALE);
    assert_tally(count(f, 0, START), 0, 1, 0, 0);
    assert_tally(count(f, 1, START), 1, 0, 0, 0);
}

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
        votes_set_slot(f->votes, 0, 1000 + i, CHECK_TYPE_TCP, MEMORY_MS); /* clears it */
        votes_set_slot(f->votes, 0, rows[i].birth, CHECK_TYPE_TCP, MEMORY_MS);
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
    votes_set_slot(f->votes, 0, 5, CHECK_TYPE_TCP, 2 * MEMORY_MS);
    assert_tally(count(f, 0, START), 1, 0, 0, 0); /* the same target */
    votes_set_slot(f->votes, 0, 11, CHECK_TYPE_TCP, MEMORY_MS);
    assert_tally(count(f, 0, START), 0, 0, 0, 0);
}

static void suspect_votes_and_those_of_removed_nodes_are_dropped_at_once(void **state)
{
    struct fixture *f = *state;

    votes_set_slot(f->votes, 1, 5, CHECK_TYPE_HTTP, MEMORY_MS);
    set_opinion(&f->chunk, 0, OPINION_FAIL);
    set_opinion(&f->chunk, 1, OPINION_FAIL);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    f->chunk.sequence++;
    f->chunk.suspect_mask = 1 << CHECK_TYPE_TCP;
    assert_int_equal(take(f, START), VOTES_TAKEN);
    assert_tally(count(f, 0, START), 0, 0, 0, 0); /* not even remembered */
    assert_tally(count(f, 1, START), 1, 0, 0, 0);

    votes_drop_peer(f->votes, PEER);
    assert_tally(count(f, 1, START), 0, 0, 0, 0);
}

static void each_chunk_of_a_vector_ages_on_its_own(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(votes_reserve(f->votes, 4100), 0);
    assert_int_equal(id_set_reserve(&f->changed, 4100), 0);
    votes_set_slot(f->votes, 4099, 5, CHECK_TYPE_TCP, MEMORY_MS);
    f->chunk.n_chunks = 2;
    set_opinion(&f->chunk, 0, OPINION_PASS);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    f->chunk.chunk = 1;
    set_opinion(&f->chunk, 0, OPINION_NONE);
    set_opinion(&f->chunk, 4099, OPINION_PASS);
    assert_int_equal(take(f, START), VOTES_TAKEN); /* the same sequence, another chunk */
    assert_tally(count(f, 4099, START), 0, 1, 0, 0);

    f->chunk.sequence++; /* from now on chunk 0 is lost on the way */
    assert_int_equal(take(f, START + 3 * V), VOTES_TAKEN);
    assert_tally(count(f, 0, START + 3 * V + 1), 0, 0, 0, 1);
    assert_tally(count(f, 4099, START + 3 * V + 1), 0, 1, 0, 0);
}

/* Found by the simulation: a vote that had expired under a short interval counts again under a
 * longer one, and its end has to be told a second time. */
static void another_interval_lets_votes_count_and_expire_again(void **state)
{
    struct fixture *f = *state;

    votes_set_interval(f->votes, V / 4);
    set_opinion(&f->chunk, 0, OPINION_PASS);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    votes_age(f->votes, START + V, &f->changed);
    assert_tally(count(f, 0, START + V), 0, 0, 0, 1);
    votes_set_interval(f->votes, V);
    assert_tally(count(f, 0, START + V), 0, 1, 0, 0);
    votes_age(f->votes, START + V, &f->changed);
    take_changed(f);
    assert_true(votes_next_ns(f->votes) == START + 3 * V + 1);
    votes_age(f->votes, START + 3 * V + 1, &f->changed);
    assert_int_equal(take_changed(f), 1);
}

static void malformed_messages_are_refused(void **state)
{
    struct fixture *f = *state;
    struct vote_chunk good = f->chunk;

    set_opinion(&good, 0, OPINION_PASS);
    for (unsigned row = 0; row < 7; row++) {
        f->chunk = good;
        f->chunk.chunk = row == 0 ? LIMIT_VOTE_CHUNKS : row == 1 ? 1 : 0;
        f->chunk.n_chunks = row == 0 ? LIMIT_VOTE_CHUNKS + 1 : 1;
        f->chunk.n_births = row == 2 ? LIMIT_BIRTHS_PER_CHUNK + 1 : row == 3;
        f->chunk.births[0] = (struct target_id){.slot = LIMIT_VOTE_SLOTS_PER_CHUNK, .birth = 1};
        f->chunk.epoch = row == 4 ? 0 : 1;
        f->chunk.sequence = row == 5 ? 0 : 1;
        f->chunk.n_chunks = row == 6 ? 0 : f->chunk.n_chunks;
        assert_int_equal(take(f, START), VOTES_MALFORMED);
    }
    struct vote_change change = {
        .epoch = 1, .sequence = 1, .target = {.slot = 0, .birth = 5}, .opinion = 3};
    assert_int_equal(votes_take_change(f->votes, PEER, &change, START, &f->changed),
                     VOTES_MALFORMED);
    change.opinion = OPINION_PASS;
    change.target.slot = UINT32_MAX;
    assert_int_equal(votes_take_change(f->votes, PEER, &change, START, &f->changed),
                     VOTES_MALFORMED);
    assert_tally(count(f, 0, START), 0, 0, 0, 0);
}

static void a_pass_that_wavers_counts_as_pass_and_is_told(void **state)
{
    struct fixture *f = *state;
    struct tally tally;
    struct vote_change change = {.epoch = 1,
                                 .sequence = 2,
                                 .target = {.slot = 0, .birth = 5},
                                 .opinion = OPINION_PASS,
                                 .wavers = true};

    set_opinion(&f->chunk, 0, OPINION_PASS);
    assert_int_equal(take(f, START), VOTES_TAKEN);
    assert_int_equal(take_changed(f), 1);
    assert_int_equal(votes_take_change(f->votes, PEER, &change, START, &f->changed), VOTES_TAKEN);
    assert_int_equal(take_changed(f), 1);
    votes_count(f->votes, 0, UINT64_C(1) << PEER, START, &tally);
    assert_int_equal(tally.n_pass, 1);
    assert_true(tally.wavers == UINT64_C(1) << PEER);

    f->chunk.sequence = 3;
    f->chunk.opinions[0] = VOTE_WAVERS;
    assert_int_equal(take(f, START), VOTES_TAKEN);
    assert_int_equal(take_changed(f), 0);
    f->chunk.sequence = 4;
    f->chunk.opinions[0] = OPINION_PASS;
    assert_int_equal(take(f, START), VOTES_TAKEN);
    assert_int_equal(take_changed(f), 1);
    votes_count(f->votes, 0, UINT64_C(1) << PEER, START, &tally);
    assert_true(tally.n_pass == 1 && tally.wavers == 0);
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
            votes_set_slot(votes, s, births[q][s], CHECK_TYPE_TCP, MEMORY_MS);
            set_opinion(&chunk, s, births[r][s] != 0 ? OPINION_PASS : OPINION_NONE);
        }
        enum votes_outcome outcome = votes_take_chunk(
            votes, PEER, &chunk, &(struct votes_here){.revision = q}, START, &changed);

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* One change of a slot, as the newest message of the peer. */
static void tell(struct votes *votes, uint32_t slot, uint64_t sequence, struct id_set *changed)
{
    const struct vote_change change = {.epoch = 1,
                                       .sequence = sequence,
                                       .target = {.slot = slot, .birth = 5},
                                       .opinion = OPINION_FAIL,
                                       .reason = REASON_CONNECT_TIMEOUT,
                                       .streak = (uint32_t)sequence};

    assert_int_equal(votes_take_change(votes, PEER, &change, START, changed), VOTES_TAKEN);
}

static uint32_t streak_told(const struct votes *votes, uint32_t slot)
{
    struct vote_look look;

    votes_look(votes, PEER, slot, START, &look);
    assert_int_equal(look.hold, VOTE_COUNTS);
    return look.has_detail ? look.streak : 0;
}

static void what_a_peer_said_longest_ago_is_forgotten_first_and_its_vote_is_not(void **state)
{
    struct fixture *f = *state;
    const uint32_t n_slots = LIMIT_VOTE_DETAILS + 3;

    assert_int_equal(votes_reserve(f->votes, n_slots), 0);
    assert_int_equal(id_set_reserve(&f->changed, n_slots), 0);
    for (uint32_t slot = 0; slot < n_slots; slot++) {
        votes_set_slot(f->votes, slot, 5, CHECK_TYPE_TCP, MEMORY_MS);
    }
    for (uint32_t slot = 0; slot < LIMIT_VOTE_DETAILS; slot++) {
        tell(f->votes, slot, slot + 1, &f->changed);
    }
    assert_int_equal(streak_told(f->votes, 0), 1);
    tell(f->votes, 0, LIMIT_VOTE_DETAILS + 1, &f->changed); /* in the place that it has */
    assert_int_equal(streak_told(f->votes, 1), 2);
    votes_set_slot(f->votes, 1, 6, CHECK_TYPE_TCP, MEMORY_MS);
    votes_set_slot(f->votes, 1, 5, CHECK_TYPE_TCP, MEMORY_MS);
    tell(f->votes, 1, LIMIT_VOTE_DETAILS + 2, &f->changed); /* likewise, of another target */
    assert_int_equal(streak_told(f->votes, 1), LIMIT_VOTE_DETAILS + 2);

    for (uint32_t i = 0; i < 3; i++) {
        tell(f->votes, LIMIT_VOTE_DETAILS + i, LIMIT_VOTE_DETAILS + 3 + i, &f->changed);
    }

    for (uint32_t slot = 0; slot < 3; slot++) {
        assert_int_equal(streak_told(f->votes, slot), 0);
    }
    assert_int_equal(streak_told(f->votes, 3), 4);
    assert_int_equal(streak_told(f->votes, n_slots - 1), LIMIT_VOTE_DETAILS + 5);
    tell(f->votes, 0, LIMIT_VOTE_DETAILS + 6, &f->changed);
    assert_int_equal(streak_told(f->votes, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_vector_counts_and_a_repeated_one_changes_nothing),
        TEST(a_vote_counts_for_three_intervals_and_is_then_remembered),
        TEST(a_withdrawn_vote_is_remembered_from_its_withdrawal),
        TEST(none_after_expiry_does_not_prolong_the_memory),
        TEST(duplicates_replays_and_older_epochs_are_dropped),
        TEST(a_change_counts_at_once_and_an_older_vector_does_not_undo_it),
        TEST(changes_that_overtake_each_other_are_taken_slot_by_slot),
        TEST(slots_match_by_birth_and_floor),
        TEST(another_digest_at_the_same_revision_is_refused),
        TEST(a_new_birth_clears_what_was_kept),
        TEST(suspect_votes_and_those_of_removed_nodes_are_dropped_at_once),
        TEST(each_chunk_of_a_vector_ages_on_its_own),
        TEST(another_interval_lets_votes_count_and_expire_again),
        TEST(a_pass_that_wavers_counts_as_pass_and_is_told),
        TEST(malformed_messages_are_refused),
        TEST(what_a_peer_said_longest_ago_is_forgotten_first_and_its_vote_is_not),
        cmocka_unit_test(matching_is_never_wrong_over_random_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
