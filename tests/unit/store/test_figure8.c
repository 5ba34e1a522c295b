/* Figure 8 of the Raft paper on the library that is linked: an entry of an older term is never
 * committed by counting copies (R-RAFT-1; raft 0.15 did, and two of three nodes were lost). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <raft.h>
#include <stdlib.h>
#include <string.h>

static void step(struct raft *raft, raft_time now_ms, struct raft_event *event,
                 struct raft_update *ret_update)
{
    event->time = now_ms;
    event->capacity = 0;
    assert_int_equal(raft_step(raft, event, ret_update), 0);
}

/* Log: the membership at index 1, X of term 2 at index 2; the node has seen term 3. */
static void start(struct raft *raft, struct raft_buffer *conf)
{
    struct raft_entry entries[2] = {{.term = 1, .type = RAFT_CHANGE, .buf = *conf},
                                    {.term = 2, .type = RAFT_COMMAND}};
    struct raft_event event = {.type = RAFT_START};
    struct raft_update update;
    uint64_t x = 8;

    entries[1].buf = (struct raft_buffer){.base = &x, .len = sizeof x};
    memset(raft, 0, sizeof *raft);
    assert_int_equal(raft_init(raft, NULL, NULL, 1, "1"), 0);
    raft->tracer = NULL;
    event.start.term = 3;
    event.start.start_index = 1;
    event.start.entries = entries;
    event.start.n_entries = 2;
    step(raft, 0, &event, &update);
}

static void receive(struct raft *raft, raft_time now_ms, struct raft_message *message,
                    struct raft_update *ret_update)
{
    struct raft_event event = {.type = RAFT_RECEIVE};

    event.receive.message = message;
    step(raft, now_ms, &event, ret_update);
}

static void stored_by_two(struct raft *raft, raft_index index, raft_time now_ms)
{
    struct raft_message message = {
        .type = RAFT_APPEND_ENTRIES_RESULT, .server_id = 2, .server_address = "2"};
    struct raft_update update;

    message.append_entries_result = (struct raft_append_entries_result){
        .version = 2, .term = raft_current_term(raft), .last_log_index = index};
    receive(raft, now_ms, &message, &update);
}

static void an_entry_of_an_older_term_waits_for_one_of_the_own(void **state)
{
    struct raft_configuration conf;
    struct raft_buffer buffer;
    struct raft raft;
    struct raft_update update;
    struct raft_event timeout = {.type = RAFT_TIMEOUT};
    struct raft_event persisted = {.type = RAFT_PERSISTED_ENTRIES};
    struct raft_message vote = {
        .type = RAFT_REQUEST_VOTE_RESULT, .server_id = 2, .server_address = "2"};

    (void)state;
    raft_configuration_init(&conf);
    raft_configuration_add(&conf, 1, "1", RAFT_VOTER);
    raft_configuration_add(&conf, 2, "2", RAFT_VOTER);
    raft_configuration_add(&conf, 3, "3", RAFT_VOTER);
    raft_configuration_encode(&conf, &buffer);
    raft_configuration_close(&conf);
    start(&raft, &buffer);

    step(&raft, 10000, &timeout, &update);
    assert_int_equal(raft_state(&raft), RAFT_CANDIDATE);
    vote.request_vote_result =
        (struct raft_request_vote_result){.version = 2, .term = 4, .vote_granted = true};
    receive(&raft, 10001, &vote, &update);
    assert_int_equal(raft_state(&raft), RAFT_LEADER);
    assert_true(update.flags & RAFT_UPDATE_ENTRIES); /* its own entry of term 4, at index 3 */
    assert_int_equal(update.entries.index, 3);
    raft_free(update.entries.batch[0].batch); /* as if it had been copied to the log */

    stored_by_two(&raft, 2, 10002); /* X is on a majority now */
    assert_true(raft_commit_index(&raft) < 2);
    stored_by_two(&raft, 3, 10003); /* the own entry is not stored here yet: one copy */
    assert_true(raft_commit_index(&raft) < 2);
    persisted.persisted_entries.index = 3;
    step(&raft, 10004, &persisted, &update);
    assert_int_equal(raft_commit_index(&raft), 3);

    raft_close(&raft, NULL);
    raft_free(buffer.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_of_an_older_term_waits_for_one_of_the_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
