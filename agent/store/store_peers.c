/* Frames in and out: who may speak, what raft gets to see, hellos. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/store_private.h"
#include "common/base/clock.h"
#include "common/base/plant.h"
#include "common/base/str.h"
#include "common/base/units.h"

#define REFUSAL_LOG_NS (60 * NS_PER_SECOND)

struct store_peer *store_find_peer(struct store *store, uint64_t node_id)
{
    for (uint32_t i = 0; i < store->n_peers; i++) {
        if (store->peers[i]->node_id == node_id) {
            return store->peers[i];
        }
    }
    return NULL;
}

struct store_peer *store_peer(struct store *store, uint64_t node_id)
{
    struct store_peer *peer = store_find_peer(store, node_id);

    if (peer != NULL || store->n_peers == LIMIT_NODES) {
        return peer;
    }
    peer = calloc(1, sizeof *peer);
    if (peer != NULL) {
        peer->node_id = node_id;
        store->peers[store->n_peers++] = peer;
    }
    return peer;
}

static void free_peer(struct store_peer *peer)
{
    snapshot_out_close(&peer->out);
    snapshot_in_close(&peer->in);
    free(peer);
}

void store_drop_peer(struct store *store, uint64_t node_id)
{
    raft_lane_drop_peer(&store->lane, node_id);
    for (uint32_t i = 0; i < store->n_peers; i++) {
        if (store->peers[i]->node_id == node_id) {
            free_peer(store->peers[i]);
            store->peers[i] = store->peers[--store->n_peers];
            return;
        }
    }
}

void store_close_peers(struct store *store)
{
    while (store->n_peers > 0) {
        free_peer(store->peers[--store->n_peers]);
    }
}

/* --- out --- */

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

