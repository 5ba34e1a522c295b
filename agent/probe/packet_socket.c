#include "agent/probe/packet_socket.h"

#include <assert.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/probe/packet_filter.h"
#include "agent/probe/probe_errno.h"
#include "common/base/units.h"

#define RING_BYTES ((size_t)PACKET_FRAMES * PACKET_FRAME_BYTES)
#define BLOCK_BYTES ((unsigned)64 * 1024) /* whole pages of any size in use */

/* What a socket receives. */
struct wanted {
    struct sock_filter program[PACKET_FILTER_MAX];
    size_t n_instructions;
};

static int set_filter(int fd, struct wanted *wanted)
{
    const struct sock_fprog all = {.filter = wanted->program,
                                   .len = (unsigned short)wanted->n_instructions};

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
static int open_receiver(struct packet_socket *sock, struct wanted *wanted)
{
    const struct sockaddr_ll everywhere = {.sll_family = AF_PACKET,
                                           .sll_protocol = htons(ETH_P_ALL)};
    const int is_ignored = 1;

    sock->receive_fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock->receive_fd < 0 || set_filter(sock->receive_fd, wanted) != 0 ||
        setsockopt(sock->receive_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &is_ignored,
                   sizeof is_ignored) != 0 ||
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

static int refused(int errnum, struct errmsg *err)
{
    if (errnum == EPERM || errnum == EACCES) {
        return errmsg_set(err, ERR_DENIED, "the agent lacks CAP_NET_RAW");
    }
    return errmsg_set(err, err_from_errno(errnum), "probe engine \"packet\": raw sockets: %s",
                      strerror(errnum));
}

static int open_all(struct packet_socket *sock, struct wanted *wanted, struct errmsg *err)
{
    *sock = PACKET_SOCKET_CLOSED;
    if (open_receiver(sock, wanted) == 0 && open_senders(sock) == 0) {
        return 0;
    }
    int errnum = errno;
    packet_socket_close(sock);
    return refused(errnum, err);
}

int packet_socket_open(struct packet_socket *sock, const uint16_t ports[], size_t n_ports,
                       struct errmsg *err)
{
    struct wanted wanted;

    wanted.n_instructions = packet_filter_build(ports, n_ports, wanted.program);
    return open_all(sock, &wanted, err);
}

/* Of protocol 0: it receives nothing. Without PACKET_QDISC_BYPASS, so that traffic control sees its
 * frames: past it they cost the same within 2 % (saturated, over veth). */
int packet_socket_open_link(struct packet_socket *sock, struct errmsg *err)
{
    sock->send_link_fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return sock->send_link_fd < 0 ? refused(errno, err) : 0;
}

int packet_socket_open_tap(struct packet_socket *sock, struct errmsg *err)
{
    struct wanted wanted;

    wanted.n_instructions = packet_filter_build_syns(wanted.program);
    return open_all(sock, &wanted, err);
}

void packet_socket_see_outgoing(const struct packet_socket *sock, bool is_on)
{
    const int is_ignored = is_on ? 0 : 1;

    (void)setsockopt(sock->receive_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &is_ignored,
                     sizeof is_ignored);
}

void packet_socket_close(struct packet_socket *sock)
{
    int *const fds[] = {&sock->receive_fd, &sock->send_ipv4_fd, &sock->send_ipv6_fd,
                        &sock->send_link_fd};

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

void packet_socket_look(struct packet_socket *sock, uint64_t now_ns)
{
    struct timespec now;

    sock->before_ns = sock->begun_ns;
    sock->begun_ns = now_ns;
    clock_gettime(CLOCK_REALTIME, &now);
    sock->realtime_ns = (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t came_ns(const struct packet_socket *sock, const struct tpacket2_hdr *head)
{
    uint64_t stamp_ns = (uint64_t)head->tp_sec * NS_PER_SECOND + head->tp_nsec;
    uint64_t ago_ns = stamp_ns < sock->realtime_ns ? sock->realtime_ns - stamp_ns : 0;

    return ago_ns < sock->begun_ns - sock->before_ns ? sock->begun_ns - ago_ns : sock->before_ns;
}

bool packet_socket_next(struct packet_socket *sock, struct packet_seen *ret_seen,
                        uint64_t *ret_came_ns)
{
    uint8_t *frame = sock->ring + (size_t)sock->next_frame * PACKET_FRAME_BYTES;
    struct tpacket2_hdr *head = (struct tpacket2_hdr *)(void *)frame;
    _Atomic uint32_t *owner = (_Atomic uint32_t *)(void *)&head->tp_status;
    uint32_t status = atomic_load_explicit(owner, memory_order_acquire);

    if ((status & TP_STATUS_USER) == 0) {
        return false;
    }
    *ret_seen = read_frame(frame, head, status);
    *ret_came_ns = came_ns(sock, head);
    atomic_store_explicit(owner, TP_STATUS_KERNEL, memory_order_release);
    sock->next_frame = (sock->next_frame + 1) % PACKET_FRAMES;
    return true;
}

/* The source goes along beside the packet: rules that route by it must see it. Returns how long the
 * control data is. */
static size_t put_source(const struct packet_tcp *tcp, void *data)
{
    struct cmsghdr *control = data;

    if (tcp->from.addr.family == ADDR_IPV6) {
        struct in6_pktinfo info = {.ipi6_ifindex = 0};

        memcpy(&info.ipi6_addr, tcp->from.addr.bytes, sizeof info.ipi6_addr);
        *control = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof info),
                                    .cmsg_level = IPPROTO_IPV6,
                                    .cmsg_type = IPV6_PKTINFO};
        memcpy(CMSG_DATA(control), &info, sizeof info);
        return CMSG_SPACE(sizeof info);
    }
    struct in_pktinfo info = {.ipi_ifindex = 0};

    memcpy(&info.ipi_spec_dst, tcp->from.addr.bytes, sizeof info.ipi_spec_dst);
    *control = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO};
    memcpy(CMSG_DATA(control), &info, sizeof info);
    return CMSG_SPACE(sizeof info);
}

/* Port 0: a raw socket would take it for a protocol. */
static socklen_t put_address(const struct addr *addr, struct packet_message *message)
{
    if (addr->family == ADDR_IPV6) {
        message->to.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
        memcpy(&message->to.in6.sin6_addr, addr->bytes, sizeof message->to.in6.sin6_addr);
        return sizeof message->to.in6;
    }
    message->to.in = (struct sockaddr_in){.sin_family = AF_INET};
    memcpy(&message->to.in.sin_addr, addr->bytes, sizeof message->to.in.sin_addr);
    return sizeof message->to.in;
}

static void put_packet(const struct packet_tcp *tcp, struct packet_message *message)
{
    message->tcp = *tcp;
    message->part = (struct iovec){.iov_base = message->bytes,
                                   .iov_len = packet_build_tcp(tcp, message->bytes)};
}

static struct msghdr make_message(const struct packet_tcp *tcp, struct packet_message *message)
{
    put_packet(tcp, message);
    return (struct msghdr){.msg_name = &message->to,
                           .msg_namelen = put_address(&tcp->to.addr, message),
                           .msg_iov = &message->part,
                           .msg_iovlen = 1,
                           .msg_control = message->control,
                           .msg_controllen = put_source(tcp, message->control)};
}

/* The link puts the header before it, with its own address. */
static struct msghdr make_frame(const struct packet_tcp *tcp, const struct link_hop *hop,
                                struct packet_message *message)
{
    bool is_ipv6 = tcp->to.addr.family == ADDR_IPV6;

    put_packet(tcp, message);
    message->to.link = (struct sockaddr_ll){.sll_family = AF_PACKET,
                                            .sll_protocol = htons(is_ipv6 ? ETH_P_IPV6 : ETH_P_IP),
                                            .sll_ifindex = hop->ifindex,
                                            .sll_halen = sizeof hop->mac};
    memcpy(message->to.link.sll_addr, hop->mac, sizeof hop->mac);
    return (struct msghdr){.msg_name = &message->to,
                           .msg_namelen = sizeof message->to.link,
                           .msg_iov = &message->part,
                           .msg_iovlen = 1};
}

static int sender_of(const struct packet_socket *sock, enum packet_out out)
{
    return out == PACKET_OUT_LINK   ? sock->send_link_fd
           : out == PACKET_OUT_IPV6 ? sock->send_ipv6_fd
                                    : sock->send_ipv4_fd;
}

enum probe_reason packet_socket_send(const struct packet_socket *sock, const struct packet_tcp *tcp)
{
    struct packet_message message;
    struct msghdr head = make_message(tcp, &message);
    int fd = sender_of(sock, tcp->to.addr.family == ADDR_IPV6 ? PACKET_OUT_IPV6 : PACKET_OUT_IPV4);

    if (fd < 0) {
        return REASON_LOCAL_UNSUPPORTED;
    }
    ssize_t n = sendmsg(fd, &head, 0);
    return n < 0 ? probe_reason_of_errno(PROBE_CALL_RAW_SEND, errno) : REASON_NONE;
}

void packet_batch_add(struct packet_batch *batch, const struct packet_tcp *tcp)
{
    assert(batch->n < PACKET_BATCH);
    batch->heads[batch->n].msg_hdr = make_message(tcp, &batch->messages[batch->n]);
    batch->n++;
}

void packet_batch_add_link(struct packet_batch *batch, const struct packet_tcp *tcp,
                           const struct link_hop *hop)
{
    assert(batch->n < PACKET_BATCH);
    batch->heads[batch->n].msg_hdr = make_frame(tcp, hop, &batch->messages[batch->n]);
    batch->n++;
}

/* sendmmsg ends at the first packet that cannot be sent, and tells why when it is the first of a
 * call: those behind it have another one. */
void packet_batch_send(struct packet_batch *batch, const struct packet_socket *sock,
                       enum packet_out out, enum probe_reason ret_reasons[PACKET_BATCH])
{
    int fd = sender_of(sock, out);
    unsigned at = 0;

    while (at < batch->n) {
        int n = fd < 0 ? 0 : sendmmsg(fd, batch->heads + at, batch->n - at, 0);

        if (n > 0) {
            for (unsigned end = at + (unsigned)n; at < end; at++) {
                ret_reasons[at] = REASON_NONE;
            }
        } else {
            ret_reasons[at++] = fd < 0 ? REASON_LOCAL_UNSUPPORTED
                                       : probe_reason_of_errno(PROBE_CALL_RAW_SEND, errno);
        }
    }
    batch->n = 0;
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
