#include "agent/probe/probe_attempt.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/clock.h"
#include "common/base/plant.h"

struct probe_attempt probe_attempt_begin(const struct probe_target *target,
                                         const struct probe_lateness *lateness, uint64_t start_ns)
{
    return (struct probe_attempt){
        .target = target,
        .start_ns = start_ns,
        .deadline_ns = start_ns + target->definition.check->timeout_ms * NS_PER_MS,
        .mark = probe_lateness_mark(lateness),
    };
}

bool probe_attempt_is_overdue(const struct probe_attempt *attempt)
{
    return clock_monotonic_ns() >= attempt->deadline_ns;
}

static enum probe_reason ask_way(struct silent_ways *ways, const struct probe_target *target,
                                 enum probe_reason reason)
{
    bool is_silence = reason == REASON_CONNECT_TIMEOUT || reason == REASON_RECV_RESPONSE_TIMEOUT ||
                      reason == REASON_NO_ECHO_REPLY || reason == REASON_SILENT;

    if (!is_silence || plant_is("way-unasked")) {
        return reason;
    }
    enum probe_reason way = silent_ways_ask(ways, target, clock_monotonic_ns());
    return way != REASON_NONE ? way : reason;
}

struct probe_result probe_attempt_result(const struct probe_attempt *attempt,
                                         const struct probe_lateness *lateness,
                                         struct silent_ways *ways, struct probe_ending ending)
{
    struct probe_life life = {
        .start_ns = attempt->start_ns,
        .deadline_ns = attempt->deadline_ns,
        .end_ns = ending.end_ns != 0 ? ending.end_ns : clock_monotonic_ns(),
        .mark = attempt->mark,
        .is_answered = ending.is_answered,
    };

    assert(attempt->target != NULL);
    enum probe_reason reason = ask_way(ways, attempt->target, ending.reason);
    reason = probe_lateness_judge(lateness, &life, reason);
    return (struct probe_result){
        .id = attempt->target->id,
        .probe_class = (uint8_t)probe_reason_class(reason),
        .reason = (uint8_t)reason,
        .is_refused = ending.is_refused && reason == ending.reason,
        .start_ns = life.start_ns,
        .end_ns = life.end_ns,
    };
}
