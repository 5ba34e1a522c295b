#include "agent/probe/packet_socket.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/connect_socket.h"
#include "agent/probe/packet_filter.h"
#include "agent/probe/probe_errno.h"

#define RING_BYTES ((size_t)PACKET_FRAMES * PACKET_FRAME_BYTES)
#define BLOCK_BYTES ((unsigned)64 * 1024) /* whole pages of any size in use */

static int set_filter(int fd, const uint16_t ports[], size_t n_ports)
{
    struct sock_filter program[PACKET_FILTER_MAX];
    struct sock_fprog all = {.filter = program};

    all.len = (unsigned short)packet_filter_build(ports, n_ports, program);
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof all);
}

static int map_ring(struct packet_socket *sock)
{
    const int version = TPACKET_V2;
    const struct tpacket_req ring = {.tp_block_size = BLOCK_BYTES,
                                     .tp_block_nr = RING_BYTES / BLOCK_BYTES,
                                     .tp_frame_size = PACKET_FRAME_BYTES,
                                     .tp_frame_nr = PACKET_FRAMES};
    int fd = sock->receive_fd;

    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0) {
        return -1;
    }
    void *mapped = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sock->ring = mapped == MAP_FAILED ? NULL : mapped;
    return mapped == MAP_FAILED ? -1 : 0;
}

/* Protocol 0 receives nothing: not until the filter is there is the socket bound to all. Packets
 * that leave are not looked at; on loopback each comes in, too. */
static int open_receiver(struct packet_socket *sock, const uint16_t ports[], size_t n_ports)
{
    const struct sockaddr_ll everywhere = {.sll_family = AF_PACKET,
                                           .sll_protocol = htons(ETH_P_ALL)};
    const int yes = 1;

    sock->receive_fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock->receive_fd < 0 || set_filter(sock->receive_fd, ports, n_ports) != 0 ||
        setsockopt(sock->receive_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes) != 0 ||
        map_ring(sock) != 0) {
        return -1;
    }
    return bind(sock->receive_fd, (const struct sockaddr *)&everywhere, sizeof everywhere);
}

/* IPPROTO_RAW: the packet brings its own header (raw(7)); over IPv6, too, since Linux 4.5. */
static int open_senders(struct packet_socket *sock)
{
    const int type = SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC;

    sock->send_ipv4_fd = socket(AF_INET, type, IPPROTO_RAW);
    if (sock->send_ipv4_fd < 0) {
        return -1;
    }
    sock->send_ipv6_fd = socket(AF_INET6, type, IPPROTO_RAW);
    return sock->send_ipv6_fd < 0 && errno != EAFNOSUPPORT ? -1 : 0;
}

int packet_socket_open(struct packet_socket *sock, const uint16_t ports[], size_t n_ports,
                       struct errmsg *err)
{
    *sock = (struct packet_socket){.receive_fd = -1, .send_ipv4_fd = -1, .send_ipv6_fd = -1};
    if (open_receiver(sock, ports, n_ports) == 0 && open_senders(sock) == 0) {
        return 0;
    }
    int errnum = errno;
    packet_socket_close(sock);
    if (errnum == EPERM || errnum == EACCES) {
        return errmsg_set(err, ERR_DENIED, "the agent lacks CAP_NET_RAW");
    }
    return errmsg_set(err, err_from_errno(errnum), "probe engine \"packet\": raw sockets: %s",
                      strerror(errnum));
}

void packet_socket_close(struct packet_socket *sock)
{
    int *const fds[] = {&sock->receive_fd, &sock->send_ipv4_fd, &sock->send_ipv6_fd};

    if (sock->ring != NULL) {
        munmap(sock->ring, RING_BYTES);
        sock->ring = NULL;
    }
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
        }
        *fds[i] = -1;
    }
}

/* Before the frame is given back: it is read in place. The kernel writes it, and nobody else may.
 */
