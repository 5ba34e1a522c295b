/* What the asked node says of probing, and what the checks of documents come to beside its probe
 * budget. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/check.h"
#include "common/rpc/rpc_client.h"
#include "jury/v1/cluster.pb-c.h"
#include "nodectl/connect.h"
#include "nodectl/remark.h"

void remark_default_probing(struct remark_probing *ret_probing)
{
    *ret_probing =
        (struct remark_probing){.per_node = PROBE_BUDGET_NODE, .per_address = PROBE_BUDGET_ADDRESS};
}

static void add_lacking(struct remark_probing *probing, uint64_t node_id, bool lacks)
{
    if (lacks && probing->n_lacking < LIMIT_NODES) {
        probing->lacking[probing->n_lacking++] = node_id;
    }
}

/* An agent that names no kinds does not say what it lacks. */
static bool lacks_kind(const Jury__V1__ProbeEngine *engine, const char *kind)
{
    for (size_t i = 0; engine != NULL && i < engine->n_capabilities; i++) {
        if (strcmp(engine->capabilities[i], kind) == 0) {
            return false;
        }
    }
    return engine != NULL && engine->n_capabilities > 0;
}

static void add_node(struct remark_nodes *nodes, uint64_t node_id, bool is_one)
{
    if (is_one && nodes->n < LIMIT_NODES) {
        nodes->ids[nodes->n++] = node_id;
    }
}

static void add_unbuilt(struct remark_probing *probing, const Jury__V1__DescribeNodeResponse *node)
{
    add_node(&probing->without_tls, node->node_id, lacks_kind(node->probe_engine, "tls"));
    add_node(&probing->without_grpc, node->node_id, lacks_kind(node->probe_engine, "grpc"));
    for (size_t i = 0; i < node->n_peers; i++) {
        const Jury__V1__PeerStatus *peer = node->peers[i];

        for (size_t k = 0; k < peer->n_unbuilt; k++) {
            bool is_tls = peer->unbuilt[k] == JURY__V1__CHECK_TYPE__CHECK_TYPE_TLS;

            add_node(&probing->without_tls, peer->node_id, is_tls);
            add_node(&probing->without_grpc, peer->node_id, !is_tls);
        }
    }
}

void remark_ask_probing(struct ctl *ctl, struct remark_probing *ret_probing)
{
    struct ctl_failure kept = ctl->failure;
    struct rpc_result result = {0};
    Jury__V1__DescribeNodeRequest request;

    remark_default_probing(ret_probing);
    ctl->failure = (struct ctl_failure){0};
    jury__v1__describe_node_request__init(&request);
    if (ctl_call(ctl, "jury.v1.NodeService/DescribeNode", &request.base, &result) == 0) {
        const Jury__V1__DescribeNodeResponse *node = (const void *)result.response;

        if (node->probe_budget != NULL) {
            ret_probing->per_node = node->probe_budget->per_second;
            ret_probing->per_address = node->probe_budget->per_second_to_address;
            ret_probing->demand = node->probe_budget->demand;
            ret_probing->n_observers = node->probe_budget->n_observers;
            ret_probing->is_known = true;
        }
        add_unbuilt(ret_probing, node);
        add_lacking(ret_probing, node->node_id, node->lacks_shared_space);
        for (size_t i = 0; i < node->n_peers; i++) {
            add_lacking(ret_probing, node->peers[i]->node_id, node->peers[i]->lacks_shared_space);
        }
    }
    rpc_result_close(&result);
    json_decref(ctl->failure.metadata); /* not to be told is no failure */
    ctl->failure = kept;
}

/* Of the backends of a group at one address. */
struct demand {
    struct addr addr;
    struct check_demand per_second;
};

struct demands {
    struct demand *each; /* an address several times */
    size_t n;
};

static void add(struct check_demand *sum, struct check_demand more)
{
    sum->steady += more.steady;
    sum->worst += more.worst;
}

static struct check_demand of_group(const struct server_group *group, unsigned n_observers)
{
    struct check_demand sum = {0};

