/* Parts that several answers about the cluster and its nodes share. */
#include "agent/rpc/handlers_part.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/core/engine_view.h"
#include "common/base/str.h"
#include "common/model/names.h"
#include "common/wire/object.h"

struct rpc_store part_store_of(const struct view *view)
{
    struct rpc_store store = {.leader_age_ns = RPC_NEVER_NS};

    view->server->hooks.store(view->server->hooks.user, &store);
    return store;
}

struct rpc_node part_node_of(const struct view *view)
{
    struct rpc_node node = {0};

    view->server->hooks.node(view->server->hooks.user, &node);
    return node;
}

char *part_hex(struct wire_arena *arena, const uint8_t *data, size_t n_bytes)
{
    char *text = wire_alloc(arena, 2 * n_bytes + 1);

    if (text != NULL) {
        str_hex(data, n_bytes, text);
    }
    return text;
}

/* Empty for an id that is all zero. */
char *part_cluster_id_text(struct wire_arena *arena, const struct cluster_id *id)
{
    static const struct cluster_id none;

    return memcmp(id, &none, sizeof none) == 0 ? wire_text(arena, "")
                                               : part_hex(arena, id->bytes, sizeof id->bytes);
}

Google__Protobuf__Duration *part_age_new(struct wire_arena *arena, uint64_t age_ns)
{
    return age_ns == RPC_NEVER_NS ? NULL : wire_duration_new(arena, age_ns);
}

/* --- parts --- */

#define SECONDS_PER_DAY (24 * 60 * 60)
#define DAY_2000 10957 /* days from 1970 to 2000, where struct cert_end begins */

Jury__V1__Certificate *part_certificate_new(const struct view *view, struct cert_end end)
{
    Jury__V1__Certificate *message =
        WIRE_NEW(view->arena, Jury__V1__Certificate, jury__v1__certificate);
    const int64_t day = DAY_2000 + (int64_t)end.day;
    const int64_t today = view->wall_ms / 1000 / SECONDS_PER_DAY;
    const time_t at = (time_t)(day * SECONDS_PER_DAY);
    struct tm tm;

    if (message != NULL && gmtime_r(&at, &tm) != NULL) {
        message->ends = wire_format(view->arena, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1,
                                    tm.tm_mday);
        message->days_left = (int32_t)(day - today);
        message->is_near = end.is_near;
    }
    return message;
}

Jury__V1__StoreStatus *part_store_new(const struct view *view, const struct rpc_store *store)
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
        message->leader_age = part_age_new(view->arena, store->leader_age_ns);
        message->free_bytes = store->free_bytes;
        message->is_disk_full = store->is_disk_full;
        message->is_disk_slow = store->is_disk_slow;
        message->fsync_max = wire_duration_new(view->arena, store->fsync_max_us * NS_PER_US);
    }
    return message;
}

static const struct catalog_listener *listener_of(const struct view *view, uint64_t id)
{
    for (size_t i = 0; view->catalog != NULL && i < catalog_n_listeners(view->catalog); i++) {
        if (catalog_listener_at(view->catalog, i)->id == id) {
            return catalog_listener_at(view->catalog, i);
        }
    }
    return NULL;
}

/* Those that the catalog still has. */
static void fill_failures(const struct view *view, const struct rpc_data_plane *plane,
                          Jury__V1__DataPlaneStatus *message)
{
    message->failures =
        wire_alloc_array(view->arena, RPC_LISTENER_FAILURES, sizeof *message->failures);
    for (uint32_t i = 0; message->failures != NULL && i < plane->n_failures; i++) {
        const struct catalog_listener *listener = listener_of(view, plane->failures[i].listener_id);
        Jury__V1__ListenerFailure *failure =
            listener == NULL
                ? NULL
                : WIRE_NEW(view->arena, Jury__V1__ListenerFailure, jury__v1__listener_failure);

        if (failure != NULL) {
            failure->listener = wire_text(view->arena, listener->spec.name);
            failure->reason = wire_text(view->arena, plane->failures[i].reason);
            message->failures[message->n_failures++] = failure;
        }
    }
}

