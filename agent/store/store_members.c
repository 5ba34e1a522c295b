/* Membership follows the state: whom to dial, whom to let speak, and, on the leader, Raft's own
 * configuration. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/membership.h"
#include "agent/store/store_private.h"
#include "common/base/plant.h"

static const struct member_node *find_in(const struct store_members *members, uint64_t node_id)
{
    for (uint32_t i = 0; i < members->n_nodes; i++) {
        if (members->nodes[i].node_id == node_id) {
            return &members->nodes[i];
        }
    }
    return NULL;
}

const struct member_node *store_find_member(const struct store *store, uint64_t node_id)
{
    const struct member_node *node = find_in(store->wanted, node_id);

    return node != NULL ? node : find_in(store->introduced, node_id);
}

bool store_is_trusted(const struct store *store, uint64_t node_id)
{
    for (uint32_t i = 0; i < store->options.n_trusted; i++) {
        if (store->options.trusted[i].node_id == node_id) {
            return true;
        }
    }
    return false;
}

/* A server of Raft's stays known until Raft has let it go: it may be the leader that is just being
 * removed. */
bool store_is_known(struct store *store, uint64_t node_id)
{
    if (store_find_member(store, node_id) != NULL || store_server(store, node_id) != NULL) {
        return true;
    }
    return store->wanted->n_nodes == 0 && store_is_trusted(store, node_id);
}

/* The list as the bytes of a frame: for the file, and to see whether it has changed. */
static uint8_t *encode_members(const struct store *store, const struct store_members *members,
                               uint64_t revision, size_t *ret_n_bytes)
{
    struct frame frame = {.head = {.kind = FRAME_ADMIT, .from = 1}};
    uint8_t *data = NULL;

    frame.u.admit = (struct frame_admit){
        .node_id = store->has_identity ? store->identity.node_id : 1,
        .revision = revision,
        .members = (struct store_members *)(uintptr_t)members /* encoding does not write */};
    return frame_encode(&frame, &data, ret_n_bytes) ? data : NULL;
}

/* Nothing of the log counts as committed before a leader says so, and no leader can be found
 * without addresses: so the newest list lies beside the log. */
static void remember(struct store *store, const struct store_members *members, uint64_t revision)
{
    struct errmsg err = {{0}};
    size_t n_bytes = 0;

    if (!store->has_identity || members->n_nodes == 0) {
        return;
    }
    uint8_t *data = encode_members(store, members, revision, &n_bytes);
    if (data == NULL || data_dir_write_members(&store->dir, data, n_bytes, &err) != 0) {
        log_event(LOG_LEVEL_WARNING, "store_members_file", "reason=\"%s\"", err.text);
    }
    free(data);
}

static bool is_same_list(const struct store *store, const struct store_members *a,
                         const struct store_members *b)
{
    size_t n_a = 0, n_b = 0;
    uint8_t *bytes_a = encode_members(store, a, 0, &n_a);
    uint8_t *bytes_b = encode_members(store, b, 0, &n_b);
    bool is_same =
        bytes_a != NULL && bytes_b != NULL && n_a == n_b && memcmp(bytes_a, bytes_b, n_a) == 0;

    free(bytes_a);
    free(bytes_b);
    return is_same;
}

static void dial_all(struct store *store, const struct store_members *members)
{
    for (uint32_t i = 0; i < members->n_nodes; i++) {
        const struct member_node *node = &members->nodes[i];
        struct store_peer *peer;

        if (node->node_id == store->identity.node_id) {
            continue;
        }
        peer = store_peer(store, node->node_id);
        if (peer != NULL) {
            peer->farewell_ns = 0;
            raft_lane_set_peer(&store->lane, node);
        }
    }
}

/* A removed member is told for a while, then let go: Raft itself does not tell it
 * (raft-022.md rule 19). */
static void say_farewell(struct store *store)
{
    for (uint32_t i = 0; i < store->n_peers; i++) {
        struct store_peer *peer = store->peers[i];

        if (peer->farewell_ns == 0 && store->wanted->n_nodes > 0 &&
            !store_is_known(store, peer->node_id)) {
            peer->farewell_ns = store->now_ns + STORE_FAREWELL_NS;
            peer->last_hello_ns = 0;
        }
    }
}

