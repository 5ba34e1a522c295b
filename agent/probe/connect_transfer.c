/* What the parts of the connect engine have in common: bytes out until the
 * socket is full, bytes in until nothing is there, and what a broken connection comes to. */
#include <errno.h>
#include <sys/socket.h>

#include "agent/probe/connect_attempt.h"
#include "agent/probe/probe_errno.h"
#include "agent/probe/probe_note.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

bool attempt_send(struct connect_engine *engine, struct attempt *attempt, const void *bytes,
                  size_t n_bytes)
{
    const uint8_t *all = bytes;

    while (attempt->n_sent < n_bytes) {
        ssize_t n = send(attempt->fd, all + attempt->n_sent, n_bytes - attempt->n_sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            probe_note_bytes(&engine->base, PROBE_STEP_DATA_SENT, all + attempt->n_sent, (size_t)n);
            attempt->n_sent = (uint16_t)(attempt->n_sent + n);
        } else if (errno == EAGAIN) {
            return false;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            attempt->is_readable = true; /* closed already, but its answer may have come before */
            break;
        } else if (errno != EINTR) {
            attempt_end(engine, attempt, probe_reason_of_errno(PROBE_CALL_TRANSFER, errno));
            return false;
        }
    }
    attempt->step = STEP_RECEIVING;
    return true;
}

size_t attempt_read(struct connect_engine *engine, struct attempt *attempt, void *bytes,
                    size_t n_bytes)
{
    ssize_t n;

    do {
        n = recv(attempt->fd, bytes, n_bytes, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        if (attempt->tls != NULL) {
            probe_note_sealed(&engine->base, PROBE_STEP_DATA_RECEIVED, (size_t)n);
        } else {
            probe_note_bytes(&engine->base, PROBE_STEP_DATA_RECEIVED, bytes, (size_t)n);
        }
        attempt->n_received += (uint32_t)n;
        return (size_t)n;
    }
    if (n < 0 && errno == EAGAIN) {
        attempt->is_readable = false;
    } else {
        enum probe_reason reason =
            n == 0 ? REASON_CONNECT_INTERRUPT : probe_reason_of_errno(PROBE_CALL_TRANSFER, errno);

        if (n < 0 && errno == ECONNRESET) {
            probe_note(&engine->base, PROBE_STEP_RST_RECEIVED);
        }
        attempt_end(engine, attempt, reason);
    }
    return 0;
}

size_t attempt_send_some(struct attempt *attempt, const void *bytes, size_t n_bytes,
                         int *ret_errnum)
{
    ssize_t n;

    do {
        n = send(attempt->fd, bytes, n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n >= 0) {
        return (size_t)n;
    }
    if (errno == EPIPE || errno == ECONNRESET) {
        attempt->is_readable = true;
    } else if (errno != EAGAIN) {
        *ret_errnum = errno;
    }
    return 0;
}

size_t attempt_read_bounded(struct connect_engine *engine, struct attempt *attempt, void *bytes,
                            size_t n_bytes, enum probe_reason beyond)
{
    size_t most = plant_is("tls-endless") ? 10 * LIMIT_TLS_BYTES : LIMIT_TLS_BYTES;
    size_t left = most - attempt->n_received;

    if (left == 0) {
        attempt_end(engine, attempt, beyond);
        return 0;
    }
    return attempt_read(engine, attempt, bytes, left < n_bytes ? left : n_bytes);
}
