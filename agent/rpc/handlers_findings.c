/* What is wrong, a sentence each with what to run next, and the word for it (findings.h). */
#include <inttypes.h>

#include "agent/core/engine_view.h"
#include "agent/core/findings.h"
#include "agent/rpc/handlers_part.h"
#include "agent/rpc/plane_trouble.h"
#include "common/base/units.h"
#include "common/model/doubt.h"
#include "common/wire/object.h"

#define FINDINGS_MAX 512 /* each member, listener and data plane may have some */

struct finding_list {
    const struct view *view;
    struct finding *findings; /* FINDINGS_MAX */
    size_t n;
    size_t n_left_out;
};

#define FINDING_STATIC(name, number, word)                                            \
    static_assert((int)FINDING_##name == JURY__V1__FINDING_KIND__FINDING_KIND_##name, \
                  "numbers of the API");
FINDING_KINDS(FINDING_STATIC)
#undef FINDING_STATIC
static_assert((int)CLUSTER_UNKNOWN == JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_UNSPECIFIED &&
                  (int)CLUSTER_HEALTHY == JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_HEALTHY &&
                  (int)CLUSTER_DEGRADED == JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_DEGRADED &&
                  (int)CLUSTER_UNAVAILABLE == JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_UNAVAILABLE,
              "words of the API");

/* sentence, next: of the arena, or static; NULL when that is used up, and the whole answer with it.
 */
static void add_of_node(struct finding_list *list, enum finding_kind kind, uint64_t node_id,
                        const char *sentence, const char *next)
{
    if (list->n == FINDINGS_MAX - 1) { /* the last place says how many are missing */
        list->n_left_out++;
        return;
    }
    if (sentence != NULL && next != NULL) {
        list->findings[list->n++] = (struct finding){
            .kind = (uint8_t)kind, .node_id = node_id, .sentence = sentence, .next = next};
    }
}

static void add(struct finding_list *list, enum finding_kind kind, const char *sentence,
                const char *next)
{
    add_of_node(list, kind, 0, sentence, next);
}

/* --- the store --- */

static enum finding_kind store_kind(const struct rpc_store *store)
{
    switch ((enum rpc_store_state)store->state) {
    case RPC_STORE_NONE:
    case RPC_STORE_WAITING:
        return FINDING_NOT_FORMED;
    case RPC_STORE_STARTING:
    case RPC_STORE_FAILED:
        return FINDING_STORE_DOWN;
    case RPC_STORE_RUNNING:
        break;
    }
    return FINDING_STORE_TROUBLE;
}

static void find_in_store(struct finding_list *list, const struct rpc_store *store)
{
    struct wire_arena *arena = list->view->arena;
    bool is_running = store->state == RPC_STORE_RUNNING;

    if (!is_running || store->message.text[0] != '\0') {
        add(list, store_kind(store),
            wire_format(arena, "store: %s",
                        store->message.text[0] != '\0' ? store->message.text : "is not running"),
            store->state == RPC_STORE_WAITING ? "nodectl cluster init --help" : "nodectl ready");
    }
    if (is_running && store->leader_id == 0) {
        add(list, FINDING_NO_LEADER, "no leader: the catalog cannot be changed",
            "nodectl cluster members --stale");
    }
    if (store->is_disk_full) {
        add(list, FINDING_DISK,
            wire_format(arena, "%" PRIu64 " MB are left on this node's disk: it refuses writes",
                        store->free_bytes / 1000000),
            "");
    }
    if (store->is_disk_slow) {
        add(list, FINDING_DISK, "the disk of this node makes no progress", "");
    }
}

/* --- members --- */

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

static void find_in_member(struct finding_list *list, const Jury__V1__MemberStatus *member)
{
    struct wire_arena *arena = list->view->arena;
    uint64_t id = member->node->node_id;

    if (member->node->role != JURY__V1__RAFT_ROLE__RAFT_ROLE_SPARE && !member->is_heard) {
        add_of_node(list, FINDING_MEMBER_SILENT, id, silent_sentence(list->view, member),
                    "nodectl node describe");
    }
    if (member->is_heard && member->store_is_down) {
        add_of_node(list, FINDING_MEMBER_STORE_DOWN, id,
                    wire_format(arena,
                                "the store of node %" PRIu64 " does not run: it takes no part in "
                                "Raft; nodectl ready says why when asked there",
                                id),
                    "nodectl cluster members");
    }
    if (member->is_restored) {
        add_of_node(
            list, FINDING_MEMBER_RESTORED, id,
            wire_format(arena,
                        "the data directory of node %" PRIu64 " was removed or restored "
                        "from an older copy: it takes no part in Raft; remove the node and let "
                        "it join with an empty directory under a new id",
                        id),
            "nodectl cluster members");
    }
    if (member->catalog_differs) {
        add_of_node(list, FINDING_CATALOG_DIFFERS, id,
                    wire_format(arena,
                                "node %" PRIu64 " has another catalog at the same revision: its "
                                "votes are refused",
                                id),
                    "nodectl cluster members");
    }
}

