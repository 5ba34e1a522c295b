/* Whether this node was well enough awake for the outcome of a probe to count (spec.md 4: own loop
 * late, suspend). Pure: the probe thread feeds in the clocks.
 *
 * A timeout proves something about the backend only if this node served the connection all the
 * time: a loop that slept through half of T may have sent its request late, and a machine that was
 * suspended or paused received nothing. Such outcomes are inconclusive, REASON_LOCAL_LATE. */
#ifndef JURY_PROBE_LATENESS_H
#define JURY_PROBE_LATENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/units.h"
#include "common/model/reason.h"

/* While probes are in flight the loop wakes at least this often, so that a stall longer than this
 * can be seen even if an event comes first. A quarter of the shortest T (0.1 s). */
#define PROBE_WAKE_MAX_NS (25 * NS_PER_MS)
/* A wake-up up to this late is the scheduler's normal noise and counts for nothing; an answer found
 * within it after the deadline is treated as one that came too late. */
#define PROBE_WAKE_SLACK_NS (10 * NS_PER_MS)
/* A smaller step between the clocks is the distance of two readings. */
#define PROBE_SUSPEND_NS (100 * NS_PER_MS)

struct probe_lateness {
    uint64_t due_ns;       /* when the loop meant to wake; UINT64_MAX = only for an event */
    uint64_t woke_ns;      /* when it did */
    int64_t gap_ns;        /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC: grows by suspend alone */
    uint64_t stalled_ns;   /* total of the late wake-ups */
    uint64_t suspended_ns; /* total of suspends */
    uint64_t late_max_ns;  /* worst wake-up */
};

/* The totals when a probe began. */
struct probe_mark {
    uint64_t stalled_ns;
    uint64_t suspended_ns;
};

void probe_lateness_init(struct probe_lateness *lateness, uint64_t monotonic_ns,
                         uint64_t boottime_ns);
/* The loop goes to sleep and means to be back at due_ns, which may be past already. */
void probe_lateness_sleep(struct probe_lateness *lateness, uint64_t due_ns);
/* It is back. The two readings must lie close together. */
void probe_lateness_wake(struct probe_lateness *lateness, uint64_t monotonic_ns,
                         uint64_t boottime_ns);
struct probe_mark probe_lateness_mark(const struct probe_lateness *lateness);

struct probe_life {
    uint64_t start_ns;
    uint64_t deadline_ns;
    uint64_t end_ns;
    struct probe_mark mark; /* at start_ns */
    bool is_answered;       /* the reason is a timeout, but the answer is there now */
};

/* The reason to report for a probe that ended by `reason`:
 *  - any failure, and any pass by silence, of a probe that a suspend fell into is late;
 *  - a timeout or a hang-up is late if the loop stalled for more than a quarter of T during the
 *    probe, the turn that is not over yet included;
 *  - a timeout whose answer is there by now is late if this was found after more than the slack:
 *    nobody knows when it came.
 * Everything else stays. Late = REASON_LOCAL_LATE. */
enum probe_reason probe_lateness_judge(const struct probe_lateness *lateness,
                                       const struct probe_life *life, enum probe_reason reason);

#endif