static void send_parts(struct store *store, struct store_peer *peer)
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
    send_parts(store, peer);
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
    hello->members_revision =
        store->introduced_revision > hello->revision ? store->introduced_revision : hello->revision;
    hello->bound_incarnation = store_bound_incarnation(store, to);
    hello->standing = standing_of(store, peer, to);
    if (peer != NULL) {
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

/* --- in: raft --- */

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

static void on_raft_frame(struct store *store, struct store_peer *peer, struct frame *frame)
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
        send_parts(store, peer);
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

/* --- in: who is it? --- */

static void log_refusal(struct store *store, struct store_peer *peer, const char *reason)
{
    uint64_t n_dropped;

    if (log_allowed(&peer->refusal_log, store->now_ns, REFUSAL_LOG_NS, &n_dropped)) {
        log_event(LOG_LEVEL_WARNING, "raft_message_refused",
                  "peer=%" PRIu64 " reason=\"%s\" repeats=%" PRIu64, peer->node_id, reason,
                  n_dropped);
    }
}

/* The order of what a peer sends; a snapshot's parts carry their own. */
static bool is_in_order(struct store_peer *peer, const struct frame_head *head)
{
    if (head->kind == FRAME_SNAPSHOT_PART) {
        return head->epoch >= peer->order.epoch;
    }
    return guard_order_accept(&peer->order, head->epoch, head->sequence);
}

static bool may_reach_raft(struct store *store, struct store_peer *peer,
                           const struct frame_head *head)
{
    uint64_t bound = store_bound_incarnation(store, head->from);

    if (memcmp(&head->cluster_id, &store->identity.cluster_id, sizeof head->cluster_id) != 0) {
        store->counters.dropped_cluster++;
        log_refusal(store, peer, "it belongs to another cluster");
        return false;
    }
    if (head->to != store->identity.node_id || head->from_incarnation == 0 ||
        (head->to_incarnation != 0 && head->to_incarnation != store->identity.incarnation) ||
        (bound != 0 && bound != head->from_incarnation) || !store_is_known(store, head->from)) {
        store->counters.dropped_incarnation++;
        log_refusal(store, peer,
                    "it is no member, or its directory is not the one that is the member's");
        return false;
    }
    if (!is_in_order(peer, head)) {
        store->counters.dropped_stale++;
        return false;
    }
    return true;
}

static uint8_t judge_peer(struct store *store, const struct store_peer *peer)
{
    static const struct cluster_id zero;
    uint64_t bound = store_bound_incarnation(store, peer->node_id);

    if (bound != 0 && peer->incarnation != bound) {
        return STORE_PEER_WIPED;
    }
    if (memcmp(&peer->cluster_id, &zero, sizeof zero) == 0) {
        return STORE_PEER_WAITING;
    }
    if (store->has_identity &&
        memcmp(&peer->cluster_id, &store->identity.cluster_id, sizeof peer->cluster_id) != 0) {
        return STORE_PEER_OTHER_CLUSTER;
    }
    return STORE_PEER_OK;
}

/* What a member says about this node, when it is bad news. */
static void hear_standing(struct store *store, const struct frame *frame)
{
    static const struct cluster_id nobody;
    const struct frame_hello *hello = &frame->u.hello;
    bool is_ours =
        store->has_identity && memcmp(&frame->head.cluster_id, &store->identity.cluster_id,
                                      sizeof frame->head.cluster_id) == 0;
    char cluster[2 * CLUSTER_ID_BYTES + 1];

    str_hex(frame->head.cluster_id.bytes, CLUSTER_ID_BYTES, cluster);
    if (!store->has_identity && hello->bound_incarnation != 0 &&
        (store->state == STORE_WAITING || store->state == STORE_NEEDS_OPERATOR)) {
        store_set_state(store, STORE_NEEDS_OPERATOR, ERR_CORRUPT,
                        "data directory %s is empty, but node %" PRIu64
                        " was a member of cluster %s: its votes are lost, so it is refused under "
                        "this id; remove node %" PRIu64 " and join under a new id",
                        store->dir.path, frame->head.to, cluster, frame->head.to);
    } else if (is_ours && hello->bound_incarnation != 0 &&
               hello->bound_incarnation != store->identity.incarnation) {
        store_set_state(store, STORE_NEEDS_OPERATOR, ERR_CORRUPT,
                        "node %" PRIu64 " is a member of cluster %s with another data directory "
                        "than %s: this one is refused; remove the node and join under a new id",
                        store->identity.node_id, cluster, store->dir.path);
    } else if (store->state == STORE_RUNNING && !is_ours && store_leader_id(store) == 0 &&
               memcmp(&frame->head.cluster_id, &nobody, sizeof nobody) != 0) {
        store_set_state(store, STORE_RUNNING, ERR_CONFIG,
                        "no leader; node %" PRIu64 " belongs to cluster %s, data directory %s to "
                        "another one",
                        frame->head.from, cluster, store->dir.path);
    } else if (is_ours && hello->standing == FRAME_STANDING_REMOVED) {
        store_set_state(store, STORE_NEEDS_OPERATOR, ERR_DENIED,
                        "node %" PRIu64 " was removed from cluster %s; to come back it joins with "
                        "an empty data directory under a new id",
                        store->identity.node_id, cluster);
    }
}

static void on_hello(struct store *store, struct store_peer *peer, const struct frame *frame)
{
    const struct frame_head *head = &frame->head;
    const struct frame_hello *hello = &frame->u.hello;
    bool is_first = peer->last_heard_ns == 0 || peer->incarnation != head->from_incarnation;

    peer->cluster_id = head->cluster_id;
    peer->incarnation = head->from_incarnation;
    peer->epoch = head->epoch;
    peer->revision = hello->revision;
    if (hello->members_revision > peer->members_revision || is_first) {
        peer->members_revision = hello->members_revision;
    }
    peer->state = judge_peer(store, peer);
    if (peer->state == STORE_PEER_WIPED) {
        log_refusal(store, peer, "its directory is not the member's: remove it and join anew");
    } else if (peer->state == STORE_PEER_OTHER_CLUSTER) {
        store->counters.dropped_cluster++;
        log_refusal(store, peer, "it belongs to another cluster");
    }
    if (hello->n_endpoints > 0 && raft_lane_peer(&store->lane, peer->node_id) == NULL) {
        for (uint32_t i = 0; i < store->options.n_trusted; i++) {
            const struct store_trusted *trusted = &store->options.trusted[i];
            struct member_node node = {.node_id = trusted->node_id, .key = trusted->key};

            if (trusted->node_id == peer->node_id) {
                memcpy(node.endpoints, hello->endpoints, sizeof node.endpoints);
                node.n_endpoints = hello->n_endpoints;
                raft_lane_set_peer(&store->lane, &node);
            }
        }
    }
    hear_standing(store, frame);
    if (is_first) {
        store_send_hello(store, peer->node_id);
    }
}

static void on_decoded(struct store *store, struct frame *frame)
{
    bool is_known =
        store_is_known(store, frame->head.from) || store_is_trusted(store, frame->head.from);
    struct store_peer *peer =
        is_known ? store_peer(store, frame->head.from) : store_find_peer(store, frame->head.from);

    if (peer == NULL) {
        store->counters.dropped_incarnation++;
        return;
    }
    switch ((enum frame_kind)frame->head.kind) {
    case FRAME_HELLO:
        on_hello(store, peer, frame);
        peer->last_heard_ns = store->now_ns;
        return;
    case FRAME_ADMIT:
        store_on_admit(store, frame);
        return;
    case FRAME_NONE:
    case FRAME_APPEND_ENTRIES:
    case FRAME_APPEND_ENTRIES_RESULT:
    case FRAME_REQUEST_VOTE:
    case FRAME_REQUEST_VOTE_RESULT:
    case FRAME_TIMEOUT_NOW:
    case FRAME_SNAPSHOT_PART:
    case FRAME_SNAPSHOT_ACK:
        break;
    }
    if (!store->has_identity || !store->is_raft_started) {
        store->counters.dropped_state++;
        return;
    }
    if (may_reach_raft(store, peer, &frame->head)) {
        peer->incarnation = frame->head.from_incarnation;
        peer->last_heard_ns = store->now_ns;
        on_raft_frame(store, peer, frame);
        frame->head.kind = FRAME_NONE; /* raft has taken what it owned */
    }
}

void store_on_frame(void *user, uint64_t from, const uint8_t *data, size_t n_bytes)
{
    struct store *store = user;
    struct frame frame;

    store->now_ns = clock_monotonic_ns();
    store->counters.received++;
    enum frame_outcome outcome = frame_decode(data, n_bytes, &frame);
    if (outcome != FRAME_OK) {
        if (outcome == FRAME_VERSION) {
            store->counters.dropped_version++;
        } else {
            store->counters.dropped_malformed++;
        }
        return;
    }
    bool is_own = store->has_identity && from == store->identity.node_id;
    if (is_own || (frame.head.from != from && !plant_is("trust-text-id"))) {
        struct store_peer *peer = store_find_peer(store, from);

        store->counters.dropped_identity++;
        if (peer != NULL) {
            log_refusal(store, peer, "the node id in its message is not that of its key");
        }
    } else {
        on_decoded(store, &frame);
    }
    frame_close(&frame);
}

void store_peers_turn(struct store *store)
{
    for (uint32_t i = 0; i < store->n_peers; i++) {
        struct store_peer *peer = store->peers[i];

        if (store->now_ns - peer->last_hello_ns >= STORE_HELLO_NS) {
            store_send_hello(store, peer->node_id);
        }
        send_parts(store, peer);
        if (peer->farewell_ns != 0 && store->now_ns >= peer->farewell_ns) {
            store_drop_peer(store, peer->node_id);
            i--;
        }
    }
}
