#include "agent/accept_gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/loop/peername.h"
#include "common/base/limits.h"
#include "common/base/plant.h"
#include "common/base/units.h"

#define FILES_UNKNOWN 1024         /* the usual limit, if the kernel does not tell */
#define STARVED_PAUSE_NS NS_PER_MS /* the listener stays readable: do not spin on it */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct accept_refused refused[ACCEPT_SIDES];
static struct addr known[LIMIT_NODES];
static size_t n_known;

int accept_gate_bar(enum accept_side side, uint64_t files_limit)
{
    uint64_t files = files_limit < ACCEPT_FILES_MAX ? files_limit : ACCEPT_FILES_MAX;
    static const uint64_t eighths[ACCEPT_SIDES] = {[ACCEPT_NETWORK] = ACCEPT_EIGHTHS_NETWORK,
                                                   [ACCEPT_MEMBER] = ACCEPT_EIGHTHS_MEMBER,
                                                   [ACCEPT_LOCAL] = ACCEPT_EIGHTHS_LOCAL};

    return (int)(files * eighths[side] / 8);
}

void accept_gate_know(const struct addr members[], size_t n)
{
    pthread_mutex_lock(&mutex);
    n_known = n < LIMIT_NODES ? n : LIMIT_NODES;
    memcpy(known, members, n_known * sizeof known[0]);
    pthread_mutex_unlock(&mutex);
}

static bool is_member(const struct addr *addr)
{
    bool is_found = false;

    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < n_known && !is_found; i++) {
        is_found = addr_compare(&known[i], addr) == 0;
    }
    pthread_mutex_unlock(&mutex);
    return is_found && !plant_is("accept-members-as-any");
}

struct accept_refused accept_gate_take_refused(enum accept_side side)
{
    pthread_mutex_lock(&mutex);
    struct accept_refused taken = refused[side];
    refused[side].n = 0;
    pthread_mutex_unlock(&mutex);
    return taken;
}

static enum accept_side side_of(int listener)
{
    int family = AF_INET;
    socklen_t n_bytes = sizeof family;

    getsockopt(listener, SOL_SOCKET, SO_DOMAIN, &family, &n_bytes);
    return family == AF_UNIX ? ACCEPT_LOCAL : ACCEPT_NETWORK;
}

static void note_refused(enum accept_side side, const struct endpoint *from)
{
    pthread_mutex_lock(&mutex);
    refused[side].n++;
    refused[side].last = *from;
    pthread_mutex_unlock(&mutex);
}

static uint64_t files_limit(void)
{
    struct rlimit files;

    return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : FILES_UNKNOWN;
}

static void turn_away(int fd, enum accept_side side, const struct endpoint *from)
{
    const struct linger reset = {.l_onoff = 1};

    /* By RST: the thousands that a flood brings shall not linger in TIME_WAIT. */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    note_refused(side, from);
}

/* errno of an accept that failed -> one that both listeners of libzmq live with. Linux reports
 * pending network errors of the new connection here as well. */
static int tolerable(int errnum, enum accept_side side)
{
    const struct timespec pause = {.tv_nsec = STARVED_PAUSE_NS};
    const struct endpoint nobody = {.port = 0};

    switch (errnum) {
    case EAGAIN:
    case EINTR:
    case EBADF: /* our mistake, as the next two: libzmq may say so */
    case EINVAL:
    case ENOTSOCK:
        return errnum;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
        /* The connection stays in the queue, and gets in when there is room again. */
        note_refused(side, &nobody);
        nanosleep(&pause, NULL);
        return ECONNABORTED;
    default:
        return ECONNABORTED;
    }
}

int accept4(int listener, __SOCKADDR_ARG addr, socklen_t *restrict n_bytes, int flags)
{
    int fd = (int)syscall(SYS_accept4, listener, addr.__sockaddr__, n_bytes, flags);

    if (plant_is("accept-all")) {
        return fd;
    }
    int errnum = errno;
    enum accept_side side = side_of(listener);
    if (fd < 0) {
        errno = tolerable(errnum, side);
        return -1;
    }
    if (fd < accept_gate_bar(side, files_limit())) {
        return fd;
    }
    const struct endpoint from = peername_of(fd);
    if (side == ACCEPT_NETWORK && is_member(&from.addr)) {
        side = ACCEPT_MEMBER;
        if (fd < accept_gate_bar(side, files_limit())) {
            return fd;
        }
    }
    turn_away(fd, side, &from);
    errno = ECONNABORTED;
    return -1;
}

int accept(int listener, __SOCKADDR_ARG addr, socklen_t *restrict n_bytes)
{
    return accept4(listener, addr, n_bytes, 0);
}
