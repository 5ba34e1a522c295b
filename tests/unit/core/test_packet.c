/* Segments of half-open probes, byte for byte: the packets below were typed by hand from RFC 791,
 * RFC 8200, RFC 9293, RFC 792 and RFC 4443, their checksums worked out by another program. spec.md
 * 4, S6, S41, S42. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/packet.h"

/* 192.0.2.1:40000 > 192.0.2.7:80, SYN, sequence 0x01020304, MSS 1460. */
static const uint8_t syn_ipv4[] = {
    0x45, 0x00, 0x00, 0x2c, 0x00, 0x00, 0x40, 0x00, 0x40, 0x06, 0xb6, 0xc3, 0xc0, 0x00, 0x02,
    0x01, 0xc0, 0x00, 0x02, 0x07, 0x9c, 0x40, 0x00, 0x50, 0x01, 0x02, 0x03, 0x04, 0x00, 0x00,
    0x00, 0x00, 0x60, 0x02, 0xff, 0xff, 0x73, 0x87, 0x00, 0x00, 0x02, 0x04, 0x05, 0xb4,
};

/* [2001:db8::1]:40000 > [2001:db8::7]:80, the same with MSS 1440. */
static const uint8_t syn_ipv6[] = {
    0x60, 0x00, 0x00, 0x00, 0x00, 0x18, 0x06, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x9c, 0x40, 0x00, 0x50, 0x01, 0x02, 0x03, 0x04,
    0x00, 0x00, 0x00, 0x00, 0x60, 0x02, 0xff, 0xff, 0x9c, 0x2a, 0x00, 0x00, 0x02, 0x04, 0x05, 0xa0,
};

/* The reset after a timeout: RST alone, one number on. */
static const uint8_t rst_ipv4[] = {
    0x45, 0x00, 0x00, 0x28, 0x00, 0x00, 0x40, 0x00, 0x40, 0x06, 0xb6, 0xc7, 0xc0, 0x00,
    0x02, 0x01, 0xc0, 0x00, 0x02, 0x07, 0x9c, 0x40, 0x00, 0x50, 0x01, 0x02, 0x03, 0x05,
    0x00, 0x00, 0x00, 0x00, 0x50, 0x04, 0x00, 0x00, 0x8b, 0x40, 0x00, 0x00,
};

/* The same over IPv6. */
static const uint8_t rst_ipv6[] = {
    0x60, 0x00, 0x00, 0x00, 0x00, 0x14, 0x06, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x9c, 0x40, 0x00, 0x50, 0x01,
    0x02, 0x03, 0x05, 0x00, 0x00, 0x00, 0x00, 0x50, 0x04, 0x00, 0x00, 0xb3, 0xcf, 0x00, 0x00,
};

/* The answer of an open port: SYN, ACK of 0x01020305. */
static const uint8_t syn_ack_ipv4[] = {
    0x45, 0x00, 0x00, 0x2c, 0x00, 0x00, 0x40, 0x00, 0x3f, 0x06, 0xb7, 0xc3, 0xc0, 0x00, 0x02,
    0x07, 0xc0, 0x00, 0x02, 0x01, 0x00, 0x50, 0x9c, 0x40, 0xa0, 0xb0, 0xc0, 0xd0, 0x01, 0x02,
    0x03, 0x05, 0x60, 0x12, 0xfa, 0xf0, 0x17, 0x04, 0x00, 0x00, 0x02, 0x04, 0x05, 0xb4,
};

/* The same over IPv6. */
static const uint8_t syn_ack_ipv6[] = {
    0x60, 0x00, 0x00, 0x00, 0x00, 0x18, 0x06, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x50, 0x9c, 0x40, 0xa0, 0xb0, 0xc0, 0xd0,
    0x01, 0x02, 0x03, 0x05, 0x60, 0x12, 0xfa, 0xf0, 0x3f, 0xa7, 0x00, 0x00, 0x02, 0x04, 0x05, 0xa0,
};

/* The answer of a closed port: RST, ACK of 0x01020305. */
static const uint8_t rst_ack_ipv4[] = {
    0x45, 0x00, 0x00, 0x28, 0x00, 0x00, 0x40, 0x00, 0x40, 0x06, 0xb6, 0xc7, 0xc0, 0x00,
    0x02, 0x07, 0xc0, 0x00, 0x02, 0x01, 0x00, 0x50, 0x9c, 0x40, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x02, 0x03, 0x05, 0x50, 0x14, 0x00, 0x00, 0x8b, 0x30, 0x00, 0x00,
};

