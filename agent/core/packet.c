#include "agent/core/packet.h"

#include <assert.h>
#include <string.h>

#include "common/base/plant.h"

#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define TCP_BYTES 20
#define ICMP_BYTES 8
#define QUOTED_TCP_BYTES 8

#define PROTOCOL_ICMP 1
#define PROTOCOL_TCP 6
#define PROTOCOL_ICMPV6 58

#define HOP_LIMIT 64
#define WINDOW 65535
#define MSS_IPV4 1460 /* of an Ethernet of 1500 bytes; no data is ever sent or wanted */
#define MSS_IPV6 1440

/* Headers that IPv6 may put before TCP: hop-by-hop, routing, destination options (RFC 8200 4.1 has
 * each once, destination options twice). */
#define EXTENSIONS_MAX 4

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value >> 16);
    put16(at + 2, value & 0xffff);
}

/* --- checksums (RFC 1071) --- */

/* Fewer than 64 KiB in all, so 32 bits hold every sum. */
static uint32_t sum_add(uint32_t sum, const uint8_t *bytes, size_t n_bytes)
{
    for (size_t i = 0; i + 1 < n_bytes; i += 2) {
        sum += get16(bytes + i);
    }
    return n_bytes % 2 == 0 ? sum : sum + (uint32_t)(bytes[n_bytes - 1] << 8);
}

