/* By which way half-open probes leave: what was asked for, and what is done now and why. Written by
 * the thread of the engine, read by anybody. */
#ifndef JURY_PROBE_PACKET_WAY_H
#define JURY_PROBE_PACKET_WAY_H

#include <stdatomic.h>
#include <stdint.h>

#include "agent/probe/link_guard.h"

/* How SYNs are sent. */
enum packet_send {
    PACKET_SEND_AUTO = 0, /* by the link where nothing stands between (link_guard.h), else by IP */
    PACKET_SEND_IP,       /* raw IP socket: the kernel's whole way */
    PACKET_SEND_LINK      /* a frame to the link, where there is a hop (link_hops.h) */
};

/* Of the agent's option: "auto", "ip", "link". False: it is none. */
enum packet_send packet_send_of(const char *word);

struct packet_way {
    _Atomic uint32_t send;     /* SEND_IP or SEND_LINK; 0 = no such engine */
    _Atomic uint32_t send_why; /* enum link_obstacle, or PACKET_WAY_CHOSEN */
};

#define PACKET_WAY_CHOSEN UINT32_MAX /* the configuration says so */

/* For people: "link", "ip"; empty without an engine. Static. */
const char *packet_way_send(const struct packet_way *way);
/* One short reason. Static. */
const char *packet_way_send_why(const struct packet_way *way);

#endif
