#include "agent/core/address_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/spare.h"

void address_index_close(struct address_index *index)
{
    free(index->links);
    free(index->cells);
    *index = (struct address_index){0};
}

static uint32_t key_of(const struct addr *addr)
{
    static const struct hash_key key = {.k0 = UINT64_C(0x627564676574), .k1 = 0};
    uint8_t what[17];

    what[0] = addr->family;
    memcpy(&what[1], addr->bytes, 16);
    uint32_t hash = (uint32_t)hash_64(&key, what, sizeof what);
    return hash == 0 ? 1 : hash;
}

static uint32_t *cell_of(const struct address_index *index, uint32_t key)
{
    return &index->cells[key & (index->n_cells - 1)];
}

static void chain_in(struct address_index *index, uint32_t slot)
{
    uint32_t *cell = cell_of(index, index->links[slot].key);

    index->links[slot].next = *cell;
    index->links[slot].before = 0;
    if (*cell != 0) {
        index->links[*cell - 1].before = slot + 1;
    }
    *cell = slot + 1;
}

static int grow_cells(struct address_index *index, uint32_t n_slots)
{
    uint32_t n = index->n_cells == 0 ? 64 : index->n_cells;

    while (n < n_slots) {
        n *= 2;
    }
    if (n == index->n_cells) {
        return 0;
    }
    uint32_t *cells = calloc(n, sizeof *cells);
    if (cells == NULL) {
        return ERR_NOMEM;
    }
    free(index->cells);
    index->cells = cells;
    index->n_cells = n;
    for (uint32_t slot = 0; slot < index->n_slots; slot++) {
        if (index->links[slot].key != 0) {
            chain_in(index, slot);
        }
    }
    return 0;
}

int address_index_reserve(struct address_index *index, uint32_t n_slots)
{
    uint32_t n = spare_round_up(n_slots);

    if (n_slots <= index->n_slots) {
        return 0;
    }
    if (grow_cells(index, n_slots) != 0) {
        return ERR_NOMEM;
    }
    struct address_link *links = realloc(index->links, n * sizeof *links);
    if (links == NULL) {
        return ERR_NOMEM;
    }
    memset(links + index->n_slots, 0, (n - index->n_slots) * sizeof *links);
    index->links = links;
    index->n_slots = n;
    return 0;
}

bool address_index_has(const struct address_index *index, uint32_t slot)
{
    return slot < index->n_slots && index->links[slot].key != 0;
}

void address_index_put(struct address_index *index, uint32_t slot, const struct addr *addr)
{
    assert(slot < index->n_slots && index->links[slot].key == 0);
    index->links[slot].key = key_of(addr);
    chain_in(index, slot);
}

void address_index_drop(struct address_index *index, uint32_t slot)
{
    assert(address_index_has(index, slot));
    struct address_link *link = &index->links[slot];

    if (link->before != 0) {
        index->links[link->before - 1].next = link->next;
    } else {
        assert(*cell_of(index, link->key) == slot + 1);
        *cell_of(index, link->key) = link->next;
    }
    if (link->next != 0) {
        index->links[link->next - 1].before = link->before;
    }
    *link = (struct address_link){0};
}

uint32_t address_index_find(const struct address_index *index, const struct addr *addr)
{
    uint32_t key = key_of(addr);

    if (index->n_cells == 0) {
        return ADDRESS_INDEX_NONE;
    }
    for (uint32_t at = *cell_of(index, key); at != 0; at = index->links[at - 1].next) {
        if (index->links[at - 1].key == key) {
            return at - 1;
        }
    }
    return ADDRESS_INDEX_NONE;
}
