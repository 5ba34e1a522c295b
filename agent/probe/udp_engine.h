/* The probe engine for UDP (spec.md 4, S45-S50, S98, S99): a connected socket a probe, one datagram
 * out, and what the kernel hears about it.
 *
 *  - port: passes after T in silence (REASON_SILENT), or by a datagram of the probed address and
 *    port (REASON_OK).
 *  - port+echo: an ICMP echo goes along and must be answered. Without a datagram it passes after T
 *    (REASON_ECHO). Needs CAP_NET_RAW: without it the engine does not have this capability.
 *  - exchange: the first datagram decides.
 *
 * "Port unreachable" of the probed address ends each of them at once as PORT_UNREACHABLE, and so
 * all that are under way for the same address and port (udp_evidence.h). ICMP errors of others are
 * counted and say nothing, but for those of this node's own neighbour lookup.
 *
 * See probe_engine.h for the contract of its functions. */
#ifndef JURY_PROBE_UDP_ENGINE_H
#define JURY_PROBE_UDP_ENGINE_H

#include "agent/probe/probe_counts.h"
#include "agent/probe/probe_engine.h"
#include "agent/probe/probe_lateness.h"
#include "common/base/err.h"

/* capacity: probes in flight, 1..LIMIT_PROBES_IN_FLIGHT.
 * lateness, counters: the thread's, kept.
 * ret_engine: given, freed by ops->free. Errors, with a sentence: ERR_NOMEM, ERR_LIMIT (no
 * descriptor). */
int udp_engine_new(uint32_t capacity, const struct probe_lateness *lateness,
                   struct probe_counters *counters, struct probe_engine **ret_engine,
                   struct errmsg *err);

#endif
