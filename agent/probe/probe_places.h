/* The places of the probes that an engine has under way: which are free, whose target each taken
 * one is, and when something of it is due. Bookkeeping alone: no clock, no descriptor, no result.
 *
 * Each engine has one, and beside it an array of its own, as long, with what it knows of the probe
 * in each place. The engine's thread only. */
#ifndef JURY_PROBE_PLACES_H
#define JURY_PROBE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/timers.h"

#define NO_PLACE UINT32_MAX

struct probe_place {
    uint32_t slot;       /* of its target; while it is taken */
    uint32_t generation; /* how often it became free */
    uint32_t next_free;
};

struct probe_places {
    struct timers timers;       /* by place; set and popped by the engine, cleared by release */
    struct probe_place *places; /* capacity of them */
    uint32_t *by_slot;          /* target slot -> place + 1; 0 = none */
    uint32_t capacity;
    uint32_t first_free; /* NO_PLACE = all are taken */
    uint32_t n_taken;
};

/* All are free. capacity: 1..LIMIT_PROBES_IN_FLIGHT. Errors: ERR_NOMEM; close is needed then too.
 * Close is fine for one that is zero. */
int probe_places_init(struct probe_places *places, uint32_t capacity);
void probe_places_close(struct probe_places *places);

bool probe_places_have_room(const struct probe_places *places);
/* Take a free one, there must be one, for a target slot that has none. */
uint32_t probe_places_take(struct probe_places *places, uint32_t slot);
/* It is free, its timer is cleared, and its token is no longer valid. */
void probe_places_release(struct probe_places *places, uint32_t place);
/* The place of a target slot (0..LIMIT_TARGETS-1); NO_PLACE: it has none. */
uint32_t probe_places_of_slot(const struct probe_places *places, uint32_t slot);

/* For events of a descriptor: tells a late one of the place's last user apart. Below UINT64_MAX. */
uint64_t probe_places_token(const struct probe_places *places, uint32_t place);
/* token: of probe_places_token. NO_PLACE: who got it has released the place. */
uint32_t probe_places_of_token(const struct probe_places *places, uint64_t token);

#endif