void store_members_changed(struct store *store)
{
    const struct store_fsm *fsm = store->options.fsm;
    uint64_t revision = fsm->revision(fsm->user);
    struct store_members *now = calloc(1, sizeof *now);

    if (now == NULL) {
        return;
    }
    fsm->members(fsm->user, now);
    bool is_same = is_same_list(store, now, store->wanted);
    bool was_introduced = store->introduced->n_nodes > 0;
    if (was_introduced && revision >= store->introduced_revision) {
        store->introduced->n_nodes = 0; /* the state has caught up with what it was told */
    }
    if (is_same && was_introduced == (store->introduced->n_nodes > 0)) {
        free(now);
        return;
    }
    free(store->wanted);
    store->wanted = now;
    store->members_revision = revision;
    bool is_behind = store->introduced->n_nodes > 0; /* then its addresses are older as well */
    if (!is_behind && !is_same) {
        remember(store, store->wanted, revision);
    }
    dial_all(store, is_behind ? store->introduced : store->wanted);
    store_publish_members(store);
}

void store_introduce(struct store *store, const struct frame_admit *admit)
{
    const struct store_fsm *fsm = store->options.fsm;

    if (admit->revision <= fsm->revision(fsm->user) ||
        admit->revision <= store->introduced_revision) {
        return;
    }
    *store->introduced = *admit->members;
    store->introduced_revision = admit->revision;
    remember(store, store->introduced, admit->revision);
    dial_all(store, store->introduced);
    store_publish_members(store);
}

void store_recall_members(struct store *store)
{
    struct errmsg err = {{0}};
    struct frame frame;
    uint8_t *data = NULL;
    size_t n_bytes = 0;
    int result = data_dir_read_members(&store->dir, &data, &n_bytes, &err);

    if (result == 0 && frame_decode(data, n_bytes, &frame) == FRAME_OK) {
        if (frame.head.kind == FRAME_ADMIT && store->introduced->n_nodes == 0) {
            *store->introduced = *frame.u.admit.members;
            store->introduced_revision = frame.u.admit.revision;
            dial_all(store, store->introduced);
            store_publish_members(store);
        }
        frame_close(&frame);
    } else if (result != ERR_NOTFOUND) {
        log_event(LOG_LEVEL_WARNING, "store_members_file", "reason=\"%s\"", err.text);
    }
    free(data);
}

void store_send_admit(struct store *store, uint64_t to)
{
    const struct store_fsm *fsm = store->options.fsm;
    struct frame frame = {.head = {.kind = FRAME_ADMIT}};

    frame.u.admit = (struct frame_admit){
        .node_id = to, .revision = fsm->revision(fsm->user), .members = store->wanted};
    store_send_frame(store, to, &frame);
}

/* --- the leader's part --- */

static void on_changed(struct raft_change *request, int status)
{
    struct store *store = request->data;
    struct store_peer *peer = store_find_peer(store, store->change_id);

    if (status != 0 && peer != NULL) {
        peer->retry_ns = store->now_ns + STORE_CHANGE_RETRY_NS;
    }
    log_event(status == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "store_membership",
              "node=%" PRIu64 " result=\"%s\"", store->change_id,
              status == 0 ? "done" : raft_strerror(status));
    store->change_id = 0;
    store->status_ns = 0;
}

/* raft_assign that fails on its fast path keeps a pointer to its request and would call it later;
 * so everything it could refuse is asked before (raft-022.md, "smaller ones"). */
static bool may_change(const struct store *store)
{
    const struct raft *raft = &store->raft;

    return store->change_id == 0 && raft->configuration_uncommitted_index == 0 &&
           raft->leader_state.promotee_id == 0 && raft_transferee(raft) == 0 &&
           raft->legacy.change == NULL;
}

static bool is_admitted(const struct store *store, const struct store_peer *peer)
{
    return peer->incarnation != 0 &&
           memcmp(&peer->cluster_id, &store->identity.cluster_id, sizeof peer->cluster_id) == 0;
}

static int start_change(struct store *store, const struct membership_step *step,
                        const struct store_peer *peer)
{
    char address[RAFT_ADDRESS_BYTES];

    store->change.data = store;
    store->change_id = step->node_id;
    switch (step->change) {
    case MEMBERSHIP_ADD:
        raft_address_format(step->node_id, peer->incarnation, address);
        return raft_add(&store->raft, &store->change, step->node_id, address, on_changed);
    case MEMBERSHIP_ASSIGN:
        return raft_assign(&store->raft, &store->change, step->node_id, step->raft_role,
                           on_changed);
    case MEMBERSHIP_REMOVE:
        return raft_remove(&store->raft, &store->change, step->node_id, on_changed);
    case MEMBERSHIP_SETTLED:
        break;
    }
    assert(false);
    return RAFT_INVALID;
}

/* An empty directory must become a member's before it can be added. */
static void admit(struct store *store, uint64_t node_id)
{
    struct store_peer *peer = store_peer(store, node_id);

    if (peer != NULL && store->now_ns >= peer->admit_ns) {
        peer->admit_ns = store->now_ns + STORE_HELLO_NS / 2;
        store_send_admit(store, node_id);
    }
}

