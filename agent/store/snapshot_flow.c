#include "agent/store/snapshot_flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/snapshot_blob.h"

void snapshot_out_close(struct snapshot_out *out)
{
    free(out->blob);
    *out = (struct snapshot_out){0};
}

bool snapshot_out_start(struct snapshot_out *out, const struct raft_install_snapshot *args,
                        uint64_t now_ns)
{
    bool has_arrived = out->done_ns != 0 && out->done_term == args->term &&
                       out->done_index == args->last_index &&
                       now_ns - out->done_ns < SNAPSHOT_REST_NS;
    bool is_repeat = out->blob != NULL && out->term == args->term &&
                     out->last_index == args->last_index &&
                     now_ns - out->progress_ns < SNAPSHOT_GIVE_UP_NS;

    if (is_repeat || has_arrived) {
        return false;
    }
    struct snapshot_out fresh = {.term = args->term,
                                 .last_index = args->last_index,
                                 .last_term = args->last_term,
                                 .conf_index = args->conf_index,
                                 .progress_ns = now_ns,
                                 .sent_ns = now_ns};
    if (snapshot_blob_make(args, &fresh.blob, &fresh.n_bytes) != 0) {
        return false;
    }
    fresh.n_parts = (uint32_t)((fresh.n_bytes + FRAME_PART_BYTES - 1) / FRAME_PART_BYTES);
    assert(fresh.n_parts >= 1 && fresh.n_parts <= FRAME_PARTS_MAX);
    snapshot_out_close(out);
    *out = fresh;
    return true;
}

bool snapshot_out_next(struct snapshot_out *out, uint64_t now_ns, struct frame_part *ret_part)
{
    if (out->blob == NULL) {
        return false;
    }
    if (now_ns - out->progress_ns >= SNAPSHOT_GIVE_UP_NS) {
        snapshot_out_close(out);
        return false;
    }
    if (out->next_part > out->n_acknowledged && now_ns - out->sent_ns >= SNAPSHOT_RETRY_NS) {
        out->next_part = out->n_acknowledged; /* parts or acknowledgements were lost */
    }
    if (out->next_part >= out->n_parts || out->next_part >= out->n_acknowledged + SNAPSHOT_WINDOW) {
        return false;
    }
    size_t offset = (size_t)out->next_part * FRAME_PART_BYTES;
    size_t left = out->n_bytes - offset;
    *ret_part = (struct frame_part){.term = out->term,
                                    .last_index = out->last_index,
                                    .last_term = out->last_term,
                                    .conf_index = out->conf_index,
                                    .total_bytes = out->n_bytes,
                                    .part = out->next_part,
                                    .n_parts = out->n_parts,
                                    .data = out->blob + offset,
                                    .n_bytes = left < FRAME_PART_BYTES ? left : FRAME_PART_BYTES};
    out->next_part++;
    out->sent_ns = now_ns;
    return true;
}

void snapshot_out_ack(struct snapshot_out *out, const struct frame_part_ack *ack, uint64_t now_ns)
{
    if (out->blob == NULL || ack->term != out->term || ack->last_index != out->last_index ||
        ack->next_part > out->n_parts) {
        return;
    }
    if (ack->next_part > out->n_acknowledged) {
        out->n_acknowledged = ack->next_part;
        out->progress_ns = now_ns;
        if (out->next_part < out->n_acknowledged) {
            out->next_part = out->n_acknowledged;
        }
    }
    if (out->n_acknowledged == out->n_parts) {
        struct snapshot_out done = {
            .done_term = out->term, .done_index = out->last_index, .done_ns = now_ns};

        snapshot_out_close(out);
        *out = done;
    }
}

void snapshot_in_close(struct snapshot_in *in)
{
    free(in->blob);
    *in = (struct snapshot_in){0};
}

static bool is_same(const struct snapshot_in *in, const struct frame_part *part)
{
    return in->blob != NULL && in->term == part->term && in->last_index == part->last_index &&
           in->last_term == part->last_term && in->conf_index == part->conf_index &&
           in->total_bytes == part->total_bytes && in->n_parts == part->n_parts;
}

static bool begin(struct snapshot_in *in, const struct frame_part *part)
{
    uint8_t *blob = malloc(part->total_bytes);

    if (blob == NULL) {
        return false;
    }
    snapshot_in_close(in);
    *in = (struct snapshot_in){.blob = blob,
                               .total_bytes = part->total_bytes,
                               .term = part->term,
                               .last_index = part->last_index,
                               .last_term = part->last_term,
                               .conf_index = part->conf_index,
                               .n_parts = part->n_parts};
    return true;
}

static enum snapshot_in_outcome finish(struct snapshot_in *in,
                                       struct raft_install_snapshot *ret_args)
{
    struct raft_install_snapshot args = {.term = in->term,
                                         .last_index = in->last_index,
                                         .last_term = in->last_term,
                                         .conf_index = in->conf_index};
    int result = snapshot_blob_parse(in->blob, in->total_bytes, &args);

    snapshot_in_close(in);
    if (result != 0) {
        return SNAPSHOT_IN_DROPPED;
    }
    *ret_args = args;
    return SNAPSHOT_IN_WHOLE;
}

enum snapshot_in_outcome snapshot_in_take(struct snapshot_in *in, const struct frame_part *part,
                                          struct frame_part_ack *ret_ack,
                                          struct raft_install_snapshot *ret_args)
{
    if (!is_same(in, part)) {
        /* An older one than what is being built, or the middle of one whose beginning was lost. */
        bool is_older =
            in->blob != NULL && (part->term < in->term ||
                                 (part->term == in->term && part->last_index < in->last_index));
        if (is_older) {
            return SNAPSHOT_IN_DROPPED;
        }
        if (part->part == 0 && !begin(in, part)) {
            return SNAPSHOT_IN_DROPPED;
        }
    }
    bool is_ours = is_same(in, part);
    bool is_next = is_ours && part->part == in->next_part;
    if (is_next) {
        memcpy(in->blob + (size_t)part->part * FRAME_PART_BYTES, part->data, part->n_bytes);
        in->next_part++;
    }
    *ret_ack = (struct frame_part_ack){.term = part->term,
                                       .last_index = part->last_index,
                                       .next_part = is_ours ? in->next_part : 0};
    return is_next && in->next_part == in->n_parts ? finish(in, ret_args) : SNAPSHOT_IN_PART;
}
