/* Calls: taking them in and the turn of each stage. */
#include "agent/rpc/rpc_server.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "common/base/plant.h"
#include "common/model/names.h"
#include "common/wire/unpack.h"

static const struct wire_limits envelope_limits = {.bytes_max = RPC_ENVELOPE_BYTES_MAX,
                                                   .elements_max = 256};

/* --- life --- */

struct rpc_server *rpc_server_new(const struct rpc_hooks *hooks, uint64_t seed)
{
    struct rpc_server *server = calloc(1, sizeof *server);

    if (server != NULL) {
        server->hooks = *hooks;
        prng_init(&server->prng, seed);
    }
    return server;
}

void rpc_call_free(struct rpc_server *server, struct call *call)
{
    assert(call->stage != CALL_FREE);
    server->kept_bytes -= call->n_envelope_bytes + call->n_payload_bytes;
    server->n_calls--;
    free(call->bytes);
    rpc_probe_free(call->probe);
    *call = (struct call){0};
}

void rpc_server_free(struct rpc_server *server)
{
    if (server == NULL) {
        return;
    }
    for (size_t i = 0; i < LIMIT_RPC_OUTSTANDING; i++) {
        if (server->calls[i].stage != CALL_FREE) {
            rpc_call_free(server, &server->calls[i]);
        }
    }
    free(server);
}

struct counter_set rpc_server_counter_set(const struct rpc_server *server)
{
    static const struct counter_field fields[] = {
#define RPC_FIELD(name, help) COUNTER_FIELD(struct rpc_counters, name, help)
        RPC_COUNTERS(RPC_FIELD)
#undef RPC_FIELD
    };

    return (struct counter_set){.prefix = "rpc",
                                .fields = fields,
                                .n_fields = sizeof fields / sizeof fields[0],
                                .values = &server->counters};
}

/* Cookies are never used twice, nor equal to a forward id of an earlier start. */
uint64_t rpc_new_cookie(struct rpc_server *server)
{
    return prng_next(&server->prng) | 1;
}

const struct catalog *rpc_server_catalog(struct rpc_server *server)
{
    const struct engine *engine = server->hooks.engine(server->hooks.user);

    return engine != NULL ? engine_catalog(engine) : NULL;
}

struct call *rpc_call_by_cookie(struct rpc_server *server, enum call_stage stage, uint64_t cookie)
{
    for (size_t i = 0; i < LIMIT_RPC_OUTSTANDING; i++) {
        if (server->calls[i].stage == stage && server->calls[i].cookie == cookie) {
            return &server->calls[i];
        }
    }
    return NULL;
}

int rpc_call_request(const struct call *call, struct wire_arena *arena,
                     ProtobufCMessage **ret_request, struct errmsg *err)
{
    const struct wire_limits limits = {
        .bytes_max = LIMIT_RPC_MESSAGE_BYTES,
        .elements_max = LIMIT_RPC_MESSAGE_BYTES / 4,
        /* Skipping what a newer client wrote would change what it asked for. */
        .refuses_unknown = call->method->role != KEY_ROLE_VIEWER,
    };

    return wire_unpack(call->method->request, &limits, call->bytes + call->n_envelope_bytes,
                       call->n_payload_bytes, arena, ret_request, err);
}

/* --- taking calls in --- */

/* What an envelope says, after every check that needs no payload. */
struct intake {
    const struct wire_method *method;
    struct request_id request_id;
    uint64_t deadline_ns;
    uint64_t min_revision;
    bool is_stale;
};

static int check_role(const struct wire_method *method, const struct rpc_identity *identity,
                      struct errmsg *err)
{
    if (identity->caller == RPC_CALLER_NONE || identity->role == KEY_ROLE_NONE ||
        identity->role > KEY_ROLE_ADMIN) {
        return errmsg_set(err, ERR_UNAUTHENTICATED, "nobody here knows the caller");
    }
    if (!plant_is("rpc-no-role-check") && identity->role < method->role) {
        return errmsg_set(err, ERR_DENIED, "\"%s\" is %s %s, and %s needs the role %s",
                          identity->name, identity->role == KEY_ROLE_VIEWER ? "a" : "an",
                          names_word(&names_key_role, identity->role), method->name,
                          names_word(&names_key_role, method->role));
    }
    return 0;
}

static int check_envelope(struct rpc_server *server, const Jury__V1__Request *request,
                          const struct rpc_identity *identity, struct intake *intake,
                          struct errmsg *err)
{
    static const struct request_id none;

