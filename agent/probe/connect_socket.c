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
 * an administrator says so). T may be 300 s, so probes that last longer than the first repeats ask
 * for more of them: 511 s. */
#define SYN_REPEATS 8
#define SYN_REPEATS_FROM_MS 3000

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

static enum probe_reason start_connect(int fd, const struct probe_target *target,
                                       uint64_t *ret_start_ns)
{
    struct sockaddr_storage address;
    const int n_repeats = SYN_REPEATS;
    socklen_t n_bytes =
        connect_socket_address(&target->definition.to.addr, target->definition.to.port, &address);

    if (target->definition.check.timeout_ms >= SYN_REPEATS_FROM_MS &&
        setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &n_repeats, sizeof n_repeats) != 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    *ret_start_ns = clock_monotonic_ns();
    if (connect(fd, (struct sockaddr *)&address, n_bytes) != 0 && errno != EINPROGRESS &&
        errno != EINTR) {
        return probe_reason_of_errno(PROBE_CALL_CONNECT, errno);
    }
    return REASON_NONE;
}

/* After connect, so that an idle socket does not report a hang-up first; an edge that came in
 * between is reported by the next wait. */
static enum probe_reason watch(int fd, int epoll_fd, uint64_t token)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
        .data.u64 = token,
    };

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    return REASON_NONE;
}

enum probe_reason connect_socket_open(const struct probe_target *target, int epoll_fd,
                                      uint64_t token, uint64_t *ret_start_ns, int *ret_fd)
{
    int family = target->definition.to.addr.family == ADDR_IPV6 ? AF_INET6 : AF_INET;

    *ret_start_ns = clock_monotonic_ns();
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    enum probe_reason reason = connect_socket_bind(fd, target);
    if (reason == REASON_NONE) {
        reason = start_connect(fd, target, ret_start_ns);
    }
    if (reason == REASON_NONE) {
        reason = watch(fd, epoll_fd, token);
    }
    if (reason != REASON_NONE) {
        connect_socket_reset(fd);
        return reason;
    }
    *ret_fd = fd;
    return REASON_NONE;
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
