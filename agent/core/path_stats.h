/* What the probes of one target tell of the way to it: its round-trip time, smoothed, and how many
 * of the last probes were lost. Pure, 8 bytes a target: it lives in the engine's row of each.
 *
 * A probe is lost when its target sent no reply at all within T: no SYN-ACK or RST to a SYN (of a
 * tcp, http, tls or grpc check), no datagram and no "port unreachable" to a udp exchange, no echo
 * reply to port+echo. A wrong answer, a refusal, and a connection on which nothing more comes are
 * replies; an ICMP error to a SYN is none, since a router may have sent it. Not counted at all is
 * what is inconclusive (a fault of this node, rationed ICMP errors), and a udp port check that
 * passes by silence, since it wants no reply. SYNs are repeated after 1 s and 3 s, so with T above
 * 1 s one lost packet is no lost probe.
 *
 * The round-trip time is the response time of the probes that pass by an answer: from the first
 * packet to what decides, of tcp the SYN-ACK, of http the status line and header. Of port+echo
 * there is none, since it waits for T. The engine `packet` takes it from the kernel's time stamps,
 * `connect` may add half a millisecond (CONNECT_QUIET_NS).
 *
 * A histogram of each target was rejected: a dozen numbers each, and with 100,000 targets more
 * than a million series. Counters of the node (engine_counters) give the loss over any time. */
#ifndef JURY_CORE_PATH_STATS_H
#define JURY_CORE_PATH_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/probe.h"

#define PATH_STATS_PROBES 30 /* that the loss is of */

struct path_stats {
    uint32_t smoothed_us; /* in eighths of a microsecond; 0 = none yet */
    uint32_t lost;        /* one bit a probe, the newest lowest, below a 1; 0 = none yet */
};

enum path_outcome {
    PATH_TELLS_NOTHING = 0,
    PATH_REPLIED = 1,
    PATH_LOST = 2
};

/* is_udp: the target is probed by UDP. */
enum path_outcome path_outcome_of(const struct probe_result *result, bool is_udp);

/* Account for one finished probe; the same. */
enum path_outcome path_stats_note(struct path_stats *path, const struct probe_result *result,
                                  bool is_udp);

/* The round-trip time in microseconds, smoothed as RFC 6298 does it (section 2: the first as it is,
 * then 7/8 of what was and 1/8 of the new one). False: no probe passed by an answer yet. */
bool path_stats_time(const struct path_stats *path, uint32_t *ret_us);
/* Of the last probes that wanted a reply, PATH_STATS_PROBES at most: how many they are, and how
 * many of them were lost. */
unsigned path_stats_n_probes(const struct path_stats *path);
unsigned path_stats_n_lost(const struct path_stats *path);

#endif
