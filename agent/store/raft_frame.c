#include "agent/store/raft_frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"

/* Indexes and terms that no cluster reaches; keeps sums of foreign numbers from wrapping. */
#define NUMBER_MAX (UINT64_C(1) << 62)
#define CONFIGURATION_ADDRESS_BYTES 128

/* --- configuration --- */

bool frame_decode_configuration(const uint8_t *data, size_t n_bytes,
                                struct raft_configuration *ret_conf)
{
    struct bytes_reader reader;
    bytes_reader_init(&reader, data, n_bytes);
    uint8_t format = bytes_read_u8(&reader);
    uint64_t n_servers = bytes_read_u64(&reader);

    if (format != 1 || n_servers == 0 || n_servers > LIMIT_NODES) {
        return false;
    }
    for (uint64_t i = 0; i < n_servers; i++) {
        uint64_t id = bytes_read_u64(&reader);
        const uint8_t *end = reader.left == 0 ? NULL : memchr(reader.at, 0, reader.left);

        if (reader.failed || id == 0 || end == NULL || end == reader.at ||
            (size_t)(end - reader.at) > CONFIGURATION_ADDRESS_BYTES) {
            return false;
        }
        bytes_read_view(&reader, (size_t)(end - reader.at) + 1);
        if (bytes_read_u8(&reader) > RAFT_SPARE) {
            return false;
        }
    }
    if (reader.failed || reader.left >= 8) { /* padded to 8 bytes, no more */
        return false;
    }
    /* The cast drops const only because raft's buffer has none; it does not write. */
    struct raft_buffer buffer = {.base = (void *)(uintptr_t)data, .len = n_bytes};
    return raft_configuration_decode(&buffer, ret_conf) == 0;
}

/* --- entries --- */

static bool change_is_valid(const uint8_t *data, size_t n_bytes)
{
    struct raft_configuration conf;

    if (!frame_decode_configuration(data, n_bytes, &conf)) {
        return false;
    }
    raft_configuration_close(&conf);
    return true;
}

/* One entry, checked; its data stays a view. */
static bool read_entry(struct bytes_reader *reader, const struct raft_append_entries *args,
                       uint64_t *term, struct raft_entry *entry, const uint8_t **ret_data)
{
    uint64_t entry_term = bytes_read_u64(reader);
    uint8_t type = bytes_read_u8(reader);
    uint32_t n_bytes = bytes_read_u32(reader);
    const uint8_t *data = bytes_read_view(reader, n_bytes);

    if (data == NULL || n_bytes == 0 || n_bytes % 8 != 0 || n_bytes > LIMIT_COMMAND_BYTES ||
        type < RAFT_COMMAND || type > RAFT_CHANGE || entry_term < *term || entry_term == 0 ||
        entry_term > args->term || (type == RAFT_CHANGE && !change_is_valid(data, n_bytes))) {
        return false;
    }
    *term = entry_term;
    *entry = (struct raft_entry){.term = entry_term, .type = (enum raft_entry_type)type};
    entry->buf.len = n_bytes;
    *ret_data = data;
    return true;
}

/* All data into one block of raft's, as raft-022.md section 3 wants it. */
static enum frame_outcome own_entries(struct bytes_reader *reader, struct raft_append_entries *args,
                                      uint32_t n_entries)
{
    struct bytes_reader again = *reader;
    uint64_t term = args->prev_log_term;
    size_t n_bytes = 0;
    const uint8_t *data;
    struct raft_entry entry;

    for (uint32_t i = 0; i < n_entries; i++) {
        if (!read_entry(reader, args, &term, &entry, &data)) {
            return FRAME_MALFORMED;
        }
        n_bytes += entry.buf.len;
    }
    struct raft_entry *entries = raft_malloc(n_entries * sizeof *entries);
    uint8_t *block = raft_malloc(n_bytes);
    if (entries == NULL || block == NULL) {
        raft_free(entries);
        raft_free(block);
        return FRAME_NOMEM;
    }
    uint8_t *at = block;
    term = args->prev_log_term;
    for (uint32_t i = 0; i < n_entries; i++) {
        bool is_valid = read_entry(&again, args, &term, &entries[i], &data);

        assert(is_valid); /* it was a moment ago */
        memcpy(at, data, entries[i].buf.len);
        entries[i].buf.base = at;
        entries[i].batch = block;
        at += entries[i].buf.len;
    }
    args->entries = entries;
    args->n_entries = n_entries;
    return FRAME_OK;
}

