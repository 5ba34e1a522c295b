/* A vote chunk by itself: whether it makes sense, and which of its slots mean the same target here
 * (design.md 4). Used by votes.c. */
#ifndef JURY_CORE_VOTE_MATCH_H
#define JURY_CORE_VOTE_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/vote_msg.h"
#include "agent/core/votes.h"

bool vote_chunk_is_well_formed(const struct vote_chunk *chunk);
/* VOTES_DIFFER, VOTES_AHEAD, or VOTES_TAKEN: then its slots count, but for the births above R and
 * the slots that vote_chunk_list_reborn names. */
enum votes_outcome vote_chunk_match(const struct vote_chunk *chunk, const struct votes_here *here);
/* Slots that the sender gave away again after this node's revision, one bit each. */
void vote_chunk_list_reborn(const struct vote_chunk *chunk, const struct votes_here *here,
                            uint8_t reborn[LIMIT_VOTE_SLOTS_PER_CHUNK / 8]);
/* offset: 0..4095 in the chunk. */
uint8_t vote_chunk_said(const struct vote_chunk *chunk, uint32_t offset);

#endif
