#include "agent/probe/probe_places.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "common/base/limits.h"

int probe_places_init(struct probe_places *places, uint32_t capacity)
{
    assert(capacity >= 1 && capacity <= LIMIT_PROBES_IN_FLIGHT);
    *places = (struct probe_places){.capacity = capacity, .first_free = NO_PLACE};
    timers_init(&places->timers);
    places->places = calloc(capacity, sizeof *places->places);
    places->by_slot = calloc(LIMIT_TARGETS, sizeof *places->by_slot);
    if (places->places == NULL || places->by_slot == NULL ||
        timers_reserve(&places->timers, capacity) != 0) {
        return ERR_NOMEM;
    }
    for (uint32_t i = capacity; i-- > 0;) {
        places->places[i].next_free = places->first_free;
        places->first_free = i;
    }
    return 0;
}

void probe_places_close(struct probe_places *places)
{
    timers_close(&places->timers);
    free(places->places);
    free(places->by_slot);
}

bool probe_places_have_room(const struct probe_places *places)
{
    return places->first_free != NO_PLACE;
}

uint32_t probe_places_take(struct probe_places *places, uint32_t slot)
{
    uint32_t place = places->first_free;

    assert(place != NO_PLACE);
    assert(slot < LIMIT_TARGETS);
    assert(places->by_slot[slot] == 0);
    places->first_free = places->places[place].next_free;
    places->places[place].slot = slot;
    places->by_slot[slot] = place + 1;
    places->n_taken++;
    return place;
}

void probe_places_release(struct probe_places *places, uint32_t place)
{
    struct probe_place *it = &places->places[place];

    assert(places->by_slot[it->slot] == place + 1);
    timers_clear(&places->timers, place);
    places->by_slot[it->slot] = 0;
    it->generation++;
    it->next_free = places->first_free;
    places->first_free = place;
    places->n_taken--;
}

uint32_t probe_places_of_slot(const struct probe_places *places, uint32_t slot)
{
    assert(slot < LIMIT_TARGETS);
    return places->by_slot[slot] == 0 ? NO_PLACE : places->by_slot[slot] - 1;
}

uint64_t probe_places_token(const struct probe_places *places, uint32_t place)
{
    return (uint64_t)places->places[place].generation << 32 | place;
}

uint32_t probe_places_of_token(const struct probe_places *places, uint64_t token)
{
    uint32_t place = (uint32_t)token;

    assert(place < places->capacity);
    return places->places[place].generation == token >> 32 ? place : NO_PLACE;
}
