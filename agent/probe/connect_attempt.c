#include "agent/probe/connect_attempt.h"

#include <assert.h>

#include "agent/probe/connect_engine.h"
#include "agent/probe/connect_socket.h"
#include "agent/probe/connect_trace.h"
#include "common/base/clock.h"

uint32_t attempt_index(const struct connect_engine *engine, const struct attempt *attempt)
{
    return (uint32_t)(attempt - engine->attempts);
}

static void leave_linger_list(struct connect_engine *engine, struct attempt *attempt)
{
    if (attempt->older == NO_PLACE) {
        engine->linger_oldest = attempt->younger;
    } else {
        engine->attempts[attempt->older].younger = attempt->younger;
    }
    if (attempt->younger == NO_PLACE) {
        engine->linger_youngest = attempt->older;
    } else {
        engine->attempts[attempt->younger].older = attempt->older;
    }
}

static void enter_linger_list(struct connect_engine *engine, struct attempt *attempt)
{
    uint32_t index = attempt_index(engine, attempt);

    attempt->younger = NO_PLACE;
    attempt->older = engine->linger_youngest;
    if (engine->linger_youngest == NO_PLACE) {
        engine->linger_oldest = index;
    } else {
        engine->attempts[engine->linger_youngest].younger = index;
    }
    engine->linger_youngest = index;
}

void attempt_release(struct connect_engine *engine, struct attempt *attempt, enum ending ending)
{
    assert(attempt->step != STEP_FREE);
    connect_rst_end(engine, attempt);
    if (attempt->fd >= 0) {
        connect_trace_closing(engine, attempt, ending);
        if (ending != END_BY_RST) {
            connect_pool_finish(&engine->pool, attempt->fd, ending == END_BY_OUR_FIN);
        } else {
            connect_pool_reset(&engine->pool, attempt->fd, attempt->is_established);
        }
    }
    if (attempt->step == STEP_LINGERING) {
        leave_linger_list(engine, attempt);
    }
    attempt_drop_tls(attempt);
    attempt_drop_call(attempt);
    *attempt = (struct attempt){.fd = -1};
    probe_places_release(&engine->places, attempt_index(engine, attempt));
}

void attempt_begin_linger(struct connect_engine *engine, struct attempt *attempt)
{
    attempt->probe.target = NULL;
    attempt->step = STEP_LINGERING;
    enter_linger_list(engine, attempt);
    timers_set(&engine->places.timers, attempt_index(engine, attempt),
               clock_monotonic_ns() + PROBE_LINGER_NS);
}

static void deliver(struct connect_engine *engine, const struct attempt *attempt,
                    enum probe_reason reason, bool is_answered)
{
    const struct probe_ending ending = {
        .reason = reason,
        .is_answered = is_answered,
        .is_refused = reason == REASON_CONNECT_FAILED && attempt->step == STEP_CONNECTING &&
                      connect_socket_is_refused(attempt->fd),
    };
    struct probe_result result =
        probe_attempt_result(&attempt->probe, engine->lateness, &engine->ways, ending);

    result.http_status = attempt->reply.status;
    result.cert = attempt->cert;
    engine->sink->result(engine->sink->user, &result);
}

void attempt_deliver(struct connect_engine *engine, const struct attempt *attempt,
                     enum probe_reason reason)
{
    deliver(engine, attempt, reason, false);
}

void attempt_end(struct connect_engine *engine, struct attempt *attempt, enum probe_reason reason)
{
    deliver(engine, attempt, reason, false);
    attempt_release(engine, attempt, END_BY_RST);
}

void attempt_end_too_late(struct connect_engine *engine, struct attempt *attempt,
                          enum probe_reason timeout_reason)
{
    deliver(engine, attempt, timeout_reason, true);
    attempt_release(engine, attempt, END_BY_RST);
}

void attempt_part_politely(struct connect_engine *engine, struct attempt *attempt)
{
    attempt_drop_tls(attempt);
    attempt_drop_call(attempt);
    attempt->n_received = 0;
    attempt_begin_linger(engine, attempt);
    attempt_linger(engine, attempt);
}
