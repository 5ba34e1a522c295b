/* What a probe thread counts: written by it alone, copied out by anybody at any time. */
#ifndef JURY_PROBE_COUNTS_H
#define JURY_PROBE_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/base/counters.h"
#include "common/model/reason.h"

/* X(index, COUNT or GAUGE, name in the registry, help). A count is since the start of the thread, a
 * gauge what is now, or the longest yet. At rest, started = finished + abandoned. */
#define PROBE_COUNTS(X)                                                                            \
    X(PROBE_N_TARGETS, GAUGE, "probe_targets", "targets probed now")                               \
    X(PROBE_N_IN_FLIGHT, GAUGE, "probes_in_flight", "probes under way now")                        \
    X(PROBE_N_STARTED, COUNT, "probes_started", "probes begun")                                    \
    X(PROBE_N_FINISHED, COUNT, "probes_finished", "probes with a result; see probe_results")       \
    X(PROBE_N_ABANDONED, COUNT, "probes_abandoned", "probes given up because their target went")   \
    X(PROBE_N_BY_CONNECT, COUNT, "probes_by_connect", "of those begun, by the engine \"connect\"") \
    X(PROBE_N_BY_PACKET, COUNT, "probes_by_packet", "of those begun, by the engine \"packet\"")    \
    X(PROBE_N_BY_UDP, COUNT, "probes_by_udp", "of those begun, by the engine \"udp\"")             \
    X(PROBE_N_SYNS_BY_IP, COUNT, "probe_syns_by_ip",                                               \
      "SYNs of the engine \"packet\", by the IP layer")                                            \
    X(PROBE_N_SYNS_BY_LINK, COUNT, "probe_syns_by_link", "SYNs of it, handed to a link as frames") \
    X(PROBE_N_SEEN_BY_RING, COUNT, "probe_packets_by_ring",                                        \
      "packets that the ring of it has seen")                                                      \
    X(PROBE_N_SEEN_BY_XDP, COUNT, "probe_packets_by_xdp",                                          \
      "SYN-ACKs that its XDP program answered")                                                    \
    X(PROBE_N_ICMP_IGNORED, COUNT, "probe_icmp_ignored",                                           \
      "ICMP messages about probes of the engine \"udp\" that say nothing of their backend")        \
    X(PROBE_N_REFUSALS_SHARED, COUNT, "probe_refusals_shared",                                     \
      "udp probes that failed because another check was told that the port is closed")             \
    X(PROBE_N_PACKETS_IGNORED, COUNT, "probe_packets_ignored",                                     \
      "packets to ports of the engine \"packet\" that answer no probe of it")                      \
    X(PROBE_N_PACKETS_DROPPED, COUNT, "probe_packets_dropped",                                     \
      "such packets that found no room: timeouts of that time are inconclusive")                   \
    X(PROBE_N_DELAYED, COUNT, "probes_delayed",                                                    \
      "probes begun late by the limit of probes in flight")                                        \
    X(PROBE_DELAY_MAX_NS, GAUGE, "probe_delay_max_ns", "longest delay by that limit")              \
    X(PROBE_BUDGET_NODE_RATE, GAUGE, "probe_budget", "probes a second that this node may begin")   \
    X(PROBE_BUDGET_ADDRESS_RATE, GAUGE, "probe_budget_address", "the same to one address")         \
    X(PROBE_BUDGET_USED, GAUGE, "probe_budget_used", "probes begun in the last second")            \
    X(PROBE_BUDGET_DEMAND, GAUGE, "probe_budget_demand",                                           \
      "probes a second that the intervals of all targets come to")                                 \
    X(PROBE_BUDGET_TOP_DEMAND, GAUGE, "probe_budget_top_demand",                                   \
      "the same of the address with the most of them")                                             \
    X(PROBE_BUDGET_TOP_SLOT, GAUGE, "probe_budget_top_slot", "a target slot of that address")      \
    X(PROBE_BUDGET_WAITING, GAUGE, "probe_budget_waiting",                                         \
      "targets that wait for their address now")                                                   \
    X(PROBE_BUDGET_DELAYED, COUNT, "probe_budget_delayed", "probes begun late by the budget")      \
    X(PROBE_BUDGET_DELAY_MAX_NS, GAUGE, "probe_budget_delay_max_ns",                               \
      "longest delay by the budget")                                                               \
    X(PROBE_BUDGET_DELAY_NS, GAUGE, "probe_budget_delay_ns",                                       \
      "longest delay in this back-pressure, or in the last one")                                   \
    X(PROBE_BUDGET_PRESSED, GAUGE, "probe_budget_pressed", "1 now while the budget delays probes") \
    X(PROBE_N_LOST, COUNT, "probes_lost",                                                          \
      "probes without a result in time: a defect of this agent")                                   \
    X(PROBE_N_DROPPED, COUNT, "probe_results_dropped",                                             \
      "results replaced by a newer one of their target because nobody took them")                  \
    X(PROBE_STALLED_NS, COUNT, "probe_stalled_ns", "time the probe thread woke too late")          \
    X(PROBE_LATE_MAX_NS, GAUGE, "probe_late_max_ns", "longest such time")                          \
    X(PROBE_SUSPENDED_NS, COUNT, "probe_suspended_ns", "time this machine was suspended")

enum probe_count {
#define PROBE_COUNT_ENUM(name, kind, word, help) name,
    PROBE_COUNTS(PROBE_COUNT_ENUM)
#undef PROBE_COUNT_ENUM
    PROBE_N_COUNTS
};

#define PROBE_REASON_SPAN 64 /* enum probe_reason is below */

struct probe_counts {
    uint64_t values[PROBE_N_COUNTS];
    uint64_t results[PROBE_REASON_SPAN]; /* by enum probe_reason */
};

/* For nodectl and metrics: each of PROBE_COUNTS, and "probe_results" with each reason's word in
 * lower case as its label. */
void probe_counts_emit(const struct probe_counts *counts, counter_emit emit, void *to);

/* The thread's own, one writer. */
struct probe_counters {
    _Atomic uint64_t values[PROBE_N_COUNTS];
    _Atomic uint64_t results[PROBE_REASON_SPAN];
};

void probe_counters_init(struct probe_counters *counters);
void probe_counters_set(struct probe_counters *counters, enum probe_count count, uint64_t value);
void probe_counters_add(struct probe_counters *counters, enum probe_count count, uint64_t value);
void probe_counters_max(struct probe_counters *counters, enum probe_count count, uint64_t value);
void probe_counters_result(struct probe_counters *counters, enum probe_reason reason);
/* Any thread. Each value is right; values of one copy may be a moment apart. */
void probe_counters_read(const struct probe_counters *counters, struct probe_counts *ret_counts);

#endif
