#include "agent/probe/probe_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/plant.h"
#include "common/base/spare.h"

static struct planned_target *use(struct planned_target *planned)
{
    atomic_fetch_add_explicit(&planned->n_users, 1, memory_order_relaxed);
    return planned;
}

static void drop(struct planned_target *planned)
{
    if (planned != NULL &&
        atomic_fetch_sub_explicit(&planned->n_users, 1, memory_order_acq_rel) == 1) {
        catalog_check_unref(planned->target.definition.check);
        free(planned);
    }
}

void probe_plan_release(struct probe_plan *plan)
{
    if (plan == NULL || atomic_fetch_sub_explicit(&plan->n_users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < plan->n_targets; i++) {
        drop(plan->targets[i]);
    }
    free(plan);
}

void probe_plan_editor_init(struct probe_plan_editor *editor)
{
    *editor = (struct probe_plan_editor){0};
}

void probe_plan_editor_close(struct probe_plan_editor *editor)
{
    for (uint32_t i = 0; i < editor->n_slots; i++) {
        drop(editor->by_slot[i]);
    }
    free(editor->by_slot);
    *editor = (struct probe_plan_editor){0};
}

static int reserve(struct probe_plan_editor *editor, uint32_t n_slots)
{
    uint32_t capacity = spare_round_up(n_slots);

    if (n_slots <= editor->n_slots) {
        return 0;
    }
    struct planned_target **by_slot = realloc(editor->by_slot, capacity * sizeof *by_slot);
    if (by_slot == NULL) {
        return ERR_NOMEM;
    }
    for (uint32_t i = editor->n_slots; i < capacity; i++) {
        by_slot[i] = NULL;
    }
    editor->by_slot = by_slot;
    editor->n_slots = capacity;
    return 0;
}

/* One id is one definition; the source belongs to the node and may change under it. */
static bool is_same(const struct probe_target *a, const struct probe_target *b)
{
    return a->id.slot == b->id.slot && a->id.birth == b->id.birth &&
           addr_compare(&a->source, &b->source) == 0;
}

int probe_plan_editor_set(struct probe_plan_editor *editor, const struct probe_target *target,
                          bool is_at_start)
{
    uint32_t slot = target->id.slot;

    assert(target->id.birth != 0);
    if (slot >= LIMIT_TARGETS) {
        return ERR_LIMIT;
    }
    int err = reserve(editor, slot + 1);
    if (err != 0) {
        return err;
    }
    struct planned_target *old = editor->by_slot[slot];
    if (old != NULL && is_same(&old->target, target)) {
        return 0;
    }
    struct planned_target *planned = malloc(sizeof *planned);
    if (planned == NULL) {
        return ERR_NOMEM;
    }
    planned->target = *target;
    planned->target.definition.check = plant_is("checks-are-copied")
                                           ? catalog_check_new(target->definition.check)
                                           : catalog_check_ref(target->definition.check);
    planned->is_at_start = is_at_start;
    atomic_init(&planned->n_users, 1);
    editor->by_slot[slot] = planned;
    editor->n_targets += old == NULL ? 1 : 0;
    drop(old);
    return 0;
}

void probe_plan_editor_remove(struct probe_plan_editor *editor, struct target_id id)
{
    if (id.slot >= editor->n_slots || editor->by_slot[id.slot] == NULL ||
        editor->by_slot[id.slot]->target.id.birth != id.birth) {
        return;
    }
    drop(editor->by_slot[id.slot]);
    editor->by_slot[id.slot] = NULL;
    editor->n_targets--;
}

struct probe_plan *probe_plan_editor_publish(const struct probe_plan_editor *editor)
{
    struct probe_plan *plan = malloc(sizeof *plan + editor->n_targets * sizeof(void *));

    if (plan == NULL) {
        return NULL;
    }
    atomic_init(&plan->n_users, 1);
    plan->n_targets = 0;
    plan->rates = editor->rates;
    for (uint32_t i = 0; i < editor->n_slots; i++) {
        if (editor->by_slot[i] != NULL) {
            plan->targets[plan->n_targets++] = use(editor->by_slot[i]);
        }
    }
    assert(plan->n_targets == editor->n_targets);
    return plan;
}