static struct packet_seen read_frame(const uint8_t *frame, const struct tpacket2_hdr *head,
                                     uint32_t status)
{
    bool is_sum_checked = (status & (TP_STATUS_CSUMNOTREADY | TP_STATUS_CSUM_VALID)) != 0;
    size_t at = head->tp_net;
    size_t n_bytes = head->tp_snaplen;

    if (at > PACKET_FRAME_BYTES || n_bytes > PACKET_FRAME_BYTES - at) {
        return (struct packet_seen){.kind = PACKET_NONE};
    }
    return packet_read(frame + at, n_bytes, is_sum_checked);
}

bool packet_socket_next(struct packet_socket *sock, struct packet_seen *ret_seen)
{
    uint8_t *frame = sock->ring + (size_t)sock->next_frame * PACKET_FRAME_BYTES;
    struct tpacket2_hdr *head = (struct tpacket2_hdr *)(void *)frame;
    _Atomic uint32_t *owner = (_Atomic uint32_t *)(void *)&head->tp_status;
    uint32_t status = atomic_load_explicit(owner, memory_order_acquire);

    if ((status & TP_STATUS_USER) == 0) {
        return false;
    }
    *ret_seen = read_frame(frame, head, status);
    atomic_store_explicit(owner, TP_STATUS_KERNEL, memory_order_release);
    sock->next_frame = (sock->next_frame + 1) % PACKET_FRAMES;
    return true;
}

/* The source goes along beside the packet: rules that route by it must see it. */
static void put_source(const struct packet_tcp *tcp, struct msghdr *message)
{
    struct cmsghdr *control = CMSG_FIRSTHDR(message);

    if (tcp->from.addr.family == ADDR_IPV6) {
        struct in6_pktinfo info = {.ipi6_ifindex = 0};

        memcpy(&info.ipi6_addr, tcp->from.addr.bytes, sizeof info.ipi6_addr);
        *control = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof info),
                                    .cmsg_level = IPPROTO_IPV6,
                                    .cmsg_type = IPV6_PKTINFO};
        memcpy(CMSG_DATA(control), &info, sizeof info);
    } else {
        struct in_pktinfo info = {.ipi_ifindex = 0};

        memcpy(&info.ipi_spec_dst, tcp->from.addr.bytes, sizeof info.ipi_spec_dst);
        *control = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO};
        memcpy(CMSG_DATA(control), &info, sizeof info);
    }
    message->msg_controllen = CMSG_SPACE(control->cmsg_len - CMSG_LEN(0));
}

enum probe_reason packet_socket_send(const struct packet_socket *sock, const struct packet_tcp *tcp)
{
    uint8_t bytes[PACKET_TCP_BYTES_MAX];
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = {0};
    struct sockaddr_storage to;
    struct iovec part = {.iov_base = bytes, .iov_len = packet_build_tcp(tcp, bytes)};
    struct msghdr message = {.msg_name = &to,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    int fd = tcp->to.addr.family == ADDR_IPV6 ? sock->send_ipv6_fd : sock->send_ipv4_fd;

    if (fd < 0) {
        return REASON_LOCAL_UNSUPPORTED;
    }
    /* Port 0: a raw socket would take it for a protocol. */
    message.msg_namelen = connect_socket_address(&tcp->to.addr, 0, &to);
    put_source(tcp, &message);
    ssize_t n = sendmsg(fd, &message, 0);
    return n < 0 ? probe_reason_of_errno(PROBE_CALL_RAW_SEND, errno) : REASON_NONE;
}

uint64_t packet_socket_take_dropped(struct packet_socket *sock)
{
    struct tpacket_stats stats = {0};
    socklen_t n_bytes = sizeof stats;

    /* Reading it sets it back to 0. */
    if (getsockopt(sock->receive_fd, SOL_PACKET, PACKET_STATISTICS, &stats, &n_bytes) != 0) {
        return 0;
    }
    return stats.tp_drops;
}
