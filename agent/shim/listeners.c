#include "agent/shim/listeners.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/core/fwd_layout.h"
#include "agent/shim/sockaddr.h"
#include "common/base/log.h"

#define BACKLOG 4096

/* An address that could not be opened, so that its reason is logged once. */
struct failure {
    struct endpoint at;
    int errnum;
};

struct listeners {
    uint32_t n_workers;
    struct addr own[2];     /* IPv4, IPv6 */
    struct shim_view *view; /* the last one given out: holds the open listeners */
    struct failure *failures;
    uint32_t n_failures;
};

struct listeners *listeners_new(uint32_t n_workers, const struct addr own[2])
{
    struct listeners *listeners = calloc(1, sizeof *listeners);

    if (listeners != NULL) {
        listeners->n_workers = n_workers;
        memcpy(listeners->own, own, sizeof listeners->own);
    }
    return listeners;
}

void listeners_free(struct listeners *listeners)
{
    if (listeners == NULL) {
        return;
    }
    shim_view_unref(listeners->view);
    free(listeners->failures);
    free(listeners);
}

uint32_t listeners_n_failed(const struct listeners *listeners)
{
    return listeners->n_failures;
}

/* --- sockets --- */

static int set_option(int fd, int level, int option)
{
    int on = 1;

    return setsockopt(fd, level, option, &on, sizeof on);
}

/* One worker's socket. The first of an address is bound without SO_REUSEPORT, so that a foreign
 * socket there is found even if it shares its port; then it is opened for the others. */
static int open_socket(const struct endpoint *at, bool is_first, int *ret_fd)
{
    struct sockaddr_storage address;
    socklen_t n_bytes = sockaddr_put(at, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return errno;
    }
    if (set_option(fd, SOL_SOCKET, SO_REUSEADDR) != 0 ||
        (at->addr.family == ADDR_IPV6 && set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY) != 0) ||
        (!is_first && set_option(fd, SOL_SOCKET, SO_REUSEPORT) != 0) ||
        bind(fd, (struct sockaddr *)&address, n_bytes) != 0 ||
        (is_first && set_option(fd, SOL_SOCKET, SO_REUSEPORT) != 0)) {
        int errnum = errno;

        close(fd);
        return errnum;
    }
    *ret_fd = fd;
    return 0;
}

static int listener_open(const struct endpoint *at, uint32_t n_workers,
                         struct shim_listener **ret_listener)
{
    struct shim_listener *listener = calloc(1, sizeof *listener);
    int errnum = listener == NULL ? ENOMEM : 0;

    if (listener == NULL) {
        return errnum;
    }
    atomic_init(&listener->n_refs, 1);
    listener->at = *at;
    while (errnum == 0 && listener->n_fds < n_workers) {
        errnum = open_socket(at, listener->n_fds == 0, &listener->fds[listener->n_fds]);
        listener->n_fds += errnum == 0;
    }
    /* Listen only when all are bound: connections are spread over what listens. */
    for (uint32_t i = 0; errnum == 0 && i < listener->n_fds; i++) {
        errnum = listen(listener->fds[i], BACKLOG) != 0 ? errno : 0;
    }
    if (errnum != 0) {
        shim_listener_unref(listener);
        return errnum;
    }
    *ret_listener = listener;
    return 0;
}

/* --- what the layout wants --- */

/* hint: where it stood last time; layouts seldom change their listeners. */
static struct shim_listener *find_open(const struct shim_view *view, const struct endpoint *at,
                                       uint32_t hint)
{
    for (uint32_t i = 0; view != NULL && i < view->n_entries; i++) {
        struct shim_listener *listener = view->entries[(i + hint) % view->n_entries].listener;

        if (endpoint_compare(&listener->at, at) == 0) {
            return listener;
        }
    }
    return NULL;
}

static const char *advice(int errnum)
{
    switch (errnum) {
    case EADDRINUSE:
        return "it is taken, by another process or another listener: free it or choose another "
               "port";
    case EACCES:
        return "a port below 1024 needs CAP_NET_BIND_SERVICE";
    case EADDRNOTAVAIL:
        return "this node does not own the address";
    case EMFILE:
    case ENFILE:
        return "raise the limit of open files";
    default:
        return "tried again each second";
    }
}

