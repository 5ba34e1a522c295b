#include "agent/mesh/peer_codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/wire/unpack.h"
#include "jury/internal/peer.pb-c.h"

#define MAGIC_0 'J'
#define MAGIC_1 'M'

typedef Jury__Internal__VoteChunk ChunkMessage;

/* What a kind may weigh, header aside. Each holds our own largest message of the kind with room for
 * fields that a later minor version adds. */
struct kind_bounds {
    const ProtobufCMessageDescriptor *type;
    struct wire_limits limits;
};

static const struct kind_bounds bounds[] = {
    [PEER_HELLO] = {&jury__internal__hello__descriptor, {.bytes_max = 512, .elements_max = 64}},
    [PEER_VOTE_CHUNK] = {&jury__internal__vote_chunk__descriptor,
                         {.bytes_max = 4096, .elements_max = 512}},
    [PEER_VOTE_CHANGE] = {&jury__internal__vote_change__descriptor,
                          {.bytes_max = 512, .elements_max = 64}},
    [PEER_VOTE_QUESTION] = {&jury__internal__vote_question__descriptor,
                            {.bytes_max = 1024, .elements_max = 128}},
    [PEER_DRAIN_REPORT] = {&jury__internal__drain_report__descriptor,
                           {.bytes_max = 16384, .elements_max = 4096}},
    [PEER_FORWARD_REQUEST] = {&jury__internal__forward_request__descriptor,
                              {.bytes_max = 512, .elements_max = 64}},
    [PEER_FORWARD_RESPONSE] = {&jury__internal__forward_response__descriptor,
                               {.bytes_max = 256, .elements_max = 64}},
};
#define N_KINDS (sizeof bounds / sizeof bounds[0])

/* --- plain value -> message; NULL when the arena is used up --- */

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
    message->suspect_mask = change->suspect_mask;
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

    assert(message->kind > PEER_NONE && message->kind < N_KINDS);
    wire_arena_init(&arena, wire_budget(&bounds[message->kind].limits));
    ProtobufCMessage *packed = message_new(&arena, message);
    size_t n_bytes =
        packed != NULL && !arena.failed ? protobuf_c_message_get_packed_size(packed) : 0;
    uint8_t *data = arena.failed ? NULL : malloc(PEER_HEADER_BYTES + n_bytes);
    if (data != NULL) {
        assert(n_bytes <= bounds[message->kind].limits.bytes_max);
        data[0] = MAGIC_0;
        data[1] = MAGIC_1;
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

/* --- message -> plain value; every number and count is checked --- */

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
    };
    memcpy(hello->cluster_id.bytes, message->cluster_id.data, CLUSTER_ID_BYTES);
    return 0;
}

/* Two bits an opinion, 3 is none. */
static bool has_bad_opinion(const ProtobufCBinaryData *opinions)
{
    uint8_t bad = 0;

    for (size_t i = 0; i < opinions->len; i++) {
        bad |= (uint8_t)(opinions->data[i] & opinions->data[i] >> 1 & 0x55);
    }
    return bad != 0;
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
    if (message->opinions.len > sizeof chunk->opinions || has_bad_opinion(&message->opinions)) {
        return refuse(err, "its opinions are too many or out of range");
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
    if (n_bytes < PEER_HEADER_BYTES || data[0] != MAGIC_0 || data[1] != MAGIC_1) {
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
    if (data[3] >= N_KINDS) {
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
    wire_arena_init(&arena, wire_budget(&bounds[kind].limits));
    rc = wire_unpack(bounds[kind].type, &bounds[kind].limits, data + PEER_HEADER_BYTES,
                     n_bytes - PEER_HEADER_BYTES, &arena, &message, err);
    if (rc == 0) {
        ret_message->kind = kind;
        rc = read_message(message, ret_message, err);
    }
    wire_arena_close(&arena);
    return rc;
}
