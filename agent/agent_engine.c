/* Events into the engine, its actions out. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/engine_mesh_link.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/base/units.h"
#include "common/model/feature_level.h"

/* --- actions --- */

void agent_publish_plan(struct agent *agent)
{
    struct probe_plan *plan = probe_plan_editor_publish(&agent->plan);

    agent->sources.has_changed = true;
    if (plan != NULL) {
        probe_thread_plan(agent->probes, plan);
    }
}

static void carry_out_probes(struct agent *agent)
{
    const struct engine_actions *actions = &agent->actions;

    for (uint32_t i = 0; i < actions->n_probes; i++) {
        const struct probe_change *change = &actions->probes[i];

        if (change->target == NULL) {
            probe_plan_editor_remove(&agent->plan, change->id);
            continue;
        }
        struct probe_target target = {.id = change->id};
        catalog_target_definition(change->target, &target.definition);
        target.source = agent_probe_source(agent, &target.definition, &change->source);
        int rc = probe_plan_editor_set(&agent->plan, &target, change->is_at_start);
        if (rc != 0) {
            log_event(LOG_LEVEL_ERROR, "target_not_probed", "slot=%u error=\"%s\"", change->id.slot,
                      err_text(rc));
        }
    }
    if (actions->n_probes > 0) {
        agent_publish_plan(agent);
    }
    if (actions->n_orders > 0) {
        int rc = probe_thread_order(agent->probes, actions->orders, actions->n_orders);

        if (rc != 0) {
            log_event(LOG_LEVEL_ERROR, "orders_lost", "n=%u error=\"%s\"", actions->n_orders,
                      err_text(rc));
        }
    }
}

/* As the leader. True if it is under way. */
static bool propose(struct agent *agent, enum agent_request_owner owner, struct change changes[],
                    uint32_t n_changes)
{
    const struct command command = {
        .wall_ms = clock_wall_ms(), .actor = "leader", .changes = changes, .n_changes = n_changes};
    uint8_t *data;
    size_t n_bytes;

    if (command_encode(&command, &data, &n_bytes, NULL) != 0) {
        return false;
    }
    bool is_under_way = agent_store_propose(agent, owner, 0, data, n_bytes) == 0;
    free(data);
    return is_under_way;
}

/* Every node names what is done; the leader alone proposes, one command at a time. */
static void carry_out_purges(struct agent *agent)
{
    struct change changes[ENGINE_PURGES];

    if (agent->actions.n_purges == 0 || agent->purge_is_under_way || !agent_is_leader(agent)) {
        return;
    }
    uint32_t n_purges = agent->actions.n_purges;
    for (uint32_t i = 0; i < n_purges; i++) {
        changes[i] =
            (struct change){.kind = CHANGE_PURGE_BACKEND, .u.purge = &agent->actions.purges[i]};
    }
    if (propose(agent, OWNER_PURGE, changes, n_purges)) {
        agent->purge_is_under_way = true;
        agent->counts.purges_proposed += n_purges;
    }
}

/* Once each member has announced more than the cluster's committed level. */
static void carry_out_level(struct agent *agent)
{
    const struct catalog *catalog = engine_catalog(agent->engine);
    uint8_t levels[LIMIT_NODES] = {0};

    if (!agent->actions.has_hello || catalog == NULL || agent->level_is_under_way ||
        !agent_is_leader(agent)) {
        return;
    }
    for (size_t i = 0; i < catalog_n_nodes(catalog); i++) {
        uint64_t node_id = catalog_node_at(catalog, i)->spec.node_id;
        struct mesh_peer_status peer = {0};

        if (node_id == agent->node_id) {
            levels[i] = feature_level();
        } else if (mesh_peer_status(agent->mesh, node_id, &peer)) {
            levels[i] = (uint8_t)(peer.feature_level < UINT8_MAX ? peer.feature_level : UINT8_MAX);
        }
    }
    uint8_t level = catalog_level_due(catalog, levels);
    if (level == 0) {
        return;
    }
    struct change change = {.kind = CHANGE_RAISE_LEVEL, .u.feature_level = level};
    agent->level_is_under_way = propose(agent, OWNER_LEVEL, &change, 1);
}

