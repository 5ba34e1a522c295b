#include "agent/core/catalog_apply.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_state.h"
#include "common/base/plant.h"

struct catalog_state *catalog_state_new(void)
{
    struct catalog_state *state = calloc(1, sizeof *state);

    if (state == NULL) {
        return NULL;
    }
    if (numbers_init(&state->slots, LIMIT_TARGETS) != 0 ||
        numbers_init(&state->rows, LIMIT_ROWS) != 0) {
        numbers_close(&state->slots);
        free(state);
        return NULL;
    }
    state->catalog = catalog_new_empty();
    return state;
}

static void close_state(struct catalog_state *state)
{
    catalog_unref(state->catalog);
    numbers_close(&state->slots);
    numbers_close(&state->rows);
    idmap_close(&state->targets);
    idmap_close(&state->listeners);
    answers_close(&state->answers);
}

void catalog_state_free(struct catalog_state *state)
{
    if (state != NULL) {
        close_state(state);
        free(state);
    }
}

struct catalog *catalog_state_catalog(struct catalog_state *state)
{
    return catalog_ref(state->catalog);
}

enum apply_outcome apply_outcome(const struct apply_answer *answer, uint32_t change_index)
{
    if (change_index >= LIMIT_CHANGES_PER_COMMAND) {
        return OUTCOME_NONE;
    }
    return (enum apply_outcome)(answer->outcomes[change_index / 4] >> (change_index % 4 * 2) & 3);
}

static bool is_known(const struct catalog_state *state, const struct command *command,
                     struct apply_answer *ret_answer)
{
    return !plant_is("catalog-request-id") &&
           answers_find(&state->answers, &command->request_id, ret_answer);
}

/* False: the command was answered before, and the answer is filled in; there is no plan to close.
 */
static bool plan_begin(struct plan *plan, struct catalog_state *state,
                       const struct command *command, struct apply_answer *answer)
{
    if (is_known(state, command, answer)) {
        return false;
    }
    *answer = (struct apply_answer){.revision = state->catalog->revision};
    *plan = (struct plan){.state = state,
                          .base = state->catalog,
                          .command = command,
                          .answer = answer,
                          .revision = state->catalog->revision + 1};
    return true;
}

void catalog_check(struct catalog_state *state, const struct command *command,
                   struct apply_answer *ret_answer)
{
    struct plan plan;

    if (!plan_begin(&plan, state, command, ret_answer)) {
        return;
    }
    if (plan_make(&plan) == 0) {
        ret_answer->revision = plan.is_effective ? plan.revision : plan.base->revision;
    }
    plan_close(&plan);
}

/* By documents; those of one stay in the order in which they were found. */
static void sort_refusals(struct catalog_refusals *refusals)
{
    for (uint32_t i = 1; i < refusals->n; i++) {
        struct catalog_refusal moved = refusals->items[i];
        uint32_t at = i;

        for (; at > 0 && refusals->items[at - 1].change_index > moved.change_index; at--) {
            refusals->items[at] = refusals->items[at - 1];
        }
        refusals->items[at] = moved;
    }
}

void catalog_check_all(struct catalog_state *state, const struct command *command,
                       struct apply_answer *ret_answer, struct catalog_refusals *ret_refusals)
{
    struct plan plan;

    ret_refusals->n = 0;
    if (!plan_begin(&plan, state, command, ret_answer)) {
        return;
    }
    plan.refusals = ret_refusals;
    if (plan_make(&plan) == 0) {
        ret_answer->revision = plan.is_effective ? plan.revision : plan.base->revision;
    }
    plan_close(&plan);
    sort_refusals(ret_refusals);
}

void catalog_apply(struct catalog_state *state, const struct command *command,
                   struct apply_answer *ret_answer)
{
    struct plan plan;

    if (!plan_begin(&plan, state, command, ret_answer)) {
        return;
    }
    if (plan_make(&plan) == 0 && (plan.is_effective || plant_is("catalog-empty-revision"))) {
        ret_answer->revision = plan.revision;
        plan_commit(&plan, state);
    }
    plan_close(&plan);
    memset(ret_answer->outcomes + KEPT_OUTCOMES / 4, 0,
           sizeof ret_answer->outcomes - KEPT_OUTCOMES / 4);
    answers_remember(&state->answers, &command->request_id, ret_answer);
}

