/* What may stand between this node's packets and the wire: a frame that is handed to a link
 * (link_hops.h) goes past packet filter, connection tracking, IPsec and programs of its control
 * group. Where there is any of them, packets have to go the kernel's whole way: rules must see
 * them, and connection tracking that has not seen a SYN takes the RST that ends its probe for
 * INVALID, which rules may drop, so that backends would keep half-open connections.
 *
 * And such a program may choose the way of all sockets of inet that a process opens, as that of
 * `ip vrf exec` binds them to a VRF: the same address may be another host there. It does nothing to
 * packet sockets, and the routes that are asked for frames are those of nobody bound.
 *
 * Traffic control, and nftables' hook `egress` of a link, do see such frames. Not looked for are
 * BPF programs attached to netfilter without nftables, and those of the control group where its
 * hierarchy is not mounted.
 *
 * Not a security boundary: a link that is chosen by hand is used whatever this says, unless sockets
 * are bound: that is no rule to be seen, but the network that was meant. */
#ifndef JURY_PROBE_LINK_GUARD_H
#define JURY_PROBE_LINK_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/probe/netlink_ask.h"

/* X(name, a clause for people: what is there) */
#define LINK_OBSTACLES(X)                                                                    \
    X(LINK_CLEAR, "no packet filter, connection tracking or IPsec is here to see them")      \
    X(LINK_NFTABLES, "nftables has chains here")                                             \
    X(LINK_IPTABLES, "iptables has tables here")                                             \
    X(LINK_CONNTRACK, "connection tracking is in use here")                                  \
    X(LINK_IPVS, "IPVS has services here")                                                   \
    X(LINK_IPSEC, "IPsec has policies for what leaves here")                                 \
    X(LINK_CGROUP, "the control group of the agent has programs that see what it sends")     \
    X(LINK_BOUND, "sockets of the agent are bound to a device or marked, as by ip vrf exec") \
    X(LINK_UNSEEN, "the agent cannot see packet filters: that needs root and CAP_NET_ADMIN")

enum link_obstacle {
#define LINK_OBSTACLE_ENUM(name, text) name,
    LINK_OBSTACLES(LINK_OBSTACLE_ENUM)
#undef LINK_OBSTACLE_ENUM
    LINK_N_OBSTACLES
};

/* Static. */
const char *link_obstacle_text(enum link_obstacle obstacle);

struct link_guard {
    struct netlink_ask netfilter; /* opened when they are first needed */
    struct netlink_ask ipsec;
};

/* Zero-initialised is ready; closing that is fine. */
void link_guard_close(struct link_guard *guard);

/* The first that is there now, in the namespace of this thread. Some dozen system calls. */
enum link_obstacle link_guard_look(struct link_guard *guard);

/* LINK_BOUND alone: whether a socket that is opened now is bound to a device or marked. */
bool link_guard_is_bound(void);

#endif
