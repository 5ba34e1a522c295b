#include "agent/agent.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/accept_gate.h"
#include "agent/agent_internal.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/base/units.h"

#define IO_THREADS 1 /* of each ZeroMQ context: keeps the order of events of one connection */

int agent_exit_code(int err)
{
    switch (err) {
    case 0:
        return AGENT_EXIT_STOPPED;
    case ERR_USAGE:
        return AGENT_EXIT_USAGE;
    case ERR_CONFIG:
        return AGENT_EXIT_CONFIG;
    default:
        return AGENT_EXIT_INTERNAL;
    }
}

uint64_t agent_delay_ms(uint64_t until_ns)
{
    uint64_t now_ns = clock_monotonic_ns();

    return until_ns > now_ns ? (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 1;
}

static void on_signal(uv_signal_t *handle, int signal_number)
{
    struct agent *agent = handle->data;

    if (agent->is_stopping) {
        log_event(LOG_LEVEL_WARNING, "stop_cut_short", "signal=%d", signal_number);
        _exit(AGENT_EXIT_STOPPED);
    }
    log_event(LOG_LEVEL_INFO, "stopping", "signal=%d", signal_number);
    agent->is_stopping = true;
    uv_stop(&agent->loop);
}

/* Only keeps the loop turning. */
static void on_beat(uv_timer_t *timer)
{
    (void)timer;
}

/* After each poll: a loop that runs timers and never polls stands still as well. */
static void on_check(uv_check_t *check)
{
    struct agent *agent = check->data;

    watchdog_beat(&agent->health_loop);
}

static void count_turned_away(struct agent *agent)
{
    static const char *const lanes[ACCEPT_SIDES] = {"network", "network", "local"};

    for (enum accept_side side = 0; side < ACCEPT_SIDES; side++) {
        const struct accept_refused refused = accept_gate_take_refused(side);
        char who[ENDPOINT_TEXT_BYTES] = "unknown";

        if (refused.last.addr.family != ADDR_NONE) {
            endpoint_format(&refused.last, who);
        }
        refusals_note_many(&agent->refusals, REFUSAL_no_descriptor, refused.n, lanes[side], who);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    count_turned_away(agent);
    agent_doubt_tick(agent);
    agent_table_tick(agent);
}

/* Names resolve to what they are dialled at. */
static void know_members(const struct agent *agent)
{
    struct addr members[LIMIT_NODES];
    size_t n = 0;

    for (uint32_t i = 0; i < agent->members.n_nodes && n < LIMIT_NODES; i++) {
        struct mesh_peer_status status = {.is_up = false};
        struct endpoint at;

        if (mesh_peer_status(agent->mesh, agent->members.nodes[i].node_id, &status) &&
            endpoint_parse(status.address, &at, NULL) == 0) {
            members[n++] = at.addr;
        }
    }
    accept_gate_know(members, n);
}

/* A changed catalog leaves gaps in the heap, which nothing else gives back. */
static void give_back_gaps(struct agent *agent)
{
    if (agent->heap_has_gaps) {
        agent->heap_has_gaps = false;
        (void)malloc_trim(0);
    }
}

static void on_housekeeping(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    agent_form_if_possible(agent);
    agent_doubt_choose(agent);
    agent_refresh_access(agent); /* keys expire by time */
    know_members(agent);
    agent_lkg_tick(agent);
    agent_probe_sources_tick(agent);
    agent_probe_budget_tick(agent);
    agent_watch_tick(agent);
    agent_rpc_poll(agent);
    give_back_gaps(agent);
}

static void on_zap_refusal(void *user)
{
    struct agent *agent = user;
    struct zap_refusal refusal;

    while (zap_next_refusal(agent->zap, &refusal)) {
        refusals_note_zap(&agent->refusals, &refusal);
    }
}

/* --- opening, in order; what fails is undone by agent_close --- */

static void set_paths(struct agent *agent)
{
    const struct agent_config *config = agent->config;

    snprintf(agent->data_dir, sizeof agent->data_dir, "%s", config->data_dir);
    snprintf(agent->table_dir, sizeof agent->table_dir, "%s/tables", config->run_dir);
    snprintf(agent->status_dir, sizeof agent->status_dir, "%s/status", config->run_dir);
    snprintf(agent->socket_path, sizeof agent->socket_path, "%s/agent.sock", config->run_dir);
}

static int open_wakes(struct agent *agent, struct errmsg *err)
{
    struct wake *wakes[] = {&agent->zap_wake, &agent->store_wake, &agent->probe_wake};

    for (size_t i = 0; i < 3; i++) {
        int rc = wake_init(wakes[i]);

        if (rc != 0) {
            return errmsg_set(err, rc, "cannot open an eventfd: raise the limit of open files");
        }
        agent->n_wakes++;
    }
    return 0;
}

static int open_loop(struct agent *agent, struct errmsg *err)
{
    uv_timer_t *timers[] = {&agent->beat,         &agent->tick,      &agent->housekeeping,
                            &agent->engine_timer, &agent->rpc_timer, &agent->layout.timer};

    if (uv_loop_init(&agent->loop) != 0) {
        return errmsg_set(err, ERR_INTERNAL, "cannot make the event loop");
    }
    agent->has_loop = true;
    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++) {
        uv_timer_init(&agent->loop, timers[i]);
        timers[i]->data = agent;
    }
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&agent->loop, &agent->signals[i]);
        agent->signals[i].data = agent;
    }
    uv_check_init(&agent->loop, &agent->beat_check);
    agent->beat_check.data = agent;
    uv_check_start(&agent->beat_check, on_check);
    agent->has_handles = true;
    uv_signal_start(&agent->signals[0], on_signal, SIGTERM);
    uv_signal_start(&agent->signals[1], on_signal, SIGINT);
    int rc = zmq_hub_start(&agent->hub, &agent->loop);
    if (rc == 0) {
        rc = wake_watch_start(&agent->zap_watch, &agent->loop, &agent->zap_wake, on_zap_refusal,
                              agent);
    }
    if (rc == 0) {
        rc = wake_watch_start(&agent->store_watch, &agent->loop, &agent->store_wake,
                              agent_store_woken, agent);
    }
    if (rc == 0) {
        rc = wake_watch_start(&agent->probe_watch, &agent->loop, &agent->probe_wake,
                              agent_probe_woken, agent);
    }
    return rc == 0 ? 0 : errmsg_set(err, rc, "cannot set up the event loop");
}

