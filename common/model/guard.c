#include "common/model/guard.h"

#include <assert.h>

struct guard_policy guard_policy_of(enum guard_preset preset)
{
    struct guard_policy policy = {.velocity_window_ms = 30000,
                                  .exempt_below = 10,
                                  .return_window_ms = 10000,
                                  .shadow_stop = true,
                                  .correlated_alarm = true};

    assert(preset != GUARD_PRESET_NONE);
    if (preset == GUARD_PRESET_STANDARD) {
        policy.velocity_percent = 10;
        policy.flap_hold_ms = 30000;
        policy.return_percent = 25;
        policy.slow_start_ms = GUARD_SLOW_START_BY_SCHEDULER;
    }
    return policy;
}

const char *hold_source_word(unsigned sources)
{
    return (sources & HOLD_BY_CLUSTER) != 0 ? "cluster"
           : (sources & HOLD_BY_GROUP) != 0 ? "group"
           : sources != 0                   ? "node"
                                            : "?";
}

const char *guard_word(unsigned kind)
{
    switch ((enum guard_kind)kind) {
    case GUARD_NONE:
        break;
#define GUARD_CASE(name, number, word) \
    case name:                         \
        return word;
        GUARDS(GUARD_CASE)
#undef GUARD_CASE
    }
    return "?";
}
