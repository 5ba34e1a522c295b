/* The rules of spec.md 5: hand-typed rows, and every rule but zone-majority x votes for n = 1..7
 * against a second statement of the rules (tests/oracle has one of all). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/verdict.h"

#define LOCAL         \
    {                 \
        RULE_LOCAL, 0 \
    }
#define ANY         \
    {               \
        RULE_ANY, 0 \
    }
#define MAJORITY         \
    {                    \
        RULE_MAJORITY, 0 \
    }
#define ALL         \
    {               \
        RULE_ALL, 0 \
    }
#define AT_LEAST(k)      \
    {                    \
        RULE_AT_LEAST, k \
    }
#define PERCENT(x)      \
    {                   \
        RULE_PERCENT, x \
    }

enum {
    NONE = OPINION_NONE,
    PASS = OPINION_PASS,
    FAIL = OPINION_FAIL
};

static struct verdict_rule rule_of(struct rule_column column)
{
    return (struct verdict_rule){.down = column, .up = column, .below_quorum = BELOW_QUORUM_HOLD};
}

static struct verdict_answer decide(const struct verdict_rule *rule, const struct tally *tally,
                                    enum health_state before)
{
    return verdict_decide(
        &(struct verdict_question){.rule = rule, .tally = tally, .health_state = (uint8_t)before});
}

/* state: 'i' initial, 'h' healthy, 'u' unhealthy. */
static char letter(unsigned health_state)
{
    return health_state == HEALTH_INITIAL ? 'i' : health_state == HEALTH_HEALTHY ? 'h' : 'u';
}

struct row {
    struct rule_column rule;
    uint8_t n, f, p;
    uint8_t own;
    char from_initial, from_healthy, from_unhealthy; /* the state after */
};

static void check_row(const struct row *row, size_t i)
{
    struct verdict_rule rule = rule_of(row->rule);
    struct tally tally = {.n_observers = row->n,
                          .n_fail = row->f,
                          .n_pass = row->p,
                          .own = row->own,
                          .own_opinion = row->own};
    char initial = letter(decide(&rule, &tally, HEALTH_INITIAL).health_state);
    char healthy = letter(decide(&rule, &tally, HEALTH_HEALTHY).health_state);
    char unhealthy = letter(decide(&rule, &tally, HEALTH_UNHEALTHY).health_state);

    if (initial != row->from_initial || healthy != row->from_healthy ||
        unhealthy != row->from_unhealthy) {
        fail_msg("row %zu: got %c%c%c, expected %c%c%c", i, initial, healthy, unhealthy,
                 row->from_initial, row->from_healthy, row->from_unhealthy);
    }
}

