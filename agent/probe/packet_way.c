#include "agent/probe/packet_way.h"

#include <assert.h>
#include <string.h>

enum packet_send packet_send_of(const char *word)
{
    return strcmp(word, "ip") == 0     ? PACKET_SEND_IP
           : strcmp(word, "link") == 0 ? PACKET_SEND_LINK
                                       : PACKET_SEND_AUTO;
}

enum packet_receive packet_receive_of(const char *word)
{
    return strcmp(word, "xdp") == 0          ? PACKET_RECEIVE_XDP
           : strcmp(word, "xdp-driver") == 0 ? PACKET_RECEIVE_XDP_DRIVER
                                             : PACKET_RECEIVE_RING;
}

/* The word, a byte each: enum packet_send, where AUTO stands for no engine, and why; whether it is
 * by XDP, and why. */
enum {
    SEND_WHY = 8,
    RECEIVE = 16,
    RECEIVE_WHY = 24,
    BYTE = 0xff
};

static uint32_t word_of(const struct packet_way *way)
{
    return atomic_load_explicit(&way->word, memory_order_relaxed);
}

/* Only one thread writes. */
static void put(struct packet_way *way, uint32_t mask, uint32_t bits)
{
    atomic_store_explicit(&way->word, (word_of(way) & ~mask) | bits, memory_order_relaxed);
}

void packet_way_set_send(struct packet_way *way, enum packet_send send, uint32_t why)
{
    assert(send != PACKET_SEND_AUTO && why <= PACKET_WAY_CHOSEN);
    put(way, BYTE | BYTE << SEND_WHY, (uint32_t)send | why << SEND_WHY);
}

void packet_way_set_receive(struct packet_way *way, bool is_xdp, enum packet_receive_why why)
{
    put(way, (uint32_t)BYTE << RECEIVE | (uint32_t)BYTE << RECEIVE_WHY,
        (is_xdp ? 1U : 0U) << RECEIVE | (uint32_t)why << RECEIVE_WHY);
}

bool packet_way_is_by_link(const struct packet_way *way)
{
    return (word_of(way) & BYTE) == PACKET_SEND_LINK;
}

struct packet_way_words packet_way_words(const struct packet_way *way)
{
    static const char *const receive_whys[] = {
#define PACKET_RECEIVE_WHY_TEXT(name, text) text,
        PACKET_RECEIVE_WHYS(PACKET_RECEIVE_WHY_TEXT)
#undef PACKET_RECEIVE_WHY_TEXT
    };
    uint32_t word = word_of(way);
    uint32_t send_why = word >> SEND_WHY & BYTE;

    if ((word & BYTE) == 0) {
        return (struct packet_way_words){"", "", "", ""};
    }
    return (struct packet_way_words){
        .send = (word & BYTE) == PACKET_SEND_LINK ? "link" : "ip",
        .send_why = send_why == PACKET_WAY_CHOSEN
                        ? "as configured"
                        : link_obstacle_text((enum link_obstacle)send_why),
        .receive = (word >> RECEIVE & BYTE) != 0 ? "xdp" : "ring",
        .receive_why = receive_whys[word >> RECEIVE_WHY & BYTE],
    };
}
