/* Local methods and reads: the shared barrier, the wait for this node's engine, the answer. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "common/base/plant.h"
#include "common/wire/object.h"
#include "common/wire/unpack.h"
#include "jury/v1/config.pb-c.h"

#define BARRIER_METHOD "jury.v1.ClusterService/ReadBarrier"

static bool is_leading(const struct rpc_store *store)
{
    return store->role == RPC_ROLE_LEADER && store->is_ready;
}

static struct rpc_store store_view(struct rpc_server *server)
{
    struct rpc_store store = {.leader_age_ns = RPC_NEVER_NS};

    server->hooks.store(server->hooks.user, &store);
    return store;
}

static uint64_t own_node_id(struct rpc_server *server)
{
    struct rpc_node node = {0};

    server->hooks.node(server->hooks.user, &node);
    return node.node_id;
}

static uint64_t engine_revision(struct rpc_server *server)
{
    const struct catalog *catalog = rpc_server_catalog(server);

    return catalog != NULL ? catalog_revision(catalog) : 0;
}

/* --- the answer --- */

static struct view view_of(struct rpc_server *server, const struct call *call,
                           struct wire_arena *arena)
{
    return (struct view){
        .server = server,
        .actor = call->identity.name,
        .catalog = rpc_server_catalog(server),
        .engine = server->hooks.engine(server->hooks.user),
        .now_ns = server->now_ns,
        .boot_ns = server->hooks.boot_ns(server->hooks.user),
        .wall_ms = server->hooks.wall_ms(server->hooks.user),
        .arena = arena,
    };
}

static void begin_check(struct rpc_server *server, struct call *call,
                        const ProtobufCMessage *request)
{
    struct command *command = calloc(1, sizeof *command);
    struct errmsg err = {{0}};
    uint32_t index = UINT32_MAX;
    int rc = command != NULL ? call->handler->command(request, command, &index, &err)
                             : errmsg_set(&err, ERR_NOMEM, "out of memory");

    if (rc != 0) {
        free(command);
        rpc_call_refuse_at(server, call, rc, index, &err);
        return;
    }
    command->wall_ms = server->hooks.wall_ms(server->hooks.user);
    call->stage = CALL_CHECK;
    call->stage_ns = 0;
    call->cookie = rpc_new_cookie(server);
    rc = server->hooks.check(server->hooks.user, call->cookie, command);
    if (rc != 0) {
        errmsg_set(&err, rc, "the dry run cannot be made now: %s", err_text(rc));
        rpc_call_refuse(server, call, rc, &err);
    }
}

static void begin_simulation(struct rpc_server *server, struct call *call, const struct view *view,
                             const ProtobufCMessage *request)
{
    struct rpc_simulation *job = NULL;
    struct errmsg err = {{0}};
    int rc = call->handler->prepare(view, request, &job, &err);

    if (rc == 0) {
        call->stage = CALL_SIMULATION;
        call->stage_ns = 0;
        call->cookie = rpc_new_cookie(server);
        rc = server->hooks.simulate(server->hooks.user, call->cookie, job);
        server->n_simulations += rc == 0;
        if (rc != 0) {
            errmsg_set(&err, rc, "the simulation cannot be made now: %s", err_text(rc));
        }
    }
    if (rc != 0) {
        rpc_call_refuse(server, call, rc, &err);
    }
}

static void run_with(struct rpc_server *server, struct call *call,
                     const struct rpc_simulation *simulation)
{
    struct wire_arena arena;
    struct errmsg err = {{0}};
    ProtobufCMessage *request, *response = NULL;

    wire_arena_init(&arena, 2 * RPC_ANSWER_BUDGET_BYTES);
    struct view view = view_of(server, call, &arena);
    int rc = rpc_call_request(call, &arena, &request, &err);
    view.simulation = simulation;
    if (rc == 0 && (call->is_dry_run || (call->handler->prepare != NULL && simulation == NULL))) {
        if (call->is_dry_run) {
            begin_check(server, call, request);
        } else {
            begin_simulation(server, call, &view, request);
        }
        wire_arena_close(&arena);
        return;
    }
    if (rc == 0) {
        rc = call->handler->answer(&view, request, &response, &err);
    }
    if (rc == 0) {
        uint64_t revision = engine_revision(server);

        call->is_stale = call->is_stale || revision < call->want_revision;
        rpc_call_answer(server, call, &arena, response, revision);
    } else {
        rpc_call_refuse(server, call, rc, &err);
    }
    wire_arena_close(&arena);
}

