#include "agent/probe/probe_events.h"

#include "agent/probe/probe_engine.h"

#define EVENTS_PER_WAIT 256

uint32_t probe_events_serve(struct probe_engine *engine,
                            void (*serve)(struct probe_engine *engine,
                                          const struct epoll_event *event))
{
    struct epoll_event events[EVENTS_PER_WAIT];
    uint32_t n_rounds = engine->capacity / EVENTS_PER_WAIT + 1;

    uint32_t n_served = 0;

    for (uint32_t round = 0; round < n_rounds; round++) {
        int n = epoll_wait(engine->fd, events, EVENTS_PER_WAIT, 0);

        for (int i = 0; i < n; i++) {
            serve(engine, &events[i]);
            n_served++;
        }
        if (n < EVENTS_PER_WAIT) {
            break;
        }
    }
    return n_served;
}
