/* The sockets of the udp engine: one datagram out, and what the kernel heard about it. */
#ifndef JURY_PROBE_UDP_SOCKET_H
#define JURY_PROBE_UDP_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "agent/core/probe.h"

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

/* The next thing that came. An ICMP error is heard only if it quotes this socket's addresses and
 * ports: the kernel has looked. bytes: a datagram's first n_max ones; ret_n_bytes with it only. */
enum udp_heard udp_socket_hear(int fd, const struct addr *backend, uint8_t bytes[], size_t n_max,
                               size_t *ret_n_bytes);

#endif
