#include "agent/core/votes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/vote_match.h"
#include "common/base/err.h"
#include "common/base/plant.h"

#define N_PEERS LIMIT_NODES
#define DETAILS_PER_BLOCK 256
#define N_DETAIL_BLOCKS (LIMIT_TARGETS / DETAILS_PER_BLOCK)
#define EXPIRY_INTERVALS 3
#define NEVER UINT64_MAX

/* One vote in one word: when it was heard << 4, its phase << 2, its opinion. At the planned size
 * there are eight million of them. Zero = nothing is held. */
typedef uint64_t cell; /* an integer with fields, not a struct with a hidden type */

enum cell_phase {
    PHASE_FRESH = 0,     /* counts until 3 V after it was heard */
    PHASE_WITHDRAWN = 1, /* turned to `none` at that time: remembered from then on */
    PHASE_AGED = 2       /* as FRESH, and that it stopped counting has been told */
};

struct vote_detail {
    uint64_t sequence; /* of the change message, in the peer's epoch; 0 = none */
    uint64_t heard_ns;
    int64_t since_ns;
    uint32_t response_us;
    uint32_t streak;
    uint16_t http_status;
    uint8_t reason;
    uint8_t opinion;
};

struct votes_slot {
    uint64_t birth; /* 0 = free */
    uint64_t memory_ns;
    uint8_t check_type;
};

struct votes_peer {
    uint64_t epoch;
    uint64_t chunk_sequence[LIMIT_VOTE_CHUNKS];
    uint64_t chunk_due_ns[LIMIT_VOTE_CHUNKS]; /* when a cell of the chunk changes by age */
    cell *cells;                              /* by slot; NULL before the first vote */
    struct vote_detail *details[N_DETAIL_BLOCKS];
    struct votes_peer_look look;
    uint32_t differing_chunks; /* bits: the last chunk there was refused for its digest */
    uint64_t plant_base_ns;
};

struct votes {
    struct votes_peer peers[N_PEERS];
    struct votes_slot *slots;
    uint32_t n_slots;
    uint64_t vote_interval_ns;
    uint64_t next_ns; /* least chunk_due_ns */
};

static cell cell_of(enum opinion opinion, enum cell_phase phase, uint64_t at_ns)
{
    return at_ns << 4 | (uint64_t)phase << 2 | (uint64_t)opinion;
}

static enum opinion cell_opinion(cell c)
{
    return (enum opinion)(c & 3);
}

static enum cell_phase cell_phase(cell c)
{
    return (enum cell_phase)(c >> 2 & 3);
}

static uint64_t cell_at_ns(cell c)
{
    return c >> 4;
}

static uint64_t expiry_ns(const struct votes *votes)
{
    return EXPIRY_INTERVALS * votes->vote_interval_ns;
}

/* When the vote stops being remembered. */
static uint64_t lapse_ns(const struct votes *votes, const struct votes_slot *slot, cell c)
{
    uint64_t from_ns = cell_at_ns(c);

    if (cell_phase(c) != PHASE_WITHDRAWN) {
        from_ns += expiry_ns(votes);
    }
    return from_ns + slot->memory_ns + expiry_ns(votes);
}

static enum vote_hold hold_of(const struct votes *votes, const struct votes_slot *slot, cell c,
                              uint64_t now_ns)
{
    if (cell_opinion(c) == OPINION_NONE) {
        return VOTE_NOT_HELD;
    }
    if (cell_phase(c) != PHASE_WITHDRAWN &&
        (now_ns <= cell_at_ns(c) + expiry_ns(votes) || plant_is("vote-no-expiry"))) {
        return VOTE_COUNTS;
    }
    if (plant_is("vote-no-memory")) {
        return VOTE_NOT_HELD;
    }
    return now_ns <= lapse_ns(votes, slot, c) ? VOTE_REMEMBERED : VOTE_NOT_HELD;
}

/* The next moment at which hold_of answers otherwise and that has not been told yet. */
static uint64_t due_of(const struct votes *votes, const struct votes_slot *slot, cell c)
{
    if (cell_opinion(c) == OPINION_NONE) {
        return NEVER;
    }
    if (cell_phase(c) == PHASE_FRESH) {
        return cell_at_ns(c) + expiry_ns(votes) + 1;
    }
    return lapse_ns(votes, slot, c) + 1;
}

struct votes *votes_new(void)
{
    struct votes *votes = calloc(1, sizeof *votes);

    if (votes == NULL) {
        return NULL;
    }
    votes->next_ns = NEVER;
    for (uint32_t peer = 0; peer < N_PEERS; peer++) {
        for (uint32_t i = 0; i < LIMIT_VOTE_CHUNKS; i++) {
            votes->peers[peer].chunk_due_ns[i] = NEVER;
        }
    }
    return votes;
}

