#include "agent/probe/packet_sources.h"

#include <stdlib.h>
#include <string.h>

#include "agent/probe/packet_local.h"
#include "common/base/plant.h"
#include "common/base/spare.h"
#include "common/base/units.h"

void packet_sources_init(struct packet_sources *sources)
{
    *sources = (struct packet_sources){.generation = 1};
    route_watch_open(&sources->watch);
}

void packet_sources_close(struct packet_sources *sources)
{
    if (sources->generation != 0) {
        route_watch_close(&sources->watch);
    }
    free(sources->by_slot);
    *sources = (struct packet_sources){.generation = 0};
}

void packet_sources_refresh(struct packet_sources *sources)
{
    if (route_watch_changed(&sources->watch) && !plant_is("stale-source")) {
        sources->generation = sources->generation == UINT32_MAX ? 1 : sources->generation + 1;
    }
}

/* Where the slot's is kept; NULL: there is no memory for it. */
static struct packet_source *room_of(struct packet_sources *sources, uint32_t slot)
{
    uint32_t n_slots = spare_round_up(slot + 1);

    if (slot < sources->n_slots) {
        return &sources->by_slot[slot];
    }
    struct packet_source *by_slot = realloc(sources->by_slot, n_slots * sizeof *by_slot);
    if (by_slot == NULL) {
        return NULL;
    }
    memset(by_slot + sources->n_slots, 0, (n_slots - sources->n_slots) * sizeof *by_slot);
    sources->by_slot = by_slot;
    sources->n_slots = n_slots;
    return &by_slot[slot];
}

enum probe_reason packet_sources_find(struct packet_sources *sources,
                                      const struct probe_target *target, uint64_t now_ns,
                                      struct addr *ret_source)
{
    struct packet_source *kept = room_of(sources, target->id.slot);
    uint32_t now_s = (uint32_t)(now_ns / NS_PER_SECOND);

    if (kept != NULL && kept->generation == sources->generation &&
        now_s - kept->found_s < PACKET_SOURCE_MAX_AGE_S) {
        *ret_source = kept->addr;
        return REASON_NONE;
    }
    enum probe_reason reason = packet_source_find(target, ret_source);
    if (kept != NULL) {
        *kept = (struct packet_source){
            .generation = reason == REASON_NONE ? sources->generation : 0,
            .found_s = now_s,
            .addr = *ret_source,
        };
    }
    return reason;
}

void packet_sources_forget(struct packet_sources *sources, uint32_t slot)
{
    if (slot < sources->n_slots) {
        sources->by_slot[slot].generation = 0;
    }
}
