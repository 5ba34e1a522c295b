#include "agent/core/verdict.h"

#include <assert.h>
#include <stdio.h>

#include "agent/core/verdict_zones.h"
#include "common/base/plant.h"

uint8_t tally_counted(const struct tally *tally)
{
    return (uint8_t)(tally->n_fail + tally->n_pass);
}

uint8_t tally_quorum(const struct tally *tally)
{
    return (uint8_t)(tally->n_observers / 2 + 1);
}

/* A rule's first column: `wanted` votes of the kind that it looks for, out of `counted`. */
static bool first_column(struct rule_column column, unsigned wanted, unsigned counted,
                         bool own_wants)
{
    switch ((enum rule_kind)column.kind) {
    case RULE_NONE:
        break;
    case RULE_LOCAL:
        return own_wants;
    case RULE_ANY:
        return wanted >= 1;
    case RULE_MAJORITY:
        return 2 * wanted > counted || (plant_is("verdict-half-is-most") && 2 * wanted == counted);
    case RULE_ALL:
        return wanted == counted && wanted >= 1;
    case RULE_AT_LEAST:
        return column.value >= 1 && wanted >= column.value;
    case RULE_PERCENT:
        return 100 * wanted >= column.value * counted && wanted >= 1;
    case RULE_ZONE_MAJORITY:
        break; /* asks zones, not votes */
    }
    return false;
}

/* A rule's second column: when it comes up, down and up not set apart. */
static bool second_column(struct rule_column column, unsigned fail, unsigned pass, unsigned counted,
                          bool own_passes)
{
    switch ((enum rule_kind)column.kind) {
    case RULE_NONE:
        break;
    case RULE_LOCAL:
        return own_passes;
    case RULE_ANY:
        return fail == 0 && pass >= 1;
    case RULE_MAJORITY:
        return 2 * pass > counted;
    case RULE_ALL:
        return pass >= 1;
    case RULE_AT_LEAST:
        return fail < column.value && pass >= 1;
    case RULE_PERCENT:
        return 100 * fail < column.value * counted && pass >= 1;
    case RULE_ZONE_MAJORITY:
        break; /* asks zones, not votes */
    }
    return false;
}

/* A remembered pass stands in p and c of the down column, where it can only block. */
bool verdict_down_holds(const struct verdict_rule *rule, const struct tally *tally)
{
    unsigned lost = plant_is("verdict-lost-ignored") ? 0 : tally->n_lost_pass;
    unsigned counted = tally_counted(tally) + lost;

    if (rule->down.kind == RULE_ZONE_MAJORITY) {
        return plant_is("zone-counts-nodes") ? 2U * tally->n_fail > counted
                                             : zones_hold(tally, OPINION_FAIL);
    }
    return first_column(rule->down, tally->n_fail, counted, tally->own == OPINION_FAIL);
}

/* A remembered fail stands in f and c of the up column, where it can only block. Up never holds
 * where down does. */
bool verdict_up_holds(const struct verdict_rule *rule, const struct tally *tally)
{
    unsigned counted = (unsigned)tally_counted(tally) + tally->n_lost_fail;
    unsigned fail = (unsigned)tally->n_fail + tally->n_lost_fail;
    bool own_passes = tally->own == OPINION_PASS;

    if (verdict_down_holds(rule, tally)) {
        return false;
    }
    if (rule->up.kind == RULE_ZONE_MAJORITY) {
        return zones_hold(tally, OPINION_PASS);
    }
    if (rule->is_split) {
        return first_column(rule->up, tally->n_pass, counted, own_passes);
    }
    return second_column(rule->up, fail, tally->n_pass, counted, own_passes);
}

static bool is_local(const struct verdict_rule *rule)
{
    return rule->down.kind == RULE_LOCAL && rule->up.kind == RULE_LOCAL;
}

bool verdict_asks_zones(const struct verdict_rule *rule)
{
    return rule->down.kind == RULE_ZONE_MAJORITY || rule->up.kind == RULE_ZONE_MAJORITY;
}

