/* The sockets of the connect engine: how one is opened and the three ways in which it is closed. */
#ifndef JURY_PROBE_CONNECT_SOCKET_H
#define JURY_PROBE_CONNECT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/probe.h"

/* An address and port for the kernel. Returns the number of bytes. */
socklen_t connect_socket_address(const struct addr *addr, uint16_t port,
                                 struct sockaddr_storage *ret_address);

/* The address of what the kernel gives; other families than IPv6 are read as IPv4. */
void connect_socket_read_address(const struct sockaddr_storage *address, struct addr *ret_addr);

/* Bind to target->source if it has one, leaving the choice of the port to connect: so the same port
 * serves different backends at a time. Returns REASON_NONE or why not. */
enum probe_reason connect_socket_bind(int fd, const struct probe_target *target);

/* Begin a non-blocking connection to target->definition.to from target->source and register the
 * socket with the epoll instance, edge-triggered, with `token` as its data.
 *
 * ret_start_ns: monotonic, just before the SYN was asked for; written in every case.
 * Returns REASON_NONE and the descriptor (given: close it with one of the functions below), or
 * the reason why there is none. */
enum probe_reason connect_socket_open(const struct probe_target *target, int epoll_fd,
                                      uint64_t token, uint64_t *ret_start_ns, int *ret_fd);

/* The reason of the error that ended the connection attempt; REASON_NONE = it is established. */
enum probe_reason connect_socket_error(int fd);

/* Of an attempt that ended with an error: whether a TCP segment of the other end did it, its RST,
 * and not an ICMP message on its behalf or a fault of this node. */
bool connect_socket_is_refused(int fd);

/* RST at once if it is established; if it is still being made, nothing is sent. No TIME_WAIT. */
void connect_socket_reset(int fd);
/* FIN. */
void connect_socket_finish(int fd);

#endif
