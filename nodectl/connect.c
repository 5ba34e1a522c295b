#include "nodectl/connect.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/wire/method.h"
#include "jury/v1/cluster.pb-c.h"
#include "nodectl/flags.h"
#include "nodectl/load.h"
#include "nodectl/render.h"

#define ENDPOINTS_MAX 64
#define PAGES_MAX 1000

/* Endpoints as the flags name them, with room for their texts. */
struct targets {
    struct rpc_endpoint endpoints[ENDPOINTS_MAX];
    char addresses[ENDPOINTS_MAX][300];
    size_t n;
};

/* The parts of a comma-separated text, one at a time. Returns false at the end. */
static bool next_part(const char **at, char *part, size_t part_bytes)
{
    size_t n = strcspn(*at, ",");

    if (**at == '\0') {
        return false;
    }
    snprintf(part, part_bytes, "%.*s", (int)n, *at);
    *at += n + ((*at)[n] == ',');
    return true;
}

static int read_server_keys(struct ctl *ctl, struct targets *targets)
{
    const char *at = ctl_text(ctl, FLAG_SERVER_KEY);
    char part[300];
    size_t n = 0;

    for (; next_part(&at, part, sizeof part); n++) {
        if (n == targets->n) {
            return ctl_fail(ctl, ERR_USAGE,
                            "--server-key has more keys than --endpoints has nodes");
        }
        int rc = load_public_key(ctl, "--server-key", part, &targets->endpoints[n].server_key);
        if (rc != 0) {
            return rc;
        }
    }
    if (n != targets->n) {
        ctl_hint(ctl, "each node has a key of its own: name them in the order of --endpoints");
        return ctl_fail(ctl, ERR_USAGE, "--endpoints names %zu nodes and --server-key %zu keys",
                        targets->n, n);
    }
    return 0;
}

static bool has_port(const char *part)
{
    const char *colon = strrchr(part, ':');
    size_t n = colon == NULL ? 0 : strspn(colon + 1, "0123456789");
    long port = n >= 1 && n <= 5 && colon[1 + n] == '\0' ? strtol(colon + 1, NULL, 10) : 0;

    return port >= 1 && port <= UINT16_MAX;
}

static int read_endpoints(struct ctl *ctl, struct targets *targets)
{
    const char *at = ctl_text(ctl, FLAG_ENDPOINTS);
    char part[280];

    while (next_part(&at, part, sizeof part)) {
        const char *scheme = strstr(part, "://") == NULL ? "tcp://" : "";

        if (targets->n == ENDPOINTS_MAX) {
            return ctl_fail(ctl, ERR_USAGE, "--endpoints names more than %d nodes", ENDPOINTS_MAX);
        }
        if (!has_port(part) || (strncmp(part, "tcp://", 6) != 0 && scheme[0] == '\0')) {
            return ctl_fail(ctl, ERR_USAGE, "--endpoints takes HOST:PORT, got \"%.80s\"", part);
        }
        snprintf(targets->addresses[targets->n], sizeof targets->addresses[0], "%s%s", scheme,
                 part);
        targets->endpoints[targets->n].address = targets->addresses[targets->n];
        targets->n++;
    }
    if (targets->n == 0) {
        return ctl_fail(ctl, ERR_USAGE, "--endpoints names no node");
    }
    if (ctl_text(ctl, FLAG_KEY_FILE) == NULL || ctl_text(ctl, FLAG_SERVER_KEY) == NULL) {
        ctl_hint(ctl, "or leave --endpoints out to ask the node on this machine");
        return ctl_fail(ctl, ERR_USAGE,
                        "asking over the network needs your key (--key-file) and the nodes' public "
                        "keys (--server-key)");
    }
    return read_server_keys(ctl, targets);
}

static int connect_network(struct ctl *ctl, struct targets *targets)
{
    struct key_pair pair = {0};
    struct errmsg err = {{0}};
    int rc = read_endpoints(ctl, targets);

    if (rc != 0) {
        return rc;
    }
    rc = key_file_read(ctl_text(ctl, FLAG_KEY_FILE), &pair, &err);
    if (rc != 0) {
        return ctl_fail(ctl, rc, "%s", err.text);
    }
    struct rpc_client_options options = {.endpoints = targets->endpoints,
                                         .n_endpoints = targets->n,
                                         .key = &pair,
                                         .timeout_ms = (uint32_t)ctl_number(ctl, FLAG_TIMEOUT)};
    rc = rpc_client_new(&options, &ctl->client, &err);
    key_pair_close(&pair);
    return rc == 0 ? 0 : ctl_fail(ctl, rc, "%s", err.text);
}

