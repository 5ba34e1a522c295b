/* From which address each target is probed, kept from one probe to the next: asking the kernel
 * costs as much as the rest of a half-open probe. What is kept is dropped as soon as the kernel
 * says that addresses, routes, rules or links changed (route_watch.h), and after
 * PACKET_SOURCE_MAX_AGE_S in any case. By target slot; the engine's thread only. */
#ifndef JURY_PROBE_PACKET_SOURCES_H
#define JURY_PROBE_PACKET_SOURCES_H

#include <stdint.h>

#include "agent/core/probe.h"
#include "agent/probe/route_watch.h"

#define PACKET_SOURCE_MAX_AGE_S 60

#define PACKET_SOURCES_MAX 250 /* addresses of a node; what is beyond is not kept */

struct packet_source {
    uint32_t generation;   /* 0 = nothing is kept */
    uint32_t found_s : 24; /* monotonic, modulo 2^24 */
    uint32_t address : 8;  /* index in addresses */
};

struct packet_sources {
    struct route_watch watch;
    uint32_t generation; /* of what was found since the last change; above 0 */
    uint32_t n_slots;
    struct packet_source *by_slot;
    uint32_t n_addresses; /* of this generation: targets are many, and sources few */
    struct addr addresses[PACKET_SOURCES_MAX];
};

void packet_sources_init(struct packet_sources *sources);
/* Of one that is zero, too. */
void packet_sources_close(struct packet_sources *sources);

/* Look for changes: before the first packet_sources_find of a turn, and often enough for what is
 * kept to be believed until the next time. */
void packet_sources_refresh(struct packet_sources *sources);

/* As packet_source_find. now_ns: monotonic. */
enum probe_reason packet_sources_find(struct packet_sources *sources,
                                      const struct probe_target *target, uint64_t now_ns,
                                      struct addr *ret_source);
/* The slot may be another target's from now on. */
void packet_sources_forget(struct packet_sources *sources, uint32_t slot);

#endif
