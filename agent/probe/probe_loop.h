/* What a probe thread does in one turn: take the newest plan, start what is due, run the engines,
 * hand out results. No thread, no clock, no waiting: probe_thread.h turns it with the real clock,
 * tests with a virtual one and an engine of their own.
 *
 * Rules it keeps, whatever an engine or a reader does:
 *  - one probe in flight per target, and exactly one result or abandonment for each (R-PROBE-2);
 *    a probe without a result PROBE_LOST_NS after its deadline is a counted defect, ended as
 *    REASON_LOCAL_LATE and probed again;
 *  - a target that is removed, or replaced by another definition, while in flight is abandoned: its
 *    connection is closed and no result comes;
 *  - at the limit of probes in flight a due probe waits, in the order of due times, and is counted;
 *  - an address that this node's own list forbids, or a kind that no engine can make, is an
 *    inconclusive result, and no packet is sent; a kind is never made as another;
 *  - with slots a probe starts up to a fifth of a slot too early or four too late, against the end
 *    of the last and its interval; that adds up to nothing, since it is counted anew each time;
 *  - a result that finds the ring full waits; a newer one of the same target replaces it, counted.
 */
#ifndef JURY_PROBE_LOOP_H
#define JURY_PROBE_LOOP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/core/probe_schedule.h"
#include "agent/loop/ring.h"
#include "agent/probe/packet_way.h"
#include "agent/probe/probe_counts.h"
#include "agent/probe/probe_engine.h"
#include "agent/probe/probe_plan.h"
#include "common/base/addr.h"
#include "common/base/limits.h"
#include "common/base/units.h"

#define PROBE_ENGINES_MAX 4
#define PROBE_LOST_NS (5 * NS_PER_SECOND)
#define PROBE_SWEEP_NS NS_PER_SECOND        /* how often lost probes are looked for */
#define PROBE_RETRY_RING_NS (5 * NS_PER_MS) /* how soon a full ring is tried again */
#define PROBE_SLOT_EARLY 5                  /* a start is early by 1/5 of a slot at most */
/* A pass after so many in a row: no threshold is as high, so no opinion waits for it, and the
 * reader is woken for several of them together, and for other results at once. */
#define PROBE_CALM_PASSES 10
#define PROBE_CALM_NS (4 * PROBE_SLOT_NS)
#define PROBE_STARTS_PER_TURN 256 /* so that a burst of starts does not delay answers */

/* A target's place in the thread, by slot. */
struct probe_lane {
    const struct planned_target *planned; /* of the current plan; NULL = free */
    uint32_t start_ms;                    /* of the probe in flight, or the last; modulo 2^32 */
    uint8_t engine;                       /* index + 1; 0 = none can make this kind */
    uint8_t n_passes;                     /* results in a row, at most PROBE_CALM_PASSES */
    bool in_flight : 1;
    bool has_waiting : 1; /* a result, for room in the ring */
    bool is_queued : 1;   /* in waiting_slots */
};
static_assert(sizeof(struct probe_lane) <= 16, "of each target");

struct probe_loop_options {
    uint64_t node_id; /* seeds the offsets of first probes */
    uint32_t in_flight_max;
    uint64_t slot_ns; /* probes start at an edge of such a slot; 0 = when they are due */
    enum packet_send half_open_send;
    enum packet_receive half_open_receive; /* not of probes on demand: they use the ring */
    uint32_t n_allowed;                    /* 0 = this node has no list of its own */
    struct cidr allowed[LIMIT_CIDRS];
};

/* Whether this node's own list lets it probe the address. */
bool probe_loop_allows(const struct probe_loop_options *options, const struct addr *to);

struct probe_loop {
    struct probe_loop_options options;
    struct probe_schedule schedule;
    struct probe_engine *engines[PROBE_ENGINES_MAX]; /* owned; the first that can is taken */
    uint32_t n_engines;
    uint32_t denied;         /* capabilities that this process lacks the rights for */
    struct probe_plan *plan; /* a reference; NULL before the first */
    struct probe_lane *lanes;
    uint32_t n_lanes;
    uint32_t n_in_flight;
    uint64_t full_ns; /* last time at which a due probe had to wait */
    uint64_t sweep_ns;
    struct probe_result
        *waiting;            /* by slot, n_lanes; NULL: none ever had to wait, as waiting_slots */
    uint32_t *waiting_slots; /* queue of n_lanes entries: slots with a waiting result */
    uint32_t waiting_first;
    uint32_t n_waiting;
    struct ring *results; /* of struct probe_result, kept */
    bool has_news;        /* the reader does not know yet of a result that may not wait */
    uint64_t turn_ns;     /* when this turn began */
    uint64_t calm_ns;     /* since when the reader does not know of any; 0 = it knows of all */
    struct probe_counters counters;
};

/* results: kept until close. in_flight_max 1..LIMIT_PROBES_IN_FLIGHT. */
void probe_loop_init(struct probe_loop *loop, const struct probe_loop_options *options,
                     struct ring *results);
/* Ends everything under way. */
void probe_loop_close(struct probe_loop *loop);
/* engine: taken. At most PROBE_ENGINES_MAX, before the first plan; earlier ones are preferred. */
void probe_loop_add_engine(struct probe_loop *loop, struct probe_engine *engine);
/* No engine makes these kinds, a set of enum probe_capability, for want of rights: probes of them
 * end as REASON_LOCAL_NO_PERMISSION. */
void probe_loop_deny(struct probe_loop *loop, uint32_t capabilities);

/* Go over to a plan (taken): abandon what went, schedule what came, leave the rest as it is.
 * Errors: ERR_NOMEM: the targets that could not be taken are missing until the next plan. */
int probe_loop_take_plan(struct probe_loop *loop, struct probe_plan *plan, uint64_t now_ns);

/* One turn. */
void probe_loop_turn(struct probe_loop *loop, uint64_t now_ns);
/* Whether the reader has to be woken for what was pushed; then it is taken to be. next_ns: of the
 * next turn. */
bool probe_loop_wants_reader(struct probe_loop *loop, uint64_t next_ns);

/* Turn again at this time at the latest; TIMER_NEVER = only when an engine's fd is readable or a
 * plan came. May be past. */
uint64_t probe_loop_next_ns(const struct probe_loop *loop, uint64_t now_ns);

#endif
