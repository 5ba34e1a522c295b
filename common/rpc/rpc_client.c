#include "common/rpc/rpc_client.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/units.h"
#include "common/rpc/rpc_link.h"
#include "common/wire/method.h"
#include "common/wire/unpack.h"

#define API_VERSION 1
#define ENDPOINTS_MAX 64
#define TIMEOUT_MS_DEFAULT 5000
#define TIMEOUT_MS_MAX 60000
#define CONNECT_NS (1500 * NS_PER_MS) /* for one endpoint while there are others to try */
/* What changes nothing is not asked for longer than an agent needs to start again. */
#define RESTART_NS (5 * NS_PER_SECOND)
#define PAUSE_US 100000 /* between two rounds over all endpoints */
#define ENVELOPE_BYTES_MAX 16384

struct endpoint_copy {
    char *address;
    struct public_key server_key;
    bool is_tcp;
};

struct rpc_client {
    void *context;
    struct endpoint_copy *endpoints;
    size_t n_endpoints;
    size_t current; /* that answered last, or is to be tried first */
    struct rpc_link link;
    struct key_pair key;
    uint32_t timeout_ms;
    uint64_t revision;
};

/* --- life --- */

void rpc_client_free(struct rpc_client *client)
{
    if (client == NULL) {
        return;
    }
    rpc_link_close(&client->link);
    if (client->context != NULL) {
        zmq_ctx_term(client->context);
    }
    for (size_t i = 0; client->endpoints != NULL && i < client->n_endpoints; i++) {
        free(client->endpoints[i].address);
    }
    free(client->endpoints);
    key_pair_close(&client->key);
    free(client);
}

static int copy_key(struct rpc_client *client, const struct key_pair *key, struct errmsg *err)
{
    if (key == NULL) {
        return 0;
    }
    client->key.secret = sodium_malloc(SECRET_KEY_BYTES);
    if (client->key.secret == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no locked memory for a secret key");
    }
    memcpy(client->key.secret, key->secret, SECRET_KEY_BYTES);
    client->key.public_key = key->public_key;
    return 0;
}

static int copy_endpoints(struct rpc_client *client, const struct rpc_client_options *options,
                          struct errmsg *err)
{
    client->endpoints = calloc(options->n_endpoints, sizeof *client->endpoints);
    if (client->endpoints == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the client");
    }
    client->n_endpoints = options->n_endpoints;
    for (size_t i = 0; i < options->n_endpoints; i++) {
        const struct rpc_endpoint *from = &options->endpoints[i];
        struct endpoint_copy *to = &client->endpoints[i];

        to->is_tcp = strncmp(from->address, "tcp://", 6) == 0;
        if (!to->is_tcp && strncmp(from->address, "ipc://", 6) != 0) {
            return errmsg_set(err, ERR_USAGE,
                              "endpoint \"%s\" must be tcp://HOST:PORT or ipc:///PATH",
                              from->address);
        }
        if (to->is_tcp && options->key == NULL) {
            return errmsg_set(err, ERR_USAGE,
                              "endpoint \"%s\" needs a key file: nothing is sent in clear text",
                              from->address);
        }
        to->server_key = from->server_key;
        to->address = strdup(from->address);
        if (to->address == NULL) {
            return errmsg_set(err, ERR_NOMEM, "no memory for the client");
        }
    }
    return 0;
}

int rpc_client_new(const struct rpc_client_options *options, struct rpc_client **ret_client,
                   struct errmsg *err)
{
    int rc;

    if (options->n_endpoints == 0 || options->n_endpoints > ENDPOINTS_MAX) {
        return errmsg_set(err, ERR_USAGE, "there must be 1..%d endpoints, got %zu", ENDPOINTS_MAX,
                          options->n_endpoints);
    }
    if (options->timeout_ms > TIMEOUT_MS_MAX) {
        return errmsg_set(err, ERR_USAGE, "the timeout must be at most %d s",
                          TIMEOUT_MS_MAX / 1000);
    }
    if (sodium_init() < 0) {
        return errmsg_set(err, ERR_INTERNAL, "the system gives no random numbers");
    }
    struct rpc_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the client");
    }
    client->timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : TIMEOUT_MS_DEFAULT;
    client->context = zmq_ctx_new();
    rc = client->context != NULL ? copy_key(client, options->key, err)
                                 : errmsg_set(err, ERR_IO, "cannot start ZeroMQ");
    if (rc == 0) {
        rc = copy_endpoints(client, options, err);
    }
    if (rc != 0) {
        rpc_client_free(client);
        return rc;
    }
    *ret_client = client;
    return 0;
}

