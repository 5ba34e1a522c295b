/* Messages between agents: what goes in comes out equal, and foreign bytes are refused by kind,
 * size, count and range before they are used. */
#include "agent/mesh/peer_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/prng.h"
#include "common/wire/arena.h"
#include "common/wire/unpack.h"
#include "jury/internal/peer.pb-c.h"

static struct target_id random_target(struct prng *prng, uint32_t chunk)
{
    return (struct target_id){
        .slot = chunk * LIMIT_VOTE_SLOTS_PER_CHUNK +
                (uint32_t)prng_below(prng, LIMIT_VOTE_SLOTS_PER_CHUNK),
        .birth = prng_next(prng) | 1,
    };
}

static void random_chunk(struct prng *prng, struct vote_chunk *chunk)
{
    chunk->epoch = prng_next(prng);
    chunk->sequence = prng_next(prng);
    chunk->revision = prng_next(prng);
    chunk->floor = prng_next(prng);
    chunk->n_chunks = (uint16_t)(1 + prng_below(prng, LIMIT_VOTE_CHUNKS));
    chunk->chunk = (uint16_t)prng_below(prng, chunk->n_chunks);
    chunk->n_births = (uint16_t)prng_below(prng, LIMIT_BIRTHS_PER_CHUNK + 1);
    chunk->suspect_mask = (uint32_t)prng_next(prng);
    chunk->doubt_causes = (uint8_t)prng_next(prng);
    chunk->digest = (struct hash128){prng_next(prng), prng_next(prng)};
    for (uint16_t i = 0; i < chunk->n_births; i++) {
        chunk->births[i] = random_target(prng, chunk->chunk);
    }
    for (size_t i = 0; i < sizeof chunk->opinions / (1 + prng_below(prng, 3)); i++) {
        for (int bit = 0; bit < 8; bit += 2) {
            chunk->opinions[i] |= (uint8_t)(prng_below(prng, 4) << bit);
        }
    }
}

static void random_change(struct prng *prng, struct vote_change *change)
{
    *change = (struct vote_change){
        .epoch = prng_next(prng),
        .sequence = prng_next(prng),
        .target = random_target(prng, (uint32_t)prng_below(prng, LIMIT_VOTE_CHUNKS)),
        .opinion = (uint8_t)prng_below(prng, 3),
        .reason = (uint8_t)prng_below(prng, 256),
        .http_status = (uint16_t)prng_below(prng, 1000),
        .response_us = (uint32_t)prng_next(prng),
        .streak = (uint32_t)prng_next(prng),
        .since_ms = prng_next(prng),
        .probe_age_ms = prng_next(prng),
        .suspect_mask = (uint32_t)prng_next(prng),
        .wavers = prng_below(prng, 2) == 0,
    };
}

static void random_report(struct prng *prng, struct drain_report *report)
{
    report->epoch = prng_next(prng);
    report->sequence = prng_next(prng);
    report->n_entries = (uint16_t)prng_below(prng, LIMIT_DRAIN_ENTRIES + 1);
    for (uint16_t i = 0; i < report->n_entries; i++) {
        report->entries[i].row = (uint32_t)prng_below(prng, LIMIT_ROWS);
        report->entries[i].birth = prng_next(prng) | 1;
        report->entries[i].drain_revision = prng_next(prng);
        report->entries[i].n_flows = prng_next(prng);
        report->entries[i].is_counting = prng_below(prng, 2) == 0;
        report->entries[i].is_done = prng_below(prng, 2) == 0;
    }
}

static void random_message(struct prng *prng, struct peer_message *message)
{
    memset(message, 0, sizeof *message);
    message->kind = (uint8_t)(1 + prng_below(prng, PEER_FORWARD_RESPONSE));
    switch ((enum peer_kind)message->kind) {
    case PEER_NONE:
        break;
    case PEER_HELLO:
        for (size_t i = 0; i < CLUSTER_ID_BYTES; i++) {
            message->u.hello.cluster_id.bytes[i] = (uint8_t)prng_next(prng);
        }
        message->u.hello.node_id = prng_next(prng);
        message->u.hello.epoch = prng_next(prng);
        message->u.hello.revision = prng_next(prng);
        message->u.hello.version_min = 1;
        message->u.hello.version_max = 1 + (uint32_t)prng_below(prng, 100);
        message->u.hello.feature_level = (uint32_t)prng_next(prng);
        message->u.hello.is_observer = prng_below(prng, 2) == 0;
        message->u.hello.beat_ms = prng_next(prng);
        message->u.hello.sentinel_port = (uint16_t)prng_next(prng);
        message->u.hello.lacks_shared_space = prng_below(prng, 2) == 0;
        message->u.hello.unbuilt = (uint8_t)prng_below(prng, 4);
        message->u.hello.store_is_down = prng_below(prng, 2) == 1;
        break;
    case PEER_VOTE_CHUNK:
        random_chunk(prng, &message->u.chunk);
        break;
    case PEER_VOTE_CHANGE:
        random_change(prng, &message->u.change);
        break;
    case PEER_VOTE_QUESTION:
        message->u.question.epoch = prng_next(prng);
        message->u.question.sequence = prng_next(prng);
        message->u.question.n_targets = (uint16_t)(1 + prng_below(prng, LIMIT_QUESTION_TARGETS));
        for (uint16_t i = 0; i < message->u.question.n_targets; i++) {
            message->u.question.targets[i] = random_target(prng, 1);
        }
        break;
    case PEER_DRAIN_REPORT:
        random_report(prng, &message->u.report);
        break;
    case PEER_FORWARD_REQUEST:
        message->u.forward_request.forward_id = prng_next(prng);
        message->u.forward_request.role = (uint8_t)(1 + prng_below(prng, 3));
        memset(message->u.forward_request.name, 'n', 1 + prng_below(prng, LIMIT_NAME_BYTES));
        break;
    case PEER_FORWARD_RESPONSE:
        message->u.forward_response.forward_id = prng_next(prng);
        break;
    }
}

