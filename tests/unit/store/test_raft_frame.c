/* Bytes of the Raft lane: round trips, and everything that must not get through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/raft_frame.h"

static struct frame_head head_of(enum frame_kind kind)
{
    return (struct frame_head){.kind = (uint8_t)kind,
                               .cluster_id = {{1, 2, 3}},
                               .from = 1,
                               .to = 2,
                               .from_incarnation = 11,
                               .to_incarnation = 22,
                               .epoch = 5,
                               .sequence = 6};
}

static struct raft_buffer configuration(void)
{
    struct raft_configuration conf;
    struct raft_buffer buffer;

    raft_configuration_init(&conf);
    raft_configuration_add(&conf, 1, "node-1-0000000000000001", RAFT_VOTER);
    raft_configuration_add(&conf, 2, "node-2-0000000000000002", RAFT_SPARE);
    raft_configuration_encode(&conf, &buffer);
    raft_configuration_close(&conf);
    return buffer;
}

/* An AppendEntries of three entries: a command, a barrier, a membership change. */
struct append {
    struct frame frame;
    struct raft_entry entries[3];
    uint64_t words[2];
    struct raft_buffer conf;
};

static void append_init(struct append *append)
{
    memset(append, 0, sizeof *append);
    append->conf = configuration();
    append->words[0] = 0x1122334455667788;
    append->entries[0] = (struct raft_entry){.term = 3, .type = RAFT_COMMAND};
    append->entries[0].buf = (struct raft_buffer){.base = append->words, .len = 16};
    append->entries[1] = (struct raft_entry){.term = 3, .type = RAFT_BARRIER};
    append->entries[1].buf = (struct raft_buffer){.base = append->words, .len = 8};
    append->entries[2] = (struct raft_entry){.term = 4, .type = RAFT_CHANGE};
    append->entries[2].buf = append->conf;
    append->frame.head = head_of(FRAME_APPEND_ENTRIES);
    append->frame.u.message.append_entries =
        (struct raft_append_entries){.term = 4,
                                     .prev_log_index = 10,
                                     .prev_log_term = 3,
                                     .leader_commit = 9,
                                     .entries = append->entries,
                                     .n_entries = 3};
}

static void append_close(struct append *append)
{
    raft_free(append->conf.base);
}

/* Encode, and decode again. */
static enum frame_outcome turn(const struct frame *frame, struct frame *ret_frame)
{
    uint8_t *data = NULL;
    size_t n_bytes = 0;

    assert_true(frame_encode(frame, &data, &n_bytes));
    enum frame_outcome outcome = frame_decode(data, n_bytes, ret_frame);
    free(data);
    return outcome;
}

static void entries_arrive_in_one_block_as_raft_wants_them(void **state)
{
    struct append append;
    struct frame again;

    (void)state;
    append_init(&append);
    assert_int_equal(turn(&append.frame, &again), FRAME_OK);
    const struct raft_append_entries *args = &again.u.message.append_entries;
    assert_memory_equal(&again.head, &append.frame.head, sizeof again.head);
    assert_int_equal(args->n_entries, 3);
    assert_true(args->term == 4 && args->prev_log_index == 10 && args->leader_commit == 9);
    for (unsigned i = 0; i < 3; i++) {
        assert_ptr_equal(args->entries[i].batch, args->entries[0].buf.base);
        assert_int_equal(args->entries[i].term, append.entries[i].term);
        assert_int_equal(args->entries[i].type, append.entries[i].type);
        assert_int_equal(args->entries[i].buf.len, append.entries[i].buf.len);
        assert_memory_equal(args->entries[i].buf.base, append.entries[i].buf.base,
                            args->entries[i].buf.len);
    }
    frame_close(&again);
    append_close(&append);
}

static void a_frame_cut_anywhere_or_too_long_is_malformed(void **state)
{
    struct append append;
    struct frame again;
    uint8_t *data = NULL;
    size_t n_bytes = 0;

    (void)state;
    append_init(&append);
    assert_true(frame_encode(&append.frame, &data, &n_bytes));
    for (size_t i = 0; i < n_bytes; i++) {
        uint8_t *cut = malloc(i + 1);

        memcpy(cut, data, i);
        assert_int_equal(frame_decode(cut, i, &again), FRAME_MALFORMED);
        free(cut);
    }
    data = realloc(data, n_bytes + 1);
    data[n_bytes] = 0;
    assert_int_equal(frame_decode(data, n_bytes + 1, &again), FRAME_MALFORMED);
    data[3] = FRAME_MINOR + 1; /* of a later minor: what comes behind is skipped */
    assert_int_equal(frame_decode(data, n_bytes + 1, &again), FRAME_OK);
    frame_close(&again);
    data[2] = FRAME_MAJOR + 1;
    assert_int_equal(frame_decode(data, n_bytes + 1, &again), FRAME_VERSION);
    free(data);
    append_close(&append);
}

