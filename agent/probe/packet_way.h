/* By which way half-open probes leave, and by which their answers are seen: what was asked for, and
 * what is done now and why. Written by the thread of the engine, read by anybody. */
#ifndef JURY_PROBE_PACKET_WAY_H
#define JURY_PROBE_PACKET_WAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/probe/link_guard.h"

/* How SYNs are sent. */
enum packet_send {
    PACKET_SEND_AUTO = 0, /* by the link where nothing stands between (link_guard.h), else by IP */
    PACKET_SEND_IP,       /* raw IP socket: the kernel's whole way */
    PACKET_SEND_LINK      /* a frame to the link, where there is a hop (link_hops.h) */
};

/* How answers are seen. */
enum packet_receive {
    PACKET_RECEIVE_RING = 0, /* packet_socket.h */
    PACKET_RECEIVE_XDP,      /* SYN-ACKs by packet_xdp.h where it can be, all else by the ring */
    PACKET_RECEIVE_XDP_DRIVER
};

/* X(name, a clause for people: why they are seen as they are) */
#define PACKET_RECEIVE_WHYS(X)                                                               \
    X(RECEIVE_CHOSEN, "as configured")                                                       \
    X(RECEIVE_NOT_BUILT, "the agent was built without XDP")                                  \
    X(RECEIVE_REFUSED, "the kernel refuses the XDP program: that needs root or CAP_BPF and " \
                       "CAP_NET_ADMIN")                                                      \
    X(RECEIVE_WAITING, "no probe has left by a link yet")                                    \
    X(RECEIVE_BY_IP, "XDP is for probes that are sent by the link")                          \
    X(RECEIVE_NO_ATTACH, "the link takes no XDP program: it has one, or its driver cannot")  \
    X(RECEIVE_UNDER_VLAN, "probes leave by a link and by a VLAN or the like that is on it")  \
    X(RECEIVE_NO_ROOM, "probes leave by more links or from more addresses than XDP is for")

enum packet_receive_why {
#define PACKET_RECEIVE_WHY_ENUM(name, text) name,
    PACKET_RECEIVE_WHYS(PACKET_RECEIVE_WHY_ENUM)
#undef PACKET_RECEIVE_WHY_ENUM
    PACKET_N_RECEIVE_WHYS
};

/* Of the agent's options: "auto", "ip", "link"; "ring", "xdp", "xdp-driver". */
enum packet_send packet_send_of(const char *word);
enum packet_receive packet_receive_of(const char *word);

/* In the place of an obstacle: the configuration says so. */
#define PACKET_WAY_CHOSEN LINK_N_OBSTACLES

/* One word, so that nobody sees a way with the reason of another. Zero: there is no such engine. */
struct packet_way {
    _Atomic uint32_t word; /* private */
};

/* The engine's thread. why: enum link_obstacle, or PACKET_WAY_CHOSEN. */
void packet_way_set_send(struct packet_way *way, enum packet_send send, uint32_t why);
/* is_xdp: of any link. */
void packet_way_set_receive(struct packet_way *way, bool is_xdp, enum packet_receive_why why);
bool packet_way_is_by_link(const struct packet_way *way);

/* For people. */
struct packet_way_words {
    const char *send; /* "link", "ip" */
    const char *send_why;
    const char *receive; /* "ring", "xdp" */
    const char *receive_why;
};
/* All of one moment, static; empty without an engine. */
struct packet_way_words packet_way_words(const struct packet_way *way);

#endif
