/* The writing half of raft_frame.h; reading and its checks are in raft_frame.c. */
#include "agent/store/raft_frame.h"

#include <assert.h>

#include "common/base/bytes.h"

#define ENTRY_HEAD_BYTES 13
#define FRAME_BYTES_MAX LIMIT_RAFT_MESSAGE_BYTES

static size_t entry_bytes(const struct raft_entry *entry)
{
    return ENTRY_HEAD_BYTES + entry->buf.len;
}

unsigned frame_entries_fit(const struct raft_entry entries[], unsigned n)
{
    size_t n_bytes = 0;
    unsigned i;

    for (i = 0; i < n && i < FRAME_ENTRIES_MAX; i++) {
        n_bytes += entry_bytes(&entries[i]);
        if (n_bytes > FRAME_ENTRIES_BYTES_MAX && i > 0) {
            break;
        }
    }
    return i;
}

static void encode_entries(struct bytes_writer *writer, const struct raft_append_entries *args)
{
    bytes_write_u32(writer, args->n_entries);
    for (unsigned i = 0; i < args->n_entries; i++) {
        const struct raft_entry *entry = &args->entries[i];

        bytes_write_u64(writer, entry->term);
        bytes_write_u8(writer, (uint8_t)entry->type);
        bytes_write_u32(writer, (uint32_t)entry->buf.len);
        bytes_write_copy(writer, entry->buf.base, entry->buf.len);
    }
}

static void encode_endpoints(struct bytes_writer *writer, const struct node_endpoint endpoints[],
                             uint32_t n_endpoints)
{
    bytes_write_u8(writer, (uint8_t)n_endpoints);
    for (uint32_t i = 0; i < n_endpoints; i++) {
        bytes_write_string(writer, endpoints[i].host);
        bytes_write_u16(writer, endpoints[i].mesh_port);
        bytes_write_u16(writer, endpoints[i].raft_port);
    }
}

static void encode_member(struct bytes_writer *writer, const struct member_node *node)
{
    bytes_write_u64(writer, node->node_id);
    bytes_write_u8(writer, node->role);
    bytes_write_string(writer, node->zone);
    bytes_write_copy(writer, node->key.bytes, PUBLIC_KEY_BYTES);
    encode_endpoints(writer, node->endpoints, node->n_endpoints);
    for (size_t i = 0; i < 2; i++) {
        bytes_write_u8(writer, node->probe_sources[i].family);
        bytes_write_copy(writer, node->probe_sources[i].bytes, sizeof node->probe_sources[i].bytes);
    }
}

static void encode_append(struct bytes_writer *writer, const struct raft_append_entries *args)
{
    bytes_write_u8(writer, args->version);
    bytes_write_u64(writer, args->term);
    bytes_write_u64(writer, args->prev_log_index);
    bytes_write_u64(writer, args->prev_log_term);
    bytes_write_u64(writer, args->leader_commit);
    encode_entries(writer, args);
}

static void encode_result(struct bytes_writer *writer,
                          const struct raft_append_entries_result *result)
{
    bytes_write_u8(writer, result->version);
    bytes_write_u64(writer, result->term);
    bytes_write_u64(writer, result->rejected);
    bytes_write_u64(writer, result->last_log_index);
    bytes_write_u16(writer, result->features);
    bytes_write_u16(writer, result->capacity);
}

static void encode_vote(struct bytes_writer *writer, const struct raft_request_vote *vote)
{
    bytes_write_u8(writer, vote->version);
    bytes_write_u64(writer, vote->term);
    bytes_write_u64(writer, vote->candidate_id);
    bytes_write_u64(writer, vote->last_log_index);
    bytes_write_u64(writer, vote->last_log_term);
    bytes_write_u8(writer, vote->disrupt_leader);
    bytes_write_u8(writer, vote->pre_vote);
}

static void encode_vote_result(struct bytes_writer *writer,
                               const struct raft_request_vote_result *result)
{
    bytes_write_u8(writer, result->version);
    bytes_write_u64(writer, result->term);
    bytes_write_u8(writer, result->vote_granted);
    bytes_write_u8(writer, result->pre_vote);
    bytes_write_u16(writer, result->features);
    bytes_write_u16(writer, result->capacity);
}

static void encode_timeout_now(struct bytes_writer *writer, const struct raft_timeout_now *args)
{
    bytes_write_u8(writer, args->version);
    bytes_write_u64(writer, args->term);
    bytes_write_u64(writer, args->last_log_index);
    bytes_write_u64(writer, args->last_log_term);
}