static void log_failure(const struct jury_listener *wanted, const struct endpoint *at, int errnum)
{
    char address[ENDPOINT_TEXT_BYTES];
    char name[2 * JURY_NAME_BYTES];
    char reason[128];
    char what[128];

    log_event(LOG_LEVEL_ERROR, "listener_failed", "listener=%s address=%s reason=%s advice=%s",
              log_quote(name, sizeof name, wanted->name), endpoint_format(at, address),
              log_quote(reason, sizeof reason, strerror(errnum)),
              log_quote(what, sizeof what, advice(errnum)));
}

static void log_opened(const struct jury_listener *wanted, const struct endpoint *at)
{
    char address[ENDPOINT_TEXT_BYTES];
    char name[2 * JURY_NAME_BYTES];

    log_event(LOG_LEVEL_INFO, "listener_opened", "listener=%s address=%s",
              log_quote(name, sizeof name, wanted->name), endpoint_format(at, address));
}

static bool was_logged(const struct listeners *listeners, const struct endpoint *at, int errnum)
{
    for (uint32_t i = 0; i < listeners->n_failures; i++) {
        if (endpoint_compare(&listeners->failures[i].at, at) == 0) {
            return listeners->failures[i].errnum == errnum;
        }
    }
    return false;
}

static bool is_tcp(const struct jury_listener *wanted)
{
    return wanted->protocol == JURY_PROTOCOL_TCP || wanted->protocol == JURY_PROTOCOL_TCP_UDP;
}

/* The address to listen on: the layout's, or this shim's own for a wildcard. */
static void resolve(const struct listeners *listeners, const struct jury_listener *wanted,
                    struct endpoint *ret_at)
{
    fwd_endpoint_get(&wanted->at, ret_at);
    const struct addr *own = &listeners->own[ret_at->addr.family == ADDR_IPV6];
    if (own->family != ADDR_NONE && addr_is_unspecified(&ret_at->addr)) {
        ret_at->addr = *own;
    }
}

/* One listener of the layout: its open sockets (a reference is given), or NULL and a failure. */
static struct shim_listener *follow_one(const struct listeners *listeners, uint32_t index,
                                        const struct jury_listener *wanted,
                                        struct failure *ret_failure)
{
    struct endpoint at;
    struct shim_listener *listener;

    resolve(listeners, wanted, &at);
    listener = find_open(listeners->view, &at, index);
    if (listener != NULL) {
        return shim_listener_ref(listener);
    }
    int errnum = listener_open(&at, listeners->n_workers, &listener);
    if (errnum == 0) {
        log_opened(wanted, &at);
        return listener;
    }
    if (!was_logged(listeners, &at, errnum)) {
        log_failure(wanted, &at, errnum);
    }
    *ret_failure = (struct failure){.at = at, .errnum = errnum};
    return NULL;
}

static void log_closed(const struct shim_view *before, const struct shim_view *after)
{
    char address[ENDPOINT_TEXT_BYTES];

    for (uint32_t i = 0; before != NULL && i < before->n_entries; i++) {
        const struct endpoint *at = &before->entries[i].listener->at;

        if (find_open(after, at, i) == NULL) {
            log_event(LOG_LEVEL_INFO, "listener_closed", "address=%s",
                      endpoint_format(at, address));
        }
    }
}

int listeners_follow(struct listeners *listeners, struct table_snapshot *snapshot,
                     struct shim_view **ret_view, struct errmsg *err)
{
    const struct table_layout *layout = table_snapshot_layout(snapshot);
    uint32_t n_wanted = layout->header->n_listeners;
    struct shim_view *view = shim_view_new(snapshot, n_wanted);
    struct failure *failures = calloc(n_wanted + 1U, sizeof *failures);
    uint32_t n_failures = 0;

    if (view == NULL || failures == NULL) {
        shim_view_unref(view);
        free(failures);
        return errmsg_set(err, ERR_NOMEM, "no memory for %u listeners", n_wanted);
    }
    for (uint32_t i = 0; i < n_wanted; i++) {
        const struct jury_listener *wanted = table_layout_listener(layout, i);

        if (!is_tcp(wanted)) {
            continue; /* another forwarder's */
        }
        struct shim_listener *listener = follow_one(listeners, i, wanted, &failures[n_failures]);
        if (listener == NULL) {
            n_failures++;
            continue;
        }
        view->entries[view->n_entries++] = (struct shim_entry){.listener = listener, .index = i};
    }
    log_closed(listeners->view, view);
    shim_view_unref(listeners->view);
    listeners->view = shim_view_ref(view);
    free(listeners->failures);
    listeners->failures = failures;
    listeners->n_failures = n_failures;
    *ret_view = view;
    return 0;
}
