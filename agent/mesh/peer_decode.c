/* Messages between agents: frame -> plain value; every number and count is checked. */
#include <stdbool.h>
#include <string.h>

#include "agent/mesh/peer_bounds.h"
#include "agent/mesh/peer_codec.h"
#include "common/base/str.h"
#include "jury/internal/peer.pb-c.h"

typedef Jury__Internal__VoteChunk ChunkMessage;

static int refuse(struct errmsg *err, const char *what)
{
    return errmsg_set(err, ERR_INVALID, "message of a peer: %s", what);
}

static int read_target(const Jury__Internal__TargetId *message, struct target_id *ret_target,
                       struct errmsg *err)
{
    if (message == NULL || message->slot >= LIMIT_TARGETS || message->birth == 0) {
        return refuse(err, "its target is missing or out of range");
    }
    *ret_target = (struct target_id){.slot = message->slot, .birth = message->birth};
    return 0;
}

static int read_hello(const Jury__Internal__Hello *message, struct hello *hello, struct errmsg *err)
{
    if (message->cluster_id.len != CLUSTER_ID_BYTES) {
        return refuse(err, "its cluster id must have 16 bytes");
    }
    if (message->version_min == 0 || message->version_max < message->version_min) {
        return refuse(err, "its range of versions is empty");
    }
    *hello = (struct hello){
        .node_id = message->node_id,
        .epoch = message->epoch,
        .revision = message->revision,
        .version_min = message->version_min,
        .version_max = message->version_max,
        .feature_level = message->feature_level,
        .is_observer = message->is_observer,
        .beat_ms = message->beat_ms,
        .lacks_shared_space = message->lacks_shared_space,
        .store_is_down = message->store_is_down,
        .unbuilt = (uint8_t)(message->unbuilt & (HELLO_NO_TLS | HELLO_NO_GRPC)),
        .sentinel_port =
            message->sentinel_port <= UINT16_MAX ? (uint16_t)message->sentinel_port : 0,
    };
    memcpy(hello->cluster_id.bytes, message->cluster_id.data, CLUSTER_ID_BYTES);
    return 0;
}

static int read_chunk(const ChunkMessage *message, struct vote_chunk *chunk, struct errmsg *err)
{
    if (message->n_chunks == 0 || message->n_chunks > LIMIT_VOTE_CHUNKS ||
        message->chunk >= message->n_chunks) {
        return refuse(err, "its chunk number is out of range");
    }
    if (message->n_births > LIMIT_BIRTHS_PER_CHUNK) {
        return errmsg_set(err, ERR_LIMIT, "message of a peer: it lists %zu births, allowed are %d",
                          message->n_births, LIMIT_BIRTHS_PER_CHUNK);
    }
    if (message->opinions.len > sizeof chunk->opinions) {
        return refuse(err, "its opinions are too many");
    }
    *chunk = (struct vote_chunk){
        .epoch = message->epoch,
        .sequence = message->sequence,
        .revision = message->revision,
        .floor = message->floor,
        .chunk = (uint16_t)message->chunk,
        .n_chunks = (uint16_t)message->n_chunks,
        .n_births = (uint16_t)message->n_births,
        .suspect_mask = message->suspect_mask,
        .doubt_causes = (uint8_t)message->doubt_causes,
        .digest = {.low = message->digest_low, .high = message->digest_high},
    };
    for (size_t i = 0; i < message->n_births; i++) {
        int rc = read_target(message->births[i], &chunk->births[i], err);

        if (rc != 0) {
            return rc;
        }
        if (chunk->births[i].slot / LIMIT_VOTE_SLOTS_PER_CHUNK != message->chunk) {
            return refuse(err, "it lists a birth of another chunk");
        }
    }
    if (message->opinions.len > 0) {
        memcpy(chunk->opinions, message->opinions.data, message->opinions.len);
    }
    return 0;
}

static int read_change(const Jury__Internal__VoteChange *message, struct vote_change *change,
                       struct errmsg *err)
{
    struct target_id target;
    int rc = read_target(message->target, &target, err);

    if (rc != 0) {
        return rc;
    }
    if (message->opinion > OPINION_FAIL || message->reason > UINT8_MAX ||
        message->http_status > 999) {
        return refuse(err, "its opinion, reason or HTTP status is out of range");
    }
    *change = (struct vote_change){
        .epoch = message->epoch,
        .sequence = message->sequence,
        .target = target,
        .opinion = (uint8_t)message->opinion,
        .reason = (uint8_t)message->reason,
        .http_status = (uint16_t)message->http_status,
        .response_us = message->response_us,
        .streak = message->streak,
        .since_ms = message->since_ms,
        .probe_age_ms = message->probe_age_ms,
        .wavers = message->wavers,
        .part = message->part <= LIMIT_CHECKS ? (uint8_t)message->part : 0,
        .suspect_mask = message->suspect_mask,
    };
    return 0;
}

