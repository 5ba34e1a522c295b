#include "agent/probe/connect_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/connect_socket.h"
#include "agent/probe/probe_places.h"
#include "common/base/err.h"

#define LOOK_AT_MAX 8 /* kept sockets for one of the right source: nodes have few sources */

static unsigned index_of(uint8_t family)
{
    return family == ADDR_IPV6 ? 1 : 0;
}

void connect_pool_init(struct connect_pool *pool, int epoll_fd)
{
    *pool = (struct connect_pool){.epoll_fd = epoll_fd};
}

static int pop_closing(struct connect_pool *pool, unsigned i)
{
    int fd = pool->closing[i][pool->closing_first[i]];

    assert(pool->n_closing[i] > 0);
    pool->closing_first[i] = (pool->closing_first[i] + 1) % CONNECT_KEPT_MAX;
    pool->n_closing[i]--;
    return fd;
}

/* The oldest of the queue, if its connection is over by now: then disconnecting it sends nothing.
 */
static int take_closed(struct connect_pool *pool, unsigned i, const struct addr *source)
{
    if (pool->n_closing[i] == 0) {
        return -1;
    }
    int oldest = pool->closing[i][pool->closing_first[i]];
    if (addr_compare(&pool->by_fd[oldest].source, source) != 0 ||
        !connect_socket_is_closed(oldest)) {
        return -1;
    }
    int fd = pop_closing(pool, i);
    if (!connect_socket_disconnect(fd)) {
        connect_socket_finish(fd);
        return -1;
    }
    return fd;
}

void connect_pool_close(struct connect_pool *pool)
{
    for (unsigned i = 0; i < 2; i++) {
        while (pool->n_kept[i] > 0) {
            close(pool->kept[i][--pool->n_kept[i]]);
        }
        while (pool->n_closing[i] > 0) {
            connect_socket_finish(pop_closing(pool, i));
        }
    }
    free(pool->by_fd);
    pool->by_fd = NULL;
    pool->n_fds = 0;
}

int connect_pool_take(struct connect_pool *pool, uint8_t family, const struct addr *source)
{
    int *kept = pool->kept[index_of(family)];
    uint32_t *n_kept = &pool->n_kept[index_of(family)];

    for (uint32_t i = *n_kept; i > 0 && i + LOOK_AT_MAX > *n_kept; i--) {
        int fd = kept[i - 1];

        if (addr_compare(&pool->by_fd[fd].source, source) == 0) {
            kept[i - 1] = kept[--*n_kept];
            return fd;
        }
    }
    return take_closed(pool, index_of(family), source);
}

int connect_pool_add(struct connect_pool *pool, int fd, uint8_t family, const struct addr *source)
{
    uint32_t n_fds = pool->n_fds == 0 ? 256 : pool->n_fds;

    assert(fd >= 0);
    while (n_fds <= (uint32_t)fd) {
        n_fds *= 2;
    }
    if (n_fds > pool->n_fds) {
        struct connect_socket *by_fd = realloc(pool->by_fd, n_fds * sizeof *by_fd);

        if (by_fd == NULL) {
            return ERR_NOMEM;
        }
        for (uint32_t i = pool->n_fds; i < n_fds; i++) {
            by_fd[i] = (struct connect_socket){.place = NO_PLACE};
        }
        pool->by_fd = by_fd;
        pool->n_fds = n_fds;
    }
    pool->by_fd[fd] =
        (struct connect_socket){.place = NO_PLACE, .source = *source, .family = family};
    return 0;
}

void connect_pool_serve(struct connect_pool *pool, int fd, uint32_t place)
{
    pool->by_fd[fd].place = place;
}

uint32_t connect_pool_place(const struct connect_pool *pool, int fd)
{
    return (uint32_t)fd < pool->n_fds ? pool->by_fd[fd].place : NO_PLACE;
}

void connect_pool_reset(struct connect_pool *pool, int fd, bool is_established)
{
    unsigned i = index_of(pool->by_fd[fd].family);

    pool->by_fd[fd].place = NO_PLACE;
    if (is_established && pool->n_kept[i] < CONNECT_KEPT_MAX && connect_socket_disconnect(fd)) {
        pool->kept[i][pool->n_kept[i]++] = fd;
    } else {
        connect_socket_reset(fd);
    }
}

void connect_pool_finish(struct connect_pool *pool, int fd, bool is_answer)
{
    unsigned i = index_of(pool->by_fd[fd].family);

    pool->by_fd[fd].place = NO_PLACE;
    if (!is_answer || shutdown(fd, SHUT_WR) != 0) {
        connect_socket_finish(fd);
        return;
    }
    if (pool->n_closing[i] == CONNECT_KEPT_MAX) {
        connect_socket_finish(pop_closing(pool, i));
    }
    pool->closing[i][(pool->closing_first[i] + pool->n_closing[i]) % CONNECT_KEPT_MAX] = fd;
    pool->n_closing[i]++;
}