static void run(struct rpc_server *server, struct call *call)
{
    run_with(server, call, NULL);
}

void rpc_read_simulated(struct rpc_server *server, struct call *call,
                        const struct rpc_simulation *job)
{
    run_with(server, call, job);
}

/* `why` first asks the peers. Returns true while it waits for them. */
static bool waits_for_peers(struct rpc_server *server, struct call *call)
{
    struct wire_arena arena;
    ProtobufCMessage *request;
    bool waits = false;

    if (strcmp(call->method->name, "jury.v1.VerdictService/Why") != 0 ||
        plant_is("why-asks-nobody")) {
        return false;
    }
    wire_arena_init(&arena, RPC_ANSWER_BUDGET_BYTES);
    struct view view = view_of(server, call, &arena);
    if (rpc_call_request(call, &arena, &request, NULL) == 0) {
        if (call->stage != CALL_PEERS) {
            struct target_id target = handle_why_target(&view, request);

            call->stage = CALL_PEERS;
            call->stage_ns = server->now_ns + RPC_PEERS_WAIT_NS;
            call->peers_ns = server->now_ns;
            if (target.slot != CATALOG_NO_SLOT) {
                server->hooks.ask_peers(server->hooks.user, target);
            }
        }
        waits = server->now_ns < call->stage_ns && handle_why_waits(&view, request, call->peers_ns);
    }
    wire_arena_close(&arena);
    return waits;
}

static void refuse_behind(struct rpc_server *server, struct call *call)
{
    struct errmsg err;

    errmsg_set(&err, ERR_BUSY,
               "this node has revision %" PRIu64 " and not yet %" PRIu64
               ": ask another node, or with stale",
               engine_revision(server), call->want_revision);
    rpc_call_refuse(server, call, ERR_BUSY, &err);
}

static void wait_revision(struct rpc_server *server, struct call *call)
{
    call->stage = CALL_REVISION;
    call->stage_ns = server->now_ns + RPC_REVISION_WAIT_NS;
    rpc_read_poll(server, call);
}

static void poll_revision(struct rpc_server *server, struct call *call)
{
    bool is_there = engine_revision(server) >= call->want_revision;

    if (!is_there && server->now_ns < call->stage_ns) {
        return;
    }
    if (!is_there && call->method->kind != METHOD_LOCAL) {
        refuse_behind(server, call);
    } else if (!waits_for_peers(server, call)) {
        run(server, call);
    }
}

/* --- begin and go on --- */

void rpc_read_begin(struct rpc_server *server, struct call *call)
{
    bool is_catalog_read = call->method->kind != METHOD_LOCAL;
    struct errmsg err;

    if (is_catalog_read && rpc_server_catalog(server) == NULL) {
        errmsg_set(&err, ERR_NOTREADY,
                   "this node has no catalog yet: it waits for `nodectl cluster init` or for its "
                   "peers");
        rpc_call_refuse(server, call, ERR_NOTREADY, &err);
        return;
    }
    if (!is_catalog_read || call->is_stale) {
        wait_revision(server, call);
        return;
    }
    /* The barrier that is under way began before this call. */
    call->stage = CALL_BARRIER;
    call->barrier = server->barrier.number + 1;
    call->stage_ns = server->now_ns + RPC_LEADER_WAIT_NS;
}

static void poll_barrier_call(struct rpc_server *server, struct call *call)
{
    if (server->now_ns < call->stage_ns) {
        return;
    }
    struct rpc_store store = store_view(server);
    if (server->barrier.state == BARRIER_IDLE && store.leader_id == 0 && !is_leading(&store)) {
        rpc_refuse_no_leader(server, call);
    } else {
        call->stage_ns = server->now_ns + RPC_LEADER_WAIT_NS; /* a slow leader is one */
    }
}

void rpc_read_poll(struct rpc_server *server, struct call *call)
{
    if (call->stage == CALL_BARRIER) {
        poll_barrier_call(server, call);
    } else if (call->stage == CALL_REVISION) {
        poll_revision(server, call);
    } else if (call->stage == CALL_PEERS && !waits_for_peers(server, call)) {
        run(server, call);
    }
}

/* --- the barrier --- */