    if (request->api_version != RPC_API_VERSION) {
        return errmsg_set(err, ERR_VERSION,
                          "the call is of API version %u, and this node understands version %d",
                          request->api_version, RPC_API_VERSION);
    }
    if (request->request_id.len != REQUEST_ID_BYTES ||
        memcmp(request->request_id.data, none.bytes, REQUEST_ID_BYTES) == 0) {
        return errmsg_set(err, ERR_INVALID, "request_id must be %d bytes, not all zero, got %zu",
                          REQUEST_ID_BYTES, request->request_id.len);
    }
    intake->method = wire_method_find(request->method);
    if (intake->method == NULL) {
        return errmsg_set(err, ERR_UNKNOWN_METHOD, "there is no method \"%.128s\"",
                          request->method);
    }
    if (request->deadline_ms == 0 || request->deadline_ms > RPC_DEADLINE_MS_MAX) {
        return errmsg_set(err, ERR_INVALID, "deadline_ms must be 1..%d, got %u",
                          RPC_DEADLINE_MS_MAX, request->deadline_ms);
    }
    intake->deadline_ns = server->now_ns + request->deadline_ms * NS_PER_MS;
    intake->min_revision = request->min_revision;
    intake->is_stale = request->stale;
    return check_role(intake->method, identity, err);
}

static int check_room(const struct rpc_server *server, const struct rpc_frames *frames,
                      struct errmsg *err)
{
    size_t n_bytes = frames->n_envelope_bytes + frames->n_payload_bytes;

    if (frames->n_payload_bytes > LIMIT_RPC_MESSAGE_BYTES) {
        return errmsg_set(err, ERR_LIMIT, "the call has %zu bytes, allowed are %d",
                          frames->n_payload_bytes, LIMIT_RPC_MESSAGE_BYTES);
    }
    if (server->n_calls == LIMIT_RPC_OUTSTANDING ||
        n_bytes > RPC_KEPT_BYTES_MAX - server->kept_bytes) {
        return errmsg_set(err, ERR_BUSY,
                          "this node has %zu calls under way and takes no more for the moment",
                          server->n_calls);
    }
    return 0;
}

/* A call in the table, with its frames kept. NULL: no memory. */
static struct call *new_call(struct rpc_server *server, const struct intake *intake,
                             const struct rpc_identity *identity, const struct rpc_route *route,
                             const struct rpc_frames *frames)
{
    struct call *call = server->calls;
    uint8_t *bytes = malloc(frames->n_envelope_bytes + frames->n_payload_bytes);

    if (bytes == NULL) {
        return NULL;
    }
    while (call->stage != CALL_FREE) {
        call++; /* check_room found that one is free */
    }
    memcpy(bytes, frames->envelope, frames->n_envelope_bytes);
    if (frames->n_payload_bytes > 0) {
        memcpy(bytes + frames->n_envelope_bytes, frames->payload, frames->n_payload_bytes);
    }
    *call = (struct call){
        .stage = CALL_REVISION,
        .route = *route,
        .identity = *identity,
        .method = intake->method,
        .handler = rpc_handler_find(intake->method->name),
        .request_id = intake->request_id,
        .bytes = bytes,
        .n_envelope_bytes = frames->n_envelope_bytes,
        .n_payload_bytes = frames->n_payload_bytes,
        .start_ns = server->now_ns,
        .deadline_ns = intake->deadline_ns,
        .is_stale = intake->is_stale,
        .want_revision = intake->min_revision,
    };
    server->n_calls++;
    server->kept_bytes += call->n_envelope_bytes + call->n_payload_bytes;
    return call;
}

/* The payload is read here once for its mistakes, so that they are told without a leader. */
static void begin(struct rpc_server *server, struct call *call)
{
    struct wire_arena arena;
    struct errmsg err;
    ProtobufCMessage *request;

    wire_arena_init(&arena, RPC_ANSWER_BUDGET_BYTES);
    int rc = call->handler != NULL ? rpc_call_request(call, &arena, &request, &err)
                                   : errmsg_set(&err, ERR_UNAVAILABLE_YET,
                                                "%s is not available yet", call->method->name);
    if (rc != 0) {
        rpc_call_refuse(server, call, rc, &err);
    } else if (call->handler->begin != NULL) {
        call->handler->begin(server, call, request);
    } else if (call->method->kind == METHOD_WRITE) {
        rpc_write_begin(server, call);
    } else {
        rpc_read_begin(server, call);
    }
    wire_arena_close(&arena);
}

