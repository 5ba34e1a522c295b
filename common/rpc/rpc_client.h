/* The client side of the API: one blocking call at a time over ZeroMQ.
 *
 * Tries one endpoint after the other until one answers or the deadline has passed, with the same
 * request id, so that a write is carried out once. Remembers the newest revision that it saw and
 * asks for at least that, so that it reads its own writes on every node. One thread a client. */
#ifndef JURY_RPC_CLIENT_H
#define JURY_RPC_CLIENT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/model/cluster.h"
#include "common/rpc/key_file.h"
#include "common/wire/arena.h"
#include "jury/v1/envelope.pb-c.h"

struct rpc_client;

struct rpc_endpoint {
    const char *address;          /* "tcp://HOST:PORT" or "ipc:///PATH"; borrowed */
    struct public_key server_key; /* of that node; tcp only */
};

struct rpc_client_options {
    const struct rpc_endpoint *endpoints; /* borrowed, copied */
    size_t n_endpoints;                   /* 1..64 */
    const struct key_pair *key;           /* the caller's own; tcp only; borrowed */
    uint32_t timeout_ms;                  /* of a call, 1..60000; 0 = 5000 */
};

/* Makes sockets only in calls. Errors: ERR_USAGE (an endpoint of another form, tcp without a key),
 * ERR_NOMEM, ERR_IO (no more sockets). */
int rpc_client_new(const struct rpc_client_options *options, struct rpc_client **ret_client,
                   struct errmsg *err);
/* NULL is allowed. */
void rpc_client_free(struct rpc_client *client);

struct rpc_call {
    const char *method;                  /* "jury.v1.GroupService/GetGroup" */
    const ProtobufCMessage *request;     /* borrowed */
    const struct request_id *request_id; /* NULL = a random one */
    bool stale;
    uint32_t timeout_ms; /* 0 = the client's */
};

/* What came back; owns it all. */
struct rpc_result {
    struct wire_arena arena;
    ProtobufCMessage *response;       /* NULL unless the call returned 0 */
    const Jury__V1__Response *header; /* NULL when no node answered; has the status with reason and
                                         metadata of a refusal */
    struct request_id request_id;     /* that was used */
    const char *endpoint;             /* that answered, else of the last try; the client's */
};
/* Allowed on a zeroed one. The result must not move. */
void rpc_result_close(struct rpc_result *result);

/* 0, or the ERR_* that the status' reason names, with its message as the sentence. Without an
 * answer: ERR_UNREACHABLE (no endpoint took the connection), ERR_UNAUTHENTICATED (the node does not
 * know the key, or is not the one that was asked for), ERR_TIMEOUT (connected, no answer in time);
 * ERR_UNKNOWN_METHOD before anything is sent. A write that a node had, and of which none said how
 * it ended, is never ERR_UNREACHABLE, and the sentence says that it may have been made.
 * *ret_result: set in every case. */
int rpc_client_call(struct rpc_client *client, const struct rpc_call *call,
                    struct rpc_result *ret_result, struct errmsg *err);

/* The newest revision that an answer carried. */
uint64_t rpc_client_revision(const struct rpc_client *client);

#endif