static bool has_quorum(const struct verdict_rule *rule, const struct tally *tally)
{
    unsigned counted = tally_counted(tally);

    if (plant_is("verdict-lost-for-quorum")) {
        counted += (unsigned)tally->n_lost_fail + tally->n_lost_pass;
    }
    if (plant_is("quorum-of-heard")) {
        return counted >= 1;
    }
    return counted >= tally_quorum(tally) &&
           (!verdict_asks_zones(rule) || zones_have_quorum(tally));
}

/* `below-quorum: local`: with too few votes the own one decides. */
static bool own_decides(const struct verdict_rule *rule, const struct tally *tally)
{
    return rule->below_quorum == BELOW_QUORUM_LOCAL && !is_local(rule) && !has_quorum(rule, tally);
}

bool verdict_is_by_own(const struct verdict_rule *rule, const struct tally *tally,
                       enum health_state to)
{
    if (own_decides(rule, tally)) {
        return true;
    }
    if (to == HEALTH_UNHEALTHY) {
        return rule->down.kind == RULE_LOCAL;
    }
    return to == HEALTH_HEALTHY ? rule->up.kind == RULE_LOCAL : is_local(rule);
}

enum health_state verdict_follow(const struct verdict_rule *rule, const struct tally *tally)
{
    bool enough = has_quorum(rule, tally);

    if (plant_is("verdict-no-quorum")) {
        enough = true;
    }
    if (own_decides(rule, tally) && !enough) {
        return tally->own == OPINION_FAIL   ? HEALTH_UNHEALTHY
               : tally->own == OPINION_PASS ? HEALTH_HEALTHY
                                            : HEALTH_NONE;
    }
    if (verdict_down_holds(rule, tally)) {
        return enough || rule->down.kind == RULE_LOCAL ? HEALTH_UNHEALTHY : HEALTH_NONE;
    }
    if (verdict_up_holds(rule, tally) &&
        (enough || tally->own == OPINION_PASS || plant_is("up-without-own"))) {
        return HEALTH_HEALTHY;
    }
    return HEALTH_NONE;
}

static uint8_t find_held_causes(const struct verdict_rule *rule, const struct tally *tally)
{
    bool uses_own = rule->down.kind == RULE_LOCAL || rule->up.kind == RULE_LOCAL;
    uint8_t causes = 0;

    if (uses_own && tally->own == OPINION_NONE) {
        causes |= HELD_NO_OWN_VOTE;
    }
    if (!is_local(rule) && !has_quorum(rule, tally) &&
        !(own_decides(rule, tally) && tally->own != OPINION_NONE)) {
        causes |= HELD_FEW_VOTES;
    }
    return causes;
}

static bool is_tie(const struct verdict_rule *rule, const struct tally *tally)
{
    if (tally->own == OPINION_NONE || !has_quorum(rule, tally)) {
        return false;
    }
    return verdict_asks_zones(rule) ? zones_are_tied(tally)
                                    : tally->n_fail == tally->n_pass && tally->n_fail >= 1;
}

struct verdict_answer verdict_decide(const struct verdict_question *question)
{
    const struct tally *tally = question->tally;
    struct verdict_answer answer = {.health_state = question->health_state,
                                    .is_gray = question->is_gray};
    enum health_state followed = verdict_follow(question->rule, tally);

    assert(question->health_state == HEALTH_INITIAL || question->health_state == HEALTH_HEALTHY ||
           question->health_state == HEALTH_UNHEALTHY);
    assert(!question->is_gray || question->health_state != HEALTH_INITIAL);

    if (followed != HEALTH_NONE) {
        answer.health_state = (uint8_t)followed;
        answer.is_gray = false;
        answer.is_decided = true;
    } else if (question->health_state == HEALTH_INITIAL && question->past_initial_window &&
               is_tie(question->rule, tally)) {
        answer.health_state = tally->own == OPINION_PASS ? HEALTH_HEALTHY : HEALTH_UNHEALTHY;
        answer.is_gray = true;
    }
    answer.held_causes = find_held_causes(question->rule, tally);
    answer.is_unreachable = answer.health_state == HEALTH_HEALTHY &&
                            tally->own_opinion == OPINION_FAIL && !tally->own_is_suspect;
    return answer;
}