/* A peer asks again for what is under way already, since it has heard nothing: its answer goes
 * where the newest asking came from. Doing it once more would make a slow leader slower. */
static bool is_under_way(struct rpc_server *server, const struct intake *intake,
                         const struct rpc_identity *identity, const struct rpc_route *route)
{
    for (size_t i = 0; identity->caller == RPC_CALLER_PEER && i < LIMIT_RPC_OUTSTANDING; i++) {
        struct call *call = &server->calls[i];

        if (call->stage != CALL_FREE && call->identity.caller == RPC_CALLER_PEER &&
            call->route.forward_id == route->forward_id && call->method == intake->method &&
            memcmp(&call->request_id, &intake->request_id, sizeof call->request_id) == 0) {
            call->route = *route;
            return true;
        }
    }
    return false;
}

static void take(struct rpc_server *server, const struct rpc_identity *identity,
                 const struct rpc_route *route, const struct rpc_frames *frames)
{
    struct wire_arena arena;
    struct intake intake = {0};
    struct errmsg err = {{0}};
    ProtobufCMessage *message;

    wire_arena_init(&arena, wire_budget(&envelope_limits));
    if (wire_unpack(&jury__v1__request__descriptor, &envelope_limits, frames->envelope,
                    frames->n_envelope_bytes, &arena, &message, &err) != 0) {
        server->counters.dropped_malformed++;
        wire_arena_close(&arena);
        return;
    }
    const Jury__V1__Request *request = (const Jury__V1__Request *)message;
    if (request->request_id.len == REQUEST_ID_BYTES) {
        memcpy(intake.request_id.bytes, request->request_id.data, REQUEST_ID_BYTES);
    }
    int rc = check_envelope(server, request, identity, &intake, &err);
    wire_arena_close(&arena);
    if (rc == 0 && is_under_way(server, &intake, identity, route)) {
        return;
    }
    if (rc == 0) {
        rc = check_room(server, frames, &err);
    }
    struct call *call = rc == 0 ? new_call(server, &intake, identity, route, frames) : NULL;
    if (call != NULL) {
        begin(server, call);
    } else if (rc != 0) {
        rpc_send_refusal(
            server, route, &intake.request_id,
            &(struct rpc_refusal){.code = rc, .document_index = UINT32_MAX, .message = &err});
    }
}

/* --- entries --- */

static void enter(struct rpc_server *server, uint64_t now_ns)
{
    assert(!server->is_inside);
    server->now_ns = now_ns;
    server->is_inside = true;
}

static void leave(struct rpc_server *server)
{
    server->is_inside = false;
}

void rpc_server_handle(struct rpc_server *server, uint64_t now_ns,
                       const struct rpc_identity *identity, const struct rpc_route *route,
                       const struct rpc_frames *frames)
{
    enter(server, now_ns);
    server->counters.calls++;
    take(server, identity, route, frames);
    rpc_barrier_poll(server);
    leave(server);
}

/* The call that waits for a cookie goes on. */
static void call_done(struct rpc_server *server, uint64_t cookie, const struct rpc_done *done)
{
    struct call *call = rpc_call_by_cookie(server, CALL_PROPOSAL, cookie);

    if (call != NULL) {
        rpc_write_done(server, call, done);
        return;
    }
    call = rpc_call_by_cookie(server, CALL_CHECK, cookie);
    if (call != NULL) {
        rpc_check_done(server, call, done);
        return;
    }
    call = rpc_call_by_cookie(server, CALL_INIT, cookie);
    if (call != NULL) {
        rpc_init_done(server, call, done);
    }
}

void rpc_server_done(struct rpc_server *server, uint64_t now_ns, uint64_t cookie,
                     const struct rpc_done *done)
{
    enter(server, now_ns);
    if (!rpc_barrier_done(server, cookie, done)) {
        call_done(server, cookie, done);
    }
    rpc_barrier_poll(server);
    leave(server);
}

void rpc_server_simulated(struct rpc_server *server, uint64_t now_ns, uint64_t cookie,
                          struct rpc_simulation *job)
{
    enter(server, now_ns);
    struct call *call = rpc_call_by_cookie(server, CALL_SIMULATION, cookie);

