/* Votes of many slots, as they were counted, in few bytes: masks as wide as the cluster needs,
 * since there are two such values for each target (history.h). Private to agent/core/history*.c. */
#ifndef JURY_CORE_HISTORY_VOTES_H
#define JURY_CORE_HISTORY_VOTES_H

#include <stdbool.h>
#include <stdint.h>

/* The votes on one slot: bits by observers' index. */
struct history_votes {
    uint64_t fails, passes; /* of peers */
    uint64_t lost_fails, lost_passes;
    uint64_t electors;   /* whose votes n is of, when its probes are shared; else 0 */
    uint8_t own_opinion; /* enum opinion, whether it counts or not */
    bool own_is_suspect;
};

/* Zero-initialised is empty. */
struct votes_store {
    uint8_t *bytes;
    uint32_t n_slots;
    uint8_t mask_bytes; /* 1, 2, 4, 8 */
};

/* Of one slot in a store of so many nodes: 6 up to 8 nodes, 11 up to 16, 21 up to 32, 41 up to 64.
 */
uint32_t votes_store_slot_bytes(uint32_t n_nodes);
/* Room for slots 0..n_slots-1 and indexes 0..n_nodes-1; never shrinks. Errors: ERR_NOMEM, nothing
 * changed. */
int votes_store_reserve(struct votes_store *store, uint32_t n_slots, uint32_t n_nodes);
void votes_store_close(struct votes_store *store);
struct history_votes votes_store_get(const struct votes_store *store, uint32_t slot);
/* Indexes for which there is room. */
void votes_store_put(struct votes_store *store, uint32_t slot, const struct history_votes *votes);

#endif
