/* Probes on demand: a call that has a part on each node that is to probe, its own or forwarded, and
 * is answered when all have come to their end. */
#include "agent/rpc/rpc_probe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/object.h"
#include "common/wire/unpack.h"

#define PROBE_METHOD "jury.v1.ProbeService/ProbeBackend"

void rpc_probe_free(struct probe_call *probe)
{
    for (size_t i = 0; probe != NULL && i < probe->n_parts; i++) {
        free(probe->parts[i].report);
        free(probe->parts[i].payload);
    }
    free(probe);
}

uint64_t probe_own_node_id(struct rpc_server *server)
{
    struct rpc_node node = {0};

    server->hooks.node(server->hooks.user, &node);
    return node.node_id;
}

/* --- the parts --- */

void probe_part_settle(struct probe_part *part, int code, const char *message)
{
    part->cookie = 0;
    part->code = code;
    errmsg_set(&part->message, code, "%s", message);
}

static int forward(struct rpc_server *server, const struct call *call,
                   const struct probe_call *probe, const struct probe_part *part)
{
    struct wire_arena arena;
    struct rpc_frames frames = {0};
    int rc = ERR_NOMEM;

    wire_arena_init(&arena, 65536);
    Jury__V1__Request *envelope = WIRE_NEW(&arena, Jury__V1__Request, jury__v1__request);
    Jury__V1__ProbeBackendRequest *request =
        WIRE_NEW(&arena, Jury__V1__ProbeBackendRequest, jury__v1__probe_backend_request);
    if (envelope != NULL && request != NULL) {
        uint64_t left_ms =
            (call->deadline_ns - server->now_ns - PROBE_FORWARD_MARGIN_NS) / NS_PER_MS;

        envelope->api_version = RPC_API_VERSION;
        envelope->method = wire_text(&arena, PROBE_METHOD);
        envelope->deadline_ms = (uint32_t)left_ms;
        envelope->request_id.data = wire_alloc(&arena, REQUEST_ID_BYTES);
        envelope->request_id.len = REQUEST_ID_BYTES;
        request->backend = wire_backend_ref_new(&arena, probe->group, &probe->at);
        request->check = wire_text(&arena, probe->check);
    }
    if (!arena.failed) {
        memcpy(envelope->request_id.data, call->request_id.bytes, REQUEST_ID_BYTES);
        frames.envelope = wire_pack(&envelope->base, &arena, &frames.n_envelope_bytes);
        frames.payload = wire_pack(&request->base, &arena, &frames.n_payload_bytes);
    }
    if (frames.envelope != NULL && frames.payload != NULL) {
        rc = server->hooks.forward(server->hooks.user, part->cookie, part->node_id, &call->identity,
                                   &frames);
    }
    wire_arena_close(&arena);
    return rc;
}

static void begin_part(struct rpc_server *server, struct call *call, struct probe_part *part)
{
    struct errmsg err = {{0}};
    int rc;

    part->cookie = rpc_new_cookie(server);
    if (part->node_id == probe_own_node_id(server)) {
        rc = server->hooks.probe(server->hooks.user, part->cookie, &call->probe->target, &err);
    } else {
        rc = forward(server, call, call->probe, part);
        if (rc == 0) {
            server->counters.forwarded++;
        } else {
            errmsg_set(&err, rc,
                       rc == ERR_UNREACHABLE ? "it cannot be reached from the asked node"
                                             : "the call cannot be forwarded to it");
        }
    }
    if (rc != 0) {
        probe_part_settle(part, rc, err.text);
    }
}

/* A single node's error is the call's. */
static void refuse(struct rpc_server *server, struct call *call, const struct probe_part *part)
{
    struct errmsg err = part->message;

    if (part->node_id != probe_own_node_id(server)) {
        errmsg_set(&err, part->code, "node %" PRIu64 ": %s", part->node_id, part->message.text);
    }
    rpc_call_refuse(server, call, part->code, &err);
}

static void finish_if_done(struct rpc_server *server, struct call *call)
{
    struct probe_call *probe = call->probe;

    for (size_t i = 0; i < probe->n_parts; i++) {
        if (probe->parts[i].cookie != 0) {
            return;
        }
    }
    if (probe->n_parts == 1 && probe->parts[0].code != 0) {
        refuse(server, call, &probe->parts[0]);
    } else {
        probe_call_answer(server, call);
    }
}

/* --- begin and go on --- */

