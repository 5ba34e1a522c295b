/* In the place of connect_grpc.c, in an agent that is built without libnghttp2. The engine lacks
 * the kind, so nobody submits one. */
#include <assert.h>

#include "agent/probe/connect_attempt.h"
#include "agent/probe/connect_engine.h"

bool connect_engine_enable_grpc(struct probe_engine *engine)
{
    (void)engine;
    return false;
}

void attempt_begin_grpc(struct connect_engine *engine, struct attempt *attempt)
{
    attempt_end(engine, attempt, REASON_LOCAL_NOT_BUILT);
}

void attempt_run_grpc(struct connect_engine *engine, struct attempt *attempt)
{
    attempt_end(engine, attempt, REASON_LOCAL_NOT_BUILT);
}

bool attempt_begin_call(struct attempt *attempt)
{
    assert(attempt->call == NULL);
    return false;
}

void attempt_drop_call(struct attempt *attempt)
{
    assert(attempt->call == NULL);
}

size_t attempt_call_output(struct attempt *attempt, const void **ret_bytes)
{
    assert(attempt->call == NULL);
    *ret_bytes = NULL;
    return 0;
}

void attempt_call_sent(struct attempt *attempt, size_t n_bytes)
{
    (void)n_bytes;
    assert(attempt->call == NULL);
}

bool attempt_take_call(struct attempt *attempt, const void *bytes, size_t n_bytes)
{
    (void)bytes;
    (void)n_bytes;
    assert(attempt->call == NULL);
    return false;
}

enum probe_reason attempt_judge_call(struct attempt *attempt)
{
    assert(attempt->call == NULL);
    return REASON_LOCAL_NOT_BUILT;
}

void attempt_finish_call(struct attempt *attempt)
{
    assert(attempt->call == NULL);
}