static int connect_socket(struct ctl *ctl)
{
    char address[300];
    struct errmsg err = {{0}};
    struct rpc_endpoint endpoint = {.address = address};
    struct rpc_client_options options = {.endpoints = &endpoint,
                                         .n_endpoints = 1,
                                         .timeout_ms = (uint32_t)ctl_number(ctl, FLAG_TIMEOUT)};

    snprintf(address, sizeof address, "ipc://%s", ctl_text(ctl, FLAG_SOCKET));
    int rc = rpc_client_new(&options, &ctl->client, &err);
    return rc == 0 ? 0 : ctl_fail(ctl, rc, "%s", err.text);
}

static int connect_once(struct ctl *ctl)
{
    if (ctl->client != NULL) {
        return 0;
    }
    if (!ctl_has(ctl, FLAG_ENDPOINTS)) {
        return connect_socket(ctl);
    }
    struct targets *targets = calloc(1, sizeof *targets);
    if (targets == NULL) {
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    int rc = connect_network(ctl, targets);
    free(targets);
    return rc;
}

/* Case A45: who "no leader" is about: each peer with address and last contact. */
static void tell_peers(struct ctl *ctl)
{
    Jury__V1__GetStatusRequest request;
    struct rpc_result result = {0};
    struct errmsg ignored = {{0}};
    struct rpc_call call = {.method = "jury.v1.ClusterService/GetStatus", .stale = true};

    jury__v1__get_status_request__init(&request);
    call.request = &request.base;
    if (rpc_client_call(ctl->client, &call, &result, &ignored) == 0) {
        const Jury__V1__GetStatusResponse *status =
            (const Jury__V1__GetStatusResponse *)(const void *)result.response;

        render_peers(ctl, status);
    }
    rpc_result_close(&result);
}

static void keep_status(struct ctl *ctl, const struct rpc_result *result)
{
    const Jury__V1__Status *status = result->header == NULL ? NULL : result->header->status;

    str_hex(result->request_id.bytes, sizeof result->request_id.bytes, ctl->failure.request_id);
    if (result->endpoint != NULL) {
        ctl_detail(ctl, "endpoint", result->endpoint);
    }
    if (status == NULL) {
        return;
    }
    ctl->failure.rpc_code = (int)status->code;
    snprintf(ctl->failure.reason, sizeof ctl->failure.reason, "%s", status->reason);
    for (size_t i = 0; i < status->n_metadata; i++) {
        ctl_detail(ctl, status->metadata[i]->key, status->metadata[i]->value);
    }
}

static void advise(struct ctl *ctl, const char *method, int rc, bool is_answered)
{
    const struct wire_method *called = wire_method_find(method);

    if (rc == ERR_UNREACHABLE && !is_answered && !ctl_has(ctl, FLAG_ENDPOINTS)) {
        ctl_hint(ctl, "is jury-agent running here? --socket names its unix socket, --endpoints a "
                      "node elsewhere");
    } else if (rc == ERR_FORCE) {
        ctl_hint(ctl, "if that is what you want, repeat it with --force and the number above");
    } else if (rc == ERR_NOLEADER || rc == ERR_NOTLEADER) {
        tell_peers(ctl);
        if (called != NULL && called->kind == METHOD_READ) {
            ctl_hint(ctl, "without a leader this node's own copy can be read: add --stale");
        }
    } else if (rc == ERR_UNAUTHENTICATED) {
        ctl_hint(ctl, "the cluster must know your public key: nodectl key show FILE");
    }
}

int ctl_call(struct ctl *ctl, const char *method, const ProtobufCMessage *request,
             struct rpc_result *result)
{
    struct errmsg err = {{0}};
    int rc = connect_once(ctl);

    if (rc != 0) {
        return rc;
    }
    struct rpc_call call = {.method = method,
                            .request = request,
                            .stale = ctl->is_stale || ctl_has(ctl, FLAG_STALE),
                            .timeout_ms = ctl_has(ctl, FLAG_TIMEOUT) ? 0 : ctl->patience_ms};
    rc = rpc_client_call(ctl->client, &call, result, &err);
    if (rc == 0) {
        if (ctl_has(ctl, FLAG_VERBOSE) && result->header != NULL) {
            ctl_note(ctl, "node %" PRIu64 " at %s answered for revision %" PRIu64 "%s",
                     result->header->node_id, result->endpoint, result->header->revision,
                     result->header->stale ? " (stale)" : "");
        }
        return 0;
    }
    ctl_fail(ctl, rc, "%s", err.text);
    keep_status(ctl, result);
    advise(ctl, method, rc, result->header != NULL);
    return rc;
}

int ctl_try(struct ctl *ctl, const char *method, const ProtobufCMessage *request,
            struct rpc_result *result)
{
    struct ctl_failure kept = ctl->failure;

    ctl->failure = (struct ctl_failure){0};
    int rc = ctl_call(ctl, method, request, result);
    if (rc == ERR_UNREACHABLE || rc == ERR_TIMEOUT || rc == ERR_NOLEADER) {
        json_decref(kept.metadata);
        return rc;
    }
    json_decref(ctl->failure.metadata);
    ctl->failure = kept;
    return rc;
}

int ctl_fail_unchanged(struct ctl *ctl)
{
    const struct errmsg why = ctl->failure.message;

    ctl->failure.hint.text[0] = '\0'; /* a change cannot be stale */
    return ctl_fail(ctl, ERR_NOLEADER, "nothing was changed: %s", why.text);
}

/* --- lists --- */

static void *field_at(ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

    assert(field != NULL);
    return (uint8_t *)message + field->offset;
}

/* The one repeated field of an answer: its count and its pointers. */
static void find_elements(ProtobufCMessage *message, size_t **ret_count, void ****ret_elements)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    for (unsigned i = 0; i < type->n_fields; i++) {
        if (type->fields[i].label == PROTOBUF_C_LABEL_REPEATED) {
            *ret_count = (size_t *)(void *)((uint8_t *)message + type->fields[i].quantifier_offset);
            *ret_elements = (void ***)(void *)((uint8_t *)message + type->fields[i].offset);
            return;
        }
    }
    assert(false);
}

