/* In the place of connect_tls.c, in an agent that is built without OpenSSL. */
#include <assert.h>

#include "agent/probe/connect_attempt.h"
#include "agent/probe/connect_engine.h"

bool connect_engine_enable_tls(struct probe_engine *engine)
{
    (void)engine;
    return false;
}

void connect_engine_drop_tls(struct connect_engine *engine)
{
    assert(engine->tls == NULL);
}

/* The engine lacks the kind, so nobody submits one. */
void attempt_begin_tls(struct connect_engine *engine, struct attempt *attempt)
{
    attempt_end(engine, attempt, REASON_LOCAL_NOT_BUILT);
}

void attempt_run_tls(struct connect_engine *engine, struct attempt *attempt)
{
    attempt_end(engine, attempt, REASON_LOCAL_NOT_BUILT);
}

void attempt_drop_tls(struct attempt *attempt)
{
    assert(attempt->tls == NULL);
}