/* 192.0.2.254 says: host unreachable, with the header of the SYN and eight bytes of it. */
static const uint8_t unreachable_ipv4[] = {
    0x45, 0x00, 0x00, 0x38, 0x00, 0x00, 0x40, 0x00, 0x40, 0x01, 0xb5, 0xc5, 0xc0, 0x00,
    0x02, 0xfe, 0xc0, 0x00, 0x02, 0x01, 0x03, 0x01, 0x5c, 0x68, 0x00, 0x00, 0x00, 0x00,
    0x45, 0x00, 0x00, 0x2c, 0x00, 0x00, 0x40, 0x00, 0x40, 0x06, 0xb6, 0xc3, 0xc0, 0x00,
    0x02, 0x01, 0xc0, 0x00, 0x02, 0x07, 0x9c, 0x40, 0x00, 0x50, 0x01, 0x02, 0x03, 0x04,
};

/* [2001:db8::fe] says: no route, with the whole SYN. */
static const uint8_t unreachable_ipv6[] = {
    0x60, 0x00, 0x00, 0x00, 0x00, 0x48, 0x3a, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xfe, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x01, 0x00, 0x98, 0xc5, 0x00, 0x00, 0x00, 0x00,
    0x60, 0x00, 0x00, 0x00, 0x00, 0x18, 0x06, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x9c, 0x40, 0x00, 0x50, 0x01, 0x02, 0x03, 0x04,
    0x00, 0x00, 0x00, 0x00, 0x60, 0x02, 0xff, 0xff, 0x9c, 0x2a, 0x00, 0x00, 0x02, 0x04, 0x05, 0xa0,
};

#define ISN 0x01020304u

static struct packet_tcp ours(const char *from, const char *to, uint32_t seq, uint8_t flags)
{
    struct packet_tcp tcp = {
        .from.port = 40000, .to.port = 80, .seq = seq, .ack = 0, .flags = flags};

    assert_int_equal(addr_parse(from, &tcp.from.addr, NULL), 0);
    assert_int_equal(addr_parse(to, &tcp.to.addr, NULL), 0);
    return tcp;
}

static struct packet_tcp ours_ipv4(uint32_t seq, uint8_t flags)
{
    return ours("192.0.2.1", "192.0.2.7", seq, flags);
}

static struct packet_tcp ours_ipv6(uint32_t seq, uint8_t flags)
{
    return ours("2001:db8::1", "2001:db8::7", seq, flags);
}

static void assert_built(const struct packet_tcp *tcp, const uint8_t *expected, size_t n_bytes)
{
    uint8_t bytes[PACKET_TCP_BYTES_MAX];

    assert_int_equal(packet_build_tcp(tcp, bytes), n_bytes);
    assert_memory_equal(bytes, expected, n_bytes);
}

static void a_syn_is_these_bytes(void **state)
{
    struct packet_tcp four = ours_ipv4(ISN, PACKET_SYN);
    struct packet_tcp six = ours_ipv6(ISN, PACKET_SYN);

    (void)state;
    assert_built(&four, syn_ipv4, sizeof syn_ipv4);
    assert_built(&six, syn_ipv6, sizeof syn_ipv6);
}

static void a_reset_after_a_timeout_is_these_bytes(void **state)
{
    struct packet_tcp four = ours_ipv4(ISN + 1, PACKET_RST);
    struct packet_tcp six = ours_ipv6(ISN + 1, PACKET_RST);

    (void)state;
    assert_built(&four, rst_ipv4, sizeof rst_ipv4);
    assert_built(&six, rst_ipv6, sizeof rst_ipv6);
}

/* What came from `to` of ours. */
static void assert_answer(const struct packet_seen *seen, const struct packet_tcp *sent,
                          uint8_t flags)
{
    assert_int_equal(seen->kind, PACKET_SEGMENT);
    assert_int_equal(endpoint_compare(&seen->tcp.from, &sent->to), 0);
    assert_int_equal(endpoint_compare(&seen->tcp.to, &sent->from), 0);
    assert_int_equal(seen->tcp.ack, sent->seq + 1);
    assert_int_equal(seen->tcp.flags, flags);
}

