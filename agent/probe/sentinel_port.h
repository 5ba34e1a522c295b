/* The port that other nodes, and this one itself, probe to find out whether their own probes can be
 * trusted (R-SELF-4). It is any free one, told to the peers in each hello. Health thread.
 *
 * The port is taken and nobody listens on it, so the kernel answers each SYN with RST at once, and
 * that RST is the answer: the SYN went there and something came back. Nothing of this process has a
 * part in it. A port that listens has a queue, which whoever can reach the node may fill, and which
 * has to be emptied by the very process that is in question: 440 connections a second made three
 * nodes doubt themselves at a time. Here strangers find nothing to fill, the kernel makes no socket
 * for them, and RSTs to a closed port are not counted against a limit as ICMP messages are.
 *
 * That the port is taken keeps others from listening on it; connections of this node never get it
 * as their own port, since it was bound without SO_REUSEADDR. A firewall that drops RSTs makes a
 * sentinel silent from the start, and then it means nothing (self_doubt.h). */
#ifndef JURY_PROBE_SENTINEL_PORT_H
#define JURY_PROBE_SENTINEL_PORT_H

#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"

struct sentinel_port {
    int fd; /* -1 = closed */
    uint16_t port;
};

/* Any free port at that address. Errors, with a sentence: ERR_LIMIT (no descriptor), ERR_IO (such
 * as an address that is not ours); the port is closed then. */
int sentinel_port_open(struct sentinel_port *port, const struct addr *addr, struct errmsg *err);
/* Again is fine, of one that was opened or whose fd is -1. */
void sentinel_port_close(struct sentinel_port *port);

#endif