static void rules_follow_their_columns(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* majority, in the figures of the specification */
        {MAJORITY, 1, 0, 1, PASS, 'h', 'h', 'h'},
        {MAJORITY, 1, 1, 0, FAIL, 'u', 'u', 'u'},
        {MAJORITY, 1, 0, 0, NONE, 'i', 'h', 'u'},
        {MAJORITY, 2, 1, 1, FAIL, 'i', 'h', 'u'},
        {MAJORITY, 2, 2, 0, FAIL, 'u', 'u', 'u'},
        {MAJORITY, 2, 1, 0, FAIL, 'i', 'h', 'u'},
        {MAJORITY, 2, 0, 1, PASS, 'h', 'h', 'h'},
        {MAJORITY, 2, 0, 1, NONE, 'i', 'h', 'u'}, /* below quorum: the own vote must be pass */
        {MAJORITY, 3, 1, 1, PASS, 'i', 'h', 'u'},
        {MAJORITY, 3, 2, 0, PASS, 'u', 'u', 'u'},
        {MAJORITY, 3, 2, 1, PASS, 'u', 'u', 'u'},
        {MAJORITY, 3, 1, 2, PASS, 'h', 'h', 'h'},
        {MAJORITY, 3, 1, 0, FAIL, 'i', 'h', 'u'},
        {MAJORITY, 5, 2, 1, FAIL, 'u', 'u', 'u'},
        {MAJORITY, 5, 2, 0, FAIL, 'i', 'h', 'u'},
        {MAJORITY, 5, 2, 2, FAIL, 'i', 'h', 'u'},
        {MAJORITY, 5, 3, 1, FAIL, 'u', 'u', 'u'},
        {MAJORITY, 5, 2, 3, FAIL, 'h', 'h', 'h'},
        {MAJORITY, 5, 3, 2, FAIL, 'u', 'u', 'u'},
        /* local: nothing but the own vote */
        {LOCAL, 3, 1, 2, FAIL, 'u', 'u', 'u'},
        {LOCAL, 3, 2, 1, PASS, 'h', 'h', 'h'},
        {LOCAL, 3, 2, 0, NONE, 'i', 'h', 'u'},
        {LOCAL, 7, 1, 0, FAIL, 'u', 'u', 'u'}, /* no quorum needed */
        /* any */
        {ANY, 3, 1, 2, PASS, 'u', 'u', 'u'},
        {ANY, 3, 1, 1, PASS, 'u', 'u', 'u'},
        {ANY, 3, 0, 3, PASS, 'h', 'h', 'h'},
        {ANY, 3, 1, 0, FAIL, 'i', 'h', 'u'}, /* c < q */
        {ANY, 3, 0, 1, PASS, 'h', 'h', 'h'},
        {ANY, 3, 0, 0, NONE, 'i', 'h', 'u'},
        /* all */
        {ALL, 3, 3, 0, FAIL, 'u', 'u', 'u'},
        {ALL, 3, 2, 0, FAIL, 'u', 'u', 'u'},
        {ALL, 3, 2, 1, FAIL, 'h', 'h', 'h'},
        {ALL, 3, 0, 0, NONE, 'i', 'h', 'u'},
        /* at-least */
        {AT_LEAST(2), 3, 2, 1, PASS, 'u', 'u', 'u'},
        {AT_LEAST(2), 3, 1, 2, PASS, 'h', 'h', 'h'},
        {AT_LEAST(2), 5, 1, 2, PASS, 'h', 'h', 'h'},
        {AT_LEAST(3), 5, 2, 0, PASS, 'i', 'h', 'u'},
        {AT_LEAST(3), 5, 3, 2, PASS, 'u', 'u', 'u'},
        {AT_LEAST(5), 5, 3, 0, FAIL, 'i', 'h', 'u'}, /* neither column */
        /* percent; 82 is Route 53's 18 % the other way round */
        {PERCENT(82), 5, 4, 1, FAIL, 'h', 'h', 'h'}, /* 80 % */
        {PERCENT(82), 5, 5, 0, FAIL, 'u', 'u', 'u'},
        {PERCENT(80), 5, 4, 1, FAIL, 'u', 'u', 'u'},
        {PERCENT(1), 5, 0, 3, PASS, 'h', 'h', 'h'},
        {PERCENT(1), 5, 1, 4, PASS, 'u', 'u', 'u'},
        {PERCENT(100), 3, 2, 1, PASS, 'h', 'h', 'h'},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row(&rows[i], i);
    }
}

