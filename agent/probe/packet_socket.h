/* The sockets of the packet engine: raw ones that send whole IP packets, the kernel finding route
 * and neighbour, one that hands them to a link as frames, and one that receives what
 * packet_filter.h lets through into memory shared with the kernel. They need CAP_NET_RAW at the
 * moment they are opened. */
#ifndef JURY_PROBE_PACKET_SOCKET_H
#define JURY_PROBE_PACKET_SOCKET_H

#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/packet.h"
#include "agent/probe/link_hops.h"
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
    int send_link_fd; /* -1 too unless it was asked for */
    uint8_t *ring;    /* PACKET_FRAMES frames; NULL = none */
    uint32_t next_frame;
    uint64_t begun_ns;    /* when the present look began, monotonic */
    uint64_t before_ns;   /* when the one before it did */
    uint64_t realtime_ns; /* CLOCK_REALTIME at begun_ns */
};

#define PACKET_SOCKET_CLOSED \
    ((struct packet_socket){ \
        .receive_fd = -1, .send_ipv4_fd = -1, .send_ipv6_fd = -1, .send_link_fd = -1})

/* Packets on their way to the kernel, all of a batch by one call, and by one of these sockets. */
#define PACKET_BATCH 64

enum packet_out {
    PACKET_OUT_LINK = 0,
    PACKET_OUT_IPV4,
    PACKET_OUT_IPV6,
    PACKET_N_OUTS
};

struct packet_message {
    struct packet_tcp tcp;
    uint8_t bytes[PACKET_TCP_BYTES_MAX];
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    union {
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_ll link;
    } to;
    struct iovec part;
};

struct packet_batch {
    unsigned n;
    struct mmsghdr heads[PACKET_BATCH];
    struct packet_message messages[PACKET_BATCH];
};

/* ports: those whose packets are wanted. Errors, with a sentence: ERR_DENIED (no CAP_NET_RAW),
 * ERR_LIMIT (descriptors), ERR_NOMEM, ERR_IO (a kernel without packet sockets); all is closed. */
int packet_socket_open(struct packet_socket *sock, const uint16_t ports[], size_t n_ports,
                       struct errmsg *err);
/* One more that hands frames to links. Errors: as above, and the others stay open. */
int packet_socket_open_link(struct packet_socket *sock, struct errmsg *err);
/* One that sees the SYNs that leave this machine, whoever sends them, and what is sent by it itself
 * too, once it is told to see what leaves. Errors: as above. */
int packet_socket_open_tap(struct packet_socket *sock, struct errmsg *err);
void packet_socket_see_outgoing(const struct packet_socket *sock, bool is_on);
/* Again is fine, of one that open has seen. */
void packet_socket_close(struct packet_socket *sock);

/* A look at what waits begins; now_ns: monotonic. */
void packet_socket_look(struct packet_socket *sock, uint64_t now_ns);
/* Read the next packet that waits, which may be one that says nothing. False: none waits.
 * ret_came_ns: monotonic, when the kernel got it: not before the last look began, and not after
 * this one did. The kernel stamps packets by the wall clock, which somebody may set meanwhile; so
 * the two looks bound what that can do. */
bool packet_socket_next(struct packet_socket *sock, struct packet_seen *ret_seen,
                        uint64_t *ret_came_ns);
/* REASON_NONE: it was handed to the kernel. */
enum probe_reason packet_socket_send(const struct packet_socket *sock,
                                     const struct packet_tcp *tcp);
/* Add a packet to a batch that is not full (n < PACKET_BATCH); to be sent by its family's socket.
 */
void packet_batch_add(struct packet_batch *batch, const struct packet_tcp *tcp);
/* Likewise; to be sent by PACKET_OUT_LINK. */
void packet_batch_add_link(struct packet_batch *batch, const struct packet_tcp *tcp,
                           const struct link_hop *hop);
/* Hand all packets of a batch to the kernel; it is empty then, but its messages can be read until
 * the next one is added. ret_reasons: of each packet, in the order of packet_batch_add, as
 * packet_socket_send. */
void packet_batch_send(struct packet_batch *batch, const struct packet_socket *sock,
                       enum packet_out out, enum probe_reason ret_reasons[PACKET_BATCH]);
/* Packets for us that were lost for want of room since the last call. */
uint64_t packet_socket_take_dropped(struct packet_socket *sock);

#endif
