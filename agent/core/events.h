/* What happened on this node, for `nodectl events`, the log and hooks: a bounded ring, oldest out
 * first. Entries carry the votes that decided, so that an event can be understood without asking
 * again (spec.md 5). */
#ifndef JURY_CORE_EVENTS_H
#define JURY_CORE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/limits.h"

enum event_kind {
    EVENT_NONE = 0,
    EVENT_VERDICT_CHANGED = 1,   /* from, to: enum health_state */
    EVENT_REACHABLE_CHANGED = 2, /* to: 0 reachable, 1 unreachable from here */
    EVENT_OPINION_CHANGED = 3,   /* this node's own; from, to: enum opinion */
    EVENT_GROUP_CHANGED = 4,     /* from, to: enum group_state */
    EVENT_OBSERVERS_CHANGED = 5, /* from, to: n */
    EVENT_CATALOG_ADOPTED = 6, /* revision; actor of its command; from: 1 = it follows the one that
                                  was in use, 0 = others came in between, or it is the first */
    EVENT_CATALOGS_DIFFER = 7, /* alarm: node_id has another catalog at the same revision */
    EVENT_PEER_EPOCH = 8,      /* node_id was started again */
    EVENT_DRAIN_DONE = 9,      /* all nodes are done with a backend's drain or removal */
    EVENT_SELF_DOUBT = 10,     /* from, to: kinds of probes (bits) that this node doubts;
                                  doubt_score, doubt_causes */
    EVENT_GUARD_CHANGED = 11,  /* guard; to: 1 entered, 0 left, or GUARD_EVENT_KEPT; of a group,
                                  or  of all without one */
    EVENT_HELD_CHANGED = 12,   /* to: 1 a hold keeps a backend in service that the votes would take
                                  out, 0 not any more; hold_source, actor; n_backends */
    EVENT_ADMIN_CHANGED = 13, /* from, to: enum admin_state; actor, if one alone changed the catalog
                                 meanwhile */
    EVENT_CERTIFICATE = 14, /* to: 1 a backend's certificate ends soon, 0 not any more; cert_day */
    EVENT_DEPENDENCY_CHANGED = 15, /* from, to: enum health_state of one check of class dependency;
                                      check says which */
    EVENT_PROBE_BUDGET = 16,       /* to: 1 the budget delays probes, 0 not any more; delay_ns */
    EVENT_PEER_LOST = 17, /* node_id; to: 1 lost, 0 heard again; span_ns, n_untold: these and the
                             next two are of cluster_watch.h */
    EVENT_LEADER_CHANGED = 18, /* to: 1 there is none, 0 there is; node_id, before_id */
    EVENT_FEW_VOTES = 19       /* to: 1 fewer count than verdicts need, 0 enough again */
};
/* Of the shadow: its time is over, and it goes on, as it would take out too many. */
#define GUARD_EVENT_KEPT 2
const char *guard_change_word(unsigned to); /* "off", "on", "kept" */

/* Votes kept with an event, those that decided before those against it; more are counted in n_fail
 * and n_pass only. */
#define EVENT_VOTES 8

struct event_vote {
    uint64_t node_id;
    uint8_t opinion; /* enum opinion */
    uint8_t reason;  /* enum probe_reason; REASON_NONE = not received */
    uint8_t part;    /* of several checks: whose reason it is, from 1; 0 = not told */
    uint16_t http_status;
    uint64_t age_ns; /* since it was heard */
};

struct event {
    uint64_t sequence; /* from 1, no gaps */
    uint64_t at_ns;    /* monotonic; the shell knows its wall time */
    uint8_t kind;      /* enum event_kind */
    uint8_t from;
    uint8_t to;
    uint8_t marks;  /* enum health_mark, after the event */
    uint8_t reason; /* enum probe_reason: of the most frequent deciding vote */
    uint16_t http_status;
    uint16_t cert_day;   /* as in struct cert_end */
    uint8_t guard;       /* enum guard_kind */
    uint8_t hold_source; /* of the hold: enum hold_source */
    uint8_t n_observers; /* n */
    uint8_t n_counted;   /* c */
    uint8_t n_fail;
    uint8_t n_pass;
    bool is_by_own; /* this node's own vote decided: votes has no other one */
    uint8_t n_votes;
    uint8_t doubt_score;  /* 0..7, the highest of all kinds */
    uint8_t doubt_causes; /* bits 1 << enum doubt_cause */
    uint8_t n_uncounted;  /* of a drain that is done: nodes whose flows nobody counts */
    uint8_t n_needed;     /* votes that have to count */
    uint32_t n_untold;    /* changes of the same thing before, that were not told */
    uint64_t span_ns;     /* so long it was so, or is already */
    uint64_t before_id;   /* the leader before */
    uint64_t delay_ns;    /* of the probe budget: the longest delay so far */
    uint64_t n_flows;     /* of a drain that is done: left where they are counted */
    uint32_t n_backends;  /* so many of the group, told together; 0 = the one that is named */
    uint64_t node_id;     /* the peer, or this node */
    uint64_t revision;
    uint64_t since_first_fail_ns;     /* verdicts to unhealthy: since the start of this node's first
                                         failing probe of the streak; 0 = none of its own */
    char group[LIMIT_NAME_BYTES + 1]; /* empty when it is no group's */
    /* Of several checks the one that it is about, or whose reason is told; else empty. */
    char check[LIMIT_CHECK_NAME_BYTES + 1];
    char actor[LIMIT_NAME_BYTES + 1]; /* whose doing it was; empty = nobody's, or not known */
    struct endpoint backend;          /* family 0 when it is no backend's */
    struct endpoint probed;           /* where it is probed, if not there; else family 0 */
    struct event_vote votes[EVENT_VOTES];
};

struct event_ring {
    struct event *events; /* LIMIT_EVENTS of them */
    uint64_t next_sequence;
};

/* Errors: ERR_NOMEM. */
int event_ring_init(struct event_ring *ring);
void event_ring_close(struct event_ring *ring);
/* The place for the next entry, zeroed, with its sequence set. */
struct event *event_ring_add(struct event_ring *ring);
/* The oldest sequence still kept; == next_sequence when there is none. */
uint64_t event_ring_first(const struct event_ring *ring);
/* NULL when it is no longer, or not yet, kept. */
const struct event *event_ring_get(const struct event_ring *ring, uint64_t sequence);

#endif
