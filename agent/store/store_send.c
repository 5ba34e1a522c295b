/* Frames out: raft's messages, snapshots in parts, hellos. */
#include <inttypes.h>
#include <string.h>

#include "agent/store/store_private.h"

void store_send_frame(struct store *store, uint64_t to, struct frame *frame)
{
    const struct store_peer *peer = store_find_peer(store, to);
    uint64_t bound = store_bound_incarnation(store, to);
    uint8_t *data = NULL;
    size_t n_bytes = 0;

    frame->head.from = store->has_identity ? store->identity.node_id : store->owner.node_id;
    frame->head.to = to;
    frame->head.to_incarnation = bound != 0 || peer == NULL ? bound : peer->incarnation;
    frame->head.epoch = store->epoch;
    frame->head.sequence = ++store->sequence;
    if (store->has_identity) {
        frame->head.cluster_id = store->identity.cluster_id;
        frame->head.from_incarnation = store->identity.incarnation;
    }
    if (frame->head.from == 0 || !frame_encode(frame, &data, &n_bytes)) {
        return; /* an agent without an id yet says nothing */
    }
    raft_lane_send(&store->lane, to, data, n_bytes);
}

void store_send_parts(struct store *store, struct store_peer *peer)
{
    struct frame frame = {.head = {.kind = FRAME_SNAPSHOT_PART}};

    while (snapshot_out_next(&peer->out, store->now_ns, &frame.u.part)) {
        store_send_frame(store, peer->node_id, &frame);
    }
}

static void send_snapshot(struct store *store, uint64_t to,
                          const struct raft_install_snapshot *args)
{
    struct store_peer *peer = store_peer(store, to);

    if (peer == NULL) {
        return;
    }
    if (snapshot_out_start(&peer->out, args, store->now_ns)) {
        log_event(LOG_LEVEL_INFO, "store_snapshot_sent", "peer=%" PRIu64 " index=%llu bytes=%zu",
                  to, args->last_index, args->data.len);
    } else {
        store->counters.snapshot_repeats++;
    }
    store_send_parts(store, peer);
}

/* Several frames when the entries do not fit into one: the same as several AppendEntries. */
static void send_append(struct store *store, uint64_t to, const struct raft_append_entries *args)
{
    struct frame frame = {.head = {.kind = FRAME_APPEND_ENTRIES},
                          .u.message = {.type = RAFT_APPEND_ENTRIES}};
    unsigned first = 0;

    do {
        struct raft_append_entries *piece = &frame.u.message.append_entries;
        unsigned n = frame_entries_fit(args->entries + first, args->n_entries - first);

        *piece = *args;
        piece->entries = args->entries + first;
        piece->n_entries = n;
        if (first > 0) {
            piece->prev_log_index = args->prev_log_index + first;
            piece->prev_log_term = args->entries[first - 1].term;
        }
        store_send_frame(store, to, &frame);
        first += n;
    } while (first < args->n_entries);
}

void store_send_raft(void *user, const struct raft_message *message)
{
    struct store *store = user;
    struct frame frame = {.u.message = *message};

    switch (message->type) {
    case RAFT_APPEND_ENTRIES:
        send_append(store, message->server_id, &message->append_entries);
        return;
    case RAFT_INSTALL_SNAPSHOT:
        send_snapshot(store, message->server_id, &message->install_snapshot);
        return;
    case RAFT_APPEND_ENTRIES_RESULT:
        frame.head.kind = FRAME_APPEND_ENTRIES_RESULT;
        break;
    case RAFT_REQUEST_VOTE:
        frame.head.kind = FRAME_REQUEST_VOTE;
        break;
    case RAFT_REQUEST_VOTE_RESULT:
        frame.head.kind = FRAME_REQUEST_VOTE_RESULT;
        break;
    case RAFT_TIMEOUT_NOW:
        frame.head.kind = FRAME_TIMEOUT_NOW;
        break;
    }
    store_send_frame(store, message->server_id, &frame);
}

static uint8_t standing_of(struct store *store, const struct store_peer *peer, uint64_t to)
{
    if (peer != NULL && peer->farewell_ns != 0) {
        return FRAME_STANDING_REMOVED;
    }
    return store_server(store, to) != NULL ? FRAME_STANDING_MEMBER : FRAME_STANDING_UNKNOWN;
}

void store_send_hello(struct store *store, uint64_t to)
{
    const struct store_fsm *fsm = store->options.fsm;
    struct store_peer *peer = store_find_peer(store, to);
    struct frame frame = {.head = {.kind = FRAME_HELLO}};
    struct frame_hello *hello = &frame.u.hello;
    const struct member_node *self =
        store->has_identity ? store_find_member(store, store->identity.node_id) : NULL;

    hello->revision = fsm->revision(fsm->user);
    hello->state_hash = fsm->state_hash(fsm->user);
    hello->members_revision =
        store->introduced_revision > hello->revision ? store->introduced_revision : hello->revision;
    hello->bound_incarnation = store_bound_incarnation(store, to);
    hello->standing = standing_of(store, peer, to);
    hello->is_restored = store->is_restored;
    if (peer != NULL) {
        store_tell_seen(store, peer, hello);
        peer->last_hello_ns = store->now_ns;
    }
    if (self != NULL) {
        memcpy(hello->endpoints, self->endpoints, sizeof hello->endpoints);
        hello->n_endpoints = self->n_endpoints;
    }
    store_send_frame(store, to, &frame);
}

void store_on_connected(void *user, uint64_t peer_id)
{
    store_send_hello(user, peer_id);
}
