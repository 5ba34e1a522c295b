/* The line part of the connect engine: a tcp check that says something, or waits for a greeting. */
#include "agent/core/udp_reply.h"
#include "agent/probe/connect_attempt.h"

void attempt_receive_line(struct connect_engine *engine, struct attempt *attempt)
{
    const struct check_line *expect = &attempt->probe.target->definition.check->tcp.expect;
    uint8_t bytes[LIMIT_CHECK_LINE_BYTES];
    enum line_match match = LINE_MORE;

    while (match == LINE_MORE) {
        uint32_t n_before = attempt->n_received;
        size_t n = attempt_read(engine, attempt, bytes, sizeof bytes);

        if (n == 0) {
            return;
        }
        match = line_matches(expect, n_before, bytes, n);
    }
    if (match != LINE_YES) {
        attempt_end(engine, attempt, REASON_RESPONSE_MISMATCH);
    } else if (probe_attempt_is_overdue(&attempt->probe)) {
        attempt_end_too_late(engine, attempt, REASON_RECV_RESPONSE_TIMEOUT);
    } else {
        attempt_end(engine, attempt, REASON_OK);
    }
}

void attempt_send_line(struct connect_engine *engine, struct attempt *attempt)
{
    const struct check_line *line = &attempt->probe.target->definition.check->tcp.send;

    if (attempt_send(engine, attempt, line->bytes, line->n_bytes) && attempt->is_readable) {
        attempt_receive_line(engine, attempt);
    }
}
