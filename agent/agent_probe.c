/* Where this node's probes come from, and probes on demand between the RPC server and their
 * threads. */
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/probe/packet_local.h"
#include "agent/probe/shared_space.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/plant.h"

/* What this node is told to probe from, by its option or else by the catalog. */
static const struct addr *told_source(const struct agent *agent, uint8_t family,
                                      const struct addr *catalog_source)
{
    const struct addr *own = &agent->config->probe_sources[family == ADDR_IPV4 ? 0 : 1];

    return own->family != ADDR_NONE ? own : catalog_source;
}

uint8_t agent_unbuilt(const struct agent *agent)
{
    uint32_t made = agent->probes != NULL ? probe_thread_capabilities(agent->probes)
                                          : (uint32_t)(PROBE_CAN_TLS | PROBE_CAN_GRPC);

    return (uint8_t)(((made & PROBE_CAN_TLS) == 0 ? HELLO_NO_TLS : 0) |
                     ((made & PROBE_CAN_GRPC) == 0 ? HELLO_NO_GRPC : 0));
}

struct addr agent_probe_source(const struct agent *agent,
                               const struct target_definition *definition,
                               const struct addr *catalog_source)
{
    const struct addr *to = &definition->to.addr;
    const struct addr *told = told_source(agent, to->family, catalog_source);

    if (plant_is("probe-source-ignored")) {
        return (struct addr){.family = ADDR_NONE};
    }
    if (told->family == ADDR_NONE && check_is_from_shared_space(definition->check, to) &&
        !plant_is("shared-space-ignored")) {
        return agent->sources.shared_space;
    }
    return *told;
}

/* What the catalog says of this node; NULL: nothing yet. */
static const struct catalog_node *own_node(const struct agent *agent)
{
    const struct catalog *catalog = agent->engine != NULL ? engine_catalog(agent->engine) : NULL;

    return catalog != NULL ? catalog_node_find(catalog, agent->node_id) : NULL;
}

static struct addr catalog_source(const struct agent *agent, uint8_t family)
{
    const struct catalog_node *node = own_node(agent);

    return node != NULL ? node->spec.probe_sources[family == ADDR_IPV4 ? 0 : 1]
                        : (struct addr){.family = ADDR_NONE};
}

bool agent_lacks_shared_space(const struct agent *agent)
{
    const struct catalog_node *node = own_node(agent);

    return node != NULL && node->spec.role != ROLE_SPARE &&
           told_source(agent, ADDR_IPV4, &node->spec.probe_sources[0])->family == ADDR_NONE &&
           agent->sources.shared_space.family == ADDR_NONE;
}

struct probe_loop_options agent_probe_options(const struct agent *agent)
{
    struct probe_loop_options options = {.node_id = agent->node_id,
                                         .half_open_send = agent->config->half_open_send,
                                         .half_open_receive = agent->config->half_open_receive,
                                         .n_allowed = agent->config->n_allowed};

    memcpy(options.allowed, agent->config->allowed, sizeof options.allowed);
    return options;
}

/* --- what backends' firewalls must let through --- */

static void count_source(struct rpc_probe_sources *sources, const struct addr *addr,
                         bool wants_shared_space)
{
    uint32_t i = 0;

    while (i < sources->n_sources && addr_compare(&sources->sources[i].addr, addr) != 0) {
        i++;
    }
    if (i == RPC_PROBE_SOURCES) {
        sources->n_left_out++;
        return;
    }
    if (i == sources->n_sources) {
        sources->sources[sources->n_sources++] = (struct rpc_probe_source){.addr = *addr};
    }
    sources->sources[i].n_targets++;
    sources->sources[i].n_shared_space += wants_shared_space;
}

static void look_at(struct rpc_probe_sources *sources, const struct probe_target *target)
{
    struct addr addr;
    enum probe_reason reason = packet_source_find(target, &addr);

    if (reason == REASON_NONE) {
        count_source(
            sources, &addr,
            check_is_from_shared_space(target->definition.check, &target->definition.to.addr));
        return;
    }
    sources->reason = sources->n_without == 0 ? (uint8_t)reason : sources->reason;
    sources->n_without++;
}

/* --- the address in 100.64.0.0/10 --- */

/* What is probed from there, or was or shall be, gets another source. False: not all of it, for
 * want of memory. */
static bool move_targets(struct agent *agent)
{
    struct addr told = catalog_source(agent, ADDR_IPV4);
    bool has_moved = false, is_whole = true;

    for (uint32_t slot = 0; slot < agent->plan.n_slots; slot++) {
        const struct planned_target *planned = agent->plan.by_slot[slot];

        if (planned == NULL || !check_is_from_shared_space(planned->target.definition.check,
                                                           &planned->target.definition.to.addr)) {
            continue;
        }
        struct probe_target target = planned->target;
        target.source = agent_probe_source(agent, &target.definition, &told);
        if (addr_compare(&target.source, &planned->target.source) == 0) {
            continue;
        }
        is_whole = probe_plan_editor_set(&agent->plan, &target, false) == 0 && is_whole;
        has_moved = true;
    }
    if (has_moved) {
        agent_publish_plan(agent);
    }
    return is_whole;
}

