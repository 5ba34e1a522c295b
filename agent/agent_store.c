/* The store's side of the agent: what it hands over, what it is asked, who may connect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/model/feature_level.h"

/* --- hooks, on the store's thread --- */

static void on_store_wake(void *user)
{
    struct agent *agent = user;

    wake_signal(&agent->store_wake);
}

/* A full ring loses a count and nothing else. */
static void on_seen(void *user, const struct zmq_event *event)
{
    struct agent *agent = user;

    if (ring_push(agent->lane_events, event)) {
        wake_signal(&agent->store_wake);
    }
}

/* The store has logged the sentence. */
static void on_fail_stop(void *user, int exit_code, const char *sentence)
{
    (void)user;
    (void)sentence;
    _exit(exit_code);
}

int agent_store_open(struct agent *agent, struct errmsg *err)
{
    const struct agent_config *config = agent->config;
    struct store_options *options = calloc(1, sizeof *options);

    agent->has_fsm = fsm_catalog_init(&agent->fsm) == 0;
    agent->lane_events = ring_new(sizeof(struct zmq_event), AGENT_LANE_EVENTS);
    if (options == NULL || !agent->has_fsm || agent->lane_events == NULL) {
        free(options);
        return errmsg_set(err, ERR_NOMEM, "no memory for the store");
    }
    *options = (struct store_options){
        .data_dir = agent->data_dir,
        .node_id = config->node_id,
        .keys = agent->keys,
        .zmq_context = agent->store_context,
        .resolver = agent->resolver,
        .watchdog = agent->watchdog,
        .watchdog_loop = &agent->store_loop,
        .n_bind = config->n_raft_listen,
        .n_trusted = config->n_trusted,
        .fsm = &agent->fsm.fsm,
        .hooks = {.user = agent, .wake = on_store_wake, .fail_stop = on_fail_stop, .seen = on_seen},
        .election_timeout_ms = config->election_timeout_ms,
        .heartbeat_ms = config->heartbeat_ms,
    };
    memcpy(options->bind, config->raft_listen, sizeof options->bind);
    for (uint32_t i = 0; i < config->n_trusted; i++) {
        options->trusted[i] = (struct store_trusted){.node_id = config->trusted[i].node_id,
                                                     .key = config->trusted[i].key};
    }
    int rc = store_start(options, &agent->store, err);
    free(options);
    return rc;
}

/* --- requests --- */

static struct agent_request *free_request(struct agent *agent)
{
    for (size_t i = 0; i < AGENT_REQUESTS; i++) {
        if (agent->requests[i].owner == OWNER_NONE) {
            return &agent->requests[i];
        }
    }
    return NULL;
}

static struct agent_request *new_request(struct agent *agent, enum agent_request_owner owner,
                                         uint64_t rpc_cookie)
{
    struct agent_request *request = free_request(agent);

    if (request != NULL) {
        *request = (struct agent_request){
            .owner = (uint8_t)owner, .cookie = ++agent->next_cookie, .rpc_cookie = rpc_cookie};
    }
    return request;
}

/* The request was handed over, or is free again. */
static int settle(struct agent_request *request, int rc)
{
    if (rc != 0) {
        request->owner = OWNER_NONE;
    }
    return rc;
}

int agent_store_propose(struct agent *agent, enum agent_request_owner owner, uint64_t rpc_cookie,
                        const uint8_t *command, size_t n_bytes)
{
    struct agent_request *request = new_request(agent, owner, rpc_cookie);

    return request == NULL
               ? ERR_BUSY
               : settle(request, store_propose(agent->store, request->cookie, command, n_bytes));
}

int agent_store_barrier(struct agent *agent, uint64_t rpc_cookie)
{
    struct agent_request *request = new_request(agent, OWNER_RPC, rpc_cookie);

    return request == NULL ? ERR_BUSY
                           : settle(request, store_barrier(agent->store, request->cookie));
}

/* Which of the first members this node is, by its key; 0 = none. */
static uint64_t own_id_among(const struct agent *agent, const struct cluster_init *init)
{
    for (uint32_t i = 0; i < init->n_nodes; i++) {
        if (memcmp(init->nodes[i].key.bytes, agent->keys->public_key, PUBLIC_KEY_BYTES) == 0) {
            return init->nodes[i].node_id;
        }
    }
    return 0;
}

static int encode_init(const struct cluster_init *init, uint8_t **ret_data, size_t *ret_n_bytes)
{
    struct cluster_init *copy = malloc(sizeof *copy);

    if (copy == NULL) {
        return ERR_NOMEM;
    }
    *copy = *init;
    copy->feature_level = feature_level();
    struct change change = {.kind = CHANGE_INIT, .u.init = copy};
    const struct command command = {
        .wall_ms = clock_wall_ms(), .actor = "cluster init", .changes = &change, .n_changes = 1};
    int rc = command_encode(&command, ret_data, ret_n_bytes, NULL);
    free(copy);
    return rc;
}