/* Field by field: padding may hold anything. */
#define SAME(field) assert_int_equal(a->field, b->field)

static void same_targets(const struct target_id *a, const struct target_id *b, size_t n)
{
    for (; n > 0; n--, a++, b++) {
        SAME(slot);
        SAME(birth);
    }
}

static void same_chunk(const struct vote_chunk *a, const struct vote_chunk *b)
{
    SAME(epoch);
    SAME(sequence);
    SAME(revision);
    SAME(floor);
    SAME(chunk);
    SAME(n_chunks);
    SAME(n_births);
    SAME(suspect_mask);
    SAME(doubt_causes);
    SAME(digest.low);
    SAME(digest.high);
    same_targets(a->births, b->births, a->n_births);
    assert_memory_equal(a->opinions, b->opinions, sizeof a->opinions);
}

static void same_change(const struct vote_change *a, const struct vote_change *b)
{
    SAME(epoch);
    SAME(sequence);
    same_targets(&a->target, &b->target, 1);
    SAME(opinion);
    SAME(reason);
    SAME(http_status);
    SAME(response_us);
    SAME(streak);
    SAME(since_ms);
    SAME(probe_age_ms);
    SAME(suspect_mask);
    SAME(wavers);
}

static void same_hello(const struct hello *a, const struct hello *b)
{
    assert_memory_equal(&a->cluster_id, &b->cluster_id, sizeof a->cluster_id);
    SAME(node_id);
    SAME(epoch);
    SAME(revision);
    SAME(version_min);
    SAME(version_max);
    SAME(feature_level);
    SAME(is_observer);
    SAME(sentinel_port);
    SAME(lacks_shared_space);
    SAME(unbuilt);
    SAME(store_is_down);
    SAME(beat_ms);
}

static void same_report(const struct drain_report *report_a, const struct drain_report *report_b)
{
    assert_int_equal(report_a->epoch, report_b->epoch);
    assert_int_equal(report_a->sequence, report_b->sequence);
    assert_int_equal(report_a->n_entries, report_b->n_entries);
    for (uint16_t i = 0; i < report_a->n_entries; i++) {
        const struct drain_entry *a = &report_a->entries[i], *b = &report_b->entries[i];

        SAME(row);
        SAME(birth);
        SAME(drain_revision);
        SAME(n_flows);
        SAME(is_counting);
        SAME(is_done);
    }
}

static void same_message(const struct peer_message *a, const struct peer_message *b)
{
    SAME(kind);
    switch ((enum peer_kind)a->kind) {
    case PEER_NONE:
        break;
    case PEER_HELLO:
        same_hello(&a->u.hello, &b->u.hello);
        break;
    case PEER_VOTE_CHUNK:
        same_chunk(&a->u.chunk, &b->u.chunk);
        break;
    case PEER_VOTE_CHANGE:
        same_change(&a->u.change, &b->u.change);
        break;
    case PEER_VOTE_QUESTION:
        SAME(u.question.epoch);
        SAME(u.question.sequence);
        SAME(u.question.n_targets);
        same_targets(a->u.question.targets, b->u.question.targets, a->u.question.n_targets);
        break;
    case PEER_DRAIN_REPORT:
        same_report(&a->u.report, &b->u.report);
        break;
    case PEER_FORWARD_REQUEST:
        SAME(u.forward_request.forward_id);
        SAME(u.forward_request.role);
        assert_string_equal(a->u.forward_request.name, b->u.forward_request.name);
        break;
    case PEER_FORWARD_RESPONSE:
        SAME(u.forward_response.forward_id);
        break;
    }
}

