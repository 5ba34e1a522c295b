/* Messages between agents: plain value -> frame. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/mesh/peer_bounds.h"
#include "agent/mesh/peer_codec.h"
#include "jury/internal/peer.pb-c.h"

typedef Jury__Internal__VoteChunk ChunkMessage;

/* Each x_new is NULL when the arena is used up. */

static ProtobufCBinaryData data_new(struct wire_arena *arena, const uint8_t *bytes, size_t n_bytes)
{
    ProtobufCBinaryData data = {.data = wire_alloc(arena, n_bytes)};

    if (data.data != NULL) {
        memcpy(data.data, bytes, n_bytes);
        data.len = n_bytes;
    }
    return data;
}

static Jury__Internal__TargetId *target_new(struct wire_arena *arena, struct target_id target)
{
    Jury__Internal__TargetId *message =
        WIRE_NEW(arena, Jury__Internal__TargetId, jury__internal__target_id);

    if (message != NULL) {
        message->slot = target.slot;
        message->birth = target.birth;
    }
    return message;
}

/* An array of targets; *ret_n is 0 when the arena is used up. */
static Jury__Internal__TargetId **targets_new(struct wire_arena *arena,
                                              const struct target_id targets[], size_t n_targets,
                                              size_t *ret_n)
{
    Jury__Internal__TargetId **messages = wire_alloc_array(arena, n_targets, sizeof *messages);

    *ret_n = messages != NULL ? n_targets : 0;
    for (size_t i = 0; i < *ret_n; i++) {
        messages[i] = target_new(arena, targets[i]);
    }
    return messages;
}

static ProtobufCMessage *hello_new(struct wire_arena *arena, const struct hello *hello)
{
    Jury__Internal__Hello *message = WIRE_NEW(arena, Jury__Internal__Hello, jury__internal__hello);

    if (message == NULL) {
        return NULL;
    }
    message->cluster_id = data_new(arena, hello->cluster_id.bytes, CLUSTER_ID_BYTES);
    message->node_id = hello->node_id;
    message->epoch = hello->epoch;
    message->revision = hello->revision;
    message->version_min = hello->version_min;
    message->version_max = hello->version_max;
    message->feature_level = hello->feature_level;
    message->is_observer = hello->is_observer;
    message->sentinel_port = hello->sentinel_port;
    message->beat_ms = hello->beat_ms;
    message->lacks_shared_space = hello->lacks_shared_space;
    message->unbuilt = hello->unbuilt;
    message->store_is_down = hello->store_is_down;
    return &message->base;
}

static ProtobufCMessage *chunk_new(struct wire_arena *arena, const struct vote_chunk *chunk)
{
    size_t n_bytes = sizeof chunk->opinions;
    ChunkMessage *message = WIRE_NEW(arena, ChunkMessage, jury__internal__vote_chunk);

    assert(chunk->n_births <= LIMIT_BIRTHS_PER_CHUNK);
    if (message == NULL) {
        return NULL;
    }
    while (n_bytes > 0 && chunk->opinions[n_bytes - 1] == 0) {
        n_bytes--;
    }
    message->epoch = chunk->epoch;
    message->sequence = chunk->sequence;
    message->revision = chunk->revision;
    message->floor = chunk->floor;
    message->chunk = chunk->chunk;
    message->n_chunks = chunk->n_chunks;
    message->suspect_mask = chunk->suspect_mask;
    message->doubt_causes = chunk->doubt_causes;
    message->digest_low = chunk->digest.low;
    message->digest_high = chunk->digest.high;
    message->births = targets_new(arena, chunk->births, chunk->n_births, &message->n_births);
    message->opinions = data_new(arena, chunk->opinions, n_bytes);
    return &message->base;
}

static ProtobufCMessage *change_new(struct wire_arena *arena, const struct vote_change *change)
{
    Jury__Internal__VoteChange *message =
        WIRE_NEW(arena, Jury__Internal__VoteChange, jury__internal__vote_change);

    if (message == NULL) {
        return NULL;
    }
    message->epoch = change->epoch;
    message->sequence = change->sequence;
    message->target = target_new(arena, change->target);
    message->opinion = change->opinion;
    message->reason = change->reason;
    message->http_status = change->http_status;
    message->response_us = change->response_us;
    message->streak = change->streak;
    message->since_ms = change->since_ms;
    message->probe_age_ms = change->probe_age_ms;
    message->suspect_mask = change->suspect_mask;
    message->wavers = change->wavers;
    message->part = change->part;
    return &message->base;
}