void agent_probe_sources_follow(struct agent *agent)
{
    struct agent_sources *sources = &agent->sources;
    bool is_again = sources->is_unfollowed;
    char text[ADDR_TEXT_BYTES];
    struct addr found;

    sources->is_unfollowed = shared_space_find(&found) != 0;
    if (sources->is_unfollowed) {
        return;
    }
    if (addr_compare(&found, &sources->shared_space) != 0) {
        sources->shared_space = found;
        log_event(LOG_LEVEL_INFO, "shared_space_source", "range=100.64.0.0/10 address=%s",
                  found.family == ADDR_NONE ? "none" : addr_format(&found, text));
    } else if (!is_again) {
        return;
    }
    sources->is_unfollowed = !move_targets(agent);
}

/* --- what is looked at each second --- */

/* Only the kernel knows which address a packet to a backend would have: its routes and rules say.
 */
void agent_probe_sources_tick(struct agent *agent)
{
    struct agent_sources *sources = &agent->sources;
    const struct probe_plan_editor *plan = &agent->plan;
    uint64_t now_ns = clock_monotonic_ns();

    bool has_moved = route_watch_changed(&sources->routes);
    if (has_moved || sources->is_unfollowed) {
        agent_probe_sources_follow(agent);
    }
    sources->has_changed = has_moved || sources->has_changed;
    if (sources->is_resting && !sources->has_changed &&
        now_ns - sources->begun_ns < AGENT_SOURCES_MAX_AGE_NS) {
        return;
    }
    if (sources->next_slot == 0) {
        sources->is_resting = sources->has_changed = false;
        sources->begun_ns = now_ns;
    }
    for (uint32_t n = 0; n < AGENT_SOURCES_PER_TICK && sources->next_slot < plan->n_slots;
         sources->next_slot++) {
        if (plan->by_slot[sources->next_slot] != NULL) {
            look_at(&sources->running, &plan->by_slot[sources->next_slot]->target);
            n++;
        }
    }
    if (sources->next_slot >= plan->n_slots) {
        sources->last = sources->running;
        sources->running = (struct rpc_probe_sources){.n_sources = 0};
        sources->next_slot = 0;
        sources->is_whole = sources->is_resting = true;
    }
}

const struct rpc_probe_sources *agent_probe_sources(const struct agent *agent)
{
    return agent->sources.is_whole ? &agent->sources.last : &agent->sources.running;
}

/* --- the budget --- */

void agent_probe_budget_tick(struct agent *agent)
{
    struct probe_counts counts;

    if (agent->probes == NULL || agent->engine == NULL) {
        return;
    }
    probe_thread_counts(agent->probes, &counts);
    /* The engine tells only what changed. */
    struct engine_event event = {.kind = ENGINE_PROBE_BUDGET,
                                 .u.pressure = {.is_on = counts.values[PROBE_BUDGET_PRESSED] != 0,
                                                .delay_ns = counts.values[PROBE_BUDGET_DELAY_NS]}};
    agent_step(agent, &event);
}

void agent_probe_budget_view(const struct agent *agent, const struct probe_counts *counts,
                             struct rpc_probe_budget *ret_budget)
{
    uint64_t slot = counts->values[PROBE_BUDGET_TOP_SLOT];

    *ret_budget = (struct rpc_probe_budget){
        .per_node = agent->config->probe_rates.per_node,
        .per_address = agent->config->probe_rates.per_address,
        .used = (uint32_t)counts->values[PROBE_BUDGET_USED],
        .demand = (uint32_t)counts->values[PROBE_BUDGET_DEMAND],
        .top_demand = (uint32_t)counts->values[PROBE_BUDGET_TOP_DEMAND],
        .n_waiting = (uint32_t)counts->values[PROBE_BUDGET_WAITING],
        .is_pressed = counts->values[PROBE_BUDGET_PRESSED] != 0,
        .n_delayed = counts->values[PROBE_BUDGET_DELAYED],
        .delay_ns = counts->values[PROBE_BUDGET_DELAY_NS],
        .delay_max_ns = counts->values[PROBE_BUDGET_DELAY_MAX_NS],
    };
    /* The thread may have counted before the last change. */
    if (ret_budget->top_demand > 0 && slot < agent->plan.n_slots &&
        agent->plan.by_slot[slot] != NULL) {
        ret_budget->top_address = agent->plan.by_slot[slot]->target.definition.to.addr;
    }
}

/* --- probes on demand --- */

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
    from_here.source = agent_probe_source(agent, &target->definition, &source);
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
