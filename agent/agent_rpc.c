/* Calls: between the mesh's sockets, the RPC server, the store and the peers. */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent/agent_internal.h"
#include "common/base/clock.h"
#include "common/base/plant.h"
#include "common/base/str.h"
#include "common/base/units.h"

/* rpc_route.socket */
enum {
    SOCKET_MESH = 0,
    SOCKET_LOCAL = 1,
    SOCKET_FORWARD = 2 /* a peer's, answered with its forward id */
};

/* --- in --- */

static uint8_t key_role_of(enum zap_role role)
{
    switch (role) {
    case ZAP_ROLE_ADMIN:
        return KEY_ROLE_ADMIN;
    case ZAP_ROLE_OPERATOR:
        return KEY_ROLE_OPERATOR;
    case ZAP_ROLE_VIEWER:
        return KEY_ROLE_VIEWER;
    case ZAP_ROLE_NODE:
    case ZAP_ROLE_NONE:
        break;
    }
    return KEY_ROLE_NONE;
}

static struct rpc_route route_of(const struct mesh_route *from, uint32_t socket,
                                 uint64_t forward_id)
{
    struct rpc_route route = {.socket = socket, .forward_id = forward_id, .n_bytes = from->n_bytes};

    memcpy(route.bytes, from->bytes, from->n_bytes);
    return route;
}

static struct rpc_frames frames_of(const struct mesh_frames *from)
{
    return (struct rpc_frames){.envelope = from->envelope,
                               .n_envelope_bytes = from->n_envelope_bytes,
                               .payload = from->payload,
                               .n_payload_bytes = from->n_payload_bytes};
}

void agent_on_call(void *user, const struct mesh_caller *caller, const struct mesh_route *route,
                   const struct mesh_frames *frames)
{
    struct agent *agent = user;
    struct rpc_identity identity = {.caller = caller->is_local ? RPC_CALLER_LOCAL : RPC_CALLER_KEY,
                                    .role = key_role_of(caller->role)};
    struct rpc_route to = route_of(route, caller->is_local ? SOCKET_LOCAL : SOCKET_MESH, 0);
    struct rpc_frames call = frames_of(frames);

    if (agent->is_stopping) {
        return;
    }
    str_copy(identity.name, sizeof identity.name, caller->name);
    rpc_server_handle(agent->rpc, clock_monotonic_ns(), &identity, &to, &call);
    agent_rpc_poll(agent);
}

void agent_on_forward_request(void *user, const struct peer_forward_request *request,
                              const struct mesh_route *route, const struct mesh_frames *frames)
{
    struct agent *agent = user;
    struct rpc_identity identity = {.caller = RPC_CALLER_PEER, .role = request->role};
    struct rpc_route to = route_of(route, SOCKET_FORWARD, request->forward_id);
    struct rpc_frames call = frames_of(frames);

    if (agent->is_stopping) {
        return;
    }
    str_copy(identity.name, sizeof identity.name, request->name);
    rpc_server_handle(agent->rpc, clock_monotonic_ns(), &identity, &to, &call);
    agent_rpc_poll(agent);
}

void agent_on_forward_response(void *user, uint64_t peer, uint64_t forward_id,
                               const struct mesh_frames *frames)
{
    struct agent *agent = user;
    struct rpc_frames answer = frames_of(frames);

    if (agent->is_stopping) {
        return;
    }
    rpc_server_forward_answer(agent->rpc, clock_monotonic_ns(), peer, forward_id, &answer);
    agent_rpc_poll(agent);
}

/* --- hooks of the server --- */

static void hook_reply(void *user, const struct rpc_route *route, const struct rpc_frames *frames)
{
    struct agent *agent = user;
    struct mesh_route to = {.is_local = route->socket == SOCKET_LOCAL, .n_bytes = route->n_bytes};
    const struct mesh_frames answer = {.envelope = frames->envelope,
                                       .n_envelope_bytes = frames->n_envelope_bytes,
                                       .payload = frames->payload,
                                       .n_payload_bytes = frames->n_payload_bytes};

    memcpy(to.bytes, route->bytes, route->n_bytes);
    if (route->socket == SOCKET_FORWARD) {
        mesh_answer_forward(agent->mesh, &to, route->forward_id, &answer);
    } else {
        mesh_answer(agent->mesh, &to, &answer);
    }
}

static int hook_propose(void *user, uint64_t cookie, const uint8_t *command, size_t n_bytes)
{
    return agent_store_propose(user, OWNER_RPC, cookie, command, n_bytes);
}