static ProtobufCMessage *question_new(struct wire_arena *arena,
                                      const struct vote_question *question)
{
    Jury__Internal__VoteQuestion *message =
        WIRE_NEW(arena, Jury__Internal__VoteQuestion, jury__internal__vote_question);

    assert(question->n_targets <= LIMIT_QUESTION_TARGETS);
    if (message == NULL) {
        return NULL;
    }
    message->epoch = question->epoch;
    message->sequence = question->sequence;
    message->targets =
        targets_new(arena, question->targets, question->n_targets, &message->n_targets);
    return &message->base;
}

static Jury__Internal__DrainEntry *entry_new(struct wire_arena *arena,
                                             const struct drain_entry *entry)
{
    Jury__Internal__DrainEntry *message =
        WIRE_NEW(arena, Jury__Internal__DrainEntry, jury__internal__drain_entry);

    if (message != NULL) {
        message->row = entry->row;
        message->birth = entry->birth;
        message->drain_revision = entry->drain_revision;
        message->n_flows = entry->n_flows;
        message->is_counting = entry->is_counting;
        message->is_done = entry->is_done;
        message->n_closed = entry->n_closed;
    }
    return message;
}

static ProtobufCMessage *report_new(struct wire_arena *arena, const struct drain_report *report)
{
    Jury__Internal__DrainReport *message =
        WIRE_NEW(arena, Jury__Internal__DrainReport, jury__internal__drain_report);

    assert(report->n_entries <= LIMIT_DRAIN_ENTRIES);
    if (message == NULL) {
        return NULL;
    }
    message->epoch = report->epoch;
    message->sequence = report->sequence;
    message->entries = wire_alloc_array(arena, report->n_entries, sizeof *message->entries);
    message->n_entries = message->entries != NULL ? report->n_entries : 0;
    for (size_t i = 0; i < message->n_entries; i++) {
        message->entries[i] = entry_new(arena, &report->entries[i]);
    }
    return &message->base;
}

static ProtobufCMessage *forward_request_new(struct wire_arena *arena,
                                             const struct peer_forward_request *request)
{
    Jury__Internal__ForwardRequest *message =
        WIRE_NEW(arena, Jury__Internal__ForwardRequest, jury__internal__forward_request);
    Jury__Internal__Identity *identity =
        WIRE_NEW(arena, Jury__Internal__Identity, jury__internal__identity);

    if (message == NULL || identity == NULL) {
        return NULL;
    }
    identity->name = wire_text(arena, request->name);
    identity->role = (Jury__V1__Role)request->role;
    message->forward_id = request->forward_id;
    message->identity = identity;
    return &message->base;
}

static ProtobufCMessage *message_new(struct wire_arena *arena, const struct peer_message *message)
{
    Jury__Internal__ForwardResponse *response;

    switch ((enum peer_kind)message->kind) {
    case PEER_HELLO:
        return hello_new(arena, &message->u.hello);
    case PEER_VOTE_CHUNK:
        return chunk_new(arena, &message->u.chunk);
    case PEER_VOTE_CHANGE:
        return change_new(arena, &message->u.change);
    case PEER_VOTE_QUESTION:
        return question_new(arena, &message->u.question);
    case PEER_DRAIN_REPORT:
        return report_new(arena, &message->u.report);
    case PEER_FORWARD_REQUEST:
        return forward_request_new(arena, &message->u.forward_request);
    case PEER_FORWARD_RESPONSE:
        response =
            WIRE_NEW(arena, Jury__Internal__ForwardResponse, jury__internal__forward_response);
        if (response == NULL) {
            return NULL;
        }
        response->forward_id = message->u.forward_response.forward_id;
        return &response->base;
    case PEER_NONE:
        break;
    }
    assert(message->kind != PEER_NONE);
    return NULL;
}

int peer_encode(const struct peer_message *message, uint8_t **ret_data, size_t *ret_n_bytes)
{
    struct wire_arena arena;
    int rc = ERR_NOMEM;

    assert(message->kind > PEER_NONE && message->kind < PEER_N_KINDS);
    wire_arena_init(&arena, wire_budget(peer_limits(message->kind)));
    ProtobufCMessage *packed = message_new(&arena, message);
    size_t n_bytes =
        packed != NULL && !arena.failed ? protobuf_c_message_get_packed_size(packed) : 0;
    uint8_t *data = arena.failed ? NULL : malloc(PEER_HEADER_BYTES + n_bytes);
    if (data != NULL) {
        assert(n_bytes <= peer_limits(message->kind)->bytes_max);
        data[0] = PEER_MAGIC_0;
        data[1] = PEER_MAGIC_1;
        data[2] = PEER_VERSION_MAJOR;
        data[3] = message->kind;
        protobuf_c_message_pack(packed, data + PEER_HEADER_BYTES);
        *ret_data = data;
        *ret_n_bytes = PEER_HEADER_BYTES + n_bytes;
        rc = 0;
    }
    wire_arena_close(&arena);
    return rc;
}