void rpc_result_close(struct rpc_result *result)
{
    wire_arena_close(&result->arena);
    *result = (struct rpc_result){0};
}

uint64_t rpc_client_revision(const struct rpc_client *client)
{
    return client->revision;
}

/* --- one call --- */

struct attempt {
    struct rpc_client *client;
    const struct rpc_call *call;
    const struct wire_method *method;
    struct rpc_result *result;
    uint64_t deadline_ns;
    bool was_sent;     /* once at least: a node may be at work on it */
    bool is_open;      /* a node had it and said nothing, nor did another one how it ended */
    bool has_answered; /* the endpoint of the last try; result->header is the newest answer's */
    struct errmsg *err;
};

/* The frames of the request; both live in the arena. */
static int build_frames(struct attempt *attempt, struct wire_arena *arena,
                        struct link_frames *ret_frames)
{
    uint64_t now_ns = clock_monotonic_ns();
    Jury__V1__Request *envelope = WIRE_NEW(arena, Jury__V1__Request, jury__v1__request);

    if (envelope == NULL) {
        return errmsg_set(attempt->err, ERR_NOMEM, "no memory for the request");
    }
    envelope->api_version = API_VERSION;
    envelope->method = wire_text(arena, attempt->method->name);
    envelope->request_id.data = attempt->result->request_id.bytes;
    envelope->request_id.len = REQUEST_ID_BYTES;
    envelope->deadline_ms =
        now_ns < attempt->deadline_ns
            ? (uint32_t)((attempt->deadline_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS)
            : 1;
    envelope->stale = attempt->call->stale;
    envelope->min_revision = attempt->call->stale ? 0 : attempt->client->revision;
    ret_frames->envelope = wire_pack(&envelope->base, arena, &ret_frames->n_envelope_bytes);
    ret_frames->payload = wire_pack(attempt->call->request, arena, &ret_frames->n_payload_bytes);
    if (ret_frames->envelope == NULL || ret_frames->payload == NULL ||
        ret_frames->n_payload_bytes > LIMIT_RPC_MESSAGE_BYTES) {
        return errmsg_set(attempt->err, ERR_LIMIT,
                          "the request is larger than %d bytes: send less "
                          "at once",
                          LIMIT_RPC_MESSAGE_BYTES);
    }
    return 0;
}

/* The envelope of an answer into the result. False when it is no answer to this request. */
static bool read_envelope(struct attempt *attempt, zmq_msg_t *frame)
{
    static const struct wire_limits limits = {.bytes_max = ENVELOPE_BYTES_MAX,
                                              .elements_max = 4096};
    struct rpc_result *result = attempt->result;
    ProtobufCMessage *message;

    wire_arena_close(&result->arena);
    wire_arena_init(&result->arena, (size_t)48 * LIMIT_RPC_MESSAGE_BYTES);
    result->header = NULL;
    if (wire_unpack(&jury__v1__response__descriptor, &limits, zmq_msg_data(frame),
                    zmq_msg_size(frame), &result->arena, &message, NULL) != 0) {
        return false;
    }
    const Jury__V1__Response *header = (const Jury__V1__Response *)message;
    if (header->status == NULL || header->request_id.len != REQUEST_ID_BYTES ||
        memcmp(header->request_id.data, result->request_id.bytes, REQUEST_ID_BYTES) != 0) {
        return false;
    }
    result->header = header;
    attempt->has_answered = true;
    return true;
}

/* The status as ERR_* and sentence; on OK the payload as message. */
static int read_answer(struct attempt *attempt, zmq_msg_t *payload)
{
    static const struct wire_limits limits = {.bytes_max = LIMIT_RPC_MESSAGE_BYTES,
                                              .elements_max = LIMIT_RPC_MESSAGE_BYTES / 2};
    struct rpc_result *result = attempt->result;
    const Jury__V1__Status *status = result->header->status;

    if (status->code != JURY__V1__CODE__CODE_OK) {
        return errmsg_set(attempt->err, err_from_reason(status->reason), "%s", status->message);
    }
    if (result->header->revision > attempt->client->revision) {
        attempt->client->revision = result->header->revision;
    }
    return wire_unpack(attempt->method->response, &limits, zmq_msg_data(payload),
                       zmq_msg_size(payload), &result->arena, &result->response, attempt->err);
}

static int end_to_err(const struct attempt *attempt, const char *address, enum link_end end)
{
    switch (end) {
    case LINK_REFUSED:
        return errmsg_set(attempt->err, ERR_UNREACHABLE, "no agent answers at %s", address);
    case LINK_NO_HANDSHAKE:
        /* A stopped process still has its connections taken by the kernel. */
        return errmsg_set(attempt->err, ERR_TIMEOUT,
                          "something listens at %s, but it said nothing in time: the agent hangs, "
                          "or it is none",
                          address);
    case LINK_DENIED:
        return errmsg_set(attempt->err, ERR_UNAUTHENTICATED,
                          "the agent at %s refused the connection: it does not know this key, or "
                          "its own public key is not the one that was given",
                          address);
    case LINK_LOST:
        return errmsg_set(attempt->err, ERR_UNREACHABLE,
                          "the connection to %s broke before the answer", address);
    case LINK_SILENT:
        return errmsg_set(attempt->err, ERR_TIMEOUT, "no answer from %s in time", address);
    case LINK_ANSWERED:
        break;
    }
    return 0;
}

/* A unix socket that is not there, or may not be used, is told at once and by name. */
static int check_path(const struct attempt *attempt, const char *address)
{
    const char *path = address + strlen("ipc://");

    if (path[0] == '@' || access(path, W_OK) == 0) {
        return 0;
    }
    if (errno == EACCES) {
        return errmsg_set(attempt->err, ERR_DENIED,
                          "you may not use %s: ask to be put into its group, or run as its owner",
                          path);
    }
    return errmsg_set(attempt->err, ERR_UNREACHABLE, "no agent listens at %s: %s", path,
                      strerror(errno));
}

static int open_link(struct attempt *attempt, size_t index, uint64_t until_ns)
{
    struct rpc_client *client = attempt->client;
    const struct endpoint_copy *endpoint = &client->endpoints[index];
    int rc = 0;

    if (client->link.socket != NULL && client->current == index) {
        return 0;
    }
    rpc_link_close(&client->link);
    client->current = index;
    if (!endpoint->is_tcp) {
        rc = check_path(attempt, endpoint->address);
    }
    if (rc == 0) {
        const struct link_target to = {.address = endpoint->address,
                                       .server_key =
                                           endpoint->is_tcp ? &endpoint->server_key : NULL,
                                       .key = &client->key};

        rc = rpc_link_open(&client->link, client->context, &to, attempt->err);
    }
    if (rc == 0) {
        rc = end_to_err(attempt, endpoint->address, rpc_link_wait_ready(&client->link, until_ns));
    }
    return rc;
}

/* Answers to other requests (of a call that was given up) are dropped. */
static int wait_answer(struct attempt *attempt, const char *address, uint64_t until_ns)
{
    for (;;) {
        struct link_answer answer;
        enum link_end end = rpc_link_receive(&attempt->client->link, until_ns, &answer);

        if (end != LINK_ANSWERED) {
            return end_to_err(attempt, address, end);
        }
        bool is_ours = read_envelope(attempt, &answer.envelope);
        int rc = is_ours ? read_answer(attempt, &answer.payload) : 0;
        zmq_msg_close(&answer.envelope);
        zmq_msg_close(&answer.payload);
        if (is_ours) {
            return rc;
        }
    }
}

/* Once with one endpoint. */
static int try_endpoint(struct attempt *attempt, size_t index, uint64_t until_ns)
{
    struct rpc_client *client = attempt->client;
    const char *address = client->endpoints[index].address;
    struct link_frames frames = {0};
    struct wire_arena arena;

    attempt->result->endpoint = address;
    attempt->has_answered = false;
    int rc = open_link(attempt, index, until_ns);
    if (rc == 0) {
        wire_arena_init(&arena, (size_t)4 * LIMIT_RPC_MESSAGE_BYTES);
        rc = build_frames(attempt, &arena, &frames);
        if (rc == 0 && !rpc_link_send(&client->link, &frames)) {
            rc = end_to_err(attempt, address, LINK_LOST);
        } else if (rc == 0) {
            attempt->was_sent = true;
            rc = wait_answer(attempt, address, until_ns);
            attempt->is_open |= !attempt->has_answered;
        }
        wire_arena_close(&arena);
    }
    if (!attempt->has_answered) {
        rpc_link_close(&client->link); /* the next try begins anew */
    }
    return rc;
}

/* Another node, or the same one a little later, may do better. */
static bool is_worth_another_try(const struct attempt *attempt, int rc)
{
    if (attempt->has_answered) {
        return rc != 0 && attempt->result->header->status->code == JURY__V1__CODE__CODE_UNAVAILABLE;
    }
    return rc == ERR_UNREACHABLE || rc == ERR_TIMEOUT || rc == ERR_UNAUTHENTICATED ||
           rc == ERR_DENIED;
}

static uint64_t endpoint_until(const struct attempt *attempt, size_t n_left)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t left_ns = attempt->deadline_ns > now_ns ? attempt->deadline_ns - now_ns : 0;
    uint64_t share_ns = left_ns / n_left;

