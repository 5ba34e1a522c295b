/* `cluster init`: once in a cluster's life, on the node that is asked. */
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "common/base/str.h"
#include "common/wire/object.h"
#include "jury/v1/cluster.pb-c.h"

static int read_members(const Jury__V1__InitClusterRequest *request, struct cluster_init *init,
                        struct errmsg *err)
{
    if (request->n_members == 0 || request->n_members > LIMIT_VOTERS) {
        return errmsg_set(err, ERR_INVALID, "members must be 1..%d, got %zu", LIMIT_VOTERS,
                          request->n_members);
    }
    for (size_t i = 0; i < request->n_members; i++) {
        int rc = wire_node_read(request->members[i], &init->nodes[i], err);

        if (rc != 0) {
            return rc;
        }
        if (init->nodes[i].role == ROLE_NONE) {
            init->nodes[i].role = ROLE_VOTER;
        }
    }
    init->n_nodes = (uint32_t)request->n_members;
    return 0;
}

static int read_init(const Jury__V1__InitClusterRequest *request, struct cluster_init *init,
                     struct errmsg *err)
{
    int rc = read_members(request, init, err);

    if (rc == 0 && request->n_keys > INIT_KEYS_MAX) {
        rc = errmsg_set(err, ERR_LIMIT, ERR_SAY_TOO_MANY, "keys", (unsigned long)request->n_keys,
                        (unsigned long)INIT_KEYS_MAX);
    }
    for (size_t i = 0; rc == 0 && i < request->n_keys; i++) {
        rc = wire_key_read(request->keys[i], &init->keys[i], err);
    }
    init->n_keys = (uint32_t)request->n_keys;
    cluster_settings_default(&init->settings);
    if (rc == 0 && request->settings != NULL) {
        rc = wire_settings_read(request->settings, &init->settings, err);
    }
    return rc;
}

void rpc_init_begin(struct rpc_server *server, struct call *call, const ProtobufCMessage *message)
{
    struct cluster_init *init = calloc(1, sizeof *init);
    struct wire_arena arena;
    struct errmsg err = {{0}};
    ProtobufCMessage *request;

    (void)message; /* it is kept with the call, and read once more when the store is done */
    wire_arena_init(&arena, RPC_ANSWER_BUDGET_BYTES);
    int rc = init != NULL ? rpc_call_request(call, &arena, &request, &err)
                          : errmsg_set(&err, ERR_NOMEM, "out of memory");
    if (rc == 0) {
        rc = read_init((const Jury__V1__InitClusterRequest *)request, init, &err);
    }
    if (rc == 0) {
        /* 16 random bytes of the client: a retry names the same cluster and goes on where it was.
         */
        memcpy(init->cluster_id.bytes, call->request_id.bytes, CLUSTER_ID_BYTES);
        call->stage = CALL_INIT;
        call->stage_ns = 0;
        call->cookie = rpc_new_cookie(server);
        errmsg_set(&err, 0, "the cluster cannot be made now");
        rc = server->hooks.init(server->hooks.user, call->cookie, init, &err);
    }
    wire_arena_close(&arena);
    free(init);
    if (rc != 0) {
        rpc_call_refuse(server, call, rc, &err);
    }
}

void rpc_init_done(struct rpc_server *server, struct call *call, const struct rpc_done *done)
{
    char id[2 * CLUSTER_ID_BYTES + 1];
    struct wire_arena arena;
    struct errmsg err;

    if (done->outcome != RPC_DONE) {
        int code = done->outcome == RPC_REFUSED || done->outcome == RPC_NOT_READY ? ERR_NOTREADY
                   : done->outcome == RPC_EXISTS                                  ? ERR_EXISTS
                   : done->outcome == RPC_DISK_FULL                               ? ERR_FULL
                                                                                  : ERR_BUSY;
        errmsg_set(&err, code, "%s",
                   done->message != NULL && done->message[0] != '\0' ? done->message
                                                                     : err_text(code));
        rpc_call_refuse(server, call, code, &err);
        return;
    }
    /* The store's answer may carry the judgement of the command that it proposed. */
    if (done->answer != NULL && done->answer->err != 0) {
        rpc_call_refuse(server, call, done->answer->err, &done->answer->message);
        return;
    }
    wire_arena_init(&arena, 65536);
    Jury__V1__InitClusterResponse *response =
        WIRE_NEW(&arena, Jury__V1__InitClusterResponse, jury__v1__init_cluster_response);
    if (response != NULL) {
        str_hex(call->request_id.bytes, CLUSTER_ID_BYTES, id);
        response->cluster_id = wire_text(&arena, id);
        response->revision = done->revision;
    }
    rpc_call_answer(server, call, &arena, response != NULL ? &response->base : NULL,
                    done->revision);
    wire_arena_close(&arena);
}
