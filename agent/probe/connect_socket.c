#include "agent/probe/connect_socket.h"

#include <errno.h>
#include <linux/tcp.h> /* its struct tcp_info counts segments, that of libc does not */
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/probe_errno.h"
#include "common/base/clock.h"

/* The kernel repeats a SYN by itself and gives up after tcp_syn_retries (127 s by default, less if
 * an administrator says so). T may be 300 s, so more of them are asked for: 511 s. */
#define SYN_REPEATS 8

#define STATE_CLOSED 7 /* TCP_CLOSE of netinet/tcp.h, which cannot stand beside linux/tcp.h */

socklen_t connect_socket_address(const struct addr *addr, uint16_t port,
                                 struct sockaddr_storage *ret_address)
{
    memset(ret_address, 0, sizeof *ret_address);
    if (addr->family == ADDR_IPV4) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

        memcpy(&in.sin_addr, addr->bytes, sizeof in.sin_addr);
        memcpy(ret_address, &in, sizeof in);
        return sizeof in;
    }
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    memcpy(&in6.sin6_addr, addr->bytes, sizeof in6.sin6_addr);
    memcpy(ret_address, &in6, sizeof in6);
    return sizeof in6;
}

void connect_socket_read_address(const struct sockaddr_storage *address, struct addr *ret_addr)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    memset(ret_addr, 0, sizeof *ret_addr);
    if (address->ss_family == AF_INET6) {
        memcpy(&in6, address, sizeof in6);
        ret_addr->family = ADDR_IPV6;
        memcpy(ret_addr->bytes, &in6.sin6_addr, sizeof in6.sin6_addr);
    } else {
        memcpy(&in, address, sizeof in);
        ret_addr->family = ADDR_IPV4;
        memcpy(ret_addr->bytes, &in.sin_addr, sizeof in.sin_addr);
    }
}

bool connect_socket_source(int fd, struct endpoint *ret_source)
{
    struct sockaddr_storage address;
    socklen_t n_bytes = sizeof address;
    struct sockaddr_in in;

    if (getsockname(fd, (struct sockaddr *)&address, &n_bytes) != 0) {
        return false;
    }
    memcpy(&in, &address, sizeof in); /* the port stands at the same place in both families */
    connect_socket_read_address(&address, &ret_source->addr);
    ret_source->port = ntohs(in.sin_port);
    return true;
}

enum probe_reason connect_socket_bind(int fd, const struct probe_target *target)
{
    struct sockaddr_storage address;
    const int one = 1;

    if (target->source.family == ADDR_NONE) {
        return REASON_NONE;
    }
    if (target->source.family != target->definition.to.addr.family) {
        return REASON_LOCAL_SOURCE_MISSING;
    }
    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one) != 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    socklen_t n_bytes = connect_socket_address(&target->source, 0, &address);
    if (bind(fd, (struct sockaddr *)&address, n_bytes) != 0) {
        return probe_reason_of_errno(PROBE_CALL_BIND, errno);
    }
    return REASON_NONE;
}

bool connect_socket_saves_ack(const struct health_check *check)
{
    return check->type != CHECK_TYPE_TCP || check->tcp.send.n_bytes > 0;
}

/* The kernel forgets it with each connection. */
static void save_ack(int fd, const struct health_check *check)
{
    const int no = 0;

    if (connect_socket_saves_ack(check)) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &no, sizeof no);
    }
}

static enum probe_reason start_connect(int fd, const struct probe_target *target,
                                       uint64_t *ret_start_ns)
{
    struct sockaddr_storage address;
    socklen_t n_bytes =
        connect_socket_address(&target->definition.to.addr, target->definition.to.port, &address);

    save_ack(fd, target->definition.check);
    *ret_start_ns = clock_monotonic_ns();
    if (connect(fd, (struct sockaddr *)&address, n_bytes) != 0 && errno != EINPROGRESS &&
        errno != EINTR) {
        return probe_reason_of_errno(PROBE_CALL_CONNECT, errno);
    }
    return REASON_NONE;
}

/* After connect, so that an idle socket does not report a hang-up first; an edge that came in
 * between is reported by the next wait. (One that is kept reports it when it is disconnected, and
 * nobody is served.) */
static enum probe_reason watch(int fd, int epoll_fd)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
        .data.fd = fd,
    };

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    return REASON_NONE;
}

static enum probe_reason open_new(const struct probe_target *target, struct connect_pool *pool,
                                  uint64_t *ret_start_ns, int *ret_fd)
{
    const int n_repeats = SYN_REPEATS;
    uint8_t family = target->definition.to.addr.family;
    int fd = socket(family == ADDR_IPV6 ? AF_INET6 : AF_INET,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    enum probe_reason reason = connect_socket_bind(fd, target);
    if (reason == REASON_NONE &&
        setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &n_repeats, sizeof n_repeats) != 0) {
        reason = probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    if (reason == REASON_NONE && connect_pool_add(pool, fd, family, &target->source) != 0) {
        reason = REASON_LOCAL_NO_BUFFER;
    }
    if (reason == REASON_NONE) {
        reason = start_connect(fd, target, ret_start_ns);
    }
    if (reason == REASON_NONE) {
        reason = watch(fd, pool->epoll_fd);
    }
    if (reason != REASON_NONE) {
        connect_socket_reset(fd);
        return reason;
    }
    *ret_fd = fd;
    return REASON_NONE;
}

enum probe_reason connect_socket_open(const struct probe_target *target, struct connect_pool *pool,
                                      uint64_t *ret_start_ns, int *ret_fd)
{
    int fd = connect_pool_take(pool, target->definition.to.addr.family, &target->source);

    *ret_start_ns = clock_monotonic_ns();
    if (fd >= 0 && start_connect(fd, target, ret_start_ns) == REASON_NONE) {
        *ret_fd = fd;
        return REASON_NONE;
    }
    if (fd >= 0) {
        /* Its source may be gone: a new one tells the right reason. */
        connect_pool_reset(pool, fd, false);
    }
    return open_new(target, pool, ret_start_ns, ret_fd);
}

bool connect_socket_disconnect(int fd)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    return connect(fd, &nobody, sizeof nobody) == 0;
}

enum probe_reason connect_socket_error(int fd)
{
    int errnum = 0;
    socklen_t n_bytes = sizeof errnum;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &n_bytes) != 0) {
        errnum = errno;
    }
    return errnum == 0 ? REASON_NONE : probe_reason_of_errno(PROBE_CALL_CONNECTING, errnum);
}

bool connect_socket_is_refused(int fd)
{
    struct tcp_info info = {0};
    socklen_t n_bytes = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n_bytes) == 0 && info.tcpi_segs_in > 0;
}

bool connect_socket_is_closed(int fd)
{
    struct tcp_info info = {0};
    socklen_t n_bytes = sizeof info.tcpi_state;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n_bytes) == 0 &&
           info.tcpi_state == STATE_CLOSED;
}

void connect_socket_reset(int fd)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    /* Should it fail, the socket ends with FIN: unquiet, but closed. */
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

void connect_socket_finish(int fd)
{
    close(fd);
}
