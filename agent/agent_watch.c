/* What becomes of the other nodes: looked at once a second, told to the engine for its events. */
#include "agent/agent_internal.h"
#include "agent/core/cluster_watch.h"
#include "agent/core/engine_view.h"
#include "common/base/clock.h"
#include "common/base/units.h"

#define LOST_NS_MIN (3 * NS_PER_SECOND)
#define LOST_VOTE_INTERVALS 3 /* as status judges it */

static void look_at_peers(const struct agent *agent, const struct catalog *catalog,
                          struct cluster_look *look)
{
    for (size_t i = 0; i < catalog_n_nodes(catalog) && look->n_peers < LIMIT_NODES; i++) {
        uint64_t node_id = catalog_node_at(catalog, i)->spec.node_id;
        struct mesh_peer_status status;

        if (node_id != agent->node_id) {
            look->peers[look->n_peers++] = (struct cluster_look_peer){
                .node_id = node_id,
                .heard_ns =
                    mesh_peer_status(agent->mesh, node_id, &status) ? status.last_heard_ns : 0};
        }
    }
}

void agent_watch_tick(struct agent *agent)
{
    const struct catalog *catalog = agent->engine == NULL ? NULL : engine_catalog(agent->engine);
    struct cluster_look look = {.now_ns = clock_monotonic_ns()};
    struct cluster_news news[CLUSTER_NEWS_MAX];
    struct engine_status votes;

    if (catalog == NULL) {
        return;
    }
    uint64_t vote_ns = catalog_settings(catalog)->vote_interval_ms * NS_PER_MS;
    engine_view_status(agent->engine, look.now_ns, &votes);
    look.lost_ns = LOST_VOTE_INTERVALS * vote_ns;
    look.lost_ns = look.lost_ns < LOST_NS_MIN ? LOST_NS_MIN : look.lost_ns;
    look.has_store = agent->has_status && agent->status.state == STORE_RUNNING;
    look.leader_id = agent->status.leader_id;
    look.n_observers = votes.n_observers;
    look.n_trusted = votes.n_trusted;
    look.quorum = votes.quorum;
    look_at_peers(agent, catalog, &look);
    uint32_t n = cluster_watch_look(&agent->watch, &look, news);
    for (uint32_t i = 0; i < n; i++) {
        struct engine_event event = {.kind = ENGINE_NEWS, .u.news = &news[i]};

        agent_step(agent, &event);
    }
}
