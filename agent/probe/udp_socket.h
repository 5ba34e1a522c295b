/* The sockets of the udp engine: one datagram out, and what the kernel heard about it. */
#ifndef JURY_PROBE_UDP_SOCKET_H
#define JURY_PROBE_UDP_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "agent/core/probe.h"
#include "agent/probe/icmp_told.h"
#include "common/base/limits.h"

/* Connect a socket from target->source to target->definition.to, register it with the epoll
 * instance, edge-triggered, with `token` as its data, and send the payload, once.
 *
 * Returns REASON_NONE and the descriptor (given: close it), or the reason why there is none. */
enum probe_reason udp_socket_open(const struct probe_target *target, int epoll_fd, uint64_t token,
                                  int *ret_fd);

enum udp_heard {
    UDP_HEARD_NOTHING,     /* for now */
    UDP_HEARD_DATAGRAM,    /* from the probed address and port: the socket is connected to them */
    UDP_HEARD_REFUSED,     /* "port unreachable", from the probed address itself */
    UDP_HEARD_UNREACHABLE, /* another destination unreachable from it, or of this node's own
                              neighbour lookup */
    UDP_HEARD_OTHER        /* said by somebody else, or no reason to fail */
};

struct udp_news {
    uint8_t bytes[LIMIT_UDP_PAYLOAD_BYTES]; /* of a datagram, its first ones */
    size_t n_bytes;
    struct icmp_told told; /* of an ICMP error; else its sender is ADDR_NONE */
};

/* The next thing that came. An ICMP error is heard only if it quotes this socket's addresses and
 * ports: the kernel has looked. */
enum udp_heard udp_socket_hear(int fd, const struct addr *backend, struct udp_news *ret_news);

#endif