size_t part_data_planes_new(const struct view *view, uint64_t published_generation,
                            Jury__V1__DataPlaneStatus ***ret_planes)
{
    size_t n = 0;
    struct rpc_data_plane plane = {0};
    Jury__V1__DataPlaneStatus **planes =
        wire_alloc_array(view->arena, LIMIT_DATA_PLANES, sizeof *planes);

    while (planes != NULL && n < LIMIT_DATA_PLANES &&
           view->server->hooks.data_plane(view->server->hooks.user, n, &plane)) {
        Jury__V1__DataPlaneStatus *message =
            WIRE_NEW(view->arena, Jury__V1__DataPlaneStatus, jury__v1__data_plane_status);

        if (message == NULL) {
            break;
        }
        message->pid = plane.pid;
        message->is_alive = plane.state == RPC_PLANE_ALIVE;
        message->state = (Jury__V1__DataPlaneState)plane.state;
        message->problem = wire_text(view->arena, plane.problem.text);
        message->failures_total = plane.n_failures_all;
        message->age = part_age_new(view->arena, plane.age_ns);
        message->adopted_generation = plane.adopted_generation;
        message->published_generation = published_generation;
        message->flows = plane.flows;
        message->name = wire_text(view->arena, plane.name);
        fill_failures(view, &plane, message);
        planes[n++] = message;
        plane = (struct rpc_data_plane){0};
    }
    *ret_planes = planes;
    return n;
}

/* Kinds of checks from the mask of a vote: bit 1 << enum check_type. */
static size_t kinds_new(const struct view *view, uint32_t mask, Jury__V1__CheckType **ret_kinds)
{
    Jury__V1__CheckType *kinds = wire_alloc_array(view->arena, 32, sizeof *kinds);
    size_t n = 0;

    for (unsigned type = 0; kinds != NULL && type < 32; type++) {
        if ((mask >> type & 1) != 0) {
            kinds[n++] = (Jury__V1__CheckType)type;
        }
    }
    *ret_kinds = kinds;
    return n;
}

size_t part_doubt_causes(const struct view *view, uint32_t causes,
                         Jury__V1__DoubtCause **ret_causes)
{
    Jury__V1__DoubtCause *values = wire_alloc_array(view->arena, 32, sizeof *values);
    size_t n = 0;

    for (unsigned cause = 1; values != NULL && cause < 32; cause++) {
        if ((causes >> cause & 1) != 0) {
            values[n++] = (Jury__V1__DoubtCause)cause;
        }
    }
    *ret_causes = values;
    return n;
}

Jury__V1__SelfDoubt *part_doubt_new(const struct view *view)
{
    Jury__V1__SelfDoubt *message = WIRE_NEW(view->arena, Jury__V1__SelfDoubt, jury__v1__self_doubt);
    struct doubt_view doubt = {0};

    if (message == NULL || view->engine == NULL) {
        return message;
    }
    engine_view_doubt(view->engine, view->now_ns, &doubt);
    message->score = doubt.score;
    message->n_suspect = kinds_new(view, doubt.suspect_mask, &message->suspect);
    message->n_causes = part_doubt_causes(view, doubt.causes, &message->causes);
    message->since =
        doubt.suspect_mask != 0 ? wire_duration_new(view->arena, doubt.since_ns) : NULL;
    message->n_causes_now = part_doubt_causes(view, doubt.causes_now, &message->causes_now);
    message->calm_left =
        doubt.calm_left_ns != 0 ? wire_duration_new(view->arena, doubt.calm_left_ns) : NULL;
    message->n_sentinels = doubt.n_sentinels;
    return message;
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
    message->raft_age = part_age_new(view->arena, mesh.raft_age_ns);
    message->is_restored = mesh.is_restored;
    message->store_is_down = mesh.store_is_down;
    message->feature_level =
        peer != NULL && peer->is_self ? part_node_of(view).feature_level : mesh.feature_level;
    if (peer != NULL) {
        message->is_self = peer->is_self;
        message->is_heard = peer->is_self || peer->vector_age_ns <= fresh_ns;
        message->age = part_age_new(view->arena, peer->vector_age_ns);
        message->counts = peer->counts;
        message->revision = peer->revision;
        message->epoch = peer->epoch;
        message->catalog_differs = peer->catalog_differs;
        message->n_suspect = kinds_new(view, peer->suspect_mask, &message->suspect);
    }
    return message;
}