static enum frame_outcome decode_append(struct bytes_reader *reader,
                                        struct raft_append_entries *args)
{
    *args = (struct raft_append_entries){.version = bytes_read_u8(reader)};
    args->term = bytes_read_u64(reader);
    args->prev_log_index = bytes_read_u64(reader);
    args->prev_log_term = bytes_read_u64(reader);
    args->leader_commit = bytes_read_u64(reader);
    uint32_t n_entries = bytes_read_u32(reader);

    if (reader->failed || args->term == 0 || args->term > NUMBER_MAX ||
        args->prev_log_index > NUMBER_MAX || args->leader_commit > NUMBER_MAX ||
        args->prev_log_term > args->term ||
        (args->prev_log_index == 0) != (args->prev_log_term == 0) ||
        n_entries > FRAME_ENTRIES_MAX) {
        return FRAME_MALFORMED;
    }
    return n_entries == 0 ? FRAME_OK : own_entries(reader, args, n_entries);
}

/* --- votes and results --- */

static bool read_flag(struct bytes_reader *reader)
{
    uint8_t value = bytes_read_u8(reader);

    reader->failed |= value > 1;
    return value == 1;
}

static enum frame_outcome decode_result(struct bytes_reader *reader,
                                        struct raft_append_entries_result *result)
{
    result->version = bytes_read_u8(reader);
    result->term = bytes_read_u64(reader);
    result->rejected = bytes_read_u64(reader);
    result->last_log_index = bytes_read_u64(reader);
    result->features = bytes_read_u16(reader);
    result->capacity = bytes_read_u16(reader);
    return reader->failed || result->term == 0 || result->term > NUMBER_MAX ||
                   result->rejected > NUMBER_MAX || result->last_log_index > NUMBER_MAX
               ? FRAME_MALFORMED
               : FRAME_OK;
}

static enum frame_outcome decode_vote(struct bytes_reader *reader, uint64_t from,
                                      struct raft_request_vote *vote)
{
    vote->version = bytes_read_u8(reader);
    vote->term = bytes_read_u64(reader);
    vote->candidate_id = bytes_read_u64(reader);
    vote->last_log_index = bytes_read_u64(reader);
    vote->last_log_term = bytes_read_u64(reader);
    vote->disrupt_leader = read_flag(reader);
    vote->pre_vote = read_flag(reader);
    return reader->failed || vote->term == 0 || vote->term > NUMBER_MAX ||
                   vote->candidate_id != from || vote->last_log_index > NUMBER_MAX ||
                   vote->last_log_term > vote->term
               ? FRAME_MALFORMED
               : FRAME_OK;
}

static enum frame_outcome decode_vote_result(struct bytes_reader *reader,
                                             struct raft_request_vote_result *result)
{
    result->version = bytes_read_u8(reader);
    result->term = bytes_read_u64(reader);
    result->vote_granted = read_flag(reader);
    result->pre_vote = read_flag(reader);
    result->features = bytes_read_u16(reader);
    result->capacity = bytes_read_u16(reader);
    return reader->failed || result->term == 0 || result->term > NUMBER_MAX ? FRAME_MALFORMED
                                                                            : FRAME_OK;
}

static enum frame_outcome decode_timeout_now(struct bytes_reader *reader,
                                             struct raft_timeout_now *args)
{
    args->version = bytes_read_u8(reader);
    args->term = bytes_read_u64(reader);
    args->last_log_index = bytes_read_u64(reader);
    args->last_log_term = bytes_read_u64(reader);
    return reader->failed || args->term == 0 || args->term > NUMBER_MAX ||
                   args->last_log_index > NUMBER_MAX || args->last_log_term > args->term
               ? FRAME_MALFORMED
               : FRAME_OK;
}

/* --- own messages --- */

static enum frame_outcome decode_part(struct bytes_reader *reader, struct frame_part *part)
{
    part->term = bytes_read_u64(reader);
    part->last_index = bytes_read_u64(reader);
    part->last_term = bytes_read_u64(reader);
    part->conf_index = bytes_read_u64(reader);
    part->total_bytes = bytes_read_u64(reader);
    part->part = bytes_read_u32(reader);
    part->n_parts = bytes_read_u32(reader);
    part->n_bytes = bytes_read_u32(reader);
    part->data = bytes_read_view(reader, part->n_bytes);

