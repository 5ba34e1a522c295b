/* What a node says of how its half-open probes leave and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/probe/packet_way.h"

static void each_way_has_its_word_and_its_reason(void **state)
{
    static const struct {
        struct packet_way way;
        const char *send, *send_why, *receive, *receive_why;
    } rows[] = {
        {{PACKET_SEND_LINK, LINK_CLEAR, PACKET_RECEIVE_RING, RECEIVE_CHOSEN},
         "link",
         "no packet filter, connection tracking or IPsec is here to see them",
         "ring",
         "as configured"},
        {{PACKET_SEND_IP, LINK_NFTABLES, PACKET_RECEIVE_RING, RECEIVE_BY_IP},
         "ip",
         "nftables has chains here",
         "ring",
         "XDP is for probes that are sent by the link"},
        {{PACKET_SEND_LINK, PACKET_WAY_CHOSEN, PACKET_RECEIVE_XDP, RECEIVE_CHOSEN},
         "link",
         "as configured",
         "xdp",
         "as configured"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(packet_way_send(&rows[i].way), rows[i].send);
        assert_string_equal(packet_way_send_why(&rows[i].way), rows[i].send_why);
        assert_string_equal(packet_way_receive(&rows[i].way), rows[i].receive);
        assert_string_equal(packet_way_receive_why(&rows[i].way), rows[i].receive_why);
    }
}

/* It told that no packet filter was there, where nobody had looked. */
static void a_node_without_the_engine_gives_no_reason(void **state)
{
    const struct packet_way way = {0};

    (void)state;
    assert_string_equal(packet_way_send(&way), "");
    assert_string_equal(packet_way_send_why(&way), "");
    assert_string_equal(packet_way_receive(&way), "");
    assert_string_equal(packet_way_receive_why(&way), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_has_its_word_and_its_reason),
        cmocka_unit_test(a_node_without_the_engine_gives_no_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
