/* From a plan that holds to the next revision. Nothing here can be refused. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_state.h"
#include "common/base/str.h"

static bool is_changed(const struct group_draft *draft)
{
    return draft->is_touched || draft->is_purged;
}

/* --- rows and ids --- */

/* First all that come free, then the new ones: a number may pass from one to the other within a
 * revision, with another birth. */
static void free_rows(struct plan *plan, struct catalog_state *state)
{
    for (uint32_t i = 0; i < plan->n_groups; i++) {
        const struct group_draft *draft = plan->groups[i];

        if (draft->is_gone) {
            numbers_give_back(&state->rows, draft->before->group.row.row);
        }
        for (uint32_t j = 0; draft->is_purged && j < draft->before->group.n_backends; j++) {
            const struct catalog_backend *backend = &draft->before->group.backends[j];

            if (catalog_backend_find(&draft->after, &backend->spec.at) == NULL) {
                numbers_give_back(&state->rows, backend->row.row);
            }
        }
    }
}

static struct row_id take_row(struct plan *plan, struct catalog_state *state)
{
    return (struct row_id){.row = numbers_take(&state->rows), .birth = plan->revision};
}

static void number_drafts(struct plan *plan, struct catalog_state *state, struct catalog *next)
{
    free_rows(plan, state);
    for (uint32_t i = 0; i < plan->n_groups; i++) {
        struct group_draft *draft = plan->groups[i];

        if (draft->before == NULL) {
            draft->after.id = next->counters.next_group_id++;
            draft->after.row = take_row(plan, state);
        }
        if (draft->is_touched) {
            draft->after.changed_revision = plan->revision;
        }
        for (uint32_t j = 0; j < draft->after.n_backends; j++) {
            struct catalog_backend *backend = &draft->backends[j];

            if (backend->row.row == CATALOG_NO_ROW) {
                backend->id = next->counters.next_backend_id++;
                backend->row = take_row(plan, state);
            }
        }
    }
    next->n_rows = numbers_end(&state->rows);
    next->n_rows_used = state->rows.n_taken;
}

/* --- slots --- */

static void move_users(struct plan *plan, struct catalog_state *state, struct catalog *next)
{
    for (uint32_t i = 0; i < plan->n_deltas; i++) {
        uint32_t slot = plan->deltas[i].slot;
        uint64_t hash = catalog_target_at(next, slot)->definition_hash.low;

        if (plan->deltas[i].delta != 0 &&
            catalog_target_use(next, slot, plan->deltas[i].delta) == 0) {
            bool was_there = idmap_remove(&state->targets, hash, slot);

            assert(was_there);
            numbers_give_back(&state->slots, slot);
        }
    }
}

static uint32_t find_slot(const struct catalog_state *state, const struct catalog *next,
                          struct hash128 hash)
{
    size_t cursor = 0;
    uint64_t slot;

    while ((slot = idmap_next(&state->targets, hash.low, &cursor)) != IDMAP_NONE) {
        if (hash128_equal(catalog_target_at(next, (uint32_t)slot)->definition_hash, hash)) {
            return (uint32_t)slot;
        }
    }
    return CATALOG_NO_SLOT;
}

static void place_fresh(struct plan *plan, struct catalog_state *state, struct catalog *next)
{
    for (uint32_t i = 0; i < plan->n_fresh; i++) {
        const struct fresh_target *fresh = &plan->fresh[i];
        struct group_draft *draft = fresh->draft;
        uint32_t slot = find_slot(state, next, fresh->hash);

        if (slot == CATALOG_NO_SLOT) {
            struct catalog_definition definition =
                catalog_use_definition(&draft->after.spec, &draft->checks,
                                       &draft->backends[fresh->backend_index].spec.at, fresh->use);
            struct target_id id = {.slot = numbers_take(&state->slots), .birth = plan->revision};

            slot = id.slot;
            catalog_target_put(next, &id, &definition.to, definition.check);
            if (idmap_add(&state->targets, fresh->hash.low, slot) != 0) {
                abort();
            }
        }
        catalog_target_use(next, slot, 1);
        *plan_place_of(draft, fresh->backend_index, fresh->use) = catalog_target_at(next, slot)->id;
    }
    next->n_slots = numbers_end(&state->slots);
}

/* --- parts --- */

static void swap_content(struct catalog *next, const struct part *before, const struct part *after)
{
    if (before != NULL) {
        next->content = hash128_subtract(next->content, before->content);
    }
    if (after != NULL) {
        next->content = hash128_add(next->content, after->content);
    }
}

/* Takes what the draft owns. */
static struct part *make_group(struct group_draft *draft)
{
    struct group_part *part = catalog_alloc(1, sizeof *part);

    atomic_init(&part->head.refs, 1);
    part->head.kind = PART_GROUP;
    part->group = draft->after;
    part->backends = draft->backends;
    if (part->group.n_backends > 0) { /* a merge made room for all old and all new ones */
        part->backends =
            catalog_realloc(part->backends, part->group.n_backends, sizeof *part->backends);
    }
    part->group.backends = part->backends;
    group_part_keep_texts(part);
    part->targets = draft->targets;
    part->group.parts = part->targets;
    part->checks = draft->checks;
    if (server_group_copy_checks(&part->group.spec, &draft->after.spec) != 0) {
        abort(); /* no memory */
    }
    part->head.name = part->group.spec.name;
    draft->backends = NULL;
    draft->targets = NULL;
    draft->checks = (struct check_set){0};
    part_encode(&part->head);
    return &part->head;
}

