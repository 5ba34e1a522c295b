#include "agent/probe/grpc_call.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/grpc_health.h"
#include "agent/core/http_request.h"
#include "common/base/addr.h"

#define AUTHORITY_BYTES (LIMIT_DOMAIN_BYTES + ENDPOINT_TEXT_BYTES)
#define MAX_ACKS 32 /* of pings and settings that wait to be sent; the library's own is 1000 */

struct grpc_call {
    nghttp2_session *session;
    int32_t stream_id;
    bool is_ended;  /* the stream is closed */
    bool is_broken; /* the session is of no use any more */
    struct grpc_reply reply;
    uint8_t request[GRPC_REQUEST_BYTES_MAX];
    size_t n_request, n_given;
    const uint8_t *output; /* of the session, valid until it is asked for more */
    size_t n_output;
};

static ssize_t give_request(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t n_max,
                            uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct grpc_call *call = source->ptr;
    size_t left = call->n_request - call->n_given;
    size_t n = left < n_max ? left : n_max;

    (void)session, (void)stream_id, (void)user;
    memcpy(to, call->request + call->n_given, n);
    call->n_given += n;
    if (call->n_given == call->n_request) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)n;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct grpc_call *call = user;

    (void)session, (void)flags;
    if (frame->hd.stream_id == call->stream_id) {
        grpc_reply_header(&call->reply, (const char *)name, n_name, (const char *)value, n_value);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *bytes,
                   size_t n_bytes, void *user)
{
    struct grpc_call *call = user;

    (void)session, (void)flags;
    if (stream_id == call->stream_id) {
        grpc_reply_data(&call->reply, bytes, n_bytes);
    }
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code, void *user)
{
    struct grpc_call *call = user;

    (void)session;
    if (stream_id == call->stream_id) {
        call->is_ended = true;
        call->reply.is_malformed |= error_code != NGHTTP2_NO_ERROR;
    }
    return 0;
}

static nghttp2_session *session_new(struct grpc_call *call)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    nghttp2_session *session = NULL;

    if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
        nghttp2_option_set_max_outbound_ack(option, MAX_ACKS);
        nghttp2_option_set_max_deflate_dynamic_table_size(option, 0);
        nghttp2_option_set_no_closed_streams(option, 1);
        if (nghttp2_session_client_new2(&session, callbacks, call, option) != 0) {
            session = NULL;
        }
    }
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return session;
}

/* The fields are copied by the library. */
static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name,
        .value = (uint8_t *)(uintptr_t)value,
        .namelen = strlen(name),
        .valuelen = strlen(value),
        .flags = NGHTTP2_NV_FLAG_NONE,
    };
}

/* The name that TLS asks for is whom the request is for, too; else it is where it goes. */
static const char *authority_of(const struct target_definition *definition,
                                char text[AUTHORITY_BYTES])
{
    if (definition->check->tls.server_name[0] != '\0') {
        return definition->check->tls.server_name;
    }
    return endpoint_format(&definition->to, text);
}

static bool submit(struct grpc_call *call, const struct target_definition *definition)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_HTTP_HEADER_BYTES},
    };
    char authority[AUTHORITY_BYTES];
    char timeout[16];

    snprintf(timeout, sizeof timeout, "%um", definition->check->timeout_ms);
    const nghttp2_nv fields[] = {
        field(":method", "POST"),
        field(":scheme", definition->check->tls.verify != TLS_VERIFY_UNSET ? "https" : "http"),
        field(":path", GRPC_HEALTH_PATH),
        field(":authority", authority_of(definition, authority)),
        field("te", "trailers"),
        field("content-type", "application/grpc"),
        field("user-agent", HTTP_USER_AGENT),
        field("grpc-timeout", timeout),
    };
    const nghttp2_data_provider provider = {.source.ptr = call, .read_callback = give_request};

    call->n_request = grpc_health_request(definition->check->grpc.service, call->request);
    if (nghttp2_submit_settings(call->session, NGHTTP2_FLAG_NONE, settings,
                                sizeof settings / sizeof settings[0]) != 0) {
        return false;
    }
    call->stream_id = nghttp2_submit_request(call->session, NULL, fields,
                                             sizeof fields / sizeof fields[0], &provider, NULL);
    return call->stream_id > 0;
}

struct grpc_call *grpc_call_new(const struct target_definition *definition)
{
    struct grpc_call *call = calloc(1, sizeof *call);

    if (call == NULL) {
        return NULL;
    }
    call->session = session_new(call);
    if (call->session == NULL || !submit(call, definition)) {
        grpc_call_free(call);
        return NULL;
    }
    return call;
}

void grpc_call_free(struct grpc_call *call)
{
    if (call != NULL) {
        nghttp2_session_del(call->session);
        free(call);
    }
}

bool grpc_call_take(struct grpc_call *call, const void *bytes, size_t n_bytes)
{
    assert(call->n_output == 0 || call->output != NULL);
    ssize_t n = nghttp2_session_mem_recv(call->session, bytes, n_bytes);
    if (n == NGHTTP2_ERR_NOMEM) {
        return false;
    }
    call->is_broken |= n < 0;
    return true;
}

size_t grpc_call_output(struct grpc_call *call, const void **ret_bytes)
{
    if (call->n_output == 0) {
        ssize_t n = nghttp2_session_mem_send(call->session, &call->output);

        call->is_broken |= n < 0;
        call->n_output = n > 0 ? (size_t)n : 0;
    }
    *ret_bytes = call->output;
    return call->n_output;
}

void grpc_call_drop(struct grpc_call *call, size_t n_bytes)
{
    assert(n_bytes <= call->n_output);
    call->output += n_bytes;
    call->n_output -= n_bytes;
}

enum probe_reason grpc_call_judge(const struct grpc_call *call, uint16_t *ret_number)
{
    *ret_number = 0;
    if (call->is_ended) {
        return grpc_reply_judge(&call->reply, ret_number);
    }
    /* When the library has said GOAWAY it wants no more. */
    bool is_over = call->is_broken || nghttp2_session_want_read(call->session) == 0;
    if (!is_over) {
        return REASON_NONE;
    }
    /* A status other than 200 is the better word, and may not depend on whether the stream or the
     * session was found broken first, which is a matter of how the bytes came. */
    struct grpc_reply broken = call->reply;
    broken.is_malformed = true;
    return grpc_reply_judge(&broken, ret_number);
}

void grpc_call_finish(struct grpc_call *call)
{
    (void)nghttp2_session_terminate_session(call->session, NGHTTP2_NO_ERROR);
}
