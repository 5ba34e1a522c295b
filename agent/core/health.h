/* This node's own opinion of one target: rise and fall counting, no I/O (spec.md 1, 3 and 5).
 *
 * Fed with probe results in time order. Consecutive means consecutive: one opposite result resets
 * the streak (A21), an inconclusive one moves nothing. */
#ifndef JURY_CORE_HEALTH_H
#define JURY_CORE_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/reason.h"

/* Thresholds in consecutive results, both 1..10. */
struct health_policy {
    uint8_t healthy_threshold : 4;   /* H, "rise" */
    uint8_t unhealthy_threshold : 4; /* U, "fall" */
};

/* In 32 bits, since each target has one. */
struct health {
    uint32_t opinion : 2;    /* enum opinion */
    uint32_t is_failing : 1; /* what the streak is of */
    uint32_t streak : 29;    /* results in a row; it stays at the highest number */
};

/* Passes or failures in a row; at most one of the two is above 0. */
uint32_t health_pass_streak(const struct health *health);
uint32_t health_fail_streak(const struct health *health);

/* Account for one finished probe. Returns true if the opinion changed. */
bool health_record(struct health *health, const struct health_policy *policy,
                   enum probe_class probe_class);

/* No conclusive probe for too long: the opinion is `none` again and H passes or U fails lead out of
 * it. Returns true if the opinion changed. */
bool health_forget(struct health *health);

/* The first result of a node that was called to a healthy target passed: nothing has to come up
 * again, so the opinion is pass at once. */
void health_adopt_pass(struct health *health);

/* Failures in a row so far count no more; an opinion stands. */
void health_restart_failures(struct health *health);

/* Results in a row that agree with the opinion; of `none`, the longer streak. */
uint32_t health_streak(const struct health *health);

#endif
