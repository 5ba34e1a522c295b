/* Single changes between the vectors: they count at once, in any order, with their details. */
#include "tests/unit/core/votes_fixture.h"

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
        votes_set_slot(f->votes, slot, 5, 1U << CHECK_TYPE_TCP, MEMORY_MS);
    }
    for (uint32_t slot = 0; slot < LIMIT_VOTE_DETAILS; slot++) {
        tell(f->votes, slot, slot + 1, &f->changed);
    }
    assert_int_equal(streak_told(f->votes, 0), 1);
    tell(f->votes, 0, LIMIT_VOTE_DETAILS + 1, &f->changed); /* in the place that it has */
    assert_int_equal(streak_told(f->votes, 1), 2);
    votes_set_slot(f->votes, 1, 6, 1U << CHECK_TYPE_TCP, MEMORY_MS);
    votes_set_slot(f->votes, 1, 5, 1U << CHECK_TYPE_TCP, MEMORY_MS);
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
        TEST(a_change_counts_at_once_and_an_older_vector_does_not_undo_it),
        TEST(changes_that_overtake_each_other_are_taken_slot_by_slot),
        TEST(a_pass_that_wavers_counts_as_pass_and_is_told),
        TEST(what_a_peer_said_longest_ago_is_forgotten_first_and_its_vote_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
