/* The sockets of the packet engine: raw ones that send whole IP packets, the kernel finding route
 * and neighbour, and one that receives what packet_filter.h lets through into memory shared with
 * the kernel. They need CAP_NET_RAW at the moment they are opened. */
#ifndef JURY_PROBE_PACKET_SOCKET_H
#define JURY_PROBE_PACKET_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/packet.h"
#include "common/base/err.h"
#include "common/model/reason.h"

/* One packet for each probe in flight (LIMIT_PROBES_IN_FLIGHT), each with room for headers and the
 * quotation of an ICMP error. What finds no room is dropped by the kernel and counted. */
#define PACKET_FRAMES 4096
#define PACKET_FRAME_BYTES 512

struct packet_socket {
    int receive_fd; /* readable when a packet waits; -1 = closed */
    int send_ipv4_fd;
    int send_ipv6_fd; /* -1 too where the kernel has no IPv6 */
    uint8_t *ring;    /* PACKET_FRAMES frames; NULL = none */
    uint32_t next_frame;
};

/* ports: those whose packets are wanted. Errors, with a sentence: ERR_DENIED (no CAP_NET_RAW),
 * ERR_LIMIT (descriptors), ERR_NOMEM, ERR_IO (a kernel without packet sockets); all is closed. */
int packet_socket_open(struct packet_socket *sock, const uint16_t ports[], size_t n_ports,
                       struct errmsg *err);
/* Again is fine, of one that open has seen. */
void packet_socket_close(struct packet_socket *sock);

/* Read the next packet that waits, which may be one that says nothing. False: none waits. */
bool packet_socket_next(struct packet_socket *sock, struct packet_seen *ret_seen);
/* REASON_NONE: it was handed to the kernel. */
enum probe_reason packet_socket_send(const struct packet_socket *sock,
                                     const struct packet_tcp *tcp);
/* Packets for us that were lost for want of room since the last call. */
uint64_t packet_socket_take_dropped(struct packet_socket *sock);

#endif