static int open_plumbing(struct agent *agent, struct errmsg *err)
{
    struct zap_options zap = {.n_contexts = 2, .report_wake = &agent->zap_wake};

    agent->context = zmq_ctx_new();
    agent->store_context = zmq_ctx_new();
    if (agent->context == NULL || agent->store_context == NULL) {
        return errmsg_set(err, ERR_INTERNAL, "cannot make a ZeroMQ context");
    }
    zmq_ctx_set(agent->context, ZMQ_IO_THREADS, IO_THREADS);
    zmq_ctx_set(agent->store_context, ZMQ_IO_THREADS, IO_THREADS);
    zap.contexts[0] = agent->context;
    zap.contexts[1] = agent->store_context;
    int rc = zap_start(&zap, &agent->zap, err);
    if (rc != 0) {
        return rc;
    }
    rc = resolver_start(&agent->resolver);
    if (rc == 0) {
        rc = watchdog_start(WATCHDOG_ROUND_MS, &agent->watchdog);
    }
    return rc == 0 ? 0 : errmsg_set(err, rc, "cannot start a thread");
}

static int open_mesh(struct agent *agent, struct errmsg *err)
{
    struct mesh_options options = {
        .context = agent->context,
        .hub = &agent->hub,
        .resolver = agent->resolver,
        .keys = agent->keys,
        .n_bind = agent->config->n_mesh_listen,
        .local_path = agent->socket_path,
        .local_is_private = agent->config->socket_is_private,
        .refusals = &agent->refusals,
        .hooks = {.user = agent,
                  .message = agent_on_peer_message,
                  .call = agent_on_call,
                  .forward_request = agent_on_forward_request,
                  .forward_response = agent_on_forward_response},
    };

    memcpy(options.bind, agent->config->mesh_listen, sizeof options.bind);
    return mesh_open(&options, &agent->mesh, err);
}

static void start_timers(struct agent *agent)
{
    uv_timer_start(&agent->beat, on_beat, 0, AGENT_BEAT_MS);
    uv_timer_start(&agent->tick, on_tick, 0, AGENT_TICK_MS);
    uv_timer_start(&agent->housekeeping, on_housekeeping, 0, AGENT_HOUSEKEEPING_MS);
    watchdog_add(agent->watchdog, &agent->health_loop, "health", pthread_self(), true);
}

static int agent_open(struct agent *agent, struct errmsg *err)
{
    int rc;

    set_paths(agent);
    if ((rc = boot_id_read(&agent->boot_id, err)) != 0 || (rc = open_wakes(agent, err)) != 0 ||
        (rc = open_loop(agent, err)) != 0 || (rc = open_plumbing(agent, err)) != 0 ||
        (rc = open_mesh(agent, err)) != 0 || (rc = agent_rpc_open(agent, err)) != 0) {
        return rc;
    }
    agent_counters_open(agent);
    agent_doubt_open(agent);
    agent_lkg_read(agent);
    agent_refresh_access(agent);
    rc = agent_store_open(agent, err);
    if (rc == 0) {
        start_timers(agent);
    }
    return rc;
}

/* --- closing --- */

static void on_mesh_closed(void *user)
{
    struct agent *agent = user;

    zmq_hub_stop(&agent->hub);
}