static int hook_barrier(void *user, uint64_t cookie)
{
    return agent_store_barrier(user, cookie);
}

static int hook_init(void *user, uint64_t cookie, const struct cluster_init *init,
                     struct errmsg *err)
{
    return agent_store_init(user, cookie, init, err);
}

static int hook_forward(void *user, uint64_t forward_id, uint64_t node_id,
                        const struct rpc_identity *identity, const struct rpc_frames *frames)
{
    struct agent *agent = user;
    struct peer_forward_request request = {.forward_id = forward_id, .role = identity->role};
    const struct mesh_frames call = {.envelope = frames->envelope,
                                     .n_envelope_bytes = frames->n_envelope_bytes,
                                     .payload = frames->payload,
                                     .n_payload_bytes = frames->n_payload_bytes};

    str_copy(request.name, sizeof request.name, identity->name);
    return mesh_forward(agent->mesh, node_id, &request, &call);
}

static void hook_ask_peers(void *user, struct target_id target)
{
    struct agent *agent = user;
    struct engine_event event = {.kind = ENGINE_ASK, .u.target = target};

    if (agent->is_formed) {
        agent_step(agent, &event);
    }
}

static int hook_override_hold(void *user, const struct hold_override *hold)
{
    struct agent *agent = user;
    struct engine_event event = {.kind = ENGINE_HOLD, .u.hold = hold};

    if (!agent->is_formed || engine_catalog(agent->engine) == NULL) {
        return ERR_NOTREADY;
    }
    agent_step(agent, &event);
    return 0;
}

static const struct engine *hook_engine(void *user)
{
    const struct agent *agent = user;

    return agent->engine;
}

static int64_t hook_wall_ms(void *user)
{
    (void)user;
    return clock_wall_ms();
}

static uint64_t hook_boot_ns(void *user)
{
    (void)user;
    return clock_boottime_ns();
}

/* --- dry runs, on the pool --- */

struct check_job {
    uv_work_t work;
    struct agent *agent;
    uint64_t cookie;
    struct catalog *catalog; /* reference */
    struct command *command; /* owned */
    struct apply_answer answer;
    struct catalog_refusals refusals;
    struct errmsg err;
    int rc;
};

static void run_check(uv_work_t *work)
{
    struct check_job *job = work->data;

    job->rc =
        rpc_check_catalog(job->catalog, job->command, &job->answer, &job->refusals, &job->err);
}

static void free_check(struct check_job *job)
{
    command_close(job->command);
    free(job->command);
    catalog_unref(job->catalog);
    free(job);
}

static void on_checked(uv_work_t *work, int status)
{
    struct check_job *job = work->data;
    struct agent *agent = job->agent;

    (void)status;
    if (!agent->is_stopping) {
        const struct rpc_done done = {.outcome = job->rc == 0 ? RPC_DONE : RPC_NOT_READY,
                                      .revision = catalog_revision(job->catalog),
                                      .answer = job->rc == 0 ? &job->answer : NULL,
                                      .refusals = job->rc == 0 ? &job->refusals : NULL,
                                      .message = job->rc == 0 ? NULL : job->err.text};

        rpc_server_done(agent->rpc, clock_monotonic_ns(), job->cookie, &done);
        agent_rpc_poll(agent);
    }
    free_check(job);
}

static int hook_check(void *user, uint64_t cookie, struct command *command)
{
    struct agent *agent = user;
    struct catalog *catalog = agent->engine != NULL ? engine_catalog(agent->engine) : NULL;
    struct check_job *job = catalog != NULL ? calloc(1, sizeof *job) : NULL;

    if (job == NULL) {
        command_close(command);
        free(command);
        return catalog == NULL ? ERR_NOTREADY : ERR_NOMEM;
    }
    *job = (struct check_job){.agent = agent, .cookie = cookie, .command = command};
    job->catalog = catalog_ref(catalog);
    job->work.data = job;
    if (uv_queue_work(&agent->loop, &job->work, run_check, on_checked) != 0) {
        free_check(job);
        return ERR_BUSY;
    }
    return 0;
}

/* --- simulations, on the pool --- */

struct simulation_job {
    uv_work_t work;
    struct agent *agent;
    uint64_t cookie;
    struct rpc_simulation *simulation; /* owned */
};

static void run_simulation(uv_work_t *work)
{
    struct simulation_job *job = work->data;

    if (!plant_is("simulation-on-the-loop")) {
        rpc_simulation_run(job->simulation);
    }
}

