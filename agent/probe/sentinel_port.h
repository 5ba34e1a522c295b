/* The port that other nodes, and this one itself, probe to find out whether their own probes can be
 * trusted (R-SELF-4): the kernel takes the connection, nothing is ever read or said, and the port
 * is any free one, told to the peers in each hello. Health thread. */
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
/* End the connections that were made meanwhile. Now and then, before the kernel's queue of 128 is
 * full; never waits. Without descriptors they stay in the queue. */
void sentinel_port_drain(struct sentinel_port *port);
/* Again is fine, of one that was opened or whose fd is -1. */
void sentinel_port_close(struct sentinel_port *port);

#endif
