#include "agent/core/verdict_zones.h"

#include <assert.h>
#include <stddef.h>

#include "common/base/plant.h"

/* The votes of one zone. */
struct zone_votes {
    uint64_t members;
    unsigned n, wanted, counted;
    unsigned lost; /* remembered votes against what is wanted: they block */
};

static unsigned count_bits(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

static struct zone_votes votes_of(const struct tally *tally, uint8_t zone, enum opinion wanted)
{
    assert(tally->zones != NULL && zone < tally->zones->n_zones);
    uint64_t members = tally->zones->members[zone];
    bool fails = wanted == OPINION_FAIL;

    return (struct zone_votes){
        .members = members,
        .n = count_bits(members),
        .wanted = count_bits(members & (fails ? tally->fails : tally->passes)),
        .counted = count_bits(members & (tally->fails | tally->passes)),
        .lost = count_bits(members & (fails ? tally->lost_passes : tally->lost_fails)),
    };
}

/* To fail, half of a zone's observers must count; to pass, any vote is enough, as one node alone
 * may find a backend well again. */
static bool agrees(const struct zone_votes *votes, enum opinion wanted)
{
    if (2 * votes->wanted <= votes->counted + votes->lost) {
        return false;
    }
    return wanted == OPINION_PASS || 2 * votes->counted >= votes->n || plant_is("zone-one-speaks");
}

struct zone_count zones_count(const struct tally *tally, enum opinion wanted)
{
    struct zone_count count = {.n_zones = tally->zones->n_zones};

    for (uint8_t zone = 0; zone < tally->zones->n_zones; zone++) {
        struct zone_votes votes = votes_of(tally, zone, wanted);

        count.n_voting = (uint8_t)(count.n_voting + (votes.counted + votes.lost >= 1));
        count.n_agree = (uint8_t)(count.n_agree + agrees(&votes, wanted));
    }
    return count;
}

bool zones_hold(const struct tally *tally, enum opinion wanted)
{
    struct zone_count count = zones_count(tally, wanted);

    return 2 * count.n_agree > count.n_voting;
}

uint8_t zones_heard(const struct tally *tally)
{
    uint8_t n = 0;

    for (uint8_t zone = 0; zone < tally->zones->n_zones; zone++) {
        n = (uint8_t)(n + ((tally->zones->members[zone] & (tally->fails | tally->passes)) != 0));
    }
    return n;
}

bool zones_have_quorum(const struct tally *tally)
{
    return zones_heard(tally) >= tally->zones->n_zones / 2U + 1 || plant_is("zone-no-quorum");
}

bool zones_are_tied(const struct tally *tally)
{
    return tally->n_fail >= 1 && tally->n_pass >= 1 &&
           zones_count(tally, OPINION_FAIL).n_agree == zones_count(tally, OPINION_PASS).n_agree;
}

/* --- what would change it --- */

/* A vote that moves: it turns round, comes back or comes in. */
struct move {
    uint64_t bit; /* 0 = there is none */
    bool is_new;
};

/* What a search looks for, and whose vote it must leave as it is. */
struct goal {
    enum opinion wanted;
    uint64_t barred;
};

static uint64_t lowest(uint64_t bits)
{
    return bits & (~bits + 1);
}

/* The next vote of the zone that helps: one that turns round counts twice, but only new ones make
 * up a half of its observers and a quorum of all. */
static struct move next_move(const struct tally *tally, uint8_t zone, const struct goal *goal)
{
    struct zone_votes votes = votes_of(tally, zone, goal->wanted);
    bool fails = goal->wanted == OPINION_FAIL;
    uint64_t members = votes.members & ~goal->barred;
    uint64_t against = members & (fails ? tally->passes : tally->fails);
    uint64_t silent = members & ~(tally->fails | tally->passes);
    uint64_t blocking = silent & (fails ? tally->lost_passes : tally->lost_fails);
    bool needs_new =
        fails && (2 * votes.counted < votes.n || tally_counted(tally) < tally_quorum(tally));

    if (against != 0 && (!needs_new || silent == 0)) {
        return (struct move){.bit = lowest(against)};
    }
    return (struct move){.bit = lowest(blocking != 0 ? blocking : silent), .is_new = true};
}

static void make_move(struct tally *tally, uint64_t bit, enum opinion to)
{
    tally->fails &= ~bit;
    tally->passes &= ~bit;
    tally->lost_fails &= ~bit;
    tally->lost_passes &= ~bit;
    *(to == OPINION_FAIL ? &tally->fails : &tally->passes) |= bit;
    tally->n_fail = (uint8_t)count_bits(tally->fails);
    tally->n_pass = (uint8_t)count_bits(tally->passes);
    tally->n_lost_fail = (uint8_t)count_bits(tally->lost_fails);
    tally->n_lost_pass = (uint8_t)count_bits(tally->lost_passes);
    if (bit == tally->own_bit) {
        tally->own = (uint8_t)to;
        tally->own_opinion = (uint8_t)to;
    }
}

/* Votes that must move until the zone agrees; UINT32_MAX: it does already, or cannot. */
static unsigned cost_of(const struct tally *tally, uint8_t zone, const struct goal *goal)
{
    struct tally then = *tally;

    for (unsigned n = 0;; n++) {
        struct zone_votes votes = votes_of(&then, zone, goal->wanted);
        struct move move = next_move(&then, zone, goal);
        bool is_done = agrees(&votes, goal->wanted);

        if (is_done || move.bit == 0) {
            return is_done && n > 0 ? n : UINT32_MAX;
        }
        make_move(&then, move.bit, goal->wanted);
    }
}

/* In which zone the next vote moves: the one that is nearest to agree; when all agree, any where
 * something is left. */
static struct move find_move(const struct tally *tally, const struct goal *goal)
{
    unsigned best_cost = UINT32_MAX;
    struct move best = {0};

    for (uint8_t zone = 0; zone < tally->zones->n_zones; zone++) {
        struct move move = next_move(tally, zone, goal);
        unsigned cost = move.bit == 0 ? UINT32_MAX : cost_of(tally, zone, goal);

        if (move.bit != 0 && (best.bit == 0 || cost < best_cost)) {
            best = move;
            best_cost = cost;
        }
    }
    return best;
}

/* own_moves: this node's own vote moves, before all others; else it stays as it is. */
static struct verdict_need search(const struct verdict_rule *rule, const struct tally *tally,
                                  enum health_state to, bool own_moves)
{
    struct goal goal = {.wanted = to == HEALTH_UNHEALTHY ? OPINION_FAIL : OPINION_PASS,
                        .barred = own_moves ? 0 : tally->own_bit};
    struct verdict_need need = {.needs_own = own_moves};
    struct tally then = *tally;
    struct move move = {0};

    if (own_moves && (then.own_bit == 0 || then.own == goal.wanted)) {
        return need;
    }
    if (own_moves) {
        move = (struct move){.bit = then.own_bit, .is_new = then.own == OPINION_NONE};
    }
    while (verdict_follow(rule, &then) != to) {
        if (move.bit == 0) {
            move = find_move(&then, &goal);
        }
        if (move.bit == 0) {
            return need;
        }
        need.n_new = (uint8_t)(need.n_new + move.is_new);
        need.n_turned = (uint8_t)(need.n_turned + !move.is_new);
        need.moved |= move.bit;
        make_move(&then, move.bit, goal.wanted);
        move = (struct move){0};
    }
    need.is_possible = true;
    return need;
}

struct verdict_need zones_need(const struct verdict_rule *rule, const struct tally *tally,
                               enum health_state to)
{
    struct verdict_need others = search(rule, tally, to, false);
    struct verdict_need own = search(rule, tally, to, true);
    bool own_is_less = own.n_turned + own.n_new < others.n_turned + others.n_new;

    return own.is_possible && (!others.is_possible || own_is_less) ? own : others;
}