size_t part_members_new(const struct view *view, uint64_t leader_id,
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

/* --- holds --- */

static Jury__V1__HoldSource source_of(unsigned source)
{
    switch ((enum hold_source)source) {
    case HOLD_BY_CLUSTER:
        return JURY__V1__HOLD_SOURCE__HOLD_SOURCE_CLUSTER;
    case HOLD_BY_GROUP:
        return JURY__V1__HOLD_SOURCE__HOLD_SOURCE_GROUP;
    case HOLD_BY_NODE:
        return JURY__V1__HOLD_SOURCE__HOLD_SOURCE_NODE;
    case HOLD_BY_NODE_GROUP:
        return JURY__V1__HOLD_SOURCE__HOLD_SOURCE_NODE_GROUP;
    }
    return JURY__V1__HOLD_SOURCE__HOLD_SOURCE_UNSPECIFIED;
}

static Jury__V1__Hold *hold_new(const struct view *view, const char *group,
                                const struct hold_view *from)
{
    Jury__V1__Hold *hold = WIRE_NEW(view->arena, Jury__V1__Hold, jury__v1__hold);

    if (hold == NULL) {
        return NULL;
    }
    hold->source = source_of(from->source);
    hold->group = wire_text(view->arena, group);
    hold->actor = wire_text(view->arena, from->by.actor);
    if (from->by.wall_ms != 0) {
        hold->time = wire_timestamp_new(view->arena, from->by.wall_ms);
    }
    return hold;
}

size_t part_holds_new(const struct view *view, size_t n_max, Jury__V1__Hold ***ret_holds)
{
    size_t n_groups = view->catalog == NULL ? 0 : catalog_n_groups(view->catalog);
    size_t n_all = 0;
    Jury__V1__Hold **holds = wire_alloc_array(view->arena, n_max, sizeof *holds);

    *ret_holds = holds;
    for (size_t i = 0; holds != NULL && view->engine != NULL && i <= n_groups; i++) {
        const char *group = i == 0 ? "" : catalog_group_at(view->catalog, i - 1)->spec.name;
        struct hold_view found[2];
        size_t n = engine_view_holds(view->engine, group, found);

        for (size_t j = 0; j < n; j++, n_all++) {
            if (n_all < n_max) {
                holds[n_all] = hold_new(view, group, &found[j]);
            }
        }
    }
    return view->arena->failed ? 0 : n_all;
}

Jury__V1__ProbePath *part_path_new(const struct view *view, const struct own_result *last,
                                   const char *check)
{
    uint32_t us;

    if (!last->has_result) {
        return NULL;
    }
    Jury__V1__ProbePath *path = WIRE_NEW(view->arena, Jury__V1__ProbePath, jury__v1__probe_path);
    if (path != NULL) {
        path->check = wire_text(view->arena, check);
        path->n_probes = path_stats_n_probes(&last->path);
        path->n_lost = path_stats_n_lost(&last->path);
        if (path_stats_time(&last->path, &us)) {
            path->response_time = wire_duration_new(view->arena, us * NS_PER_US);
        }
    }
    return path;
}

/* Returns how many it added: 0 or 1. */
static size_t add_path(const struct view *view, const struct own_result *last, const char *check,
                       Jury__V1__ProbePath **ret_path)
{
    Jury__V1__ProbePath *path = part_path_new(view, last, check);

    if (path == NULL) {
        return 0;
    }
    *ret_path = path;
    return 1;
}

/* A node that rests, or whose probes stand still, knows of a way that was; so does an opinion. */
#define CURRENT_CYCLES 3

static bool is_current(const struct own_result *last, uint32_t timeout_ms, uint32_t interval_ms)
{
    return last->age_ns <= CURRENT_CYCLES * ((uint64_t)timeout_ms + interval_ms) * NS_PER_MS;
}

size_t part_paths_new(const struct view *view, const struct backend_view *backend_view,
                      Jury__V1__ProbePath ***ret_paths)
{
    size_t n_checks = backend_view->n_checks;
    size_t n = 0;

    *ret_paths = wire_alloc_array(view->arena, n_checks == 0 ? 1 : n_checks, sizeof **ret_paths);
    if (*ret_paths == NULL) {
        return 0;
    }
    if (n_checks == 0 &&
        is_current(&backend_view->last, backend_view->timeout_ms, backend_view->interval_ms)) {
        n += add_path(view, &backend_view->last, "", *ret_paths);
    }
    for (size_t i = 0; i < n_checks; i++) {
        const struct check_view *check = &backend_view->checks[i];
        const struct health_check *how = &check->check->check;

        if (is_current(&check->last, how->timeout_ms, how->interval_ms)) {
            n += add_path(view, &check->last, check->check->name, *ret_paths + n);
        }
    }
    return n;
}