static int add_page(struct ctl_list *list, ProtobufCMessage *page)
{
    size_t *n_whole = NULL;
    size_t *n_page = NULL;
    void ***whole = NULL;
    void ***elements = NULL;

    if (list->whole == NULL) {
        list->whole = page;
        return 0;
    }
    find_elements(list->whole, &n_whole, &whole);
    find_elements(page, &n_page, &elements);
    void **grown = realloc(list->elements, (*n_whole + *n_page + 1) * sizeof *grown);
    if (grown == NULL) {
        return ERR_NOMEM;
    }
    if (list->elements == NULL) {
        memcpy(grown, *whole, *n_whole * sizeof *grown);
    }
    memcpy(grown + *n_whole, *elements, *n_page * sizeof *grown);
    list->elements = grown;
    *whole = grown;
    *n_whole += *n_page;
    return 0;
}

int ctl_call_list(struct ctl *ctl, const char *method, ProtobufCMessage *request,
                  struct ctl_list *ret_list)
{
    *ret_list = (struct ctl_list){.results = calloc(PAGES_MAX, sizeof ret_list->results[0])};
    if (ret_list->results == NULL) {
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    for (;;) {
        if (ret_list->n_results == PAGES_MAX) {
            return ctl_fail(ctl, ERR_LIMIT, "the list has more than %d pages", PAGES_MAX);
        }
        struct rpc_result *result = &ret_list->results[ret_list->n_results++];
        int rc = ctl_call(ctl, method, request, result);
        if (rc != 0) {
            return rc;
        }
        char *token = *(char **)field_at(result->response, "next_page_token");
        if (add_page(ret_list, result->response) != 0) {
            return ctl_fail(ctl, ERR_NOMEM, "out of memory");
        }
        if (token[0] == '\0') {
            /* The whole has no next page. */
            *(char **)field_at(ret_list->whole, "next_page_token") = token;
            return 0;
        }
        *(char **)field_at(request, "page_token") = token;
    }
}

void ctl_list_close(struct ctl_list *list)
{
    for (size_t i = 0; i < list->n_results; i++) {
        rpc_result_close(&list->results[i]);
    }
    free(list->results);
    free(list->elements);
    *list = (struct ctl_list){0};
}
