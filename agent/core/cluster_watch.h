/* What becomes of the other nodes, told as events: a node is lost and heard again, the leader
 * changes or is missing, too few votes count and enough again. Pure; a second's look at a time.
 *
 * What is told has a bound: of each of these so many changes at once, then one a while; what was
 * left out is counted, and the state that lasts is told in the end. */
#ifndef JURY_CORE_CLUSTER_WATCH_H
#define JURY_CORE_CLUSTER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/units.h"

#define CLUSTER_WATCH_TOLD 6 /* changes of one thing at once, then one each: */
#define CLUSTER_WATCH_REFILL_NS (120 * NS_PER_SECOND)
#define CLUSTER_WATCH_SETTLE_NS (2 * NS_PER_SECOND) /* a missing leader or vote may pass */
#define CLUSTER_WATCH_BEGIN_NS (10 * NS_PER_SECOND) /* what is not yet there at the start */
/* Since the last look: this node stood still, and nobody was silent. */
#define CLUSTER_WATCH_STANDSTILL_NS (3 * NS_PER_SECOND)

struct cluster_look_peer {
    uint64_t node_id;
    uint64_t heard_ns; /* its last message, monotonic; 0 = never */
};

struct cluster_look {
    uint64_t now_ns;
    uint64_t lost_ns; /* who is silent for longer is lost */
    struct cluster_look_peer peers[LIMIT_NODES];
    uint32_t n_peers;
    bool has_store; /* leader_id is known, or known to be nobody's */
    uint64_t leader_id;
    uint8_t n_observers, n_trusted, quorum; /* n_observers 0: not known yet */
};

/* One thing to tell. */
struct cluster_news {
    uint8_t kind;     /* enum event_kind: EVENT_PEER_LOST, EVENT_LEADER_CHANGED, EVENT_FEW_VOTES */
    uint8_t to;       /* 1 it is bad: lost, no leader, too few; 0 it is well again */
    uint64_t node_id; /* the peer or the leader; 0 = it is about this node */
    uint64_t before_id;             /* the leader that was told last; 0 = none */
    uint64_t span_ns;               /* it is bad since, or was */
    uint32_t n_untold;              /* changes in between that were not told */
    uint8_t n_have, n_of, n_needed; /* nodes heard, this one included; of votes what counts */
};

/* One thing that is watched. Values: see cluster_watch.c; 0 = none yet. */
struct watch_item {
    uint64_t seen, settled, told;
    uint64_t seen_ns;   /* first look at `seen` */
    uint64_t bad_ns;    /* since when it was bad, the last time */
    uint32_t n_settled; /* changes since the last that was told */
    uint32_t n_used;    /* of CLUSTER_WATCH_TOLD */
    uint64_t refill_ns; /* when that is one less; n_used > 0 */
};

struct watch_peer {
    uint64_t node_id;
    uint64_t first_ns; /* watched since */
    struct watch_item item;
};

struct cluster_watch {
    struct watch_peer peers[LIMIT_NODES];
    uint32_t n_peers;
    struct watch_item leader, votes;
    uint64_t looked_ns; /* 0 = never */
    uint64_t floor_ns;  /* silence begins then at the earliest */
};

#define CLUSTER_NEWS_MAX (LIMIT_NODES + 2)

/* watch: zeroed at the start. look: its peers without this node; who is not there any more is
 * forgotten. Returns the number of ret_news. */
uint32_t cluster_watch_look(struct cluster_watch *watch, const struct cluster_look *look,
                            struct cluster_news ret_news[CLUSTER_NEWS_MAX]);

#endif