/* N1: down and up set apart. */
static void split_rules_use_the_first_column_both_ways(void **state)
{
    (void)state;
    static const struct {
        struct rule_column down, up;
        uint8_t n, f, p;
        char from_healthy, from_unhealthy;
    } rows[] = {
        {MAJORITY, ALL, 3, 1, 2, 'h', 'u'},
        {MAJORITY, ALL, 3, 0, 2, 'h', 'h'},
        {ANY, AT_LEAST(2), 3, 1, 2, 'u', 'u'},
        {ANY, AT_LEAST(2), 3, 0, 1, 'h', 'u'},
        {ANY, AT_LEAST(2), 3, 0, 2, 'h', 'h'},
        {ALL, ANY, 3, 2, 1, 'h', 'h'},
        {AT_LEAST(3), MAJORITY, 5, 2, 2, 'h', 'u'},
        {ANY, ANY, 3, 1, 2, 'u', 'u'},
        {PERCENT(60), PERCENT(60), 5, 2, 2, 'h', 'u'},
        {PERCENT(60), PERCENT(50), 5, 2, 2, 'h', 'h'},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct verdict_rule rule = {.down = rows[i].down,
                                    .up = rows[i].up,
                                    .is_split = true,
                                    .below_quorum = BELOW_QUORUM_HOLD};
        struct tally tally = {.n_observers = rows[i].n,
                              .n_fail = rows[i].f,
                              .n_pass = rows[i].p,
                              .own = PASS,
                              .own_opinion = PASS};
        char healthy = letter(decide(&rule, &tally, HEALTH_HEALTHY).health_state);
        char unhealthy = letter(decide(&rule, &tally, HEALTH_UNHEALTHY).health_state);

        if (healthy != rows[i].from_healthy || unhealthy != rows[i].from_unhealthy) {
            fail_msg("row %zu: got %c%c", i, healthy, unhealthy);
        }
    }
}

/* Silence changes no verdict. */
static void remembered_votes_only_block(void **state)
{
    (void)state;
    static const struct {
        struct rule_column rule;
        uint8_t n, f, p, lost_f, lost_p;
        char from_healthy, from_unhealthy;
    } rows[] = {
        {MAJORITY, 5, 2, 1, 0, 0, 'u', 'u'},     {MAJORITY, 5, 2, 1, 0, 1, 'h', 'u'},
        {MAJORITY, 5, 1, 2, 0, 0, 'h', 'h'},     {MAJORITY, 5, 1, 2, 1, 0, 'h', 'u'},
        {MAJORITY, 3, 1, 1, 0, 1, 'h', 'u'},     {MAJORITY, 3, 1, 1, 1, 0, 'h', 'u'},
        {MAJORITY, 5, 1, 1, 3, 0, 'h', 'u'}, /* never towards the quorum, never towards down */
        {ANY, 3, 0, 2, 1, 0, 'h', 'u'},          {ANY, 3, 1, 1, 0, 1, 'u', 'u'},
        {ALL, 3, 2, 0, 0, 1, 'h', 'u'},          {ALL, 3, 2, 0, 1, 0, 'u', 'u'},
        {AT_LEAST(2), 3, 1, 1, 1, 0, 'h', 'u'},  {AT_LEAST(2), 3, 2, 0, 0, 1, 'u', 'u'},
        {PERCENT(100), 3, 2, 0, 0, 1, 'h', 'u'}, {PERCENT(50), 5, 1, 2, 1, 0, 'h', 'u'},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct verdict_rule rule = rule_of(rows[i].rule);
        struct tally tally = {.n_observers = rows[i].n,
                              .n_fail = rows[i].f,
                              .n_pass = rows[i].p,
                              .n_lost_fail = rows[i].lost_f,
                              .n_lost_pass = rows[i].lost_p,
                              .own = NONE};
        char healthy = letter(decide(&rule, &tally, HEALTH_HEALTHY).health_state);
        char unhealthy = letter(decide(&rule, &tally, HEALTH_UNHEALTHY).health_state);

        if (healthy != rows[i].from_healthy || unhealthy != rows[i].from_unhealthy) {
            fail_msg("row %zu: got %c%c", i, healthy, unhealthy);
        }
    }
}

