/* The http part of the connect engine: request out, header block in, polite end. */
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "agent/core/http_request.h"
#include "agent/probe/connect_attempt.h"
#include "agent/probe/probe_errno.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

#define READ_BYTES 4096

/* Read and drop until the server's FIN, 16 KiB in all, or nothing more for now. */
void attempt_linger(struct connect_engine *engine, struct attempt *attempt)
{
    char buffer[READ_BYTES];

    while (attempt->n_received < LIMIT_HTTP_HEADER_BYTES) {
        size_t left = LIMIT_HTTP_HEADER_BYTES - attempt->n_received;
        ssize_t n =
            recv(attempt->fd, buffer, left < sizeof buffer ? left : sizeof buffer, MSG_DONTWAIT);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n <= 0) {
            attempt_release(engine, attempt, n == 0 ? END_BY_FIN : END_BY_RST);
            return;
        }
        attempt->n_received += (uint32_t)n;
    }
    attempt_release(engine, attempt, END_BY_RST);
}

/* The header block is complete: the result is known, the connection is closed politely. */
static void complete_http(struct connect_engine *engine, struct attempt *attempt)
{
    const struct http_check *http = &attempt->target->definition.check.http;
    enum probe_reason reason = http_reply_judge(&attempt->reply, &http->expect);

    if (attempt_is_overdue(attempt) && reason == REASON_OK) {
        attempt_end_too_late(engine, attempt, REASON_RECV_RESPONSE_TIMEOUT);
        return;
    }
    if (reason == REASON_HTTP_INVALID_HEADER) {
        attempt_end(engine, attempt, reason);
        return;
    }
    attempt_deliver(engine, attempt, reason);
    attempt_begin_linger(engine, attempt);
    attempt_linger(engine, attempt);
}

/* Never asks for more than one byte over the bound: after it the reply is complete or malformed. */
static ssize_t receive_part(struct attempt *attempt, char buffer[READ_BYTES])
{
    size_t left = LIMIT_HTTP_HEADER_BYTES + 1 - attempt->n_received;
    ssize_t n;

    assert(left > 0);
    do {
        n = recv(attempt->fd, buffer, left < READ_BYTES ? left : READ_BYTES, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return n;
}

void attempt_receive(struct connect_engine *engine, struct attempt *attempt)
{
    char buffer[READ_BYTES];

    for (;;) {
        ssize_t n = receive_part(attempt, buffer);

        if (n < 0 && errno == EAGAIN) {
            attempt->is_readable = false;
            return;
        }
        if (n < 0) {
            attempt_end(engine, attempt, probe_reason_of_errno(PROBE_CALL_TRANSFER, errno));
            return;
        }
        if (n == 0) {
            attempt_end(engine, attempt, REASON_CONNECT_INTERRUPT);
            return;
        }
        attempt->n_received += (uint32_t)n;
        if (http_reply_feed(&attempt->reply, buffer, (size_t)n) != HTTP_REPLY_MORE) {
            complete_http(engine, attempt);
            return;
        }
        if (plant_is("probe-rearm")) {
            timers_set(&engine->timers, attempt_index(engine, attempt),
                       clock_monotonic_ns() + attempt->deadline_ns - attempt->start_ns);
        }
    }
}

/* The request is built anew for each part: it is short, and nothing has to be kept. An answer that
 * is there before the request left counts too; nothing is read if nothing is known to be there. */
void attempt_send_request(struct connect_engine *engine, struct attempt *attempt)
{
    char request[HTTP_REQUEST_BYTES_MAX];
    size_t n_bytes = http_request_build(&attempt->target->definition, request);

    while (attempt->n_sent < n_bytes) {
        ssize_t n = send(attempt->fd, request + attempt->n_sent, n_bytes - attempt->n_sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            attempt->n_sent = (uint16_t)(attempt->n_sent + n);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            attempt->is_readable = true; /* closed already, but its answer may have come before */
            break;
        } else if (errno != EINTR) {
            attempt_end(engine, attempt, probe_reason_of_errno(PROBE_CALL_TRANSFER, errno));
            return;
        }
    }
    attempt->step = STEP_RECEIVING;
    if (attempt->is_readable) {
        attempt_receive(engine, attempt);
    }
}