/* Each of these would be undefined behaviour inside raft (raft-zmq.md rule 6). */
static void what_raft_must_never_see_is_malformed(void **state)
{
    struct append append;
    struct frame again;
    struct raft_append_entries *args = &append.frame.u.message.append_entries;
    struct raft_append_entries good;

    (void)state;
    append_init(&append);
    good = *args;
    args->term = 0;
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    *args = good;
    args->prev_log_term = 0; /* an index without a term */
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    *args = good;
    args->prev_log_term = 5; /* newer than the leader's */
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    *args = good;
    args->prev_log_index = UINT64_MAX - 1;
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    *args = good;
    append.entries[1].buf.len = 0;
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    append.entries[1].buf.len = 4; /* not padded */
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    append.entries[1].buf.len = 8;
    append.entries[1].type = (enum raft_entry_type)4;
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    append.entries[1].type = RAFT_BARRIER;
    append.entries[0].term = 4; /* terms go down */
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    append.entries[0].term = 3;
    append.entries[2].term = 5; /* an entry of a later term than its leader */
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    append.entries[2].term = 4;
    append.entries[0].type = RAFT_CHANGE; /* a membership that is none */
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    append.entries[0].type = RAFT_COMMAND;
    append.frame.head.from = 0;
    assert_int_equal(turn(&append.frame, &again), FRAME_MALFORMED);
    append.frame.head.from = 1;
    append.frame.head.kind = FRAME_HELLO;
    append_close(&append);
}

static void votes_speak_for_their_sender_only(void **state)
{
    struct frame frame = {.head = head_of(FRAME_REQUEST_VOTE)}, again;

    (void)state;
    frame.u.message.request_vote = (struct raft_request_vote){.version = 2,
                                                              .term = 7,
                                                              .candidate_id = 1,
                                                              .last_log_index = 5,
                                                              .last_log_term = 6,
                                                              .pre_vote = true};
    assert_int_equal(turn(&frame, &again), FRAME_OK);
    assert_memory_equal(&again.u.message.request_vote, &frame.u.message.request_vote,
                        sizeof frame.u.message.request_vote);
    frame.u.message.request_vote.candidate_id = 2;
    assert_int_equal(turn(&frame, &again), FRAME_MALFORMED);
}

static void results_and_transfers_arrive_as_sent(void **state)
{
    struct frame frame = {.head = head_of(FRAME_APPEND_ENTRIES_RESULT)}, again;

    (void)state;
    frame.u.message.append_entries_result = (struct raft_append_entries_result){
        .version = 2, .term = 7, .rejected = 3, .last_log_index = 2, .features = 1, .capacity = 9};
    assert_int_equal(turn(&frame, &again), FRAME_OK);
    assert_int_equal(again.u.message.type, RAFT_APPEND_ENTRIES_RESULT);
    assert_int_equal(again.u.message.append_entries_result.rejected, 3);
    assert_int_equal(again.u.message.append_entries_result.capacity, 9);

    frame.head.kind = FRAME_REQUEST_VOTE_RESULT;
    frame.u.message.request_vote_result = (struct raft_request_vote_result){
        .version = 2, .term = 7, .vote_granted = true, .pre_vote = false, .capacity = 4};
    assert_int_equal(turn(&frame, &again), FRAME_OK);
    assert_int_equal(again.u.message.request_vote_result.version, 2);
    assert_true(again.u.message.request_vote_result.vote_granted);

    frame.head.kind = FRAME_TIMEOUT_NOW;
    frame.u.message.timeout_now =
        (struct raft_timeout_now){.version = 1, .term = 7, .last_log_index = 4, .last_log_term = 7};
    assert_int_equal(turn(&frame, &again), FRAME_OK);
    assert_int_equal(again.u.message.timeout_now.last_log_index, 4);
    frame.u.message.timeout_now.last_log_term = 8;
    assert_int_equal(turn(&frame, &again), FRAME_MALFORMED);
}