    uint64_t n_parts =
        part->total_bytes / FRAME_PART_BYTES + (part->total_bytes % FRAME_PART_BYTES != 0 ? 1 : 0);
    if (part->data == NULL || part->term == 0 || part->term > NUMBER_MAX || part->last_index == 0 ||
        part->last_index > NUMBER_MAX || part->last_term == 0 || part->last_term > part->term ||
        part->conf_index > part->last_index || part->n_parts == 0 ||
        part->n_parts > FRAME_PARTS_MAX || part->n_parts != n_parts ||
        part->part >= part->n_parts) {
        return FRAME_MALFORMED;
    }
    uint64_t expected = part->part + 1 < part->n_parts
                            ? FRAME_PART_BYTES
                            : part->total_bytes - (uint64_t)part->part * FRAME_PART_BYTES;
    return part->n_bytes == expected ? FRAME_OK : FRAME_MALFORMED;
}

static enum frame_outcome decode_ack(struct bytes_reader *reader, struct frame_part_ack *ack)
{
    ack->term = bytes_read_u64(reader);
    ack->last_index = bytes_read_u64(reader);
    ack->next_part = bytes_read_u32(reader);
    return reader->failed || ack->next_part > FRAME_PARTS_MAX ? FRAME_MALFORMED : FRAME_OK;
}

static void decode_endpoints(struct bytes_reader *reader, struct node_endpoint endpoints[],
                             uint32_t *n_endpoints)
{
    *n_endpoints = bytes_read_u8(reader);
    if (*n_endpoints > LIMIT_ENDPOINTS_PER_NODE) {
        reader->failed = true;
        *n_endpoints = 0;
    }
    for (uint32_t i = 0; i < *n_endpoints; i++) {
        memset(&endpoints[i], 0, sizeof endpoints[i]);
        bytes_read_string(reader, endpoints[i].host, sizeof endpoints[i].host);
        endpoints[i].mesh_port = bytes_read_u16(reader);
        endpoints[i].raft_port = bytes_read_u16(reader);
        reader->failed |= endpoints[i].host[0] == '\0';
    }
}

static enum frame_outcome decode_hello(struct bytes_reader *reader, struct frame_hello *hello)
{
    hello->revision = bytes_read_u64(reader);
    hello->state_hash.low = bytes_read_u64(reader);
    hello->state_hash.high = bytes_read_u64(reader);
    hello->members_revision = bytes_read_u64(reader);
    hello->bound_incarnation = bytes_read_u64(reader);
    hello->standing = bytes_read_u8(reader);
    uint8_t is_restored = bytes_read_u8(reader);
    hello->is_restored = is_restored == 1;
    hello->seen_epoch = bytes_read_u64(reader);
    hello->seen_sequence = bytes_read_u64(reader);
    hello->seen_term = bytes_read_u64(reader);
    hello->held_index = bytes_read_u64(reader);
    decode_endpoints(reader, hello->endpoints, &hello->n_endpoints);
    return reader->failed || hello->standing > FRAME_STANDING_REMOVED || is_restored > 1
               ? FRAME_MALFORMED
               : FRAME_OK;
}

static void decode_member(struct bytes_reader *reader, struct member_node *node)
{
    memset(node, 0, sizeof *node);
    node->node_id = bytes_read_u64(reader);
    node->role = bytes_read_u8(reader);
    bytes_read_string(reader, node->zone, sizeof node->zone);
    bytes_read_copy(reader, node->key.bytes, PUBLIC_KEY_BYTES);
    decode_endpoints(reader, node->endpoints, &node->n_endpoints);
    for (size_t i = 0; i < 2; i++) {
        uint8_t family = bytes_read_u8(reader);

        reader->failed |= family != ADDR_NONE && family != ADDR_IPV4 && family != ADDR_IPV6;
        node->probe_sources[i].family = family;
        bytes_read_copy(reader, node->probe_sources[i].bytes, sizeof node->probe_sources[i].bytes);
    }
    reader->failed |= node->node_id == 0 || node->role < ROLE_VOTER || node->role > ROLE_SPARE;
}

static enum frame_outcome decode_admit(struct bytes_reader *reader, struct frame_admit *admit)
{
    admit->node_id = bytes_read_u64(reader);
    admit->revision = bytes_read_u64(reader);
    uint32_t n_nodes = bytes_read_u32(reader);
    if (reader->failed || admit->node_id == 0 || n_nodes == 0 || n_nodes > LIMIT_NODES) {
        return FRAME_MALFORMED;
    }
    struct store_members *members = calloc(1, sizeof *members);
    if (members == NULL) {
        return FRAME_NOMEM;
    }
    for (uint32_t i = 0; i < n_nodes && !reader->failed; i++) {
        decode_member(reader, &members->nodes[i]);
    }
    members->n_nodes = n_nodes;
    if (reader->failed) {
        free(members);
        return FRAME_MALFORMED;
    }
    admit->members = members;
    return FRAME_OK;
}

