#include "agent/core/events.h"

#include <stdlib.h>

#include "common/base/err.h"

const char *event_kind_word(unsigned kind)
{
    switch ((enum event_kind)kind) {
    case EVENT_NONE:
        break;
    case EVENT_VERDICT_CHANGED:
        return "verdict_changed";
    case EVENT_REACHABLE_CHANGED:
        return "reachable_changed";
    case EVENT_OPINION_CHANGED:
        return "opinion_changed";
    case EVENT_GROUP_CHANGED:
        return "group_changed";
    case EVENT_OBSERVERS_CHANGED:
        return "observers_changed";
    case EVENT_CATALOG_ADOPTED:
        return "catalog_adopted";
    case EVENT_CATALOGS_DIFFER:
        return "catalogs_differ";
    case EVENT_PEER_EPOCH:
        return "peer_epoch";
    case EVENT_DRAIN_DONE:
        return "drain_done";
    case EVENT_SELF_DOUBT:
        return "self_doubt";
    case EVENT_GUARD_CHANGED:
        return "guard_changed";
    }
    return "?";
}

int event_ring_init(struct event_ring *ring)
{
    *ring = (struct event_ring){.events = calloc(LIMIT_EVENTS, sizeof *ring->events),
                                .next_sequence = 1};
    return ring->events == NULL ? ERR_NOMEM : 0;
}

void event_ring_close(struct event_ring *ring)
{
    free(ring->events);
    *ring = (struct event_ring){0};
}

struct event *event_ring_add(struct event_ring *ring)
{
    struct event *event = &ring->events[ring->next_sequence % LIMIT_EVENTS];

    *event = (struct event){.sequence = ring->next_sequence++};
    return event;
}

uint64_t event_ring_first(const struct event_ring *ring)
{
    return ring->next_sequence > LIMIT_EVENTS ? ring->next_sequence - LIMIT_EVENTS : 1;
}

const struct event *event_ring_get(const struct event_ring *ring, uint64_t sequence)
{
    if (sequence < event_ring_first(ring) || sequence >= ring->next_sequence) {
        return NULL;
    }
    return &ring->events[sequence % LIMIT_EVENTS];
}