/* Versions that differ are no fault, but they keep the newer one from being used. */
static void find_level(struct finding_list *list, const Jury__V1__MemberStatus *member,
                       uint32_t own_level, const Jury__V1__GetStatusResponse *response)
{
    struct wire_arena *arena = list->view->arena;
    uint64_t id = member->node->node_id;
    uint32_t level = member->feature_level;

    if (level == 0 && !member->is_self && response->feature_level < own_level) {
        add_of_node(list, FINDING_VERSION, id,
                    wire_format(arena,
                                "node %" PRIu64 " has not been heard since node %" PRIu64
                                " started: what needs feature level %u is refused until it is",
                                id, response->node_id, own_level),
                    "nodectl node describe");
    }
    if (level != 0 && level != own_level) {
        add_of_node(list, FINDING_VERSION, id,
                    wire_format(arena,
                                "node %" PRIu64 " runs feature level %u and node %" PRIu64
                                " runs %u: what needs level %u is refused until every node has it",
                                id, level, response->node_id, own_level,
                                level > own_level ? level : own_level),
                    "nodectl version");
    }
}

static void find_in_members(struct finding_list *list, uint32_t own_level,
                            const Jury__V1__GetStatusResponse *response)
{
    for (size_t i = 0; i < response->n_members; i++) {
        const Jury__V1__MemberStatus *member = response->members[i];

        if (member->node == NULL) {
            continue;
        }
        if (!member->is_self) {
            find_in_member(list, member);
        }
        find_level(list, member, own_level, response);
    }
}

/* --- the table and its readers --- */

static void find_in_plane(struct finding_list *list, const Jury__V1__DataPlaneStatus *plane)
{
    struct wire_arena *arena = list->view->arena;

    const Google__Protobuf__Duration *age = plane->age;
    const struct plane_look look = {
        .name = plane->name,
        .state = (uint8_t)plane->state,
        .age_ns = age == NULL ? RPC_NEVER_NS
                              : (uint64_t)age->seconds * NS_PER_SECOND + (uint64_t)age->nanos,
        .problem = plane->problem,
    };
    struct errmsg text;

    if (plane_trouble(&look, &text)) {
        add(list, FINDING_DATA_PLANE, wire_text(arena, text.text), "nodectl ready");
    }
    for (size_t i = 0; i < plane->n_failures; i++) {
        add(list, FINDING_LISTENER,
            wire_format(arena, "data plane %s cannot open listener \"%s\": %s", plane->name,
                        plane->failures[i]->listener, plane->failures[i]->reason),
            "nodectl listener list");
    }
    if (plane->failures_total > RPC_LISTENER_FAILURES) {
        add(list, FINDING_LISTENER,
            wire_format(arena, "and %u more listeners that data plane %s cannot open",
                        plane->failures_total - RPC_LISTENER_FAILURES, plane->name),
            "");
    }
}

static void find_in_table(struct finding_list *list, const struct rpc_node *node,
                          const Jury__V1__GetStatusResponse *response)
{
    if (node->table_problem.text[0] != '\0') {
        add(list, FINDING_TABLE, wire_text(list->view->arena, node->table_problem.text), "");
    }
    if (response->is_last_known_good) {
        add(list, FINDING_LAST_KNOWN_GOOD,
            "this node serves from its last-known-good file, not the store", "nodectl ready");
    }
    for (size_t i = 0; i < response->n_data_planes; i++) {
        find_in_plane(list, response->data_planes[i]);
    }
}

/* --- groups --- */

/* "group web: TEXT", "group web and 2 more: TEXT" */
static void add_groups(struct finding_list *list, enum finding_kind kind,
                       const struct finding_group *group, const char *text)
{
    struct wire_arena *arena = list->view->arena;
    const char *next = wire_format(arena, "nodectl group describe %s", group->name);

    if (group->n_groups > 1) {
        add(list, kind,
            wire_format(arena, "group %s and %u more: %s", group->name, group->n_groups - 1, text),
            next);
    } else if (group->n_groups == 1) {
        add(list, kind, wire_format(arena, "group %s: %s", group->name, text), next);
    }
}

