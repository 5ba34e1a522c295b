/* Probes that somebody asked for, each once and at once, with all their steps (`nodectl probe`).
 *
 * They are attempts of their own beside those of the probe thread: nothing of them reaches the
 * engine, so they move no streak and no vote; they run on a thread each, so they keep nobody
 * waiting; and they are made by engines like those of the probe thread, opened for this one probe,
 * so they look on the wire as its probes do. At most LIMIT_PROBES_NOW at a time, and one of a
 * backend each LIMIT_PROBE_NOW_PAUSE_MS (agent/core/probe_limit.h).
 *
 * All functions: the thread that opened it. */
#ifndef JURY_PROBE_NOW_H
#define JURY_PROBE_NOW_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/probe_trace.h"
#include "agent/loop/wake.h"
#include "agent/probe/probe_loop.h"
#include "common/base/err.h"

struct probe_now;

/* options: copied; of them the list of allowed prefixes counts. results_wake: signaled when one has
 * ended; kept. NULL: no memory. */
struct probe_now *probe_now_new(const struct probe_loop_options *options,
                                struct wake *results_wake);
/* Ends all that are under way, each within a turn of its thread. NULL is allowed. */
void probe_now_free(struct probe_now *probes);

/* Begin. target: copied; its id is given back with the result, and does not matter. cookie: given
 * back with the report, once. Errors, with a sentence: ERR_BUSY, ERR_LIMIT (descriptors, threads),
 * ERR_NOMEM. */
int probe_now_start(struct probe_now *probes, uint64_t cookie, const struct probe_target *target,
                    struct errmsg *err);
/* One that has ended; false when there is none. */
bool probe_now_take(struct probe_now *probes, uint64_t *ret_cookie,
                    struct probe_report *ret_report);

#endif