void rpc_probe_begin(struct rpc_server *server, struct call *call, const ProtobufCMessage *message)
{
    const Jury__V1__ProbeBackendRequest *request = (const Jury__V1__ProbeBackendRequest *)message;
    struct errmsg err = {{0}};
    struct probe_call *probe = calloc(1, sizeof *probe);
    int rc = probe == NULL ? errmsg_set(&err, ERR_NOMEM, "out of memory") : 0;

    if (rc == 0) {
        rc = probe_call_read(server, call, request, probe, &err);
    }
    if (rc != 0) {
        rpc_probe_free(probe);
        rpc_call_refuse(server, call, rc, &err);
        return;
    }
    uint64_t timeout_ns = probe->target.definition.check->timeout_ms * NS_PER_MS;
    call->probe = probe;
    call->stage = CALL_PROBE;
    call->stage_ns = server->now_ns + timeout_ns + PROBE_PART_MARGIN_NS;
    for (size_t i = 0; i < probe->n_parts; i++) {
        begin_part(server, call, &probe->parts[i]);
    }
    finish_if_done(server, call);
}

void rpc_probe_poll(struct rpc_server *server, struct call *call)
{
    if (server->now_ns < call->stage_ns && server->now_ns < call->deadline_ns) {
        return;
    }
    for (size_t i = 0; i < call->probe->n_parts; i++) {
        struct probe_part *part = &call->probe->parts[i];

        if (part->cookie != 0) {
            probe_part_settle(part, ERR_TIMEOUT,
                              "no answer within the check's timeout and a second");
        }
    }
    finish_if_done(server, call);
}

/* The part that waits for a cookie, and its call. */
static struct probe_part *find_part(struct rpc_server *server, uint64_t cookie,
                                    struct call **ret_call)
{
    for (size_t i = 0; i < LIMIT_RPC_OUTSTANDING; i++) {
        struct call *call = &server->calls[i];

        for (size_t j = 0; call->stage == CALL_PROBE && j < call->probe->n_parts; j++) {
            if (call->probe->parts[j].cookie == cookie) {
                *ret_call = call;
                return &call->probe->parts[j];
            }
        }
    }
    return NULL;
}

void rpc_probe_done(struct rpc_server *server, uint64_t cookie, const struct probe_report *report)
{
    struct call *call;
    struct probe_part *part = find_part(server, cookie, &call);

    if (part == NULL) {
        return; /* the call has ended meanwhile */
    }
    part->report = malloc(sizeof *part->report);
    if (part->report == NULL) {
        probe_part_settle(part, ERR_NOMEM, "out of memory");
    } else {
        *part->report = *report;
        part->cookie = 0;
    }
    finish_if_done(server, call);
}

static void take_answer(struct probe_part *part, const struct rpc_frames *frames,
                        const Jury__V1__Response *response)
{
    const Jury__V1__Status *status = response == NULL ? NULL : response->status;

    if (status == NULL) {
        probe_part_settle(part, ERR_INTERNAL, "its answer cannot be read");
        return;
    }
    if (status->code != JURY__V1__CODE__CODE_OK) {
        int code = err_from_reason(status->reason);

        probe_part_settle(part, code != 0 ? code : ERR_INTERNAL, status->message);
        return;
    }
    part->payload = malloc(frames->n_payload_bytes + 1);
    if (part->payload == NULL) {
        probe_part_settle(part, ERR_NOMEM, "out of memory");
        return;
    }
    if (frames->n_payload_bytes > 0) {
        memcpy(part->payload, frames->payload, frames->n_payload_bytes);
    }
    part->n_payload_bytes = frames->n_payload_bytes;
    part->cookie = 0;
}

bool rpc_probe_answered(struct rpc_server *server, uint64_t node_id, uint64_t forward_id,
                        const struct rpc_frames *frames)
{
    static const struct wire_limits limits = {.bytes_max = RPC_ENVELOPE_BYTES_MAX,
                                              .elements_max = 256};
    struct call *call;
    struct probe_part *part = find_part(server, forward_id, &call);
    struct wire_arena arena;
    ProtobufCMessage *message = NULL;

    /* Only the node that was asked may answer. */
    if (part == NULL || part->node_id != node_id || part->node_id == probe_own_node_id(server)) {
        return false;
    }
    wire_arena_init(&arena, wire_budget(&limits));
    int rc = wire_unpack(&jury__v1__response__descriptor, &limits, frames->envelope,
                         frames->n_envelope_bytes, &arena, &message, NULL);
    take_answer(part, frames, rc == 0 ? (const Jury__V1__Response *)message : NULL);
    wire_arena_close(&arena);
    finish_if_done(server, call);
    return true;
}