static void on_simulated(uv_work_t *work, int status)
{
    struct simulation_job *job = work->data;
    struct agent *agent = job->agent;

    (void)status;
    if (agent->is_stopping) {
        rpc_simulation_free(job->simulation);
    } else {
        rpc_server_simulated(agent->rpc, clock_monotonic_ns(), job->cookie, job->simulation);
        agent_rpc_poll(agent);
    }
    free(job);
}

static int hook_simulate(void *user, uint64_t cookie, struct rpc_simulation *simulation)
{
    struct agent *agent = user;
    struct simulation_job *job = calloc(1, sizeof *job);

    if (job == NULL) {
        rpc_simulation_free(simulation);
        return ERR_NOMEM;
    }
    *job = (struct simulation_job){.agent = agent, .cookie = cookie, .simulation = simulation};
    job->work.data = job;
    if (plant_is("simulation-on-the-loop")) {
        rpc_simulation_run(simulation);
    }
    if (uv_queue_work(&agent->loop, &job->work, run_simulation, on_simulated) != 0) {
        rpc_simulation_free(simulation);
        free(job);
        return ERR_BUSY;
    }
    return 0;
}

int agent_rpc_open(struct agent *agent, struct errmsg *err)
{
    const struct rpc_hooks hooks = {.user = agent,
                                    .reply = hook_reply,
                                    .propose = hook_propose,
                                    .barrier = hook_barrier,
                                    .init = hook_init,
                                    .check = hook_check,
                                    .simulate = hook_simulate,
                                    .probe = agent_probe_now,
                                    .store = agent_view_store,
                                    .forward = hook_forward,
                                    .ask_peers = hook_ask_peers,
                                    .override_hold = hook_override_hold,
                                    .engine = hook_engine,
                                    .node = agent_view_node,
                                    .peer = agent_view_peer,
                                    .data_plane = agent_view_data_plane,
                                    .ready_check = agent_view_ready,
                                    .counters = agent_view_counters,
                                    .wall_ms = hook_wall_ms,
                                    .boot_ns = hook_boot_ns};
    uint64_t seed;

    randombytes_buf(&seed, sizeof seed);
    agent->rpc = rpc_server_new(&hooks, seed);
    return agent->rpc != NULL ? 0 : errmsg_set(err, ERR_NOMEM, "no memory for the RPC server");
}

/* --- what the store says --- */

static uint8_t outcome_of(const struct store_completion *completion)
{
    switch ((enum store_outcome)completion->outcome) {
    case STORE_DONE:
        return RPC_DONE;
    case STORE_NOT_LEADER:
        return RPC_NOT_LEADER;
    case STORE_UNKNOWN:
        return RPC_UNKNOWN;
    case STORE_DISK_FULL:
        return RPC_DISK_FULL;
    case STORE_BUSY:
        return RPC_BUSY;
    case STORE_NOT_READY:
        return RPC_NOT_READY;
    case STORE_REFUSED:
        return RPC_REFUSED;
    case STORE_EXISTS:
        return RPC_EXISTS;
    case STORE_OUTCOME_NONE:
        break;
    }
    return RPC_UNKNOWN;
}

void agent_rpc_completion(struct agent *agent, uint64_t rpc_cookie,
                          const struct store_completion *completion)
{
    struct apply_answer answer;
    struct rpc_done done = {
        .outcome = outcome_of(completion),
        .revision = completion->revision,
        .message = completion->message.text[0] != '\0' ? completion->message.text : NULL};

    if (completion->kind == STORE_REQUEST_PROPOSE && completion->outcome == STORE_DONE) {
        if (fsm_catalog_answer(completion, &answer)) {
            done.answer = &answer;
        } else {
            done.outcome = RPC_UNKNOWN;
        }
    }
    rpc_server_done(agent->rpc, clock_monotonic_ns(), rpc_cookie, &done);
}

/* --- time --- */

void agent_on_rpc_timer(uv_timer_t *timer)
{
    agent_rpc_poll(timer->data);
}

void agent_rpc_poll(struct agent *agent)
{
    if (agent->is_stopping) {
        return;
    }
    rpc_server_poll(agent->rpc, clock_monotonic_ns());
    uint64_t next_ns = rpc_server_next_ns(agent->rpc);
    if (next_ns == UINT64_MAX) {
        uv_timer_stop(&agent->rpc_timer);
        return;
    }
    uv_timer_start(&agent->rpc_timer, agent_on_rpc_timer, agent_delay_ms(next_ns), 0);
}