static void below_quorum_is_held_or_the_own_vote_decides(void **state)
{
    (void)state;
    struct verdict_rule hold = rule_of((struct rule_column)MAJORITY);
    struct verdict_rule local = hold;
    local.below_quorum = BELOW_QUORUM_LOCAL;
    static const struct {
        uint8_t n, f, p, own, before;
        char hold_after, local_after;
        uint8_t hold_causes, local_causes;
    } rows[] = {
        {3, 1, 0, FAIL, HEALTH_HEALTHY, 'h', 'u', HELD_FEW_VOTES, 0},
        {3, 0, 1, PASS, HEALTH_UNHEALTHY, 'h', 'h', HELD_FEW_VOTES, 0},
        {3, 0, 1, NONE, HEALTH_UNHEALTHY, 'u', 'u', HELD_FEW_VOTES, HELD_FEW_VOTES},
        {3, 0, 0, NONE, HEALTH_INITIAL, 'i', 'i', HELD_FEW_VOTES, HELD_FEW_VOTES},
        {5, 1, 1, PASS, HEALTH_UNHEALTHY, 'u', 'h', HELD_FEW_VOTES, 0}, /* also in a tie */
        {5, 1, 1, FAIL, HEALTH_HEALTHY, 'h', 'u', HELD_FEW_VOTES, 0},
        {3, 1, 1, FAIL, HEALTH_HEALTHY, 'h', 'h', 0, 0}, /* with a quorum the rule decides */
        {3, 2, 0, PASS, HEALTH_HEALTHY, 'u', 'u', 0, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tally tally = {.n_observers = rows[i].n,
                              .n_fail = rows[i].f,
                              .n_pass = rows[i].p,
                              .own = rows[i].own,
                              .own_opinion = rows[i].own};
        struct verdict_answer held = decide(&hold, &tally, rows[i].before);
        struct verdict_answer own = decide(&local, &tally, rows[i].before);

        if (letter(held.health_state) != rows[i].hold_after ||
            letter(own.health_state) != rows[i].local_after ||
            held.held_causes != rows[i].hold_causes || own.held_causes != rows[i].local_causes) {
            fail_msg("row %zu: hold %c causes %u, local %c causes %u", i, letter(held.health_state),
                     held.held_causes, letter(own.health_state), own.held_causes);
        }
    }
}

static void local_is_held_only_by_a_missing_or_suspect_own_vote(void **state)
{
    (void)state;
    struct verdict_rule rule = rule_of((struct rule_column)LOCAL);
    struct tally tally = {.n_observers = 5, .n_fail = 1, .own = FAIL, .own_opinion = FAIL};

    assert_int_equal(decide(&rule, &tally, HEALTH_HEALTHY).held_causes, 0);
    tally =
        (struct tally){.n_observers = 5, .own = NONE, .own_opinion = FAIL, .own_is_suspect = true};
    assert_int_equal(decide(&rule, &tally, HEALTH_HEALTHY).held_causes, HELD_NO_OWN_VOTE);
    assert_int_equal(decide(&rule, &tally, HEALTH_HEALTHY).health_state, HEALTH_HEALTHY);
    assert_false(decide(&rule, &tally, HEALTH_HEALTHY).is_unreachable);
}

static void tie_in_initial_takes_the_own_opinion_after_the_window(void **state)
{
    (void)state;
    struct verdict_rule rule = rule_of((struct rule_column)MAJORITY);
    struct tally tie = {
        .n_observers = 2, .n_fail = 1, .n_pass = 1, .own = FAIL, .own_opinion = FAIL};
    struct verdict_question question = {
        .rule = &rule, .tally = &tie, .health_state = HEALTH_INITIAL};

    assert_int_equal(verdict_decide(&question).health_state, HEALTH_INITIAL);
    question.past_initial_window = true;
    struct verdict_answer answer = verdict_decide(&question);
    assert_int_equal(answer.health_state, HEALTH_UNHEALTHY);
    assert_true(answer.is_gray);
    assert_false(answer.is_decided);

    question.health_state = answer.health_state; /* gray until a column holds */
    question.is_gray = true;
    assert_true(verdict_decide(&question).is_gray);
    struct tally agreed = {.n_observers = 2, .n_pass = 2, .own = PASS, .own_opinion = PASS};
    question.tally = &agreed;
    answer = verdict_decide(&question);
    assert_int_equal(answer.health_state, HEALTH_HEALTHY);
    assert_false(answer.is_gray);

    question = (struct verdict_question){
        .rule = &rule, .tally = &tie, .health_state = HEALTH_INITIAL, .past_initial_window = true};
    tie.own = PASS;
    tie.own_opinion = PASS;
    assert_int_equal(verdict_decide(&question).health_state, HEALTH_HEALTHY);
    tie.own = NONE; /* suspect or missing: nothing to take */
    assert_int_equal(verdict_decide(&question).health_state, HEALTH_INITIAL);
    struct tally few = {
        .n_observers = 5, .n_fail = 1, .n_pass = 1, .own = FAIL, .own_opinion = FAIL};
    question.tally = &few; /* going down needs c >= q here too */
    assert_int_equal(verdict_decide(&question).health_state, HEALTH_INITIAL);
}

/* N5: a second axis beside the verdict. */
static void healthy_with_a_failing_own_opinion_is_unreachable_from_here(void **state)
{
    (void)state;
    struct verdict_rule rule = rule_of((struct rule_column)MAJORITY);
    struct tally tally = {
        .n_observers = 3, .n_fail = 1, .n_pass = 2, .own = FAIL, .own_opinion = FAIL};

    assert_true(decide(&rule, &tally, HEALTH_HEALTHY).is_unreachable);
    tally = (struct tally){.n_observers = 3, .n_fail = 1, .own = FAIL, .own_opinion = FAIL};
    assert_true(decide(&rule, &tally, HEALTH_HEALTHY).is_unreachable); /* held for lack of votes */
    assert_false(decide(&rule, &tally, HEALTH_UNHEALTHY).is_unreachable);
    tally.own_is_suspect = true;
    tally.own = NONE;
    assert_false(decide(&rule, &tally, HEALTH_HEALTHY).is_unreachable);
    tally = (struct tally){.n_observers = 3, .n_pass = 2, .own = NONE, .own_opinion = NONE};
    assert_false(decide(&rule, &tally, HEALTH_HEALTHY).is_unreachable);
}

/* The rules once more, in the words of the table and not in those of the code: 'd', 'u' or '-'. */
static char table_says(const struct verdict_rule *rule, unsigned n, unsigned f, unsigned p,
                       unsigned own)
{
    unsigned c = f + p;
    unsigned q = n / 2 + 1;
    unsigned k = rule->down.value;
    bool down = false;
    bool up = false;

    if (rule->down.kind == RULE_LOCAL) {
        return own == FAIL ? 'd' : own == PASS ? 'u' : '-';
    }
    if (rule->down.kind == RULE_ANY) {
        down = f >= 1;
        up = f == 0 && p >= 1;
    } else if (rule->down.kind == RULE_MAJORITY) {
        down = f > p;
        up = p > f;
    } else if (rule->down.kind == RULE_ALL) {
        down = p == 0 && f >= 1;
        up = p >= 1;
    } else if (rule->down.kind == RULE_AT_LEAST) {
        down = f >= k;
        up = f < k && p >= 1;
    } else if (rule->down.kind == RULE_PERCENT) {
        down = f >= 1 && (double)f / c >= k / 100.0 - 1e-9;
        up = p >= 1 && (double)f / c < k / 100.0 - 1e-9;
    }
    if (c >= q) {
        return down ? 'd' : up ? 'u' : '-';
    }
    return !down && up && own == PASS ? 'u' : '-';
}

static void every_rule_and_vote_for_one_to_seven_nodes(void **state)
{
    (void)state;
    unsigned n_cases = 0;

    for (unsigned n = 1; n <= 7; n++) {
        for (unsigned kind = RULE_LOCAL; kind <= RULE_PERCENT; kind++) {
            unsigned last = kind == RULE_AT_LEAST ? n : kind == RULE_PERCENT ? 100 : 1;

            for (unsigned value = 1; value <= last; value++) {
                struct verdict_rule rule =
                    rule_of((struct rule_column){(uint8_t)kind, (uint8_t)value});

                for (unsigned f = 0; f <= n; f++) {
                    for (unsigned p = 0; f + p <= n; p++) {
                        for (unsigned own = NONE; own <= FAIL; own++) {
                            if ((own == PASS && p == 0) || (own == FAIL && f == 0) ||
                                (own == NONE && f + p == n)) {
                                continue;
                            }
                            struct tally tally = {.n_observers = (uint8_t)n,
                                                  .n_fail = (uint8_t)f,
                                                  .n_pass = (uint8_t)p,
                                                  .own = (uint8_t)own,
                                                  .own_opinion = (uint8_t)own};
                            char says = table_says(&rule, n, f, p, own);
                            char healthy =
                                letter(decide(&rule, &tally, HEALTH_HEALTHY).health_state);
                            char unhealthy =
                                letter(decide(&rule, &tally, HEALTH_UNHEALTHY).health_state);

                            assert_int_equal(healthy, says == 'd' ? 'u' : 'h');
                            assert_int_equal(unhealthy, says == 'u' ? 'h' : 'u');
                            n_cases++;
                        }
                    }
                }
            }
        }
    }
    assert_in_range(n_cases, 15000, 1000000);
}

/* N6: what would change it is true, and nothing less would do. */
static void the_need_for_a_change_is_exact(void **state)
{
    (void)state;
    struct verdict_rule rule = rule_of((struct rule_column)MAJORITY);
    struct tally tally = {
        .n_observers = 3, .n_fail = 1, .n_pass = 2, .own = PASS, .own_opinion = PASS};
    struct verdict_need need = verdict_need(&rule, &tally, HEALTH_UNHEALTHY);

    assert_true(need.is_possible && need.n_turned == 1 && need.n_new == 0 && !need.needs_own);
    need = verdict_need(&rule, &tally, HEALTH_HEALTHY);
    assert_true(need.is_possible && need.n_turned == 0 && need.n_new == 0);

    tally = (struct tally){.n_observers = 3, .n_fail = 1, .own = FAIL, .own_opinion = FAIL};
    need = verdict_need(&rule, &tally, HEALTH_UNHEALTHY);
    assert_true(need.is_possible && need.n_turned == 0 && need.n_new == 1);
    need = verdict_need(&rule, &tally, HEALTH_HEALTHY); /* alone: the own pass is enough */
    assert_true(need.is_possible && need.n_turned == 1 && need.n_new == 0 && need.needs_own);

    rule = rule_of((struct rule_column)LOCAL);
    tally = (struct tally){.n_observers = 3, .n_pass = 3, .own = PASS, .own_opinion = PASS};
    need = verdict_need(&rule, &tally, HEALTH_UNHEALTHY);
    assert_true(need.is_possible && need.n_turned == 1 && need.needs_own);
    rule = rule_of((struct rule_column)ALL);
    need = verdict_need(&rule, &tally, HEALTH_UNHEALTHY);
    assert_true(need.is_possible && need.n_turned == 3);
}

/* Five observers in zones of two, two and one; each vote is one of five kinds. */
static struct tally zoned_tally(const struct zone_map *zones, const uint8_t kinds[5])
{
    struct tally tally = {.n_observers = 5, .own_bit = 1, .zones = zones};

    for (unsigned i = 0; i < 5; i++) {
        uint64_t bit = UINT64_C(1) << i;
        uint64_t *const bits[] = {NULL, &tally.passes, &tally.fails, &tally.lost_passes,
                                  &tally.lost_fails};

        if (kinds[i] != 0) {
            *bits[kinds[i]] |= bit;
        }
    }
    tally.n_pass = (uint8_t)__builtin_popcountll(tally.passes);
    tally.n_fail = (uint8_t)__builtin_popcountll(tally.fails);
    tally.n_lost_pass = (uint8_t)__builtin_popcountll(tally.lost_passes);
    tally.n_lost_fail = (uint8_t)__builtin_popcountll(tally.lost_fails);
    tally.own = (tally.passes & 1) != 0 ? PASS : (tally.fails & 1) != 0 ? FAIL : NONE;
    tally.own_opinion = tally.own;
    return tally;
}

/* The least number of votes that must become `to`, over all sets of them; 6: none will do. */
static unsigned least_by_trying(const struct verdict_rule *rule, const struct zone_map *zones,
                                const uint8_t kinds[5], enum health_state to)
{
    uint8_t wanted = to == HEALTH_HEALTHY ? PASS : FAIL;
    unsigned least = 6;

    for (unsigned set = 0; set < 32; set++) {
        uint8_t then[5];
        unsigned n = 0;

        for (unsigned i = 0; i < 5; i++) {
            bool moves = (set >> i & 1) != 0 && kinds[i] != wanted;

            then[i] = moves ? wanted : kinds[i];
            n += moves;
        }
        struct tally tally = zoned_tally(zones, then);
        if (n < least && verdict_follow(rule, &tally) == to) {
            least = n;
        }
    }
    return least;
}

/* N6 with N23: what `why` says is enough, and at most one vote more than the least that would do.
 */
static void the_need_for_a_change_of_zones_is_enough_and_small(void **state)
{
    (void)state;
    const struct zone_map zones = {.n_zones = 3, .members = {3, 12, 16}};
    unsigned n_more = 0;
    unsigned n_all = 0;

    for (unsigned code = 0; code < 2 * 3125; code++) {
        struct verdict_rule rule = rule_of((struct rule_column){RULE_ZONE_MAJORITY, 0});
        enum health_state to = code % 2 == 0 ? HEALTH_HEALTHY : HEALTH_UNHEALTHY;
        uint8_t kinds[5];
        unsigned rest = code / 2;

        for (unsigned i = 0; i < 5; i++, rest /= 5) {
            kinds[i] = (uint8_t)(rest % 5);
        }
        if (kinds[0] > FAIL) {
            continue; /* the own vote is never remembered */
        }
        struct tally tally = zoned_tally(&zones, kinds);
        struct verdict_need need = verdict_need(&rule, &tally, to);
        unsigned least = least_by_trying(&rule, &zones, kinds, to);

        assert_int_equal(need.is_possible, least <= 5);
        assert_in_range(need.n_turned + need.n_new, least, least + 1);
        n_more += need.n_turned + need.n_new > least;
        n_all++;
    }
    assert_in_range(n_more, 0, n_all / 20);
}

static void rules_are_written_as_people_write_them(void **state)
{
    (void)state;
    char text[64];
    struct verdict_rule rule = rule_of((struct rule_column)AT_LEAST(2));

    assert_string_equal(verdict_rule_format(&rule, text, sizeof text), "at-least 2");
    rule = (struct verdict_rule){.down = ANY, .up = PERCENT(82), .is_split = true};
    assert_string_equal(verdict_rule_format(&rule, text, sizeof text), "down: any, up: percent 82");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_follow_their_columns),
        cmocka_unit_test(split_rules_use_the_first_column_both_ways),
        cmocka_unit_test(remembered_votes_only_block),
        cmocka_unit_test(below_quorum_is_held_or_the_own_vote_decides),
        cmocka_unit_test(local_is_held_only_by_a_missing_or_suspect_own_vote),
        cmocka_unit_test(tie_in_initial_takes_the_own_opinion_after_the_window),
        cmocka_unit_test(healthy_with_a_failing_own_opinion_is_unreachable_from_here),
        cmocka_unit_test(every_rule_and_vote_for_one_to_seven_nodes),
        cmocka_unit_test(the_need_for_a_change_is_exact),
        cmocka_unit_test(the_need_for_a_change_of_zones_is_enough_and_small),
        cmocka_unit_test(rules_are_written_as_people_write_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
