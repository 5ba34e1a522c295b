/* When each target's probe starts: pure, with the caller's clock (spec.md 3 and 4).
 *
 * The probe thread drives it with the real clock, scenarios and simulations with a virtual one, so
 * the stated windows are those of one piece of code. Rules:
 * - the first probe comes at a random offset: in [0, I) for the targets a node starts with, in
 *   [0, min(I, 1 s)) for one added while running; the offset is a function of node and target;
 * - the interval runs from the end of one probe to the start of the next; with PACING_FIXED from
 *   start to start, skipping the beats that fall into a probe that is still running;
 * - one probe in flight per target;
 * - a start that the budget has no room for waits, in fair order (probe_budget.h); without rates
 *   set there is no limit;
 * - with a beat (shared probes, share.h) a probe begins on one of the node's beats, an interval
 *   apart: the pause before it is an eighth shorter than the interval at most, never longer, until
 *   it has come to the beat. One that takes longer than an eighth does not get there.
 * One thread owns it. */
#ifndef JURY_CORE_PROBE_SCHEDULE_H
#define JURY_CORE_PROBE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/probe.h"
#include "agent/core/probe_budget.h"
#include "agent/core/timers.h"

struct scheduled_target {
    uint64_t birth;    /* 0 = the slot is free */
    uint64_t start_ns; /* of the probe in flight; with PACING_FIXED its beat */
    uint64_t beat_ns;  /* one of its beats; 0 = it has none */
    uint32_t interval_ms;
    bool is_fixed; /* PACING_FIXED */
    bool in_flight;
    bool is_resting;
};

struct probe_schedule {
    struct timers timers;             /* by slot: when the next probe starts */
    struct scheduled_target *targets; /* by slot */
    uint32_t n_slots;
    uint64_t node_id; /* seeds the offsets */
    struct probe_budget budget;
};

void probe_schedule_init(struct probe_schedule *schedule, uint64_t node_id);
void probe_schedule_close(struct probe_schedule *schedule);

/* The offset of the first probe, for views and tests. */
uint64_t probe_schedule_phase_ns(uint64_t node_id, const struct probe_target *target,
                                 bool is_at_start);

/* Room for slots below n_slots, at most LIMIT_TARGETS: for a caller that takes on many. Errors:
 * ERR_NOMEM. */
int probe_schedule_reserve(struct probe_schedule *schedule, uint32_t n_slots);
/* Take a target on, replacing the one that has its slot. now_ns: monotonic.
 * Errors: ERR_NOMEM, ERR_LIMIT (slot out of range). */
int probe_schedule_add(struct probe_schedule *schedule, const struct probe_target *target,
                       bool is_at_start, uint64_t now_ns);
/* No further start; what is in flight is the caller's to end. An unknown id is ignored. */
void probe_schedule_remove(struct probe_schedule *schedule, struct target_id id);

/* Follow an order. now_ns: as in probe_schedule_add. An unknown id is ignored. */
void probe_schedule_order(struct probe_schedule *schedule, const struct probe_order *order,
                          uint64_t now_ns);

/* When the caller has to look again: TIMER_NEVER = only after an add or an end. */
uint64_t probe_schedule_next_ns(const struct probe_schedule *schedule);
/* The next target whose probe starts now: it is in flight from here on. False: none is due. */
bool probe_schedule_start(struct probe_schedule *schedule, uint64_t now_ns,
                          struct target_id *ret_id);
/* The same of those that are due by until_ns, which may lie before or after now_ns: for a caller
 * that starts what belongs together. How much too early or late a start is adds up to nothing: the
 * next interval runs from the end of the probe, or with PACING_FIXED from when it was due. */
bool probe_schedule_start_near(struct probe_schedule *schedule, uint64_t until_ns, uint64_t now_ns,
                               struct target_id *ret_id);
/* The probe ended; sets the next start. end_ns: when its outcome was known. A target that was
 * removed or replaced meanwhile is ignored. */
void probe_schedule_end(struct probe_schedule *schedule, struct target_id id, uint64_t end_ns);

#endif
