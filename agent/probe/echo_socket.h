/* ICMP echo by raw sockets, of both families, for the method port+echo. Needs CAP_NET_RAW. */
#ifndef JURY_PROBE_ECHO_SOCKET_H
#define JURY_PROBE_ECHO_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/icmp_echo.h"
#include "agent/core/probe.h"
#include "common/base/err.h"

struct echo_socket {
    int ipv4_fd; /* -1 = none */
    int ipv6_fd; /* -1 = none, also where the kernel has no IPv6 */
    uint16_t id;
};

/* id: of this process's requests; a filter in the kernel keeps away replies to others.
 * Errors, with a sentence: ERR_DENIED (no CAP_NET_RAW), ERR_LIMIT (no descriptor), ERR_IO. */
int echo_socket_open(struct echo_socket *sock, uint16_t id, struct errmsg *err);
void echo_socket_close(struct echo_socket *sock);

/* Ask the target's address, from its source if it has one. Returns REASON_NONE or why not. */
enum probe_reason echo_socket_send(const struct echo_socket *sock,
                                   const struct probe_target *target, const struct icmp_echo *echo);

/* The next reply to this process that waits; false: none. */
bool echo_socket_next(const struct echo_socket *sock, struct icmp_echo *ret_echo,
                      struct addr *ret_from);

/* Replies that the kernel had no room for, in all. */
uint64_t echo_socket_dropped(const struct echo_socket *sock);

#endif
