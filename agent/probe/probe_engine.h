/* The seam behind which probes are made: a probe thread submits, an engine sends packets and says
 * what came of them: connect_engine.h by sockets of the kernel, packet_engine.h by packets of its
 * own, udp_engine.h by datagrams. Others fit behind the same five functions.
 *
 * Contract of every engine:
 *  - it belongs to one thread; no function waits, except free().
 *  - each submit ends in exactly one result or in one abandon (R-PROBE-2). A result is delivered by
 *    run and only by run: never inside submit, so the caller is never called back from under its
 *    own feet.
 *  - one probe per target slot at a time. A slot whose connection is still being closed after its
 *    result may be submitted again: the engine ends the old connection first.
 *  - each probe has one absolute deadline, start + T, that no progress moves (R-PROBE-1); the
 * caller calls run no later than next_ns, or as soon as `fd` is readable.
 *  - submits may be gathered and sent together, by flush or else by the next run.
 *  - an engine that expects answers may ask to be left alone for the rest of a slot, so that one
 *    wake-up serves them all: quiet_ns.
 *  - faults of this node are inconclusive results (R-SELF-3), never a failure of submit. */
#ifndef JURY_PROBE_ENGINE_H
#define JURY_PROBE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/probe.h"
#include "agent/probe/probe_counts.h"
#include "common/base/units.h"

/* Time is cut into slots of the monotonic clock: what begins a probe, and what looks for the
 * answers of the packet engine, happens at their edges, so that one wake-up serves many probes. A
 * wake-up costs as much as several probes; at 1,000 a second a slot has five. */
#define PROBE_SLOT_NS (5 * NS_PER_MS)

/* Kinds of probe, a set of bits. */
enum probe_capability {
    PROBE_CAN_TCP_FULL = 1 << 0,
    PROBE_CAN_TCP_HALF_OPEN = 1 << 1,
    PROBE_CAN_HTTP = 1 << 2,
    PROBE_CAN_UDP_PORT = 1 << 3,
    PROBE_CAN_UDP_PORT_ECHO = 1 << 4,
    PROBE_CAN_UDP_EXCHANGE = 1 << 5,
    PROBE_CAN_TLS = 1 << 6,
    PROBE_CAN_GRPC = 1 << 7,
    PROBE_CAN_GRPC_TLS = 1 << 8 /* with both parts */
};
/* Kinds that an agent may be built without. */
#define PROBE_OPTIONAL ((uint32_t)(PROBE_CAN_TLS | PROBE_CAN_GRPC | PROBE_CAN_GRPC_TLS))

/* The one bit that a definition asks for; 0 = a kind that no engine of this version makes. */
uint32_t probe_capability_of(const struct target_definition *definition);

/* "tcp-full,http" for a set of capabilities; empty for none. Cut when it does not fit. Returns
 * text. */
#define PROBE_CAPABILITIES_TEXT_BYTES 128
char *probe_capabilities_format(uint32_t capabilities, char *text, size_t text_bytes);

/* Where run delivers results. result: borrowed for the call; the function must not submit or
 * abandon. */
struct probe_sink {
    void (*result)(void *user, const struct probe_result *result);
    void *user;
};

struct probe_engine;
struct probe_trace;

struct probe_engine_ops {
    /* Ends all connections; no result is delivered. */
    void (*free)(struct probe_engine *engine);
    /* Begin one probe. target: kept until its result or its abandon. The caller has at most
     * engine->capacity probes in flight. */
    void (*submit)(struct probe_engine *engine, const struct probe_target *target);
    /* End what the slot has under way, a connection that is being closed too: no result. Nothing
     * under way is fine. */
    void (*abandon)(struct probe_engine *engine, uint32_t slot);
    /* Send what submit gathered. NULL: it sends at once. */
    void (*flush)(struct probe_engine *engine);
    /* Monotonic time at which run must be called at the latest; UINT64_MAX = only for the fd. */
    uint64_t (*next_ns)(const struct probe_engine *engine);
    /* Receive, send what waits, expire. */
    void (*run)(struct probe_engine *engine, const struct probe_sink *sink);
};

struct probe_engine {
    const struct probe_engine_ops *ops;
    const char *name;            /* "connect", "packet", "udp" */
    uint32_t capabilities;       /* what it can make on this machine, with this process's rights */
    uint32_t capacity;           /* probes in flight at most */
    int fd;                      /* to poll for readability; -1 = none */
    enum probe_count counted_as; /* where the probes that it begins are counted */
    uint64_t quiet_ns;           /* until then fd need not be looked at */
    bool has_expected;           /* but then run must be called: answers are expected */
    struct probe_trace *trace;   /* where it writes down what it does, kept; NULL = nobody looks */
};

/* The edge of a slot that comes after this time. */
static inline uint64_t probe_slot_after(uint64_t ns)
{
    return ns - ns % PROBE_SLOT_NS + PROBE_SLOT_NS;
}

#endif
