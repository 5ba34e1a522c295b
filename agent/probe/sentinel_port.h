/* The port that other nodes, and this one itself, probe to find out whether their own probes can be
 * trusted (R-SELF-4): the kernel takes the connection, nothing is ever read or said, and the port
 * is any free one, told to the peers in each hello. One thread. */
#ifndef JURY_PROBE_SENTINEL_PORT_H
#define JURY_PROBE_SENTINEL_PORT_H

#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"

struct sentinel_port {
    int fd; /* -1 = closed */
    uint16_t port;
};

/* Errors: ERR_LIMIT (no descriptor), ERR_IO (the address is not ours), with a sentence. */
int sentinel_port_open(struct sentinel_port *port, const struct addr *addr, struct errmsg *err);
/* End the connections that were made meanwhile. Now and then, before the kernel's queue of 128 is
 * full; never waits. Without descriptors they stay in the queue. */
void sentinel_port_drain(struct sentinel_port *port);
void sentinel_port_close(struct sentinel_port *port);

#endif
