/* The XDP program of the packet engine: takes the SYN-ACKs that answer its SYNs out of the driver's
 * hands, notes them for the agent, and sends the RST that the kernel would send
 * (RFC 9293 3.10.7.1: sequence number = what was acknowledged).
 *
 * All else goes on to the kernel unseen: RSTs, ICMP errors, fragments, IPv4 options, IPv6 extension
 * headers, segments with data, what is for other ports or addresses than the engine's, and what has
 * a wrong checksum or none yet (a virtual link leaves it to others). The engine's ring sees those.
 * So does a SYN-ACK for whose note there is no room. */
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "agent/probe/xdp_note.h"

#define ETHER 14
#define ETHER_MIN 60 /* without the checksum: shorter frames are none on a real wire */
#define IPV4 20
#define IPV6 40
#define TCP 20
#define TCP_WORDS_MAX 30
#define PROTOCOL_TCP 6
#define FLAGS 0x17 /* FIN, SYN, RST, ACK */
#define SYN_ACK 0x12
#define RST 0x04
#define HOP_LIMIT 64

struct ipv4 {
    __u8 version, service;
    __be16 n_bytes, id, fragment;
    __u8 hop_limit, protocol;
    __sum16 sum;
    __be32 from, to;
};

struct ipv6 {
    __be32 version;
    __be16 n_bytes;
    __u8 protocol, hop_limit;
    struct xdp_address from, to;
};

struct tcp {
    __be16 from, to;
    __be32 seq, ack;
    __u8 offset, flags;
    __be16 window;
    __sum16 sum;
    __be16 urgent;
};

const volatile struct xdp_ports ports;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, XDP_ADDRESSES);
    __type(key, struct xdp_address);
    __type(value, __u32);
} addresses SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, XDP_NOTES_BYTES);
} notes SEC(".maps");

