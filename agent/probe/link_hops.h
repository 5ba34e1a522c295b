/* To which link, and to which station there, the kernel would send a packet: asked of it over
 * rtnetlink, and kept, so that a packet can be handed to the link as a frame.
 *
 * Only for plain ways: a unicast route without encapsulation by an Ethernet link (veth, VLAN,
 * bridge and bond included) that is up, to a neighbour that the kernel knows to be there now
 * (REACHABLE, or set by hand). For all others there is no hop, and the packet goes by a raw IP
 * socket: then the kernel looks for the neighbour, or finds that it is gone and says so. So, as for
 * every packet of the kernel, one in half a minute or so asks whether the neighbour is still there.
 *
 * What is kept is dropped when routes, addresses, rules or links change (the caller's generation)
 * and after LINK_HOP_MAX_AGE_S; of neighbours the kernel tells each change. By target slot; the
 * engine's thread only. */
#ifndef JURY_PROBE_LINK_HOPS_H
#define JURY_PROBE_LINK_HOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/probe/netlink_ask.h"
#include "common/base/addr.h"
#include "common/base/hash.h"
#include "common/base/idmap.h"

#define LINK_HOP_MAX_AGE_S 60
#define LINK_NEIGHBOURS_MAX 65536 /* packets to those beyond go by the raw IP socket */

struct link_hop {
    int ifindex;
    uint8_t mac[6]; /* of the station */
};

struct link_neighbour {
    struct link_hop hop;
    struct addr addr;
    bool is_known;  /* the kernel was asked */
    bool is_usable; /* and knows that it is there */
};

/* Of a target slot. */
struct link_way {
    uint32_t generation; /* 0 = nothing is kept */
    uint32_t found_s;    /* monotonic */
    uint32_t neighbour;  /* NO_NEIGHBOUR: not by a link */
};

struct link_hops {
    struct netlink_ask ask;
    int watch_fd; /* tells changes of neighbours; -1 = none: there are no hops */
    uint32_t generation;
    uint32_t n_slots;
    struct link_way *by_slot;
    struct link_neighbour *neighbours;
    uint32_t n_neighbours;
    uint32_t n_reserved;
    struct idmap index; /* of neighbours */
    struct hash_key key;
};

/* Never fails: without netlink there are no hops. */
void link_hops_open(struct link_hops *hops);
void link_hops_close(struct link_hops *hops);

/* Look for changes: before the first link_hops_find of a turn. generation: the caller's count of
 * changes of routes, addresses, rules and links; above 0. */
void link_hops_refresh(struct link_hops *hops, uint32_t generation);

/* now_ns: monotonic. False: not by a link, now. */
bool link_hops_find(struct link_hops *hops, uint32_t slot, const struct addr *source,
                    const struct addr *to, uint64_t now_ns, struct link_hop *ret_hop);
/* The slot may be another target's from now on. */
void link_hops_forget(struct link_hops *hops, uint32_t slot);

#endif
