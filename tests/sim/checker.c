#include "tests/sim/checker.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/table/jury_table.h"
#include "tests/lib/engine_lines.h"
#include "tests/sim/witness.h"

static const struct checker_part *const parts[] = {&checker_table, &checker_replay};

#define N_PARTS (sizeof parts / sizeof *parts)

void checker_fail(struct checker *checker, const struct world_node *node, const char *format, ...)
{
    va_list arguments;

    if (checker->failed) {
        return; /* the first one says it */
    }
    checker->failed = true;
    int n = snprintf(checker->failure, sizeof checker->failure,
                     "at %.9f s on node %u: ", (double)checker->world->now_ns / 1e9,
                     (unsigned)node->id);
    va_start(arguments, format);
    vsnprintf(checker->failure + n, sizeof checker->failure - (size_t)n, format, arguments);
    va_end(arguments);
}

struct count {
    unsigned n, f, p, lost_f, lost_p;
    uint8_t own; /* the vote, if it counts */
};

static void count_told(struct checker *checker, struct witness *witness, uint32_t slot,
                       struct told *told, uint64_t now_ns, struct count *count)
{
    uint64_t fresh_ns = 3 * witness_interval_ns(witness);
    uint64_t memory_ns =
        witness_cycles_ns(witness, slot, witness_check_at(witness, slot)->unhealthy_threshold) +
        fresh_ns;
    bool fails = told->opinion == OPINION_FAIL;

    if (told->opinion == OPINION_NONE) {
        return;
    }
    if (!told->withdrawn && now_ns - told->heard_ns <= fresh_ns) {
        count->f += fails;
        count->p += !fails;
        return;
    }
    uint64_t stopped_ns = told->withdrawn ? told->withdrawn_ns : told->heard_ns + fresh_ns;
    if (now_ns <= stopped_ns + memory_ns) {
        count->lost_f += fails;
        count->lost_p += !fails;
        checker->sometimes->vote_expired += !told->withdrawn;
    } else {
        told->opinion = OPINION_NONE;
        checker->sometimes->vote_lapsed++;
    }
}

static struct count count_votes(struct checker *checker, struct witness *witness,
                                const struct world_node *node, uint32_t slot, uint64_t now_ns)
{
    bool is_doubted = witness_doubts(witness, slot); /* counts nowhere, and steers nothing */
    uint8_t own = witness_own_opinion(checker, witness, slot, now_ns);
    struct count count = {.own = is_doubted ? OPINION_NONE : own};

    checker->sometimes->suspect_own += is_doubted && own != OPINION_NONE;
    count.f = count.own == OPINION_FAIL;
    count.p = count.own == OPINION_PASS;
    for (uint32_t peer = 1; peer <= checker->n_nodes_max; peer++) {
        count.n += witness->entered[peer];
        if (peer == node->id) {
            continue;
        }
        if (witness->entered[peer]) {
            count_told(checker, witness, slot, &witness->told[peer][slot], now_ns, &count);
        } else {
            checker->sometimes->voter_not_entered +=
                witness->told[peer][slot].opinion != OPINION_NONE;
        }
    }
    return count;
}

/* "goes down when", in the words of spec.md 5. */
static bool goes_down(struct rule_column rule, unsigned f, unsigned c, uint8_t own)
{
    return rule.kind == RULE_LOCAL      ? own == OPINION_FAIL
           : rule.kind == RULE_ANY      ? f >= 1
           : rule.kind == RULE_MAJORITY ? f > c - f
           : rule.kind == RULE_ALL      ? f == c && f >= 1
           : rule.kind == RULE_AT_LEAST ? f >= rule.value
                                        : f * 100 >= rule.value * c && f >= 1;
}