static bool is_wanted(const struct rpc_server *server)
{
    for (size_t i = 0; server->n_calls > 0 && i < LIMIT_RPC_OUTSTANDING; i++) {
        if (server->calls[i].stage == CALL_BARRIER) {
            return true;
        }
    }
    return false;
}

/* A call that a peer forwarded here as to the leader is never forwarded on. */
static void refuse_forwarded(struct rpc_server *server)
{
    for (size_t i = 0; i < LIMIT_RPC_OUTSTANDING; i++) {
        struct call *call = &server->calls[i];
        struct errmsg err;

        if (call->stage == CALL_BARRIER && call->identity.caller == RPC_CALLER_PEER) {
            errmsg_set(&err, ERR_NOTLEADER, "this node does not lead");
            rpc_call_refuse(server, call, ERR_NOTLEADER, &err);
        }
    }
}

static int forward_barrier(struct rpc_server *server, uint64_t leader_id)
{
    struct wire_arena arena;
    struct rpc_frames frames = {0};
    struct rpc_identity identity = {.caller = RPC_CALLER_PEER, .role = KEY_ROLE_VIEWER};
    int rc = ERR_NOMEM;

    snprintf(identity.name, sizeof identity.name, "node-%" PRIu64, own_node_id(server));
    wire_arena_init(&arena, 65536);
    Jury__V1__Request *request = WIRE_NEW(&arena, Jury__V1__Request, jury__v1__request);
    if (request != NULL) {
        request->api_version = RPC_API_VERSION;
        request->method = wire_text(&arena, BARRIER_METHOD);
        request->deadline_ms = RPC_DEADLINE_MS_MAX;
        request->request_id.data = wire_alloc(&arena, REQUEST_ID_BYTES);
        request->request_id.len = REQUEST_ID_BYTES;
    }
    if (!arena.failed) {
        memcpy(request->request_id.data, &server->barrier.cookie, sizeof server->barrier.cookie);
        frames.envelope = wire_pack(&request->base, &arena, &frames.n_envelope_bytes);
    }
    if (frames.envelope != NULL) {
        rc = server->hooks.forward(server->hooks.user, server->barrier.cookie, leader_id, &identity,
                                   &frames);
    }
    wire_arena_close(&arena);
    return rc;
}

static void start_barrier(struct rpc_server *server)
{
    struct barrier *barrier = &server->barrier;
    struct rpc_store store = store_view(server);
    int rc;

    if (!is_leading(&store)) {
        refuse_forwarded(server);
    }
    if (!is_wanted(server)) {
        return;
    }
    barrier->cookie = rpc_new_cookie(server);
    if (is_leading(&store)) {
        barrier->state = BARRIER_LOCAL;
        rc = server->hooks.barrier(server->hooks.user, barrier->cookie);
    } else if (store.leader_id != 0 && store.leader_id != own_node_id(server)) {
        barrier->state = BARRIER_FORWARDED;
        barrier->leader_id = store.leader_id;
        barrier->again_ns = server->now_ns + RPC_BARRIER_AGAIN_NS;
        rc = forward_barrier(server, store.leader_id);
    } else {
        rc = ERR_NOLEADER;
    }
    if (rc != 0) {
        barrier->state = BARRIER_IDLE;
        barrier->retry_ns = server->now_ns + RPC_RETRY_NS;
        return;
    }
    barrier->number++;
    server->counters.barriers++;
}

static void fail_barrier(struct rpc_server *server)
{
    server->barrier.state = BARRIER_IDLE;
    server->barrier.retry_ns = server->now_ns + RPC_RETRY_NS;
}

/* A forwarded barrier whose answer has not come: asked again under its id, as writes are. */
static void poll_forwarded(struct rpc_server *server)
{
    struct barrier *barrier = &server->barrier;
    struct rpc_store store = store_view(server);

    if (store.leader_id != barrier->leader_id || !is_wanted(server)) {
        barrier->state = BARRIER_IDLE;
        barrier->retry_ns = server->now_ns;
    } else if (server->now_ns >= barrier->again_ns) {
        barrier->again_ns = server->now_ns + RPC_BARRIER_AGAIN_NS;
        if (forward_barrier(server, barrier->leader_id) != 0) {
            fail_barrier(server);
        }
    }
}

void rpc_barrier_poll(struct rpc_server *server)
{
    struct barrier *barrier = &server->barrier;

    if (barrier->state == BARRIER_FORWARDED) {
        poll_forwarded(server);
    }
    if (barrier->state == BARRIER_IDLE && server->now_ns >= barrier->retry_ns &&
        is_wanted(server)) {
        start_barrier(server);
    }
}

