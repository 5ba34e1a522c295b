/* Making a cluster, and being admitted to one.
 *
 * `cluster init` reaches one node. That node makes its directory with itself as the only voter,
 * proposes the first command, which names all first members, and as the leader admits the others
 * exactly as it would admit a later member: ADMIT to the empty directory, its hello with the new
 * incarnation back, then raft's own add and promotion. So there is one way into a cluster, each
 * step is done again after any crash, and the binding of id and incarnation is always a committed
 * entry. (The rejected alternative, the same bootstrap configuration on all first members, needs a
 * second protocol that proves that no member is made twice.) Until more than half of the named
 * voters hold the first command, the node takes no other and the init is not DONE: nothing that
 * was acknowledged ever rests on one disk of three. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/membership.h"
#include "agent/store/store_private.h"
#include "common/base/str.h"

static bool is_zero(const struct cluster_id *id)
{
    static const struct cluster_id zero;

    return memcmp(id, &zero, sizeof zero) == 0;
}

static bool is_same(const struct cluster_id *a, const struct cluster_id *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void cluster_text(const struct cluster_id *id, char text[2 * CLUSTER_ID_BYTES + 1])
{
    str_hex(id->bytes, CLUSTER_ID_BYTES, text);
}

void store_say_waiting(struct store *store)
{
    char trusted[128] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < store->options.n_trusted && n + 32 < sizeof trusted; i++) {
        n += (size_t)snprintf(trusted + n, sizeof trusted - n, "%s%" PRIu64, i == 0 ? "" : ", ",
                              store->options.trusted[i].node_id);
    }
    store_set_state(store, STORE_WAITING, 0,
                    "data directory %s is empty: waiting for `nodectl cluster init` here%s%s%s",
                    store->dir.path, n == 0 ? "" : ", or for one of the nodes ", trusted,
                    n == 0 ? "" : " to admit this node");
}

/* --- init on this node --- */

static int bootstrap(void *user, const char *raft_dir, const struct identity *identity,
                     struct errmsg *err)
{
    char address[RAFT_ADDRESS_BYTES];

    (void)user;
    return raft_wrap_bootstrap(
        raft_dir, identity->node_id,
        raft_address_format(identity->node_id, identity->incarnation, address), err);
}

/* A peer that answers from a cluster, or that knew this node as a member, forbids a new one. */
static const struct store_peer *find_cluster(const struct store *store)
{
    for (uint32_t i = 0; i < store->n_peers; i++) {
        if (!is_zero(&store->peers[i]->cluster_id) &&
            store->now_ns - store->peers[i]->last_heard_ns < STORE_SILENT_NS) {
            return store->peers[i];
        }
    }
    return NULL;
}

static void make_first(struct store *store, struct ask *ask)
{
    struct identity identity = {.cluster_id = ask->cluster_id,
                                .node_id = ask->node_id,
                                .incarnation = identity_new_incarnation(),
                                .key = store->owner.key};
    const struct data_dir_first first = {
        .command = ask->command, .n_command_bytes = ask->n_command_bytes, .bootstrap = bootstrap};
    struct errmsg err = {{0}};
    int result = data_dir_make(&store->dir, &identity, &first, &err);

    if (result != 0) {
        store_complete(store, ask, STORE_REFUSED, "the data directory cannot be made: %s",
                       err.text);
        return;
    }
    store->identity = identity;
    store->has_identity = true;
    ask_push(&store->inits, ask);
    store_open(store);
}

void store_begin_init(struct store *store, struct ask *ask)
{
    char cluster[2 * CLUSTER_ID_BYTES + 1];
    const struct store_peer *other = find_cluster(store);

    if (store->has_identity && is_same(&store->identity.cluster_id, &ask->cluster_id)) {
        ask_push(&store->inits, ask); /* again: it goes on where it was */
        return;
    }
    if (store->has_identity) {
        cluster_text(&store->identity.cluster_id, cluster);
        store_complete(store, ask, STORE_EXISTS,
                       "this node belongs to cluster %s already; a new cluster needs an empty data "
                       "directory",
                       cluster);
    } else if (store->state != STORE_WAITING) {
        store_complete(store, ask, STORE_NOT_READY, "%s",
                       store->message.text[0] != '\0' ? store->message.text : "still starting");
    } else if (other != NULL) {
        cluster_text(&other->cluster_id, cluster);
        store_complete(store, ask, STORE_EXISTS,
                       "node %" PRIu64 " belongs to cluster %s already: this node is to join it "
                       "under a new id, or all of them start with empty data directories",
                       other->node_id, cluster);
    } else if (store->owner.node_id != 0 && ask->node_id != store->owner.node_id) {
        store_complete(store, ask, STORE_REFUSED,
                       "this agent is configured as node %" PRIu64
                       ", the cluster's members name it %" PRIu64,
                       store->owner.node_id, ask->node_id);
    } else {
        make_first(store, ask);
    }
}

/* Named voters that are voters of Raft's committed configuration by now. */
static uint32_t count_joined(const struct store *store, uint32_t *ret_n_named)
{
    const struct raft_configuration *conf = &store->raft.configuration_committed;
    uint32_t n_named = 0, n_joined = 0;

    for (uint32_t i = 0; i < store->wanted->n_nodes; i++) {
        if (store->wanted->nodes[i].role != ROLE_VOTER) {
            continue;
        }
        n_named++;
        for (unsigned k = 0; k < conf->n; k++) {
            n_joined += conf->servers[k].id == store->wanted->nodes[i].node_id &&
                                conf->servers[k].role == RAFT_VOTER
                            ? 1
                            : 0;
        }
    }
    *ret_n_named = n_named;
    return n_joined;
}

