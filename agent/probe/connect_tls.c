/* The TLS part of the connect engine: it carries the bytes of a tls_session, and judges what comes
 * of it. Each run goes on as far as socket and session allow; no more than LIMIT_TLS_BYTES are read
 * of one connection, so no run is longer than that either. */
#include <assert.h>

#include "agent/core/http_request.h"
#include "agent/probe/connect_attempt.h"
#include "agent/probe/connect_engine.h"
#include "agent/probe/probe_errno.h"
#include "agent/probe/probe_note.h"
#include "agent/probe/tls_session.h"
#include "common/base/str.h"

#define READ_BYTES 4096

bool connect_engine_enable_tls(struct probe_engine *base)
{
    struct connect_engine *engine = (struct connect_engine *)base;

    assert(engine->tls == NULL);
    engine->tls = tls_contexts_new();
    if (engine->tls != NULL) {
        base->capabilities |= PROBE_CAN_TLS;
    }
    return engine->tls != NULL;
}

void connect_engine_drop_tls(struct connect_engine *engine)
{
    tls_contexts_free(engine->tls);
    engine->tls = NULL;
}

void attempt_drop_tls(struct attempt *attempt)
{
    tls_session_free(attempt->tls);
    attempt->tls = NULL;
}

/* What the check says of TLS; gRPC is chosen by the name of its transport. */
static struct tls_check tls_of(const struct attempt *attempt)
{
    const struct health_check *check = attempt->probe.target->definition.check;
    struct tls_check tls = check->tls;

    if (check->type == CHECK_TYPE_GRPC) {
        str_copy(tls.alpn, sizeof tls.alpn, "h2");
    }
    return tls;
}

/* Send what the session has. What the socket does not take waits for its next event. Returns 0 or
 * an errno. */
static int push(struct probe_engine *base, struct attempt *attempt)
{
    const void *bytes;
    size_t n_bytes;
    int errnum = 0;

    while ((n_bytes = tls_session_output(attempt->tls, &bytes)) > 0) {
        size_t n = attempt_send_some(attempt, bytes, n_bytes, &errnum);

        if (n == 0) {
            return errnum;
        }
        probe_note_sealed(base, PROBE_STEP_DATA_SENT, n);
        tls_session_drop(attempt->tls, n);
    }
    return 0;
}

/* False: the probe has ended. */
static bool flush(struct connect_engine *engine, struct attempt *attempt)
{
    int errnum = push(&engine->base, attempt);

    if (errnum != 0) {
        attempt_end(engine, attempt, probe_reason_of_errno(PROBE_CALL_TRANSFER, errnum));
    }
    return errnum == 0;
}

/* Put what a call has to say inside. False: it failed. */
static bool say_call(struct attempt *attempt)
{
    const void *bytes;
    size_t n_bytes;

    while ((n_bytes = attempt_call_output(attempt, &bytes)) > 0) {
        if (!tls_session_write(attempt->tls, bytes, n_bytes)) {
            return false;
        }
        attempt_call_sent(attempt, n_bytes);
    }
    return true;
}

/* The handshake is done and the result is known: say goodbye, and close politely. */
static void conclude(struct connect_engine *engine, struct attempt *attempt,
                     enum probe_reason reason)
{
    if (probe_attempt_is_overdue(&attempt->probe) && reason == REASON_OK) {
        attempt_end_too_late(engine, attempt, REASON_RECV_RESPONSE_TIMEOUT);
        return;
    }
    attempt_deliver(engine, attempt, reason);
    /* What follows is politeness alone: the result is out. */
    if (attempt->call != NULL) {
        attempt_finish_call(attempt);
        (void)say_call(attempt);
    }
    tls_session_finish(attempt->tls);
    (void)push(&engine->base, attempt);
    attempt_part_politely(engine, attempt);
}

/* What some bytes inside come to. REASON_NONE: there is more to come. */
static enum probe_reason take_inside(struct attempt *attempt, const void *bytes, size_t n_bytes)
{
    const struct http_check *http = &attempt->probe.target->definition.check->http;

    if (attempt->call != NULL) {
        return !attempt_take_call(attempt, bytes, n_bytes) ? REASON_LOCAL_NO_BUFFER
               : !say_call(attempt)                        ? REASON_CONNECT_INTERRUPT
                                                           : attempt_judge_call(attempt);
    }
    return http_reply_feed(&attempt->reply, bytes, n_bytes) == HTTP_REPLY_MORE
               ? REASON_NONE
               : http_reply_judge(&attempt->reply, &http->expect);
}

