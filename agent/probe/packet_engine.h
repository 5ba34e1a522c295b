/* The probe engine that makes its own packets, for tcp half-open (spec.md 4, S6, S42).
 *
 * How a probe goes: SYN; the same SYN again after 1 s and 3 s while T lasts; the first answer that
 * acknowledges it decides: SYN-ACK passes, RST fails, and so does an ICMP error that quotes it. No
 * ACK is ever sent. The RST that ends a passed probe is the kernel's: the port is this engine's and
 * no connection is there, so it answers the SYN-ACK by itself, also one that comes after T. Where
 * an XDP program takes SYN-ACKs before the kernel sees them (packet_xdp.h) that sends it. A second
 * RST is sent by nobody. After a timeout one with ISN + 1 is, if the check says `onTimeout:
 * rst`.
 *
 * What does not acknowledge ISN + 1, comes from elsewhere, or is neither SYN-ACK nor RST, is
 * ignored and counted. ISN and port are chosen at random: who does not see the SYN cannot answer
 * it.
 *
 * SYNs that start together are handed to the kernel by one call, and their answers are looked for
 * at the end of the slot (PROBE_SLOT_NS), all at once; when each came is known from its stamp.
 *
 * Each backend is reached as the kernel routes it, over any kind of link, loopback included; where
 * nothing stands between, the first SYN of a probe is handed to an Ethernet link as a frame
 * (packet_sender.h), which costs less. A packet that the kernel drops for want of room makes the
 * timeouts of that time inconclusive.
 *
 * See probe_engine.h for the contract of its functions. */
#ifndef JURY_PROBE_PACKET_ENGINE_H
#define JURY_PROBE_PACKET_ENGINE_H

#include "agent/probe/packet_way.h"
#include "agent/probe/probe_counts.h"
#include "agent/probe/probe_engine.h"
#include "agent/probe/probe_lateness.h"
#include "common/base/err.h"

struct packet_engine_options {
    uint32_t capacity;                     /* probes in flight, 1..LIMIT_PROBES_IN_FLIGHT */
    enum packet_send send;                 /* how SYNs leave */
    enum packet_receive receive;           /* and how their answers are seen */
    const struct probe_lateness *lateness; /* the thread's, kept */
    struct probe_counters *counters;       /* the thread's, kept */
    struct packet_way *way;                /* says how they do; kept; NULL = nobody asks */
};

/* options: borrowed, but for what says kept.
 * ret_engine: given, freed by ops->free. Errors, with a sentence: ERR_DENIED (no CAP_NET_RAW),
 * ERR_NOMEM, ERR_LIMIT (no descriptor), ERR_BUSY (no port), ERR_IO (not with this kernel). */
int packet_engine_new(const struct packet_engine_options *options, struct probe_engine **ret_engine,
                      struct errmsg *err);

#endif