static void propose_first(struct store *store)
{
    struct ask *ask = calloc(1, sizeof *ask);

    if (ask != NULL) {
        ask->command = malloc(store->n_init_bytes);
    }
    if (ask == NULL || ask->command == NULL) {
        free(ask);
        return; /* the next turn tries again */
    }
    memcpy(ask->command, store->init_command, store->n_init_bytes);
    ask->n_command_bytes = store->n_init_bytes;
    ask->store = store;
    ask_push(&store->queue, ask);
    store->is_init_proposed = true;
    store_pump(store);
}

static void finish_inits(struct store *store)
{
    struct ask *ask;

    while ((ask = ask_pop(&store->inits)) != NULL) {
        store_complete(store, ask, STORE_DONE, "%s", "");
    }
}

/* The cluster stands: this node is a member like any other from now on. */
static void drop_init(struct store *store)
{
    struct errmsg err = {{0}};

    if (data_dir_drop_init(&store->dir, &err) != 0) {
        log_event(LOG_LEVEL_WARNING, "store_init_file", "reason=\"%s\"", err.text);
        return; /* the next turn tries again */
    }
    free(store->init_command);
    store->init_command = NULL;
    log_event(LOG_LEVEL_INFO, "store_cluster_made", "node=%" PRIu64, store->identity.node_id);
    store_set_state(store, STORE_RUNNING, 0, "%s", "");
    finish_inits(store);
}

void store_init_turn(struct store *store)
{
    const struct store_fsm *fsm = store->options.fsm;
    uint32_t n_named = 0;

    if (!store->is_raft_started || store->is_stopping) {
        return;
    }
    if (store->init_command == NULL) {
        if (fsm->revision(fsm->user) > 0 && store->state == STORE_RUNNING) {
            /* An admitted node has the leader's log now. */
            store_set_state(store, STORE_RUNNING, 0, "%s", "");
        }
        if (store->inits.n > 0 && fsm->revision(fsm->user) > 0) {
            finish_inits(store); /* asked again after it was done */
        }
        return;
    }
    if (fsm->revision(fsm->user) == 0) {
        if (store_is_leader(store) && store->is_ready && !store->is_init_proposed) {
            propose_first(store);
        }
        return;
    }
    uint32_t n_joined = count_joined(store, &n_named);
    if (n_joined > n_named / 2 && store->raft.configuration_uncommitted_index == 0) {
        drop_init(store);
    } else if (store->state == STORE_RUNNING) {
        store_set_state(store, STORE_RUNNING, 0,
                        "the cluster is being made: %u of %u first voters have joined", n_joined,
                        n_named);
    }
}

/* --- being admitted --- */

static void make_admitted(struct store *store, const struct frame *frame)
{
    struct identity identity = {.cluster_id = frame->head.cluster_id,
                                .node_id = frame->u.admit.node_id,
                                .incarnation = identity_new_incarnation(),
                                .key = store->owner.key};
    struct errmsg err = {{0}};
    char cluster[2 * CLUSTER_ID_BYTES + 1];
    int result = data_dir_make(&store->dir, &identity, NULL, &err);

    if (result != 0) {
        log_event(LOG_LEVEL_ERROR, "store_admit_failed", "reason=\"%s\"", err.text);
        store_set_state(store, STORE_WAITING, result, "the data directory cannot be made: %s",
                        err.text);
        return;
    }
    cluster_text(&identity.cluster_id, cluster);
    log_event(LOG_LEVEL_INFO, "store_admitted", "node=%" PRIu64 " cluster=%s by=%" PRIu64,
              identity.node_id, cluster, frame->head.from);
    store->identity = identity;
    store->has_identity = true;
    store_open(store);
    store_introduce(store, &frame->u.admit);
    store_send_hello(store, frame->head.from);
}

/* The member that the list gives this node's key. */
static bool names_us(const struct store *store, const struct frame_admit *admit)
{
    for (uint32_t i = 0; i < admit->members->n_nodes; i++) {
        const struct member_node *node = &admit->members->nodes[i];

        if (node->node_id == admit->node_id) {
            return memcmp(&node->key, &store->owner.key, sizeof node->key) == 0;
        }
    }
    return false;
}

void store_on_admit(struct store *store, const struct frame *frame)
{
    const struct frame_admit *admit = &frame->u.admit;

    if (store->has_identity) {
        if (is_same(&store->identity.cluster_id, &frame->head.cluster_id) &&
            store_is_known(store, frame->head.from)) {
            store_introduce(store, admit);
        }
        return;
    }
    if (store->state != STORE_WAITING || is_zero(&frame->head.cluster_id) ||
        !store_is_trusted(store, frame->head.from)) {
        return;
    }
    if ((store->owner.node_id != 0 && store->owner.node_id != admit->node_id) ||
        !names_us(store, admit)) {
        store_set_state(store, STORE_WAITING, ERR_CONFIG,
                        "node %" PRIu64 " would admit this node as node %" PRIu64
                        ", but its id or key in that cluster is another than here",
                        frame->head.from, admit->node_id);
        return;
    }
    make_admitted(store, frame);
}