static void messages_come_back_equal(void **state)
{
    (void)state;
    struct peer_message *message = malloc(sizeof *message), *back = malloc(sizeof *back);
    struct prng prng;

    prng_init(&prng, 7);
    for (int i = 0; i < 2000; i++) {
        struct errmsg err = {{0}};
        uint8_t *data;
        size_t n_bytes;

        random_message(&prng, message);
        assert_int_equal(peer_encode(message, &data, &n_bytes), 0);
        memset(back, 0, sizeof *back);
        assert_int_equal(peer_decode(data, n_bytes, back, &err), 0);
        same_message(message, back);
        free(data);
    }
    free(message);
    free(back);
}

/* --- refusals: the largest message of each kind fits, and each field has its range --- */

static void the_largest_chunk_and_report_fit_their_caps(void **state)
{
    (void)state;
    struct peer_message *message = calloc(1, sizeof *message);
    struct errmsg err;
    uint8_t *data;
    size_t n_bytes;

    message->kind = PEER_VOTE_CHUNK;
    struct vote_chunk *chunk = &message->u.chunk;
    chunk->epoch = chunk->sequence = chunk->revision = chunk->floor = UINT64_MAX;
    chunk->n_chunks = LIMIT_VOTE_CHUNKS;
    chunk->chunk = LIMIT_VOTE_CHUNKS - 1;
    chunk->n_births = LIMIT_BIRTHS_PER_CHUNK;
    chunk->suspect_mask = UINT32_MAX;
    for (int i = 0; i < LIMIT_BIRTHS_PER_CHUNK; i++) {
        chunk->births[i] = (struct target_id){LIMIT_TARGETS - 1, UINT64_MAX};
    }
    memset(chunk->opinions, 0xaa, sizeof chunk->opinions);
    assert_int_equal(peer_encode(message, &data, &n_bytes), 0);
    assert_int_equal(peer_decode(data, n_bytes, message, &err), 0);
    print_message("largest vote chunk: %zu bytes\n", n_bytes);
    free(data);

    memset(message, 0, sizeof *message);
    message->kind = PEER_DRAIN_REPORT;
    message->u.report.n_entries = LIMIT_DRAIN_ENTRIES;
    for (int i = 0; i < LIMIT_DRAIN_ENTRIES; i++) {
        message->u.report.entries[i] = (struct drain_entry){.row = LIMIT_ROWS - 1,
                                                            .birth = UINT64_MAX,
                                                            .drain_revision = UINT64_MAX,
                                                            .n_flows = UINT64_MAX,
                                                            .is_counting = true,
                                                            .is_done = true};
    }
    assert_int_equal(peer_encode(message, &data, &n_bytes), 0);
    assert_int_equal(peer_decode(data, n_bytes, message, &err), 0);
    print_message("largest drain report: %zu bytes\n", n_bytes);
    free(data);
    free(message);
}

static void heads_of_other_protocols_versions_and_kinds_are_refused_apart(void **state)
{
    (void)state;
    static const struct {
        uint8_t head[4];
        size_t n_bytes;
        int rc;
    } rows[] = {
        {{'J', 'M', 1, PEER_FORWARD_RESPONSE}, 4, 0},
        {{'J', 'M', 1, 0}, 4, ERR_INVALID},
        {{'J', 'M', 2, PEER_HELLO}, 4, ERR_VERSION},
        {{'J', 'M', 0, PEER_HELLO}, 4, ERR_VERSION},
        {{'J', 'M', 1, 8}, 4, ERR_UNAVAILABLE_YET},
        {{'J', 'M', 1, 255}, 4, ERR_UNAVAILABLE_YET},
        {{'G', 'E', 'T', ' '}, 4, ERR_INVALID},
        {{'J', 'M', 1}, 3, ERR_INVALID},
        {{0}, 0, ERR_INVALID},
    };
    struct peer_message *message = calloc(1, sizeof *message);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct errmsg err;

        assert_int_equal(peer_decode(rows[i].head, rows[i].n_bytes, message, &err), rows[i].rc);
    }
    free(message);
}

static int decode_message(uint8_t kind, const ProtobufCMessage *message, struct errmsg *err)
{
    struct peer_message *to = calloc(1, sizeof *to);
    uint8_t data[32768] = {'J', 'M', 1, kind};

    assert_true(protobuf_c_message_get_packed_size(message) < sizeof data - 4);
    size_t n_bytes = 4 + protobuf_c_message_pack(message, data + 4);
    int rc = peer_decode(data, n_bytes, to, err);
    free(to);
    return rc;
}

