/* Host names to addresses on a thread of its own.
 *
 * Never uv_getaddrinfo: that runs on libuv's pool, where raft's segment work waits behind a slow
 * name server. One resolver serves several loops; each has a client with its own rings. Numeric
 * addresses are not asked here (addr_parse). libzmq only ever gets numeric addresses. */
#ifndef JURY_LOOP_RESOLVER_H
#define JURY_LOOP_RESOLVER_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/addr.h"
#include "common/base/err.h"

#define RESOLVER_HOST_BYTES 256 /* longest DNS name and NUL */
#define RESOLVER_CLIENTS 4
#define RESOLVER_ADDRESSES 8
#define RESOLVER_QUESTIONS 256 /* of one client at once: LIMIT_NODES peers with their endpoints */

struct resolver_answer {
    uint64_t cookie;
    int err; /* 0, ERR_NOTFOUND, ERR_UNREACHABLE (name server), ERR_LIMIT */
    uint32_t n_addresses;
    struct addr addresses[RESOLVER_ADDRESSES]; /* in the order of the system's preference */
    char host[RESOLVER_HOST_BYTES];
};

struct resolver;
/* Errors: ERR_NOMEM, ERR_LIMIT. */
int resolver_start(struct resolver **ret_resolver);
/* After every client was closed. A lookup that is under way is left to the end of the process. */
void resolver_stop(struct resolver *resolver);

struct resolver_client;
/* For one loop; before or after resolver_start's thread runs, at most RESOLVER_CLIENTS in the
 * resolver's life. answered: on the loop's thread, never inside resolver_ask.
 * Errors: ERR_NOMEM, ERR_LIMIT. */
int resolver_client_open(struct resolver *resolver, uv_loop_t *loop,
                         void (*answered)(void *user, const struct resolver_answer *answer),
                         void *user, struct resolver_client **ret_client);
/* Loop thread; no answer comes after it. The loop must run its close callbacks before it ends. */
void resolver_client_close(struct resolver_client *client);
/* Loop thread. cookie: the caller's, comes back in the answer. Errors: ERR_BUSY (asked too much at
 * once), ERR_INVALID (host too long). */
int resolver_ask(struct resolver_client *client, uint64_t cookie, const char *host);

#endif
