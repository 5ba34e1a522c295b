#include "agent/core/votes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/vote_match.h"
#include "agent/core/votes_state.h"
#include "common/base/err.h"
#include "common/base/plant.h"

#define DETAILS_MIN 64

struct votes *votes_new(void)
{
    struct votes *votes = calloc(1, sizeof *votes);

    if (votes == NULL) {
        return NULL;
    }
    votes->next_ns = VOTES_NEVER;
    for (uint32_t peer = 0; peer < VOTES_PEERS; peer++) {
        for (uint32_t i = 0; i < LIMIT_VOTE_CHUNKS; i++) {
            votes->peers[peer].chunk_due_ns[i] = VOTES_NEVER;
        }
    }
    return votes;
}

static void forget_details(struct votes_peer *peer)
{
    free(peer->details.ring);
    free(peer->details.places);
    peer->details = (struct vote_details){0};
}

void votes_free(struct votes *votes)
{
    if (votes == NULL) {
        return;
    }
    for (uint32_t peer = 0; peer < VOTES_PEERS; peer++) {
        free(votes->peers[peer].cells);
        forget_details(&votes->peers[peer]);
    }
    free(votes->slots);
    free(votes);
}

/* Nothing, when there is no array yet. */
static int grow(void **array, size_t item_bytes, uint32_t n_before, uint32_t n_after)
{
    if (*array == NULL) {
        return 0;
    }
    uint8_t *grown = realloc(*array, n_after * item_bytes);
    if (grown == NULL) {
        return ERR_NOMEM;
    }
    memset(grown + n_before * item_bytes, 0, (n_after - n_before) * item_bytes);
    *array = grown;
    return 0;
}

int votes_reserve(struct votes *votes, uint32_t n_slots)
{
    if (n_slots <= votes->n_slots) {
        return 0;
    }
    assert(n_slots <= LIMIT_TARGETS);
    for (uint32_t peer = 0; peer < VOTES_PEERS; peer++) {
        struct votes_peer *of = &votes->peers[peer];

        if (grow((void **)&of->cells, sizeof *of->cells, votes->n_slots, n_slots) != 0 ||
            grow((void **)&of->details.places, sizeof *of->details.places, votes->n_slots,
                 n_slots) != 0) {
            return ERR_NOMEM;
        }
    }
    if (votes->slots == NULL) {
        votes->slots = calloc(n_slots, sizeof *votes->slots);
    } else if (grow((void **)&votes->slots, sizeof *votes->slots, votes->n_slots, n_slots) != 0) {
        return ERR_NOMEM;
    }
    if (votes->slots == NULL) {
        return ERR_NOMEM;
    }
    votes->n_slots = n_slots;
    return 0;
}

void votes_set_interval(struct votes *votes, uint64_t vote_interval_ns)
{
    assert(vote_interval_ns > 0);

    if (votes->vote_interval_ns == vote_interval_ns) {
        return;
    }
    votes->vote_interval_ns = vote_interval_ns;
    /* Every age is another one now: one that had stopped counting may count again, and is to be
     * told of once more. */
    for (uint32_t p = 0; p < VOTES_PEERS; p++) {
        struct votes_peer *peer = &votes->peers[p];

        if (peer->cells == NULL) {
            continue;
        }
        for (uint32_t slot = 0; slot < votes->n_slots; slot++) {
            if (cell_phase(peer->cells[slot]) == PHASE_AGED) {
                peer->cells[slot] = cell_in_phase(peer->cells[slot], PHASE_FRESH);
            }
        }
        memset(peer->chunk_due_ns, 0, sizeof peer->chunk_due_ns);
    }
    votes_find_next(votes);
}

void votes_set_slot(struct votes *votes, uint32_t slot, uint64_t birth, uint8_t kinds,
                    uint32_t memory_ms)
{
    assert(slot < votes->n_slots);

    bool is_same = votes->slots[slot].birth == birth || plant_is("slot-keeps-votes");
    votes->slots[slot] =
        (struct votes_slot){.birth = birth, .kinds = kinds, .memory_ms = memory_ms};
    if (is_same) {
        return;
    }
    for (uint32_t p = 0; p < VOTES_PEERS; p++) {
        struct vote_detail *detail = votes_find_detail(&votes->peers[p], slot);

        if (votes->peers[p].cells != NULL) {
            votes->peers[p].cells[slot] = 0;
        }
        if (detail != NULL) {
            *detail = (struct vote_detail){.slot = slot}; /* it keeps its place */
        }
    }
}