static bool comes_up(const struct verdict_rule *rule, unsigned f, unsigned p, unsigned c,
                     uint8_t own)
{
    struct rule_column up = rule->up;

    if (rule->is_split) {
        return up.kind == RULE_LOCAL      ? own == OPINION_PASS
               : up.kind == RULE_ANY      ? p >= 1
               : up.kind == RULE_MAJORITY ? p > c - p
               : up.kind == RULE_ALL      ? p == c && p >= 1
               : up.kind == RULE_AT_LEAST ? p >= up.value
                                          : p * 100 >= up.value * c && p >= 1;
    }
    return up.kind == RULE_LOCAL      ? own == OPINION_PASS
           : up.kind == RULE_ANY      ? f == 0 && p >= 1
           : up.kind == RULE_MAJORITY ? p > c - p
           : up.kind == RULE_ALL      ? p >= 1
           : up.kind == RULE_AT_LEAST ? f < up.value && p >= 1
                                      : f * 100 < up.value * c && p >= 1;
}

/* 'd', 'u' or '-'. */
static char follow_rule(struct checker *checker, const struct verdict_rule *rule,
                        const struct count *v)
{
    unsigned c = v->f + v->p;
    bool enough = c >= v->n / 2 + 1;
    bool is_local = rule->down.kind == RULE_LOCAL && rule->up.kind == RULE_LOCAL;
    bool down = goes_down(rule->down, v->f, c + v->lost_p, v->own);
    bool up = !down && comes_up(rule, v->f + v->lost_f, v->p, c + v->lost_f, v->own);

    checker->sometimes->down_blocked += !down && goes_down(rule->down, v->f, c, v->own);
    checker->sometimes->up_blocked += !down && !up && comes_up(rule, v->f, v->p, c, v->own);
    if (!enough && rule->below_quorum == BELOW_QUORUM_LOCAL && !is_local) {
        checker->sometimes->own_decided += v->own != OPINION_NONE;
        return v->own == OPINION_FAIL ? 'd' : v->own == OPINION_PASS ? 'u' : '-';
    }
    if (down) {
        checker->sometimes->quorum_blocked += !enough && rule->down.kind != RULE_LOCAL;
        return enough || rule->down.kind == RULE_LOCAL ? 'd' : '-';
    }
    return up && (enough || v->own == OPINION_PASS) ? 'u' : '-';
}

static void note_edge(struct sometimes *sometimes, const struct judged *row, uint8_t to)
{
    sometimes->gray_to_decided += row->gray;
    sometimes->initial_to_healthy += row->state == HEALTH_INITIAL && to == HEALTH_HEALTHY;
    sometimes->initial_to_unhealthy += row->state == HEALTH_INITIAL && to == HEALTH_UNHEALTHY;
    sometimes->healthy_to_unhealthy += row->state == HEALTH_HEALTHY && to == HEALTH_UNHEALTHY;
    sometimes->unhealthy_to_healthy += row->state == HEALTH_UNHEALTHY && to == HEALTH_HEALTHY;
}

static void judge_row(struct checker *checker, struct witness *witness,
                      const struct verdict_rule *rule, struct judged *row, const struct count *v,
                      uint64_t now_ns)
{
    const struct health_check *check = witness_check_at(witness, row->target_slot);
    uint64_t window_ns = (check->timeout_ms * (uint64_t)check->unhealthy_threshold +
                          check->interval_ms * (uint64_t)(check->unhealthy_threshold - 1)) *
                             WORLD_MS +
                         3 * witness_interval_ns(witness);
    char followed = follow_rule(checker, rule, v);

    if (followed != '-') {
        uint8_t state = followed == 'd' ? HEALTH_UNHEALTHY : HEALTH_HEALTHY;

        note_edge(checker->sometimes, row, state);
        row->state = state;
        row->gray = row->held_check_changed = row->held_kept = false;
    } else if (row->state == HEALTH_INITIAL && now_ns >= row->initial_ns + window_ns &&
               v->f == v->p && v->f >= 1 && v->f + v->p >= v->n / 2 + 1 && v->own != OPINION_NONE) {
        row->state = v->own == OPINION_FAIL ? HEALTH_UNHEALTHY : HEALTH_HEALTHY;
        row->gray = true;
        checker->sometimes->initial_to_gray++;
    }
}