static void close_handles(struct agent *agent)
{
    uv_handle_t *handles[] = {
        (uv_handle_t *)&agent->beat,         (uv_handle_t *)&agent->tick,
        (uv_handle_t *)&agent->beat_check,   (uv_handle_t *)&agent->housekeeping,
        (uv_handle_t *)&agent->engine_timer, (uv_handle_t *)&agent->rpc_timer,
        (uv_handle_t *)&agent->layout.timer, (uv_handle_t *)&agent->signals[0],
        (uv_handle_t *)&agent->signals[1]};

    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        uv_close(handles[i], NULL);
    }
    struct wake_watch *watches[] = {&agent->zap_watch, &agent->store_watch, &agent->probe_watch};
    for (size_t i = 0; i < 3; i++) {
        if (watches[i]->poll.loop != NULL) {
            wake_watch_stop(watches[i]);
        }
    }
}

static void close_loop(struct agent *agent)
{
    if (!agent->has_loop) {
        return;
    }
    if (agent->mesh != NULL) {
        mesh_close(agent->mesh, on_mesh_closed, agent);
    } else if (agent->hub.loop != NULL) {
        zmq_hub_stop(&agent->hub);
    }
    if (agent->has_handles) {
        close_handles(agent);
    }
    /* Also waits for what runs on the pool; it belongs to this loop. */
    uv_run(&agent->loop, UV_RUN_DEFAULT);
    uv_loop_close(&agent->loop);
}

static void close_threads(struct agent *agent)
{
    if (agent->watchdog != NULL) {
        watchdog_stop(agent->watchdog);
    }
    if (agent->resolver != NULL) {
        resolver_stop(agent->resolver);
    }
    if (agent->zap != NULL) {
        zap_stop(agent->zap);
    }
    if (agent->context != NULL) {
        zmq_ctx_term(agent->context);
    }
    if (agent->store_context != NULL) {
        zmq_ctx_term(agent->store_context);
    }
    struct wake *wakes[] = {&agent->zap_wake, &agent->store_wake, &agent->probe_wake};
    for (uint32_t i = 0; i < agent->n_wakes; i++) {
        wake_close(wakes[i]);
    }
}

/* Data planes go on with the last table; the peers see this node's votes age. */
static void agent_close(struct agent *agent)
{
    if (agent->watchdog != NULL) {
        watchdog_remove(agent->watchdog, &agent->health_loop);
        watchdog_remove(agent->watchdog, &agent->probe_loop);
    }
    probe_thread_stop(agent->probes);
    probe_now_free(agent->probes_now);
    agent_doubt_close(agent);
    if (agent->store != NULL) {
        store_stop(agent->store); /* hands leadership over */
    }
    rpc_server_free(agent->rpc);
    close_loop(agent);
    close_threads(agent);
    agent_table_close(agent);
    probe_plan_editor_close(&agent->plan);
    route_watch_close(&agent->sources.routes);
    engine_actions_close(&agent->actions);
    engine_free(agent->engine);
    catalog_unref(agent->newest);
    agent_kept_close(&agent->kept);
    if (agent->has_fsm) {
        fsm_catalog_close(&agent->fsm);
    }
    ring_free(agent->lane_events);
    zap_table_unref(agent->zap_table);
    free(agent->late_rows);
    free(agent->plane_rows);
    free(agent->drain_rows);
}

static void on_alarm(int signal_number)
{
    static const char text[] = "event=stop_cut_short text=\"the disk did not answer in time\"\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);

    (void)signal_number;
    (void)n;
    _exit(AGENT_EXIT_STOPPED); /* everything on disk is safe at any moment */
}

int agent_run(const struct agent_config *config, const struct curve_keys *keys, struct errmsg *err)
{
    struct agent *agent = calloc(1, sizeof *agent);

    if (agent == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the agent");
    }
    agent->config = config;
    agent->keys = keys;
    agent->start_ns = clock_monotonic_ns();
    agent->doubt.port.fd = -1;
    route_watch_open(&agent->sources.routes);
    engine_actions_init(&agent->actions);
    probe_plan_editor_init(&agent->plan);
    agent->plan.rates = config->probe_rates;
    int rc = agent_open(agent, err);
    if (rc == 0) {
        log_event(LOG_LEVEL_INFO, "started", "version=%s data_dir=%s run_dir=%s", JURY_VERSION,
                  agent->data_dir, config->run_dir);
        uv_run(&agent->loop, UV_RUN_DEFAULT);
        signal(SIGALRM, on_alarm);
        alarm((config->stop_timeout_ms + 999) / 1000);
    }
    agent_close(agent);
    alarm(0);
    free(agent);
    if (rc == 0) {
        log_event(LOG_LEVEL_INFO, "stopped", "exit_code=%d", AGENT_EXIT_STOPPED);
    }
    return rc;
}