/* --- snapshots --- */

struct catalog_snapshot {
    struct catalog *catalog;
    struct part_chunk *answers;
    uint32_t n_answers;
};

struct catalog_snapshot *catalog_state_snapshot(struct catalog_state *state)
{
    struct catalog_snapshot *snapshot = catalog_alloc(1, sizeof *snapshot);

    snapshot->catalog = catalog_ref(state->catalog);
    snapshot->n_answers = answers_n_chunks(&state->answers);
    snapshot->answers = catalog_alloc(snapshot->n_answers, sizeof *snapshot->answers);
    for (uint32_t i = 0; i < snapshot->n_answers; i++) {
        snapshot->answers[i] = answers_chunk(&state->answers, i);
    }
    return snapshot;
}

void catalog_snapshot_free(struct catalog_snapshot *snapshot)
{
    if (snapshot == NULL) {
        return;
    }
    for (uint32_t i = 0; i < snapshot->n_answers; i++) {
        free(snapshot->answers[i].data);
    }
    free(snapshot->answers);
    catalog_unref(snapshot->catalog);
    free(snapshot);
}

size_t catalog_snapshot_n_chunks(const struct catalog_snapshot *snapshot)
{
    return catalog_n_chunks(snapshot->catalog) + snapshot->n_answers;
}

const uint8_t *catalog_snapshot_chunk_at(const struct catalog_snapshot *snapshot, size_t index,
                                         size_t *ret_n_bytes)
{
    size_t n_catalog = catalog_n_chunks(snapshot->catalog);

    if (index < n_catalog) {
        return catalog_chunk_at(snapshot->catalog, index, ret_n_bytes);
    }
    *ret_n_bytes = snapshot->answers[index - n_catalog].n_bytes;
    return snapshot->answers[index - n_catalog].data;
}

/* --- restoring --- */

static bool take_rows(struct catalog_state *state, const struct catalog_group *group)
{
    bool is_free = numbers_take_this(&state->rows, group->row.row);

    for (uint32_t i = 0; i < group->n_backends && is_free; i++) {
        is_free = numbers_take_this(&state->rows, group->backends[i].row.row);
    }
    return is_free;
}

/* The indexes of a state from its catalog; false = two slots for one definition or the like. */
static bool build_indexes(struct catalog_state *state)
{
    const struct catalog *catalog = state->catalog;

    for (uint32_t i = 0; i < catalog->groups.n_items; i++) {
        if (!take_rows(state, catalog_group_at(catalog, i))) {
            return false;
        }
    }
    for (uint32_t slot = 0; slot < catalog->n_slots; slot++) {
        const struct catalog_target *target = catalog_target_at(catalog, slot);

        if (target == NULL) {
            continue;
        }
        if (!numbers_take_this(&state->slots, slot) ||
            idmap_add(&state->targets, target->definition_hash.low, slot) != 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < catalog->listeners.n_items; i++) {
        const struct part *part = part_list_at(&catalog->listeners, i);
        const struct listener *listener = &((const struct listener_part *)part)->listener.spec;

        if (catalog_group_find(catalog, listener->group) == NULL ||
            idmap_add(&state->listeners, listener_place_hash(listener), (uintptr_t)part) != 0) {
            return false;
        }
    }
    return true;
}

int catalog_state_restore(struct catalog_state *state, const struct catalog_chunk_view chunks[],
                          size_t n_chunks, struct errmsg *err)
{
    struct catalog_state *next = catalog_state_new();
    struct catalog *catalog;

    if (next == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory to restore a snapshot");
    }
    int rc = catalog_decode(chunks, n_chunks, &catalog, err);
    if (rc == 0) {
        catalog_unref(next->catalog);
        next->catalog = catalog;
        rc = answers_restore(&next->answers, chunks, n_chunks, err);
    }
    if (rc == 0 && !build_indexes(next)) {
        rc = errmsg_set(err, ERR_CORRUPT,
                        "catalog: slots, rows and listeners contradict each other");
    }
    if (rc != 0) {
        catalog_state_free(next);
        return rc;
    }
    close_state(state);
    *state = *next;
    free(next);
    return 0;
}
