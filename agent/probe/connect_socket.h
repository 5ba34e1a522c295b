/* The sockets of the connect engine: how one is opened and the ways in which it is ended. */
#ifndef JURY_PROBE_CONNECT_SOCKET_H
#define JURY_PROBE_CONNECT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/probe.h"
#include "agent/probe/connect_pool.h"

/* An address and port for the kernel. Returns the number of bytes. */
socklen_t connect_socket_address(const struct addr *addr, uint16_t port,
                                 struct sockaddr_storage *ret_address);

/* The address of what the kernel gives; other families than IPv6 are read as IPv4. */
void connect_socket_read_address(const struct sockaddr_storage *address, struct addr *ret_addr);

/* Address and port of this end. False: it has none. */
bool connect_socket_source(int fd, struct endpoint *ret_source);

/* Bind to target->source if it has one, leaving the choice of the port to connect: so the same port
 * serves different backends at a time. Returns REASON_NONE or why not. */
enum probe_reason connect_socket_bind(int fd, const struct probe_target *target);

/* Begin a non-blocking connection to target->definition.to from target->source, by a kept socket of
 * the pool or by a new one, which is registered with the epoll instance, edge-triggered, with the
 * descriptor as its data.
 *
 * ret_start_ns: monotonic, just before the SYN was asked for; written in every case.
 * Returns REASON_NONE and the descriptor, which is the pool's, or the reason why there is none. */
enum probe_reason connect_socket_open(const struct probe_target *target, struct connect_pool *pool,
                                      uint64_t *ret_start_ns, int *ret_fd);

/* Whether the data of this check takes the place of the handshake's bare ACK, since it follows at
 * once. A check that ends with the handshake wants that ACK. */
bool connect_socket_saves_ack(const struct health_check *check);

/* The reason of the error that ended the connection attempt; REASON_NONE = it is established. */
enum probe_reason connect_socket_error(int fd);

/* Of an attempt that ended with an error: whether a TCP segment of the other end did it, its RST,
 * and not an ICMP message on its behalf or a fault of this node. */
bool connect_socket_is_refused(int fd);

/* End an established connection by RST, so that the socket can make another one. False: it cannot.
 */
bool connect_socket_disconnect(int fd);
/* Whether both directions have ended and nothing is awaited any more. */
bool connect_socket_is_closed(int fd);
/* RST at once if it is established; if it is still being made, nothing is sent. No TIME_WAIT. */
void connect_socket_reset(int fd);
/* FIN. */
void connect_socket_finish(int fd);

#endif
