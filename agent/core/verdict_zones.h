/* The votes by zone of their observers, for the rule zone-majority (common/model/rule.h). Pure
 * functions of a tally that has its bits and its zones. Private to agent/core. */
#ifndef JURY_CORE_VERDICT_ZONES_H
#define JURY_CORE_VERDICT_ZONES_H

#include "agent/core/verdict.h"

/* How the zones stand for one of the columns. */
struct zone_count {
    uint8_t n_zones;
    uint8_t n_voting; /* with a counted vote, or a remembered one that blocks in this column */
    uint8_t n_agree;  /* of those: OPINION_FAIL: that fail, OPINION_PASS: that pass */
};
struct zone_count zones_count(const struct tally *tally, enum opinion wanted);

/* The rule's column: more than half of the voting zones agree. */
bool zones_hold(const struct tally *tally, enum opinion wanted);
uint8_t zones_heard(const struct tally *tally); /* with a counted vote */
/* More than half of the zones have one. */
bool zones_have_quorum(const struct tally *tally);
/* As many zones fail as pass, none perhaps, and there are votes of both kinds. */
bool zones_are_tied(const struct tally *tally);

/* The least that would make the verdict `to`, as verdict_need, for rules that ask zones: zones
 * that take the fewest votes turn round first. */
struct verdict_need zones_need(const struct verdict_rule *rule, const struct tally *tally,
                               enum health_state to);

#endif
