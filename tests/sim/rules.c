#include "tests/sim/rules.h"

#include <string.h>

#include "tests/sim/shared.h"
#include "tests/sim/witness.h"

static void note_vote(struct count *count, uint64_t id, char vote)
{
    count->votes[id] = vote;
    count->f += vote == 'f';
    count->p += vote == 'p';
    count->lost_f += vote == 'F';
    count->lost_p += vote == 'P';
}

static char judge_told(struct checker *checker, struct witness *witness, uint32_t slot,
                       struct told *told, uint64_t now_ns)
{
    uint64_t fresh_ns = 3 * witness_interval_ns(witness);
    uint64_t memory_ns =
        witness_cycles_ns(witness, slot, witness_check_at(witness, slot)->unhealthy_threshold) +
        fresh_ns;
    bool fails = told->opinion == OPINION_FAIL;

    if (told->opinion == OPINION_NONE) {
        return 0;
    }
    if (!told->withdrawn && now_ns - told->heard_ns <= fresh_ns) {
        return fails ? 'f' : 'p';
    }
    uint64_t stopped_ns = told->withdrawn ? told->withdrawn_ns : told->heard_ns + fresh_ns;
    if (now_ns <= stopped_ns + memory_ns) {
        checker->sometimes->vote_expired += !told->withdrawn;
        return fails ? 'F' : 'P';
    }
    told->opinion = OPINION_NONE;
    checker->sometimes->vote_lapsed++;
    return 0;
}

struct count rules_count_all(struct checker *checker, struct witness *witness,
                             const struct world_node *node, uint32_t slot, uint64_t now_ns)
{
    bool is_doubted = witness_doubts(witness, slot); /* counts nowhere, and steers nothing */
    uint8_t own = witness_own_opinion(checker, witness, slot, now_ns);
    struct count count = {.own = is_doubted ? OPINION_NONE : own};

    checker->sometimes->suspect_own += is_doubted && own != OPINION_NONE;
    note_vote(&count, node->id,
              count.own == OPINION_FAIL   ? 'f'
              : count.own == OPINION_PASS ? 'p'
                                          : 0);
    for (uint32_t peer = 1; peer <= checker->n_nodes_max; peer++) {
        struct told *told = &witness->told[peer][slot];

        count.n += witness->entered[peer];
        count.in_n[peer] = witness->entered[peer];
        if (peer == node->id) {
            continue;
        }
        if (witness->entered[peer]) {
            note_vote(&count, peer, judge_told(checker, witness, slot, told, now_ns));
        } else {
            checker->sometimes->voter_not_entered += told->opinion != OPINION_NONE;
        }
    }
    return count;
}

struct count rules_count(struct checker *checker, struct witness *witness,
                         const struct world_node *node, uint32_t slot, uint64_t now_ns)
{
    struct count all = rules_count_all(checker, witness, node, slot, now_ns);
    struct count count = {.own = all.own};

    if (!shared_is(witness, slot)) {
        return all;
    }
    for (uint32_t id = 1; id <= checker->n_nodes_max; id++) {
        count.in_n[id] = witness->sharing[slot].voters[id];
        count.n += count.in_n[id];
        if (count.in_n[id]) {
            note_vote(&count, id, all.votes[id]);
        }
    }
    return count;
}

/* --- zones --- */

struct zone_sum {
    const char *name;
    unsigned n, f, p, lost_f, lost_p;
};

/* What of the zones, by the rule's sentence (common/model/rule.h). */
struct zones_say {
    unsigned n, n_heard; /* zones; those with a counted vote */
    unsigned n_fail, n_may_fail;
    unsigned n_pass, n_may_pass;
};

static struct zones_say ask_zones(const struct witness *witness, const struct count *count)
{
    struct zone_sum zones[WORLD_NODES + 1];
    struct zones_say say = {0};

