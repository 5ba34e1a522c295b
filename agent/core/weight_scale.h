/* How much of a backend's weight counts for new flows, as pure values: the ramp of a slow start
 * (R-EJ-6). What the operator declares is in common/model/guard.h; when a slow start begins and
 * ends is decided in engine_weight.c. Percent everywhere, 1..100: no share makes a backend
 * unusable, and no verdict depends on one. */
#ifndef JURY_CORE_WEIGHT_SCALE_H
#define JURY_CORE_WEIGHT_SCALE_H

#include <stdint.h>

#define WEIGHT_WHOLE 100
#define WEIGHT_FLOOR 10 /* no single cause takes more away than that leaves */

/* A slow start is a stair of so many equal steps from WEIGHT_FLOOR to WEIGHT_WHOLE: coarse, since
 * each step is another word of the table and another cycle of turns. */
#define WEIGHT_SLOW_STEPS 10

/* After so long of a slow start of duration_ns (above 0): 10, 19, 28, .. 91, and 100 at its end. */
uint8_t weight_slow_percent(uint64_t elapsed_ns, uint64_t duration_ns);
/* How long after its beginning the next step comes; duration_ns or more: it is over then. */
uint64_t weight_slow_next_ns(uint64_t elapsed_ns, uint64_t duration_ns);

#endif
