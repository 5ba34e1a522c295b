/* The choice of a backend for a new flow: a pure function of (flow, members with weights, usable
 * set). History never matters, so nodes with equal tables choose alike (N11, I-14).
 *
 * Hash schedulers: weighted rendezvous. Each usable member draws an exponential number of rate
 * `weight` from (flow hash, member id); the smallest wins. Shares are the weights exactly, up to
 * the chance of the keys; a member that leaves the usable set, or the group, moves its own flows
 * and no others, and one that comes takes an equal part of each; so does a weight that falls or
 * rises. It costs about 3 ns a member.
 *
 * Rejected: looking a flow up in the layout's selection array. Its size follows the number of
 * backends, and with another size nearly every slot has another owner: removing 1 of 10 backends
 * moved 89 % of the flows of the others, with a table size held fixed still 2.7 %; A36 allows 1 %.
 * The array stays in the layout for data planes that need constant time.
 *
 * Turn schedulers (wrr, rr): smooth weighted round robin, state per worker and scope. */
#ifndef JURY_CORE_SELECT_H
#define JURY_CORE_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/hash.h"

#define SELECT_NONE UINT32_MAX

/* A relay tries at most this many members for one flow. */
#define SELECT_TRIES 3

/* The members of one scope as parallel arrays, in the layout's order (address, port). */
struct select_set {
    const uint64_t *ids;    /* select_member_id of each */
    const uint8_t *weights; /* 0..100; 0 is never chosen */
    const uint8_t *shares;  /* percent of the weight that counts, 1..100; NULL = all of each */
    const uint8_t *ranks;   /* jury_class_rank of each; 0 is never chosen */
    uint32_t n_members;
};

/* Members that this flow has tried already. */
struct select_tried {
    uint32_t members[SELECT_TRIES];
    uint32_t n_members;
};

/* Identity of a member in the choice: only its address and port, so that a backend that was removed
 * and added again gets its old flows back. */
uint64_t select_member_id(const struct endpoint *at, const struct hash_key *hash_key);

/* The lowest rank that has a member with weight and not yet tried; 0 = there is none. tried may be
 * NULL. */
uint8_t select_rank(const struct select_set *set, const struct select_tried *tried);

/* Index of the chosen member of that rank, or SELECT_NONE. */
uint32_t select_by_hash(const struct select_set *set, uint8_t rank, uint64_t flow_hash,
                        const struct select_tried *tried);

/* --- by turn --- */

/* Credits of one scope in one worker; storage is the caller's. All zero at the start of a cycle. */
struct select_turn {
    int32_t *credits; /* one a member */
    uint32_t n_members;
};

/* The next member by turn. Over one cycle (sum of the usable weights over their greatest common
 * divisor) each usable member comes exactly its weight's times, and never in a clump. is_equal: rr,
 * all weights count as 1, each with its share. A change of the usable set, weights or shares starts
 * a new cycle: the caller zeroes the credits (select_signature tells). */
uint32_t select_by_turn(const struct select_set *set, uint8_t rank, bool is_equal,
                        struct select_turn *turn);

/* Equal signatures: the same usable members of that rank with the same weights and shares. */
uint64_t select_signature(const struct select_set *set, uint8_t rank);

/* --- the layout's selection arrays --- */

/* Slots of a scope: the smallest prime that is at least 100 x n_members and 251; 0 without members.
 * n_members at most 65534. */
uint32_t select_n_slots(uint32_t n_members);

/* Fill the array as Maglev does (Eisenbud et al., NSDI 2016, section 3.4), with turns by weight: a
 * member's slots are its share of the weights to within two slots. SELECT_SLOT_NONE everywhere when
 * no member has weight. n_slots: select_n_slots. Errors: ERR_NOMEM. */
#define SELECT_SLOT_NONE UINT16_MAX
int select_fill_slots(const uint64_t ids[], const uint8_t weights[], uint32_t n_members,
                      uint16_t slots[], uint32_t n_slots);

#endif
