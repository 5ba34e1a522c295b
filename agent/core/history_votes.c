#include "agent/core/history_votes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

#define MASKS 5

static uint8_t mask_bytes_for(uint32_t n_nodes)
{
    return n_nodes <= 8 ? 1 : n_nodes <= 16 ? 2 : n_nodes <= 32 ? 4 : 8;
}

static size_t slot_bytes(const struct votes_store *store)
{
    return MASKS * (size_t)store->mask_bytes + 1;
}

uint32_t votes_store_slot_bytes(uint32_t n_nodes)
{
    return MASKS * (uint32_t)mask_bytes_for(n_nodes) + 1;
}

void votes_store_close(struct votes_store *store)
{
    free(store->bytes);
    *store = (struct votes_store){0};
}

int votes_store_reserve(struct votes_store *store, uint32_t n_slots, uint32_t n_nodes)
{
    uint8_t mask_bytes = mask_bytes_for(n_nodes);
    struct votes_store to = {.n_slots = n_slots > store->n_slots ? n_slots : store->n_slots,
                             .mask_bytes =
                                 mask_bytes > store->mask_bytes ? mask_bytes : store->mask_bytes};

    if (to.n_slots == store->n_slots && to.mask_bytes == store->mask_bytes) {
        return 0;
    }
    if (to.n_slots > 0) {
        to.bytes = calloc(to.n_slots, slot_bytes(&to));
        if (to.bytes == NULL) {
            return ERR_NOMEM;
        }
    }
    for (uint32_t slot = 0; slot < store->n_slots; slot++) {
        struct history_votes votes = votes_store_get(store, slot);

        votes_store_put(&to, slot, &votes);
    }
    free(store->bytes);
    *store = to;
    return 0;
}

/* Little-endian. */
static uint64_t get_mask(const uint8_t *bytes, uint8_t n_bytes)
{
    uint64_t mask = 0;

    for (uint8_t i = 0; i < n_bytes; i++) {
        mask |= (uint64_t)bytes[i] << (8 * i);
    }
    return mask;
}

static void put_mask(uint8_t *bytes, uint8_t n_bytes, uint64_t mask)
{
    assert(n_bytes == 8 || mask >> (8 * n_bytes) == 0);
    for (uint8_t i = 0; i < n_bytes; i++) {
        bytes[i] = (uint8_t)(mask >> (8 * i));
    }
}

struct history_votes votes_store_get(const struct votes_store *store, uint32_t slot)
{
    const uint8_t *at = store->bytes + slot * slot_bytes(store);
    uint8_t n = store->mask_bytes;

    assert(slot < store->n_slots);
    return (struct history_votes){
        .fails = get_mask(at, n),
        .passes = get_mask(at + n, n),
        .lost_fails = get_mask(at + 2 * n, n),
        .lost_passes = get_mask(at + 3 * n, n),
        .electors = get_mask(at + 4 * n, n),
        .own_opinion = at[5 * n] & 0x7f,
        .own_is_suspect = (at[5 * n] & 0x80) != 0,
    };
}

void votes_store_put(struct votes_store *store, uint32_t slot, const struct history_votes *votes)
{
    uint8_t *at = store->bytes + slot * slot_bytes(store);
    uint8_t n = store->mask_bytes;

    assert(slot < store->n_slots);
    put_mask(at, n, votes->fails);
    put_mask(at + n, n, votes->passes);
    put_mask(at + 2 * n, n, votes->lost_fails);
    put_mask(at + 3 * n, n, votes->lost_passes);
    put_mask(at + 4 * n, n, votes->electors);
    at[5 * n] = (uint8_t)(votes->own_opinion | (votes->own_is_suspect ? 0x80 : 0));
}
