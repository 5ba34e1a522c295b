/* Where this node's probes come from, and probes on demand between the RPC server and their
 * threads. */
#include <string.h>

#include "agent/agent_internal.h"
#include "common/base/clock.h"
#include "common/base/plant.h"

struct addr agent_probe_source(const struct agent *agent, uint8_t family,
                               const struct addr *catalog_source)
{
    const struct addr *own = &agent->config->probe_sources[family == ADDR_IPV4 ? 0 : 1];

    return own->family != ADDR_NONE ? *own : *catalog_source;
}

/* What the catalog says of this node. */
static struct addr catalog_source(const struct agent *agent, uint8_t family)
{
    const struct catalog *catalog = agent->engine != NULL ? engine_catalog(agent->engine) : NULL;
    const struct catalog_node *node =
        catalog != NULL ? catalog_node_find(catalog, agent->node_id) : NULL;

    return node != NULL ? node->spec.probe_sources[family == ADDR_IPV4 ? 0 : 1]
                        : (struct addr){.family = ADDR_NONE};
}

struct probe_loop_options agent_probe_options(const struct agent *agent)
{
    struct probe_loop_options options = {.node_id = agent->node_id,
                                         .n_allowed = agent->config->n_allowed};

    memcpy(options.allowed, agent->config->allowed, sizeof options.allowed);
    return options;
}

int agent_probe_now(void *user, uint64_t cookie, const struct probe_target *target,
                    struct errmsg *err)
{
    struct agent *agent = user;
    struct probe_target from_here = *target;

    if (agent->probes_now == NULL) {
        return errmsg_set(err, ERR_NOTREADY, "this node does not probe yet");
    }
    uint8_t family = target->definition.to.addr.family;
    struct addr source = catalog_source(agent, family);
    from_here.source = agent_probe_source(agent, family, &source);
    return probe_now_start(agent->probes_now, cookie, &from_here, err);
}

void agent_probe_now_results(struct agent *agent)
{
    struct probe_report report;
    uint64_t cookie;
    bool is_any = false;

    while (agent->probes_now != NULL && probe_now_take(agent->probes_now, &cookie, &report)) {
        if (plant_is("probe-now-counts")) {
            struct engine_event event = {.kind = ENGINE_PROBE_RESULT, .u.result = &report.result};

            agent_step(agent, &event);
        }
        rpc_server_probed(agent->rpc, clock_monotonic_ns(), cookie, &report);
        is_any = true;
    }
    if (is_any) {
        agent_rpc_poll(agent);
    }
}