/* False: the probe has ended. */
static bool read_inside(struct connect_engine *engine, struct attempt *attempt)
{
    char buffer[READ_BYTES];
    size_t n = 0;

    for (;;) {
        switch (tls_session_read(attempt->tls, buffer, sizeof buffer, &n)) {
        case TLS_MORE:
            return true;
        case TLS_CLOSED:
        case TLS_FAILED:
            attempt_end(engine, attempt, REASON_CONNECT_INTERRUPT);
            return false;
        case TLS_DONE:
            break;
        }
        probe_note_bytes(&engine->base, PROBE_STEP_DATA_RECEIVED, buffer, n);
        enum probe_reason reason = take_inside(attempt, buffer, n);
        if (reason != REASON_NONE) {
            conclude(engine, attempt, reason);
            return false;
        }
    }
}

/* Ask inside what the check asks. REASON_NONE, or why that cannot be. */
static enum probe_reason ask_inside(struct connect_engine *engine, struct attempt *attempt)
{
    const struct target_definition *definition = &attempt->probe.target->definition;
    char request[HTTP_REQUEST_BYTES_MAX];

    if (definition->check->type == CHECK_TYPE_GRPC) {
        return !attempt_begin_call(attempt) ? REASON_LOCAL_NO_BUFFER
               : !say_call(attempt)         ? REASON_TLS_HANDSHAKE_FAILED
                                            : REASON_NONE;
    }
    size_t n_bytes = http_request_build(definition, request);
    probe_note_bytes(&engine->base, PROBE_STEP_DATA_SENT, request, n_bytes);
    return tls_session_write(attempt->tls, request, n_bytes) ? REASON_NONE
                                                             : REASON_TLS_HANDSHAKE_FAILED;
}

/* The handshake is done. False: the probe has ended. */
static bool go_inside(struct connect_engine *engine, struct attempt *attempt)
{
    const struct health_check *check = attempt->probe.target->definition.check;
    const struct tls_check tls = tls_of(attempt);

    probe_note(&engine->base, PROBE_STEP_TLS_ESTABLISHED);
    attempt->cert = tls_session_cert_end(attempt->tls, &tls);
    enum probe_reason reason = tls_session_judge(attempt->tls, &tls);
    if (reason != REASON_OK || (check->type == CHECK_TYPE_TLS && !check_asks_http(check))) {
        conclude(engine, attempt, reason);
        return false;
    }
    reason = ask_inside(engine, attempt);
    if (reason != REASON_NONE) {
        attempt_end(engine, attempt, reason);
        return false;
    }
    attempt->is_inside = true;
    return true;
}

/* As far as the bytes allow. False: the probe has ended. */
static bool advance(struct connect_engine *engine, struct attempt *attempt)
{
    if (!attempt->is_inside) {
        switch (tls_session_shake(attempt->tls)) {
        case TLS_MORE:
            return true;
        case TLS_CLOSED:
        case TLS_FAILED:
            if (flush(engine, attempt)) { /* the alert that says why */
                attempt_end(engine, attempt, REASON_TLS_HANDSHAKE_FAILED);
            }
            return false;
        case TLS_DONE:
            break;
        }
        if (!go_inside(engine, attempt)) {
            return false;
        }
    }
    return read_inside(engine, attempt);
}

/* Take what has come. False: nothing more is there for now, or the probe has ended. */
static bool fill(struct connect_engine *engine, struct attempt *attempt)
{
    uint8_t buffer[READ_BYTES];
    enum probe_reason beyond = !attempt->is_inside     ? REASON_TLS_HANDSHAKE_FAILED
                               : attempt->call != NULL ? REASON_GRPC_INVALID
                                                       : REASON_HTTP_INVALID_HEADER;
    size_t n = attempt_read_bounded(engine, attempt, buffer, sizeof buffer, beyond);

    if (n > 0 && !tls_session_take(attempt->tls, buffer, n)) {
        attempt_end(engine, attempt, REASON_LOCAL_NO_BUFFER);
        return false;
    }
    return n > 0;
}

void attempt_run_tls(struct connect_engine *engine, struct attempt *attempt)
{
    do {
        if (!advance(engine, attempt) || !flush(engine, attempt)) {
            return;
        }
    } while (attempt->is_readable && fill(engine, attempt));
}

void attempt_begin_tls(struct connect_engine *engine, struct attempt *attempt)
{
    const struct tls_check tls = tls_of(attempt);
    enum probe_reason reason = tls_session_new(engine->tls, &tls, &attempt->tls);

    if (reason != REASON_NONE) {
        attempt_end(engine, attempt, reason);
        return;
    }
    attempt->step = STEP_TALKING;
    attempt_run_tls(engine, attempt);
}
