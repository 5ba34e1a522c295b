#include "agent/core/events.h"

#include <stdlib.h>

#include "common/base/err.h"

const char *guard_change_word(unsigned to)
{
    return to == GUARD_EVENT_KEPT ? "kept" : to != 0 ? "on" : "off";
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
