#include "agent/probe/packet_way.h"

#include <stdbool.h>
#include <string.h>

enum packet_send packet_send_of(const char *word)
{
    return strcmp(word, "ip") == 0     ? PACKET_SEND_IP
           : strcmp(word, "link") == 0 ? PACKET_SEND_LINK
                                       : PACKET_SEND_AUTO;
}

const char *packet_way_send(const struct packet_way *way)
{
    switch ((enum packet_send)atomic_load_explicit(&way->send, memory_order_relaxed)) {
    case PACKET_SEND_IP:
        return "ip";
    case PACKET_SEND_LINK:
        return "link";
    case PACKET_SEND_AUTO:
        break;
    }
    return "";
}

static bool has_engine(const struct packet_way *way)
{
    return packet_way_send(way)[0] != '\0';
}

const char *packet_way_send_why(const struct packet_way *way)
{
    uint32_t why = atomic_load_explicit(&way->send_why, memory_order_relaxed);

    return !has_engine(way)           ? ""
           : why == PACKET_WAY_CHOSEN ? "as configured"
                                      : link_obstacle_text((enum link_obstacle)why);
}

enum packet_receive packet_receive_of(const char *word)
{
    return strcmp(word, "xdp") == 0          ? PACKET_RECEIVE_XDP
           : strcmp(word, "xdp-driver") == 0 ? PACKET_RECEIVE_XDP_DRIVER
                                             : PACKET_RECEIVE_RING;
}

const char *packet_way_receive(const struct packet_way *way)
{
    uint32_t receive = atomic_load_explicit(&way->receive, memory_order_relaxed);

    return !has_engine(way) ? "" : receive == PACKET_RECEIVE_RING ? "ring" : "xdp";
}

const char *packet_way_receive_why(const struct packet_way *way)
{
    static const char *const texts[] = {
#define PACKET_RECEIVE_WHY_TEXT(name, text) text,
        PACKET_RECEIVE_WHYS(PACKET_RECEIVE_WHY_TEXT)
#undef PACKET_RECEIVE_WHY_TEXT
    };

    return has_engine(way) ? texts[atomic_load_explicit(&way->receive_why, memory_order_relaxed)]
                           : "";
}
