/* What a flow policy means for an existing flow at one moment, and the arithmetic of deadlines.
 *
 * Deadlines are CLOCK_BOOTTIME nanoseconds, so that agent and data planes of one machine mean the
 * same moment and a suspend counts; 0 = none. Pure: the time comes in. Used by the engine and by
 * jury-shim. */
#ifndef JURY_CORE_DRAIN_H
#define JURY_CORE_DRAIN_H

#include <stdint.h>

#include "agent/core/classes.h"

enum drain_action {
    DRAIN_KEEP = 0,      /* nothing changes; the idle timeout counts */
    DRAIN_KEEP_IDLE = 1, /* keep, and do not end it for being idle (S75, before the deadline) */
    DRAIN_CLOSE = 2,     /* RST to both sides (TCP), drop the entry (datagrams) */
    DRAIN_MOVE = 3       /* the next packet selects anew; a relayed TCP connection can not: keep */
};

/* flow_policy: enum flow_policy; an unknown number (a newer agent's) is DRAIN_KEEP. A policy with a
 * deadline that is missing is DRAIN_KEEP too: nothing is cut by an unwritten word (I-13). */
enum drain_action drain_decide(unsigned flow_policy, uint64_t deadline_boot_ns,
                               uint64_t now_boot_ns);

/* The deadline of a drain that begins now; never 0, never overflowing. */
uint64_t drain_deadline(uint64_t now_boot_ns, uint32_t timeout_ms);

/* Rounded up, so that 0 means passed; UINT64_MAX when there is no deadline. */
uint64_t drain_left_ms(uint64_t deadline_boot_ns, uint64_t now_boot_ns);

#endif
