/* What a scenario expects of verdicts, votes and groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/row_words.h"
#include "tests/scenario/script.h"

struct word_value {
    const char *word;
    uint8_t value;
};

static const struct word_value states[] = {
    {"initial", HEALTH_INITIAL},     {"healthy", HEALTH_HEALTHY},
    {"unhealthy", HEALTH_UNHEALTHY}, {"unavailable", HEALTH_UNAVAILABLE},
    {"unused", HEALTH_UNUSED},       {NULL, 0},
};
static const struct word_value group_states[] = {
    {"ok", GROUP_OK},
    {"degraded", GROUP_DEGRADED},
    {"fail-open", GROUP_FAIL_OPEN},
    {"closed", GROUP_CLOSED},
    {NULL, 0},
};
static const struct word_value marks[] = {
    {"held", MARK_HELD},         {"gray", MARK_GRAY},
    {"suspect", MARK_SUSPECT},   {"warming", MARK_WARMING},
    {"degraded", MARK_DEGRADED}, {"pending", MARK_PENDING},
    {"flapping", MARK_FLAPPING}, {NULL, 0},
};
static const struct word_value held_words[] = {
    {"held-few-votes", HELD_FEW_VOTES},
    {"held-no-own-vote", HELD_NO_OWN_VOTE},
    {"held-check-changed", HELD_CHECK_CHANGED},
    {"held-last-known-good", HELD_LAST_KNOWN_GOOD},
    {"held-hold", HELD_BY_HOLD},
    {"held-shadow", HELD_BY_SHADOW},
    {NULL, 0},
};

static bool find_word(const struct word_value *table, const char *word, uint8_t *ret_value)
{
    for (; table->word != NULL; table++) {
        if (strcmp(table->word, word) == 0) {
            *ret_value = table->value;
            return true;
        }
    }
    return false;
}

static bool parse_figure(struct scenario *scenario, const char *word, struct expectation *to)
{
    const struct {
        const char *name;
        int16_t *to;
    } figures[] = {{"n=", &to->n}, {"q=", &to->q},       {"c=", &to->c},        {"f=", &to->f},
                   {"p=", &to->p}, {"lost=", &to->lost}, {"share=", &to->share}};

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        size_t n = strlen(figures[i].name);

        if (strncmp(word, figures[i].name, n) == 0) {
            *figures[i].to = (int16_t)script_number(scenario, word + n, 100);
            return true;
        }
    }
    return false;
}

/* "none" or "hold,velocity": bits, plus one. */
static uint16_t parse_guards(struct scenario *scenario, const char *text)
{
    char list[64];
    unsigned bits = 0;
    char *rest = NULL;

    snprintf(list, sizeof list, "%s", text);
    for (char *word = strtok_r(list, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        unsigned guard = GUARD_NONE + 1;

        while (guard < GUARD_KINDS && strcmp(guard_word(guard), word) != 0) {
            guard++;
        }
        if (guard == GUARD_KINDS && strcmp(word, "none") != 0) {
            script_fail(scenario, "unknown guard \"%s\"", word);
        }
        bits |= guard == GUARD_KINDS ? 0 : 1U << guard;
    }
    return (uint16_t)(bits + 1);
}

static uint16_t guards_of(const struct group_view *view)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < view->n_guards; i++) {
        bits |= 1U << view->guards[i].guard;
    }
    return (uint16_t)(bits + 1);
}

static bool parse_named(struct scenario *scenario, const char *word, struct expectation *to)
{
    if (strncmp(word, "class=", 6) == 0) {
        for (unsigned class = 0; class <= ROW_SCOPE_WARMING; class ++) {
            if (strcmp(row_class_word(class), word + 6) == 0) {
                to->class_wanted = (uint8_t)(class + 1);
                return true;
            }
        }
        script_fail(scenario, "unknown class in \"%s\"", word);
    }
    if (strncmp(word, "guards=", 7) == 0) {
        to->guards = parse_guards(scenario, word + 7);
        return true;
    }
    if (strncmp(word, "opinion=", 8) == 0) {
        for (unsigned opinion = OPINION_NONE; opinion <= OPINION_FAIL; opinion++) {
            if (strcmp(opinion_word((enum opinion)opinion), word + 8) == 0) {
                to->opinion_wanted = (uint8_t)(opinion + 1);
                return true;
            }
        }
        script_fail(scenario, "unknown opinion in \"%s\"", word);
    }
    if (strncmp(word, "reason=", 7) == 0) {
        snprintf(to->reason, sizeof to->reason, "%s", word + 7);
        return true;
    }
    return false;
}

static void parse_word(struct scenario *scenario, const char *word, struct expectation *to)
{
    bool is_group = to->backend[0] == '\0';
    uint8_t value;

    if (find_word(is_group ? group_states : states, word, &value)) {
        to->state = value;
    } else if (find_word(marks, word, &value)) {
        to->marks_set |= value;
    } else if (strncmp(word, "not-", 4) == 0 && find_word(marks, word + 4, &value)) {
        to->marks_clear |= value;
    } else if (find_word(held_words, word, &value)) {
        to->held |= value;
    } else if (strcmp(word, "unreachable") == 0) {
        to->unreachable = 1;
    } else if (strcmp(word, "reachable") == 0) {
        to->unreachable = 0;
    } else if (!parse_figure(scenario, word, to) && !parse_named(scenario, word, to)) {
        script_fail(scenario, "\"%s\" is nothing that can be expected", word);
    }
}

