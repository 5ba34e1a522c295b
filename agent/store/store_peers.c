/* Peers and what comes from them: who may speak, hellos, and what goes on to raft. */
#include <inttypes.h>
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
    if (head->epoch < peer->seen.epoch && !plant_is("restored-unseen")) {
        return false;
    }
    if (head->kind == FRAME_SNAPSHOT_PART) {
        return head->epoch >= peer->order.epoch;
    }
    return guard_order_accept(&peer->order, head->epoch, head->sequence);
}

/* Sender and receiver are the directories that the committed membership binds to their ids. */
static bool is_bound(struct store *store, const struct frame_head *head)
{
    uint64_t bound = store_bound_incarnation(store, head->from);

    if (plant_is("readmit-wiped")) {
        return true;
    }
    return (head->to_incarnation == 0 || head->to_incarnation == store->identity.incarnation) &&
           (bound == 0 || bound == head->from_incarnation);
}

static bool may_reach_raft(struct store *store, struct store_peer *peer,
                           const struct frame_head *head)
{
    if (memcmp(&head->cluster_id, &store->identity.cluster_id, sizeof head->cluster_id) != 0) {
        store->counters.dropped_cluster++;
        log_refusal(store, peer, "it belongs to another cluster");
        return false;
    }
    if (head->to != store->identity.node_id || head->from_incarnation == 0 ||
        !is_bound(store, head) || !store_is_known(store, head->from)) {
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
    bool is_empty = memcmp(&peer->cluster_id, &zero, sizeof zero) == 0;

    if (!is_empty && store->has_identity &&
        memcmp(&peer->cluster_id, &store->identity.cluster_id, sizeof peer->cluster_id) != 0) {
        return STORE_PEER_OTHER_CLUSTER;
    }
    if (bound != 0 && peer->incarnation != bound) {
        return STORE_PEER_WIPED;
    }
    if (peer->is_restored) {
        return STORE_PEER_RESTORED;
    }
    return is_empty ? STORE_PEER_WAITING : STORE_PEER_OK;
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
        (store->is_empty || (plant_is("damage-is-empty") && store->state >= STORE_FAILED))) {
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

/* R-RAFT-6: at one revision there is one state. */
static void compare_states(struct store *store, struct store_peer *peer,
                           const struct frame_hello *hello)
{
    const struct store_fsm *fsm = store->options.fsm;
    struct hash128 ours = fsm->state_hash(fsm->user);

    if (peer->state == STORE_PEER_OK && hello->revision == fsm->revision(fsm->user) &&
        (hello->state_hash.low != ours.low || hello->state_hash.high != ours.high)) {
        store->counters.states_differ++;
        log_refusal(store, peer,
                    "its state at the same revision is another than here: one of the "
                    "two nodes must be replaced");
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
    store_judge_age(store, peer, frame);
    peer->state = judge_peer(store, peer);
    if (peer->state == STORE_PEER_OK || peer->state == STORE_PEER_RESTORED) {
        store_note_seen(peer, frame);
    }
    compare_states(store, peer, hello);
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
    if (plant_is("readmit-wiped")) {
        if (peer->state == STORE_PEER_WIPED && store_is_leader(store)) {
            store_send_admit(store, peer->node_id);
        }
    } else {
        hear_standing(store, frame);
        store_hear_seen(store, frame);
    }
    /* One that starts from an older directory is told before it can stand for election. */
    if (is_first || head->epoch < peer->seen.epoch) {
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
        store_note_seen(peer, frame);
        store_on_raft_frame(store, peer, frame);
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
        store_send_parts(store, peer);
        if (peer->farewell_ns != 0 && store->now_ns >= peer->farewell_ns) {
            store_drop_peer(store, peer->node_id);
            i--;
        }
    }
}
