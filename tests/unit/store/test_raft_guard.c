/* The guards by themselves; what happens without them is shown in tests/store and
 * test_rn3_reordering. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/store/raft_guard.h"

static void only_newer_messages_of_a_sender_are_delivered(void **state)
{
    struct guard_order order = {0};

    (void)state;
    assert_true(guard_order_accept(&order, 1, 5));
    assert_false(guard_order_accept(&order, 1, 5)); /* doubled */
    assert_false(guard_order_accept(&order, 1, 4));
    assert_true(guard_order_accept(&order, 1, 9)); /* a gap is a loss and no reason to wait */
    assert_true(guard_order_accept(&order, 2, 1)); /* started anew */
    assert_false(guard_order_accept(&order, 1, 100));
}

static void batches_are_cut_before_each_membership_entry_but_the_first(void **state)
{
    struct raft_entry entries[7];
    struct raft_append_entries args = {.entries = entries, .n_entries = 7};

    (void)state;
    memset(entries, 0, sizeof entries);
    for (int i = 0; i < 7; i++) {
        entries[i].type = RAFT_COMMAND;
    }
    assert_int_equal(guard_piece(&args, 0), 7);
    entries[0].type = RAFT_CHANGE;
    entries[3].type = RAFT_CHANGE;
    entries[4].type = RAFT_CHANGE;
    assert_int_equal(guard_piece(&args, 0), 3);
    assert_int_equal(guard_piece(&args, 3), 1);
    assert_int_equal(guard_piece(&args, 4), 3);
}

/* A follower that has applied up to 10: terms 2 (1..4) and 5 (5..12). */
static void make_follower(struct raft *raft)
{
    static struct {
        raft_index index;
        raft_term term;
    } records[4];

    memset(raft, 0, sizeof *raft);
    records[0].index = 4;
    records[0].term = 2;
    records[1].index = 12;
    records[1].term = 5;
    raft->current_term = 5;
    raft->commit_index = 10;
    raft->trail.records = (void *)records;
    raft->trail.size = 4;
    raft->trail.back = 2;
}

static void terms_are_found_in_the_trail(void **state)
{
    struct raft raft;

    (void)state;
    make_follower(&raft);
    assert_int_equal(guard_term_of(&raft, 0), 0);
    assert_int_equal(guard_term_of(&raft, 1), 2);
    assert_int_equal(guard_term_of(&raft, 4), 2);
    assert_int_equal(guard_term_of(&raft, 5), 5);
    assert_int_equal(guard_term_of(&raft, 12), 5);
    assert_int_equal(guard_term_of(&raft, 13), 0);
    raft.trail.offset = 3; /* cut behind a snapshot */
    raft.trail.snapshot.index = 3;
    raft.trail.snapshot.term = 2;
    assert_int_equal(guard_term_of(&raft, 3), 2);
    assert_int_equal(guard_term_of(&raft, 2), 0);
    assert_int_equal(guard_term_of(&raft, 4), 2);
}

static void another_entry_than_the_committed_one_is_a_conflict(void **state)
{
    struct raft_entry entries[2];
    struct raft_append_entries args = {
        .term = 6, .prev_log_index = 9, .prev_log_term = 5, .entries = entries, .n_entries = 2};
    struct raft raft;
    raft_index index = 0;

    (void)state;
    make_follower(&raft);
    memset(entries, 0, sizeof entries);
    entries[0].term = 5;
    entries[1].term = 6; /* index 11 is not committed: raft may replace it */
    assert_false(guard_conflict(&raft, &args, &index));
    entries[0].term = 6;
    assert_true(guard_conflict(&raft, &args, &index));
    assert_int_equal(index, 10);
    args.prev_log_term = 4;
    assert_true(guard_conflict(&raft, &args, &index));
    assert_int_equal(index, 9);
    args.term = 4; /* an old leader: raft refuses it by itself */
    assert_false(guard_conflict(&raft, &args, &index));
}

static void snapshots_wait_while_one_is_taken_or_installed(void **state)
{
    struct raft raft;

    (void)state;
    make_follower(&raft);
    assert_true(guard_snapshot_now(&raft));
    raft.legacy.snapshot_taking = true;
    assert_false(guard_snapshot_now(&raft));
    raft.legacy.snapshot_taking = false;
    raft.snapshot.installing = true;
    assert_false(guard_snapshot_now(&raft));
}

static void answers_to_an_older_term_say_nothing_about_the_log(void **state)
{
    struct raft_message message = {.type = RAFT_APPEND_ENTRIES};
    struct raft raft;

    (void)state;
    make_follower(&raft);
    message.append_entries.term = 4;
    assert_true(guard_answer_is_blank(&raft, &message));
    message.append_entries.term = 5;
    assert_false(guard_answer_is_blank(&raft, &message));
    message.type = RAFT_INSTALL_SNAPSHOT;
    message.install_snapshot.term = 4;
    assert_true(guard_answer_is_blank(&raft, &message));
}

static void vote_results_are_for_candidates(void **state)
{
    struct raft raft;

    (void)state;
    make_follower(&raft);
    raft.state = RAFT_FOLLOWER;
    assert_false(guard_vote_result(&raft));
    raft.state = RAFT_CANDIDATE;
    assert_true(guard_vote_result(&raft));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_newer_messages_of_a_sender_are_delivered),
        cmocka_unit_test(batches_are_cut_before_each_membership_entry_but_the_first),
        cmocka_unit_test(terms_are_found_in_the_trail),
        cmocka_unit_test(another_entry_than_the_committed_one_is_a_conflict),
        cmocka_unit_test(snapshots_wait_while_one_is_taken_or_installed),
        cmocka_unit_test(answers_to_an_older_term_say_nothing_about_the_log),
        cmocka_unit_test(vote_results_are_for_candidates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
