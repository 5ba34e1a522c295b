#include "common/base/clock.h"

#include <assert.h>
#include <time.h>

#include "common/base/units.h"

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;

    int rc = clock_gettime(id, &now);
    assert(rc == 0);
    (void)rc;
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_boottime_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(void)
{
    return (int64_t)(read_clock(CLOCK_REALTIME) / NS_PER_MS);
}

uint64_t clock_process_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