static const char *too_few(const struct finding_list *list, const struct finding_group *group)
{
    if (group->n_groups > 1) {
        return "too few of their backends can be used";
    }
    if (group->n_eligible == 0) {
        return "no backend is enabled with a weight above 0";
    }
    return wire_format(list->view->arena, "%u of %u backends are healthy", group->n_healthy,
                       group->n_eligible);
}

static void find_in_groups(struct finding_list *list, const struct engine_findings *found)
{
    struct wire_arena *arena = list->view->arena;
    const struct finding_group *open = &found->fail_open;
    const struct finding_group *closed = &found->closed;

    add_groups(
        list, FINDING_GROUP_FAIL_OPEN, open,
        wire_format(arena, "fail-open, %s, and all of them get new flows", too_few(list, open)));
    add_groups(list, FINDING_GROUP_CLOSED, closed,
               wire_format(arena, "closed to new flows, %s", too_few(list, closed)));
}

/* Groups that have no backends are closed, and that is of no account unless flows come to them. */
static void find_empty_groups(struct finding_list *list, const struct catalog *catalog)
{
    const struct catalog_listener *first = NULL;
    size_t n = 0;

    for (size_t i = 0; catalog != NULL && i < catalog_n_listeners(catalog); i++) {
        const struct catalog_listener *listener = catalog_listener_at(catalog, i);
        const struct catalog_group *group = catalog_group_find(catalog, listener->spec.group);

        if (group != NULL && group->n_backends == 0) {
            first = n++ == 0 ? listener : first;
        }
    }
    if (n == 0) {
        return;
    }
    struct wire_arena *arena = list->view->arena;
    const char *more = n == 1 ? "" : wire_format(arena, ", and so do %zu more", n - 1);
    add(list, FINDING_GROUP_EMPTY,
        wire_format(arena, "group %s has no backends: listener %s refuses new flows%s",
                    first->spec.group, first->spec.name, more != NULL ? more : ""),
        wire_format(arena, "nodectl group describe %s", first->spec.group));
}

static void find_guard(struct finding_list *list, unsigned guard, enum finding_kind kind,
                       const char *text)
{
    struct finding_group group = {0};

    group.n_groups = engine_n_guarded(list->view->engine, guard, group.name);
    add_groups(list, kind, &group, text);
}

static void find_hold(struct finding_list *list)
{
    char text[HOLD_TEXT_BYTES];

    engine_say_holds(list->view->engine, text);
    if (text[0] != '\0') {
        add(list, FINDING_HOLD,
            wire_format(list->view->arena, "%s: no backend is taken out there", text),
            "nodectl hold show");
    }
}

/* --- votes --- */

/* "web/10.0.0.1:80"; to be run also from a shell, which knows brackets as its own. */
static char *backend_text(struct wire_arena *arena, const struct finding_backend *backend,
                          bool for_shell)
{
    char at[ENDPOINT_TEXT_BYTES];
    const char *quote = for_shell && backend->at.addr.family == ADDR_IPV6 ? "'" : "";

    return wire_format(arena, "%s%s/%s%s", quote, backend->group, endpoint_format(&backend->at, at),
                       quote);
}

static void find_missing_votes(struct finding_list *list, const struct engine_findings *found)
{
    struct wire_arena *arena = list->view->arena;

    if (found->n_few_votes > 0) {
        add(list, FINDING_FEW_VOTES,
            wire_format(arena,
                        "%u of %u backends cannot be taken out: too few votes count (%s has %u, "
                        "and it takes %u)",
                        found->n_few_votes, found->n_probed,
                        backend_text(arena, &found->few_votes, false), found->n_counted,
                        found->quorum),
            wire_format(arena, "nodectl why %s", backend_text(arena, &found->few_votes, true)));
    }
    if (found->n_blind > 0) {
        add(list, FINDING_NODE_BLIND,
            wire_format(arena, "this node has no vote on %u of %u backends: %s, %s (%s)",
                        found->n_blind, found->n_probed, probe_reason_word(found->blind_reason),
                        probe_reason_sentence(found->blind_reason),
                        backend_text(arena, &found->blind, false)),
            wire_format(arena, "nodectl probe %s", backend_text(arena, &found->blind, true)));
    }
}