static void set_engine_timer(struct agent *agent, uint64_t wake_ns)
{
    const uv_handle_t *timer = (const uv_handle_t *)&agent->engine_timer;

    if (wake_ns == TIMER_NEVER) {
        uv_timer_stop(&agent->engine_timer);
        return;
    }
    if (wake_ns == agent->engine_wake_ns && uv_is_active(timer) != 0) {
        return; /* most steps of a node change nothing of it */
    }
    agent->engine_wake_ns = wake_ns;
    uv_timer_start(&agent->engine_timer, agent_on_engine_timer, agent_delay_ms(wake_ns), 0);
}

static void carry_out(struct agent *agent)
{
    const struct engine_actions *actions = &agent->actions;
    const struct catalog *catalog = engine_catalog(agent->engine);

    /* Words before everything else: they are what traffic follows. */
    agent_table_write(agent, actions->rows, actions->n_rows,
                      catalog != NULL ? catalog_revision(catalog) : 0);
    if (actions->layout_due) {
        agent_layout_due(agent, actions->catalog);
    }
    const struct hello_shell shell = {
        .sentinel_port = agent->doubt.port.port,
        .lacks_shared_space = actions->has_hello && agent_lacks_shared_space(agent),
        .unbuilt = agent_unbuilt(agent),
        .store_is_down = agent_store_is_down(agent),
    };
    engine_messages_send(agent->mesh, &agent->actions, &shell);
    carry_out_probes(agent);
    carry_out_purges(agent);
    carry_out_level(agent);
    agent_log_events(agent, actions->first_event, actions->n_events);
    agent->lkg.is_dirty = agent->lkg.is_dirty || actions->verdicts_changed || actions->layout_due;
    set_engine_timer(agent, actions->wake_ns);
}

static void step_at(struct agent *agent, struct engine_event *event, uint64_t now_ns,
                    uint64_t boot_ns)
{
    event->now_ns = now_ns;
    event->boot_ns = boot_ns;
    agent->counts.steps++;
    int rc = engine_step(agent->engine, event, &agent->actions);
    if (rc != 0) {
        agent->counts.steps_failed++;
        log_event(LOG_LEVEL_ERROR, "engine_step_failed", "event=%u error=\"%s\"", event->kind,
                  err_text(rc));
    }
    carry_out(agent);
}

void agent_step(struct agent *agent, struct engine_event *event)
{
    step_at(agent, event, clock_monotonic_ns(), clock_boottime_ns());
}

/* --- events --- */

void agent_on_engine_timer(uv_timer_t *timer)
{
    struct engine_event event = {.kind = ENGINE_TICK};

    agent_step(timer->data, &event);
}

/* Those that wait, AGENT_RESULTS_AT_ONCE at most. Returns how many there were. */
static uint32_t take_results(struct agent *agent)
{
    struct probe_result results[AGENT_RESULTS_AT_ONCE];
    uint32_t n = 0;

    while (n < AGENT_RESULTS_AT_ONCE && probe_thread_pop(agent->probes, &results[n])) {
        engine_expect(agent->engine, &results[n]);
        n++;
    }
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t boot_ns = clock_boottime_ns();
    for (uint32_t i = 0; i < n; i++) {
        struct engine_event event = {.kind = ENGINE_PROBE_RESULT, .u.result = &results[i]};

        agent->counts.results++;
        step_at(agent, &event, now_ns, boot_ns);
    }
    return n;
}

