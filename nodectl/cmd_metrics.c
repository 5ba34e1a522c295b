/* node metrics: what the asked node counts and measures, for Prometheus. */
#include "common/wire/json.h"
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/verdict.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"

/* The answers that they are made of. */
struct answers {
    struct rpc_result counters, status;
    struct ctl_list verdicts, groups;
};

static int ask(struct ctl *ctl, struct answers *answers)
{
    Jury__V1__ListCountersRequest counters;
    Jury__V1__GetStatusRequest status;
    Jury__V1__ListVerdictsRequest verdicts;
    Jury__V1__ListGroupsRequest groups;

    jury__v1__list_counters_request__init(&counters);
    jury__v1__get_status_request__init(&status);
    jury__v1__list_verdicts_request__init(&verdicts);
    jury__v1__list_groups_request__init(&groups);
    ctl->is_stale = true; /* the asked node's own view: needs no leader */
    int rc = ctl_call(ctl, "jury.v1.NodeService/ListCounters", &counters.base, &answers->counters);
    if (rc == 0) {
        rc = ctl_call(ctl, "jury.v1.ClusterService/GetStatus", &status.base, &answers->status);
    }
    if (rc == 0) {
        rc = ctl_call_list(ctl, "jury.v1.VerdictService/ListVerdicts", &verdicts.base,
                           &answers->verdicts);
    }
    if (rc == 0) {
        rc = ctl_call_list(ctl, "jury.v1.GroupService/ListGroups", &groups.base, &answers->groups);
    }
    return rc;
}

/* The lists together, and beside them the status. */
static int print_all(struct ctl *ctl, const struct answers *answers)
{
    json_t *all = json_object();

    /* Each takes its argument in every case. */
    int n_failed = json_object_update_new(all, wire_json_new(answers->counters.response)) != 0;
    n_failed += json_object_update_new(all, wire_json_new(answers->verdicts.whole)) != 0;
    n_failed += json_object_update_new(all, wire_json_new(answers->groups.whole)) != 0;
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
                                .verdicts = (const void *)answers.verdicts.whole,
                                .groups = (const void *)answers.groups.whole,
                                .status = (const void *)answers.status.response,
                            });
    }
    ctl_list_close(&answers.groups);
    ctl_list_close(&answers.verdicts);
    rpc_result_close(&answers.status);
    rpc_result_close(&answers.counters);
    return rc;
}
