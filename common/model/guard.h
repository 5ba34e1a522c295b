/* Guards: limits on what votes may take out of service (spec.md 5). What the operator declares; the
 * decisions are in agent/core/guard.h. */
#ifndef JURY_MODEL_GUARD_H
#define JURY_MODEL_GUARD_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"

/* The hold switch of a group or of the cluster: no ejection while it is on, recoveries apply. A
 * document that does not say leaves it as it is, so that applying a file again does not undo an
 * operator's hold. Never HOLD_KEEP in a catalog. */
enum hold_switch {
    HOLD_KEEP = 0,
    HOLD_OFF = 1,
    HOLD_ON = 2
};

/* Where a hold comes from: several may be on at once, each ends by itself. Bits. */
enum hold_source {
    HOLD_BY_CLUSTER = 1 << 0,   /* the replicated flag of the cluster */
    HOLD_BY_GROUP = 1 << 1,     /* the replicated flag of the group */
    HOLD_BY_NODE = 1 << 2,      /* this node's override of everything */
    HOLD_BY_NODE_GROUP = 1 << 3 /* this node's override of the group */
};
/* "cluster", "group", "node"; of several the first. */
const char *hold_source_word(unsigned sources);

/* Who switched a hold and when, for people. */
struct hold_origin {
    char actor[LIMIT_NAME_BYTES + 1]; /* name of the key, or words for a unix socket; may be "" */
    int64_t wall_ms;                  /* 0 = never */
};

#define GUARD_WINDOW_MS_MIN 1000
#define GUARD_WINDOW_MS_MAX 3600000

#define GUARD_FLAP_HOLD_MS_MIN 1000
#define GUARD_FLAP_HOLD_MS_MAX 300000 /* R-FLAP-1: the hold time doubles up to 5 min */
#define GUARD_SHADOW_CYCLES_MAX 1000

#define GUARD_SLOW_START_MS_MIN 1000
#define GUARD_SLOW_START_MS_MAX 900000
/* What the preset `standard` says before the group's scheduler is known: server_group_settle. */
#define GUARD_SLOW_START_BY_SCHEDULER UINT32_MAX
#define GUARD_SLOW_START_MS_STANDARD 30000

/* What an operator may declare for a group. Each is off by itself. No padding: groups are compared
 * as they are. */
struct guard_policy {
    /* R-EJ-1: at most `velocity_percent` of a group's members, and at least one, leave in any
     * window; what is more is pending. */
    uint32_t velocity_window_ms; /* GUARD_WINDOW_MS_MIN..MAX */
    uint16_t exempt_below;       /* 0..1000: groups of fewer members have no limit */
    uint8_t velocity_percent;    /* 0..100; 0 = no limit */
    /* R-EJ-6: at most `return_percent` of a group's members, and at least one, return in any
     * window. */
    uint8_t return_percent;    /* 0..100; 0 = no limit */
    uint32_t return_window_ms; /* GUARD_WINDOW_MS_MIN..MAX */
    /* R-FLAP-1: how long the votes must have said healthy before one that went down again within 10
     * min returns; doubles with each further time. 0 = no damping; else
     * GUARD_FLAP_HOLD_MS_MIN..MAX */
    uint32_t flap_hold_ms;
    /* R-CFG-4: for so many cycles (T + I) a changed check takes nothing out; 0 = no shadow. */
    uint16_t shadow_cycles; /* 0..GUARD_SHADOW_CYCLES_MAX */
    bool shadow_stop;       /* the shadow does not end while it would take out too many */
    bool correlated_alarm;  /* R-EJ-5, alarm only */
    /* R-EJ-6: for so long the weight of a member that takes new flows again rises from a tenth to
     * all of it. 0 = it has all of it at once; else GUARD_SLOW_START_MS_MIN..MAX. No verdict
     * depends on it. */
    uint32_t slow_start_ms;
};
static_assert(sizeof(struct guard_policy) == 24, "no padding");

/* What one word says of all of it but the alarm, which is on with both. */
enum guard_preset {
    GUARD_PRESET_NONE = 0,
    GUARD_PRESET_OFF = 1,
    GUARD_PRESET_STANDARD = 2 /* R-EJ-1 with groups under 10 exempt, R-FLAP-1, R-EJ-6 */
};
/* preset: not NONE. */
struct guard_policy guard_policy_of(enum guard_preset preset);

/* X(name, number, word) of each guard; the numbers are in events and the API. */
#define GUARDS(X)                    \
    X(GUARD_HOLD, 1, "hold")         \
    X(GUARD_VELOCITY, 2, "velocity") \
    X(GUARD_DAMPING, 3, "damping")   \
    X(GUARD_RETURN, 4, "return")     \
    X(GUARD_SHADOW, 5, "shadow")     \
    X(GUARD_CORRELATED, 6, "correlated")

enum guard_kind {
    GUARD_NONE = 0,
#define GUARD_ENUM(name, number, word) name = number,
    GUARDS(GUARD_ENUM)
#undef GUARD_ENUM
};
#define GUARD_KINDS 7 /* one more than the highest number */
const char *guard_word(unsigned kind);

#endif
