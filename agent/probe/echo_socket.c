#include "agent/probe/echo_socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/connect_socket.h"
#include "agent/probe/probe_errno.h"

/* A reply takes less than 1 KiB of it: room for some of all probes in flight. */
#define RECEIVE_BYTES (1024 * 1024)

/* Echo replies to `id`. A raw IPv4 socket sees the IP header, one of IPv6 does not. */
static int set_filter(int fd, bool is_ipv6, uint16_t id)
{
    struct sock_filter ipv4[] = {
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), /* X = length of the header */
        BPF_STMT(BPF_LD | BPF_B | BPF_IND, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP_ECHOREPLY, 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, id, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT16_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_filter ipv6[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP6_ECHO_REPLY, 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, id, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT16_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {
        .len =
            (unsigned short)(is_ipv6 ? sizeof ipv6 / sizeof ipv6[0] : sizeof ipv4 / sizeof ipv4[0]),
        .filter = is_ipv6 ? ipv6 : ipv4,
    };

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static int open_one(bool is_ipv6, uint16_t id)
{
    const int n_bytes = RECEIVE_BYTES;
    int fd = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    is_ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);

    if (fd < 0) {
        return -1;
    }
    if (set_filter(fd, is_ipv6, id) != 0) {
        int errnum = errno;

        close(fd);
        errno = errnum;
        return -1;
    }
    /* Less room is not much harm: what finds none is counted, and proves nothing. */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n_bytes, sizeof n_bytes);
    return fd;
}

int echo_socket_open(struct echo_socket *sock, uint16_t id, struct errmsg *err)
{
    *sock = (struct echo_socket){.ipv4_fd = open_one(false, id), .ipv6_fd = -1, .id = id};
    if (sock->ipv4_fd >= 0) {
        sock->ipv6_fd = open_one(true, id);
        if (sock->ipv6_fd >= 0 || errno == EAFNOSUPPORT) {
            return 0;
        }
    }
    int errnum = errno;
    echo_socket_close(sock);
    if (errnum == EPERM || errnum == EACCES) {
        return errmsg_set(err, ERR_DENIED, "the agent lacks CAP_NET_RAW");
    }
    return errmsg_set(err, err_from_errno(errnum), "probe engine \"udp\": raw sockets for echo: %s",
                      strerror(errnum));
}

void echo_socket_close(struct echo_socket *sock)
{
    if (sock->ipv4_fd >= 0) {
        close(sock->ipv4_fd);
    }
    if (sock->ipv6_fd >= 0) {
        close(sock->ipv6_fd);
    }
    sock->ipv4_fd = -1;
    sock->ipv6_fd = -1;
}

static void put_source(const struct addr *source, struct msghdr *message)
{
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    struct in6_pktinfo in6 = {.ipi6_ifindex = 0};
    struct in_pktinfo in = {.ipi_ifindex = 0};

    if (source->family == ADDR_IPV6) {
        memcpy(&in6.ipi6_addr, source->bytes, sizeof in6.ipi6_addr);
        *control = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof in6),
                                    .cmsg_level = IPPROTO_IPV6,
                                    .cmsg_type = IPV6_PKTINFO};
        memcpy(CMSG_DATA(control), &in6, sizeof in6);
        message->msg_controllen = CMSG_SPACE(sizeof in6);
    } else {
        memcpy(&in.ipi_spec_dst, source->bytes, sizeof in.ipi_spec_dst);
        *control = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof in), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO};
        memcpy(CMSG_DATA(control), &in, sizeof in);
        message->msg_controllen = CMSG_SPACE(sizeof in);
    }
}

enum probe_reason echo_socket_send(const struct echo_socket *sock,
                                   const struct probe_target *target, const struct icmp_echo *echo)
{
    const struct addr *backend = &target->definition.to.addr;
    uint8_t bytes[ICMP_ECHO_BYTES];
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = {0};
    struct sockaddr_storage to;
    struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr message = {.msg_name = &to,
                             .msg_namelen = connect_socket_address(backend, 0, &to),
                             .msg_iov = &part,
                             .msg_iovlen = 1};
    int fd = backend->family == ADDR_IPV6 ? sock->ipv6_fd : sock->ipv4_fd;

    if (fd < 0) {
        return REASON_LOCAL_UNSUPPORTED;
    }
    icmp_echo_build(echo, (enum addr_family)backend->family, bytes);
    if (target->source.family != ADDR_NONE) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        put_source(&target->source, &message);
    }
    return sendmsg(fd, &message, MSG_DONTWAIT) < 0
               ? probe_reason_of_errno(PROBE_CALL_RAW_SEND, errno)
               : REASON_NONE;
}

/* What is no reply of ours is passed over, so many at most. */
#define STRANGERS_MAX 64

static bool next_of(int fd, enum addr_family family, struct icmp_echo *ret_echo,
                    struct addr *ret_from)
{
    uint8_t bytes[128];

    for (unsigned i = 0; i < STRANGERS_MAX; i++) {
        struct sockaddr_storage from = {0};
        socklen_t n_from = sizeof from;
        ssize_t n =
            recvfrom(fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&from, &n_from);

        if (n < 0) {
            return false;
        }
        if (icmp_echo_read(family, bytes, (size_t)n, ret_echo)) {
            connect_socket_read_address(&from, ret_from);
            return true;
        }
    }
    return false;
}

bool echo_socket_next(const struct echo_socket *sock, struct icmp_echo *ret_echo,
                      struct addr *ret_from)
{
    return (sock->ipv4_fd >= 0 && next_of(sock->ipv4_fd, ADDR_IPV4, ret_echo, ret_from)) ||
           (sock->ipv6_fd >= 0 && next_of(sock->ipv6_fd, ADDR_IPV6, ret_echo, ret_from));
}

static uint64_t dropped_of(int fd)
{
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t n_bytes = sizeof info;

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &n_bytes) == 0
               ? info[SK_MEMINFO_DROPS]
               : 0;
}

uint64_t echo_socket_dropped(const struct echo_socket *sock)
{
    return dropped_of(sock->ipv4_fd) + dropped_of(sock->ipv6_fd);
}
