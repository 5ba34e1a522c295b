/* The descriptors of the connect engine: which of its probes each serves, and those that are kept
 * for later probes.
 *
 * To make and to close a socket costs as much as the rest of a probe. So one whose connection was
 * established is not closed by RST but disconnected, connect(2) with AF_UNSPEC, which sends the
 * same RST, and serves another probe, of any backend, from the same source. What the kernel keeps
 * of the old connection is one number: the next one's first sequence number follows from it. Who
 * wants to answer in a backend's place by that must have seen a probe just before, and still guess
 * the port.
 *
 * Where the server closed first and our FIN answers its own, the socket is kept, too, when its last
 * acknowledgement has come. A socket whose connection attempt failed is never kept. */
#ifndef JURY_PROBE_CONNECT_POOL_H
#define JURY_PROBE_CONNECT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"

#define CONNECT_KEPT_MAX 256 /* of a family; as many again whose FIN is on its way */

struct connect_socket {
    uint32_t place; /* of its probe; NO_PLACE: it has none */
    struct addr source;
    uint8_t family; /* enum addr_family */
};

struct connect_pool {
    int epoll_fd;
    struct connect_socket *by_fd; /* n_fds of them */
    uint32_t n_fds;
    int kept[2][CONNECT_KEPT_MAX]; /* IPv4, IPv6; the newest last */
    uint32_t n_kept[2];
    int closing[2][CONNECT_KEPT_MAX]; /* queues */
    uint32_t closing_first[2];
    uint32_t n_closing[2];
};

void connect_pool_init(struct connect_pool *pool, int epoll_fd);
/* Closes what is kept. */
void connect_pool_close(struct connect_pool *pool);

/* A kept socket of that family and source (ADDR_NONE: of no certain one); -1: there is none. */
int connect_pool_take(struct connect_pool *pool, uint8_t family, const struct addr *source);
/* A descriptor that is new here. Errors: ERR_NOMEM: it is not known here. */
int connect_pool_add(struct connect_pool *pool, int fd, uint8_t family, const struct addr *source);
/* Whose events these are from now on. fd: taken or added. */
void connect_pool_serve(struct connect_pool *pool, int fd, uint32_t place);
/* NO_PLACE: nobody's any more. */
uint32_t connect_pool_place(const struct connect_pool *pool, int fd);

/* End the connection of a descriptor that was added by RST. is_established: it may be kept. */
void connect_pool_reset(struct connect_pool *pool, int fd, bool is_established);
/* The same by FIN. is_answer: the other end has closed already. */
void connect_pool_finish(struct connect_pool *pool, int fd, bool is_answer);

#endif
