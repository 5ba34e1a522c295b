/* The vote table over time: what counts, what is remembered, what lapsed; and reading it. */
#include <assert.h>

#include "agent/core/votes_state.h"
#include "common/base/plant.h"

void votes_find_next(struct votes *votes)
{
    votes->next_ns = VOTES_NEVER;
    for (uint32_t p = 0; p < VOTES_PEERS; p++) {
        if (votes->peers[p].cells == NULL) {
            continue;
        }
        for (uint32_t i = 0; i * LIMIT_VOTE_SLOTS_PER_CHUNK < votes->n_slots; i++) {
            if (votes->peers[p].chunk_due_ns[i] < votes->next_ns) {
                votes->next_ns = votes->peers[p].chunk_due_ns[i];
            }
        }
    }
}

uint64_t votes_next_ns(const struct votes *votes)
{
    return votes->next_ns;
}

/* Age the cells of one chunk: tell of votes past their 3 V, drop those past their memory. */
static void age_chunk(struct votes *votes, struct votes_peer *peer, uint32_t chunk, uint64_t now_ns,
                      struct id_set *changed)
{
    uint32_t first = chunk * LIMIT_VOTE_SLOTS_PER_CHUNK;
    uint64_t due_ns = VOTES_NEVER;

    for (uint32_t i = first; i < first + LIMIT_VOTE_SLOTS_PER_CHUNK && i < votes->n_slots; i++) {
        const struct votes_slot *slot = &votes->slots[i];
        cell *c = &peer->cells[i];

        if (votes_due_of(votes, slot, *c) <= now_ns) {
            if (!plant_is("vote-ages-unseen")) {
                id_set_add(changed, i);
            }
            if (cell_phase(*c) == PHASE_FRESH) {
                *c = cell_in_phase(*c, PHASE_AGED);
            }
            if (votes_due_of(votes, slot, *c) <= now_ns) {
                *c = 0;
            }
        }
        uint64_t slot_due_ns = votes_due_of(votes, slot, *c);
        due_ns = slot_due_ns < due_ns ? slot_due_ns : due_ns;
    }
    peer->chunk_due_ns[chunk] = due_ns;
}

void votes_age(struct votes *votes, uint64_t now_ns, struct id_set *changed)
{
    if (votes->next_ns > now_ns) {
        return;
    }
    for (uint32_t p = 0; p < VOTES_PEERS; p++) {
        struct votes_peer *peer = &votes->peers[p];

        for (uint32_t i = 0; peer->cells != NULL && i * LIMIT_VOTE_SLOTS_PER_CHUNK < votes->n_slots;
             i++) {
            if (peer->chunk_due_ns[i] <= now_ns) {
                age_chunk(votes, peer, i, now_ns, changed);
            }
        }
    }
    votes_find_next(votes);
}

void votes_count(const struct votes *votes, uint32_t slot, uint64_t peers, uint64_t now_ns,
                 struct tally *tally)
{
    assert(slot < votes->n_slots);

    tally->n_fail = 0;
    tally->n_pass = 0;
    tally->n_lost_fail = 0;
    tally->n_lost_pass = 0;
    tally->fails = 0;
    tally->passes = 0;
    tally->lost_fails = 0;
    tally->lost_passes = 0;
    tally->wavers = 0;
    for (uint64_t left = peers; left != 0; left &= left - 1) {
        const struct votes_peer *peer = &votes->peers[__builtin_ctzll(left)];
        cell c = peer->cells == NULL ? 0 : peer->cells[slot];
        bool fails = cell_opinion(c) == OPINION_FAIL;
        uint64_t bit = left & (~left + 1);

        switch (votes_hold_of(votes, &votes->slots[slot], c, now_ns)) {
        case VOTE_COUNTS:
            tally->n_fail = (uint8_t)(tally->n_fail + fails);
            tally->n_pass = (uint8_t)(tally->n_pass + !fails);
            *(fails ? &tally->fails : &tally->passes) |= bit;
            tally->wavers |= cell_wavers(c) ? bit : 0;
            break;
        case VOTE_REMEMBERED:
            tally->n_lost_fail = (uint8_t)(tally->n_lost_fail + fails);
            tally->n_lost_pass = (uint8_t)(tally->n_lost_pass + !fails);
            *(fails ? &tally->lost_fails : &tally->lost_passes) |= bit;
            break;
        case VOTE_NOT_HELD:
            break;
        }
    }
}

void votes_look(const struct votes *votes, uint32_t peer_index, uint32_t slot, uint64_t now_ns,
                struct vote_look *ret_look)
{
    const struct votes_peer *peer = &votes->peers[peer_index];

    assert(peer_index < VOTES_PEERS);
    *ret_look = (struct vote_look){0};
    if (slot >= votes->n_slots || peer->cells == NULL) {
        return;
    }
    cell c = peer->cells[slot];
    ret_look->hold = (uint8_t)votes_hold_of(votes, &votes->slots[slot], c, now_ns);
    ret_look->heard_ns = cell_at_ns(c);
    if (ret_look->hold != VOTE_NOT_HELD) {
        ret_look->opinion = (uint8_t)cell_opinion(c);
    }
    const struct vote_detail *detail = votes_find_detail(peer, slot);
    if (detail == NULL || detail->sequence == 0 || detail->opinion != ret_look->opinion) {
        return;
    }
    ret_look->has_detail = true;
    ret_look->reason = detail->reason;
    ret_look->part = detail->part;
    ret_look->http_status = detail->http_status;
    ret_look->response_us = detail->response_us;
    ret_look->streak = detail->streak;
    ret_look->since_ns = detail->since_ns;
    ret_look->detail_heard_ns = detail->heard_ns;
    ret_look->probe_age_ms = detail->probe_age_ms;
}

void votes_look_peer(const struct votes *votes, uint32_t peer, struct votes_peer_look *ret_look)
{
    assert(peer < VOTES_PEERS);

    *ret_look = votes->peers[peer].look;
    ret_look->epoch = votes->peers[peer].epoch;
    ret_look->catalog_differs = votes->peers[peer].differing_chunks != 0;
}
