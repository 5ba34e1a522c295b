#include "agent/probe/packet_sources.h"

#include <stdlib.h>
#include <string.h>

#include "agent/probe/packet_local.h"
#include "common/base/plant.h"
#include "common/base/spare.h"
#include "common/base/units.h"

#define FOUND_S_MASK ((1U << 24) - 1)

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
        sources->n_addresses = 0;
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

/* Where the address is; PACKET_SOURCES_MAX: there is no room for it. */
static uint32_t address_index(struct packet_sources *sources, const struct addr *addr)
{
    uint32_t i = 0;

    while (i < sources->n_addresses && addr_compare(&sources->addresses[i], addr) != 0) {
        i++;
    }
    if (i == sources->n_addresses && i < PACKET_SOURCES_MAX) {
        sources->addresses[sources->n_addresses++] = *addr;
    }
    return i;
}

static void keep(struct packet_sources *sources, struct packet_source *source,
                 const struct addr *addr, uint32_t now_s)
{
    uint32_t address = address_index(sources, addr);

    if (address < PACKET_SOURCES_MAX) {
        *source = (struct packet_source){.generation = sources->generation,
                                         .found_s = now_s & FOUND_S_MASK,
                                         .address = address & UINT8_MAX};
    }
}

enum probe_reason packet_sources_find(struct packet_sources *sources,
                                      const struct probe_target *target, uint64_t now_ns,
                                      struct addr *ret_source)
{
    struct packet_source *kept = room_of(sources, target->id.slot);
    uint32_t now_s = (uint32_t)(now_ns / NS_PER_SECOND);

    if (kept != NULL && kept->generation == sources->generation &&
        ((now_s - kept->found_s) & FOUND_S_MASK) < PACKET_SOURCE_MAX_AGE_S) {
        *ret_source = sources->addresses[kept->address];
        return REASON_NONE;
    }
    enum probe_reason reason = packet_source_find(target, ret_source);
    if (kept != NULL) {
        kept->generation = 0;
        if (reason == REASON_NONE) {
            keep(sources, kept, ret_source, now_s);
        }
    }
    return reason;
}

void packet_sources_forget(struct packet_sources *sources, uint32_t slot)
{
    if (slot < sources->n_slots) {
        sources->by_slot[slot].generation = 0;
    }
}
