/* What a node says of how its half-open probes leave and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/probe/packet_way.h"

static void expect_words(const struct packet_way *way, const struct packet_way_words *words)
{
    const struct packet_way_words found = packet_way_words(way);

    assert_string_equal(found.send, words->send);
    assert_string_equal(found.send_why, words->send_why);
    assert_string_equal(found.receive, words->receive);
    assert_string_equal(found.receive_why, words->receive_why);
}

static void each_way_has_its_word_and_its_reason(void **state)
{
    static const struct {
        enum packet_send send;
        uint32_t send_why;
        bool is_xdp;
        enum packet_receive_why receive_why;
        struct packet_way_words words;
    } rows[] = {
        {PACKET_SEND_LINK,
         LINK_CLEAR,
         false,
         RECEIVE_CHOSEN,
         {"link", "no packet filter, connection tracking or IPsec is here to see them", "ring",
          "as configured"}},
        {PACKET_SEND_IP,
         LINK_NFTABLES,
         false,
         RECEIVE_BY_IP,
         {"ip", "nftables has chains here", "ring", "XDP is for probes that are sent by the link"}},
        {PACKET_SEND_LINK,
         PACKET_WAY_CHOSEN,
         true,
         RECEIVE_NO_ROOM,
         {"link", "as configured", "xdp",
          "probes leave by more links or from more addresses than XDP is for"}},
    };
    struct packet_way way = {0};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        packet_way_set_send(&way, rows[i].send, rows[i].send_why);
        packet_way_set_receive(&way, rows[i].is_xdp, rows[i].receive_why);
        expect_words(&way, &rows[i].words);
        assert_int_equal(packet_way_is_by_link(&way), rows[i].send == PACKET_SEND_LINK);
    }
}

/* It told that no packet filter was there, where nobody had looked. */
static void a_node_without_the_engine_gives_no_reason(void **state)
{
    static const struct packet_way_words nothing = {"", "", "", ""};
    struct packet_way way = {0};

    (void)state;
    expect_words(&way, &nothing);
    packet_way_set_receive(&way, false, RECEIVE_NOT_BUILT);
    expect_words(&way, &nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_has_its_word_and_its_reason),
        cmocka_unit_test(a_node_without_the_engine_gives_no_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
