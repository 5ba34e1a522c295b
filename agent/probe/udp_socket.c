#include "agent/probe/udp_socket.h"

#include <errno.h>
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
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = token};
    struct sockaddr_storage address;
    socklen_t n_bytes = connect_socket_address(&to->addr, to->port, &address);

    if (icmp_told_ask(fd, to->addr.family) != 0) {
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
    const struct check_data *payload = &target->definition.check->udp.payload;
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

static bool is_port_unreachable(const struct icmp_told *told)
{
    return told->sender.family == ADDR_IPV6
               ? told->type == ICMP6_DST_UNREACH && told->code == ICMP6_DST_UNREACH_NOPORT
               : told->type == ICMP_DEST_UNREACH && told->code == ICMP_PORT_UNREACH;
}

/* "Fragmentation needed" is about the way, and our datagrams are small. */
static bool is_unreachable(const struct icmp_told *told)
{
    return told->sender.family == ADDR_IPV6
               ? told->type == ICMP6_DST_UNREACH
               : told->sender.family == ADDR_IPV4 && told->type == ICMP_DEST_UNREACH &&
                     told->code != ICMP_FRAG_NEEDED;
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

static enum udp_heard judge_error(int fd, const struct addr *backend, const struct icmp_told *told)
{
    if (!is_unreachable(told)) {
        return UDP_HEARD_OTHER;
    }
    if (addr_compare(&told->sender, backend) == 0) {
        return is_port_unreachable(told) ? UDP_HEARD_REFUSED : UDP_HEARD_UNREACHABLE;
    }
    return !is_port_unreachable(told) && is_own_address(fd, &told->sender) ? UDP_HEARD_UNREACHABLE
                                                                           : UDP_HEARD_OTHER;
}

enum udp_heard udp_socket_hear(int fd, const struct addr *backend, struct udp_news *ret_news)
{
    ret_news->told = (struct icmp_told){.sender.family = ADDR_NONE};
    switch (icmp_told_next(fd, &ret_news->told)) {
    case ICMP_READ_ERROR:
        return judge_error(fd, backend, &ret_news->told);
    case ICMP_READ_OTHER:
        return UDP_HEARD_OTHER;
    case ICMP_READ_NOTHING:
        break;
    }
    ssize_t n = recv(fd, ret_news->bytes, sizeof ret_news->bytes, MSG_DONTWAIT);
    if (n >= 0) {
        ret_news->n_bytes = (size_t)n;
        return UDP_HEARD_DATAGRAM;
    }
    /* Another error repeats the last ICMP message: its details were read, or come next. */
    return errno == EAGAIN ? UDP_HEARD_NOTHING : UDP_HEARD_OTHER;
}
