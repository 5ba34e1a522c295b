/* The filter of the packet engine: which of the packets that this machine receives are worth a
 * look.
 *
 * It runs in the kernel for every one of them, so it asks the cheapest question that leaves little:
 * TCP with SYN or RST to one of our ports, ICMP errors that quote TCP, and TCP behind IPv6
 * extension headers. What passes is read by agent/core/packet.h, which decides. */
#ifndef JURY_PROBE_PACKET_FILTER_H
#define JURY_PROBE_PACKET_FILTER_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_FILTER_PORTS_MAX 128 /* conditional jumps of BPF reach 255 instructions */
#define PACKET_FILTER_MAX (64 + PACKET_FILTER_PORTS_MAX)

/* For packets that begin with the IP header (SOCK_DGRAM). n_ports 1..PACKET_FILTER_PORTS_MAX.
 * Returns the number of instructions. */
size_t packet_filter_build(const uint16_t ports[], size_t n_ports,
                           struct sock_filter program[PACKET_FILTER_MAX]);

/* SYNs of connections that this machine begins, as they leave it. Returns likewise. */
size_t packet_filter_build_syns(struct sock_filter program[PACKET_FILTER_MAX]);

#endif
