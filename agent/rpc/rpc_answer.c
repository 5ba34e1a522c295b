/* Answers: the frames of a refusal, of a response, and of another node's answer. */
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "common/wire/object.h"
#include "common/wire/unpack.h"

static void count_refusal(struct rpc_counters *counters, int code)
{
    uint64_t *counter = &counters->refused_other;

    switch ((enum err_code)code) {
    case ERR_VERSION:
        counter = &counters->refused_version;
        break;
    case ERR_UNKNOWN_METHOD:
        counter = &counters->refused_method;
        break;
    case ERR_UNAUTHENTICATED:
        counter = &counters->refused_unauthenticated;
        break;
    case ERR_DENIED:
        counter = &counters->refused_role;
        break;
    case ERR_INVALID:
    case ERR_UNAVAILABLE_YET:
    case ERR_USAGE:
        counter = &counters->refused_invalid;
        break;
    case ERR_LIMIT:
        counter = &counters->refused_size;
        break;
    case ERR_BUSY:
        counter = &counters->refused_busy;
        break;
    case ERR_NOLEADER:
    case ERR_NOTLEADER:
        counter = &counters->refused_no_leader;
        break;
    case ERR_TIMEOUT:
        counter = &counters->deadline_passed;
        break;
    case ERR_NOTFOUND:
    case ERR_EXISTS:
    case ERR_CONFLICT:
    case ERR_FORCE:
    case ERR_UNREACHABLE:
    case ERR_CORRUPT:
    case ERR_IO:
    case ERR_FULL:
    case ERR_NOMEM:
    case ERR_CANCELED:
    case ERR_CONFIG:
    case ERR_INTERNAL:
    case ERR_NOTREADY:
        break;
    }
    ++*counter;
}

static Jury__V1__Response *response_new(struct rpc_server *server, struct wire_arena *arena,
                                        const struct request_id *request_id)
{
    Jury__V1__Response *response = WIRE_NEW(arena, Jury__V1__Response, jury__v1__response);
    struct rpc_node node = {0};

    if (response == NULL) {
        return NULL;
    }
    server->hooks.node(server->hooks.user, &node);
    response->node_id = node.node_id;
    response->status = WIRE_NEW(arena, Jury__V1__Status, jury__v1__status);
    response->request_id.data = wire_alloc(arena, REQUEST_ID_BYTES);
    if (response->request_id.data != NULL) {
        memcpy(response->request_id.data, request_id->bytes, REQUEST_ID_BYTES);
        response->request_id.len = REQUEST_ID_BYTES;
    }
    return response;
}

/* document_index: UINT32_MAX = none. */
static void add_metadata(struct wire_arena *arena, Jury__V1__Status *status,
                         uint32_t document_index)
{
    Jury__V1__Metadata *metadata = WIRE_NEW(arena, Jury__V1__Metadata, jury__v1__metadata);

    status->metadata = wire_alloc_array(arena, 1, sizeof(void *));
    if (document_index == UINT32_MAX || metadata == NULL || status->metadata == NULL) {
        return;
    }
    metadata->key = wire_text(arena, "document_index");
    metadata->value = wire_format(arena, "%u", document_index);
    status->metadata[status->n_metadata++] = metadata;
}

static void add_refusals(struct wire_arena *arena, Jury__V1__Status *status,
                         const struct catalog_refusals *refusals)
{
    uint32_t n = refusals == NULL ? 0 : refusals->n;

    status->refusals = wire_alloc_array(arena, n, sizeof *status->refusals);
    for (uint32_t i = 0; status->refusals != NULL && i < n; i++) {
        const struct catalog_refusal *refusal = &refusals->items[i];
        Jury__V1__Refusal *message = WIRE_NEW(arena, Jury__V1__Refusal, jury__v1__refusal);

        if (message == NULL) {
            return;
        }
        message->document_index = refusal->change_index;
        message->reason = wire_text(arena, err_reason(refusal->err));
        message->message = wire_text(arena, refusal->message.text);
        status->refusals[status->n_refusals++] = message;
    }
}

