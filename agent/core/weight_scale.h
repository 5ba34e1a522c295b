/* How much of a backend's weight counts for new flows, as pure values: the ramp of a slow start
 * (R-EJ-6), and weights graded by votes or by response times (N18). What the operator declares is
 * in common/model/guard.h and group.h; when something begins and ends is decided in
 * engine_weight.c. Percent everywhere, 1..100: no share makes a backend unusable, and no verdict
 * depends on one. */
#ifndef JURY_CORE_WEIGHT_SCALE_H
#define JURY_CORE_WEIGHT_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIGHT_WHOLE 100
#define WEIGHT_FLOOR 10 /* no single cause takes more away than that leaves */

/* Of two causes at once: the product, at least 1. */
uint8_t weight_join(uint8_t a_percent, uint8_t b_percent);

/* A slow start is a stair of so many equal steps from WEIGHT_FLOOR to WEIGHT_WHOLE: coarse, since
 * each step is another word of the table and another cycle of turns. */
#define WEIGHT_SLOW_STEPS 10

/* After so long of a slow start of duration_ns (above 0): 10, 19, 28, .. 91, and 100 at its end. */
uint8_t weight_slow_percent(uint64_t elapsed_ns, uint64_t duration_ns);
/* How long after its beginning the next step comes; duration_ns or more: it is over then. */
uint64_t weight_slow_next_ns(uint64_t elapsed_ns, uint64_t duration_ns);

/* The part of the counted votes that pass, rounded, at least WEIGHT_FLOOR. Without any: all. */
uint8_t weight_votes_percent(unsigned n_pass, unsigned n_fail);

/* The response time of one target, smoothed with a gain of an eighth, as RFC 6298 does it. Known
 * from so many on: before that a single slow answer would weigh too much. */
#define WEIGHT_LATENCY_SAMPLES 8
struct weight_latency {
    uint32_t eighths_us;
    uint8_t n; /* up to WEIGHT_LATENCY_SAMPLES */
};
void weight_latency_note(struct weight_latency *latency, uint32_t response_us);
bool weight_latency_is_known(const struct weight_latency *latency);
uint32_t weight_latency_us(const struct weight_latency *latency);

/* So many members of a group must have a known one, or none is graded. */
#define WEIGHT_LATENCY_MEMBERS 3
/* The one in the middle, of two the higher: only who is slower than half of them is graded. n above
 * 0; reorders. */
uint32_t weight_median_us(uint32_t values_us[], size_t n);

/* median / own, at least WEIGHT_FLOOR; all of it from 90 % on. What is less than 25 % off the one
 * in force changes nothing, unless all of it would count. Below a millisecond it is the measuring
 * that is compared: that is all one. before: the one in force. */
uint8_t weight_latency_percent(uint32_t own_us, uint32_t median_us, uint8_t before);

#endif
