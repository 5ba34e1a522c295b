#include "agent/probe/probe_attempt.h"

#include <assert.h>
#include <stddef.h>

#include "common/base/clock.h"

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

struct probe_result probe_attempt_result(const struct probe_attempt *attempt,
                                         const struct probe_lateness *lateness,
                                         struct probe_ending ending)
{
    struct probe_life life = {
        .start_ns = attempt->start_ns,
        .deadline_ns = attempt->deadline_ns,
        .end_ns = ending.end_ns != 0 ? ending.end_ns : clock_monotonic_ns(),
        .mark = attempt->mark,
        .is_answered = ending.is_answered,
    };

    assert(attempt->target != NULL);
    enum probe_reason reason = probe_lateness_judge(lateness, &life, ending.reason);
    return (struct probe_result){
        .id = attempt->target->id,
        .probe_class = (uint8_t)probe_reason_class(reason),
        .reason = (uint8_t)reason,
        .is_refused = ending.is_refused && reason == ending.reason,
        .start_ns = life.start_ns,
        .end_ns = life.end_ns,
    };
}