static void forget_details(struct votes_peer *peer)
{
    for (uint32_t i = 0; i < N_DETAIL_BLOCKS; i++) {
        free(peer->details[i]);
        peer->details[i] = NULL;
    }
}

void votes_free(struct votes *votes)
{
    if (votes == NULL) {
        return;
    }
    for (uint32_t peer = 0; peer < N_PEERS; peer++) {
        free(votes->peers[peer].cells);
        forget_details(&votes->peers[peer]);
    }
    free(votes->slots);
    free(votes);
}

int votes_reserve(struct votes *votes, uint32_t n_slots)
{
    if (n_slots <= votes->n_slots) {
        return 0;
    }
    assert(n_slots <= LIMIT_TARGETS);
    for (uint32_t peer = 0; peer < N_PEERS; peer++) {
        cell **cells = &votes->peers[peer].cells;
        cell *grown = *cells == NULL ? NULL : realloc(*cells, n_slots * sizeof **cells);

        if (*cells == NULL) {
            continue;
        }
        if (grown == NULL) {
            return ERR_NOMEM;
        }
        memset(grown + votes->n_slots, 0, (n_slots - votes->n_slots) * sizeof **cells);
        *cells = grown;
    }
    struct votes_slot *slots = realloc(votes->slots, n_slots * sizeof *slots);
    if (slots == NULL) {
        return ERR_NOMEM;
    }
    memset(slots + votes->n_slots, 0, (n_slots - votes->n_slots) * sizeof *slots);
    votes->slots = slots;
    votes->n_slots = n_slots;
    return 0;
}