int agent_store_init(struct agent *agent, uint64_t rpc_cookie, const struct cluster_init *init,
                     struct errmsg *err)
{
    struct store_init first = {.cluster_id = init->cluster_id,
                               .node_id = own_id_among(agent, init)};
    uint8_t *command;

    if (first.node_id == 0) {
        char key[2 * PUBLIC_KEY_BYTES + 1];

        str_hex(agent->keys->public_key, PUBLIC_KEY_BYTES, key);
        return errmsg_set(err, ERR_INVALID,
                          "none of the %u members has the key of the node that is asked, %s",
                          (unsigned)init->n_nodes, key);
    }
    struct agent_request *request = new_request(agent, OWNER_RPC, rpc_cookie);
    if (request == NULL) {
        return ERR_BUSY;
    }
    int rc = encode_init(init, &command, &first.n_command_bytes);
    if (rc == 0) {
        first.command = command;
        rc = store_init(agent->store, request->cookie, &first);
        free(command);
    }
    return settle(request, rc);
}

static void take_completion(struct agent *agent, const struct store_completion *completion)
{
    for (size_t i = 0; i < AGENT_REQUESTS; i++) {
        struct agent_request *request = &agent->requests[i];

        if (request->owner == OWNER_NONE || request->cookie != completion->cookie) {
            continue;
        }
        enum agent_request_owner owner = (enum agent_request_owner)request->owner;
        request->owner = OWNER_NONE;
        switch (owner) {
        case OWNER_RPC:
            agent_rpc_completion(agent, request->rpc_cookie, completion);
            return;
        case OWNER_PURGE:
            agent->purge_is_under_way = false; /* what is left is named again each V */
            return;
        case OWNER_LEVEL:
            agent->level_is_under_way = false;
            return;
        case OWNER_NONE:
            return;
        }
    }
}

/* --- what comes --- */

bool agent_is_leader(const struct agent *agent)
{
    return agent->has_status && agent->status.state == STORE_RUNNING &&
           agent->status.raft_state == STORE_RAFT_LEADER && agent->status.is_ready;
}

/* The store logs its own changes. */
static void take_status(struct agent *agent)
{
    struct store_status *status = malloc(sizeof *status); /* large */

    while (status != NULL && store_take_status(agent->store, status)) {
        agent->status = *status;
        agent->store_counts = status->counters;
        agent->has_status = true;
    }
    free(status);
}

static void take_lane_events(struct agent *agent)
{
    struct zmq_event event;

    while (ring_pop(agent->lane_events, &event)) {
        refusals_note_event(&agent->refusals, "raft", &event);
    }
}

void agent_store_woken(void *user)
{
    struct agent *agent = user;
    struct store_completion completion;
    bool access_changed = false;

    if (agent->is_stopping || agent->store == NULL) {
        return;
    }
    take_lane_events(agent);
    take_status(agent);
    agent_form_if_possible(agent);
    if (store_take_members(agent->store, &agent->members)) {
        agent->has_members = true;
        access_changed = true;
    }
    struct catalog *catalog = store_take_state(agent->store);
    if (catalog != NULL) {
        catalog_unref(agent->newest);
        agent->newest = catalog;
    }
    agent_take_catalog(agent); /* before the completions: who asked for a write reads it next */
    if (access_changed) {
        agent_refresh_access(agent);
    }
    while (store_next_completion(agent->store, &completion)) {
        take_completion(agent, &completion);
        store_completion_close(&completion);
    }
    agent_rpc_poll(agent);
}

/* --- who may connect --- */

struct key_list {
    struct zap_key keys[AGENT_ZAP_KEYS];
    size_t n_keys;
};

static struct zap_key *add_key(struct key_list *list, const uint8_t public_key[PUBLIC_KEY_BYTES])
{
    if (list->n_keys == AGENT_ZAP_KEYS) {
        return NULL;
    }
    struct zap_key *key = &list->keys[list->n_keys++];
    *key = (struct zap_key){.is_revoked = false};
    memcpy(key->public_key, public_key, CURVE_KEY_BYTES);
    return key;
}

static void add_node(struct key_list *list, uint64_t node_id, const struct public_key *public_key)
{
    struct zap_key *key = add_key(list, public_key->bytes);

    if (key != NULL) {
        zap_node_user_id(node_id, key->user_id);
    }
}

static enum zap_role zap_role_of(uint8_t role)
{
    switch ((enum key_role)role) {
    case KEY_ROLE_VIEWER:
        return ZAP_ROLE_VIEWER;
    case KEY_ROLE_OPERATOR:
        return ZAP_ROLE_OPERATOR;
    case KEY_ROLE_ADMIN:
        return ZAP_ROLE_ADMIN;
    case KEY_ROLE_NONE:
        break;
    }
    return ZAP_ROLE_NONE;
}

