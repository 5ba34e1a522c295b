/* The cluster and this node: status, members, readiness, counters, version, keys, settings. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine_view.h"
#include "agent/rpc/rpc_internal.h"
#include "common/base/str.h"
#include "common/wire/object.h"
#include "jury/v1/cluster.pb-c.h"

#define DATA_PLANES_MAX LIMIT_DATA_PLANES
#define READY_CHECKS_MAX 32
#define PROBLEMS_MAX 80

static struct rpc_store store_of(const struct view *view)
{
    struct rpc_store store = {.leader_age_ns = RPC_NEVER_NS};

    view->server->hooks.store(view->server->hooks.user, &store);
    return store;
}

static struct rpc_node node_of(const struct view *view)
{
    struct rpc_node node = {0};

    view->server->hooks.node(view->server->hooks.user, &node);
    return node;
}

static char *hex(struct wire_arena *arena, const uint8_t *data, size_t n_bytes)
{
    char *text = wire_alloc(arena, 2 * n_bytes + 1);

    if (text != NULL) {
        str_hex(data, n_bytes, text);
    }
    return text;
}

/* Empty for an id that is all zero. */
static char *cluster_id_text(struct wire_arena *arena, const struct cluster_id *id)
{
    static const struct cluster_id none;

    return memcmp(id, &none, sizeof none) == 0 ? wire_text(arena, "")
                                               : hex(arena, id->bytes, sizeof id->bytes);
}

static Google__Protobuf__Duration *age_new(struct wire_arena *arena, uint64_t age_ns)
{
    return age_ns == RPC_NEVER_NS ? NULL : wire_duration_new(arena, age_ns);
}

/* --- parts --- */

static Jury__V1__StoreStatus *store_new(const struct view *view, const struct rpc_store *store)
{
    Jury__V1__StoreStatus *message =
        WIRE_NEW(view->arena, Jury__V1__StoreStatus, jury__v1__store_status);

    if (message != NULL) {
        message->state = (Jury__V1__StoreState)store->state;
        message->message = wire_text(view->arena, store->message.text);
        message->role = (Jury__V1__StoreRole)store->role;
        message->term = store->term;
        message->leader_id = store->leader_id;
        message->applied_index = store->applied_index;
        message->last_index = store->last_index;
        message->leader_age = age_new(view->arena, store->leader_age_ns);
        message->free_bytes = store->free_bytes;
        message->is_disk_full = store->is_disk_full;
        message->is_disk_slow = store->is_disk_slow;
        message->fsync_max = wire_duration_new(view->arena, store->fsync_max_us * NS_PER_US);
    }
    return message;
}

static size_t data_planes_new(const struct view *view, uint64_t published_generation,
                              Jury__V1__DataPlaneStatus ***ret_planes)
{
    size_t n = 0;
    struct rpc_data_plane plane = {0};
    Jury__V1__DataPlaneStatus **planes =
        wire_alloc_array(view->arena, DATA_PLANES_MAX, sizeof *planes);

    while (planes != NULL && n < DATA_PLANES_MAX &&
           view->server->hooks.data_plane(view->server->hooks.user, n, &plane)) {
        Jury__V1__DataPlaneStatus *message =
            WIRE_NEW(view->arena, Jury__V1__DataPlaneStatus, jury__v1__data_plane_status);

        if (message == NULL) {
            break;
        }
        message->pid = plane.pid;
        message->is_alive = plane.is_alive;
        message->age = age_new(view->arena, plane.age_ns);
        message->adopted_generation = plane.adopted_generation;
        message->published_generation = published_generation;
        message->flows = plane.flows;
        message->name = wire_text(view->arena, plane.name);
        planes[n++] = message;
        plane = (struct rpc_data_plane){0};
    }
    *ret_planes = planes;
    return n;
}

/* Kinds of checks from the mask of a vote: bit 1 << enum check_type. */
static void fill_suspect(const struct view *view, uint32_t mask, Jury__V1__MemberStatus *message)
{
    message->suspect = wire_alloc_array(view->arena, 32, sizeof *message->suspect);
    for (unsigned type = 0; message->suspect != NULL && type < 32; type++) {
        if ((mask >> type & 1) != 0) {
            message->suspect[message->n_suspect++] = (Jury__V1__CheckType)type;
        }
    }
}

