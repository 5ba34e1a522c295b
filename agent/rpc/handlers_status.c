/* How the cluster is, seen from this node. */
#include <inttypes.h>

#include "agent/core/engine_view.h"
#include "agent/rpc/handlers_part.h"
#include "common/wire/object.h"

#define HOLDS_MAX 16

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
    groups->warming = status.n_warming;
    backends->total = status.n_backends;
    backends->initial = status.n_by_state[HEALTH_INITIAL];
    backends->healthy = status.n_by_state[HEALTH_HEALTHY];
    backends->unhealthy = status.n_by_state[HEALTH_UNHEALTHY];
    backends->unavailable = status.n_by_state[HEALTH_UNAVAILABLE];
    backends->unused = status.n_by_state[HEALTH_UNUSED];
    backends->unreachable = status.n_unreachable;
    backends->held = status.n_held;
    backends->removing = status.n_removing;
    backends->draining = status.n_draining;
    response->groups = groups;
    response->backends = backends;
    response->n_observers = status.n_observers;
    response->quorum = status.quorum;
    response->n_fresh = status.n_fresh;
}

static void fill_holds(const struct view *view, Jury__V1__GetStatusResponse *response)
{
    size_t n_all = part_holds_new(view, HOLDS_MAX, &response->holds);

    response->holds_total = (uint32_t)n_all;
    response->n_holds = n_all < HOLDS_MAX ? n_all : HOLDS_MAX;
    response->n_held_by_hold = n_all == 0 ? 0 : engine_n_held_by_hold(view->engine);
}

int handle_get_status(const struct view *view, const ProtobufCMessage *request,
                      ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__GetStatusResponse *response =
        WIRE_NEW(view->arena, Jury__V1__GetStatusResponse, jury__v1__get_status_response);
    struct rpc_store store = part_store_of(view);
    struct rpc_node node = part_node_of(view);

    (void)request;
    (void)err;
    if (response == NULL) {
        return 0;
    }
    response->cluster_id = part_cluster_id_text(view->arena, &node.cluster_id);
    response->node_id = node.node_id;
    response->state_hash = wire_text(view->arena, "");
    if (view->catalog != NULL) {
        struct hash128 hash = catalog_state_hash(view->catalog);

        response->revision = catalog_revision(view->catalog);
        response->feature_level = catalog_feature_level(view->catalog);
        response->state_hash =
            wire_format(view->arena, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
    }
    response->store = part_store_new(view, &store);
    response->n_members = part_members_new(view, store.leader_id, &response->members);
    response->n_data_planes =
        part_data_planes_new(view, node.published_generation, &response->data_planes);
    response->is_last_known_good = node.is_last_known_good;
    fill_counts(view, response);
    fill_holds(view, response);
    response->self_doubt = part_doubt_new(view);
    part_find(view, &store, &node, response);
    *ret_response = &response->base;
    return 0;
}