/* For lack of votes: of the own one, where a column asks for it, or of a quorum, where there is a
 * column that asks for others. */
static bool is_held(const struct catalog_group *group, const struct count *v)
{
    const struct verdict_rule *rule = &group->spec.rule;
    unsigned n_local = (rule->down.kind == RULE_LOCAL) + (rule->up.kind == RULE_LOCAL);
    bool own_decides = rule->below_quorum == BELOW_QUORUM_LOCAL && v->own != OPINION_NONE;

    return (n_local > 0 && v->own == OPINION_NONE) ||
           (n_local < 2 && v->f + v->p < v->n / 2 + 1u && !own_decides);
}

static void compare(struct checker *checker, const struct world_node *node,
                    const struct catalog_group *group, const struct backend_line *line,
                    struct judged *row, const struct count *v)
{
    bool unreachable = row->state == HEALTH_HEALTHY && v->own == OPINION_FAIL;
    bool held = is_held(group, v) || row->held_check_changed || row->held_kept;
    bool is_gray = (line->marks & MARK_GRAY) != 0;

    row->unreachable = unreachable;
    checker->sometimes->unreachable += unreachable;
    checker->sometimes->held_few_votes += is_held(group, v);
    if (line->n_fail == v->f && line->n_pass == v->p && line->n_observers == v->n &&
        line->health_state == row->state && is_gray == row->gray &&
        line->is_unreachable == unreachable && ((line->marks & MARK_HELD) != 0) == held) {
        return;
    }
    char at[ENDPOINT_TEXT_BYTES];
    endpoint_format(&line->at, at);
    if (line->n_fail != v->f || line->n_pass != v->p || line->n_observers != v->n) {
        checker_fail(
            checker, node,
            "I-8: %s/%s: the engine counts %u fail, %u pass of %u, the trace has %u, %u of %u",
            group->spec.name, at, line->n_fail, line->n_pass, line->n_observers, v->f, v->p, v->n);
    } else if (line->health_state != row->state || is_gray != row->gray) {
        checker_fail(
            checker, node,
            "I-7: %s/%s is %s%s, but %u fail, %u pass, %u and %u remembered, own %s, of %u "
            "give %s%s",
            group->spec.name, at, health_state_word((enum health_state)line->health_state),
            is_gray ? " gray" : "", v->f, v->p, v->lost_f, v->lost_p,
            opinion_word((enum opinion)v->own), v->n,
            health_state_word((enum health_state)row->state), row->gray ? " gray" : "");
    } else if (line->is_unreachable != unreachable) {
        checker_fail(checker, node, "N5: %s/%s is %sunreachable", group->spec.name, at,
                     line->is_unreachable ? "" : "not ");
    } else {
        checker_fail(checker, node, "I-7: %s/%s is %smarked held:%s%s%s", group->spec.name, at,
                     held ? "not " : "", is_held(group, v) ? " few votes" : "",
                     row->held_check_changed ? " check changed" : "",
                     row->held_kept ? " last-known-good" : "");
    }
}

/* I-11: while a member may take new flows and the group does not close by its own setting, one
 * does. I-12: nothing that drains, is removed, in maintenance or of weight 0 does. */
static void check_classes(struct checker *checker, const struct world_node *node,
                          const struct catalog_group *group, const struct backend_line lines[])
{
    bool any_eligible = false;
    bool any_used = false;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        bool is_eligible = lines[i].weight > 0 && lines[i].admin_state == ADMIN_ENABLED &&
                           lines[i].life != LIFE_REMOVING;
        bool is_used = jury_class_rank(lines[i].row_class) > 0;

        any_eligible |= is_eligible;
        any_used |= is_used;
        if (is_used && !is_eligible) {
            checker_fail(checker, node, "I-12: %s backend %u gets new flows", group->spec.name, i);
        }
    }
    if (any_eligible && !any_used && group->spec.all_bad != ALL_BAD_FAIL_CLOSED) {
        checker_fail(checker, node, "I-11: %s has no usable member", group->spec.name);
    }
}