static void encode_part(struct bytes_writer *writer, const struct frame_part *part)
{
    bytes_write_u64(writer, part->term);
    bytes_write_u64(writer, part->last_index);
    bytes_write_u64(writer, part->last_term);
    bytes_write_u64(writer, part->conf_index);
    bytes_write_u64(writer, part->total_bytes);
    bytes_write_u32(writer, part->part);
    bytes_write_u32(writer, part->n_parts);
    bytes_write_u32(writer, (uint32_t)part->n_bytes);
    bytes_write_copy(writer, part->data, part->n_bytes);
}

static void encode_hello(struct bytes_writer *writer, const struct frame_hello *hello)
{
    bytes_write_u64(writer, hello->revision);
    bytes_write_u64(writer, hello->state_hash.low);
    bytes_write_u64(writer, hello->state_hash.high);
    bytes_write_u64(writer, hello->members_revision);
    bytes_write_u64(writer, hello->bound_incarnation);
    bytes_write_u8(writer, hello->standing);
    bytes_write_u8(writer, hello->is_restored ? 1 : 0);
    bytes_write_u64(writer, hello->seen_epoch);
    bytes_write_u64(writer, hello->seen_sequence);
    bytes_write_u64(writer, hello->seen_term);
    bytes_write_u64(writer, hello->held_index);
    encode_endpoints(writer, hello->endpoints, hello->n_endpoints);
}

static void encode_admit(struct bytes_writer *writer, const struct frame_admit *admit)
{
    bytes_write_u64(writer, admit->node_id);
    bytes_write_u64(writer, admit->revision);
    bytes_write_u32(writer, admit->members->n_nodes);
    for (uint32_t i = 0; i < admit->members->n_nodes; i++) {
        encode_member(writer, &admit->members->nodes[i]);
    }
}

static void encode_head(struct bytes_writer *writer, const struct frame_head *head)
{
    bytes_write_u16(writer, FRAME_MAGIC);
    bytes_write_u8(writer, FRAME_MAJOR);
    bytes_write_u8(writer, FRAME_MINOR);
    bytes_write_u8(writer, head->kind);
    bytes_write_u8(writer, 0);
    bytes_write_u16(writer, FRAME_HEAD_BYTES);
    bytes_write_copy(writer, head->cluster_id.bytes, CLUSTER_ID_BYTES);
    bytes_write_u64(writer, head->from);
    bytes_write_u64(writer, head->to);
    bytes_write_u64(writer, head->from_incarnation);
    bytes_write_u64(writer, head->to_incarnation);
    bytes_write_u64(writer, head->epoch);
    bytes_write_u64(writer, head->sequence);
    assert(writer->failed || writer->n_bytes == FRAME_HEAD_BYTES);
}

bool frame_encode(const struct frame *frame, uint8_t **ret_data, size_t *ret_n_bytes)
{
    struct bytes_writer writer;

    bytes_writer_init(&writer, FRAME_BYTES_MAX);
    encode_head(&writer, &frame->head);
    switch ((enum frame_kind)frame->head.kind) {
    case FRAME_APPEND_ENTRIES:
        encode_append(&writer, &frame->u.message.append_entries);
        break;
    case FRAME_APPEND_ENTRIES_RESULT:
        encode_result(&writer, &frame->u.message.append_entries_result);
        break;
    case FRAME_REQUEST_VOTE:
        encode_vote(&writer, &frame->u.message.request_vote);
        break;
    case FRAME_REQUEST_VOTE_RESULT:
        encode_vote_result(&writer, &frame->u.message.request_vote_result);
        break;
    case FRAME_TIMEOUT_NOW:
        encode_timeout_now(&writer, &frame->u.message.timeout_now);
        break;
    case FRAME_SNAPSHOT_PART:
        encode_part(&writer, &frame->u.part);
        break;
    case FRAME_SNAPSHOT_ACK:
        bytes_write_u64(&writer, frame->u.ack.term);
        bytes_write_u64(&writer, frame->u.ack.last_index);
        bytes_write_u32(&writer, frame->u.ack.next_part);
        break;
    case FRAME_HELLO:
        encode_hello(&writer, &frame->u.hello);
        break;
    case FRAME_ADMIT:
        encode_admit(&writer, &frame->u.admit);
        break;
    case FRAME_NONE:
        assert(false);
        break;
    }
    *ret_data = bytes_writer_take(&writer, ret_n_bytes);
    if (*ret_data == NULL) {
        bytes_writer_close(&writer);
    }
    return *ret_data != NULL;
}