    for (uint32_t id = 1; id <= WORLD_NODES; id++) {
        if (!count->in_n[id]) {
            continue;
        }
        const char *name = catalog_node_find(witness->catalog, id)->spec.zone;
        unsigned at = 0;
        while (at < say.n && strcmp(zones[at].name, name) != 0) {
            at++;
        }
        if (at == say.n) {
            zones[say.n++] = (struct zone_sum){.name = name};
        }
        zones[at].n++;
        zones[at].f += count->votes[id] == 'f';
        zones[at].p += count->votes[id] == 'p';
        zones[at].lost_f += count->votes[id] == 'F';
        zones[at].lost_p += count->votes[id] == 'P';
    }
    for (unsigned i = 0; i < say.n; i++) {
        const struct zone_sum *zone = &zones[i];
        unsigned c = zone->f + zone->p;

        say.n_heard += c > 0;
        say.n_may_fail += c + zone->lost_p > 0;
        say.n_may_pass += c + zone->lost_f > 0;
        say.n_fail += zone->f > zone->p + zone->lost_p && 2 * c >= zone->n;
        say.n_pass += zone->p > zone->f + zone->lost_f;
    }
    return say;
}

static bool asks_zones(const struct verdict_rule *rule)
{
    return rule->down.kind == RULE_ZONE_MAJORITY || rule->up.kind == RULE_ZONE_MAJORITY;
}

static bool has_quorum(const struct witness *witness, const struct verdict_rule *rule,
                       const struct count *v)
{
    if (v->f + v->p < v->n / 2 + 1) {
        return false;
    }
    if (!asks_zones(rule)) {
        return true;
    }
    struct zones_say say = ask_zones(witness, v);
    return say.n_heard > say.n - say.n_heard;
}

/* --- columns --- */

/* What a column looks at. */
struct column {
    struct rule_column rule;
    unsigned wanted, c; /* votes of the kind it looks for, of how many */
    bool own_wants;
    unsigned zones_wanted, zones_voting;
};

/* "goes down when", in the words of spec.md 5; of a rule set apart, also "comes up". */
static bool first_column(const struct column *column)
{
    unsigned wanted = column->wanted;

    switch ((enum rule_kind)column->rule.kind) {
    case RULE_NONE:
        break;
    case RULE_LOCAL:
        return column->own_wants;
    case RULE_ANY:
        return wanted >= 1;
    case RULE_MAJORITY:
        return wanted > column->c - wanted;
    case RULE_ALL:
        return wanted == column->c && wanted >= 1;
    case RULE_AT_LEAST:
        return wanted >= column->rule.value;
    case RULE_PERCENT:
        return wanted * 100 >= column->rule.value * column->c && wanted >= 1;
    case RULE_ZONE_MAJORITY:
        return column->zones_wanted > column->zones_voting - column->zones_wanted;
    }
    return false;
}

/* "comes up when" of a rule whose columns are not set apart. */
static bool second_column(struct rule_column rule, unsigned f, const struct column *up)
{
    unsigned p = up->wanted;

    return rule.kind == RULE_ANY        ? f == 0 && p >= 1
           : rule.kind == RULE_ALL      ? p >= 1
           : rule.kind == RULE_AT_LEAST ? f < rule.value && p >= 1
           : rule.kind == RULE_PERCENT  ? f * 100 < rule.value * up->c && p >= 1
                                        : first_column(up); /* the same with p for f */
}

static bool goes_down(const struct witness *witness, const struct verdict_rule *rule,
                      const struct count *v, unsigned lost_p)
{
    struct column down = {.rule = rule->down,
                          .wanted = v->f,
                          .c = v->f + v->p + lost_p,
                          .own_wants = v->own == OPINION_FAIL};

    if (rule->down.kind == RULE_ZONE_MAJORITY) {
        struct zones_say say = ask_zones(witness, v);

        down.zones_wanted = say.n_fail;
        down.zones_voting = say.n_may_fail;
    }
    return first_column(&down);
}