/* A22: of a scope that is warming only the backends that it began with are used before they passed;
 * one that came after the scope's first probe waits, unless all bad ones are used (fail-open). */
static void check_late(struct checker *checker, const struct witness *witness,
                       const struct world_node *node, const struct catalog_group *group,
                       const struct backend_line lines[])
{
    uint64_t first_ns = witness->first_probe_ns[group->row.row];

    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct judged *row = &witness->rows[group->backends[i].row.row];
        bool is_late = first_ns != 0 && row->joined_ns > first_ns;

        if (lines[i].health_state != HEALTH_INITIAL || !is_late) {
            continue;
        }
        checker->sometimes->late_waits += lines[i].row_class == ROW_NONE;
        if (lines[i].row_class != ROW_NONE && lines[i].row_class != ROW_FAIL_OPEN) {
            checker_fail(checker, node,
                         "A22: %s backend %u came late and gets flows before it passed",
                         group->spec.name, i);
        }
    }
}

static void write_history(struct checker *checker, const struct world_node *node,
                          uint32_t row_index, struct judged *row, const struct backend_line *line)
{
    struct verdict_history *history = checker->history;

    if (history == NULL ||
        (row->written_state == line->health_state && row->written_marks == line->marks)) {
        return;
    }
    if (history->n == history->capacity) {
        history->capacity = history->capacity * 2 + 256;
        history->lines = realloc(history->lines, history->capacity * sizeof *history->lines);
        if (history->lines == NULL) {
            abort();
        }
    }
    row->written_state = line->health_state;
    row->written_marks = line->marks;
    history->lines[history->n++] = (struct verdict_line){.at_ns = checker->world->now_ns,
                                                         .node = (uint32_t)node->id,
                                                         .row = row_index,
                                                         .state = line->health_state,
                                                         .marks = line->marks};
}

static void check_group(struct checker *checker, struct witness *witness,
                        const struct world_node *node, const struct catalog_group *group,
                        uint64_t now_ns)
{
    struct backend_line lines[16];
    size_t n = engine_view_lines(node->engine, group->spec.name, lines, 16);

    assert(group->n_backends <= 16);
    if (n != group->n_backends) {
        checker_fail(checker, node, "%s has %zu lines", group->spec.name, n);
        return;
    }
    check_classes(checker, node, group, lines);
    check_late(checker, witness, node, group, lines);
    for (uint32_t i = 0; i < group->n_backends; i++) {
        struct judged *row = &witness->rows[group->backends[i].row.row];

        write_history(checker, node, group->backends[i].row.row, row, &lines[i]);
        if (row->target_slot == CATALOG_NO_SLOT) {
            if (lines[i].health_state != row->state) {
                checker_fail(checker, node, "%s: state without checks", group->spec.name);
            }
            continue;
        }
        struct count v = count_votes(checker, witness, node, row->target_slot, now_ns);
        judge_row(checker, witness, &group->spec.rule, row, &v, now_ns);
        compare(checker, node, group, &lines[i], row, &v);
    }
}

/* A node says nothing of itself that its own results do not bear out. */
static void check_sent(struct checker *checker, struct witness *witness,
                       const struct world_node *node, uint64_t now_ns)
{
    const struct engine_actions *actions = &node->actions;

    for (uint32_t slot = 0; actions->n_chunks > 0 && slot < CHECK_SLOTS; slot++) {
        uint8_t said = actions->chunks[0].opinions[slot / 4] >> (slot % 4 * 2) & 3;
        uint8_t known = witness->births[slot] == 0
                            ? OPINION_NONE
                            : witness_own_opinion(checker, witness, slot, now_ns);

        if (said != known) {
            checker_fail(checker, node, "I-7: it votes %s on slot %u, its results give %s",
                         opinion_word((enum opinion)said), slot, opinion_word((enum opinion)known));
        }
    }
    for (uint16_t i = 0; i < actions->n_changes; i++) {
        uint32_t slot = actions->changes[i].target.slot;
        uint8_t known = witness_own_opinion(checker, witness, slot, now_ns);
        bool is_last = true; /* one that ends with a doubt of the same step is taken back at once */

        for (uint16_t j = i + 1; j < actions->n_changes; j++) {
            is_last = is_last && actions->changes[j].target.slot != slot;
        }
        if (is_last && actions->changes[i].opinion != known) {
            checker_fail(checker, node, "I-7: it tells %s of slot %u, its results give %s",
                         opinion_word((enum opinion)actions->changes[i].opinion), slot,
                         opinion_word((enum opinion)known));
        }
    }
}

