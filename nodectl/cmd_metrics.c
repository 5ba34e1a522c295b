/* node metrics: what the asked node counts and measures, for Prometheus. */
#include "common/wire/json.h"
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"

/* The answers that they are made of. */
struct answers {
    struct rpc_result counters, status;
    struct ctl_list backend_list, group_list;
    const ProtobufCMessage *backends, *groups; /* of the lists, or empty ones */
};

/* A node without a catalog has neither, and its status is the more to be told. */
static int ask_lists(struct ctl *ctl, struct answers *answers)
{
    static const Jury__V1__ListBackendsResponse no_backends =
        JURY__V1__LIST_BACKENDS_RESPONSE__INIT;
    static const Jury__V1__ListGroupsResponse no_groups = JURY__V1__LIST_GROUPS_RESPONSE__INIT;
    const Jury__V1__GetStatusResponse *status = (const void *)answers->status.response;
    Jury__V1__ListBackendsRequest backends;
    Jury__V1__ListGroupsRequest groups;

    answers->backends = &no_backends.base;
    answers->groups = &no_groups.base;
    if (status->revision == 0) {
        return 0;
    }
    jury__v1__list_backends_request__init(&backends);
    jury__v1__list_groups_request__init(&groups);
    int rc = ctl_call_list(ctl, "jury.v1.BackendService/ListBackends", &backends.base,
                           &answers->backend_list);
    if (rc == 0) {
        rc = ctl_call_list(ctl, "jury.v1.GroupService/ListGroups", &groups.base,
                           &answers->group_list);
    }
    if (rc == 0) {
        answers->backends = answers->backend_list.whole;
        answers->groups = answers->group_list.whole;
    }
    return rc;
}

static int ask(struct ctl *ctl, struct answers *answers)
{
    Jury__V1__ListCountersRequest counters;
    Jury__V1__GetStatusRequest status;

    jury__v1__list_counters_request__init(&counters);
    jury__v1__get_status_request__init(&status);
    ctl->is_stale = true; /* the asked node's own view: needs no leader */
    int rc = ctl_call(ctl, "jury.v1.NodeService/ListCounters", &counters.base, &answers->counters);
    if (rc == 0) {
        rc = ctl_call(ctl, "jury.v1.ClusterService/GetStatus", &status.base, &answers->status);
    }
    return rc != 0 ? rc : ask_lists(ctl, answers);
}

/* The lists together, and beside them the status. */
static int print_all(struct ctl *ctl, const struct answers *answers)
{
    json_t *all = json_object();

    /* Each takes its argument in every case. */
    int n_failed = json_object_update_new(all, wire_json_new(answers->counters.response)) != 0;
    n_failed += json_object_update_new(all, wire_json_new(answers->backends)) != 0;
    n_failed += json_object_update_new(all, wire_json_new(answers->groups)) != 0;
    n_failed += json_object_set_new(all, "status", wire_json_new(answers->status.response)) != 0;
    if (n_failed > 0) {
        json_decref(all);
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    return ctl_print_json(ctl, all);
}

int cmd_node_metrics(struct ctl *ctl)
{
    struct answers answers = {0};
    int rc = ask(ctl, &answers);

    if (rc == 0 && ctl_is_json(ctl)) {
        rc = print_all(ctl, &answers);
    } else if (rc == 0) {
        render_metrics(ctl, &(struct metrics){
                                .counters = (const void *)answers.counters.response,
                                .backends = (const void *)answers.backends,
                                .groups = (const void *)answers.groups,
                                .status = (const void *)answers.status.response,
                            });
    }
    ctl_list_close(&answers.group_list);
    ctl_list_close(&answers.backend_list);
    rpc_result_close(&answers.status);
    rpc_result_close(&answers.counters);
    return rc;
}