static void answers_are_read(void **state)
{
    struct packet_tcp four = ours_ipv4(ISN, PACKET_SYN);
    struct packet_tcp six = ours_ipv6(ISN, PACKET_SYN);
    struct packet_seen seen;

    (void)state;
    seen = packet_read(syn_ack_ipv4, sizeof syn_ack_ipv4, false);
    assert_answer(&seen, &four, PACKET_SYN | PACKET_ACK);
    assert_int_equal(seen.tcp.seq, 0xa0b0c0d0u);
    seen = packet_read(syn_ack_ipv6, sizeof syn_ack_ipv6, false);
    assert_answer(&seen, &six, PACKET_SYN | PACKET_ACK);
    seen = packet_read(rst_ack_ipv4, sizeof rst_ack_ipv4, false);
    assert_answer(&seen, &four, PACKET_RST | PACKET_ACK);
}

static void assert_quotes(const struct packet_seen *seen, const struct packet_tcp *sent)
{
    assert_int_equal(seen->kind, PACKET_UNREACHABLE);
    assert_int_equal(endpoint_compare(&seen->tcp.from, &sent->from), 0);
    assert_int_equal(endpoint_compare(&seen->tcp.to, &sent->to), 0);
    assert_int_equal(seen->tcp.seq, sent->seq);
}

static void an_icmp_error_says_which_segment_it_is_about(void **state)
{
    struct packet_tcp four = ours_ipv4(ISN, PACKET_SYN);
    struct packet_tcp six = ours_ipv6(ISN, PACKET_SYN);
    struct packet_seen seen;

    (void)state;
    seen = packet_read(unreachable_ipv4, sizeof unreachable_ipv4, false);
    assert_quotes(&seen, &four);
    seen = packet_read(unreachable_ipv6, sizeof unreachable_ipv6, false);
    assert_quotes(&seen, &six);
}

static void only_errors_that_end_a_connection_attempt_count(void **state)
{
    static const struct {
        uint8_t type;
        uint8_t code;
        bool counts;
    } rows[] = {
        {0, 0, false}, {3, 0, true},  {3, 3, true},  {3, 4, false}, {3, 13, true},
        {4, 0, false}, {5, 1, false}, {11, 0, true}, {12, 0, true}, {8, 0, false},
    };
    uint8_t bytes[sizeof unreachable_ipv4];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memcpy(bytes, unreachable_ipv4, sizeof bytes);
        bytes[20] = rows[i].type;
        bytes[21] = rows[i].code;

        struct packet_seen seen = packet_read(bytes, sizeof bytes, false);

        assert_int_equal(seen.kind, rows[i].counts ? PACKET_UNREACHABLE : PACKET_NONE);
    }
}

static void only_icmpv6_errors_that_end_an_attempt_count(void **state)
{
    static const bool counts[] = {false, true, false, true, true, false};
    uint8_t bytes[sizeof unreachable_ipv6];

    (void)state;
    memcpy(bytes, unreachable_ipv6, sizeof bytes);
    for (uint8_t type = 0; type < sizeof counts; type++) {
        bytes[40] = type;

        struct packet_seen seen = packet_read(bytes, sizeof bytes, false);

        assert_int_equal(seen.kind, counts[type] ? PACKET_UNREACHABLE : PACKET_NONE);
    }
}

static void a_wrong_checksum_says_nothing_unless_it_is_not_made_yet(void **state)
{
    uint8_t bytes[sizeof syn_ack_ipv4];

    (void)state;
    for (size_t at = 20; at < sizeof bytes; at++) {
        if (at == 32) {
            continue; /* the length of the header */
        }
        memcpy(bytes, syn_ack_ipv4, sizeof bytes);
        bytes[at] ^= 0x10;

        assert_int_equal(packet_read(bytes, sizeof bytes, false).kind, PACKET_NONE);
        assert_int_equal(packet_read(bytes, sizeof bytes, true).kind, PACKET_SEGMENT);
    }
}