static uint16_t sum_fold(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

static size_t addr_bytes(const struct addr *addr)
{
    return addr->family == ADDR_IPV6 ? 16 : 4;
}

/* Of the pseudo header and the segment: 0xffff over a right one. Both protocols sum up alike: their
 * pseudo headers differ in zeros alone. */
static uint16_t tcp_sum(const struct packet_tcp *tcp, const uint8_t *segment, size_t n_bytes)
{
    uint32_t sum = PROTOCOL_TCP + (uint32_t)n_bytes;

    sum = sum_add(sum, tcp->from.addr.bytes, addr_bytes(&tcp->from.addr));
    sum = sum_add(sum, tcp->to.addr.bytes, addr_bytes(&tcp->to.addr));
    return sum_fold(sum_add(sum, segment, n_bytes));
}

/* --- making --- */

static size_t build_ip(const struct packet_tcp *tcp, size_t n_segment_bytes, uint8_t *bytes)
{
    if (tcp->to.addr.family == ADDR_IPV6) {
        bytes[0] = 0x60;
        put16(bytes + 4, (uint32_t)n_segment_bytes);
        bytes[6] = PROTOCOL_TCP;
        bytes[7] = HOP_LIMIT;
        memcpy(bytes + 8, tcp->from.addr.bytes, 16);
        memcpy(bytes + 24, tcp->to.addr.bytes, 16);
        return IPV6_BYTES;
    }
    bytes[0] = 0x45;
    put16(bytes + 2, (uint32_t)(IPV4_BYTES + n_segment_bytes));
    put16(bytes + 6, 0x4000); /* do not fragment; so the identification may stay 0 (RFC 6864) */
    bytes[8] = HOP_LIMIT;
    bytes[9] = PROTOCOL_TCP;
    memcpy(bytes + 12, tcp->from.addr.bytes, 4);
    memcpy(bytes + 16, tcp->to.addr.bytes, 4);
    put16(bytes + 10, (uint16_t)~sum_fold(sum_add(0, bytes, IPV4_BYTES)));
    return IPV4_BYTES;
}

size_t packet_build_tcp(const struct packet_tcp *tcp, uint8_t bytes[PACKET_TCP_BYTES_MAX])
{
    bool is_syn = (tcp->flags & PACKET_SYN) != 0;
    size_t n_segment_bytes = is_syn ? TCP_BYTES + 4 : TCP_BYTES;

    assert(tcp->from.addr.family == tcp->to.addr.family);
    memset(bytes, 0, PACKET_TCP_BYTES_MAX);
    size_t n_ip_bytes = build_ip(tcp, n_segment_bytes, bytes);
    uint8_t *segment = bytes + n_ip_bytes;
    put16(segment, tcp->from.port);
    put16(segment + 2, tcp->to.port);
    put32(segment + 4, tcp->seq);
    put32(segment + 8, tcp->ack);
    segment[12] = (uint8_t)(n_segment_bytes / 4 << 4);
    segment[13] = tcp->flags;
    if (is_syn) {
        put16(segment + 14, WINDOW);
        put16(segment + TCP_BYTES, 0x0204); /* MSS, RFC 9293 3.2 */
        put16(segment + TCP_BYTES + 2, tcp->to.addr.family == ADDR_IPV6 ? MSS_IPV6 : MSS_IPV4);
    }
    put16(segment + 16, (uint16_t)~tcp_sum(tcp, segment, n_segment_bytes));
    return n_ip_bytes + n_segment_bytes;
}

/* --- reading --- */

/* An IP packet whose payload begins at `payload`; n_bytes of it are here, n_full were sent. */
struct ip_view {
    struct addr from;
    struct addr to;
    uint8_t protocol;
    const uint8_t *payload;
    size_t n_bytes;
    size_t n_full;
};

static bool view_ipv4(const uint8_t *bytes, size_t n_bytes, struct ip_view *ret_ip)
{
    if (n_bytes < IPV4_BYTES) {
        return false;
    }
    size_t n_header = (size_t)(bytes[0] & 15) * 4;
    size_t n_total = get16(bytes + 2);
    bool is_fragment = (get16(bytes + 6) & 0x3fff) != 0; /* more fragments, or an offset */
    if (n_header < IPV4_BYTES || n_header > n_bytes || n_total < n_header || is_fragment) {
        return false;
    }
    *ret_ip = (struct ip_view){.from.family = ADDR_IPV4,
                               .to.family = ADDR_IPV4,
                               .protocol = bytes[9],
                               .payload = bytes + n_header,
                               .n_bytes = (n_bytes < n_total ? n_bytes : n_total) - n_header,
                               .n_full = n_total - n_header};
    memcpy(ret_ip->from.bytes, bytes + 12, 4);
    memcpy(ret_ip->to.bytes, bytes + 16, 4);
    return true;
}

/* Walks over what may stand before TCP. A fragment header ends the walk, and is no TCP. */
static bool skip_extensions(struct ip_view *ip)
{
    for (unsigned n = 0; n < EXTENSIONS_MAX; n++) {
        if (ip->protocol != 0 && ip->protocol != 43 && ip->protocol != 60) {
            return true;
        }
        size_t n_header = ip->n_bytes < 8 ? 8 : ((size_t)ip->payload[1] + 1) * 8;
        if (n_header > ip->n_bytes && !plant_is("packet-length")) {
            return false;
        }
        ip->protocol = ip->payload[0];
        ip->payload += n_header;
        ip->n_bytes -= n_header;
        ip->n_full -= n_header;
    }
    return true;
}

static bool view_ipv6(const uint8_t *bytes, size_t n_bytes, struct ip_view *ret_ip)
{
    if (n_bytes < IPV6_BYTES) {
        return false;
    }
    size_t n_full = get16(bytes + 4);
    size_t n_here = n_bytes - IPV6_BYTES;
    *ret_ip = (struct ip_view){.from.family = ADDR_IPV6,
                               .to.family = ADDR_IPV6,
                               .protocol = bytes[6],
                               .payload = bytes + IPV6_BYTES,
                               .n_bytes = n_here < n_full ? n_here : n_full,
                               .n_full = n_full};
    memcpy(ret_ip->from.bytes, bytes + 8, 16);
    memcpy(ret_ip->to.bytes, bytes + 24, 16);
    return skip_extensions(ret_ip);
}

static bool view_ip(const uint8_t *bytes, size_t n_bytes, struct ip_view *ret_ip)
{
    if (n_bytes == 0) {
        return false;
    }
    switch (bytes[0] >> 4) {
    case 4:
        return view_ipv4(bytes, n_bytes, ret_ip);
    case 6:
        return view_ipv6(bytes, n_bytes, ret_ip);
    default:
        return false;
    }
}

/* What the first eight bytes of a segment say: all that an ICMP message need quote. */
static struct packet_tcp read_start(const struct ip_view *ip)
{
    return (struct packet_tcp){.from = {.addr = ip->from, .port = get16(ip->payload)},
                               .to = {.addr = ip->to, .port = get16(ip->payload + 2)},
                               .seq = get32(ip->payload + 4)};
}

static void read_segment(const struct ip_view *ip, bool is_sum_checked, struct packet_seen *seen)
{
    if (ip->n_bytes < TCP_BYTES) {
        return;
    }
    size_t n_header = (size_t)(ip->payload[12] >> 4) * 4;
    if (n_header < TCP_BYTES || n_header > ip->n_full) {
        return;
    }
    struct packet_tcp tcp = read_start(ip);
    bool can_check = !is_sum_checked && ip->n_bytes == ip->n_full;
    if (can_check && tcp_sum(&tcp, ip->payload, ip->n_bytes) != 0xffff) {
        return;
    }
    tcp.flags = ip->payload[13] & 0x3f;
    tcp.ack = (tcp.flags & PACKET_ACK) != 0 ? get32(ip->payload + 8) : 0;
    *seen = (struct packet_seen){.kind = PACKET_SEGMENT, .tcp = tcp};
}

static bool is_unreachable(uint8_t protocol, uint8_t type, uint8_t code)
{
    if (protocol == PROTOCOL_ICMP) {
        return (type == 3 && code != 4) || type == 11 || type == 12;
    }
    return type == 1 || type == 3 || type == 4;
}

static void read_error(const struct ip_view *ip, struct packet_seen *seen)
{
    struct ip_view quoted;

    if (ip->n_bytes < ICMP_BYTES || !is_unreachable(ip->protocol, ip->payload[0], ip->payload[1]) ||
        !view_ip(ip->payload + ICMP_BYTES, ip->n_bytes - ICMP_BYTES, &quoted) ||
        quoted.from.family != ip->from.family || quoted.protocol != PROTOCOL_TCP ||
        quoted.n_bytes < QUOTED_TCP_BYTES) {
        return;
    }
    *seen = (struct packet_seen){.kind = PACKET_UNREACHABLE,
                                 .tcp = read_start(&quoted),
                                 .by = ip->from,
                                 .icmp_type = ip->payload[0],
                                 .icmp_code = ip->payload[1]};
}

struct packet_seen packet_read(const uint8_t *bytes, size_t n_bytes, bool is_sum_checked)
{
    struct packet_seen seen = {.kind = PACKET_NONE};
    struct ip_view ip;

    if (!view_ip(bytes, n_bytes, &ip)) {
        return seen;
    }
    if (ip.protocol == PROTOCOL_TCP) {
        read_segment(&ip, is_sum_checked, &seen);
    } else if (ip.protocol == (ip.from.family == ADDR_IPV4 ? PROTOCOL_ICMP : PROTOCOL_ICMPV6)) {
        read_error(&ip, &seen);
    }
    return seen;
}
