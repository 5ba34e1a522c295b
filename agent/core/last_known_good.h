/* What a node keeps on disk to start without Raft, beside the catalog's own chunks: its verdicts
 * and drain deadlines (spec.md 5 and 6). Plain values; agent/store or agent/table write and read
 * the file. */
#ifndef JURY_CORE_LAST_KNOWN_GOOD_H
#define JURY_CORE_LAST_KNOWN_GOOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/hash.h"

/* One verdict; taken up again only where row, birth and definition are the same. */
struct kept_verdict {
    uint32_t row;
    uint64_t birth;
    struct hash128 definition_hash; /* of the target */
    uint8_t health_state;           /* enum health_state: healthy or unhealthy */
    uint8_t reason;                 /* enum probe_reason of the deciding votes */
    uint16_t http_status;
    uint64_t since_ms; /* how long it had held when the file was written */
    /* What the guards remember; how long ago, then, and one more: 0 = never, or longer ago than any
     * guard looks. */
    uint32_t ejected_ms; /* the votes took it out of service */
    uint8_t n_flaps;     /* guard_flap.h */
    uint32_t shadow_ms;  /* its check was changed and is in its shadow */
    uint32_t bad_ms;     /* the votes say down since then, of one that was healthy before */
    uint32_t alarm_ms;   /* since then its group's alarm is raised */
};

/* One deadline of a drain, a removal or a verdict (enum deadline_cause). */
struct kept_deadline {
    uint32_t row;
    uint64_t birth;
    uint64_t drain_revision; /* which drain; 0 = by verdict */
    bool is_exact;           /* false: from an old forwarding table, which does not say which drain:
                                it is one that was committed up to drain_revision */
    uint64_t deadline_boot_ns;
};

struct last_known_good {
    uint64_t age_ms; /* since it was written */
    const struct kept_verdict *verdicts;
    size_t n_verdicts;
    const struct kept_deadline *deadlines; /* of this boot only */
    size_t n_deadlines;
};

#endif
