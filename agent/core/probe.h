/* What is probed and what came of it: the values that pass between the engine and the probe threads
 * (through rings and mailboxes; agent/probe/probe_engine.h is the seam). Plain values, but for the
 * check of a target, which many targets share. */
#ifndef JURY_CORE_PROBE_H
#define JURY_CORE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/model/check.h"
#include "common/model/reason.h"

/* A target's identity is (slot, birth); what carries another birth is for another definition and is
 * dropped, never reinterpreted (design.md 4). */
struct target_id {
    uint32_t slot;
    uint64_t birth; /* revision that gave the slot to this definition */
};

/* There are 100,000 of these: a check takes more than all else that is kept of a target. */
struct probe_target {
    struct target_id id;
    struct target_definition definition;
    struct addr source; /* ADDR_NONE = the kernel's choice */
};

/* When a backend's certificate ends, in the 16 bits that each target has room for. */
#define CERT_END_DAY_MAX 0x7fffU
struct cert_end {
    uint16_t day : 15;    /* days from 2000-01-01 UTC, rounded down; 0 = no certificate was seen */
    uint16_t is_near : 1; /* by this node's clock, and as many days before as the check says */
};

struct probe_result {
    struct target_id id;
    uint8_t probe_class;  /* enum probe_class */
    uint8_t reason;       /* enum probe_reason */
    uint16_t http_status; /* 0 = none seen */
    struct cert_end cert;
    bool is_refused;   /* the target itself said RST to the SYN: the way there and back works */
    uint64_t start_ns; /* monotonic, when the first packet was asked for */
    uint64_t end_ns;   /* monotonic, when the outcome was known */
};

/* What the engine wants of a target that shares its probes with other nodes. */
struct probe_order {
    struct target_id id;
    bool is_on;  /* else it rests: no probe starts; one in flight ends as ever */
    bool is_now; /* the next probe starts at once, not in flight provided; else, when it rested,
                    on its next beat */
    uint64_t beat_ns; /* monotonic, any of its beats, above 0 */
};

#endif
