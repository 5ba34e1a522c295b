/* SYNs on their way out, gathered and handed over by one call a way: to a link as frames
 * (link_hops.h) where that is chosen and possible, else to raw IP sockets. What a link does not
 * take goes by IP in the same flush, so a choice of ways never costs a probe. */
#ifndef JURY_PROBE_PACKET_SENDER_H
#define JURY_PROBE_PACKET_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/packet.h"
#include "agent/probe/link_guard.h"
#include "agent/probe/link_hops.h"
#include "agent/probe/packet_socket.h"
#include "agent/probe/packet_way.h"
#include "agent/probe/packet_xdp.h"
#include "agent/probe/probe_counts.h"
#include "common/base/units.h"

/* How soon a packet filter that is set up is seen, and one that went. */
#define PACKET_GUARD_NS NS_PER_SECOND

struct packet_sender {
    const struct packet_socket *sock;
    struct probe_counters *counters;
    struct packet_way *way;
    uint8_t choice;         /* enum packet_send */
    struct packet_xdp *xdp; /* told by which links and from which addresses; NULL = none */
    /* Told of each packet of a flush. place: as given to packet_sender_add. reason: REASON_NONE: it
     * was handed to the kernel. It may not add any. */
    void (*sent)(void *user, uint32_t place, enum probe_reason reason);
    void *user;
    struct link_hops hops;
    struct link_guard guard;
    uint64_t now_ns;     /* of this turn */
    uint64_t guarded_ns; /* when it was looked; 0 = never */
    struct packet_batch batches[PACKET_N_OUTS];
    uint32_t places[PACKET_N_OUTS][PACKET_BATCH];
};

/* Pointers and choice are set by the caller, the rest zero. */
void packet_sender_open(struct packet_sender *sender);
/* Of one that is zero, too. */
void packet_sender_close(struct packet_sender *sender);

/* Look what has changed: before the first packet of a turn. generation: as link_hops_refresh. */
void packet_sender_refresh(struct packet_sender *sender, uint32_t generation, uint64_t now_ns);

/* slot: of the target. is_repeat: of an older packet, which may have been lost on its way: by IP,
 * so that the kernel looks after route and neighbour. May flush what is full. */
void packet_sender_add(struct packet_sender *sender, const struct packet_tcp *tcp, uint32_t slot,
                       uint32_t place, bool is_repeat);
void packet_sender_flush(struct packet_sender *sender);
void packet_sender_forget(struct packet_sender *sender, uint32_t slot);

#endif