static int read_question(const Jury__Internal__VoteQuestion *message,
                         struct vote_question *question, struct errmsg *err)
{
    if (message->n_targets == 0 || message->n_targets > LIMIT_QUESTION_TARGETS) {
        return errmsg_set(err, ERR_LIMIT,
                          "message of a peer: it asks for %zu targets, allowed are 1..%d",
                          message->n_targets, LIMIT_QUESTION_TARGETS);
    }
    *question = (struct vote_question){.epoch = message->epoch,
                                       .sequence = message->sequence,
                                       .n_targets = (uint16_t)message->n_targets};
    for (size_t i = 0; i < message->n_targets; i++) {
        int rc = read_target(message->targets[i], &question->targets[i], err);

        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int read_report(const Jury__Internal__DrainReport *message, struct drain_report *report,
                       struct errmsg *err)
{
    if (message->n_entries > LIMIT_DRAIN_ENTRIES) {
        return errmsg_set(err, ERR_LIMIT, "message of a peer: it has %zu rows, allowed are %d",
                          message->n_entries, LIMIT_DRAIN_ENTRIES);
    }
    *report = (struct drain_report){.epoch = message->epoch,
                                    .sequence = message->sequence,
                                    .n_entries = (uint16_t)message->n_entries};
    for (size_t i = 0; i < message->n_entries; i++) {
        const Jury__Internal__DrainEntry *entry = message->entries[i];

        if (entry->row >= LIMIT_ROWS || entry->birth == 0) {
            return refuse(err, "it has a row out of range");
        }
        report->entries[i] = (struct drain_entry){
            .row = entry->row,
            .birth = entry->birth,
            .drain_revision = entry->drain_revision,
            .n_flows = entry->n_flows,
            .is_counting = entry->is_counting,
            .is_done = entry->is_done,
            .n_closed = entry->n_closed,
        };
    }
    return 0;
}

static int read_forward_request(const Jury__Internal__ForwardRequest *message,
                                struct peer_forward_request *request, struct errmsg *err)
{
    const Jury__Internal__Identity *identity = message->identity;

    if (identity == NULL || identity->role < JURY__V1__ROLE__ROLE_VIEWER ||
        identity->role > JURY__V1__ROLE__ROLE_ADMIN) {
        return refuse(err, "its caller has no role");
    }
    *request = (struct peer_forward_request){.forward_id = message->forward_id,
                                             .role = (uint8_t)identity->role};
    if (identity->name[0] == '\0' ||
        !str_copy(request->name, sizeof request->name, identity->name)) {
        return refuse(err, "its caller's name is empty or too long");
    }
    return 0;
}

static int read_message(const ProtobufCMessage *message, struct peer_message *to,
                        struct errmsg *err)
{
    switch ((enum peer_kind)to->kind) {
    case PEER_HELLO:
        return read_hello((const Jury__Internal__Hello *)message, &to->u.hello, err);
    case PEER_VOTE_CHUNK:
        return read_chunk((const ChunkMessage *)message, &to->u.chunk, err);
    case PEER_VOTE_CHANGE:
        return read_change((const Jury__Internal__VoteChange *)message, &to->u.change, err);
    case PEER_VOTE_QUESTION:
        return read_question((const Jury__Internal__VoteQuestion *)message, &to->u.question, err);
    case PEER_DRAIN_REPORT:
        return read_report((const Jury__Internal__DrainReport *)message, &to->u.report, err);
    case PEER_FORWARD_REQUEST:
        return read_forward_request((const Jury__Internal__ForwardRequest *)message,
                                    &to->u.forward_request, err);
    case PEER_FORWARD_RESPONSE:
        to->u.forward_response.forward_id =
            ((const Jury__Internal__ForwardResponse *)message)->forward_id;
        return 0;
    case PEER_NONE:
        break;
    }
    return ERR_INTERNAL;
}

static int read_header(const uint8_t *data, size_t n_bytes, uint8_t *ret_kind, struct errmsg *err)
{
    if (n_bytes < PEER_HEADER_BYTES || data[0] != PEER_MAGIC_0 || data[1] != PEER_MAGIC_1) {
        return refuse(err, "it does not begin as one");
    }
    if (data[2] != PEER_VERSION_MAJOR) {
        return errmsg_set(err, ERR_VERSION,
                          "message of a peer: major version %u, this node understands %d", data[2],
                          PEER_VERSION_MAJOR);
    }
    if (data[3] == PEER_NONE) {
        return refuse(err, "it is of no kind");
    }
    if (data[3] >= PEER_N_KINDS) {
        return errmsg_set(err, ERR_UNAVAILABLE_YET,
                          "message of a peer: kind %u is of a newer version", data[3]);
    }
    *ret_kind = data[3];
    return 0;
}

int peer_decode(const uint8_t *data, size_t n_bytes, struct peer_message *ret_message,
                struct errmsg *err)
{
    struct wire_arena arena;
    ProtobufCMessage *message;
    uint8_t kind = PEER_NONE;
    int rc = read_header(data, n_bytes, &kind, err);

    if (rc != 0) {
        return rc;
    }
    wire_arena_init(&arena, wire_budget(peer_limits(kind)));
    rc = wire_unpack(peer_type(kind), peer_limits(kind), data + PEER_HEADER_BYTES,
                     n_bytes - PEER_HEADER_BYTES, &arena, &message, err);
    if (rc == 0) {
        ret_message->kind = kind;
        rc = read_message(message, ret_message, err);
    }
    wire_arena_close(&arena);
    return rc;
}
