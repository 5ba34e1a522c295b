/* Serves what the descriptors of an engine have ready: once, without waiting, and not more than as
 * many probes as the engine can have under way, so that no flood keeps the thread from its
 * deadlines. */
#ifndef JURY_PROBE_EVENTS_H
#define JURY_PROBE_EVENTS_H

#include <stdint.h>
#include <sys/epoll.h>

struct probe_engine;

/* engine: its fd is an epoll descriptor. serve: for each event (borrowed), of the same engine. */
uint32_t probe_events_serve(struct probe_engine *engine,
                            void (*serve)(struct probe_engine *engine,
                                          const struct epoll_event *event));

#endif
