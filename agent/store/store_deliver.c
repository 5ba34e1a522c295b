/* Frames that go on to raft: past the guards, in pieces, held back where raft cannot take them. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/store/store_private.h"
#include "common/base/str.h"

static void deliver(struct store *store, uint64_t from, struct raft_message *message)
{
    char address[RAFT_ADDRESS_BYTES];
    const struct raft_server *server = store_server(store, from);
    const struct store_peer *peer = store_find_peer(store, from);

    message->server_id = from;
    message->server_address = address;
    if (server != NULL) {
        str_copy(address, sizeof address, server->address);
    } else {
        raft_address_format(from, peer == NULL ? 0 : peer->incarnation, address);
    }
    raft_wrap_deliver(&store->wrap, message);
}

/* RN2: piece by piece, each with a block of its own as raft wants it. */
static void deliver_piece(struct store *store, uint64_t from,
                          const struct raft_append_entries *args, unsigned first, unsigned n)
{
    struct raft_message message = {.type = RAFT_APPEND_ENTRIES, .append_entries = *args};
    struct raft_append_entries *piece = &message.append_entries;
    size_t n_bytes = 0;

    for (unsigned i = 0; i < n; i++) {
        n_bytes += args->entries[first + i].buf.len;
    }
    piece->entries = raft_malloc(n * sizeof *piece->entries);
    uint8_t *block = raft_malloc(n_bytes);
    if (piece->entries == NULL || block == NULL) {
        raft_free(piece->entries);
        raft_free(block);
        return; /* lost on the way, for raft */
    }
    piece->n_entries = n;
    if (first > 0) {
        piece->prev_log_index = args->prev_log_index + first;
        piece->prev_log_term = args->entries[first - 1].term;
    }
    for (unsigned i = 0; i < n; i++) {
        piece->entries[i] = args->entries[first + i];
        memcpy(block + ((uint8_t *)args->entries[first + i].buf.base -
                        (uint8_t *)args->entries[first].buf.base),
               args->entries[first + i].buf.base, args->entries[first + i].buf.len);
        piece->entries[i].buf.base = block + ((uint8_t *)args->entries[first + i].buf.base -
                                              (uint8_t *)args->entries[first].buf.base);
        piece->entries[i].batch = block;
    }
    deliver(store, from, &message);
}

static void deliver_append(struct store *store, uint64_t from, struct raft_message *message)
{
    const struct raft_append_entries *args = &message->append_entries;
    raft_index conflict = 0;
    char sentence[ERRMSG_BYTES];

    if (guard_conflict(&store->raft, args, &conflict)) {
        snprintf(sentence, sizeof sentence,
                 "node %" PRIu64 " sends another entry %llu than the one that is committed here: "
                 "one of the two logs is damaged",
                 from, conflict);
        raft_wrap_drop(message);
        store_fail_stop(store, STORE_EXIT_OPERATOR, sentence);
    }
    if (args->n_entries == 0 || guard_piece(args, 0) == args->n_entries) {
        deliver(store, from, message);
        return;
    }
    store->counters.cut_changes++;
    for (unsigned first = 0; first < args->n_entries && store->is_raft_started;) {
        unsigned n = guard_piece(args, first);

        deliver_piece(store, from, args, first, n);
        first += n;
    }
    raft_wrap_drop(message);
}

void store_deliver_held(struct store *store)
{
    if (!store->has_held_snapshot || !guard_snapshot_now(&store->raft)) {
        return;
    }
    struct raft_message message = store->held_snapshot;

    store->has_held_snapshot = false;
    deliver(store, message.server_id, &message);
}

/* RN1: only the newest is kept; raft repeats anyway. */
static void deliver_snapshot(struct store *store, uint64_t from,
                             const struct raft_install_snapshot *args)
{
    struct raft_message message = {
        .type = RAFT_INSTALL_SNAPSHOT, .server_id = from, .install_snapshot = *args};

    if (guard_snapshot_now(&store->raft)) {
        deliver(store, from, &message);
        return;
    }
    store->counters.held_snapshots++;
    if (store->has_held_snapshot) {
        raft_wrap_drop(&store->held_snapshot);
    }
    store->held_snapshot = message;
    store->has_held_snapshot = true;
}

static void on_part(struct store *store, struct store_peer *peer, const struct frame_part *part)
{
    struct frame frame = {.head = {.kind = FRAME_SNAPSHOT_ACK}};
    struct raft_install_snapshot args;
    enum snapshot_in_outcome outcome = snapshot_in_take(&peer->in, part, &frame.u.ack, &args);

    if (outcome == SNAPSHOT_IN_DROPPED) {
        store->counters.dropped_malformed++;
        return;
    }
    store_send_frame(store, peer->node_id, &frame);
    if (outcome == SNAPSHOT_IN_WHOLE) {
        log_event(LOG_LEVEL_INFO, "store_snapshot_received",
                  "peer=%" PRIu64 " index=%llu bytes=%zu", peer->node_id, args.last_index,
                  args.data.len);
        deliver_snapshot(store, peer->node_id, &args);
    }
}

void store_on_raft_frame(struct store *store, struct store_peer *peer, struct frame *frame)
{
    struct raft_message *message = &frame->u.message;
    bool may_pass = true;

    switch ((enum frame_kind)frame->head.kind) {
    case FRAME_APPEND_ENTRIES:
        deliver_append(store, peer->node_id, message);
        return;
    case FRAME_SNAPSHOT_PART:
        on_part(store, peer, &frame->u.part);
        return;
    case FRAME_SNAPSHOT_ACK:
        snapshot_out_ack(&peer->out, &frame->u.ack, store->now_ns);
        store_send_parts(store, peer);
        return;
    case FRAME_APPEND_ENTRIES_RESULT:
        may_pass = guard_result(&store->raft, peer->node_id, &message->append_entries_result);
        break;
    case FRAME_REQUEST_VOTE_RESULT:
        may_pass = guard_vote_result(&store->raft);
        break;
    case FRAME_REQUEST_VOTE:
    case FRAME_TIMEOUT_NOW:
        break;
    case FRAME_HELLO:
    case FRAME_ADMIT:
    case FRAME_NONE:
        assert(false);
        return;
    }
    if (may_pass) {
        deliver(store, peer->node_id, message);
    } else {
        store->counters.dropped_state++;
    }
}
