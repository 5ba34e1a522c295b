/* The line part of the connect engine: a tcp check that says something, or waits for a greeting. */
#include <errno.h>
#include <sys/socket.h>

#include "agent/core/udp_reply.h"
#include "agent/probe/connect_attempt.h"
#include "agent/probe/probe_errno.h"

static void complete_line(struct connect_engine *engine, struct attempt *attempt,
                          enum probe_reason reason)
{
    if (reason == REASON_OK && attempt_is_overdue(attempt)) {
        attempt_end_too_late(engine, attempt, REASON_RECV_RESPONSE_TIMEOUT);
        return;
    }
    attempt_end(engine, attempt, reason);
}

void attempt_receive_line(struct connect_engine *engine, struct attempt *attempt)
{
    const struct check_line *expect = &attempt->target->definition.check.tcp.expect;
    uint8_t bytes[LIMIT_CHECK_LINE_BYTES];

    for (;;) {
        ssize_t n = recv(attempt->fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            attempt->is_readable = false;
            return;
        }
        if (n <= 0) {
            complete_line(engine, attempt,
                          n == 0 ? REASON_CONNECT_INTERRUPT
                                 : probe_reason_of_errno(PROBE_CALL_TRANSFER, errno));
            return;
        }
        enum line_match match = line_matches(expect, attempt->n_received, bytes, (size_t)n);
        attempt->n_received += (uint32_t)n;
        if (match != LINE_MORE) {
            complete_line(engine, attempt,
                          match == LINE_YES ? REASON_OK : REASON_RESPONSE_MISMATCH);
            return;
        }
    }
}

void attempt_send_line(struct connect_engine *engine, struct attempt *attempt)
{
    const struct tcp_check *tcp = &attempt->target->definition.check.tcp;

    while (attempt->n_sent < tcp->send.n_bytes) {
        ssize_t n =
            send(attempt->fd, tcp->send.bytes + attempt->n_sent,
                 (size_t)(tcp->send.n_bytes - attempt->n_sent), MSG_NOSIGNAL | MSG_DONTWAIT);

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
        attempt_receive_line(engine, attempt);
    }
}
