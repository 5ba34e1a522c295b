/* Whether packets to a target can leave this node: what a probe that heard nothing asks, since
 * silence says nothing of a backend that this node cannot send to. When the way went while a probe
 * was under way, the kernel repeats into the void and tells nobody.
 *
 * That there is a way is kept for its address: to ask the kernel costs more than the rest of a
 * probe, silence is how many UDP probes pass, and dead backends are silent by the thousand. What is
 * kept is dropped as soon as the kernel says that addresses, routes, rules or links changed
 * (route_watch.h), and after SILENT_WAY_MAX_AGE_S in any case. One engine's thread only. */
#ifndef JURY_PROBE_SILENT_WAYS_H
#define JURY_PROBE_SILENT_WAYS_H

#include <stdint.h>

#include "agent/core/probe.h"
#include "agent/probe/route_watch.h"
#include "common/base/hash.h"

#define SILENT_WAY_MAX_AGE_S 60
#define SILENT_WAYS 4096 /* a power of two: 64 KiB, from the first silence on */

struct silent_way {
    uint64_t tag;        /* of address and source */
    uint32_t generation; /* 0 = nothing is kept */
    uint32_t found_s;    /* monotonic */
};

struct silent_ways {
    struct silent_way *kept; /* by tag; NULL = nobody was silent yet */
    struct route_watch watch;
    uint32_t generation; /* of what was found since the last change; above 0 */
    struct hash_key key;
};

/* Zero-initialised is ready; closing that is fine. */
void silent_ways_close(struct silent_ways *ways);

/* now_ns: monotonic. Returns REASON_LOCAL_NO_ROUTE or REASON_LOCAL_SOURCE_MISSING, or REASON_NONE:
 * packets can leave, as far as is known. */
enum probe_reason silent_ways_ask(struct silent_ways *ways, const struct probe_target *target,
                                  uint64_t now_ns);

#endif
