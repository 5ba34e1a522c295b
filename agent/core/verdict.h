/* What one node concludes for one backend in one scope: the rules of spec.md 5, with down and up
 * columns, quorum, remembered votes, below-quorum and ties. A pure function of the votes held. */
#ifndef JURY_CORE_VERDICT_H
#define JURY_CORE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/model/reason.h"
#include "common/model/rule.h"

/* Why a verdict is marked `held`: several may be. */
enum held_cause {
    HELD_FEW_VOTES = 1 << 0,       /* c < q */
    HELD_NO_OWN_VOTE = 1 << 1,     /* rule local: own vote missing or suspect */
    HELD_CHECK_CHANGED = 1 << 2,   /* the verdict is of the check before */
    HELD_LAST_KNOWN_GOOD = 1 << 3, /* the verdict is of the time before this start */
    HELD_BY_HOLD = 1 << 4,         /* the votes say down, and the hold switch is on */
    HELD_BY_SHADOW = 1 << 5        /* the votes of a changed check say down, in its shadow */
};

/* Which observers are in one zone: bits of their index (observers.h). */
struct zone_map {
    uint8_t n_zones;
    uint64_t members[LIMIT_NODES];
};

/* The votes on one target as this node counts them now. */
struct tally {
    uint8_t n_observers; /* n */
    uint8_t n_fail;      /* f */
    uint8_t n_pass;      /* p; c = f + p, own vote included */
    uint8_t n_lost_fail; /* remembered votes of silent peers: they only block, never towards q */
    uint8_t n_lost_pass;
    uint8_t own;         /* enum opinion: the own vote if it counts, else OPINION_NONE */
    uint8_t own_opinion; /* enum opinion: what the own probes say, also when it does not count */
    bool own_is_suspect;
    /* The same votes once more, one bit an observer, for the rule that asks zones. */
    uint64_t fails, passes; /* own one included */
    uint64_t lost_fails, lost_passes;
    uint64_t wavers;  /* of `passes`, those whose last probe failed: no rule asks for it */
    uint64_t own_bit; /* 0: this node is no observer */
    const struct zone_map *zones;
    /* Of a target that some of the observers probe: whose votes n and q are of, and their zones. */
    uint64_t electors;
    struct zone_map elector_zones;
};

uint8_t tally_counted(const struct tally *tally); /* c */
uint8_t tally_quorum(const struct tally *tally);  /* q = n/2 rounded down, plus 1 */

/* This node leaves the target to others (share.h): no vote of its own is awaited. */
bool tally_own_rests(const struct tally *tally);

struct verdict_question {
    const struct verdict_rule *rule;
    const struct tally *tally;
    uint8_t health_state;     /* enum health_state before: initial, healthy or unhealthy */
    bool is_gray;             /* mark before */
    bool past_initial_window; /* in `initial` for longer than the failure window + 3 V */
};

struct verdict_answer {
    uint8_t health_state; /* enum health_state */
    uint8_t held_causes;  /* HELD_FEW_VOTES, HELD_NO_OWN_VOTE */
    bool is_gray;
    bool is_decided;     /* a column holds and is followed: what was held from before is replaced */
    bool is_unreachable; /* from here: healthy, but this node's own probes fail */
};

struct verdict_answer verdict_decide(const struct verdict_question *question);

/* What follows from the columns and the quorum, whatever the verdict was: HEALTH_UNHEALTHY,
 * HEALTH_HEALTHY, or HEALTH_NONE when no column is followed. */
enum health_state verdict_follow(const struct verdict_rule *rule, const struct tally *tally);
/* A column of the rule asks zones. */
bool verdict_asks_zones(const struct verdict_rule *rule);
/* Whether it is this node's own vote alone that makes a verdict `to`, or keeps it from being one:
 * the rule's column is local, or it is so below the quorum. Of a state that is neither, both. */
bool verdict_is_by_own(const struct verdict_rule *rule, const struct tally *tally,
                       enum health_state to);

/* The columns alone, for views: whether one holds, whatever the quorum. */
bool verdict_down_holds(const struct verdict_rule *rule, const struct tally *tally);
bool verdict_up_holds(const struct verdict_rule *rule, const struct tally *tally);

/* The least (with zones: a little) that would make the verdict `to` (HEALTH_HEALTHY or
 * HEALTH_UNHEALTHY): votes that turn round, and votes that are not counted yet. */
struct verdict_need {
    bool is_possible;
    uint8_t n_turned;
    uint8_t n_new;
    bool needs_own; /* one of them is this node's own */
    /* With a rule that asks zones, whose votes: bits of the observers' index. Others may do as
     * well. */
    uint64_t moved;
};
struct verdict_need verdict_need(const struct verdict_rule *rule, const struct tally *tally,
                                 enum health_state to);

/* "majority", "at-least 2", "percent 82", "down: any, up: all". Returns text. */
char *verdict_rule_format(const struct verdict_rule *rule, char *text, unsigned text_bytes);

#endif