/* All reads that began before this barrier did may go on. */
static void complete(struct rpc_server *server, uint64_t revision)
{
    server->barrier.state = BARRIER_IDLE;
    server->barrier.retry_ns = server->now_ns;
    for (size_t i = 0; i < LIMIT_RPC_OUTSTANDING; i++) {
        struct call *call = &server->calls[i];

        if (call->stage == CALL_BARRIER && call->barrier <= server->barrier.number) {
            if (revision > call->want_revision) {
                call->want_revision = revision;
            }
            wait_revision(server, call);
        }
    }
}

bool rpc_barrier_done(struct rpc_server *server, uint64_t cookie, const struct rpc_done *done)
{
    if (server->barrier.state != BARRIER_LOCAL || server->barrier.cookie != cookie) {
        return false;
    }
    if (done->outcome == RPC_DONE) {
        complete(server, done->revision);
    } else {
        fail_barrier(server);
    }
    return true;
}

bool rpc_barrier_answered(struct rpc_server *server, uint64_t node_id, uint64_t forward_id,
                          const struct rpc_frames *frames)
{
    static const struct wire_limits limits = {.bytes_max = RPC_ENVELOPE_BYTES_MAX,
                                              .elements_max = 256};
    struct barrier *barrier = &server->barrier;
    struct wire_arena arena;
    ProtobufCMessage *message;

    if (barrier->state != BARRIER_FORWARDED || barrier->cookie != forward_id ||
        barrier->leader_id != node_id) {
        return false;
    }
    wire_arena_init(&arena, wire_budget(&limits));
    int rc = wire_unpack(&jury__v1__response__descriptor, &limits, frames->envelope,
                         frames->n_envelope_bytes, &arena, &message, NULL);
    const Jury__V1__Response *response = rc == 0 ? (const Jury__V1__Response *)message : NULL;
    if (response != NULL && response->status != NULL &&
        response->status->code == JURY__V1__CODE__CODE_OK) {
        complete(server, response->revision);
    } else {
        fail_barrier(server);
    }
    wire_arena_close(&arena);
    return true;
}

/* --- dry run --- */

void rpc_check_done(struct rpc_server *server, struct call *call, const struct rpc_done *done)
{
    struct wire_arena arena;
    struct errmsg err = {{0}};
    ProtobufCMessage *request;

    if (done->outcome != RPC_DONE || done->answer == NULL) {
        errmsg_set(&err, ERR_BUSY, "the dry run could not be made: %s",
                   done->message != NULL ? done->message : "try again");
        rpc_call_refuse(server, call, ERR_BUSY, &err);
        return;
    }
    if (done->answer->err != 0) {
        rpc_call_refuse_all(server, call, done);
        return;
    }
    wire_arena_init(&arena, 2 * RPC_ANSWER_BUDGET_BYTES);
    struct apply_answer answer = *done->answer;
    answer.revision = done->revision; /* that it was checked against */
    int rc = rpc_call_request(call, &arena, &request, &err);
    if (rc != 0) {
        rpc_call_refuse(server, call, rc, &err);
    } else {
        rpc_call_answer(server, call, &arena, handle_apply_answer_new(&arena, request, &answer),
                        done->revision);
    }
    wire_arena_close(&arena);
}

int rpc_check_catalog(const struct catalog *catalog, const struct command *command,
                      struct apply_answer *ret_answer, struct catalog_refusals *ret_refusals,
                      struct errmsg *err)
{
    size_t n_chunks = catalog_n_chunks(catalog);
    struct catalog_chunk_view *chunks = calloc(n_chunks + 1, sizeof *chunks);
    struct catalog_state *state = catalog_state_new();
    int rc = ERR_NOMEM;

    if (chunks != NULL && state != NULL) {
        for (size_t i = 0; i < n_chunks; i++) {
            chunks[i].data = catalog_chunk_at(catalog, i, &chunks[i].n_bytes);
        }
        rc = catalog_state_restore(state, chunks, n_chunks, err);
    } else {
        errmsg_set(err, rc, "out of memory");
    }
    if (rc == 0) {
        catalog_check_all(state, command, ret_answer, ret_refusals);
    }
    catalog_state_free(state);
    free(chunks);
    return rc;
}
