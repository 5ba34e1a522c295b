/* What this node measures of itself for the engine's self-doubt: late loops, and sentinels: its own
 * port and those of a few peers, probed all the time in the way in which targets are. */
#include <string.h>

#include "agent/agent_internal.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/units.h"

/* Loss shows as a connection that takes a second, since a lost SYN is repeated after one; and what
 * is cut off is to be known before a check with a timeout of a second can fail twice. */
#define SENTINEL_TIMEOUT_MS 300
#define SENTINEL_INTERVAL_MS 200
#define SENTINEL_IN_FLIGHT 16
#define SENTINEL_KINDS                                                                             \
    (1U << CHECK_TYPE_TCP | 1U << CHECK_TYPE_HTTP | 1U << CHECK_TYPE_TLS | 1U << CHECK_TYPE_GRPC | \
     1U << CHECK_TYPE_UDP) /* what they test is the way, of all of them */

/* --- late loops --- */

void agent_doubt_tick(struct agent *agent)
{
    struct loops_sample sample = {.now_ns = clock_monotonic_ns()};

    if (agent->is_formed) {
        struct probe_counts counts;

        probe_thread_counts(agent->probes, &counts);
        sample.probe_stalled_ns = counts.values[PROBE_STALLED_NS];
        sample.n_probe_stalls = atomic_load(&agent->probe_loop.n_stalls);
        sample.probe_is_stalled = atomic_load(&agent->probe_loop.is_stalled);
    }
    uint64_t late_ns = self_doubt_take_loops(&agent->doubt.loops, &sample);
    if (agent->is_formed && late_ns > 0) {
        struct engine_event event = {.kind = ENGINE_LOOP_LATE, .u.late_ns = late_ns};

        agent_step(agent, &event);
    }
}

/* --- sentinels --- */

void agent_doubt_open(struct agent *agent)
{
    struct errmsg err = {""};

    probe_plan_editor_init(&agent->doubt.plan);
    agent->doubt.loops = (struct loops_late){.tick_interval_ns = AGENT_TICK_MS * NS_PER_MS,
                                             .stall_ns = WATCHDOG_STALL_MS * NS_PER_MS};
    if (sentinel_port_open(&agent->doubt.port, &agent->config->mesh_listen[0].addr, &err) != 0) {
        log_event(LOG_LEVEL_WARNING, "no_sentinel_port",
                  "text=\"%s: peers cannot test themselves by this node\"", err.text);
    }
}

void agent_doubt_start(struct agent *agent)
{
    struct probe_thread_options options = {
        .loop = {.node_id = agent->node_id, .in_flight_max = SENTINEL_IN_FLIGHT},
        .ring_results = 256,
        .results_wake = &agent->probe_wake,
    };
    struct errmsg err = {""};

    if (probe_thread_start(&options, &agent->doubt.probes, &err) != 0) {
        log_event(LOG_LEVEL_WARNING, "no_sentinels", "text=\"%s: this node cannot test itself\"",
                  err.text);
    }
}

void agent_doubt_close(struct agent *agent)
{
    probe_thread_stop(agent->doubt.probes);
    probe_plan_editor_close(&agent->doubt.plan);
    sentinel_port_close(&agent->doubt.port);
}

void agent_doubt_hello(struct agent *agent, uint64_t peer, const struct hello *hello)
{
    const struct catalog *catalog = engine_catalog(agent->engine);

    for (size_t i = 0; catalog != NULL && i < catalog_n_nodes(catalog) && i < LIMIT_NODES; i++) {
        struct agent_peer_port *known = &agent->doubt.peer_ports[i];

        if (catalog_node_at(catalog, i)->spec.node_id == peer) {
            *known = (struct agent_peer_port){.node_id = peer, .port = hello->sentinel_port};
        } else if (known->node_id == peer) {
            *known = (struct agent_peer_port){0}; /* its place before the members changed */
        }
    }
}

/* Where a peer's sentinel is; false when it is not known. */
static bool find_peer(const struct agent *agent, uint64_t node_id, struct endpoint *ret_at)
{
    struct mesh_peer_status mesh;

    for (size_t i = 0; i < LIMIT_NODES; i++) {
        const struct agent_peer_port *known = &agent->doubt.peer_ports[i];

        if (known->node_id == node_id && known->port != 0 &&
            mesh_peer_status(agent->mesh, node_id, &mesh) &&
            endpoint_parse(mesh.address, ret_at, NULL) == 0) {
            ret_at->port = known->port;
            return true;
        }
    }
    return false;
}

static struct endpoint own_endpoint(const struct agent *agent)
{
    struct endpoint at = {.addr = agent->config->mesh_listen[0].addr,
                          .port = agent->doubt.port.port};