void rpc_send_refusal(struct rpc_server *server, const struct rpc_route *route,
                      const struct request_id *request_id, const struct rpc_refusal *refusal)
{
    int code = refusal->code;
    struct wire_arena arena;
    struct rpc_frames frames = {0};

    count_refusal(&server->counters, code);
    wire_arena_init(&arena, 65536);
    Jury__V1__Response *response = response_new(server, &arena, request_id);
    if (response != NULL && response->status != NULL) {
        const struct catalog *catalog = rpc_server_catalog(server);

        response->revision = catalog != NULL ? catalog_revision(catalog) : 0;
        response->status->code = (Jury__V1__Code)err_rpc_code(code);
        response->status->reason = wire_text(&arena, err_reason(code));
        response->status->message = wire_text(&arena, refusal->message->text);
        if (code == ERR_BUSY) {
            response->status->retry_after = wire_duration_new(&arena, 100 * NS_PER_MS);
        }
        add_metadata(&arena, response->status, refusal->document_index);
        add_refusals(&arena, response->status, refusal->refusals);
        frames.envelope = wire_pack(&response->base, &arena, &frames.n_envelope_bytes);
    }
    /* The arena is far larger than a refusal: only memory can run out, and then nothing is sent,
     * as if the answer was lost. */
    if (frames.envelope != NULL) {
        server->hooks.reply(server->hooks.user, route, &frames);
    }
    wire_arena_close(&arena);
}

void rpc_call_refuse_at(struct rpc_server *server, struct call *call, int code,
                        uint32_t document_index, const struct errmsg *message)
{
    const struct rpc_refusal refusal = {
        .code = code, .document_index = document_index, .message = message};

    rpc_send_refusal(server, &call->route, &call->request_id, &refusal);
    rpc_call_free(server, call);
}

void rpc_call_refuse_all(struct rpc_server *server, struct call *call, const struct rpc_done *done)
{
    const struct rpc_refusal refusal = {.code = done->answer->err,
                                        .document_index = done->answer->change_index,
                                        .message = &done->answer->message,
                                        .refusals = done->refusals};

    rpc_send_refusal(server, &call->route, &call->request_id, &refusal);
    rpc_call_free(server, call);
}

void rpc_call_refuse(struct rpc_server *server, struct call *call, int code,
                     const struct errmsg *message)
{
    rpc_call_refuse_at(server, call, code, UINT32_MAX, message);
}

/* Age of a stale answer: since a leader was last known here. */
static void set_stale(struct rpc_server *server, struct wire_arena *arena,
                      Jury__V1__Response *response)
{
    struct rpc_store store = {.leader_age_ns = RPC_NEVER_NS};

    server->hooks.store(server->hooks.user, &store);
    response->stale = true;
    if (store.leader_age_ns != RPC_NEVER_NS) {
        response->age = wire_duration_new(arena, store.leader_age_ns);
    }
}

void rpc_call_answer(struct rpc_server *server, struct call *call, struct wire_arena *arena,
                     const ProtobufCMessage *response, uint64_t revision)
{
    struct rpc_frames frames = {0};
    Jury__V1__Response *envelope = response_new(server, arena, &call->request_id);
    struct errmsg err;

    if (envelope != NULL) {
        envelope->revision = revision;
        if (call->is_stale) {
            set_stale(server, arena, envelope);
        }
        frames.envelope = wire_pack(&envelope->base, arena, &frames.n_envelope_bytes);
    }
    if (response != NULL) {
        frames.payload = wire_pack(response, arena, &frames.n_payload_bytes);
    }
    if (frames.envelope == NULL || frames.payload == NULL ||
        frames.n_payload_bytes > LIMIT_RPC_MESSAGE_BYTES) {
        errmsg_set(&err, ERR_LIMIT, "the answer is larger than %d bytes: ask for less at once",
                   LIMIT_RPC_MESSAGE_BYTES);
        rpc_call_refuse(server, call, ERR_LIMIT, &err);
        return;
    }
    server->counters.answered++;
    server->hooks.reply(server->hooks.user, &call->route, &frames);
    rpc_call_free(server, call);
}

void rpc_call_relay(struct rpc_server *server, struct call *call, const struct rpc_frames *frames)
{
    server->counters.answered++;
    server->hooks.reply(server->hooks.user, &call->route, frames);
    rpc_call_free(server, call);
}
