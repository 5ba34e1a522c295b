#include "agent/probe/probe_clocks.h"

#include "common/base/clock.h"
#include "common/base/units.h"

/* Two readings of CLOCK_MONOTONIC around CLOCK_BOOTTIME lie closer than this unless the thread was
 * interrupted between them. */
#define CLOCK_PAIR_NS NS_PER_MS
#define CLOCK_PAIR_TRIES 5

uint64_t probe_clocks_read(uint64_t *ret_boottime_ns)
{
    uint64_t before_ns = clock_monotonic_ns();

    for (unsigned n = 0; n < CLOCK_PAIR_TRIES; n++) {
        *ret_boottime_ns = clock_boottime_ns();
        uint64_t after_ns = clock_monotonic_ns();
        if (after_ns - before_ns < CLOCK_PAIR_NS || n == CLOCK_PAIR_TRIES - 1) {
            break;
        }
        before_ns = after_ns;
    }
    return before_ns;
}
