/* The gRPC part of the connect engine: it carries the bytes of a grpc_call in the clear, and gives
 * connect_tls.c what it needs to carry them within TLS. No more than LIMIT_TLS_BYTES are read of
 * one connection. */
#include "agent/probe/connect_attempt.h"
#include "agent/probe/connect_engine.h"
#include "agent/probe/grpc_call.h"
#include "agent/probe/probe_errno.h"
#include "agent/probe/probe_note.h"
#include "common/base/limits.h"

#define READ_BYTES 4096

bool connect_engine_enable_grpc(struct probe_engine *engine)
{
    engine->capabilities |= PROBE_CAN_GRPC;
    if ((engine->capabilities & PROBE_CAN_TLS) != 0) {
        engine->capabilities |= PROBE_CAN_GRPC_TLS;
    }
    return true;
}

bool attempt_begin_call(struct attempt *attempt)
{
    attempt->call = grpc_call_new(&attempt->probe.target->definition);
    return attempt->call != NULL;
}

void attempt_drop_call(struct attempt *attempt)
{
    grpc_call_free(attempt->call);
    attempt->call = NULL;
}

size_t attempt_call_output(struct attempt *attempt, const void **ret_bytes)
{
    return grpc_call_output(attempt->call, ret_bytes);
}

void attempt_call_sent(struct attempt *attempt, size_t n_bytes)
{
    grpc_call_drop(attempt->call, n_bytes);
}

bool attempt_take_call(struct attempt *attempt, const void *bytes, size_t n_bytes)
{
    return grpc_call_take(attempt->call, bytes, n_bytes);
}

enum probe_reason attempt_judge_call(struct attempt *attempt)
{
    return grpc_call_judge(attempt->call, &attempt->reply.status);
}

void attempt_finish_call(struct attempt *attempt)
{
    grpc_call_finish(attempt->call);
}

/* --- in the clear --- */

/* Returns 0 or an errno. What the socket does not take waits for its next event. */
static int push(struct probe_engine *base, struct attempt *attempt)
{
    const void *bytes;
    size_t n_bytes;
    int errnum = 0;

    while ((n_bytes = grpc_call_output(attempt->call, &bytes)) > 0) {
        size_t n = attempt_send_some(attempt, bytes, n_bytes, &errnum);

        if (n == 0) {
            return errnum;
        }
        probe_note_bytes(base, PROBE_STEP_DATA_SENT, bytes, n);
        grpc_call_drop(attempt->call, n);
    }
    return 0;
}

static void conclude(struct connect_engine *engine, struct attempt *attempt,
                     enum probe_reason reason)
{
    if (probe_attempt_is_overdue(&attempt->probe) && reason == REASON_OK) {
        attempt_end_too_late(engine, attempt, REASON_RECV_RESPONSE_TIMEOUT);
        return;
    }
    attempt_deliver(engine, attempt, reason);
    attempt_finish_call(attempt);
    (void)push(&engine->base, attempt); /* politeness alone: the result is out */
    attempt_part_politely(engine, attempt);
}

void attempt_run_grpc(struct connect_engine *engine, struct attempt *attempt)
{
    uint8_t buffer[READ_BYTES];

    for (;;) {
        int errnum = push(&engine->base, attempt);
        enum probe_reason reason = attempt_judge_call(attempt);

        if (reason != REASON_NONE) {
            conclude(engine, attempt, reason);
            return;
        }
        if (errnum != 0) {
            attempt_end(engine, attempt, probe_reason_of_errno(PROBE_CALL_TRANSFER, errnum));
            return;
        }
        size_t n = !attempt->is_readable ? 0
                                         : attempt_read_bounded(engine, attempt, buffer,
                                                                sizeof buffer, REASON_GRPC_INVALID);
        if (n == 0) {
            return;
        }
        if (!attempt_take_call(attempt, buffer, n)) {
            attempt_end(engine, attempt, REASON_LOCAL_NO_BUFFER);
            return;
        }
    }
}

void attempt_begin_grpc(struct connect_engine *engine, struct attempt *attempt)
{
    if (!attempt_begin_call(attempt)) {
        attempt_end(engine, attempt, REASON_LOCAL_NO_BUFFER);
        return;
    }
    attempt->step = STEP_TALKING;
    attempt_run_grpc(engine, attempt);
}
