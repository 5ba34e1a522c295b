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
#include "common/base/plant.h"

#define BACKLOG 4096

struct listeners {
    uint32_t n_workers;
    struct addr own[2];                   /* IPv4, IPv6 */
    struct shim_view *view;               /* the last one given out: holds the open listeners */
    struct jury_status_failure *failures; /* so that each reason is logged once, and is told */
    size_t n_failures;
};

/* Being made for the next `failures`. */
struct failure_list {
    struct jury_status_failure *failures;
    size_t n_failures;
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

const struct jury_status_failure *listeners_failed(const struct listeners *listeners,
                                                   size_t *ret_n_failed)
{
    *ret_n_failed = listeners->n_failures;
    return listeners->failures;
}

/* --- sockets --- */

static int set_option(int fd, int level, int option)
{
    int on = 1;

    return setsockopt(fd, level, option, &on, sizeof on);
}

/* One worker's socket. The first of an address is bound without SO_REUSEPORT, so that a foreign
 * socket there is found even if it shares its port; then it is opened for the others. Beside an own
 * listener that overlaps it must share from the start: there the kernel finds foreign sockets only
 * of other users, or of those that do not share. */
static int open_socket(const struct endpoint *at, bool must_share, int *ret_fd)
{
    struct sockaddr_storage address;
    socklen_t n_bytes = sockaddr_put(at, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return errno;
    }
    if (set_option(fd, SOL_SOCKET, SO_REUSEADDR) != 0 ||
        (at->addr.family == ADDR_IPV6 && set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY) != 0) ||
        (must_share && set_option(fd, SOL_SOCKET, SO_REUSEPORT) != 0) ||
        bind(fd, (struct sockaddr *)&address, n_bytes) != 0 ||
        (!must_share && set_option(fd, SOL_SOCKET, SO_REUSEPORT) != 0)) {
        int errnum = errno;

        close(fd);
        return errnum;
    }
    *ret_fd = fd;
    return 0;
}

static int listener_open(const struct endpoint *at, uint32_t n_workers, bool overlaps,
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
        errnum = open_socket(at, overlaps || listener->n_fds > 0, &listener->fds[listener->n_fds]);
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

static bool was_logged(const struct listeners *listeners, uint64_t listener_id, int errnum)
{
    for (size_t i = 0; i < listeners->n_failures; i++) {
        if (listeners->failures[i].listener_id == listener_id) {
            return listeners->failures[i].errnum == (uint64_t)errnum;
        }
    }
    return false;
}

static bool is_tcp(const struct jury_listener *wanted)
{
    return wanted->protocol == JURY_PROTOCOL_TCP || wanted->protocol == JURY_PROTOCOL_TCP_UDP;
}

static bool is_for_every_address(const struct jury_listener *wanted)
{
    struct endpoint at;

    fwd_endpoint_get(&wanted->at, &at);
    return addr_is_unspecified(&at.addr);
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

/* Another listener of the view has the same port, one of the two on every address. */
static bool overlaps_in(const struct shim_view *view, const struct endpoint *at)
{
    for (uint32_t i = 0; view != NULL && i < view->n_entries; i++) {
        const struct endpoint *other = &view->entries[i].listener->at;

        if (other->port == at->port && other->addr.family == at->addr.family &&
            addr_is_unspecified(&other->addr) != addr_is_unspecified(&at->addr) &&
            !plant_is("shim-no-overlap")) {
            return true;
        }
    }
    return false;
}

/* Its open sockets (a reference is given), or an errno. view: what this layout has so far. */
static int find_or_open(const struct listeners *listeners, const struct shim_view *view,
                        const struct shim_entry *wanted, const struct endpoint *at,
                        struct shim_listener **ret_listener)
{
    if (find_open(view, at, 0) != NULL) {
        return EADDRINUSE; /* by a more specific one, where this shim's own address stands for all
                            */
    }
    *ret_listener = find_open(listeners->view, at, wanted->index);
    if (*ret_listener != NULL) {
        shim_listener_ref(*ret_listener);
        return 0;
    }
    return listener_open(at, listeners->n_workers,
                         overlaps_in(listeners->view, at) || overlaps_in(view, at), ret_listener);
}

/* One listener of the layout joins the view, or the failures. */
static void follow_one(struct listeners *listeners, const struct jury_listener *wanted,
                       uint32_t index, struct shim_view *view, struct failure_list *failed)
{
    struct shim_entry entry = {.index = index};
    struct endpoint at;

    resolve(listeners, wanted, &at);
    int errnum = find_or_open(listeners, view, &entry, &at, &entry.listener);
    if (errnum == 0) {
        if (find_open(listeners->view, &at, index) == NULL) {
            log_opened(wanted, &at);
        }
        view->entries[view->n_entries++] = entry;
        return;
    }
    if (!was_logged(listeners, wanted->id, errnum)) {
        log_failure(wanted, &at, errnum);
    }
    failed->failures[failed->n_failures++] =
        (struct jury_status_failure){.listener_id = wanted->id, .errnum = (uint64_t)errnum};
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
    struct failure_list failed = {.failures = calloc(n_wanted + 1U, sizeof *failed.failures)};

    if (view == NULL || failed.failures == NULL) {
        shim_view_unref(view);
        free(failed.failures);
        return errmsg_set(err, ERR_NOMEM, "no memory for %u listeners", n_wanted);
    }
    /* Those of one address first: what they take is not left to those of every address. */
    for (int is_for_all = 0; is_for_all <= 1; is_for_all++) {
        for (uint32_t i = 0; i < n_wanted; i++) {
            const struct jury_listener *wanted = table_layout_listener(layout, i);

            if (is_tcp(wanted) && is_for_every_address(wanted) == (is_for_all != 0)) {
                follow_one(listeners, wanted, i, view, &failed);
            }
        }
    }
    log_closed(listeners->view, view);
    shim_view_unref(listeners->view);
    listeners->view = shim_view_ref(view);
    free(listeners->failures);
    listeners->failures = failed.failures;
    listeners->n_failures = failed.n_failures;
    *ret_view = view;
    return 0;
}