    if (share_ns < CONNECT_NS) {
        share_ns = left_ns < CONNECT_NS ? left_ns : CONNECT_NS;
    }
    return now_ns + (n_left == 1 ? left_ns : share_ns);
}

/* Every endpoint once, the one that answered last first. */
static int try_round(struct attempt *attempt)
{
    struct rpc_client *client = attempt->client;
    size_t first = client->current;
    int rc = ERR_UNREACHABLE;

    for (size_t i = 0; i < client->n_endpoints; i++) {
        size_t index = (first + i) % client->n_endpoints;

        rc = try_endpoint(attempt, index, endpoint_until(attempt, client->n_endpoints - i));
        if (rc == 0 || !is_worth_another_try(attempt, rc) ||
            clock_monotonic_ns() >= attempt->deadline_ns) {
            break;
        }
    }
    return rc;
}

/* That nobody answers, or leads, is not all that there is to know of a write that a node had: it
 * may have been carried out. Not told as ERR_UNREACHABLE, which says that no node had it. */
static int tell_open(const struct attempt *attempt, int rc)
{
    const struct errmsg why = *attempt->err;

    if (!attempt->is_open || attempt->method->kind != METHOD_WRITE ||
        (rc != ERR_UNREACHABLE && rc != ERR_TIMEOUT && rc != ERR_NOLEADER)) {
        return rc;
    }
    return errmsg_set(attempt->err, rc == ERR_UNREACHABLE ? ERR_TIMEOUT : rc,
                      "the change was sent and may have been made, look before you repeat it: %s",
                      why.text);
}

