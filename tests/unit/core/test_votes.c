/* Votes: order, age, memory (design.md 4, spec.md 5). */
#include "tests/unit/core/votes_fixture.h"

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

static void suspect_votes_and_those_of_removed_nodes_are_dropped_at_once(void **state)
{
    struct fixture *f = *state;

    votes_set_slot(f->votes, 1, 5, 1U << CHECK_TYPE_HTTP, MEMORY_MS);
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
    votes_set_slot(f->votes, 4099, 5, 1U << CHECK_TYPE_TCP, MEMORY_MS);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_vector_counts_and_a_repeated_one_changes_nothing),
        TEST(a_vote_counts_for_three_intervals_and_is_then_remembered),
        TEST(a_withdrawn_vote_is_remembered_from_its_withdrawal),
        TEST(none_after_expiry_does_not_prolong_the_memory),
        TEST(duplicates_replays_and_older_epochs_are_dropped),
        TEST(suspect_votes_and_those_of_removed_nodes_are_dropped_at_once),
        TEST(each_chunk_of_a_vector_ages_on_its_own),
        TEST(another_interval_lets_votes_count_and_expire_again),
        TEST(malformed_messages_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
