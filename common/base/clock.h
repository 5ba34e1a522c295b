/* The clocks. Only shells may call these: core gets its time in events (tests/lint refuses an
 * include of this header there). */
#ifndef JURY_BASE_CLOCK_H
#define JURY_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC: all timers, ages and deadlines of one process. Stands still in suspend. */
uint64_t clock_monotonic_ns(void);

/* CLOCK_BOOTTIME: deadlines that are shared between processes of one machine (drain). */
uint64_t clock_boottime_ns(void);

/* Wall time in milliseconds since 1970, for people and for the time in a command; never for a
 * decision. */
int64_t clock_wall_ms(void);

/* User and system CPU time of this process. */
uint64_t clock_process_cpu_ns(void);

#endif