static Jury__V1__MemberStatus *member_new(const struct view *view, const struct catalog_node *node,
                                          const struct peer_view *peer, uint64_t leader_id)
{
    struct rpc_peer mesh = {.age_ns = RPC_NEVER_NS, .raft_age_ns = RPC_NEVER_NS};
    Jury__V1__MemberStatus *message =
        WIRE_NEW(view->arena, Jury__V1__MemberStatus, jury__v1__member_status);

    if (message == NULL) {
        return NULL;
    }
    view->server->hooks.peer(view->server->hooks.user, node->spec.node_id, &mesh);
    uint64_t fresh_ns = catalog_settings(view->catalog)->vote_interval_ms * 3 * NS_PER_MS;
    message->node = wire_node_new(view->arena, &node->spec);
    message->changed_revision = node->changed_revision;
    message->is_leader = node->spec.node_id == leader_id;
    message->raft_age = age_new(view->arena, mesh.raft_age_ns);
    if (peer != NULL) {
        message->is_self = peer->is_self;
        message->is_heard = peer->is_self || peer->vector_age_ns <= fresh_ns;
        message->age = age_new(view->arena, peer->vector_age_ns);
        message->counts = peer->counts;
        message->revision = peer->revision;
        message->epoch = peer->epoch;
        message->catalog_differs = peer->catalog_differs;
        fill_suspect(view, peer->suspect_mask, message);
    }
    return message;
}

static size_t members_new(const struct view *view, uint64_t leader_id,
                          Jury__V1__MemberStatus ***ret_members)
{
    struct peer_view *peers = wire_alloc_array(view->arena, LIMIT_NODES, sizeof *peers);
    Jury__V1__MemberStatus **members = wire_alloc_array(view->arena, LIMIT_NODES, sizeof *members);
    size_t n_peers = 0, n = 0;

    if (peers == NULL || members == NULL || view->catalog == NULL) {
        *ret_members = members;
        return 0;
    }
    if (view->engine != NULL) {
        n_peers = engine_view_peers(view->engine, view->now_ns, peers);
    }
    for (size_t i = 0; i < catalog_n_nodes(view->catalog) && n < LIMIT_NODES; i++) {
        const struct catalog_node *node = catalog_node_at(view->catalog, i);
        const struct peer_view *peer = NULL;

        for (size_t j = 0; j < n_peers; j++) {
            peer = peers[j].node_id == node->spec.node_id ? &peers[j] : peer;
        }
        members[n] = member_new(view, node, peer, leader_id);
        n += members[n] != NULL;
    }
    *ret_members = members;
    return n;
}

/* --- members, settings, keys --- */

int handle_list_members(const struct view *view, const ProtobufCMessage *request,
                        ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__ListMembersResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListMembersResponse, jury__v1__list_members_response);

    (void)request;
    (void)err;
    if (response != NULL) {
        struct rpc_store store = store_of(view);
        struct cluster_id id = catalog_cluster_id(view->catalog);

        response->cluster_id = cluster_id_text(view->arena, &id);
        response->n_members = members_new(view, store.leader_id, &response->members);
        *ret_response = &response->base;
    }
    return 0;
}

int handle_get_settings(const struct view *view, const ProtobufCMessage *request,
                        ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__GetSettingsResponse *response =
        WIRE_NEW(view->arena, Jury__V1__GetSettingsResponse, jury__v1__get_settings_response);

    (void)request;
    (void)err;
    if (response != NULL) {
        response->settings = wire_settings_new(view->arena, catalog_settings(view->catalog));
        response->changed_revision = catalog_settings_changed_revision(view->catalog);
        *ret_response = &response->base;
    }
    return 0;
}

int handle_list_keys(const struct view *view, const ProtobufCMessage *request,
                     ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__ListKeysResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListKeysResponse, jury__v1__list_keys_response);

    (void)request;
    (void)err;
    if (response == NULL) {
        return 0;
    }
    response->keys = wire_alloc_array(view->arena, LIMIT_KEYS, sizeof *response->keys);
    for (size_t i = 0; response->keys != NULL && i < catalog_n_keys(view->catalog); i++) {
        const struct catalog_key *key = catalog_key_at(view->catalog, i);
        Jury__V1__KeyStatus *status =
            WIRE_NEW(view->arena, Jury__V1__KeyStatus, jury__v1__key_status);

        if (status == NULL || response->n_keys == LIMIT_KEYS) {
            break;
        }
        status->key = wire_key_new(view->arena, &key->spec);
        status->changed_revision = key->changed_revision;
        response->keys[response->n_keys++] = status;
    }
    *ret_response = &response->base;
    return 0;
}

int handle_read_barrier(const struct view *view, const ProtobufCMessage *request,
                        ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__ReadBarrierResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ReadBarrierResponse, jury__v1__read_barrier_response);

    (void)request;
    (void)err;
    if (response != NULL) {
        response->revision = catalog_revision(view->catalog);
        *ret_response = &response->base;
    }
    return 0;
}

