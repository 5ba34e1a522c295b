/* What the checks of documents come to beside the probe budget of a node. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/check.h"
#include "common/rpc/rpc_client.h"
#include "jury/v1/cluster.pb-c.h"
#include "nodectl/connect.h"
#include "nodectl/remark.h"

void remark_default_budget(struct remark_budget *ret_budget)
{
    *ret_budget =
        (struct remark_budget){.per_node = PROBE_BUDGET_NODE, .per_address = PROBE_BUDGET_ADDRESS};
}

void remark_ask_budget(struct ctl *ctl, struct remark_budget *ret_budget)
{
    struct ctl_failure kept = ctl->failure;
    struct rpc_result result = {0};
    Jury__V1__DescribeNodeRequest request;

    remark_default_budget(ret_budget);
    ctl->failure = (struct ctl_failure){0};
    jury__v1__describe_node_request__init(&request);
    if (ctl_call(ctl, "jury.v1.NodeService/DescribeNode", &request.base, &result) == 0) {
        const Jury__V1__DescribeNodeResponse *node = (const void *)result.response;

        if (node->probe_budget != NULL) {
            *ret_budget =
                (struct remark_budget){.per_node = node->probe_budget->per_second,
                                       .per_address = node->probe_budget->per_second_to_address,
                                       .demand = node->probe_budget->demand,
                                       .is_known = true};
        }
    }
    rpc_result_close(&result);
    json_decref(ctl->failure.metadata); /* not to be told is no failure */
    ctl->failure = kept;
}

/* Probes in 1,000 s to one address. */
struct demand {
    struct addr addr;
    uint64_t per_1000s;
};

struct demands {
    struct demand *each; /* unsorted, an address several times */
    size_t n;
};

static uint64_t of_group(const struct server_group *group)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < group_n_checks(group); i++) {
        const struct health_check *check = group_check_at(group, i);

        if (check->is_enabled && check->interval_ms > 0) {
            sum += 1000000 / check->interval_ms;
        }
    }
    return sum;
}

static bool collect(const struct spec_set *set, struct demands *to)
{
    size_t n_backends = 0;

    for (uint32_t d = 0; d < set->n_documents; d++) {
        const struct spec_document *document = &set->documents[d];

        n_backends += document->kind == SPEC_GROUP ? document->u.group->n_backends : 0;
    }
    to->each = calloc(n_backends + 1, sizeof *to->each);
    for (uint32_t d = 0; to->each != NULL && d < set->n_documents; d++) {
        const struct server_group *group = set->documents[d].u.group;

        if (set->documents[d].kind != SPEC_GROUP) {
            continue;
        }
        for (uint32_t i = 0; i < group->n_backends; i++) {
            to->each[to->n++] =
                (struct demand){.addr = group->backends[i].at.addr, .per_1000s = of_group(group)};
        }
    }
    return to->each != NULL;
}

static int by_address(const void *a, const void *b)
{
    return addr_compare(&((const struct demand *)a)->addr, &((const struct demand *)b)->addr);
}

/* Returns the sum of all; ret_top: the address with the most. */
static uint64_t sum_up(struct demands *demands, struct demand *ret_top)
{
    uint64_t all = 0, here = 0;

    qsort(demands->each, demands->n, sizeof *demands->each, by_address);
    *ret_top = (struct demand){0};
    for (size_t i = 0; i < demands->n; i++) {
        const struct demand *demand = &demands->each[i];

        if (i == 0 || by_address(demand, demand - 1) != 0) {
            here = 0;
        }
        here += demand->per_1000s;
        all += demand->per_1000s;
        if (here > ret_top->per_1000s) {
            *ret_top = (struct demand){.addr = demand->addr, .per_1000s = here};
        }
    }
    return all;
}

static uint64_t per_second(uint64_t per_1000s)
{
    return (per_1000s + 999) / 1000;
}

void remark_demand(struct ctl *ctl, const struct spec_set *set, const struct remark_budget *budget)
{
    const char *whose = budget->is_known ? "of this node" : "that nodes have by default";
    struct demands demands = {0};
    char text[ADDR_TEXT_BYTES];
    struct demand top;

    if (!collect(set, &demands)) {
        return; /* a remark, no more */
    }
    uint64_t all = per_second(sum_up(&demands, &top));
    if (all > budget->per_node) {
        ctl_warn(ctl,
                 "the checks come to %" PRIu64 " probes a second of each node, and the probe "
                 "budget %s is %" PRIu32 ": probes will be delayed; see nodectl explain budget",
                 all, whose, budget->per_node);
    } else if (budget->demand > budget->per_node) {
        ctl_warn(ctl,
                 "what is probed already comes to %" PRIu32 " probes a second of this node, and "
                 "its probe budget is %" PRIu32 ": probes are delayed; see nodectl explain budget",
                 budget->demand, budget->per_node);
    }
    if (per_second(top.per_1000s) > budget->per_address) {
        ctl_warn(ctl,
                 "the checks come to %" PRIu64 " probes a second of each node to address %s, and "
                 "the probe budget %s is %" PRIu32 " for an address: probes will be delayed; see "
                 "nodectl explain budget",
                 per_second(top.per_1000s), addr_format(&top.addr, text), whose,
                 budget->per_address);
    }
    free(demands.each);
}