static void padding_of_the_link_is_not_part_of_the_packet(void **state)
{
    struct packet_tcp sent = ours_ipv4(ISN, PACKET_SYN);
    uint8_t frame[60 - 14]; /* the shortest of Ethernet */

    (void)state;
    memset(frame, 0x55, sizeof frame);
    memcpy(frame, rst_ack_ipv4, sizeof rst_ack_ipv4);
    struct packet_seen seen = packet_read(frame, sizeof frame, false);

    assert_answer(&seen, &sent, PACKET_RST | PACKET_ACK);
}

static void a_packet_that_is_cut_before_the_fields_that_decide_says_nothing(void **state)
{
    (void)state;
    for (size_t n = 0; n < 40; n++) {
        assert_int_equal(packet_read(syn_ack_ipv4, n, true).kind, PACKET_NONE);
    }
    for (size_t n = 0; n < 60; n++) {
        assert_int_equal(packet_read(syn_ack_ipv6, n, true).kind, PACKET_NONE);
    }
    for (size_t n = 0; n < sizeof unreachable_ipv4; n++) {
        assert_int_equal(packet_read(unreachable_ipv4, n, true).kind, PACKET_NONE);
    }
}

static void lengths_that_do_not_fit_say_nothing(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } rows[] = {
        {0, 0x44},  /* a header of 16 bytes */
        {0, 0x4f},  /* a header longer than the packet */
        {0, 0x55},  /* version 5 */
        {3, 19},    /* a total shorter than the header */
        {3, 39},    /* and one that cuts the segment's */
        {32, 0x40}, /* a segment header of 16 bytes */
        {32, 0x70}, /* one longer than the segment */
        {6, 0x20},  /* more fragments follow */
        {7, 0x01},  /* not the first fragment */
        {9, 17},    /* UDP */
        {9, 58},    /* ICMPv6 in IPv4 */
    };
    uint8_t bytes[sizeof syn_ack_ipv4];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memcpy(bytes, syn_ack_ipv4, sizeof bytes);
        bytes[rows[i].at] = rows[i].value;

        assert_int_equal(packet_read(bytes, sizeof bytes, true).kind, PACKET_NONE);
    }
}

/* A SYN-ACK behind `n` destination options of eight bytes each. */
static struct packet_seen read_behind_options(unsigned n, uint8_t protocol)
{
    uint8_t bytes[sizeof syn_ack_ipv6 + 8 * 8] = {0};
    size_t at = 40;

    memcpy(bytes, syn_ack_ipv6, 40);
    bytes[5] = (uint8_t)(bytes[5] + 8 * n);
    for (unsigned i = 0; i < n; i++) {
        bytes[i == 0 ? 6 : at - 8] = protocol;
        bytes[at] = 6;
        at += 8;
    }
    memcpy(bytes + at, syn_ack_ipv6 + 40, sizeof syn_ack_ipv6 - 40);
    return packet_read(bytes, at + sizeof syn_ack_ipv6 - 40, false);
}

static void extension_headers_are_walked_over_but_for_fragments(void **state)
{
    struct packet_tcp sent = ours_ipv6(ISN, PACKET_SYN);

    (void)state;
    for (unsigned n = 0; n <= 4; n++) {
        struct packet_seen seen = read_behind_options(n, 60);
        assert_answer(&seen, &sent, PACKET_SYN | PACKET_ACK);
    }
    struct packet_seen fragment = read_behind_options(1, 44);
    assert_int_equal(fragment.kind, PACKET_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_syn_is_these_bytes),
        cmocka_unit_test(a_reset_after_a_timeout_is_these_bytes),
        cmocka_unit_test(answers_are_read),
        cmocka_unit_test(an_icmp_error_says_which_segment_it_is_about),
        cmocka_unit_test(only_errors_that_end_a_connection_attempt_count),
        cmocka_unit_test(only_icmpv6_errors_that_end_an_attempt_count),
        cmocka_unit_test(a_wrong_checksum_says_nothing_unless_it_is_not_made_yet),
        cmocka_unit_test(padding_of_the_link_is_not_part_of_the_packet),
        cmocka_unit_test(a_packet_that_is_cut_before_the_fields_that_decide_says_nothing),
        cmocka_unit_test(lengths_that_do_not_fit_say_nothing),
        cmocka_unit_test(extension_headers_are_walked_over_but_for_fragments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