/* --- status --- */

static void add_problem(const struct view *view, Jury__V1__GetStatusResponse *response,
                        char *sentence)
{
    if (sentence != NULL && response->problems != NULL && response->n_problems < PROBLEMS_MAX) {
        response->problems[response->n_problems++] = sentence;
    }
    (void)view;
}

static void add_store_problems(const struct view *view, const struct rpc_store *store,
                               Jury__V1__GetStatusResponse *response)
{
    if (store->state != RPC_STORE_RUNNING || store->message.text[0] != '\0') {
        add_problem(
            view, response,
            wire_format(view->arena, "store: %s",
                        store->message.text[0] != '\0' ? store->message.text : "is not running"));
    }
    if (store->state == RPC_STORE_RUNNING && store->leader_id == 0) {
        add_problem(view, response,
                    wire_text(view->arena, "no leader: the catalog cannot be changed"));
    }
    if (store->is_disk_full) {
        add_problem(view, response,
                    wire_format(view->arena,
                                "%" PRIu64 " MB are left on this node's disk: it "
                                "refuses writes",
                                store->free_bytes / 1000000));
    }
    if (store->is_disk_slow) {
        add_problem(view, response,
                    wire_text(view->arena, "the disk of this node makes no progress"));
    }
}

static void add_member_problems(const struct view *view, Jury__V1__GetStatusResponse *response)
{
    for (size_t i = 0; i < response->n_members; i++) {
        const Jury__V1__MemberStatus *member = response->members[i];
        bool observes =
            member->node != NULL && member->node->role != JURY__V1__RAFT_ROLE__RAFT_ROLE_SPARE;

        if (member->node == NULL || member->is_self) {
            continue;
        }
        if (observes && !member->is_heard) {
            add_problem(view, response,
                        member->age == NULL
                            ? wire_format(view->arena, "node %" PRIu64 " was never heard here",
                                          member->node->node_id)
                            : wire_format(view->arena,
                                          "node %" PRIu64 " was last heard %" PRId64 " s ago",
                                          member->node->node_id, member->age->seconds));
        }
        if (member->catalog_differs) {
            add_problem(view, response,
                        wire_format(view->arena,
                                    "node %" PRIu64 " has another catalog at the same revision: "
                                    "its votes are refused",
                                    member->node->node_id));
        }
    }
}

static void add_other_problems(const struct view *view, Jury__V1__GetStatusResponse *response)
{
    if (response->is_last_known_good) {
        add_problem(view, response,
                    wire_text(view->arena,
                              "this node serves from its last-known-good file, not the store"));
    }
    for (size_t i = 0; i < response->n_data_planes; i++) {
        if (!response->data_planes[i]->is_alive) {
            add_problem(view, response,
                        wire_format(view->arena, "data plane %s is absent",
                                    response->data_planes[i]->name));
        }
    }
}

static void fill_counts(const struct view *view, Jury__V1__GetStatusResponse *response)
{
    struct engine_status status = {0};
    Jury__V1__GroupCounts *groups =
        WIRE_NEW(view->arena, Jury__V1__GroupCounts, jury__v1__group_counts);
    Jury__V1__BackendCounts *backends =
        WIRE_NEW(view->arena, Jury__V1__BackendCounts, jury__v1__backend_counts);

    if (groups == NULL || backends == NULL) {
        return;
    }
    if (view->engine != NULL) {
        engine_view_status(view->engine, view->now_ns, &status);
    }
    groups->total = status.n_groups;
    groups->ok = status.n_groups_by_state[GROUP_OK];
    groups->degraded = status.n_groups_by_state[GROUP_DEGRADED];
    groups->fail_open = status.n_groups_by_state[GROUP_FAIL_OPEN];
    groups->closed = status.n_groups_by_state[GROUP_CLOSED];
    backends->total = status.n_backends;
    backends->initial = status.n_by_state[HEALTH_INITIAL];
    backends->healthy = status.n_by_state[HEALTH_HEALTHY];
    backends->unhealthy = status.n_by_state[HEALTH_UNHEALTHY];
    backends->unavailable = status.n_by_state[HEALTH_UNAVAILABLE];
    backends->unused = status.n_by_state[HEALTH_UNUSED];
    backends->unreachable = status.n_unreachable;
    backends->held = status.n_held;
    response->groups = groups;
    response->backends = backends;
    response->n_observers = status.n_observers;
    response->quorum = status.quorum;
    response->n_fresh = status.n_fresh;
}

