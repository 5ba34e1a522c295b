/* The filter that runs in the kernel, run by the kernel: datagrams between two local sockets, so no
 * rights are needed. */
#include <linux/if_packet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/core/packet.h"
#include "agent/probe/packet_filter.h"

#define N_PORTS 32
#define FIRST_PORT 40000 /* and each third after it */

struct wire {
    int from;
    int to; /* behind the filter */
};

static int open_wire(void **state)
{
    static struct wire wire;
    int fds[2];
    uint16_t ports[N_PORTS];
    struct sock_filter program[PACKET_FILTER_MAX];
    struct sock_fprog all = {.filter = program};

    for (unsigned i = 0; i < N_PORTS; i++) {
        ports[i] = (uint16_t)(FIRST_PORT + 3 * i);
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
    all.len = (unsigned short)packet_filter_build(ports, N_PORTS, program);
    assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof all), 0);
    wire = (struct wire){.from = fds[0], .to = fds[1]};
    *state = &wire;
    return 0;
}

static int close_wire(void **state)
{
    struct wire *wire = *state;

    close(wire->from);
    close(wire->to);
    return 0;
}

/* Whether the whole packet comes through. */
static bool passes(const struct wire *wire, const uint8_t *bytes, size_t n_bytes)
{
    uint8_t received[512];

    assert_int_equal(send(wire->from, bytes, n_bytes, 0), n_bytes);
    ssize_t n = recv(wire->to, received, sizeof received, MSG_DONTWAIT);
    assert_true(n < 0 || n == (ssize_t)n_bytes);
    return n >= 0;
}

static size_t make(const char *from, const char *to, uint16_t port, uint8_t flags,
                   uint8_t bytes[PACKET_TCP_BYTES_MAX])
{
    struct packet_tcp tcp = {.from.port = 80, .to.port = port, .seq = 1, .ack = 2, .flags = flags};

    assert_int_equal(addr_parse(from, &tcp.from.addr, NULL), 0);
    assert_int_equal(addr_parse(to, &tcp.to.addr, NULL), 0);
    return packet_build_tcp(&tcp, bytes);
}

static bool tcp_passes(const struct wire *wire, bool is_ipv6, uint16_t port, uint8_t flags)
{
    uint8_t bytes[PACKET_TCP_BYTES_MAX];
    size_t n_bytes = is_ipv6 ? make("2001:db8::7", "2001:db8::1", port, flags, bytes)
                             : make("192.0.2.7", "192.0.2.1", port, flags, bytes);

    return passes(wire, bytes, n_bytes);
}

static void syn_acks_and_resets_to_each_of_our_ports_pass(void **state)
{
    for (unsigned is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
        for (unsigned i = 0; i < N_PORTS; i++) {
            uint16_t port = (uint16_t)(FIRST_PORT + 3 * i);

            assert_true(tcp_passes(*state, is_ipv6, port, PACKET_SYN | PACKET_ACK));
            assert_true(tcp_passes(*state, is_ipv6, port, PACKET_RST | PACKET_ACK));
        }
    }
}

static void other_ports_and_other_segments_do_not(void **state)
{
    for (unsigned is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
        assert_false(tcp_passes(*state, is_ipv6, FIRST_PORT + 1, PACKET_SYN | PACKET_ACK));
        assert_false(tcp_passes(*state, is_ipv6, FIRST_PORT - 1, PACKET_RST | PACKET_ACK));
        assert_false(tcp_passes(*state, is_ipv6, 0, PACKET_SYN | PACKET_ACK));
        assert_false(tcp_passes(*state, is_ipv6, FIRST_PORT, PACKET_ACK));
        assert_false(tcp_passes(*state, is_ipv6, FIRST_PORT, PACKET_FIN | PACKET_ACK));
    }
}

static void ipv4_options_are_stepped_over_and_fragments_are_not_read(void **state)
{
    uint8_t bytes[PACKET_TCP_BYTES_MAX + 4];
    size_t n_bytes = make("192.0.2.7", "192.0.2.1", FIRST_PORT, PACKET_SYN | PACKET_ACK, bytes);

    memmove(bytes + 24, bytes + 20, n_bytes - 20);
    bytes[0] = 0x46;
    assert_true(passes(*state, bytes, n_bytes + 4));
    bytes[6] = 0x20;
    assert_false(passes(*state, bytes, n_bytes + 4));
    bytes[6] = 0;
    bytes[7] = 1;
    assert_false(passes(*state, bytes, n_bytes + 4));
}

