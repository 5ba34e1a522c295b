#include "agent/core/vote_match.h"

#include <string.h>

#include "common/base/plant.h"

bool vote_chunk_is_well_formed(const struct vote_chunk *chunk)
{
    if (chunk->epoch == 0 || chunk->sequence == 0 || chunk->chunk >= LIMIT_VOTE_CHUNKS ||
        chunk->n_chunks > LIMIT_VOTE_CHUNKS || chunk->chunk >= chunk->n_chunks ||
        chunk->n_births > LIMIT_BIRTHS_PER_CHUNK) {
        return false;
    }
    for (uint32_t i = 0; i < chunk->n_births; i++) {
        if (chunk->births[i].slot / LIMIT_VOTE_SLOTS_PER_CHUNK != chunk->chunk) {
            return false;
        }
    }
    return true;
}

enum votes_outcome vote_chunk_match(const struct vote_chunk *chunk, const struct votes_here *here)
{
    if (chunk->revision == here->revision &&
        (chunk->digest.low != here->digest.low || chunk->digest.high != here->digest.high)) {
        return VOTES_DIFFER;
    }
    if (plant_is("vote-whole-chunk") && chunk->revision != here->revision) {
        return VOTES_AHEAD;
    }
    if (here->revision < chunk->revision && here->revision < chunk->floor) {
        return VOTES_AHEAD;
    }
    return VOTES_TAKEN;
}

void vote_chunk_list_reborn(const struct vote_chunk *chunk, const struct votes_here *here,
                            uint8_t reborn[LIMIT_VOTE_SLOTS_PER_CHUNK / 8])
{
    memset(reborn, 0, LIMIT_VOTE_SLOTS_PER_CHUNK / 8);
    for (uint32_t i = 0; i < chunk->n_births; i++) {
        uint32_t offset = chunk->births[i].slot % LIMIT_VOTE_SLOTS_PER_CHUNK;

        if (chunk->births[i].birth > here->revision) {
            reborn[offset / 8] |= (uint8_t)(1 << (offset % 8));
        }
    }
}

uint8_t vote_chunk_said(const struct vote_chunk *chunk, uint32_t offset)
{
    return chunk->opinions[offset / 4] >> (offset % 4 * 2) & 3;
}