    if (addr_is_unspecified(&at.addr)) {
        addr_parse(at.addr.family == ADDR_IPV4 ? "127.0.0.1" : "::1", &at.addr, NULL);
    }
    return at;
}

/* Returns whether the plan changed. */
static bool set_sentinel(struct agent *agent, uint32_t slot, uint64_t node_id,
                         const struct endpoint *at)
{
    struct agent_sentinel *sentinel = &agent->doubt.sentinels[slot];

    if (sentinel->node_id == node_id && endpoint_compare(&sentinel->at, at) == 0) {
        return false;
    }
    *sentinel =
        (struct agent_sentinel){.node_id = node_id, .at = *at, .birth = ++agent->doubt.next_birth};
    const struct health_check how = {.is_enabled = true,
                                     .type = CHECK_TYPE_TCP,
                                     .pacing = PACING_END_TO_START,
                                     .timeout_ms = SENTINEL_TIMEOUT_MS,
                                     .interval_ms = SENTINEL_INTERVAL_MS,
                                     .healthy_threshold = 1,
                                     .unhealthy_threshold = 1,
                                     .tcp = {.handshake = TCP_FULL, .close = TCP_CLOSE_RST}};
    const struct health_check *check = catalog_check_new(&how);
    const struct probe_target target = {.id = {.slot = slot, .birth = sentinel->birth},
                                        .definition = {.to = *at, .check = check}};
    int rc = probe_plan_editor_set(&agent->doubt.plan, &target, false);
    catalog_check_unref(check);
    return rc == 0;
}

static bool clear_sentinel(struct agent *agent, uint32_t slot)
{
    struct agent_sentinel *sentinel = &agent->doubt.sentinels[slot];

    if (sentinel->node_id == 0) {
        return false;
    }
    probe_plan_editor_remove(&agent->doubt.plan,
                             (struct target_id){.slot = slot, .birth = sentinel->birth});
    *sentinel = (struct agent_sentinel){0};
    return true;
}

/* The members, and where the sentinels are of those that can be probed. */
static size_t list_members(const struct agent *agent, struct sentinel_member members[LIMIT_NODES],
                           struct endpoint at[LIMIT_NODES])
{
    const struct catalog *catalog = agent->is_formed ? engine_catalog(agent->engine) : NULL;
    size_t n = catalog == NULL ? 0 : catalog_n_nodes(catalog);

    n = n < LIMIT_NODES ? n : LIMIT_NODES;
    for (size_t i = 0; i < n; i++) {
        members[i].node_id = catalog_node_at(catalog, i)->spec.node_id;
        members[i].is_known = find_peer(agent, members[i].node_id, &at[i]);
    }
    return n;
}

void agent_doubt_choose(struct agent *agent)
{
    struct sentinel_member members[LIMIT_NODES];
    struct endpoint at[LIMIT_NODES];
    size_t chosen[SENTINEL_PEERS];
    struct endpoint own = own_endpoint(agent);
    uint32_t n = 1;

    if (agent->doubt.probes == NULL || agent->doubt.port.fd < 0) {
        return;
    }
    size_t n_members = list_members(agent, members, at);
    if (n_members == 0) {
        return;
    }
    bool changed = set_sentinel(agent, 0, agent->node_id, &own);
    unsigned n_chosen = self_doubt_choose_peers(members, n_members, agent->node_id, chosen);
    for (unsigned i = 0; i < n_chosen; i++) {
        size_t index = chosen[i];

        changed = set_sentinel(agent, n++, members[index].node_id, &at[index]) || changed;
    }
    while (n <= SENTINEL_PEERS) {
        changed = clear_sentinel(agent, n++) || changed;
    }
    struct probe_plan *plan = changed ? probe_plan_editor_publish(&agent->doubt.plan) : NULL;
    if (plan != NULL) {
        probe_thread_plan(agent->doubt.probes, plan);
    }
}

void agent_doubt_results(struct agent *agent)
{
    struct probe_result result;

    while (agent->doubt.probes != NULL && probe_thread_pop(agent->doubt.probes, &result)) {
        const struct agent_sentinel *sentinel = &agent->doubt.sentinels[result.id.slot];

        if (sentinel->birth != result.id.birth) {
            continue;
        }
        const struct sentinel_result found = {.node_id = sentinel->node_id,
                                              .kinds = SENTINEL_KINDS,
                                              .reason = result.reason,
                                              .is_refused = result.is_refused,
                                              .end_ns = result.end_ns};
        struct engine_event event = {.kind = ENGINE_SENTINEL, .u.sentinel = &found};
        agent_step(agent, &event);
    }
}