static bool needs_admission(struct store *store, const struct membership_step *step)
{
    const struct store_peer *peer = store_find_peer(store, step->node_id);

    return step->change == MEMBERSHIP_ADD && (peer == NULL || !is_admitted(store, peer));
}

static bool is_heard(struct store *store, uint64_t node_id)
{
    const struct store_peer *peer = store_find_peer(store, node_id);

    return node_id == store->identity.node_id ||
           (peer != NULL && peer->last_heard_ns != 0 &&
            store->now_ns - peer->last_heard_ns < STORE_SILENT_NS);
}

/* Of several voters that go, those that are silent go first: without one that is heard the others
 * may be no majority, then not even that change would be committed, and the leader would fall. */
static bool keeps_majority(struct store *store, const struct membership_step *step)
{
    const struct raft_configuration *conf = &store->raft.configuration;
    unsigned n_left = 0, n_heard = 0;
    bool is_loss = false;

    for (unsigned i = 0; i < conf->n; i++) {
        const struct raft_server *server = &conf->servers[i];

        if (server->role != RAFT_VOTER) {
            continue;
        }
        bool goes = server->id == step->node_id &&
                    (step->change == MEMBERSHIP_REMOVE ||
                     (step->change == MEMBERSHIP_ASSIGN && step->raft_role != RAFT_VOTER));
        bool heard = is_heard(store, server->id);
        is_loss |= goes && heard;
        n_left += !goes;
        n_heard += !goes && heard;
    }
    return !is_loss || 2 * n_heard > n_left || plant_is("member-goes-unheard");
}

static uint64_t heard_ns(struct store *store, uint64_t node_id)
{
    const struct store_peer *peer = store_find_peer(store, node_id);

    return node_id == store->identity.node_id ? store->now_ns
           : peer != NULL                     ? peer->last_heard_ns
                                              : 0;
}

/* Of the removals, which are the first steps, the one of the node that was heard least lately. */
static void silent_first(struct store *store, struct membership_step steps[], uint32_t n_steps)
{
    uint32_t first = 0;

    for (uint32_t i = 1;
         i < n_steps && steps[i].change == MEMBERSHIP_REMOVE && !plant_is("member-goes-unheard");
         i++) {
        if (heard_ns(store, steps[i].node_id) < heard_ns(store, steps[first].node_id)) {
            first = i;
        }
    }
    if (first != 0) {
        struct membership_step step = steps[first];

        steps[first] = steps[0];
        steps[0] = step;
    }
}

static void take_step(struct store *store, const struct membership_step *step)
{
    struct store_peer *peer = store_find_peer(store, step->node_id); /* NULL: this node */

    if (peer != NULL && store->now_ns < peer->retry_ns) {
        return;
    }
    int code = start_change(store, step, peer);
    if (code == 0) {
        return;
    }
    store->change_id = 0;
    if (code != RAFT_NOTLEADER && code != RAFT_CANTCHANGE && code != RAFT_DUPLICATEID &&
        code != RAFT_DUPLICATEADDRESS && code != RAFT_BADID && code != RAFT_NOTFOUND &&
        code != RAFT_BADROLE) {
        store_fail_stop(store, STORE_EXIT_RESTART, raft_strerror(code));
    }
    if (peer != NULL) {
        peer->retry_ns = store->now_ns + STORE_CHANGE_RETRY_NS;
    }
}

/* Whom the state names anew learns it from those who know: it must let in a leader whose key its
 * own state does not hold yet. */
static void introduce_to_lagging(struct store *store)
{
    for (uint32_t i = 0; i < store->n_peers; i++) {
        struct store_peer *peer = store->peers[i];

        if (is_admitted(store, peer) && peer->state == STORE_PEER_OK &&
            peer->members_revision < store->members_revision) {
            peer->members_revision = store->members_revision;
            store_send_admit(store, peer->node_id);
        }
    }
}

void store_members_turn(struct store *store)
{
    struct membership_step steps[8];

    if (!store->is_raft_started || store->now_ns - store->members_ns < STORE_MEMBERS_NS) {
        return;
    }
    store->members_ns = store->now_ns;
    say_farewell(store);
    introduce_to_lagging(store);
    if (!store_is_leader(store) || !store->is_ready || store->is_stopping) {
        return;
    }
    uint32_t n_steps = membership_steps(&store->raft.configuration, store->wanted, 8, steps);
    silent_first(store, steps, n_steps);
    for (uint32_t i = 0; i < n_steps; i++) {
        if (needs_admission(store, &steps[i])) {
            admit(store, steps[i].node_id);
        } else if (may_change(store) && keeps_majority(store, &steps[i])) {
            take_step(store, &steps[i]);
        }
    }
}