void votes_drop_peer(struct votes *votes, uint32_t peer)
{
    assert(peer < VOTES_PEERS);

    free(votes->peers[peer].cells);
    forget_details(&votes->peers[peer]);
    votes->peers[peer] = (struct votes_peer){0};
    for (uint32_t i = 0; i < LIMIT_VOTE_CHUNKS; i++) {
        votes->peers[peer].chunk_due_ns[i] = VOTES_NEVER;
    }
}

static void begin_epoch(struct votes_peer *peer, uint64_t epoch)
{
    peer->epoch = epoch;
    if (!plant_is("epoch-keeps-sequence")) {
        memset(peer->chunk_sequence, 0, sizeof peer->chunk_sequence);
    }
    forget_details(peer);
    peer->plant_base_ns = 0;
}

bool votes_note_epoch(struct votes *votes, uint32_t peer, uint64_t epoch)
{
    assert(peer < VOTES_PEERS);

    if (epoch <= votes->peers[peer].epoch) {
        return false;
    }
    begin_epoch(&votes->peers[peer], epoch);
    return true;
}

static bool make_cells(struct votes *votes, struct votes_peer *peer)
{
    if (peer->cells == NULL && votes->n_slots > 0) {
        peer->cells = calloc(votes->n_slots, sizeof *peer->cells);
    }
    return peer->cells != NULL;
}

static enum votes_outcome refuse(struct votes_peer *peer, enum votes_outcome outcome)
{
    switch (outcome) {
    case VOTES_STALE:
    case VOTES_OLD_EPOCH:
        peer->look.n_stale++;
        break;
    case VOTES_MALFORMED:
    case VOTES_DIFFER:
    case VOTES_AHEAD:
    case VOTES_NO_ROOM:
        peer->look.n_refused++;
        break;
    case VOTES_TAKEN:
    case VOTES_OTHER_TARGET:
        break;
    }
    return outcome;
}

/* Newest epoch only; a newer one begins here. */
static bool epoch_is_current(struct votes_peer *peer, uint64_t epoch)
{
    if (epoch > peer->epoch) {
        begin_epoch(peer, epoch);
    }
    return epoch == peer->epoch || plant_is("vote-old-epoch");
}

/* said: enum opinion but `none`, or VOTE_WAVERS. */
static cell said_cell(uint8_t said, uint64_t now_ns)
{
    return said == VOTE_WAVERS ? cell_of(OPINION_PASS, PHASE_FRESH, now_ns) | CELL_WAVERS
                               : cell_of((enum opinion)said, PHASE_FRESH, now_ns);
}

/* What a heard opinion makes of a cell. Its hold before and after decide whether anyone cares. */
static cell heard(const struct votes *votes, const struct votes_slot *slot, cell before,
                  uint8_t said, uint64_t now_ns)
{
    if (said != OPINION_NONE) {
        return said_cell(said, now_ns);
    }
    switch (votes_hold_of(votes, slot, before, now_ns)) {
    case VOTE_COUNTS:
        return cell_of(cell_opinion(before), PHASE_WITHDRAWN, now_ns);
    case VOTE_REMEMBERED:
        return before;
    case VOTE_NOT_HELD:
        break;
    }
    return 0;
}

static bool means_the_same(const struct votes *votes, const struct votes_slot *slot, cell a, cell b,
                           uint64_t now_ns)
{
    enum vote_hold hold = votes_hold_of(votes, slot, a, now_ns);

    return hold == votes_hold_of(votes, slot, b, now_ns) &&
           (hold == VOTE_NOT_HELD ||
            (cell_opinion(a) == cell_opinion(b) && cell_wavers(a) == cell_wavers(b)));
}

/* What nearly every slot of nearly every vector is: nothing new. */
static bool stays_fresh(const struct votes *votes, cell before, uint8_t said, uint64_t now_ns)
{
    return said != OPINION_NONE && said != VOTE_WAVERS && cell_opinion(before) == said &&
           !cell_wavers(before) && cell_phase(before) == PHASE_FRESH &&
           now_ns <= cell_at_ns(before) + votes_expiry_ns(votes);
}

/* said: enum opinion or VOTE_WAVERS. Returns true if the vote is another one now, in the eyes of
 * who counts. */
