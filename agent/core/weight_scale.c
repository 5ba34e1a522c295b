#include "agent/core/weight_scale.h"

#include <assert.h>

static uint64_t step_of(uint64_t elapsed_ns, uint64_t duration_ns)
{
    assert(duration_ns > 0);
    return elapsed_ns >= duration_ns ? WEIGHT_SLOW_STEPS
                                     : elapsed_ns * WEIGHT_SLOW_STEPS / duration_ns;
}

uint8_t weight_slow_percent(uint64_t elapsed_ns, uint64_t duration_ns)
{
    uint64_t rise = (WEIGHT_WHOLE - WEIGHT_FLOOR) * step_of(elapsed_ns, duration_ns);

    return (uint8_t)(WEIGHT_FLOOR + rise / WEIGHT_SLOW_STEPS);
}

uint64_t weight_slow_next_ns(uint64_t elapsed_ns, uint64_t duration_ns)
{
    uint64_t next = step_of(elapsed_ns, duration_ns) + 1;

    /* Rounded up: at that time the step has been made. */
    return (next * duration_ns + WEIGHT_SLOW_STEPS - 1) / WEIGHT_SLOW_STEPS;
}