int rpc_client_call(struct rpc_client *client, const struct rpc_call *call,
                    struct rpc_result *ret_result, struct errmsg *err)
{
    uint32_t timeout_ms = call->timeout_ms != 0 ? call->timeout_ms : client->timeout_ms;
    struct attempt attempt = {
        .client = client,
        .call = call,
        .method = wire_method_find(call->method),
        .result = ret_result,
        .deadline_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS,
        .err = err,
    };
    uint64_t give_up_ns = 0;
    int rc;

    *ret_result = (struct rpc_result){0};
    if (attempt.method == NULL) {
        return errmsg_set(err, ERR_UNKNOWN_METHOD, "there is no method %s", call->method);
    }
    assert(call->request->descriptor == attempt.method->request);
    if (call->request_id != NULL) {
        ret_result->request_id = *call->request_id;
    } else {
        randombytes_buf(ret_result->request_id.bytes, REQUEST_ID_BYTES);
    }
    for (;;) {
        rc = try_round(&attempt);
        /* Rounds go on only when a node had the request: it may be carried out, and asking again
         * with the same id tells. Refused connections and refusals end at once. */
        bool is_open = attempt.was_sent && ret_result->header == NULL &&
                       (rc == ERR_UNREACHABLE || rc == ERR_UNAUTHENTICATED);
        uint64_t now_ns = clock_monotonic_ns();
        if (give_up_ns == 0) {
            bool may_change = attempt.method->kind == METHOD_WRITE;

            give_up_ns = may_change || now_ns + RESTART_NS > attempt.deadline_ns
                             ? attempt.deadline_ns
                             : now_ns + RESTART_NS;
        }
        if (!is_open || now_ns + PAUSE_US * NS_PER_US >= give_up_ns) {
            break;
        }
        usleep(PAUSE_US);
    }
    /* What a node said counts more than that another one could not be reached. */
    if (!attempt.has_answered && ret_result->header != NULL) {
        const Jury__V1__Status *status = ret_result->header->status;

        rc = errmsg_set(err, err_from_reason(status->reason), "%s", status->message);
    }
    return tell_open(&attempt, rc);
}