static bool take_slot(struct votes *votes, struct votes_peer *peer, uint32_t slot_index,
                      uint8_t said, bool is_suspect, uint64_t now_ns)
{
    const struct votes_slot *slot = &votes->slots[slot_index];
    cell before = peer->cells[slot_index];

    if (!is_suspect && stays_fresh(votes, before, said, now_ns)) {
        peer->cells[slot_index] = said_cell(said, now_ns);
        return false;
    }
    cell after = is_suspect && !plant_is("vote-suspect-counts")
                     ? 0
                     : heard(votes, slot, before, said, now_ns);

    peer->cells[slot_index] = after;
    return !means_the_same(votes, slot, before, after, now_ns);
}

/* When the sender's clock is believed (a planted fault), its sequence stands for its time. */
static uint64_t arrival_ns(const struct votes *votes, struct votes_peer *peer,
                           const struct vote_chunk *chunk, uint64_t now_ns)
{
    if (plant_is("vote-sender-clock")) {
        if (peer->plant_base_ns == 0) {
            peer->plant_base_ns = now_ns;
        }
        return peer->plant_base_ns + chunk->sequence * votes->vote_interval_ns;
    }
    return now_ns;
}

static void take_slots(struct votes *votes, struct votes_peer *peer, const struct vote_chunk *chunk,
                       const struct votes_here *here, struct id_set *changed)
{
    uint8_t reborn[LIMIT_VOTE_SLOTS_PER_CHUNK / 8];
    uint32_t first = chunk->chunk * (uint32_t)LIMIT_VOTE_SLOTS_PER_CHUNK;
    uint64_t due_ns = VOTES_NEVER;
    uint64_t heard_ns = arrival_ns(votes, peer, chunk, here->now_ns);

    vote_chunk_list_reborn(chunk, here, reborn);
    for (uint32_t i = 0; i < LIMIT_VOTE_SLOTS_PER_CHUNK && first + i < votes->n_slots; i++) {
        const struct votes_slot *slot = &votes->slots[first + i];
        const struct vote_detail *detail = votes_find_detail(peer, first + i);

        if (slot->birth == 0) {
            continue;
        }
        bool is_newer = detail == NULL || detail->sequence < chunk->sequence;
        bool is_same = slot->birth <= chunk->revision && (reborn[i / 8] >> (i % 8) & 1) == 0;
        if ((is_same || plant_is("vote-other-target")) && is_newer &&
            take_slot(votes, peer, first + i, vote_chunk_said(chunk, i),
                      votes_is_suspect(slot, chunk->suspect_mask), heard_ns)) {
            id_set_add(changed, first + i);
        }
        uint64_t slot_due_ns = votes_due_of(votes, slot, peer->cells[first + i]);
        due_ns = slot_due_ns < due_ns ? slot_due_ns : due_ns;
    }
    peer->chunk_due_ns[chunk->chunk] = due_ns;
}

enum votes_outcome votes_take_chunk(struct votes *votes, uint32_t peer_index,
                                    const struct vote_chunk *chunk, const struct votes_here *here,
                                    struct id_set *changed)
{
    struct votes_peer *peer = &votes->peers[peer_index];

    assert(peer_index < VOTES_PEERS);
    if (!vote_chunk_is_well_formed(chunk)) {
        return refuse(peer, VOTES_MALFORMED);
    }
    if (!epoch_is_current(peer, chunk->epoch)) {
        return refuse(peer, VOTES_OLD_EPOCH);
    }
    if (chunk->sequence <= peer->chunk_sequence[chunk->chunk] && !plant_is("vote-replay")) {
        return refuse(peer, VOTES_STALE);
    }
    peer->chunk_sequence[chunk->chunk] = chunk->sequence;
    enum votes_outcome match = vote_chunk_match(chunk, here);
    peer->differing_chunks &= ~(UINT32_C(1) << chunk->chunk);
    peer->differing_chunks |= (uint32_t)(match == VOTES_DIFFER) << chunk->chunk;
    if (match != VOTES_TAKEN) {
        return refuse(peer, match);
    }
    peer->look.vector_ns = here->now_ns;
    peer->look.revision = chunk->revision;
    peer->look.suspect_mask = chunk->suspect_mask;
    peer->look.doubt_causes = chunk->doubt_causes;
    if (make_cells(votes, peer)) {
        take_slots(votes, peer, chunk, here, changed);
        votes_find_next(votes);
    }
    return VOTES_TAKEN;
}