static void find_next(struct votes *votes)
{
    votes->next_ns = NEVER;
    for (uint32_t p = 0; p < N_PEERS; p++) {
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

void votes_set_interval(struct votes *votes, uint64_t vote_interval_ns)
{
    assert(vote_interval_ns > 0);

    if (votes->vote_interval_ns == vote_interval_ns) {
        return;
    }
    votes->vote_interval_ns = vote_interval_ns;
    /* Every age is another one now: one that had stopped counting may count again, and is to be
     * told of once more. */
    for (uint32_t p = 0; p < N_PEERS; p++) {
        struct votes_peer *peer = &votes->peers[p];

        if (peer->cells == NULL) {
            continue;
        }
        for (uint32_t slot = 0; slot < votes->n_slots; slot++) {
            if (cell_phase(peer->cells[slot]) == PHASE_AGED) {
                peer->cells[slot] = cell_of(cell_opinion(peer->cells[slot]), PHASE_FRESH,
                                            cell_at_ns(peer->cells[slot]));
            }
        }
        memset(peer->chunk_due_ns, 0, sizeof peer->chunk_due_ns);
    }
    find_next(votes);
}

static struct vote_detail *find_detail(const struct votes_peer *peer, uint32_t slot)
{
    struct vote_detail *block = peer->details[slot / DETAILS_PER_BLOCK];

    return block == NULL ? NULL : &block[slot % DETAILS_PER_BLOCK];
}

void votes_set_slot(struct votes *votes, uint32_t slot, uint64_t birth, uint8_t check_type,
                    uint64_t memory_ns)
{
    assert(slot < votes->n_slots);

    bool is_same = votes->slots[slot].birth == birth;
    votes->slots[slot] =
        (struct votes_slot){.birth = birth, .check_type = check_type, .memory_ns = memory_ns};
    if (is_same) {
        return;
    }
    for (uint32_t p = 0; p < N_PEERS; p++) {
        struct vote_detail *detail = find_detail(&votes->peers[p], slot);

        if (votes->peers[p].cells != NULL) {
            votes->peers[p].cells[slot] = 0;
        }
        if (detail != NULL) {
            *detail = (struct vote_detail){0};
        }
    }
}

void votes_drop_peer(struct votes *votes, uint32_t peer)
{
    assert(peer < N_PEERS);

    free(votes->peers[peer].cells);
    forget_details(&votes->peers[peer]);
    votes->peers[peer] = (struct votes_peer){0};
    for (uint32_t i = 0; i < LIMIT_VOTE_CHUNKS; i++) {
        votes->peers[peer].chunk_due_ns[i] = NEVER;
    }
}

static void begin_epoch(struct votes_peer *peer, uint64_t epoch)
{
    peer->epoch = epoch;
    memset(peer->chunk_sequence, 0, sizeof peer->chunk_sequence);
    forget_details(peer);
    peer->plant_base_ns = 0;
}

bool votes_note_epoch(struct votes *votes, uint32_t peer, uint64_t epoch)
{
    assert(peer < N_PEERS);

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

/* What a heard opinion makes of a cell. Its hold before and after decide whether anyone cares. */
static cell heard(const struct votes *votes, const struct votes_slot *slot, cell before,
                  enum opinion opinion, uint64_t now_ns)
{
    if (opinion != OPINION_NONE) {
        return cell_of(opinion, PHASE_FRESH, now_ns);
    }
    switch (hold_of(votes, slot, before, now_ns)) {
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
    enum vote_hold hold = hold_of(votes, slot, a, now_ns);

    return hold == hold_of(votes, slot, b, now_ns) &&
           (hold == VOTE_NOT_HELD || cell_opinion(a) == cell_opinion(b));
}

/* Returns true if the vote is another one now, in the eyes of who counts. */
static bool take_slot(struct votes *votes, struct votes_peer *peer, uint32_t slot_index,
                      enum opinion opinion, bool is_suspect, uint64_t now_ns)
{
    const struct votes_slot *slot = &votes->slots[slot_index];
    cell before = peer->cells[slot_index];
    cell after = is_suspect ? 0 : heard(votes, slot, before, opinion, now_ns);

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
                       const struct votes_here *here, uint64_t now_ns, struct id_set *changed)
{
    uint8_t reborn[LIMIT_VOTE_SLOTS_PER_CHUNK / 8];
    uint32_t first = chunk->chunk * (uint32_t)LIMIT_VOTE_SLOTS_PER_CHUNK;
    uint64_t due_ns = NEVER;
    uint64_t heard_ns = arrival_ns(votes, peer, chunk, now_ns);

    vote_chunk_list_reborn(chunk, here, reborn);
    for (uint32_t i = 0; i < LIMIT_VOTE_SLOTS_PER_CHUNK && first + i < votes->n_slots; i++) {
        const struct votes_slot *slot = &votes->slots[first + i];
        const struct vote_detail *detail = find_detail(peer, first + i);

        if (slot->birth == 0) {
            continue;
        }
        bool is_newer = detail == NULL || detail->sequence < chunk->sequence;
        bool is_same = slot->birth <= chunk->revision && (reborn[i / 8] >> (i % 8) & 1) == 0;
        if ((is_same || plant_is("vote-other-target")) && is_newer &&
            take_slot(votes, peer, first + i, vote_chunk_opinion(chunk, i),
                      (chunk->suspect_mask >> slot->check_type & 1) != 0, heard_ns)) {
            id_set_add(changed, first + i);
        }
        uint64_t slot_due_ns = due_of(votes, slot, peer->cells[first + i]);
        due_ns = slot_due_ns < due_ns ? slot_due_ns : due_ns;
    }
    peer->chunk_due_ns[chunk->chunk] = due_ns;
}

enum votes_outcome votes_take_chunk(struct votes *votes, uint32_t peer_index,
                                    const struct vote_chunk *chunk, const struct votes_here *here,
                                    uint64_t now_ns, struct id_set *changed)
{
    struct votes_peer *peer = &votes->peers[peer_index];

    assert(peer_index < N_PEERS);
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
    peer->look.vector_ns = now_ns;
    peer->look.revision = chunk->revision;
    peer->look.suspect_mask = chunk->suspect_mask;
    if (make_cells(votes, peer)) {
        take_slots(votes, peer, chunk, here, now_ns, changed);
        find_next(votes);
    }
    return VOTES_TAKEN;
}

static struct vote_detail *make_detail(struct votes_peer *peer, uint32_t slot)
{
    struct vote_detail **block = &peer->details[slot / DETAILS_PER_BLOCK];

    if (*block == NULL) {
        *block = calloc(DETAILS_PER_BLOCK, sizeof **block);
    }
    return *block == NULL ? NULL : &(*block)[slot % DETAILS_PER_BLOCK];
}

static void keep_detail(struct vote_detail *detail, const struct vote_change *change,
                        uint64_t now_ns)
{
    uint64_t since_ms = change->since_ms < INT64_MAX / 2000000 ? change->since_ms : 0;

    *detail = (struct vote_detail){
        .sequence = change->sequence,
        .heard_ns = now_ns,
        .since_ns = (int64_t)now_ns - (int64_t)(since_ms * UINT64_C(1000000)),
        .response_us = change->response_us,
        .streak = change->streak,
        .http_status = change->http_status,
        .reason = change->reason,
        .opinion = change->opinion,
    };
}

enum votes_outcome votes_take_change(struct votes *votes, uint32_t peer_index,
                                     const struct vote_change *change, uint64_t now_ns,
                                     struct id_set *changed)
{
    struct votes_peer *peer = &votes->peers[peer_index];
    uint32_t slot = change->target.slot;

    assert(peer_index < N_PEERS);
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
    struct vote_detail *detail = make_cells(votes, peer) ? make_detail(peer, slot) : NULL;
    if (detail == NULL) {
        return refuse(peer, VOTES_NO_ROOM);
    }
    if (change->sequence <= detail->sequence ||
        change->sequence <= peer->chunk_sequence[slot / LIMIT_VOTE_SLOTS_PER_CHUNK]) {
        return refuse(peer, VOTES_STALE);
    }
    keep_detail(detail, change, now_ns);
    bool is_suspect = (change->suspect_mask >> votes->slots[slot].check_type & 1) != 0;
    if (take_slot(votes, peer, slot, (enum opinion)change->opinion, is_suspect, now_ns)) {
        id_set_add(changed, slot);
    }
    uint64_t due_ns = due_of(votes, &votes->slots[slot], peer->cells[slot]);
    uint64_t *chunk_due_ns = &peer->chunk_due_ns[slot / LIMIT_VOTE_SLOTS_PER_CHUNK];
    *chunk_due_ns = due_ns < *chunk_due_ns ? due_ns : *chunk_due_ns;
    votes->next_ns = due_ns < votes->next_ns ? due_ns : votes->next_ns;
    return VOTES_TAKEN;
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
    uint64_t due_ns = NEVER;

    for (uint32_t i = first; i < first + LIMIT_VOTE_SLOTS_PER_CHUNK && i < votes->n_slots; i++) {
        const struct votes_slot *slot = &votes->slots[i];
        cell *c = &peer->cells[i];

        if (due_of(votes, slot, *c) <= now_ns) {
            id_set_add(changed, i);
            if (cell_phase(*c) == PHASE_FRESH) {
                *c = cell_of(cell_opinion(*c), PHASE_AGED, cell_at_ns(*c));
            }
            if (due_of(votes, slot, *c) <= now_ns) {
                *c = 0;
            }
        }
        uint64_t slot_due_ns = due_of(votes, slot, *c);
        due_ns = slot_due_ns < due_ns ? slot_due_ns : due_ns;
    }
    peer->chunk_due_ns[chunk] = due_ns;
}

void votes_age(struct votes *votes, uint64_t now_ns, struct id_set *changed)
{
    if (votes->next_ns > now_ns) {
        return;
    }
    for (uint32_t p = 0; p < N_PEERS; p++) {
        struct votes_peer *peer = &votes->peers[p];

        for (uint32_t i = 0; peer->cells != NULL && i * LIMIT_VOTE_SLOTS_PER_CHUNK < votes->n_slots;
             i++) {
            if (peer->chunk_due_ns[i] <= now_ns) {
                age_chunk(votes, peer, i, now_ns, changed);
            }
        }
    }
    find_next(votes);
}

void votes_count(const struct votes *votes, uint32_t slot, uint64_t peers, uint64_t now_ns,
                 struct tally *tally)
{
    assert(slot < votes->n_slots);

    tally->n_fail = 0;
    tally->n_pass = 0;
    tally->n_lost_fail = 0;
    tally->n_lost_pass = 0;
    for (uint64_t left = peers; left != 0; left &= left - 1) {
        const struct votes_peer *peer = &votes->peers[__builtin_ctzll(left)];
        cell c = peer->cells == NULL ? 0 : peer->cells[slot];
        bool fails = cell_opinion(c) == OPINION_FAIL;

        switch (hold_of(votes, &votes->slots[slot], c, now_ns)) {
        case VOTE_COUNTS:
            tally->n_fail = (uint8_t)(tally->n_fail + fails);
            tally->n_pass = (uint8_t)(tally->n_pass + !fails);
            break;
        case VOTE_REMEMBERED:
            tally->n_lost_fail = (uint8_t)(tally->n_lost_fail + fails);
            tally->n_lost_pass = (uint8_t)(tally->n_lost_pass + !fails);
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

    assert(peer_index < N_PEERS);
    *ret_look = (struct vote_look){0};
    if (slot >= votes->n_slots || peer->cells == NULL) {
        return;
    }
    cell c = peer->cells[slot];
    ret_look->hold = (uint8_t)hold_of(votes, &votes->slots[slot], c, now_ns);
    ret_look->heard_ns = cell_at_ns(c);
    if (ret_look->hold != VOTE_NOT_HELD) {
        ret_look->opinion = (uint8_t)cell_opinion(c);
    }
    const struct vote_detail *detail = find_detail(peer, slot);
    if (detail == NULL || detail->sequence == 0 || detail->opinion != ret_look->opinion) {
        return;
    }
    ret_look->has_detail = true;
    ret_look->reason = detail->reason;
    ret_look->http_status = detail->http_status;
    ret_look->response_us = detail->response_us;
    ret_look->streak = detail->streak;
    ret_look->since_ns = detail->since_ns;
    ret_look->detail_heard_ns = detail->heard_ns;
}

void votes_look_peer(const struct votes *votes, uint32_t peer, struct votes_peer_look *ret_look)
{
    assert(peer < N_PEERS);

    *ret_look = votes->peers[peer].look;
    ret_look->epoch = votes->peers[peer].epoch;
    ret_look->catalog_differs = votes->peers[peer].differing_chunks != 0;
}
