/* The http part of the connect engine: request out, header block in, polite end. */
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "agent/core/http_request.h"
#include "agent/probe/connect_attempt.h"
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
            attempt_release(engine, attempt, n == 0 ? END_BY_OUR_FIN : END_BY_RST);
            return;
        }
        attempt->n_received += (uint32_t)n;
    }
    attempt_release(engine, attempt, END_BY_RST);
}

/* The header block is complete: the result is known, the connection is closed politely.
 * is_drained: nothing more was there when the last part was read. */
static void complete_http(struct connect_engine *engine, struct attempt *attempt, bool is_drained)
{
    const struct http_check *http = &attempt->probe.target->definition.check->http;
    enum probe_reason reason = http_reply_judge(&attempt->reply, &http->expect);

    if (probe_attempt_is_overdue(&attempt->probe) && reason == REASON_OK) {
        attempt_end_too_late(engine, attempt, REASON_RECV_RESPONSE_TIMEOUT);
        return;
    }
    if (reason == REASON_HTTP_INVALID_HEADER) {
        attempt_end(engine, attempt, reason);
        return;
    }
    attempt_deliver(engine, attempt, reason);
    if (attempt->has_fin && is_drained) {
        attempt_release(engine, attempt, END_BY_OUR_FIN);
        return;
    }
    attempt_begin_linger(engine, attempt);
    attempt_linger(engine, attempt);
}

void attempt_receive(struct connect_engine *engine, struct attempt *attempt)
{
    char buffer[READ_BYTES];

    for (;;) {
        /* One byte over the bound at most: after it the reply is complete or malformed. */
        size_t left = LIMIT_HTTP_HEADER_BYTES + 1 - attempt->n_received;
        assert(left > 0);
        size_t n =
            attempt_read(engine, attempt, buffer, left < sizeof buffer ? left : sizeof buffer);

        if (n == 0) {
            return;
        }
        if (http_reply_feed(&attempt->reply, buffer, n) != HTTP_REPLY_MORE) {
            complete_http(engine, attempt, n < left && n < sizeof buffer);
            return;
        }
        if (plant_is("probe-rearm")) {
            timers_set(&engine->places.timers, attempt_index(engine, attempt),
                       clock_monotonic_ns() + attempt->probe.deadline_ns - attempt->probe.start_ns);
        }
    }
}

/* The request is built anew for each part: it is short, and nothing has to be kept. An answer that
 * is there before the request left counts too; nothing is read if nothing is known to be there. */
void attempt_send_request(struct connect_engine *engine, struct attempt *attempt)
{
    char request[HTTP_REQUEST_BYTES_MAX];
    size_t n_bytes = http_request_build(&attempt->probe.target->definition, request);

    if (attempt_send(engine, attempt, request, n_bytes) && attempt->is_readable) {
        attempt_receive(engine, attempt);
    }
}