static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    struct wire_arena arena;
    struct errmsg err;
    uint8_t opinions[1025] = {0x01};

    wire_arena_init(&arena, 1 << 20);
    Jury__Internal__VoteChunk *chunk =
        WIRE_NEW(&arena, Jury__Internal__VoteChunk, jury__internal__vote_chunk);
    Jury__Internal__TargetId *birth =
        WIRE_NEW(&arena, Jury__Internal__TargetId, jury__internal__target_id);
    birth->birth = 1;
    chunk->n_chunks = 1;
    chunk->births = wire_alloc_array(&arena, 65, sizeof(void *));
    for (int i = 0; i < 65; i++) {
        chunk->births[i] = birth;
    }
    chunk->n_births = 64;
    chunk->opinions.data = opinions;
    chunk->opinions.len = 1024;
    assert_int_equal(decode_message(PEER_VOTE_CHUNK, &chunk->base, &err), 0);
    chunk->n_births = 65;
    assert_int_equal(decode_message(PEER_VOTE_CHUNK, &chunk->base, &err), ERR_LIMIT);
    assert_string_equal(err.text, "message of a peer: it lists 65 births, allowed are 64");
    chunk->n_births = 1;
    birth->slot = 4096;
    assert_int_equal(decode_message(PEER_VOTE_CHUNK, &chunk->base, &err), ERR_INVALID);
    birth->slot = LIMIT_TARGETS;
    assert_int_equal(decode_message(PEER_VOTE_CHUNK, &chunk->base, &err), ERR_INVALID);
    birth->slot = 0;
    chunk->opinions.len = 1025;
    assert_int_equal(decode_message(PEER_VOTE_CHUNK, &chunk->base, &err), ERR_INVALID);
    chunk->opinions.len = 1024;
    chunk->chunk = 1;
    assert_int_equal(decode_message(PEER_VOTE_CHUNK, &chunk->base, &err), ERR_INVALID);
    chunk->n_chunks = LIMIT_VOTE_CHUNKS + 1;
    assert_int_equal(decode_message(PEER_VOTE_CHUNK, &chunk->base, &err), ERR_INVALID);

    Jury__Internal__VoteChange *change =
        WIRE_NEW(&arena, Jury__Internal__VoteChange, jury__internal__vote_change);
    assert_int_equal(decode_message(PEER_VOTE_CHANGE, &change->base, &err), ERR_INVALID);
    change->target = birth;
    assert_int_equal(decode_message(PEER_VOTE_CHANGE, &change->base, &err), 0);
    change->opinion = 3;
    assert_int_equal(decode_message(PEER_VOTE_CHANGE, &change->base, &err), ERR_INVALID);
    change->opinion = 257;
    assert_int_equal(decode_message(PEER_VOTE_CHANGE, &change->base, &err), ERR_INVALID);

    Jury__Internal__ForwardRequest *request =
        WIRE_NEW(&arena, Jury__Internal__ForwardRequest, jury__internal__forward_request);
    assert_int_equal(decode_message(PEER_FORWARD_REQUEST, &request->base, &err), ERR_INVALID);
    request->identity = WIRE_NEW(&arena, Jury__Internal__Identity, jury__internal__identity);
    request->identity->name = wire_text(&arena, "alice");
    assert_int_equal(decode_message(PEER_FORWARD_REQUEST, &request->base, &err), ERR_INVALID);
    request->identity->role = 4;
    assert_int_equal(decode_message(PEER_FORWARD_REQUEST, &request->base, &err), ERR_INVALID);
    request->identity->role = JURY__V1__ROLE__ROLE_ADMIN;
    assert_int_equal(decode_message(PEER_FORWARD_REQUEST, &request->base, &err), 0);
    request->identity->name = wire_text(&arena, "");
    assert_int_equal(decode_message(PEER_FORWARD_REQUEST, &request->base, &err), ERR_INVALID);
    wire_arena_close(&arena);
}

static void cut_and_flipped_messages_are_refused_or_read(void **state)
{
    (void)state;
    struct peer_message *message = malloc(sizeof *message), *back = malloc(sizeof *back);
    struct prng prng;

    prng_init(&prng, 11);
    for (int i = 0; i < 50; i++) {
        struct errmsg err;
        uint8_t *data;
        size_t n_bytes;

        random_message(&prng, message);
        assert_int_equal(peer_encode(message, &data, &n_bytes), 0);
        for (size_t n = 0; n < n_bytes; n += 1 + n / 64) {
            peer_decode(data, n, back, &err);
        }
        for (int j = 0; j < 500; j++) {
            size_t at = prng_below(&prng, n_bytes);
            uint8_t before = data[at];

            data[at] ^= (uint8_t)(1U << prng_below(&prng, 8));
            peer_decode(data, n_bytes, back, &err);
            data[at] = before;
        }
        free(data);
    }
    free(message);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_back_equal),
        cmocka_unit_test(the_largest_chunk_and_report_fit_their_caps),
        cmocka_unit_test(heads_of_other_protocols_versions_and_kinds_are_refused_apart),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(cut_and_flipped_messages_are_refused_or_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