/* A sum of 16-bit words is the same in either order of bytes, but for the order of its own. */
static __always_inline __u32 fold(__u32 sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

static __always_inline __u32 sum_address(const struct xdp_address *address)
{
    __u32 sum = 0;

    for (int i = 0; i < 4; i++) {
        sum += (address->words[i] & 0xffff) + (address->words[i] >> 16);
    }
    return sum;
}

static __always_inline int is_ours(__be16 port)
{
    for (int i = 0; i < XDP_PORTS; i++) {
        if (ports.ports[i] == port) {
            return 1;
        }
    }
    return 0;
}

static __always_inline struct xdp_address mapped(__be32 address)
{
    return (struct xdp_address){.words = {0, 0, bpf_htonl(0xffff), address}};
}

/* Of the pseudo header, both ends and the segment. The 0xffff of mapped addresses are zeros to it.
 */
static __always_inline int is_sum_right(const struct xdp_note *note, const struct tcp *tcp,
                                        __u32 n_bytes, const void *end)
{
    __u32 sum = bpf_htons(PROTOCOL_TCP) + bpf_htons(n_bytes) + sum_address(&note->from) +
                sum_address(&note->to);
    const __u16 *word = (const void *)tcp;

    for (__u32 i = 0; i < TCP_WORDS_MAX && i * 2 < n_bytes; i++, word++) {
        /* The verifier has to see this very comparison, and the compiler would move it. */
        asm volatile("" : "+r"(word));
        if ((const void *)(word + 1) > end) {
            return 0;
        }
        sum += *word;
    }
    return fold(sum) == 0xffff;
}

/* What of a TCP header decides. n_bytes: of the whole segment, as IP says. */
static __always_inline int is_answer(const struct xdp_note *note, const struct tcp *tcp,
                                     __u32 n_bytes, const void *end)
{
    return (tcp->flags & FLAGS) == SYN_ACK && (__u32)(tcp->offset >> 4) * 4 == n_bytes &&
           n_bytes >= TCP && is_ours(tcp->to) && bpf_map_lookup_elem(&addresses, &note->to) != 0 &&
           is_sum_right(note, tcp, n_bytes, end);
}

static __always_inline int tell(const struct xdp_note *note)
{
    struct xdp_note *room = bpf_ringbuf_reserve(&notes, sizeof *room, 0);

    if (room == 0) {
        return 0;
    }
    *room = *note;
    bpf_ringbuf_submit(room, BPF_RB_NO_WAKEUP); /* the agent looks once a slot */
    return 1;
}

static __always_inline void turn_round(void *data)
{
    __u16 *words = data;

    for (int i = 0; i < 3; i++) {
        __u16 word = words[i];
        words[i] = words[i + 3];
        words[i + 3] = word;
    }
}

static __always_inline void make_rst(struct tcp *tcp, const struct xdp_note *note)
{
    *tcp = (struct tcp){.from = note->to_port,
                        .to = note->from_port,
                        .seq = note->ack,
                        .offset = TCP / 4 << 4,
                        .flags = RST};
    __u32 sum = bpf_htons(PROTOCOL_TCP) + bpf_htons(TCP) + sum_address(&note->from) +
                sum_address(&note->to);
    const __u16 *words = (const void *)tcp;
    for (int i = 0; i < TCP / 2; i++) {
        sum += words[i];
    }
    tcp->sum = ~fold(sum);
}

/* Both ends of the frame are known to be there; what is cut off is the options. */
static __always_inline int send_back(struct xdp_md *context, const struct xdp_note *note)
{
    __u32 n_bytes = ETHER + (note->is_ipv6 ? IPV6 : IPV4) + TCP;
    __u32 n_now = context->data_end - context->data;

    if (n_bytes < ETHER_MIN && n_now >= ETHER_MIN) {
        n_bytes = ETHER_MIN;
    }
    if (n_now > n_bytes && bpf_xdp_adjust_tail(context, (int)(n_bytes - n_now)) != 0) {
        return XDP_PASS;
    }
    void *data = (void *)(long)context->data;
    void *end = (void *)(long)context->data_end;
    if (data + ETHER + IPV4 + TCP > end) {
        return XDP_DROP;
    }
    turn_round(data);
    if (note->is_ipv6) {
        struct ipv6 *ip = data + ETHER;

        if (data + ETHER + IPV6 + TCP > end) {
            return XDP_DROP;
        }
        *ip = (struct ipv6){.version = bpf_htonl(0x60000000),
                            .n_bytes = bpf_htons(TCP),
                            .protocol = PROTOCOL_TCP,
                            .hop_limit = HOP_LIMIT,
                            .from = note->to,
                            .to = note->from};
        make_rst(data + ETHER + IPV6, note);
        return XDP_TX;
    }
    struct ipv4 *ip = data + ETHER;
    *ip = (struct ipv4){.version = 0x45,
                        .n_bytes = bpf_htons(IPV4 + TCP),
                        .fragment = bpf_htons(0x4000),
                        .hop_limit = HOP_LIMIT,
                        .protocol = PROTOCOL_TCP,
                        .from = note->to.words[3],
                        .to = note->from.words[3]};
    __u32 sum = 0;
    for (int i = 0; i < IPV4 / 2; i++) {
        sum += ((const __u16 *)ip)[i];
    }
    ip->sum = ~fold(sum);
    make_rst(data + ETHER + IPV4, note);
    return XDP_TX;
}

static __always_inline int take(struct xdp_md *context, struct xdp_note *note,
                                const struct tcp *tcp, __u32 n_bytes)
{
    note->from_port = tcp->from;
    note->to_port = tcp->to;
    note->ack = tcp->ack;
    if (!is_answer(note, tcp, n_bytes, (void *)(long)context->data_end)) {
        return XDP_PASS;
    }
    note->came_ns = bpf_ktime_get_ns();
    return tell(note) ? send_back(context, note) : XDP_PASS;
}

SEC("xdp")
int answer(struct xdp_md *context)
{
    void *data = (void *)(long)context->data;
    void *end = (void *)(long)context->data_end;
    struct xdp_note note = {0};

    if (data + ETHER + IPV4 + TCP > end) {
        return XDP_PASS;
    }
    __be16 type = ((const __be16 *)data)[6];
    if (type == bpf_htons(0x0800)) {
        const struct ipv4 *ip = data + ETHER;
        __u32 sum = 0;

        if (ip->version != 0x45 || ip->protocol != PROTOCOL_TCP ||
            (ip->fragment & bpf_htons(0x3fff)) != 0) {
            return XDP_PASS;
        }
        for (int i = 0; i < IPV4 / 2; i++) {
            sum += ((const __u16 *)ip)[i];
        }
        if (fold(sum) != 0xffff) {
            return XDP_PASS;
        }
        note.from = mapped(ip->from);
        note.to = mapped(ip->to);
        return take(context, &note, data + ETHER + IPV4, bpf_ntohs(ip->n_bytes) - IPV4);
    }
    if (type == bpf_htons(0x86dd) && data + ETHER + IPV6 + TCP <= end) {
        const struct ipv6 *ip = data + ETHER;

        if ((ip->version & bpf_htonl(0xf0000000)) != bpf_htonl(0x60000000) ||
            ip->protocol != PROTOCOL_TCP) {
            return XDP_PASS;
        }
        note.is_ipv6 = 1;
        note.from = ip->from;
        note.to = ip->to;
        return take(context, &note, data + ETHER + IPV6, bpf_ntohs(ip->n_bytes));
    }
    return XDP_PASS;
}

/* No helper that it calls is for GPL programs alone. */
char _license[] SEC("license") = "none";
