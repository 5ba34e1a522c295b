/* Metrics to raise an alarm by: what `status` finds, groups and their verdicts, the store, votes,
 * peers and data planes, all as the asked node sees them. A family has all its series at all times,
 * 0 when nothing is the matter: an alarm ends by a 0, and not by a series that is gone. */
#include <inttypes.h>
#include <string.h>

#include "nodectl/render_metrics.h"

static size_t prefix_bytes(const ProtobufCEnumDescriptor *words)
{
    const char *end = strrchr(words->values[0].name, '_');

    return end == NULL ? 0 : (size_t)(end - words->values[0].name) + 1;
}

/* --- groups --- */

typedef uint32_t (*group_value)(const Jury__V1__GroupSummary *group);

static uint32_t is_fail_open(const Jury__V1__GroupSummary *group)
{
    return group->state == JURY__V1__GROUP_STATE__GROUP_STATE_FAIL_OPEN;
}

static uint32_t is_closed(const Jury__V1__GroupSummary *group)
{
    return group->state == JURY__V1__GROUP_STATE__GROUP_STATE_CLOSED;
}

static uint32_t n_eligible(const Jury__V1__GroupSummary *group)
{
    return group->n_eligible;
}

static uint32_t n_held(const Jury__V1__GroupSummary *group)
{
    return group->backends == NULL ? 0 : group->backends->held;
}

static uint32_t n_guards(const Jury__V1__GroupSummary *group)
{
    return (uint32_t)group->n_guards;
}

static void put_group_value(FILE *out, const Jury__V1__ListGroupsResponse *groups, const char *name,
                            const char *help, group_value value_of)
{
    metric_head(out, name, "gauge", help);
    for (size_t i = 0; i < groups->n_groups; i++) {
        if (!groups->groups[i]->is_deleted) {
            metric_sample(out, name, &(struct metric_label){"group", groups->groups[i]->name}, 1,
                          value_of(groups->groups[i]));
        }
    }
}

static void put_verdicts(FILE *out, const Jury__V1__ListGroupsResponse *groups)
{
    metric_head(out, "group_backends", "gauge", "backends of a group by this node's verdict");
    for (size_t i = 0; i < groups->n_groups; i++) {
        const Jury__V1__BackendCounts *counts = groups->groups[i]->backends;

        if (counts == NULL || groups->groups[i]->is_deleted) {
            continue;
        }
        const struct {
            const char *word;
            uint32_t n;
        } states[] = {{"initial", counts->initial},
                      {"healthy", counts->healthy},
                      {"unhealthy", counts->unhealthy},
                      {"unavailable", counts->unavailable},
                      {"unused", counts->unused}};
        for (size_t j = 0; j < sizeof states / sizeof states[0]; j++) {
            metric_sample(out, "group_backends",
                          (const struct metric_label[]){{"group", groups->groups[i]->name},
                                                        {"verdict", states[j].word}},
                          2, states[j].n);
        }
    }
}

static uint32_t count_guarded(const Jury__V1__ListGroupsResponse *groups, int guard)
{
    uint32_t n = 0;

    for (size_t i = 0; i < groups->n_groups; i++) {
        for (size_t j = 0; j < groups->groups[i]->n_guards; j++) {
            n += (int)groups->groups[i]->guards[j]->guard == guard;
        }
    }
    return n;
}

static void put_guards(FILE *out, const Jury__V1__ListGroupsResponse *groups)
{
    const ProtobufCEnumDescriptor *words = &jury__v1__guard__descriptor;
    char text[RENDER_TEXT_BYTES];

    metric_head(out, "groups_guarded", "gauge", "groups on which a guard is at work");
    for (unsigned i = 0; i < words->n_values; i++) {
        if (words->values[i].value != 0) {
            const char *word = metric_word(words->values[i].name, prefix_bytes(words), text);

            metric_sample(out, "groups_guarded", &(struct metric_label){"guard", word}, 1,
                          count_guarded(groups, words->values[i].value));
        }
    }
}

void metrics_put_groups(FILE *out, const Jury__V1__ListGroupsResponse *groups)
{
    put_guards(out, groups);
    if (groups->n_groups == 0) {
        return;
    }
    put_verdicts(out, groups);
    put_group_value(out, groups, "group_backends_eligible",
                    "backends of a group that are enabled with a weight above 0", n_eligible);
    put_group_value(out, groups, "group_backends_held",
                    "backends of a group whose verdict stands still, whatever they do", n_held);
    put_group_value(out, groups, "group_fail_open",
                    "1 while a group uses backends that are not healthy, for want of others",
                    is_fail_open);
    put_group_value(out, groups, "group_closed", "1 while a group refuses new flows", is_closed);
    put_group_value(out, groups, "group_guards", "guards at work on a group", n_guards);
}

/* --- what status says --- */

static void put_findings(FILE *out, const Jury__V1__GetStatusResponse *status)
{
    const ProtobufCEnumDescriptor *words = &jury__v1__finding_kind__descriptor;
    char text[RENDER_TEXT_BYTES];

    metric_gauge(out, "healthy", "1 while status says healthy",
                 status->health == JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_HEALTHY);
    metric_head(out, "findings", "gauge", "what status finds wrong, by kind");
    for (unsigned i = 0; i < words->n_values; i++) {
        uint32_t n = 0;

        for (size_t j = 0; j < status->n_findings; j++) {
            n += (int)status->findings[j]->kind == words->values[i].value;
        }
        if (words->values[i].value != 0) {
            const char *word = metric_word(words->values[i].name, prefix_bytes(words), text);

            metric_sample(out, "findings", &(struct metric_label){"kind", word}, 1, n);
        }
    }
    metric_gauge(out, "holds", "holds that are on, of the cluster, this node and of groups",
                 status->holds_total);
    metric_gauge(out, "backends_held_by_hold",
                 "backends that stay in service by a hold, against the votes",
                 status->n_held_by_hold);
}