static Jury__V1__ClusterHealth health_of(const struct rpc_store *store, size_t n_problems)
{
    if (store->state == RPC_STORE_WAITING || store->state == RPC_STORE_NONE) {
        return JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_UNSPECIFIED;
    }
    if (store->state != RPC_STORE_RUNNING || store->leader_id == 0) {
        return JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_UNAVAILABLE;
    }
    return n_problems == 0 ? JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_HEALTHY
                           : JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_DEGRADED;
}

int handle_get_status(const struct view *view, const ProtobufCMessage *request,
                      ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__GetStatusResponse *response =
        WIRE_NEW(view->arena, Jury__V1__GetStatusResponse, jury__v1__get_status_response);
    struct rpc_store store = store_of(view);
    struct rpc_node node = node_of(view);

    (void)request;
    (void)err;
    if (response == NULL) {
        return 0;
    }
    response->cluster_id = cluster_id_text(view->arena, &node.cluster_id);
    response->node_id = node.node_id;
    response->state_hash = wire_text(view->arena, "");
    if (view->catalog != NULL) {
        struct hash128 hash = catalog_state_hash(view->catalog);

        response->revision = catalog_revision(view->catalog);
        response->state_hash =
            wire_format(view->arena, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
    }
    response->store = store_new(view, &store);
    response->n_members = members_new(view, store.leader_id, &response->members);
    response->n_data_planes =
        data_planes_new(view, node.published_generation, &response->data_planes);
    response->is_last_known_good = node.is_last_known_good;
    fill_counts(view, response);
    response->problems = wire_alloc_array(view->arena, PROBLEMS_MAX, sizeof *response->problems);
    add_store_problems(view, &store, response);
    add_member_problems(view, response);
    add_other_problems(view, response);
    response->health = health_of(&store, response->n_problems);
    *ret_response = &response->base;
    return 0;
}

/* --- this node --- */

int handle_check_ready(const struct view *view, const ProtobufCMessage *request,
                       ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__CheckReadyResponse *response =
        WIRE_NEW(view->arena, Jury__V1__CheckReadyResponse, jury__v1__check_ready_response);
    struct rpc_ready_check check = {.is_ok = false};

    (void)request;
    (void)err;
    if (response == NULL) {
        return 0;
    }
    response->is_ready = true;
    response->checks = wire_alloc_array(view->arena, READY_CHECKS_MAX, sizeof *response->checks);
    while (response->checks != NULL && response->n_checks < READY_CHECKS_MAX &&
           view->server->hooks.ready_check(view->server->hooks.user, response->n_checks, &check)) {
        Jury__V1__ReadyCheck *message =
            WIRE_NEW(view->arena, Jury__V1__ReadyCheck, jury__v1__ready_check);

        if (message == NULL) {
            break;
        }
        message->name = wire_text(view->arena, check.name);
        message->is_ok = check.is_ok;
        message->message = wire_text(view->arena, check.is_ok ? "" : check.message.text);
        response->is_ready = response->is_ready && check.is_ok;
        response->checks[response->n_checks++] = message;
        check = (struct rpc_ready_check){.is_ok = false};
    }
    *ret_response = &response->base;
    return 0;
}

/* "a,b" as a list. */
static size_t split(struct wire_arena *arena, const char *text, char ***ret_words)
{
    size_t n = 0;
    char **words = wire_alloc_array(arena, 32, sizeof *words);
    char *rest = wire_text(arena, text != NULL ? text : "");

    while (words != NULL && rest != NULL && rest[0] != '\0' && n < 32) {
        words[n++] = strsep(&rest, ",");
    }
    *ret_words = words;
    return n;
}

static size_t peers_new(const struct view *view, Jury__V1__PeerStatus ***ret_peers)
{
    struct peer_view *peers = wire_alloc_array(view->arena, LIMIT_NODES, sizeof *peers);
    Jury__V1__PeerStatus **messages = wire_alloc_array(view->arena, LIMIT_NODES, sizeof *messages);
    size_t n = 0;

    *ret_peers = messages;
    if (peers == NULL || messages == NULL || view->engine == NULL) {
        return 0;
    }
    size_t n_peers = engine_view_peers(view->engine, view->now_ns, peers);
    for (size_t i = 0; i < n_peers; i++) {
        struct rpc_peer mesh = {.age_ns = RPC_NEVER_NS, .raft_age_ns = RPC_NEVER_NS};
        Jury__V1__PeerStatus *message =
            WIRE_NEW(view->arena, Jury__V1__PeerStatus, jury__v1__peer_status);

        if (message == NULL) {
            break;
        }
        if (peers[i].is_self) {
            continue;
        }
        view->server->hooks.peer(view->server->hooks.user, peers[i].node_id, &mesh);
        message->node_id = peers[i].node_id;
        message->endpoint = wire_text(view->arena, mesh.endpoint);
        message->age = age_new(view->arena, mesh.age_ns);
        message->hello_age = age_new(view->arena, peers[i].hello_age_ns);
        message->n_received = mesh.n_received;
        message->n_dropped = mesh.n_dropped;
        message->n_stale = peers[i].n_stale;
        message->n_refused = peers[i].n_refused;
        messages[n++] = message;
    }
    return n;
}

int handle_describe_node(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__DescribeNodeResponse *response =
        WIRE_NEW(view->arena, Jury__V1__DescribeNodeResponse, jury__v1__describe_node_response);
    Jury__V1__ProbeEngine *probes =
        WIRE_NEW(view->arena, Jury__V1__ProbeEngine, jury__v1__probe_engine);
    struct rpc_store store = store_of(view);
    struct rpc_node node = node_of(view);
    struct engine_status status = {0};

    (void)request;
    (void)err;
    if (response == NULL || probes == NULL) {
        return 0;
    }
    if (view->engine != NULL) {
        engine_view_status(view->engine, view->now_ns, &status);
    }
    response->node_id = node.node_id;
    response->cluster_id = cluster_id_text(view->arena, &node.cluster_id);
    response->epoch = node.epoch;
    response->public_key = hex(view->arena, node.key.bytes, sizeof node.key.bytes);
    response->version = wire_text(view->arena, JURY_VERSION);
    response->uptime = wire_duration_new(view->arena, node.uptime_ns);
    response->n_targets = status.n_targets;
    probes->name = wire_text(view->arena, node.probe_engine != NULL ? node.probe_engine : "");
    probes->n_capabilities = split(view->arena, node.capabilities, &probes->capabilities);
    probes->n_in_flight = node.n_probes_in_flight;
    response->probe_engine = probes;
    response->n_peers = peers_new(view, &response->peers);
    response->time =
        wire_timestamp_new(view->arena, view->server->hooks.wall_ms(view->server->hooks.user));
    response->store = store_new(view, &store);
    response->n_data_planes =
        data_planes_new(view, node.published_generation, &response->data_planes);
    response->published_generation = node.published_generation;
    response->mesh_address = wire_text(view->arena, node.mesh_address);
    response->raft_address = wire_text(view->arena, node.raft_address);
    *ret_response = &response->base;
    return 0;
}

/* --- counters --- */

#define COUNTERS_MAX 2048

struct counter_list {
    const struct view *view;
    Jury__V1__ListCountersResponse *response;
};

static void add_counter(void *to, const char *name, const char *label, uint64_t value,
                        const char *help)
{
    struct counter_list *list = to;
    Jury__V1__Counter *counter = WIRE_NEW(list->view->arena, Jury__V1__Counter, jury__v1__counter);

    if (counter == NULL || list->response->n_counters == COUNTERS_MAX) {
        return;
    }
    counter->name = wire_text(list->view->arena, name);
    counter->label = wire_text(list->view->arena, label != NULL ? label : "");
    counter->value = value;
    counter->help = wire_text(list->view->arena, help != NULL ? help : "");
    list->response->counters[list->response->n_counters++] = counter;
}

int handle_list_counters(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__ListCountersResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListCountersResponse, jury__v1__list_counters_response);
    struct counter_list list = {.view = view, .response = response};

    (void)request;
    (void)err;
    if (response == NULL) {
        return 0;
    }
    response->counters = wire_alloc_array(view->arena, COUNTERS_MAX, sizeof *response->counters);
    if (response->counters != NULL) {
        view->server->hooks.counters(view->server->hooks.user, add_counter, &list);
    }
    *ret_response = &response->base;
    return 0;
}

int handle_get_version(const struct view *view, const ProtobufCMessage *request,
                       ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__GetVersionResponse *response =
        WIRE_NEW(view->arena, Jury__V1__GetVersionResponse, jury__v1__get_version_response);
    struct rpc_node node = node_of(view);

    (void)request;
    (void)err;
    if (response != NULL) {
        response->version = wire_text(view->arena, JURY_VERSION);
        response->api_version_min = RPC_API_VERSION;
        response->api_version_max = RPC_API_VERSION;
        response->feature_level = node.feature_level;
        response->n_libraries = split(view->arena, node.libraries, &response->libraries);
        *ret_response = &response->base;
    }
    return 0;
}
