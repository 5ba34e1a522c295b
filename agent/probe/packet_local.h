/* What of this node a packet needs that is made by hand: its ports and its source address. A socket
 * of the kernel would get both by itself. */
#ifndef JURY_PROBE_PACKET_LOCAL_H
#define JURY_PROBE_PACKET_LOCAL_H

#include <stdint.h>

#include "agent/core/probe.h"
#include "common/base/err.h"

/* Ports of both families and all addresses of this node, taken and never listened on: nobody else
 * gets them, neither by bind nor for a connection of its own, and the kernel answers what comes for
 * them with RST, the end of each half-open probe, since no connection is there.
 *
 * Several, so that consecutive probes of one backend differ in their port: a path that remembers
 * the last connection, and saw no end of it, may hold the next one for a stray packet. */
#define PACKET_PORTS 32

struct packet_ports {
    int fds[PACKET_PORTS]; /* -1 = none */
    uint16_t ports[PACKET_PORTS];
};

/* Any free ones. Errors, with a sentence: ERR_LIMIT (descriptors), ERR_BUSY (none is free), ERR_IO;
 * nothing is taken then. */
int packet_ports_open(struct packet_ports *ports, struct errmsg *err);
void packet_ports_close(struct packet_ports *ports);

/* The address that a packet to the target comes from: its source if it has one and this node owns
 * it, else the kernel's choice by its routes. Nothing is sent.
 * Returns REASON_NONE, or why no packet can leave. */
enum probe_reason packet_source_find(const struct probe_target *target, struct addr *ret_source);

#endif
