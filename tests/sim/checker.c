#include "tests/sim/checker.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/table/jury_table.h"
#include "tests/lib/engine_lines.h"
#include "tests/sim/guards.h"
#include "tests/sim/rules.h"
#include "tests/sim/shared.h"
#include "tests/sim/witness.h"

static const struct checker_part *const parts[] = {
    &checker_table,  &checker_weights, &checker_apart,   &checker_alarm,
    &checker_shadow, &checker_returns, &checker_several, &checker_replay};

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

static void note_edge(struct sometimes *sometimes, const struct judged *row, uint8_t to)
{
    sometimes->gray_to_decided += row->gray;
    sometimes->initial_to_healthy += row->state == HEALTH_INITIAL && to == HEALTH_HEALTHY;
    sometimes->initial_to_unhealthy += row->state == HEALTH_INITIAL && to == HEALTH_UNHEALTHY;
    sometimes->healthy_to_unhealthy += row->state == HEALTH_HEALTHY && to == HEALTH_UNHEALTHY;
    sometimes->unhealthy_to_healthy += row->state == HEALTH_UNHEALTHY && to == HEALTH_HEALTHY;
}

static void judge_row(struct checker *checker, struct witness *witness, const struct edge *edge,
                      struct judged *row)
{
    const struct health_check *check = witness_check_at(witness, row->target_slot);
    uint64_t window_ns = (check->timeout_ms * (uint64_t)check->unhealthy_threshold +
                          check->interval_ms * (uint64_t)(check->unhealthy_threshold - 1)) *
                             WORLD_MS +
                         3 * witness_interval_ns(witness);

    if (row->frozen != FROZEN_NOT) {
        return;
    }
    if (edge->followed != '-') {
        uint8_t state = edge->followed == 'd' ? HEALTH_UNHEALTHY : HEALTH_HEALTHY;

        note_edge(checker->sometimes, row, state);
        row->state = state;
        row->gray = row->held_check_changed = row->held_kept = false;
    } else if (row->state == HEALTH_INITIAL && edge->now_ns >= row->initial_ns + window_ns &&
               rules_are_tied(witness, &edge->group->spec.rule, edge->count)) {
        row->state = edge->count->own == OPINION_FAIL ? HEALTH_UNHEALTHY : HEALTH_HEALTHY;
        row->gray = true;
        checker->sometimes->initial_to_gray++;
    }
}

static void compare(struct checker *checker, const struct witness *witness,
                    const struct world_node *node, const struct edge *edge, struct judged *row)
{
    const struct catalog_group *group = edge->group;
    const struct backend_line *line = edge->line;
    const struct count *v = edge->count;
    bool few_votes = rules_hold_back(witness, &group->spec.rule, v);
    bool unreachable =
        row->frozen == FROZEN_NOT && row->state == HEALTH_HEALTHY && v->own == OPINION_FAIL;
    bool pending = row->frozen == FROZEN_BY_VELOCITY || row->frozen == FROZEN_BY_RETURN;
    bool held = few_votes || row->held_check_changed || row->held_kept ||
                row->frozen == FROZEN_BY_HOLD || row->frozen == FROZEN_BY_SHADOW;
    bool is_gray = (line->marks & MARK_GRAY) != 0;
    bool is_pending = (line->marks & MARK_PENDING) != 0;

    row->unreachable = unreachable;
    row->has_few_votes = few_votes;
    checker->sometimes->unreachable += unreachable;
    checker->sometimes->held_few_votes += few_votes;
    if (line->n_fail == v->f && line->n_pass == v->p && line->n_observers == v->n &&
        line->health_state == row->state && is_gray == row->gray && is_pending == pending &&
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
    } else if (is_pending != pending) {
        checker_fail(checker, node, "I-10: %s/%s is %smarked pending", group->spec.name, at,
                     pending ? "not " : "");
    } else {
        checker_fail(checker, node, "I-7: %s/%s is %smarked held:%s%s%s%s", group->spec.name, at,
                     held ? "not " : "", few_votes ? " few votes" : "",
                     row->held_check_changed ? " check changed" : "",
                     row->held_kept ? " last-known-good" : "",
                     row->frozen == FROZEN_BY_HOLD     ? " hold"
                     : row->frozen == FROZEN_BY_SHADOW ? " shadow"
                                                       : "");
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
                        const struct engine_event *event)
{
    struct backend_line lines[16];
    uint64_t now_ns = event->now_ns;
    size_t n = engine_view_lines(node->engine, group->spec.name, lines, 16);

    assert(group->n_backends <= 16);
    if (n != group->n_backends) {
        checker_fail(checker, node, "%s has %zu lines", group->spec.name, n);
        return;
    }
    check_classes(checker, node, group, lines);
    check_late(checker, witness, node, group, lines);
    guards_begin(witness, node, group);
    for (uint32_t i = 0; i < group->n_backends; i++) {
        struct judged *row = &witness->rows[group->backends[i].row.row];

        write_history(checker, node, group->backends[i].row.row, row, &lines[i]);
        if (row->target_slot == CATALOG_NO_SLOT) {
            if (lines[i].health_state != row->state ||
                (lines[i].marks & (MARK_HELD | MARK_PENDING | MARK_GRAY)) != 0) {
                checker_fail(checker, node, "I-7: %s backend %u is %s, marks %u, without checks",
                             group->spec.name, i,
                             health_state_word((enum health_state)lines[i].health_state),
                             lines[i].marks);
            }
            continue;
        }
        struct count v = rules_count(checker, witness, node, row->target_slot, now_ns);
        struct edge edge = {.group = group,
                            .line = &lines[i],
                            .count = &v,
                            .followed = rules_follow(checker, witness, &group->spec.rule, &v),
                            .now_ns = now_ns};

        row->followed = edge.followed;
        row->marks = lines[i].marks;
        row->n_pass = (uint8_t)v.p;
        row->state_before = row->state;
        guards_freeze(checker, witness, node, &edge, row);
        judge_row(checker, witness, &edge, row);
        compare(checker, witness, node, &edge, row);
    }
    guards_end(checker, witness, node, event, group);
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

        if (witness->births[slot] != 0 && shared_wavers(witness, slot)) {
            known = VOTE_WAVERS;
        }
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
        if (is_last && !actions->changes[i].wavers && shared_wavers(witness, slot)) {
            checker_fail(checker, node, "N24: it does not tell that slot %u wavers", slot);
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
    witness->is_quiet = event->kind == ENGINE_TICK && doubt.suspect_mask == witness->suspect_mask;
    witness_follow_doubt(checker, witness, doubt.suspect_mask, event->now_ns);
    witness->is_quiet &= !witness_enter_by_time(checker, witness, event->now_ns);
    shared_follow(checker, witness, node, event->now_ns);
    for (size_t i = 0; i < catalog_n_groups(witness->catalog); i++) {
        check_group(checker, witness, node, catalog_group_at(witness->catalog, i), event);
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
    guards_keep(checker, witness, &checker->world->nodes[node_id]);
}

void checker_note_start(struct checker *checker, uint64_t node_id, bool with_kept)
{
    struct witness *witness = checker->nodes[node_id];

    memset(witness->begun, 0, sizeof witness->begun);
    if (with_kept) {
        memcpy(witness->begun, witness->kept, sizeof witness->begun);
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
