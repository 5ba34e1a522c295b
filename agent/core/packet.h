/* TCP segments and the ICMP errors about them, as whole IP packets: made for, and read from, a node
 * that probes without a connection (spec.md 4, tcp half-open). Pure; what is read comes from
 * anybody who can reach this node.
 *
 * Reading answers one question: does this packet say something about a segment of ours? It copies
 * the few fields that decide and keeps no pointer. It is not a validator: what a host would discard
 * (a wrong checksum, a fragment, a length that does not fit) says nothing, and so does all that a
 * probe never waits for. */
#ifndef JURY_CORE_PACKET_H
#define JURY_CORE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"

/* RFC 9293 3.1 */
enum packet_tcp_flag {
    PACKET_FIN = 1 << 0,
    PACKET_SYN = 1 << 1,
    PACKET_RST = 1 << 2,
    PACKET_ACK = 1 << 4
};

struct packet_tcp {
    struct endpoint from;
    struct endpoint to; /* of from's family */
    uint32_t seq;
    uint32_t ack; /* 0 without PACKET_ACK */
    uint8_t flags;
};

/* A SYN carries the option MSS, as every host's does: some filters drop one that does not. */
#define PACKET_TCP_BYTES_MAX (40 + 24)

/* The whole packet, IP header included, both checksums done; no data, never a fragment. Two packets
 * of the same fields are the same bytes, so a repeated SYN is one.
 * Returns the number of bytes. */
size_t packet_build_tcp(const struct packet_tcp *tcp, uint8_t bytes[PACKET_TCP_BYTES_MAX]);

enum packet_kind {
    PACKET_NONE = 0,
    PACKET_SEGMENT,    /* `tcp` came in */
    PACKET_UNREACHABLE /* a router or host could not deliver `tcp`, which this node had sent */
};

struct packet_seen {
    uint8_t kind; /* enum packet_kind */
    /* SEGMENT: as it came. UNREACHABLE: as quoted; ack and flags are 0, the quotation may end
     * before them (RFC 792 promises 8 bytes). */
    struct packet_tcp tcp;
    struct addr by; /* UNREACHABLE: who says so, and how */
    uint8_t icmp_type;
    uint8_t icmp_code;
};

/* bytes: from the IP header on, maybe cut at the end; the IP header's own length counts, what is
 * behind it (padding of the link) does not.
 * is_sum_checked: the checksum of a segment is right, or not made yet (it came from this machine);
 * otherwise it is checked here, unless the packet is cut. That of an ICMP message never is: it is
 * believed only when it quotes a segment's addresses, ports and sequence number.
 *
 * UNREACHABLE is what ends a connection attempt of the kernel, too: ICMP destination unreachable
 * (without "fragmentation needed"), time exceeded, parameter problem (RFC 792, RFC 4443; RFC 1122
 * 4.2.3.9). IPv6 extension headers that do not fragment are walked over. */
struct packet_seen packet_read(const uint8_t *bytes, size_t n_bytes, bool is_sum_checked);

#endif
