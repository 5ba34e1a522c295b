/* How many probes people may ask for (`nodectl probe`): so many at a time on one node, and one of a
 * backend in a while, so that whoever repeats the command in a loop burdens neither. Pure. */
#ifndef JURY_CORE_PROBE_LIMIT_H
#define JURY_CORE_PROBE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/limits.h"

/* As many as can begin within the pause: one more is refused, whatever it is about. */
#define PROBE_LIMIT_REMEMBERED 64

struct probe_limit {
    struct {
        struct endpoint to;
        uint64_t start_ns; /* monotonic; 0 = free */
    } last[PROBE_LIMIT_REMEMBERED];
};

/* May a probe of `to` begin at now_ns (above 0) beside n_running others? If so it counts as begun.
 * Errors: ERR_BUSY with a sentence. */
int probe_limit_admit(struct probe_limit *limit, const struct endpoint *to, uint32_t n_running,
                      uint64_t now_ns, struct errmsg *err);

#endif