static bool comes_up(const struct witness *witness, const struct verdict_rule *rule,
                     const struct count *v, unsigned lost_f)
{
    struct column up = {.rule = rule->up,
                        .wanted = v->p,
                        .c = v->f + v->p + lost_f,
                        .own_wants = v->own == OPINION_PASS};

    if (rule->up.kind == RULE_ZONE_MAJORITY) {
        struct zones_say say = ask_zones(witness, v);

        up.zones_wanted = say.n_pass;
        up.zones_voting = say.n_may_pass;
    }
    return rule->is_split ? first_column(&up) : second_column(rule->up, v->f + lost_f, &up);
}

/* Zones and plain votes would not say the same: it is the zones that decide. */
static bool zones_decide(const struct witness *witness, const struct verdict_rule *rule,
                         const struct count *v, char said)
{
    struct verdict_rule plain = *rule;

    plain.down.kind = plain.up.kind = RULE_MAJORITY;
    return said == 'd' ? !goes_down(witness, &plain, v, v->lost_p)
                       : !comes_up(witness, &plain, v, v->lost_f);
}

char rules_follow(struct checker *checker, const struct witness *witness,
                  const struct verdict_rule *rule, const struct count *v)
{
    struct sometimes *sometimes = checker->sometimes;
    bool enough = has_quorum(witness, rule, v);
    bool is_local = rule->down.kind == RULE_LOCAL && rule->up.kind == RULE_LOCAL;
    bool down = goes_down(witness, rule, v, v->lost_p);
    bool up = !down && comes_up(witness, rule, v, v->lost_f);

    sometimes->down_blocked += !down && goes_down(witness, rule, v, 0);
    sometimes->up_blocked += !down && !up && comes_up(witness, rule, v, 0);
    if (!enough && rule->below_quorum == BELOW_QUORUM_LOCAL && !is_local) {
        sometimes->own_decided += v->own != OPINION_NONE;
        return v->own == OPINION_FAIL ? 'd' : v->own == OPINION_PASS ? 'u' : '-';
    }
    char said = down ? 'd' : up ? 'u' : '-';
    if (rule->down.kind == RULE_ZONE_MAJORITY && enough && said == 'd') {
        sometimes->zones_decided_down += zones_decide(witness, rule, v, said);
    } else if (rule->up.kind == RULE_ZONE_MAJORITY && enough && said == 'u') {
        sometimes->zones_decided_up += zones_decide(witness, rule, v, said);
    }
    if (down) {
        sometimes->quorum_blocked += !enough && rule->down.kind != RULE_LOCAL;
        sometimes->zone_quorum_blocked += !enough && v->f + v->p >= v->n / 2 + 1;
        return enough || rule->down.kind == RULE_LOCAL ? 'd' : '-';
    }
    return up && (enough || v->own == OPINION_PASS) ? 'u' : '-';
}

bool rules_are_tied(const struct witness *witness, const struct verdict_rule *rule,
                    const struct count *v)
{
    if (v->own == OPINION_NONE || !has_quorum(witness, rule, v)) {
        return false;
    }
    if (asks_zones(rule)) {
        struct zones_say say = ask_zones(witness, v);

        return say.n_fail == say.n_pass && v->f >= 1 && v->p >= 1;
    }
    return v->f == v->p && v->f >= 1;
}

bool rules_hold_back(const struct witness *witness, const struct verdict_rule *rule,
                     const struct count *v)
{
    unsigned n_local = (rule->down.kind == RULE_LOCAL) + (rule->up.kind == RULE_LOCAL);
    bool own_decides = rule->below_quorum == BELOW_QUORUM_LOCAL && v->own != OPINION_NONE;

    return (n_local > 0 && v->own == OPINION_NONE) ||
           (n_local < 2 && !has_quorum(witness, rule, v) && !own_decides);
}
