#include "agent/probe/connect_attempt.h"

#include <assert.h>

#include "agent/probe/connect_engine.h"
#include "agent/probe/connect_socket.h"
#include "common/base/clock.h"

uint32_t attempt_index(const struct connect_engine *engine, const struct attempt *attempt)
{
    return (uint32_t)(attempt - engine->attempts);
}

static void leave_linger_list(struct connect_engine *engine, struct attempt *attempt)
{
    if (attempt->previous == NO_ATTEMPT) {
        engine->linger_oldest = attempt->next;
    } else {
        engine->attempts[attempt->previous].next = attempt->next;
    }
    if (attempt->next == NO_ATTEMPT) {
        engine->linger_youngest = attempt->previous;
    } else {
        engine->attempts[attempt->next].previous = attempt->previous;
    }
}

static void enter_linger_list(struct connect_engine *engine, struct attempt *attempt)
{
    uint32_t index = attempt_index(engine, attempt);

    attempt->next = NO_ATTEMPT;
    attempt->previous = engine->linger_youngest;
    if (engine->linger_youngest == NO_ATTEMPT) {
        engine->linger_oldest = index;
    } else {
        engine->attempts[engine->linger_youngest].next = index;
    }
    engine->linger_youngest = index;
}

struct attempt *attempt_take(struct connect_engine *engine, uint32_t slot)
{
    uint32_t index = engine->free_head;
    assert(index != NO_ATTEMPT);
    struct attempt *attempt = &engine->attempts[index];

    engine->free_head = attempt->next;
    engine->by_slot[slot] = index + 1;
    attempt->slot = slot;
    http_reply_init(&attempt->reply);
    return attempt;
}

void attempt_release(struct connect_engine *engine, struct attempt *attempt, enum ending ending)
{
    uint32_t index = attempt_index(engine, attempt);

    assert(attempt->step != STEP_FREE);
    if (attempt->fd >= 0) {
        if (ending == END_BY_FIN) {
            connect_socket_finish(attempt->fd);
        } else {
            connect_socket_reset(attempt->fd);
        }
    }
    if (attempt->step == STEP_LINGERING) {
        leave_linger_list(engine, attempt);
    }
    timers_clear(&engine->timers, index);
    engine->by_slot[attempt->slot] = 0;
    *attempt = (struct attempt){
        .fd = -1,
        .generation = attempt->generation + 1,
        .next = engine->free_head,
    };
    engine->free_head = index;
}

void attempt_begin_linger(struct connect_engine *engine, struct attempt *attempt)
{
    attempt->target = NULL;
    attempt->step = STEP_LINGERING;
    enter_linger_list(engine, attempt);
    timers_set(&engine->timers, attempt_index(engine, attempt),
               clock_monotonic_ns() + PROBE_LINGER_NS);
}

static void deliver(struct connect_engine *engine, const struct attempt *attempt,
                    enum probe_reason reason, bool is_answered)
{
    struct probe_life life = {
        .start_ns = attempt->start_ns,
        .deadline_ns = attempt->deadline_ns,
        .end_ns = clock_monotonic_ns(),
        .mark = attempt->mark,
        .is_answered = is_answered,
    };

    reason = probe_lateness_judge(engine->lateness, &life, reason);
    struct probe_result result = {
        .id = attempt->target->id,
        .probe_class = (uint8_t)probe_reason_class(reason),
        .reason = (uint8_t)reason,
        .http_status = attempt->reply.status,
        .is_refused = reason == REASON_CONNECT_FAILED && attempt->step == STEP_CONNECTING &&
                      connect_socket_is_refused(attempt->fd),
        .start_ns = life.start_ns,
        .end_ns = life.end_ns,
    };
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

bool attempt_is_overdue(const struct attempt *attempt)
{
    return clock_monotonic_ns() >= attempt->deadline_ns;
}

void attempt_end_too_late(struct connect_engine *engine, struct attempt *attempt,
                          enum probe_reason timeout_reason)
{
    deliver(engine, attempt, timeout_reason, true);
    attempt_release(engine, attempt, END_BY_RST);
}