/* --- whole frames --- */

static enum frame_outcome decode_head(struct bytes_reader *reader, struct frame_head *head,
                                      uint8_t *ret_minor)
{
    uint16_t magic = bytes_read_u16(reader);
    uint8_t major = bytes_read_u8(reader);
    *ret_minor = bytes_read_u8(reader);
    *head = (struct frame_head){.kind = bytes_read_u8(reader)};
    uint8_t reserved = bytes_read_u8(reader);
    uint16_t head_bytes = bytes_read_u16(reader);

    if (reader->failed || magic != FRAME_MAGIC) {
        return FRAME_MALFORMED;
    }
    if (major != FRAME_MAJOR) {
        return FRAME_VERSION;
    }
    bytes_read_copy(reader, head->cluster_id.bytes, CLUSTER_ID_BYTES);
    head->from = bytes_read_u64(reader);
    head->to = bytes_read_u64(reader);
    head->from_incarnation = bytes_read_u64(reader);
    head->to_incarnation = bytes_read_u64(reader);
    head->epoch = bytes_read_u64(reader);
    head->sequence = bytes_read_u64(reader);
    bool is_ours = *ret_minor <= FRAME_MINOR;
    if (reader->failed || head->from == 0 || head_bytes < FRAME_HEAD_BYTES ||
        (is_ours && (head_bytes != FRAME_HEAD_BYTES || reserved != 0))) {
        return FRAME_MALFORMED;
    }
    bytes_read_view(reader, (size_t)(head_bytes - FRAME_HEAD_BYTES)); /* of a later minor */
    return reader->failed ? FRAME_MALFORMED : FRAME_OK;
}

static enum frame_outcome decode_body(struct bytes_reader *reader, struct frame *frame)
{
    switch ((enum frame_kind)frame->head.kind) {
    case FRAME_APPEND_ENTRIES:
        frame->u.message.type = RAFT_APPEND_ENTRIES;
        return decode_append(reader, &frame->u.message.append_entries);
    case FRAME_APPEND_ENTRIES_RESULT:
        frame->u.message.type = RAFT_APPEND_ENTRIES_RESULT;
        return decode_result(reader, &frame->u.message.append_entries_result);
    case FRAME_REQUEST_VOTE:
        frame->u.message.type = RAFT_REQUEST_VOTE;
        return decode_vote(reader, frame->head.from, &frame->u.message.request_vote);
    case FRAME_REQUEST_VOTE_RESULT:
        frame->u.message.type = RAFT_REQUEST_VOTE_RESULT;
        return decode_vote_result(reader, &frame->u.message.request_vote_result);
    case FRAME_TIMEOUT_NOW:
        frame->u.message.type = RAFT_TIMEOUT_NOW;
        return decode_timeout_now(reader, &frame->u.message.timeout_now);
    case FRAME_SNAPSHOT_PART:
        return decode_part(reader, &frame->u.part);
    case FRAME_SNAPSHOT_ACK:
        return decode_ack(reader, &frame->u.ack);
    case FRAME_HELLO:
        return decode_hello(reader, &frame->u.hello);
    case FRAME_ADMIT:
        return decode_admit(reader, &frame->u.admit);
    case FRAME_NONE:
        break;
    }
    return FRAME_MALFORMED;
}

enum frame_outcome frame_decode(const uint8_t *data, size_t n_bytes, struct frame *ret_frame)
{
    struct frame frame;
    struct bytes_reader reader;
    uint8_t minor;

    memset(&frame, 0, sizeof frame);
    bytes_reader_init(&reader, data, n_bytes);
    enum frame_outcome outcome = decode_head(&reader, &frame.head, &minor);
    if (outcome == FRAME_OK) {
        outcome = decode_body(&reader, &frame);
    }
    if (outcome == FRAME_OK && reader.left > 0 && minor <= FRAME_MINOR) {
        outcome = FRAME_MALFORMED;
        frame_close(&frame);
    }
    if (outcome == FRAME_OK) {
        *ret_frame = frame;
    }
    return outcome;
}

void frame_close(struct frame *frame)
{
    if (frame->head.kind == FRAME_APPEND_ENTRIES) {
        struct raft_append_entries *args = &frame->u.message.append_entries;

        if (args->n_entries > 0) {
            raft_free(args->entries[0].batch);
            raft_free(args->entries);
        }
        args->entries = NULL;
        args->n_entries = 0;
    } else if (frame->head.kind == FRAME_ADMIT) {
        free(frame->u.admit.members);
        frame->u.admit.members = NULL;
    }
}