/* More places, as long as there may be more. */
static void make_room(struct vote_details *details)
{
    uint32_t n_room = details->n_room == 0 ? DETAILS_MIN : 2 * details->n_room;
    struct vote_detail *ring = NULL;

    if (n_room <= LIMIT_VOTE_DETAILS) {
        ring = realloc(details->ring, n_room * sizeof *ring);
    }
    if (ring != NULL) {
        details->ring = ring;
        details->n_room = n_room;
    }
}

/* The place of a slot's detail, that of the oldest if need be; zeroed when it is a new one. */
static struct vote_detail *make_detail(const struct votes *votes, struct votes_peer *peer,
                                       uint32_t slot)
{
    struct vote_details *details = &peer->details;
    struct vote_detail *detail = votes_find_detail(peer, slot);

    if (detail != NULL) {
        return detail;
    }
    if (details->places == NULL) {
        details->places = calloc(votes->n_slots, sizeof *details->places);
    }
    if (details->n_used == details->n_room && details->next == 0) {
        make_room(details);
    }
    if (details->places == NULL || details->n_room == 0) {
        return NULL;
    }
    uint32_t place = details->n_used;
    if (place < details->n_room) {
        details->n_used++;
    } else {
        place = details->next;
        details->next = (place + 1) % details->n_room;
        details->places[details->ring[place].slot] = 0;
    }
    details->ring[place] = (struct vote_detail){.slot = slot};
    details->places[slot] = (uint16_t)(place + 1);
    return &details->ring[place];
}

static void keep_detail(struct vote_detail *detail, const struct vote_change *change,
                        uint64_t now_ns)
{
    uint64_t since_ms = change->since_ms < INT64_MAX / 2000000 ? change->since_ms : 0;

    *detail = (struct vote_detail){
        .sequence = change->sequence,
        .slot = change->target.slot,
        .heard_ns = now_ns,
        .since_ns = (int64_t)now_ns - (int64_t)(since_ms * UINT64_C(1000000)),
        .probe_age_ms = change->probe_age_ms < UINT32_MAX ? (uint32_t)change->probe_age_ms : 0,
        .response_us = change->response_us,
        .streak = change->streak,
        .http_status = change->http_status,
        .reason = change->reason,
        .opinion = change->opinion,
        .part = change->part,
    };
}

enum votes_outcome votes_take_change(struct votes *votes, uint32_t peer_index,
                                     const struct vote_change *change, uint64_t now_ns,
                                     struct id_set *changed)
{
    struct votes_peer *peer = &votes->peers[peer_index];
    uint32_t slot = change->target.slot;

    assert(peer_index < VOTES_PEERS);
    if (change->epoch == 0 || change->sequence == 0 || change->opinion > OPINION_FAIL ||
        slot >= LIMIT_TARGETS) {
        return refuse(peer, VOTES_MALFORMED);
    }
    if (!epoch_is_current(peer, change->epoch)) {
        return refuse(peer, VOTES_OLD_EPOCH);
    }
    if (slot >= votes->n_slots || change->target.birth == 0 ||
        votes->slots[slot].birth != change->target.birth) {
        return VOTES_OTHER_TARGET;
    }
    struct vote_detail *detail = make_cells(votes, peer) ? make_detail(votes, peer, slot) : NULL;
    if (detail == NULL) {
        return refuse(peer, VOTES_NO_ROOM);
    }
    bool is_before_vector =
        change->sequence <= peer->chunk_sequence[slot / LIMIT_VOTE_SLOTS_PER_CHUNK];
    if (change->sequence <= detail->sequence ||
        (is_before_vector && !plant_is("change-over-vector"))) {
        return refuse(peer, VOTES_STALE);
    }
    keep_detail(detail, change, now_ns);
    bool is_suspect = votes_is_suspect(&votes->slots[slot], change->suspect_mask);
    uint8_t said =
        change->wavers && change->opinion == OPINION_PASS ? VOTE_WAVERS : change->opinion;
    if (take_slot(votes, peer, slot, said, is_suspect, now_ns)) {
        id_set_add(changed, slot);
    }
    uint64_t due_ns = votes_due_of(votes, &votes->slots[slot], peer->cells[slot]);
    uint64_t *chunk_due_ns = &peer->chunk_due_ns[slot / LIMIT_VOTE_SLOTS_PER_CHUNK];
    *chunk_due_ns = due_ns < *chunk_due_ns ? due_ns : *chunk_due_ns;
    votes->next_ns = due_ns < votes->next_ns ? due_ns : votes->next_ns;
    return VOTES_TAKEN;
}
