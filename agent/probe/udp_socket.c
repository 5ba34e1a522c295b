#include "agent/probe/udp_socket.h"

#include <errno.h>
#include <time.h>

#include <linux/errqueue.h> /* wants struct timespec */
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/connect_socket.h"
#include "agent/probe/probe_errno.h"

static enum probe_reason prepare(int fd, const struct probe_target *target, int epoll_fd,
                                 uint64_t token)
{
    const struct endpoint *to = &target->definition.to;
    const int yes = 1;
    const bool is_ipv6 = to->addr.family == ADDR_IPV6;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = token};
    struct sockaddr_storage address;
    socklen_t n_bytes = connect_socket_address(&to->addr, to->port, &address);

    if (setsockopt(fd, is_ipv6 ? SOL_IPV6 : SOL_IP, is_ipv6 ? IPV6_RECVERR : IP_RECVERR, &yes,
                   sizeof yes) != 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    enum probe_reason reason = connect_socket_bind(fd, target);
    if (reason != REASON_NONE) {
        return reason;
    }
    if (connect(fd, (struct sockaddr *)&address, n_bytes) != 0) {
        return probe_reason_of_errno(PROBE_CALL_CONNECT, errno);
    }
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    return REASON_NONE;
}

enum probe_reason udp_socket_open(const struct probe_target *target, int epoll_fd, uint64_t token,
                                  int *ret_fd)
{
    const struct check_data *payload = &target->definition.check.udp.payload;
    int family = target->definition.to.addr.family == ADDR_IPV6 ? AF_INET6 : AF_INET;
    int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    enum probe_reason reason = prepare(fd, target, epoll_fd, token);
    /* Nothing has left before, so an error is this node's: a full buffer, or no route. */
    if (reason == REASON_NONE && send(fd, payload->bytes, payload->n_bytes, MSG_NOSIGNAL) < 0) {
        reason = probe_reason_of_errno(PROBE_CALL_RAW_SEND, errno);
    }
    if (reason != REASON_NONE) {
        close(fd);
        return reason;
    }
    *ret_fd = fd;
    return REASON_NONE;
}

/* --- what came --- */

static bool is_port_unreachable(const struct sock_extended_err *error)
{
    return (error->ee_origin == SO_EE_ORIGIN_ICMP && error->ee_type == ICMP_DEST_UNREACH &&
            error->ee_code == ICMP_PORT_UNREACH) ||
           (error->ee_origin == SO_EE_ORIGIN_ICMP6 && error->ee_type == ICMP6_DST_UNREACH &&
            error->ee_code == ICMP6_DST_UNREACH_NOPORT);
}

/* "Fragmentation needed" is about the way, and our datagrams are small. */
static bool is_unreachable(const struct sock_extended_err *error)
{
    return (error->ee_origin == SO_EE_ORIGIN_ICMP && error->ee_type == ICMP_DEST_UNREACH &&
            error->ee_code != ICMP_FRAG_NEEDED) ||
           (error->ee_origin == SO_EE_ORIGIN_ICMP6 && error->ee_type == ICMP6_DST_UNREACH);
}

/* This node's neighbour lookup ends in an ICMP error that it sends to itself. */
static bool is_own_address(int fd, const struct addr *addr)
{
    struct sockaddr_storage address;
    socklen_t n_bytes = sizeof address;
    struct addr own;

    if (getsockname(fd, (struct sockaddr *)&address, &n_bytes) != 0) {
        return false;
    }
    connect_socket_read_address(&address, &own);
    return addr_compare(&own, addr) == 0;
}

/* As the kernel gives it: who sent the message stands right behind (SO_EE_OFFENDER). */
struct told_error {
    struct sock_extended_err error;
    struct sockaddr_in6 sender; /* or a sockaddr_in */
};

static enum udp_heard judge_error(int fd, const struct addr *backend, const struct told_error *told)
{
    const struct sock_extended_err *error = &told->error;
    struct sockaddr_storage address = {0};
    struct addr sender;

    if (!is_unreachable(error)) {
        return UDP_HEARD_OTHER;
    }
    memcpy(&address, &told->sender, sizeof told->sender);
    connect_socket_read_address(&address, &sender);
    if (addr_compare(&sender, backend) == 0) {
        return is_port_unreachable(error) ? UDP_HEARD_REFUSED : UDP_HEARD_UNREACHABLE;
    }
    return !is_port_unreachable(error) && is_own_address(fd, &sender) ? UDP_HEARD_UNREACHABLE
                                                                      : UDP_HEARD_OTHER;
}

/* Room for the error and the address behind it, and for a timestamp that somebody may add. */
#define CONTROL_BYTES 256

static enum udp_heard hear_error(int fd, const struct addr *backend)
{
    _Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);

    if (n < 0) {
        return UDP_HEARD_NOTHING;
    }
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one != NULL;
         one = CMSG_NXTHDR(&message, one)) {
        struct told_error told = {0};

        if (!((one->cmsg_level == SOL_IP && one->cmsg_type == IP_RECVERR) ||
              (one->cmsg_level == SOL_IPV6 && one->cmsg_type == IPV6_RECVERR))) {
            continue;
        }
        size_t n_bytes = one->cmsg_len - CMSG_LEN(0);
        memcpy(&told, CMSG_DATA(one), n_bytes < sizeof told ? n_bytes : sizeof told);
        return judge_error(fd, backend, &told);
    }
    return UDP_HEARD_OTHER;
}

enum udp_heard udp_socket_hear(int fd, const struct addr *backend, uint8_t bytes[], size_t n_max,
                               size_t *ret_n_bytes)
{
    enum udp_heard heard = hear_error(fd, backend);

    if (heard != UDP_HEARD_NOTHING) {
        return heard;
    }
    ssize_t n = recv(fd, bytes, n_max, MSG_DONTWAIT);
    if (n >= 0) {
        *ret_n_bytes = (size_t)n;
        return UDP_HEARD_DATAGRAM;
    }
    /* Another error repeats the last ICMP message: its details were read, or come next. */
    return errno == EAGAIN ? UDP_HEARD_NOTHING : UDP_HEARD_OTHER;
}
