/* What is told to the owner: status, state, members. */
#include <stdlib.h>
#include <string.h>

#include "agent/store/membership.h"
#include "agent/store/store_private.h"

static uint8_t raft_state_of(struct store *store)
{
    if (!store->is_raft_started) {
        return STORE_RAFT_NONE;
    }
    switch (raft_state(&store->raft)) {
    case RAFT_LEADER:
        return STORE_RAFT_LEADER;
    case RAFT_CANDIDATE:
        return STORE_RAFT_CANDIDATE;
    case RAFT_FOLLOWER:
        return STORE_RAFT_FOLLOWER;
    case RAFT_UNAVAILABLE:
        break;
    }
    return STORE_RAFT_NONE;
}

static uint8_t peer_state(const struct store *store, const struct store_peer *peer)
{
    bool is_silent =
        peer->last_heard_ns == 0 || store->now_ns - peer->last_heard_ns >= STORE_SILENT_NS;
    const struct lane_peer *lane = NULL;

    for (uint32_t i = 0; i < store->lane.n_peers; i++) {
        lane = store->lane.peers[i]->node_id == peer->node_id ? store->lane.peers[i] : lane;
    }
    if (is_silent && lane != NULL && dial_is_unresolved(lane->dial)) {
        return STORE_PEER_UNRESOLVED;
    }
    return is_silent ? STORE_PEER_SILENT : peer->state;
}

static void fill_peers(struct store *store, struct store_status *status)
{
    for (uint32_t i = 0; i < store->n_peers; i++) {
        const struct store_peer *peer = store->peers[i];
        const struct raft_server *server = store_server(store, peer->node_id);
        raft_index match = 0;

        if (store_is_leader(store)) {
            raft_match_index(&store->raft, peer->node_id, &match);
        }
        status->peers[status->n_peers++] = (struct store_peer_status){
            .node_id = peer->node_id,
            .state = peer_state(store, peer),
            .raft_role = server == NULL ? ROLE_NONE : membership_model_role(server->role),
            .epoch = peer->epoch,
            .last_contact_ns = peer->last_heard_ns,
            .match_index = match};
    }
}

static void fill_raft(struct store *store, struct store_status *status)
{
    status->raft_state = raft_state_of(store);
    status->is_ready = store->is_ready;
    status->leader_id = store_leader_id(store);
    status->last_leader_ns = store->last_leader_ns;
    if (store->is_raft_started) {
        status->term = raft_current_term(&store->raft);
        status->last_index = raft_last_index(&store->raft);
        status->stored_index = store->raft.last_stored;
        status->commit_index = raft_commit_index(&store->raft);
        status->applied_index = raft_last_applied(&store->raft);
    }
}

void store_publish_status(struct store *store)
{
    const struct store_fsm *fsm = store->options.fsm;
    struct store_status *status = calloc(1, sizeof *status);

    if (status == NULL) {
        return; /* the next one comes in a second */
    }
    status->state = store->state;
    status->node_id = store->has_identity ? store->identity.node_id : store->owner.node_id;
    if (store->has_identity) {
        status->cluster_id = store->identity.cluster_id;
        status->incarnation = store->identity.incarnation;
    }
    status->epoch = store->epoch;
    fill_raft(store, status);
    status->revision = fsm->revision(fsm->user);
    status->state_hash = fsm->state_hash(fsm->user);
    status->free_bytes = store->free_bytes;
    status->is_disk_full = store->is_disk_full;
    status->is_disk_slow = store->is_disk_slow;
    status->fsync_last_us = store->wrap.times.last_us;
    status->fsync_max_us = store->fsync_max_us > store->fsync_max_before_us
                               ? store->fsync_max_us
                               : store->fsync_max_before_us;
    status->err = store->err;
    status->message = store->message;
    store->counters.sent = store->lane.n_sent;
    store->counters.send_evicted = store->lane.n_evicted;
    status->counters = store->counters;
    fill_peers(store, status);
    mailbox_put(&store->statuses, status);
    store->status_ns = store->now_ns;
    store->is_wake_due = true;
}

void store_publish_state(struct store *store)
{
    const struct store_fsm *fsm = store->options.fsm;

    if (!store->is_state_dirty) {
        return;
    }
    store->is_state_dirty = false;
    store_members_changed(store);
    /* Raft opened anew begins at its snapshot: what was handed out before is newer, and stays. */
    uint64_t revision = fsm->revision(fsm->user);
    if (fsm->publish != NULL && revision > 0 && revision >= store->published_revision) {
        store->published_revision = revision;
        void *value = fsm->publish(fsm->user);

        if (value != NULL) {
            mailbox_put(&store->states, value);
        }
    }
    store->status_ns = 0;
    store->is_wake_due = true;
}

void store_publish_members(struct store *store)
{
    struct store_members *copy = malloc(sizeof *copy);

    if (copy == NULL) {
        return; /* the next change brings all */
    }
    *copy = *store->wanted;
    /* Those that were introduced and are not of the state yet. */
    for (uint32_t i = 0; i < store->introduced->n_nodes && copy->n_nodes < LIMIT_NODES; i++) {
        const struct member_node *node = &store->introduced->nodes[i];
        bool is_there = false;

        for (uint32_t k = 0; k < copy->n_nodes; k++) {
            is_there = is_there || copy->nodes[k].node_id == node->node_id;
        }
        if (!is_there) {
            copy->nodes[copy->n_nodes++] = *node;
        }
    }
    mailbox_put(&store->members, copy);
    store->is_wake_due = true;
}