    server->n_simulations--;
    server->simulated_work += rpc_simulation_work(job);
    if (call != NULL) {
        rpc_read_simulated(server, call, job);
    }
    rpc_simulation_free(job);
    rpc_barrier_poll(server);
    leave(server);
}

void rpc_server_probed(struct rpc_server *server, uint64_t now_ns, uint64_t cookie,
                       const struct probe_report *report)
{
    enter(server, now_ns);
    rpc_probe_done(server, cookie, report);
    rpc_barrier_poll(server);
    leave(server);
}

void rpc_server_forward_answer(struct rpc_server *server, uint64_t now_ns, uint64_t node_id,
                               uint64_t forward_id, const struct rpc_frames *frames)
{
    enter(server, now_ns);
    if (!rpc_barrier_answered(server, node_id, forward_id, frames) &&
        !rpc_probe_answered(server, node_id, forward_id, frames)) {
        struct call *call = rpc_call_by_cookie(server, CALL_FORWARD, forward_id);

        /* Only the node that was asked may answer. */
        if (call != NULL && call->leader_id == node_id) {
            rpc_write_answered(server, call, frames);
        }
    }
    rpc_barrier_poll(server);
    leave(server);
}

static void refuse_late(struct rpc_server *server, struct call *call)
{
    uint64_t ms = (call->deadline_ns - call->start_ns) / NS_PER_MS;
    struct errmsg err;
    const char *advice = call->method->kind == METHOD_WRITE
                             ? ": it may still be carried out; ask again with the same request id"
                             : "";

    errmsg_set(&err, ERR_TIMEOUT, "%s was not done within %" PRIu64 " ms%s%s%s", call->method->name,
               ms, advice, call->reason.text[0] != '\0' ? "; last: " : "", call->reason.text);
    rpc_call_refuse(server, call, ERR_TIMEOUT, &err);
}

static void poll_call(struct rpc_server *server, struct call *call, const struct rpc_store *store)
{
    switch ((enum call_stage)call->stage) {
    case CALL_FREE:
        return;
    case CALL_BARRIER:
    case CALL_REVISION:
    case CALL_PEERS:
        rpc_read_poll(server, call);
        break;
    case CALL_LEADER:
    case CALL_FORWARD:
        rpc_write_poll(server, call, store);
        break;
    case CALL_PROBE:
        rpc_probe_poll(server, call);
        break;
    case CALL_PROPOSAL:
    case CALL_CHECK:
    case CALL_SIMULATION:
    case CALL_INIT:
        break;
    }
    if (call->stage != CALL_FREE && server->now_ns >= call->deadline_ns) {
        refuse_late(server, call);
    }
}

void rpc_server_poll(struct rpc_server *server, uint64_t now_ns)
{
    struct rpc_store store = {.leader_age_ns = RPC_NEVER_NS};

    if (server->is_inside) {
        server->wants_poll = true;
        return;
    }
    enter(server, now_ns);
    server->wants_poll = false;
    if (server->n_calls > 0) {
        server->hooks.store(server->hooks.user, &store);
    }
    rpc_barrier_poll(server);
    for (size_t i = 0; server->n_calls > 0 && i < LIMIT_RPC_OUTSTANDING; i++) {
        poll_call(server, &server->calls[i], &store);
    }
    rpc_barrier_poll(server);
    leave(server);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t rpc_server_next_ns(const struct rpc_server *server)
{
    uint64_t next_ns = UINT64_MAX;

    if (server->wants_poll) {
        return server->now_ns;
    }
    for (size_t i = 0; server->n_calls > 0 && i < LIMIT_RPC_OUTSTANDING; i++) {
        const struct call *call = &server->calls[i];

        if (call->stage == CALL_FREE) {
            continue;
        }
        next_ns = earlier(next_ns, call->deadline_ns);
        if (call->stage_ns != 0) {
            next_ns = earlier(next_ns, call->stage_ns);
        }
        if (call->stage == CALL_LEADER && call->retry_ns != 0) {
            next_ns = earlier(next_ns, call->retry_ns);
        }
        if (call->stage == CALL_BARRIER && server->barrier.state == BARRIER_IDLE) {
            next_ns = earlier(next_ns, server->barrier.retry_ns);
        }
        if (call->stage == CALL_BARRIER && server->barrier.state == BARRIER_FORWARDED) {
            next_ns = earlier(next_ns, server->barrier.again_ns);
        }
    }
    return next_ns;
}