/* Whose key it was, once, when its time is over: a refusal knows the key alone. */
static void tell_expired(const struct agent *agent, const struct access_key *spec)
{
    const uint8_t *key = spec->key.bytes;

    for (size_t i = 0; i < agent->n_zap_keys; i++) {
        const struct zap_key *known = &agent->zap_keys[i];

        if (!known->is_revoked && memcmp(known->public_key, key, CURVE_KEY_BYTES) == 0) {
            log_event(LOG_LEVEL_WARNING, "key_expired", "name=%s key=%02x%02x%02x%02x...",
                      spec->name, key[0], key[1], key[2], key[3]);
            return;
        }
    }
}

static void add_access_keys(struct key_list *list, const struct catalog *catalog,
                            const struct agent *agent)
{
    int64_t now_ms = clock_wall_ms();

    for (size_t i = 0; i < catalog_n_keys(catalog); i++) {
        const struct access_key *spec = &catalog_key_at(catalog, i)->spec;
        enum zap_role role = zap_role_of(spec->role);
        struct zap_key *key;

        if (role == ZAP_ROLE_NONE) {
            continue;
        }
        if (spec->expires_wall_ms != 0 && spec->expires_wall_ms <= now_ms) {
            tell_expired(agent, spec);
            continue;
        }
        key = add_key(list, spec->key.bytes);
        if (key != NULL) {
            zap_user_id(role, spec->name, key->user_id);
        }
    }
}

static void add_bootstrap_keys(struct key_list *list, const struct agent_config *config)
{
    for (uint32_t i = 0; i < config->n_trusted; i++) {
        add_node(list, config->trusted[i].node_id, &config->trusted[i].key);
    }
    for (uint32_t i = 0; i < config->n_admin_keys; i++) {
        char name[32];
        struct zap_key *key = add_key(list, config->admin_keys[i].bytes);

        snprintf(name, sizeof name, "bootstrap-%u", i + 1);
        if (key != NULL) {
            zap_user_id(ZAP_ROLE_ADMIN, name, key->user_id);
        }
    }
}

static bool has_key(const struct key_list *list, const uint8_t public_key[CURVE_KEY_BYTES])
{
    for (size_t i = 0; i < list->n_keys; i++) {
        if (memcmp(list->keys[i].public_key, public_key, CURVE_KEY_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

/* Keys that were good before are revoked and not unknown: libzmq's peers stop asking. */
static void add_revoked(struct key_list *list, const struct agent *agent)
{
    size_t n_revoked = 0;

    for (size_t i = agent->n_zap_keys; i-- > 0 && n_revoked < AGENT_REVOKED_KEYS;) {
        const struct zap_key *old = &agent->zap_keys[i];
        struct zap_key *key =
            has_key(list, old->public_key) ? NULL : add_key(list, old->public_key);

        if (key != NULL) {
            *key = *old;
            key->is_revoked = true;
            n_revoked++;
        }
    }
}

static size_t collect_nodes(const struct agent *agent, struct member_node nodes[LIMIT_NODES])
{
    const struct catalog *catalog = agent->engine != NULL ? engine_catalog(agent->engine) : NULL;
    size_t n_nodes = 0;

    if (agent->has_members) {
        memcpy(nodes, agent->members.nodes, agent->members.n_nodes * sizeof nodes[0]);
        return agent->members.n_nodes;
    }
    for (size_t i = 0; catalog != NULL && i < catalog_n_nodes(catalog) && i < LIMIT_NODES; i++) {
        nodes[n_nodes++] = catalog_node_at(catalog, i)->spec;
    }
    return n_nodes;
}

static void publish_keys(struct agent *agent, const struct key_list *list)
{
    struct zap_table *table = zap_table_new(list->keys, list->n_keys);

    if (table == NULL) {
        return; /* the old one stays; housekeeping tries again in a second */
    }
    memcpy(agent->zap_keys, list->keys, list->n_keys * sizeof list->keys[0]);
    agent->n_zap_keys = list->n_keys;
    zap_table_unref(agent->zap_table);
    agent->zap_table = table;
    mesh_set_table(agent->mesh, table);
    zap_set_table(agent->zap, zap_table_ref(table));
}

void agent_refresh_access(struct agent *agent)
{
    const struct catalog *catalog = agent->engine != NULL ? engine_catalog(agent->engine) : NULL;
    struct key_list *list = calloc(1, sizeof *list);
    struct member_node *nodes = calloc(LIMIT_NODES, sizeof *nodes);

    if (list != NULL && nodes != NULL) {
        size_t n_nodes = collect_nodes(agent, nodes);

        for (size_t i = 0; i < n_nodes; i++) {
            add_node(list, nodes[i].node_id, &nodes[i].key);
        }
        if (catalog != NULL) {
            add_access_keys(list, catalog, agent);
        } else {
            add_bootstrap_keys(list, agent->config);
        }
        add_revoked(list, agent);
        if (list->n_keys != agent->n_zap_keys ||
            memcmp(list->keys, agent->zap_keys, list->n_keys * sizeof list->keys[0]) != 0) {
            publish_keys(agent, list);
        }
        if (agent->is_formed) {
            mesh_set_peers(agent->mesh, nodes, n_nodes);
        }
    }
    free(list);
    free(nodes);
}
