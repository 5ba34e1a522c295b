#include "agent/core/select.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

/* Fraction bits of a score. */
#define SCORE_BITS 28

#define SLOTS_PER_MEMBER 100
#define SLOTS_MIN 251

/* The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit moves half of the
 * output bits, which is all that the draws need. */
static uint64_t mix(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* -log2(u / 2^64) with SCORE_BITS fraction bits, u > 0. Integers only, so that every node comes to
 * the same number: one bit of the logarithm for each squaring of the mantissa. Rounds up. */
static uint64_t score(uint64_t u)
{
    unsigned shift = (unsigned)__builtin_clzll(u);
    uint64_t mantissa = u << shift >> 32; /* in [2^31, 2^32) stands for [1, 2) */
    uint64_t fraction = 0;

    for (unsigned bit = 0; bit < SCORE_BITS; bit++) {
        mantissa = mantissa * mantissa >> 31;
        fraction <<= 1;
        if (mantissa >= UINT64_C(1) << 32) {
            mantissa >>= 1;
            fraction |= 1;
        }
    }
    return ((uint64_t)(shift + 1) << SCORE_BITS) - fraction;
}

static bool is_tried(const struct select_tried *tried, uint32_t member)
{
    for (uint32_t i = 0; tried != NULL && i < tried->n_members; i++) {
        if (tried->members[i] == member) {
            return true;
        }
    }
    return false;
}

static bool is_usable(const struct select_set *set, uint32_t member, uint8_t rank)
{
    return set->ranks[member] == rank && set->weights[member] > 0;
}

/* In hundredths, so that a share of a small weight is no less exact. */
static uint32_t weight_of(const struct select_set *set, uint32_t member, bool is_equal)
{
    uint32_t weight = is_equal ? 1 : set->weights[member];

    return weight * (set->shares == NULL ? 100U : set->shares[member]);
}

uint64_t select_member_id(const struct endpoint *at, const struct hash_key *hash_key)
{
    uint8_t bytes[19];

    bytes[0] = at->addr.family;
    memcpy(bytes + 1, at->addr.bytes, sizeof at->addr.bytes);
    bytes[17] = (uint8_t)at->port;
    bytes[18] = (uint8_t)(at->port >> 8);
    return hash_64(hash_key, bytes, sizeof bytes);
}

uint8_t select_rank(const struct select_set *set, const struct select_tried *tried)
{
    uint8_t best = 0;

    for (uint32_t i = 0; i < set->n_members; i++) {
        uint8_t rank = set->ranks[i];

        if (rank != 0 && set->weights[i] > 0 && (best == 0 || rank < best) && !is_tried(tried, i)) {
            best = rank;
        }
    }
    return best;
}

uint32_t select_by_hash(const struct select_set *set, uint8_t rank, uint64_t flow_hash,
                        const struct select_tried *tried)
{
    uint32_t best = SELECT_NONE;
    uint64_t best_score = 0;
    uint64_t best_weight = 0;

    for (uint32_t i = 0; i < set->n_members; i++) {
        if (!is_usable(set, i, rank) || is_tried(tried, i)) {
            continue;
        }
        /* Smallest score / weight wins, compared crosswise. 1 - u/2^64 is a lower bound of the
         * score, so nearly all members are passed over without their logarithm. */
        uint64_t u = mix(flow_hash ^ set->ids[i]) | 1;
        uint64_t bound = ~u >> (64 - SCORE_BITS);
        uint64_t weight = weight_of(set, i, false);
        if (best != SELECT_NONE && bound * best_weight >= best_score * weight) {
            continue;
        }
        uint64_t own = score(u);
        if (best == SELECT_NONE || own * best_weight < best_score * weight) {
            best = i;
            best_score = own;
            best_weight = weight;
        }
    }
    return best;
}

uint32_t select_by_turn(const struct select_set *set, uint8_t rank, bool is_equal,
                        struct select_turn *turn)
{
    uint32_t best = SELECT_NONE;
    int32_t total = 0;

    assert(turn->n_members == set->n_members);
    for (uint32_t i = 0; i < set->n_members; i++) {
        if (!is_usable(set, i, rank)) {
            continue;
        }
        int32_t weight = (int32_t)weight_of(set, i, is_equal);
        total += weight;
        turn->credits[i] += weight;
        if (best == SELECT_NONE || turn->credits[i] > turn->credits[best]) {
            best = i;
        }
    }
    if (best != SELECT_NONE) {
        turn->credits[best] -= total;
    }
    return best;
}

uint64_t select_signature(const struct select_set *set, uint8_t rank)
{
    uint64_t signature = mix(rank);

    for (uint32_t i = 0; i < set->n_members; i++) {
        if (is_usable(set, i, rank)) {
            signature = mix(signature ^ set->ids[i]) + weight_of(set, i, false);
        }
    }
    return signature;
}

static bool is_prime(uint32_t n)
{
    for (uint32_t divisor = 2; divisor * divisor <= n; divisor++) {
        if (n % divisor == 0) {
            return false;
        }
    }
    return n >= 2;
}

uint32_t select_n_slots(uint32_t n_members)
{
    uint32_t n_slots = n_members * SLOTS_PER_MEMBER;

    assert(n_members < SELECT_SLOT_NONE);
    if (n_members == 0) {
        return 0;
    }
    n_slots = n_slots < SLOTS_MIN ? SLOTS_MIN : n_slots;
    while (!is_prime(n_slots)) {
        n_slots++;
    }
    return n_slots;
}

/* One member's own order of all slots: start, start + step, ... modulo the (prime) number. */
struct slot_walk {
    uint32_t at;
    uint32_t step;
    uint32_t credit;
};

static void claim_slot(struct slot_walk *walk, uint16_t member, uint16_t slots[], uint32_t n_slots)
{
    while (slots[walk->at] != SELECT_SLOT_NONE) {
        walk->at = (uint32_t)(((uint64_t)walk->at + walk->step) % n_slots);
    }
    slots[walk->at] = member;
}

/* Rounds of turns: a member claims one slot for each weight_max of credit, and gets its weight as
 * credit each round. */
static void fill(struct slot_walk walks[], const uint8_t weights[], uint32_t n_members,
                 uint16_t slots[], uint32_t n_slots)
{
    uint32_t weight_max = 0;
    uint32_t n_left = n_slots;

    for (uint32_t i = 0; i < n_members; i++) {
        weight_max = weights[i] > weight_max ? weights[i] : weight_max;
    }
    while (weight_max > 0 && n_left > 0) {
        for (uint32_t i = 0; i < n_members && n_left > 0; i++) {
            walks[i].credit += weights[i];
            if (walks[i].credit >= weight_max) {
                walks[i].credit -= weight_max;
                claim_slot(&walks[i], (uint16_t)i, slots, n_slots);
                n_left--;
            }
        }
    }
}

int select_fill_slots(const uint64_t ids[], const uint8_t weights[], uint32_t n_members,
                      uint16_t slots[], uint32_t n_slots)
{
    struct slot_walk *walks = calloc(n_members + 1U, sizeof *walks);

    if (walks == NULL) {
        return ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n_members; i++) {
        walks[i].at = (uint32_t)(mix(ids[i]) % n_slots);
        walks[i].step = (uint32_t)(mix(~ids[i]) % (n_slots - 1)) + 1;
    }
    for (uint32_t i = 0; i < n_slots; i++) {
        slots[i] = SELECT_SLOT_NONE;
    }
    fill(walks, weights, n_members, slots, n_slots);
    free(walks);
    return 0;
}
