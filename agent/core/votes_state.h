/* The inside of the vote table. Private to agent/core/votes*.c. Its small functions are here, and
 * inline: a vector of a peer goes through them for every slot. */
#ifndef JURY_CORE_VOTES_STATE_H
#define JURY_CORE_VOTES_STATE_H

#include <assert.h>

#include "agent/core/votes.h"
#include "common/base/plant.h"
#include "common/base/units.h"

#define VOTES_PEERS LIMIT_NODES
#define VOTE_INTERVALS 3 /* a vote counts for 3 V */
#define VOTES_NEVER UINT64_MAX

/* One vote in one word: when it was heard << 5, whether it wavers << 4, its phase << 2, its
 * opinion. At the planned size there are eight million of them. Zero = nothing is held. */
typedef uint64_t cell; /* an integer with fields, not a struct with a hidden type */

enum cell_phase {
    PHASE_FRESH = 0,     /* counts until 3 V after it was heard */
    PHASE_WITHDRAWN = 1, /* turned to `none` at that time: remembered from then on */
    PHASE_AGED = 2       /* as FRESH, and that it stopped counting has been told */
};

/* What a change message said of a vote. */
struct vote_detail {
    uint64_t sequence; /* of the message, in the peer's epoch; 0 = of the target before */
    uint64_t heard_ns;
    int64_t since_ns;
    uint32_t slot;
    uint32_t response_us;
    uint32_t streak;
    uint32_t probe_age_ms; /* when it was said; 0 = not told */
    uint16_t http_status;
    uint8_t reason;
    uint8_t opinion;
    uint8_t part; /* of several checks: whose reason it is, from 1; 0 = not told */
};

/* The details of one peer: a ring, the oldest place is given away first. Freed and zeroed when all
 * is to be forgotten. */
struct vote_details {
    struct vote_detail *ring; /* n_room, doubling up to LIMIT_VOTE_DETAILS */
    uint16_t *places;         /* by slot: index in the ring + 1; 0 = none. NULL before the first */
    uint32_t n_room;
    uint32_t n_used;
    uint32_t next; /* to be given away, when all are used */
};
static_assert(LIMIT_VOTE_DETAILS < UINT16_MAX, "places have 16 bits");

struct votes_slot {
    uint64_t birth; /* 0 = free */
    uint32_t memory_ms;
    uint8_t kinds; /* of probes; bits 1 << enum check_type */
};

/* Of each target, and of each target and peer. */
#define VOTES_SLOT_BYTES 16
#define VOTES_PEER_SLOT_BYTES 10
static_assert(sizeof(struct votes_slot) <= VOTES_SLOT_BYTES, "of each target");
static_assert(sizeof(cell) + sizeof(uint16_t) <= VOTES_PEER_SLOT_BYTES, "of each peer and target");

struct votes_peer {
    uint64_t epoch;
    uint64_t chunk_sequence[LIMIT_VOTE_CHUNKS];
    uint64_t chunk_due_ns[LIMIT_VOTE_CHUNKS]; /* when a cell of the chunk changes by age */
    cell *cells;                              /* by slot; NULL before the first vote */
    struct vote_details details;
    struct votes_peer_look look;
    uint32_t differing_chunks; /* bits: the last chunk there was refused for its digest */
    uint64_t plant_base_ns;
};

struct votes {
    struct votes_peer peers[VOTES_PEERS];
    struct votes_slot *slots;
    uint32_t n_slots;
    uint64_t vote_interval_ns;
    uint64_t next_ns; /* least chunk_due_ns */
};

static inline cell cell_of(enum opinion opinion, enum cell_phase phase, uint64_t at_ns)
{
    return at_ns << 5 | (uint64_t)phase << 2 | (uint64_t)opinion;
}

static inline enum opinion cell_opinion(cell c)
{
    return (enum opinion)(c & 3);
}

static inline enum cell_phase cell_phase(cell c)
{
    return (enum cell_phase)(c >> 2 & 3);
}

static inline uint64_t cell_at_ns(cell c)
{
    return c >> 5;
}

/* OPINION_PASS, though the peer's last probe failed (VOTE_WAVERS). */
#define CELL_WAVERS ((cell)16)

static inline bool cell_wavers(cell c)
{
    return (c & CELL_WAVERS) != 0;
}

static inline cell cell_in_phase(cell c, enum cell_phase phase)
{
    return (c & ~(cell)12) | (cell)phase << 2;
}

static inline uint64_t votes_expiry_ns(const struct votes *votes)
{
    return VOTE_INTERVALS * votes->vote_interval_ns;
}

/* When the vote stops being remembered. */
static inline uint64_t votes_lapse_ns(const struct votes *votes, const struct votes_slot *slot,
                                      cell c)
{
    uint64_t from_ns = cell_at_ns(c);

    if (cell_phase(c) != PHASE_WITHDRAWN) {
        from_ns += votes_expiry_ns(votes);
    }
    return from_ns + slot->memory_ms * NS_PER_MS + votes_expiry_ns(votes);
}

/* How a cell stands at a moment. */
static inline enum vote_hold votes_hold_of(const struct votes *votes, const struct votes_slot *slot,
                                           cell c, uint64_t now_ns)
{
    if (cell_opinion(c) == OPINION_NONE) {
        return VOTE_NOT_HELD;
    }
    if (cell_phase(c) != PHASE_WITHDRAWN &&
        (now_ns <= cell_at_ns(c) + votes_expiry_ns(votes) || plant_is("vote-no-expiry"))) {
        return VOTE_COUNTS;
    }
    if (plant_is("vote-no-memory")) {
        return VOTE_NOT_HELD;
    }
    return now_ns <= votes_lapse_ns(votes, slot, c) ? VOTE_REMEMBERED : VOTE_NOT_HELD;
}

/* The next moment at which votes_hold_of answers otherwise and that has not been told yet. */
static inline uint64_t votes_due_of(const struct votes *votes, const struct votes_slot *slot,
                                    cell c)
{
    if (cell_opinion(c) == OPINION_NONE) {
        return VOTES_NEVER;
    }
    if (cell_phase(c) == PHASE_FRESH) {
        return cell_at_ns(c) + votes_expiry_ns(votes) + 1;
    }
    return votes_lapse_ns(votes, slot, c) + 1;
}

/* The sender doubts all kinds of probes that its vote comes from. */
static inline bool votes_is_suspect(const struct votes_slot *slot, uint32_t suspect_mask)
{
    return slot->kinds != 0 && (suspect_mask & slot->kinds) == slot->kinds;
}

/* NULL: nothing was said of the slot, or too much of others since. */
static inline struct vote_detail *votes_find_detail(const struct votes_peer *peer, uint32_t slot)
{
    const struct vote_details *details = &peer->details;

    return details->places == NULL || details->places[slot] == 0
               ? NULL
               : &details->ring[details->places[slot] - 1];
}

/* Set next_ns again, after a chunk_due_ns changed. */
void votes_find_next(struct votes *votes);

#endif