void agent_probe_woken(void *user)
{
    struct agent *agent = user;

    if (!agent->is_stopping) {
        agent_doubt_results(agent);
        agent_probe_now_results(agent);
    }
    for (uint32_t n = 0; agent->probes != NULL && !agent->is_stopping; n += AGENT_RESULTS_AT_ONCE) {
        if (n >= AGENT_RESULTS_PER_TURN) {
            wake_signal(&agent->probe_wake); /* others get their turn first */
            return;
        }
        if (take_results(agent) < AGENT_RESULTS_AT_ONCE) {
            return;
        }
    }
}

void agent_on_peer_message(void *user, uint64_t peer, const struct peer_message *message)
{
    struct agent *agent = user;
    struct engine_event event;

    if (!agent->is_formed || !engine_event_of(peer, message, &event)) {
        return;
    }
    if (message->kind == PEER_HELLO) {
        agent_doubt_hello(agent, peer, &message->u.hello);
    }
    agent_step(agent, &event);
    if (message->kind == PEER_VOTE_CHANGE) {
        agent_rpc_poll(agent); /* `why` may wait for just this */
    }
}

void agent_take_catalog(struct agent *agent)
{
    struct engine_event event = {.kind = ENGINE_CATALOG, .u.catalog = agent->newest};

    if (!agent->is_formed || agent->newest == NULL) {
        return;
    }
    uint64_t revision = catalog_revision(agent->newest);
    if (revision == 0) {
        return; /* the cluster is still being made */
    }
    agent_step(agent, &event);
    const struct catalog *in_use = engine_catalog(agent->engine);
    if (in_use == NULL || catalog_revision(in_use) < revision) {
        return; /* no memory now: it is kept and given again */
    }
    if (in_use == agent->newest || catalog_revision(in_use) == revision) {
        agent->is_last_known_good = false;
    }
    catalog_unref(agent->newest);
    agent->newest = NULL;
    agent->lkg.is_dirty = true;
    agent->heap_has_gaps = true;
    agent_refresh_access(agent);
    agent_rpc_poll(agent);
}

/* --- forming --- */

static int start_probes(struct agent *agent, struct errmsg *err)
{
    struct probe_thread_options options = {
        .loop = agent_probe_options(agent),
        .results_wake = &agent->probe_wake,
        .watched = &agent->probe_loop,
        .makes_packets = true,
    };

    agent->probes_now = probe_now_new(&options.loop, &agent->probe_wake);
    if (agent->probes_now == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for probes on demand");
    }
    int rc = probe_thread_start(&options, &agent->probes, err);
    agent_probe_sources_follow(agent);
    if (rc == 0) {
        watchdog_add(agent->watchdog, &agent->probe_loop, "probe", probe_thread_id(agent->probes),
                     true);
    }
    return rc;
}

static int start_engine(struct agent *agent, struct errmsg *err)
{
    const struct engine_config config = {.node_id = agent->node_id,
                                         .epoch = agent->epoch,
                                         .seed = agent->node_id,
                                         .table_revision = table_writer_old_revision(agent->table)};

    agent->engine = engine_new(&config, clock_monotonic_ns());
    return agent->engine != NULL ? 0 : errmsg_set(err, ERR_NOMEM, "no memory for the engine");
}

/* Verdicts and deadlines of the time before this start, then the catalog they belong to. */
static void give_kept(struct agent *agent)
{
    struct agent_kept *kept = &agent->kept;
    size_t n_table = table_writer_old_deadlines(agent->table, NULL, 0);
    struct kept_deadline *deadlines = calloc(n_table + kept->n_deadlines + 1, sizeof *deadlines);
    int64_t age_ms = clock_wall_ms() - kept->head.wall_ms;

    if (deadlines == NULL) {
        return;
    }
    /* The table's first: the engine looks there before it looks into the file (spec.md 6). */
    table_writer_old_deadlines(agent->table, deadlines, n_table);
    if (kept->n_deadlines > 0) {
        memcpy(deadlines + n_table, kept->deadlines, kept->n_deadlines * sizeof *deadlines);
    }
    const struct last_known_good good = {.age_ms = age_ms > 0 ? (uint64_t)age_ms : 0,
                                         .verdicts = kept->verdicts,
                                         .n_verdicts = kept->n_verdicts,
                                         .deadlines = deadlines,
                                         .n_deadlines = n_table + kept->n_deadlines};
    struct engine_event event = {.kind = ENGINE_LAST_KNOWN_GOOD, .u.kept = &good};
    agent_step(agent, &event);
    free(deadlines);
    if (kept->catalog != NULL) {
        struct engine_event catalog = {.kind = ENGINE_CATALOG, .u.catalog = kept->catalog};

        agent->is_last_known_good = true;
        agent_step(agent, &catalog);
        agent_refresh_access(agent);
    }
    agent_kept_close(kept);
}

