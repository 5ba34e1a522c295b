/* Which connections the agent takes while descriptors are short.
 *
 * Whoever reaches a port may open connections without a key, and each costs a descriptor until its
 * handshake fails. A full table of descriptors would take them from probes and the disk, and
 * libzmq's listener of the unix socket ends the process at EMFILE. libzmq accepts by itself and has
 * no switch for it, so accept_gate.c defines accept() and accept4() of this program: libzmq's calls
 * come through there. A connection whose descriptor is above the bar is closed at once and counted,
 * and libzmq is told that the client went away.
 *
 * The kernel gives the lowest free descriptor, so its number says how full the table is. Above the
 * bar of the network stays room for connections from the members' addresses, lest a client that
 * holds a key and thousands of connections keeps a node out that starts anew; above that for the
 * unix socket, above that for probes, disk and dials.
 * Because it stands in for functions of the C library, its state is the process's. Any thread. */
#ifndef JURY_ACCEPT_GATE_H
#define JURY_ACCEPT_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"

/* What connections may take of a limit of open files, in eighths. */
#define ACCEPT_EIGHTHS_NETWORK 5
#define ACCEPT_EIGHTHS_MEMBER 6
#define ACCEPT_EIGHTHS_LOCAL 7
/* A greater limit is for probes: 64 nodes and 256 keys need no more, and each connection is memory
 * as well. */
#define ACCEPT_FILES_MAX 16384

enum accept_side {
    ACCEPT_NETWORK = 0,
    ACCEPT_MEMBER, /* from an address of accept_gate_know */
    ACCEPT_LOCAL,  /* unix socket */
    ACCEPT_SIDES
};

/* The first descriptor that a connection of that side may not have. */
int accept_gate_bar(enum accept_side side, uint64_t files_limit);

/* Where members are reached, and so most likely come from. A member that comes from elsewhere is as
 * any other. n: more than LIMIT_NODES are passed over. */
void accept_gate_know(const struct addr members[], size_t n);

struct accept_refused {
    uint64_t n;
    struct endpoint last; /* the newest of them; ADDR_NONE: not known, or of the unix socket */
};
/* What was turned away on that side since it was taken last. */
struct accept_refused accept_gate_take_refused(enum accept_side side);

#endif