static void after_step(void *user, struct world *world, struct world_node *node,
                       const struct engine_event *event)
{
    struct checker *checker = user;
    struct witness *witness = witness_of(checker, node);

    (void)world;
    if (witness->catalog == NULL) {
        return;
    }
    struct doubt_view doubt;

    engine_view_doubt(node->engine, event->now_ns, &doubt);
    witness_follow_doubt(checker, witness, doubt.suspect_mask, event->now_ns);
    witness_enter_by_time(checker, witness, event->now_ns);
    for (size_t i = 0; i < catalog_n_groups(witness->catalog); i++) {
        check_group(checker, witness, node, catalog_group_at(witness->catalog, i), event->now_ns);
    }
    check_sent(checker, witness, node, event->now_ns);
    for (size_t i = 0; i < N_PARTS; i++) {
        parts[i]->judge(checker, witness, node, event);
    }
}

void checker_init(struct checker *checker, struct world *world, uint32_t n_nodes_max,
                  struct sometimes *sometimes)
{
    memset(checker, 0, sizeof *checker);
    checker->world = world;
    checker->n_nodes_max = n_nodes_max;
    checker->sometimes = sometimes;
    for (uint32_t id = 1; id <= n_nodes_max; id++) {
        struct witness *witness = calloc(1, sizeof *witness);

        checker->nodes[id] = witness;
        if (witness != NULL) {
            witness->told = calloc(n_nodes_max + 1u, sizeof *witness->told);
        }
        if (witness == NULL || witness->told == NULL) {
            abort();
        }
    }
    world->hooks =
        (struct world_hooks){.user = checker, .before = witness_hear, .after = after_step};
}

void checker_close(struct checker *checker)
{
    for (uint32_t id = 1; id <= checker->n_nodes_max; id++) {
        free(checker->nodes[id]->told);
        free(checker->nodes[id]);
    }
}

void checker_note_kept(struct checker *checker, uint64_t node_id)
{
    struct witness *witness = witness_of(checker, &checker->world->nodes[node_id]);

    memset(witness->kept, 0, sizeof witness->kept);
    for (uint32_t r = 0; r < CHECK_ROWS; r++) {
        const struct judged *row = &witness->rows[r];
        const struct shown *shown = &witness->shown[r];

        if (row->birth == 0) {
            continue;
        }
        witness->kept[r] = (struct kept_row){.birth = row->birth,
                                             .drain_revision = shown->drain_revision,
                                             .drain_ns = shown->drain_ns,
                                             .verdict_ns = shown->verdict_ns};
        if (row->target_slot != CATALOG_NO_SLOT &&
            (row->state == HEALTH_HEALTHY || row->state == HEALTH_UNHEALTHY)) {
            witness->kept[r].state = row->state;
            witness->kept[r].definition =
                catalog_target_at(witness->catalog, row->target_slot)->definition_hash;
        }
    }
}

void checker_note_start(struct checker *checker, uint64_t node_id, bool with_kept)
{
    struct witness *witness = checker->nodes[node_id];

    memset(witness->begun, 0, sizeof witness->begun);
    if (with_kept) {
        memcpy(witness->begun, witness->kept, sizeof witness->begun);
    }
}

/* --- I-18 --- */