/* The tally after n_turned votes turned round and n_new came in, all to `to`. */
static struct tally imagine(const struct tally *tally, enum health_state to, uint8_t n_turned,
                            uint8_t n_new, bool own_too)
{
    struct tally then = *tally;
    bool fails = to == HEALTH_UNHEALTHY;
    uint8_t *wanted = fails ? &then.n_fail : &then.n_pass;
    uint8_t *against = fails ? &then.n_pass : &then.n_fail;
    uint8_t n_lost = (uint8_t)(then.n_lost_fail + then.n_lost_pass);

    *wanted = (uint8_t)(*wanted + n_turned + n_new);
    *against = (uint8_t)(*against - n_turned);
    /* Peers that are heard again are remembered no more; the ones that block come back first. */
    uint8_t n_back = n_new < n_lost ? n_new : n_lost;
    uint8_t *blocking = fails ? &then.n_lost_pass : &then.n_lost_fail;
    uint8_t *other = fails ? &then.n_lost_fail : &then.n_lost_pass;
    uint8_t n_first = n_back < *blocking ? n_back : *blocking;
    *blocking = (uint8_t)(*blocking - n_first);
    *other = (uint8_t)(*other - (n_back - n_first));
    if (own_too) {
        then.own = fails ? OPINION_FAIL : OPINION_PASS;
    }
    return then;
}

bool tally_own_rests(const struct tally *tally)
{
    return tally->electors != 0 && (tally->electors & tally->own_bit) == 0;
}

/* The own vote can be among those that move: it counts against `to`, or not at all. */
static bool own_can_move(const struct tally *tally, enum health_state to, uint8_t n_turned,
                         uint8_t n_new)
{
    if (tally->own == OPINION_NONE) {
        return n_new >= 1 && !tally_own_rests(tally);
    }
    return tally->own == (to == HEALTH_UNHEALTHY ? OPINION_PASS : OPINION_FAIL) && n_turned >= 1;
}

struct verdict_need verdict_need(const struct verdict_rule *rule, const struct tally *tally,
                                 enum health_state to)
{
    uint8_t n_against = to == HEALTH_UNHEALTHY ? tally->n_pass : tally->n_fail;
    uint8_t n_missing = (uint8_t)(tally->n_observers > tally_counted(tally)
                                      ? tally->n_observers - tally_counted(tally)
                                      : 0);

    if (verdict_asks_zones(rule)) {
        return zones_need(rule, tally, to);
    }
    for (unsigned n = 0; n <= (unsigned)n_against + n_missing; n++) {
        for (unsigned own_too = 0; own_too <= 1; own_too++) {
            for (unsigned n_turned = 0; n_turned <= n && n_turned <= n_against; n_turned++) {
                uint8_t turned = (uint8_t)n_turned;
                uint8_t new = (uint8_t)(n - n_turned);

                if (new > n_missing || (own_too && !own_can_move(tally, to, turned, new))) {
                    continue;
                }
                struct tally then = imagine(tally, to, turned, new, own_too);
                if (verdict_follow(rule, &then) == to) {
                    return (struct verdict_need){.is_possible = true,
                                                 .n_turned = turned,
                                                 .n_new = new,
                                                 .needs_own = own_too};
                }
            }
        }
    }
    return (struct verdict_need){0};
}

char *verdict_rule_format(const struct verdict_rule *rule, char *text, unsigned text_bytes)
{
    char down[RULE_TEXT_BYTES];
    char up[RULE_TEXT_BYTES];

    rule_column_format(&rule->down, down);
    if (!rule->is_split) {
        snprintf(text, text_bytes, "%s", down);
    } else {
        snprintf(text, text_bytes, "down: %s, up: %s", down, rule_column_format(&rule->up, up));
    }
    return text;
}
