/* The two clocks by which a loop that probes judges itself (probe_lateness.h). */
#ifndef JURY_PROBE_CLOCKS_H
#define JURY_PROBE_CLOCKS_H

#include <stdint.h>

/* CLOCK_MONOTONIC, and CLOCK_BOOTTIME of the same moment: an interruption between the two readings
 * would look like a suspend. */
uint64_t probe_clocks_read(uint64_t *ret_boottime_ns);

#endif