static void many_large_entries_go_in_several_frames(void **state)
{
    struct raft_entry entries[6];

    (void)state;
    memset(entries, 0, sizeof entries);
    for (size_t i = 0; i < 6; i++) {
        entries[i].buf.len = LIMIT_COMMAND_BYTES;
    }
    assert_int_equal(frame_entries_fit(entries, 6), 1);
    entries[0].buf.len = 8;
    assert_int_equal(frame_entries_fit(entries, 6), 2);
    assert_int_equal(frame_entries_fit(entries, 1), 1);
    assert_int_equal(frame_entries_fit(entries, 0), 0);
}

static void hello_and_admission_arrive_as_sent(void **state)
{
    struct frame frame = {.head = head_of(FRAME_HELLO)}, again;
    struct store_members *members = calloc(1, sizeof *members);

    (void)state;
    frame.u.hello = (struct frame_hello){.revision = 8,
                                         .members_revision = 7,
                                         .bound_incarnation = 9,
                                         .standing = FRAME_STANDING_MEMBER,
                                         .is_restored = true,
                                         .seen_epoch = 10,
                                         .seen_sequence = 11,
                                         .seen_term = 12,
                                         .held_index = 13,
                                         .n_endpoints = 1};
    snprintf(frame.u.hello.endpoints[0].host, HOST_BYTES, "lb1.example");
    frame.u.hello.endpoints[0].raft_port = 7401;
    assert_int_equal(turn(&frame, &again), FRAME_OK);
    assert_string_equal(again.u.hello.endpoints[0].host, "lb1.example");
    assert_int_equal(again.u.hello.bound_incarnation, 9);
    assert_true(again.u.hello.is_restored);
    assert_int_equal(again.u.hello.seen_epoch, 10);
    assert_int_equal(again.u.hello.seen_sequence, 11);
    assert_int_equal(again.u.hello.seen_term, 12);
    assert_int_equal(again.u.hello.held_index, 13);
    frame.u.hello.standing = 3;
    assert_int_equal(turn(&frame, &again), FRAME_MALFORMED);

    members->n_nodes = 2;
    for (uint32_t i = 0; i < 2; i++) {
        members->nodes[i].node_id = i + 1;
        members->nodes[i].role = ROLE_VOTER;
        members->nodes[i].n_endpoints = 1;
        snprintf(members->nodes[i].endpoints[0].host, HOST_BYTES, "192.0.2.%u", i + 1);
    }
    frame = (struct frame){.head = head_of(FRAME_ADMIT)};
    frame.u.admit = (struct frame_admit){.node_id = 2, .revision = 1, .members = members};
    assert_int_equal(turn(&frame, &again), FRAME_OK);
    assert_int_equal(again.u.admit.members->n_nodes, 2);
    assert_string_equal(again.u.admit.members->nodes[1].endpoints[0].host, "192.0.2.2");
    frame_close(&again);
    members->nodes[1].role = 0;
    assert_int_equal(turn(&frame, &again), FRAME_MALFORMED);
    free(members);
}

static void configuration_of_foreign_bytes_is_checked_before_raft_reads_it(void **state)
{
    struct raft_buffer buffer = configuration();
    struct raft_configuration conf;
    uint8_t *bytes = buffer.base;

    (void)state;
    assert_true(frame_decode_configuration(bytes, buffer.len, &conf));
    assert_int_equal(conf.n, 2);
    raft_configuration_close(&conf);
    for (size_t i = 0; i < buffer.len; i++) {
        uint8_t *cut = malloc(i + 1);
        bool is_valid;

        memcpy(cut, bytes, i);
        is_valid = frame_decode_configuration(cut, i, &conf);
        if (is_valid) { /* only padding was cut */
            assert_int_equal(conf.n, 2);
            raft_configuration_close(&conf);
        }
        free(cut);
    }
    bytes[1] = 255; /* more servers than there are */
    assert_false(frame_decode_configuration(bytes, buffer.len, &conf));
    bytes[1] = 0;
    assert_false(frame_decode_configuration(bytes, buffer.len, &conf));
    raft_free(buffer.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_arrive_in_one_block_as_raft_wants_them),
        cmocka_unit_test(a_frame_cut_anywhere_or_too_long_is_malformed),
        cmocka_unit_test(what_raft_must_never_see_is_malformed),
        cmocka_unit_test(votes_speak_for_their_sender_only),
        cmocka_unit_test(results_and_transfers_arrive_as_sent),
        cmocka_unit_test(many_large_entries_go_in_several_frames),
        cmocka_unit_test(hello_and_admission_arrive_as_sent),
        cmocka_unit_test(configuration_of_foreign_bytes_is_checked_before_raft_reads_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
