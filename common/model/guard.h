/* Guards: limits on what votes may take out of service (spec.md 5). What the operator declares; the
 * decisions are in agent/core/guard.h. */
#ifndef JURY_MODEL_GUARD_H
#define JURY_MODEL_GUARD_H

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
    char actor[LIMIT_NAME_BYTES + 1]; /* name of the key, "local" for the unix socket; may be "" */
    int64_t wall_ms;                  /* 0 = never */
};

#define GUARD_WINDOW_MS_MIN 1000
#define GUARD_WINDOW_MS_MAX 3600000

/* R-EJ-1: at most `velocity_percent` of a group's members, and at least one, leave in any window;
 * what is more is pending. */
struct guard_policy {
    uint8_t velocity_percent;    /* 0..100; 0 = no limit */
    uint32_t velocity_window_ms; /* GUARD_WINDOW_MS_MIN..MAX */
    uint16_t exempt_below;       /* 0..1000: groups of fewer members have no limit */
};

/* X(name, number, word) of each guard; the numbers are in events and the API. */
#define GUARDS(X)            \
    X(GUARD_HOLD, 1, "hold") \
    X(GUARD_VELOCITY, 2, "velocity")

enum guard_kind {
    GUARD_NONE = 0,
#define GUARD_ENUM(name, number, word) name = number,
    GUARDS(GUARD_ENUM)
#undef GUARD_ENUM
};
#define GUARD_KINDS 3 /* one more than the highest number */
const char *guard_word(unsigned kind);

#endif