/* The file of another cluster or node is of no use. */
static void drop_foreign_kept(struct agent *agent)
{
    struct agent_kept *kept = &agent->kept;

    if (kept->is_there &&
        (memcmp(&kept->head.cluster_id, &agent->cluster_id, sizeof agent->cluster_id) != 0 ||
         kept->head.node_id != agent->node_id)) {
        log_event(LOG_LEVEL_WARNING, "last_known_good_foreign",
                  "text=\"the last-known-good file is of another cluster or node: not used\"");
        agent_kept_close(kept);
    }
}

static void form(struct agent *agent)
{
    struct errmsg err = {""};
    int rc;

    drop_foreign_kept(agent);
    if ((rc = agent_table_open(agent, &err)) != 0 || (rc = start_engine(agent, &err)) != 0 ||
        (rc = start_probes(agent, &err)) != 0) {
        log_event(LOG_LEVEL_ERROR, "cannot_form", "error=\"%s\" text=\"%s\"", err_text(rc),
                  err.text);
        return; /* housekeeping tries again */
    }
    agent_doubt_start(agent);
    agent->is_formed = true;
    mesh_set_self(agent->mesh, &agent->cluster_id, agent->node_id);
    agent_counters_formed(agent);
    log_event(LOG_LEVEL_INFO, "formed", "node=%llu epoch=%llu table_revision=%llu",
              (unsigned long long)agent->node_id, (unsigned long long)agent->epoch,
              (unsigned long long)table_writer_old_revision(agent->table));
    give_kept(agent);
    agent_take_catalog(agent);
    agent_refresh_access(agent);
}

static bool is_cluster(const struct cluster_id *id)
{
    static const struct cluster_id none;

    return memcmp(id, &none, sizeof none) != 0;
}

/* The start counter became known after the engine was made (a store that could not start), or was
 * raised (a restored directory). */
static void take_epoch(struct agent *agent)
{
    if (agent->has_status && agent->status.epoch > agent->epoch &&
        agent->status.node_id == agent->node_id) {
        agent->epoch = agent->status.epoch;
        engine_set_epoch(agent->engine, agent->epoch);
    }
}

void agent_form_if_possible(struct agent *agent)
{
    const struct store_status *status = &agent->status;

    if (agent->is_formed) {
        take_epoch(agent);
        return;
    }
    if (agent->has_status && is_cluster(&status->cluster_id) && status->node_id != 0 &&
        (status->epoch != 0 || status->state == STORE_RUNNING)) {
        agent->cluster_id = status->cluster_id;
        agent->node_id = status->node_id;
        agent->epoch = status->epoch;
        form(agent);
        return;
    }
    bool has_failed = agent->has_status &&
                      (status->state == STORE_FAILED || status->state == STORE_NEEDS_OPERATOR);
    if (agent->kept.is_there &&
        (has_failed || clock_monotonic_ns() - agent->start_ns >= AGENT_FORM_WAIT_NS)) {
        agent->cluster_id = agent->kept.head.cluster_id;
        agent->node_id = agent->kept.head.node_id;
        agent->epoch = agent->has_status ? status->epoch : 0;
        form(agent);
    }
}