static void put_store(FILE *out, const Jury__V1__GetStatusResponse *status)
{
    const Jury__V1__StoreStatus *store = status->store;

    metric_gauge(out, "catalog_revision", "revision of the configuration in use",
                 (double)status->revision);
    metric_gauge(out, "catalog_is_last_known_good",
                 "1 while it is that of the last-known-good file", status->is_last_known_good);
    if (store == NULL) {
        return;
    }
    metric_gauge(out, "store_running", "1 while the store runs",
                 store->state == JURY__V1__STORE_STATE__STORE_STATE_RUNNING);
    metric_gauge(out, "store_has_leader", "1 while a leader is known", store->leader_id != 0);
    metric_gauge(out, "store_is_leader", "1 while this node leads",
                 store->role == JURY__V1__STORE_ROLE__STORE_ROLE_LEADER);
    metric_gauge(out, "store_term", "term of Raft", (double)store->term);
    metric_gauge(out, "store_applied_index", "index of the last Raft entry that was applied",
                 (double)store->applied_index);
    metric_gauge(out, "store_last_index", "index of the last Raft entry",
                 (double)store->last_index);
    metric_gauge(out, "store_free_bytes", "bytes left on the file system of the data directory",
                 (double)store->free_bytes);
}

static bool is_suspect(const Jury__V1__CheckType suspect[], size_t n, int type)
{
    for (size_t i = 0; i < n; i++) {
        if ((int)suspect[i] == type) {
            return true;
        }
    }
    return false;
}

static void put_votes(FILE *out, const Jury__V1__GetStatusResponse *status)
{
    const ProtobufCEnumDescriptor *words = &jury__v1__check_type__descriptor;
    const Jury__V1__SelfDoubt *doubt = status->self_doubt;
    char text[RENDER_TEXT_BYTES];

    metric_gauge(out, "observers", "nodes that observe", status->n_observers);
    metric_gauge(out, "observers_fresh", "those of them whose votes are fresh, this one included",
                 status->n_fresh);
    metric_gauge(out, "votes_needed", "votes that must count for a backend to go down",
                 status->quorum);
    metric_gauge(out, "self_doubt_score", "0 to 7; from 4 on a kind of probes is suspect",
                 doubt == NULL ? 0 : doubt->score);
    metric_head(out, "suspect", "gauge", "1 while this node doubts its own probes of that kind");
    for (unsigned i = 0; i < words->n_values; i++) {
        int type = words->values[i].value;

        if (type != 0) {
            const char *word = metric_word(words->values[i].name, prefix_bytes(words), text);

            metric_sample(out, "suspect", &(struct metric_label){"check", word}, 1,
                          doubt != NULL && is_suspect(doubt->suspect, doubt->n_suspect, type));
        }
    }
}

/* --- peers and data planes --- */

static bool is_peer(const Jury__V1__MemberStatus *member)
{
    return member->node != NULL && !member->is_self;
}

static void put_peer(FILE *out, const char *name, const Jury__V1__MemberStatus *member,
                     double value)
{
    char id[24];

    snprintf(id, sizeof id, "%" PRIu64, member->node->node_id);
    metric_sample(out, name, &(struct metric_label){"peer", id}, 1, value);
}

static void put_peers(FILE *out, const Jury__V1__GetStatusResponse *status)
{
    if (status->n_members < 2) {
        return;
    }
    metric_head(out, "peer_heard", "gauge", "1 while votes of a peer come");
    for (size_t i = 0; i < status->n_members; i++) {
        if (is_peer(status->members[i])) {
            put_peer(out, "peer_heard", status->members[i], status->members[i]->is_heard);
        }
    }
    metric_head(out, "peer_suspect", "gauge", "1 while a peer doubts probes of its own");
    for (size_t i = 0; i < status->n_members; i++) {
        if (is_peer(status->members[i])) {
            put_peer(out, "peer_suspect", status->members[i], status->members[i]->n_suspect > 0);
        }
    }
}

static void put_data_planes(FILE *out, const Jury__V1__GetStatusResponse *status)
{
    if (status->n_data_planes == 0) {
        return;
    }
    metric_head(out, "data_plane_alive", "gauge", "1 while the heartbeat of a data plane is fresh");
    for (size_t i = 0; i < status->n_data_planes; i++) {
        metric_sample(out, "data_plane_alive",
                      &(struct metric_label){"name", status->data_planes[i]->name}, 1,
                      status->data_planes[i]->is_alive);
    }
    metric_head(out, "data_plane_flows", "gauge", "flows that a data plane has");
    for (size_t i = 0; i < status->n_data_planes; i++) {
        metric_sample(out, "data_plane_flows",
                      &(struct metric_label){"name", status->data_planes[i]->name}, 1,
                      (double)status->data_planes[i]->flows);
    }
}

void metrics_put_status(FILE *out, const Jury__V1__GetStatusResponse *status)
{
    put_findings(out, status);
    put_store(out, status);
    put_votes(out, status);
    put_peers(out, status);
    put_data_planes(out, status);
}