uint32_t group_n_live(const struct catalog_group *group)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        n += group->backends[i].life != LIFE_REMOVING;
    }
    return n;
}

static void count_group(struct catalog *next, const struct group_draft *draft,
                        const struct part *after)
{
    if (draft->before != NULL) {
        next->n_live_groups -= !draft->before->group.is_deleted;
        next->n_live_backends -= group_n_live(&draft->before->group);
    }
    if (after != NULL) {
        const struct catalog_group *group = &((const struct group_part *)after)->group;

        next->n_live_groups += !group->is_deleted;
        next->n_live_backends += group_n_live(group);
    }
}

static void commit_groups(struct plan *plan, struct catalog *next)
{
    struct part_edit *edits = catalog_alloc(plan->n_groups, sizeof *edits);
    size_t n_edits = 0;

    for (uint32_t i = 0; i < plan->n_groups; i++) {
        struct group_draft *draft = plan->groups[i];

        if (!is_changed(draft)) {
            continue;
        }
        struct part *after = draft->is_gone ? NULL : make_group(draft);
        count_group(next, draft, after);
        swap_content(next, draft->before != NULL ? &draft->before->head : NULL, after);
        edits[n_edits++] = (struct part_edit){.name = draft->after.spec.name, .part = after};
    }
    if (n_edits > 0) {
        part_list_close(&next->groups);
        part_list_edit(&plan->base->groups, edits, n_edits, &next->groups);
    }
    free(edits);
}

static void index_listener(struct catalog_state *state, const struct listener_part *before,
                           const struct listener_part *after)
{
    if (before != NULL) {
        bool was_there = idmap_remove(
            &state->listeners, listener_place_hash(&before->listener.spec), (uintptr_t)before);

        assert(was_there);
    }
    if (after != NULL && idmap_add(&state->listeners, listener_place_hash(&after->listener.spec),
                                   (uintptr_t)after) != 0) {
        abort();
    }
}

static struct part *make_listener(struct plan *plan, struct listener_draft *draft,
                                  struct catalog *next)
{
    struct listener_part *part = catalog_alloc(1, sizeof *part);

    atomic_init(&part->head.refs, 1);
    part->head.kind = PART_LISTENER;
    part->listener = draft->after;
    if (draft->before == NULL) {
        part->listener.id = next->counters.next_listener_id++;
    }
    part->listener.changed_revision = plan->revision;
    part->listener.group_id = catalog_group_find(next, draft->after.spec.group)->id;
    part->head.name = part->listener.spec.name;
    part_encode(&part->head);
    return &part->head;
}

static void commit_listeners(struct plan *plan, struct catalog_state *state, struct catalog *next)
{
    struct part_edit *edits = catalog_alloc(plan->n_listeners, sizeof *edits);
    size_t n_edits = 0;

    for (uint32_t i = 0; i < plan->n_listeners; i++) {
        struct listener_draft *draft = plan->listeners[i];

        if (!draft->is_touched) {
            continue;
        }
        struct part *after = draft->is_gone ? NULL : make_listener(plan, draft, next);
        index_listener(state, draft->before, (const struct listener_part *)after);
        swap_content(next, draft->before != NULL ? &draft->before->head : NULL, after);
        edits[n_edits++] = (struct part_edit){.name = draft->after.spec.name, .part = after};
    }
    if (n_edits > 0) {
        part_list_close(&next->listeners);
        part_list_edit(&plan->base->listeners, edits, n_edits, &next->listeners);
    }
    free(edits);
}

/* Takes the working copy, if there is one, into its place. */
static void commit_single(struct catalog *next, struct part **place, struct part **copy)
{
    if (*copy == NULL) {
        return;
    }
    part_encode(*copy);
    swap_content(next, *place, *copy);
    part_unref(*place);
    *place = *copy;
    *copy = NULL;
}

void plan_commit(struct plan *plan, struct catalog_state *state)
{
    struct catalog *base = state->catalog;
    struct catalog *next = catalog_copy(base);

    assert(plan->base == base);
    next->revision = plan->revision;
    if (plan->command->wall_ms > next->wall_ms) {
        next->wall_ms = plan->command->wall_ms;
    }
    str_copy(next->actor, sizeof next->actor, plan->command->actor);
    if (plan->init != NULL) {
        next->cluster_id = plan->init->cluster_id;
    }
    commit_single(next, (struct part **)&next->settings, (struct part **)&plan->settings);
    commit_single(next, (struct part **)&next->nodes, (struct part **)&plan->nodes);
    commit_single(next, (struct part **)&next->keys, (struct part **)&plan->keys);
    number_drafts(plan, state, next);
    move_users(plan, state, next);
    place_fresh(plan, state, next);
    commit_groups(plan, next);
    commit_listeners(plan, state, next);
    next->chain_before = base->chain;
    next->answers = state->answers.running;
    next->chain = catalog_chain(next);
    catalog_encode_header(next);
    state->catalog = next;
    catalog_unref(base);
}