uint64_t checker_bound_ns(const struct checker *checker, const struct health_check *check)
{
    const struct catalog *catalog = checker->world->history[checker->world->revision];
    uint64_t cycle_ms = check->timeout_ms + (uint64_t)check->interval_ms;
    uint64_t most = check->unhealthy_threshold > check->healthy_threshold
                        ? check->unhealthy_threshold
                        : check->healthy_threshold;
    uint64_t window_ms = most * cycle_ms - check->interval_ms;
    uint64_t vote_ms = 2 * (uint64_t)catalog_settings(catalog)->vote_interval_ms + 100;
    uint64_t whole_ms = 2000 + cycle_ms + window_ms + vote_ms;

    if (checker->is_doubted) {
        whole_ms += 10000 + cycle_ms + window_ms;
    }
    return whole_ms * 1000000 / (1000000 - CHECK_CLOCK_PPM_MAX) * WORLD_MS;
}

uint64_t checker_longest_bound_ns(const struct checker *checker)
{
    const struct catalog *catalog = checker->world->history[checker->world->revision];
    uint64_t longest_ns = 0;

    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        uint64_t bound_ns = checker_bound_ns(checker, &catalog_group_at(catalog, i)->spec.check);

        longest_ns = bound_ns > longest_ns ? bound_ns : longest_ns;
    }
    return longest_ns;
}

static bool is_as_truth(const struct checker *checker, uint32_t id, const struct judged *row,
                        const struct catalog_backend *backend)
{
    const struct truth *truth = &world_backend(checker->world, &backend->spec.at)->truth[id];
    uint8_t wanted = truth->reason == REASON_OK ? HEALTH_HEALTHY : HEALTH_UNHEALTHY;

    return row->target_slot == CATALOG_NO_SLOT ||
           (row->birth == backend->row.birth && row->state == wanted && !row->gray &&
            !row->held_check_changed && !row->held_kept);
}

static void check_group_truth(struct checker *checker, uint32_t id,
                              const struct catalog_group *group)
{
    uint64_t bound_ns = checker_bound_ns(checker, &group->spec.check);
    uint64_t passed_ns = checker->world->now_ns - checker->calm_ns;

    for (uint32_t j = 0; j < group->n_backends; j++) {
        const struct catalog_backend *backend = &group->backends[j];
        const struct judged *row = &checker->nodes[id]->rows[backend->row.row];

        if (is_as_truth(checker, id, row, backend)) {
            checker->sometimes->ended_as_truth += passed_ns > bound_ns;
        } else if (passed_ns > bound_ns) {
            checker_fail(checker, &checker->world->nodes[id],
                         "I-18: %s backend %u is %s %.1f s after all is well, its bound is %.1f s",
                         group->spec.name, j, health_state_word((enum health_state)row->state),
                         (double)passed_ns / 1e9, (double)bound_ns / 1e9);
        } else if (passed_ns * 1000 / bound_ns > checker->slowest_pm) {
            checker->slowest_pm = passed_ns * 1000 / bound_ns;
        }
    }
}

void checker_check_truth(struct checker *checker)
{
    const struct catalog *catalog = checker->world->history[checker->world->revision];

    for (uint32_t id = 1; id <= checker->world->n_nodes && !checker->failed; id++) {
        if (checker->world->nodes[id].is_gone) {
            continue;
        }
        checker->is_doubted |= checker->nodes[id]->suspect_mask != 0;
        if (checker->nodes[id]->catalog != catalog &&
            checker->world->now_ns > checker->calm_ns + 2 * WORLD_SECOND) {
            checker_fail(checker, &checker->world->nodes[id],
                         "I-18: it has not got the newest catalog");
            return;
        }
        for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
            check_group_truth(checker, id, catalog_group_at(catalog, i));
        }
    }
}

void checker_check_end(struct checker *checker)
{
    for (size_t i = 0; i < N_PARTS; i++) {
        if (parts[i]->judge_end != NULL) {
            parts[i]->judge_end(checker);
        }
    }
}
