/* How the cluster is, seen from this node. */
#include <inttypes.h>

#include "agent/core/engine_view.h"
#include "agent/rpc/handlers_part.h"
#include "common/base/units.h"
#include "common/model/doubt.h"
#include "common/wire/object.h"

#define PROBLEMS_MAX 96 /* the failures of one data plane, and what else there may be */
#define HOLDS_MAX 16

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

static char *silent_sentence(const struct view *view, const Jury__V1__MemberStatus *member)
{
    char age[32];

    if (member->age == NULL) {
        return wire_format(view->arena, "node %" PRIu64 " was never heard here",
                           member->node->node_id);
    }
    return wire_format(
        view->arena, "node %" PRIu64 " was last heard %s ago", member->node->node_id,
        units_format_span_us((uint64_t)member->age->seconds * 1000000, age, sizeof age));
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
            add_problem(view, response, silent_sentence(view, member));
        }
        if (member->is_restored) {
            add_problem(
                view, response,
                wire_format(view->arena,
                            "the data directory of node %" PRIu64 " was removed or restored "
                            "from an older copy: it takes no part in Raft; remove the node and let "
                            "it join with an empty directory under a new id",
                            member->node->node_id));
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

/* Versions that differ are no fault, but they keep the newer one from being used. */
static void add_level_problems(const struct view *view, uint32_t own_level,
                               Jury__V1__GetStatusResponse *response)
{
    for (size_t i = 0; i < response->n_members; i++) {
        const Jury__V1__MemberStatus *member = response->members[i];
        uint32_t level = member->feature_level;

        if (member->node != NULL && level == 0 && !member->is_self &&
            response->feature_level < own_level) {
            add_problem(view, response,
                        wire_format(view->arena,
                                    "node %" PRIu64 " has not been heard since node %" PRIu64
                                    " started: what needs feature level %u is refused until it is",
                                    member->node->node_id, response->node_id, own_level));
        }
        if (member->node == NULL || level == 0 || level == own_level) {
            continue;
        }
        add_problem(view, response,
                    wire_format(view->arena,
                                "node %" PRIu64 " runs feature level %u and node %" PRIu64
                                " runs %u: what needs level %u is refused until every node has it",
                                member->node->node_id, level, response->node_id, own_level,
                                level > own_level ? level : own_level));
    }
}

static void add_plane_problems(const struct view *view, const Jury__V1__DataPlaneStatus *plane,
                               Jury__V1__GetStatusResponse *response)
{
    if (plane->problem[0] != '\0') {
        add_problem(view, response, wire_text(view->arena, plane->problem));
    } else if (!plane->is_alive) {
        add_problem(view, response,
                    wire_format(view->arena, "data plane %s is absent", plane->name));
    }
    for (size_t i = 0; i < plane->n_failures; i++) {
        add_problem(view, response,
                    wire_format(view->arena, "data plane %s cannot open listener \"%s\": %s",
                                plane->name, plane->failures[i]->listener,
                                plane->failures[i]->reason));
    }
    if (plane->failures_total > RPC_LISTENER_FAILURES) {
        add_problem(view, response,
                    wire_format(view->arena, "and %u more listeners that data plane %s cannot open",
                                plane->failures_total - RPC_LISTENER_FAILURES, plane->name));
    }
}

static void add_other_problems(const struct view *view, const struct rpc_node *node,
                               Jury__V1__GetStatusResponse *response)
{
    if (node->table_problem.text[0] != '\0') {
        add_problem(view, response, wire_text(view->arena, node->table_problem.text));
    }
    if (response->is_last_known_good) {
        add_problem(view, response,
                    wire_text(view->arena,
                              "this node serves from its last-known-good file, not the store"));
    }
    for (size_t i = 0; i < response->n_data_planes; i++) {
        add_plane_problems(view, response->data_planes[i], response);
    }
}

static void add_doubt(const struct view *view, Jury__V1__GetStatusResponse *response)
{
    struct doubt_view doubt = {0};
    char text[DOUBT_SENTENCE_BYTES];

    if (view->engine != NULL) {
        engine_view_doubt(view->engine, view->now_ns, &doubt);
    }
    if (doubt.suspect_mask != 0) {
        add_problem(
            view, response,
            wire_text(view->arena, doubt_sentence_format(doubt.suspect_mask, doubt.causes, text)));
    }
}

static void add_guard(const struct view *view, unsigned guard, const char *text,
                      Jury__V1__GetStatusResponse *response)
{
    char name[LIMIT_NAME_BYTES + 1];
    uint32_t n = view->engine == NULL ? 0 : engine_n_guarded(view->engine, guard, name);

    if (n > 1) {
        add_problem(view, response,
                    wire_format(view->arena, "group %s and %u more: %s", name, n - 1, text));
    } else if (n == 1) {
        add_problem(view, response, wire_format(view->arena, "group %s: %s", name, text));
    }
}

static void add_guards(const struct view *view, Jury__V1__GetStatusResponse *response)
{
    add_guard(view, GUARD_CORRELATED, "ALARM: many backends went bad at once; look for one cause",
              response);
    add_guard(view, GUARD_SHADOW,
              "the shadow of its changed check is stopped: it would take out too many", response);
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
    response->problems = wire_alloc_array(view->arena, PROBLEMS_MAX, sizeof *response->problems);
    add_store_problems(view, &store, response);
    add_member_problems(view, response);
    add_level_problems(view, node.feature_level, response);
    add_other_problems(view, &node, response);
    add_doubt(view, response);
    add_guards(view, response);
    response->health = health_of(&store, response->n_problems);
    *ret_response = &response->base;
    return 0;
}
