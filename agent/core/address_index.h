/* Which target slots are at the same address. Addresses with the same 32-bit key count as one: of
 * 100,000 that is one pair. Leaving takes no look at the others there: thousands at one address are
 * one long chain. */
#ifndef JURY_CORE_ADDRESS_INDEX_H
#define JURY_CORE_ADDRESS_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"

#define ADDRESS_INDEX_NONE UINT32_MAX

struct address_link {
    uint32_t key;    /* hash of the address, not 0; 0 = the slot is free */
    uint32_t next;   /* slot + 1 of the next in the same cell; 0 = the last */
    uint32_t before; /* likewise; 0 = the first */
};

struct address_index {
    struct address_link *links; /* by slot */
    uint32_t n_slots;
    uint32_t *cells;  /* by key: slot + 1 of the first of a chain */
    uint32_t n_cells; /* a power of two, or 0 */
};

/* Zero-initialised is empty; closing that is fine. */
void address_index_close(struct address_index *index);

/* Room for slots below n_slots. Errors: ERR_NOMEM, nothing changed. */
int address_index_reserve(struct address_index *index, uint32_t n_slots);
bool address_index_has(const struct address_index *index, uint32_t slot);
/* slot: free, with room. */
void address_index_put(struct address_index *index, uint32_t slot, const struct addr *addr);
/* slot: one that is there. */
void address_index_drop(struct address_index *index, uint32_t slot);
/* A slot at that address; ADDRESS_INDEX_NONE: there is none. */
uint32_t address_index_find(const struct address_index *index, const struct addr *addr);

#endif
