/* What every engine knows of one probe: whose it is, its deadline, and how its end becomes a
 * result. The engine owns it, hands the result to its sink, and then gives the place back: one
 * result a probe. */
#ifndef JURY_PROBE_ATTEMPT_H
#define JURY_PROBE_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/probe.h"
#include "agent/probe/probe_lateness.h"
#include "agent/probe/silent_ways.h"

struct probe_attempt {
    const struct probe_target *target; /* NULL = no probe is under way here */
    uint64_t start_ns;
    uint64_t deadline_ns; /* start + T; nothing moves it (R-PROBE-1) */
    struct probe_mark mark;
    uint8_t refused_reason; /* enum probe_reason: it could not begin, the result waits for run */
};

/* start_ns: monotonic. target: kept. */
struct probe_attempt probe_attempt_begin(const struct probe_target *target,
                                         const struct probe_lateness *lateness, uint64_t start_ns);

/* Whether the deadline has come by now. */
bool probe_attempt_is_overdue(const struct probe_attempt *attempt);

/* How a probe came to its end. */
struct probe_ending {
    enum probe_reason reason;
    bool is_answered; /* the reason is a timeout, but the answer is there now */
    bool is_refused;  /* the target itself said so, to this very probe */
    uint64_t end_ns;  /* when what ended it came, as the kernel knows; 0 = now */
};

/* The result of a probe that ends now: the ending, unless this node was not awake enough for it to
 * count (probe_lateness.h), or it was silence and nothing could leave. ways: the engine's. */
struct probe_result probe_attempt_result(const struct probe_attempt *attempt,
                                         const struct probe_lateness *lateness,
                                         struct silent_ways *ways, struct probe_ending ending);

#endif