static void find_blind_peers(struct finding_list *list, const struct engine_findings *found)
{
    struct wire_arena *arena = list->view->arena;

    for (uint64_t left = found->blind_peers; left != 0; left &= left - 1) {
        uint64_t id = engine_member_id(list->view->engine, (unsigned)__builtin_ctzll(left));

        add_of_node(list, FINDING_PEER_BLIND, id,
                    wire_format(arena,
                                "node %" PRIu64 " is heard, and has no vote on any of %u backends",
                                id, found->n_probed),
                    wire_format(arena, "nodectl probe %s --from %" PRIu64,
                                backend_text(arena, &found->voted, true), id));
    }
}

static void find_doubts(struct finding_list *list)
{
    struct wire_arena *arena = list->view->arena;
    struct peer_view *peers = wire_alloc_array(arena, LIMIT_NODES, sizeof *peers);
    size_t n = peers == NULL ? 0 : engine_view_peers(list->view->engine, list->view->now_ns, peers);
    struct doubt_view doubt = {0};
    char text[DOUBT_SENTENCE_BYTES];

    engine_view_doubt(list->view->engine, list->view->now_ns, &doubt);
    if (doubt.suspect_mask != 0) {
        add(list, FINDING_NODE_DOUBTS,
            wire_text(arena, doubt_sentence_format(doubt.suspect_mask, doubt.causes, text)),
            "nodectl node describe");
    }
    for (size_t i = 0; i < n; i++) {
        if (!peers[i].is_self && peers[i].is_observer && peers[i].suspect_mask != 0) {
            add_of_node(list, FINDING_PEER_DOUBTS, peers[i].node_id,
                        wire_format(arena,
                                    "node %" PRIu64 " doubts its own %s probes: their votes count "
                                    "nowhere",
                                    peers[i].node_id,
                                    doubt_kinds_format(peers[i].suspect_mask, text)),
                        "nodectl cluster members");
        }
    }
}

static void find_in_engine(struct finding_list *list)
{
    struct engine_findings *found = wire_alloc(list->view->arena, sizeof *found);

    if (list->view->engine == NULL || found == NULL) {
        return;
    }
    engine_view_findings(list->view->engine, list->view->now_ns, found);
    find_in_groups(list, found);
    find_missing_votes(list, found);
    find_blind_peers(list, found);
    find_doubts(list);
    find_hold(list);
    find_guard(list, GUARD_CORRELATED, FINDING_ALARM,
               "ALARM: many backends went bad at once; look for one cause");
    find_guard(list, GUARD_SHADOW, FINDING_SHADOW,
               "its changed check is kept in shadow: it would take out too many, and takes out "
               "none until that is accepted or reverted");
}

/* --- the answer --- */

static void tell_left_out(struct finding_list *list)
{
    if (list->n_left_out > 0) {
        list->findings[list->n++] = (struct finding){
            .kind = FINDING_MORE,
            .sentence = wire_format(list->view->arena, "and %zu more", list->n_left_out),
            .next = ""};
    }
}

static void put(const struct finding_list *list, Jury__V1__GetStatusResponse *response)
{
    struct wire_arena *arena = list->view->arena;

    if (list->n == 0) {
        return;
    }
    response->problems = wire_alloc_array(arena, list->n, sizeof *response->problems);
    response->findings = wire_alloc_array(arena, list->n, sizeof *response->findings);
    for (size_t i = 0; i < list->n && !arena->failed; i++) {
        Jury__V1__Finding *finding = WIRE_NEW(arena, Jury__V1__Finding, jury__v1__finding);

        if (finding == NULL) {
            return;
        }
        finding->kind = (Jury__V1__FindingKind)list->findings[i].kind;
        finding->sentence = wire_text(arena, list->findings[i].sentence);
        finding->next = wire_text(arena, list->findings[i].next);
        finding->node_id = list->findings[i].node_id;
        response->findings[response->n_findings++] = finding;
        response->problems[response->n_problems++] = finding->sentence;
    }
}

void part_find(const struct view *view, const struct rpc_store *store, const struct rpc_node *node,
               Jury__V1__GetStatusResponse *response)
{
    struct finding_list list = {.view = view};

    list.findings = wire_alloc_array(view->arena, FINDINGS_MAX, sizeof *list.findings);
    if (list.findings == NULL) {
        return;
    }
    find_in_store(&list, store);
    find_in_members(&list, node->feature_level, response);
    find_in_engine(&list);
    find_empty_groups(&list, view->catalog);
    find_in_table(&list, node, response);
    tell_left_out(&list);
    findings_sort(list.findings, list.n);
    put(&list, response);
    response->health = (Jury__V1__ClusterHealth)findings_word(list.findings, list.n);
}
