/* The cluster and this node: members, readiness, counters, version, keys, settings. */
#include <string.h>

#include "agent/core/engine_view.h"
#include "agent/rpc/handlers_part.h"
#include "common/wire/object.h"

#define READY_CHECKS_MAX 32

/* --- members, settings, keys --- */

int handle_list_members(const struct view *view, const ProtobufCMessage *request,
                        ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__ListMembersResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListMembersResponse, jury__v1__list_members_response);

    (void)request;
    (void)err;
    if (response != NULL) {
        struct rpc_store store = part_store_of(view);
        struct cluster_id id = catalog_cluster_id(view->catalog);

        response->cluster_id = part_cluster_id_text(view->arena, &id);
        response->n_members = part_members_new(view, store.leader_id, &response->members);
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
        message->message = wire_text(view->arena, check.message.text);
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

static void add_unbuilt(const struct view *view, uint8_t unbuilt, Jury__V1__PeerStatus *message)
{
    message->unbuilt = wire_alloc_array(view->arena, 2, sizeof *message->unbuilt);
    if (message->unbuilt != NULL && (unbuilt & HELLO_NO_TLS) != 0) {
        message->unbuilt[message->n_unbuilt++] = JURY__V1__CHECK_TYPE__CHECK_TYPE_TLS;
    }
    if (message->unbuilt != NULL && (unbuilt & HELLO_NO_GRPC) != 0) {
        message->unbuilt[message->n_unbuilt++] = JURY__V1__CHECK_TYPE__CHECK_TYPE_GRPC;
    }
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
        message->age = part_age_new(view->arena, mesh.age_ns);
        message->hello_age = part_age_new(view->arena, peers[i].hello_age_ns);
        message->n_received = mesh.n_received;
        message->n_dropped = mesh.n_dropped;
        message->n_stale = peers[i].n_stale;
        message->n_refused = peers[i].n_refused;
        message->is_restored = mesh.is_restored;
        message->lacks_shared_space = mesh.lacks_shared_space;
        add_unbuilt(view, mesh.unbuilt, message);
        messages[n++] = message;
    }
    return n;
}

static void add_probe_sources(const struct view *view, const struct rpc_probe_sources *known,
                              Jury__V1__DescribeNodeResponse *response)
{
    char text[ADDR_TEXT_BYTES];

    response->probe_sources =
        wire_alloc_array(view->arena, RPC_PROBE_SOURCES, sizeof *response->probe_sources);
    for (uint32_t i = 0; response->probe_sources != NULL && i < known->n_sources; i++) {
        Jury__V1__ProbeSource *source =
            WIRE_NEW(view->arena, Jury__V1__ProbeSource, jury__v1__probe_source);

        if (source == NULL) {
            return;
        }
        source->address = wire_text(view->arena, addr_format(&known->sources[i].addr, text));
        source->n_targets = known->sources[i].n_targets;
        source->n_shared_space_targets = known->sources[i].n_shared_space;
        response->probe_sources[response->n_probe_sources++] = source;
    }
    response->n_targets_without_source = known->n_without;
    response->without_source_reason = (Jury__V1__ProbeReason)known->reason;
}

static Jury__V1__ProbeBudget *budget_new(const struct view *view,
                                         const struct rpc_probe_budget *budget)
{
    char text[ADDR_TEXT_BYTES];
    Jury__V1__ProbeBudget *message =
        WIRE_NEW(view->arena, Jury__V1__ProbeBudget, jury__v1__probe_budget);

    if (message == NULL || budget->per_node == 0) {
        return NULL;
    }
    message->per_second = budget->per_node;
    message->per_second_to_address = budget->per_address;
    message->used = budget->used;
    message->demand = budget->demand;
    message->top_demand = budget->top_demand;
    message->n_observers = catalog_n_observers(view->catalog);
    if (budget->top_address.family != ADDR_NONE) {
        message->top_address = wire_text(view->arena, addr_format(&budget->top_address, text));
    }
    message->is_pressed = budget->is_pressed;
    message->n_waiting = budget->n_waiting;
    message->n_delayed = budget->n_delayed;
    message->delay = wire_duration_new(view->arena, budget->delay_ns);
    message->delay_max = wire_duration_new(view->arena, budget->delay_max_ns);
    return message;
}

int handle_describe_node(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__DescribeNodeResponse *response =
        WIRE_NEW(view->arena, Jury__V1__DescribeNodeResponse, jury__v1__describe_node_response);
    Jury__V1__ProbeEngine *probes =
        WIRE_NEW(view->arena, Jury__V1__ProbeEngine, jury__v1__probe_engine);
    struct rpc_store store = part_store_of(view);
    struct rpc_node node = part_node_of(view);
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
    response->cluster_id = part_cluster_id_text(view->arena, &node.cluster_id);
    response->epoch = node.epoch;
    response->public_key = part_hex(view->arena, node.key.bytes, sizeof node.key.bytes);
    response->version = wire_text(view->arena, JURY_VERSION);
    response->uptime = wire_duration_new(view->arena, node.uptime_ns);
    response->n_targets = status.n_targets;
    probes->name = wire_text(view->arena, node.probe_engine != NULL ? node.probe_engine : "");
    probes->n_capabilities = split(view->arena, node.capabilities, &probes->capabilities);
    probes->n_in_flight = node.n_probes_in_flight;
    probes->half_open_problem =
        wire_text(view->arena, node.half_open_problem != NULL ? node.half_open_problem : "");
    probes->half_open_send =
        wire_text(view->arena, node.half_open_send != NULL ? node.half_open_send : "");
    probes->half_open_send_reason = wire_text(
        view->arena, node.half_open_send_reason != NULL ? node.half_open_send_reason : "");
    probes->half_open_receive =
        wire_text(view->arena, node.half_open_receive != NULL ? node.half_open_receive : "");
    probes->half_open_receive_reason = wire_text(
        view->arena, node.half_open_receive_reason != NULL ? node.half_open_receive_reason : "");
    response->probe_engine = probes;
    response->probe_budget = budget_new(view, &node.probe_budget);
    response->n_peers = peers_new(view, &response->peers);
    response->time = wire_timestamp_new(view->arena, view->wall_ms);
    response->store = part_store_new(view, &store);
    response->n_data_planes =
        part_data_planes_new(view, node.published_generation, &response->data_planes);
    response->published_generation = node.published_generation;
    response->mesh_address = wire_text(view->arena, node.mesh_address);
    response->raft_address = wire_text(view->arena, node.raft_address);
    response->self_doubt = part_doubt_new(view);
    add_probe_sources(view, &node.probe_sources, response);
    response->lacks_shared_space = node.lacks_shared_space;
    *ret_response = &response->base;
    return 0;
}

/* --- counters --- */

#define COUNTERS_MAX 2048

struct counter_list {
    const struct view *view;
    Jury__V1__ListCountersResponse *response;
};

static void add_counter(void *to, const struct counter_value *value)
{
    struct counter_list *list = to;
    Jury__V1__Counter *counter = WIRE_NEW(list->view->arena, Jury__V1__Counter, jury__v1__counter);

    if (counter == NULL || list->response->n_counters == COUNTERS_MAX) {
        return;
    }
    counter->name = wire_text(list->view->arena, value->name);
    counter->label = wire_text(list->view->arena, value->label != NULL ? value->label : "");
    counter->value = value->value;
    counter->help = wire_text(list->view->arena, value->help != NULL ? value->help : "");
    counter->is_gauge = value->is_gauge;
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
    struct rpc_node node = part_node_of(view);

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
