/* node metrics: what the asked node counts and measures, for Prometheus. */
#include "common/wire/json.h"
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/verdict.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"

static int print_both(struct ctl *ctl, const ProtobufCMessage *counters,
                      const ProtobufCMessage *verdicts)
{
    json_t *counted = wire_json_new(counters);
    json_t *seen = wire_json_new(verdicts);
    json_t *both = json_object();

    /* Each takes its argument in every case. */
    int n_failed = json_object_update_new(both, counted) != 0;
    n_failed += json_object_update_new(both, seen) != 0;
    if (n_failed > 0) {
        json_decref(both);
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    return ctl_print_json(ctl, both);
}

int cmd_node_metrics(struct ctl *ctl)
{
    Jury__V1__ListCountersRequest counters;
    Jury__V1__ListVerdictsRequest verdicts;
    struct rpc_result counted = {0};
    struct ctl_list seen = {0};

    jury__v1__list_counters_request__init(&counters);
    jury__v1__list_verdicts_request__init(&verdicts);
    int rc = ctl_call(ctl, "jury.v1.NodeService/ListCounters", &counters.base, &counted);
    if (rc == 0) {
        rc = ctl_call_list(ctl, "jury.v1.VerdictService/ListVerdicts", &verdicts.base, &seen);
    }
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = print_both(ctl, counted.response, seen.whole);
    } else if (rc == 0) {
        render_metrics(ctl, (const Jury__V1__ListCountersResponse *)(const void *)counted.response,
                       (const Jury__V1__ListVerdictsResponse *)(const void *)seen.whole);
    }
    ctl_list_close(&seen);
    rpc_result_close(&counted);
    return rc;
}