/* An ICMP error that quotes a packet of that protocol. */
static bool error_passes(const struct wire *wire, bool is_ipv6, uint8_t quoted_protocol)
{
    uint8_t bytes[40 + 8 + 40 + 8] = {0};
    size_t n_header = is_ipv6 ? 40 : 20;

    bytes[0] = is_ipv6 ? 0x60 : 0x45;
    bytes[is_ipv6 ? 6 : 9] = is_ipv6 ? 58 : 1;
    bytes[n_header + 8 + (is_ipv6 ? 6 : 9)] = quoted_protocol;
    return passes(wire, bytes, 2 * n_header + 16);
}

static void icmp_errors_about_tcp_pass_and_others_do_not(void **state)
{
    for (unsigned is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
        assert_true(error_passes(*state, is_ipv6, 6));
        assert_false(error_passes(*state, is_ipv6, 17));
    }
}

static void what_is_cut_or_of_another_protocol_does_not_pass(void **state)
{
    uint8_t bytes[PACKET_TCP_BYTES_MAX];
    size_t n_bytes = make("192.0.2.7", "192.0.2.1", FIRST_PORT, PACKET_SYN | PACKET_ACK, bytes);

    for (size_t n = 1; n < 34; n++) {
        assert_false(passes(*state, bytes, n));
    }
    bytes[9] = 17;
    assert_false(passes(*state, bytes, n_bytes));
    bytes[0] = 0x55;
    assert_false(passes(*state, bytes, n_bytes));
}

static void tcp_behind_extension_headers_is_left_to_the_reader(void **state)
{
    uint8_t bytes[PACKET_TCP_BYTES_MAX];
    size_t n_bytes = make("2001:db8::7", "2001:db8::1", FIRST_PORT, PACKET_SYN, bytes);

    for (unsigned protocol = 0; protocol < 256; protocol++) {
        bool is_walked = protocol == 0 || protocol == 43 || protocol == 60 || protocol == 6;

        if (protocol == 58) {
            continue;
        }
        bytes[6] = (uint8_t)protocol;
        assert_int_equal(passes(*state, bytes, n_bytes), is_walked);
    }
}

/* A wire behind the filter of SYNs that leave; these datagrams do not leave this machine, so what
 * it asks first is asked of another kind of packet. */
static struct wire open_syn_wire(bool is_asked_first)
{
    int fds[2];
    struct sock_filter program[PACKET_FILTER_MAX];
    struct sock_fprog all = {.filter = program};

    all.len = (unsigned short)packet_filter_build_syns(program);
    assert_int_equal(program[1].k, PACKET_OUTGOING);
    program[1].k = is_asked_first ? PACKET_OUTGOING : PACKET_HOST;
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
    assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof all), 0);
    return (struct wire){.from = fds[0], .to = fds[1]};
}

static void of_what_leaves_the_first_segments_of_connections_pass(void **state)
{
    struct wire wire = open_syn_wire(false);
    struct wire *kept = &wire;

    (void)state;
    for (unsigned is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
        assert_true(tcp_passes(kept, is_ipv6, 80, PACKET_SYN));
        assert_false(tcp_passes(kept, is_ipv6, 80, PACKET_SYN | PACKET_ACK));
        assert_false(tcp_passes(kept, is_ipv6, 80, PACKET_SYN | PACKET_RST));
        assert_false(tcp_passes(kept, is_ipv6, 80, PACKET_ACK));
        assert_false(tcp_passes(kept, is_ipv6, 80, PACKET_FIN | PACKET_ACK));
        assert_false(tcp_passes(kept, is_ipv6, 80, PACKET_RST));
    }
    close(wire.from);
    close(wire.to);
}

static void what_does_not_leave_is_not_seen(void **state)
{
    struct wire wire = open_syn_wire(true);

    (void)state;
    assert_false(tcp_passes(&wire, false, 80, PACKET_SYN));
    assert_false(tcp_passes(&wire, true, 80, PACKET_SYN));
    close(wire.from);
    close(wire.to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_what_leaves_the_first_segments_of_connections_pass),
        cmocka_unit_test(what_does_not_leave_is_not_seen),
        cmocka_unit_test(syn_acks_and_resets_to_each_of_our_ports_pass),
        cmocka_unit_test(other_ports_and_other_segments_do_not),
        cmocka_unit_test(ipv4_options_are_stepped_over_and_fragments_are_not_read),
        cmocka_unit_test(icmp_errors_about_tcp_pass_and_others_do_not),
        cmocka_unit_test(what_is_cut_or_of_another_protocol_does_not_pass),
        cmocka_unit_test(tcp_behind_extension_headers_is_left_to_the_reader),
    };

    return cmocka_run_group_tests(tests, open_wire, close_wire);
}
