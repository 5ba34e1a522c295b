/* The TLS part of the connect engine: it carries the bytes of a tls_session, and judges what comes
 * of it. Each run goes on as far as socket and session allow; no more than LIMIT_TLS_BYTES are read
 * of one connection, so no run is longer than that either. */
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "agent/core/http_request.h"
#include "agent/probe/connect_attempt.h"
#include "agent/probe/connect_engine.h"
#include "agent/probe/probe_errno.h"
#include "agent/probe/probe_note.h"
#include "agent/probe/tls_session.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

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

/* Send what the session has. What the socket does not take waits for its next event; of a
 * connection that is closed already, the answer may have come before. Returns 0 or an errno. */
static int push(struct probe_engine *base, struct attempt *attempt)
{
    const void *bytes;
    size_t n_bytes;

    while ((n_bytes = tls_session_output(attempt->tls, &bytes)) > 0) {
        ssize_t n = send(attempt->fd, bytes, n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            probe_note_sealed(base, PROBE_STEP_DATA_SENT, (size_t)n);
            tls_session_drop(attempt->tls, (size_t)n);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            attempt->is_readable = true;
            break;
        } else if (errno != EINTR) {
            return errno;
        }
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

/* The handshake is done and the result is known: say goodbye, and close politely. */
static void conclude(struct connect_engine *engine, struct attempt *attempt,
                     enum probe_reason reason)
{
    if (probe_attempt_is_overdue(&attempt->probe) && reason == REASON_OK) {
        attempt_end_too_late(engine, attempt, REASON_RECV_RESPONSE_TIMEOUT);
        return;
    }
    attempt_deliver(engine, attempt, reason);
    tls_session_finish(attempt->tls);
    (void)push(&engine->base, attempt); /* politeness alone: the result is out */
    attempt_drop_tls(attempt);
    attempt->n_received = 0;
    attempt_begin_linger(engine, attempt);
    attempt_linger(engine, attempt);
}

/* What is read inside. False: the probe has ended. */
static bool read_reply(struct connect_engine *engine, struct attempt *attempt)
{
    const struct http_check *http = &attempt->probe.target->definition.check.http;
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
        if (http_reply_feed(&attempt->reply, buffer, n) != HTTP_REPLY_MORE) {
            conclude(engine, attempt, http_reply_judge(&attempt->reply, &http->expect));
            return false;
        }
    }
}

/* The handshake is done. False: the probe has ended. */
static bool go_inside(struct connect_engine *engine, struct attempt *attempt)
{
    const struct target_definition *definition = &attempt->probe.target->definition;
    const struct tls_check *tls = &definition->check.tls;
    char request[HTTP_REQUEST_BYTES_MAX];

    probe_note(&engine->base, PROBE_STEP_TLS_ESTABLISHED);
    attempt->cert = tls_session_cert_end(attempt->tls, tls);
    enum probe_reason reason = tls_session_judge(attempt->tls, tls);
    if (reason != REASON_OK || !check_asks_http(&definition->check)) {
        conclude(engine, attempt, reason);
        return false;
    }
    size_t n_bytes = http_request_build(definition, request);
    if (!tls_session_write(attempt->tls, request, n_bytes)) {
        attempt_end(engine, attempt, REASON_TLS_HANDSHAKE_FAILED);
        return false;
    }
    probe_note_bytes(&engine->base, PROBE_STEP_DATA_SENT, request, n_bytes);
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
    return read_reply(engine, attempt);
}

/* Take what has come. False: nothing more is there for now, or the probe has ended. */
static bool fill(struct connect_engine *engine, struct attempt *attempt)
{
    uint8_t buffer[READ_BYTES];
    size_t most = plant_is("tls-endless") ? 10 * LIMIT_TLS_BYTES : LIMIT_TLS_BYTES;
    size_t left = most - attempt->n_received;

    if (left == 0) {
        attempt_end(engine, attempt,
                    attempt->is_inside ? REASON_HTTP_INVALID_HEADER : REASON_TLS_HANDSHAKE_FAILED);
        return false;
    }
    size_t n = attempt_read(engine, attempt, buffer, left < sizeof buffer ? left : sizeof buffer);
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
    enum probe_reason reason =
        tls_session_new(engine->tls, &attempt->probe.target->definition.check.tls, &attempt->tls);

    if (reason != REASON_NONE) {
        attempt_end(engine, attempt, reason);
        return;
    }
    attempt->step = STEP_SECURED;
    attempt_run_tls(engine, attempt);
}