void expectation_parse(struct scenario *scenario, uint32_t first, struct expectation *ret)
{
    const struct line *line = &scenario->line;
    struct named_backend *backend;

    *ret = (struct expectation){.line = line->number,
                                .unreachable = -1,
                                .n = -1,
                                .q = -1,
                                .c = -1,
                                .f = -1,
                                .p = -1,
                                .lost = -1,
                                .share = -1};
    if (first < line->n && strcmp(line->words[first], "all") == 0) {
        first++;
    } else if (first + 1 < line->n && strcmp(line->words[first], "node") == 0) {
        ret->node_id = script_number(scenario, line->words[first + 1], scenario->world.n_nodes);
        first += 2;
    } else {
        script_fail(scenario, "expected \"all\" or \"node N\"");
    }
    if (first + 1 >= line->n) {
        script_fail(scenario, "nothing is expected here");
    }
    struct named_group *group = script_find(scenario, line->words[first], &backend);
    memcpy(ret->group, group->spec.name, sizeof ret->group);
    if (backend != NULL) {
        snprintf(ret->backend, sizeof ret->backend, "%s", backend->name);
    }
    for (uint32_t i = first + 1; i < line->n; i++) {
        parse_word(scenario, line->words[i], ret);
    }
}

static bool is_or_any(int16_t wanted, unsigned is)
{
    return wanted < 0 || (unsigned)wanted == is;
}

static uint8_t own_opinion(const struct backend_view *view)
{
    for (unsigned i = 0; i < view->n_votes; i++) {
        if (view->votes[i].is_self) {
            return view->votes[i].opinion;
        }
    }
    return OPINION_NONE;
}

static bool backend_holds(struct scenario *scenario, const struct expectation *e,
                          const struct world_node *node, char *text)
{
    char name[LIMIT_NAME_BYTES + 20];
    struct named_backend *backend;
    struct backend_view v;
    uint64_t now_ns = world_local_ns(&scenario->world, node);

    snprintf(name, sizeof name, "%s/%s", e->group, e->backend);
    script_find(scenario, name, &backend);
    if (engine_view_backend(node->engine, e->group, &backend->at, now_ns, now_ns, &v) != 0) {
        snprintf(text, SCRIPT_TEXT_BYTES, "node %u does not know %s", (unsigned)node->id, name);
        return false;
    }
    unsigned lost = (unsigned)v.n_remembered_fail + v.n_remembered_pass;
    snprintf(text, SCRIPT_TEXT_BYTES,
             "node %u has %s %s marks=%#x held=%#x%s n=%u q=%u c=%u f=%u p=%u lost=%u class=%s "
             "share=%u opinion=%s reason=%s",
             (unsigned)node->id, name, health_state_word((enum health_state)v.health_state),
             v.marks, v.held_causes, v.is_unreachable ? " unreachable" : "", v.n_observers,
             v.quorum, v.n_counted, v.n_fail, v.n_pass, lost, row_class_word(v.row_class),
             v.weight_percent, opinion_word((enum opinion)own_opinion(&v)),
             probe_reason_word(v.reason));
    return (e->state == 0 || e->state == v.health_state) &&
           (v.marks & e->marks_set) == e->marks_set && (v.marks & e->marks_clear) == 0 &&
           (v.held_causes & e->held) == e->held &&
           (e->unreachable < 0 || v.is_unreachable == (e->unreachable == 1)) &&
           is_or_any(e->n, v.n_observers) && is_or_any(e->q, v.quorum) &&
           is_or_any(e->c, v.n_counted) && is_or_any(e->f, v.n_fail) && is_or_any(e->p, v.n_pass) &&
           is_or_any(e->lost, lost) && is_or_any(e->share, v.weight_percent) &&
           (e->class_wanted == 0 || e->class_wanted == v.row_class + 1) &&
           (e->opinion_wanted == 0 || e->opinion_wanted == own_opinion(&v) + 1) &&
           (e->reason[0] == '\0' || strcmp(e->reason, probe_reason_word(v.reason)) == 0);
}

static bool group_holds(struct scenario *scenario, const struct expectation *e,
                        const struct world_node *node, char *text)
{
    struct group_view v;

    if (engine_view_group(node->engine, e->group, world_local_ns(&scenario->world, node), &v) !=
        0) {
        snprintf(text, SCRIPT_TEXT_BYTES, "node %u does not know %s", (unsigned)node->id, e->group);
        return false;
    }
    snprintf(text, SCRIPT_TEXT_BYTES, "node %u has group %s %s%s guards=%#x", (unsigned)node->id,
             e->group, group_state_word((enum group_state)v.group_state),
             v.marks != 0 ? " warming" : "", guards_of(&v) - 1U);
    return (e->state == 0 || e->state == v.group_state) &&
           (e->guards == 0 || e->guards == guards_of(&v)) &&
           (v.marks & e->marks_set) == e->marks_set && (v.marks & e->marks_clear) == 0;
}

bool expectation_holds(struct scenario *scenario, const struct expectation *expectation,
                       const struct world_node *node, char *text)
{
    return expectation->backend[0] == '\0' ? group_holds(scenario, expectation, node, text)
                                           : backend_holds(scenario, expectation, node, text);
}

void expectation_check(struct scenario *scenario, const struct expectation *expectation)
{
    char text[SCRIPT_TEXT_BYTES];

    for (uint32_t id = 1; id <= scenario->world.n_nodes; id++) {
        const struct world_node *node = &scenario->world.nodes[id];

        if (!node->is_up || (expectation->node_id != 0 && expectation->node_id != id)) {
            continue;
        }
        scenario->n_expectations++;
        if (!expectation_holds(scenario, expectation, node, text)) {
            scenario->line.number = expectation->line;
            script_fail(scenario, "not as expected at %.9f s: %s",
                        (double)scenario->world.now_ns / 1e9, text);
        }
    }
}