    for (unsigned i = 0; i < group_n_checks(group); i++) {
        const struct health_check *check = group_check_at(group, i);

        if (check->is_enabled && check->interval_ms > 0) {
            add(&sum, check_demand_of(check, n_observers));
        }
    }
    return sum;
}

static bool collect(const struct spec_set *set, unsigned n_observers, struct demands *to)
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
            to->each[to->n++] = (struct demand){.addr = group->backends[i].at.addr,
                                                .per_second = of_group(group, n_observers)};
        }
    }
    return to->each != NULL;
}

static int by_address(const void *a, const void *b)
{
    return addr_compare(&((const struct demand *)a)->addr, &((const struct demand *)b)->addr);
}

/* An address once. */
static void gather(struct demands *demands)
{
    size_t n = 0;

    qsort(demands->each, demands->n, sizeof *demands->each, by_address);
    for (size_t i = 0; i < demands->n; i++) {
        if (n > 0 && by_address(&demands->each[i], &demands->each[n - 1]) == 0) {
            add(&demands->each[n - 1].per_second, demands->each[i].per_second);
        } else {
            demands->each[n++] = demands->each[i];
        }
    }
    demands->n = n;
}

/* What they come to, beside what there is. Told are those of all is well, else those of the worst.
 */
struct excess {
    struct check_demand demand;
    uint32_t budget;
    const char *to; /* behind "of each node" */
    const char *of; /* behind the budget */
};

/* Whole ones, and not one more for what is lost in sums. */
static uint64_t whole(double per_second)
{
    return (uint64_t)(per_second + 0.999);
}

static void warn_of_excess(struct ctl *ctl, const char *whose, const struct excess *excess)
{
    bool is_steady = whole(excess->demand.steady) > excess->budget;

    if (is_steady || whole(excess->demand.worst) > excess->budget) {
        ctl_warn(ctl,
                 "the checks come to %" PRIu64 " probes a second of each node%s%s, and the probe "
                 "budget %s is %" PRIu32 "%s: probes will be delayed%s; see nodectl explain budget",
                 whole(is_steady ? excess->demand.steady : excess->demand.worst), excess->to,
                 is_steady ? "" : " while they fail", whose, excess->budget, excess->of,
                 is_steady ? "" : " then");
    }
}

static const struct demand *larger(const struct demand *a, const struct demand *b, uint32_t budget)
{
    bool is_over = whole(a->per_second.steady) > budget || whole(b->per_second.steady) > budget;

    return is_over ? (b->per_second.steady > a->per_second.steady ? b : a)
                   : (b->per_second.worst > a->per_second.worst ? b : a);
}

void remark_demand(struct ctl *ctl, const struct spec_set *set,
                   const struct remark_probing *probing)
{
    const char *whose = probing->is_known ? "of this node" : "that nodes have by default";
    struct demands demands = {0};
    struct check_demand all = {0};
    char text[ADDR_TEXT_BYTES], to[ADDR_TEXT_BYTES + 16];

    if (!collect(set, probing->n_observers, &demands)) {
        return; /* a remark, no more */
    }
    gather(&demands);
    const struct demand *top = demands.each; /* there is room for one in any case */
    for (size_t i = 0; i < demands.n; i++) {
        add(&all, demands.each[i].per_second);
        top = larger(top, &demands.each[i], probing->per_address);
    }
    if (whole(all.steady) <= probing->per_node && probing->demand > probing->per_node) {
        ctl_warn(ctl,
                 "what is probed already comes to %" PRIu32 " probes a second of this node, and "
                 "its probe budget is %" PRIu32 ": probes are delayed; see nodectl explain budget",
                 probing->demand, probing->per_node);
    } else {
        warn_of_excess(
            ctl, whose,
            &(struct excess){.demand = all, .budget = probing->per_node, .to = "", .of = ""});
    }
    snprintf(to, sizeof to, " to address %s", addr_format(&top->addr, text));
    warn_of_excess(ctl, whose,
                   &(struct excess){.demand = top->per_second,
                                    .budget = probing->per_address,
                                    .to = to,
                                    .of = " for an address"});
    free(demands.each);
}
