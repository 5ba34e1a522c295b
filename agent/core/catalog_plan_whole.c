/* What spans groups: addresses against the allowed prefixes, rules against the number of observers,
 * limits, and which slots gain and lose users. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_state.h"
#include "common/base/plant.h"
#include "common/model/names.h"

static const struct cluster_settings *settings_after(const struct plan *plan)
{
    return plan->settings != NULL ? &plan->settings->settings : &plan->base->settings->settings;
}

/* --- addresses (S66) --- */

static bool is_allowed(const struct cluster_settings *settings, const struct addr *addr)
{
    for (uint32_t i = 0; i < settings->n_allowed; i++) {
        if (cidr_contains(&settings->allowed[i], addr)) {
            return true;
        }
    }
    return plant_is("catalog-allowed");
}

/* "10.0.0.0/8, fc00::/7", or as many as fit and "...". */
static const char *list_allowed(const struct cluster_settings *settings, char *list,
                                size_t list_bytes)
{
    size_t used = (size_t)snprintf(list, list_bytes, "%s", settings->n_allowed == 0 ? "none" : "");
    char text[CIDR_TEXT_BYTES];

    for (uint32_t i = 0; i < settings->n_allowed; i++) {
        const char *between = i == 0 ? "" : ", ";

        cidr_format(&settings->allowed[i], text);
        if (used + strlen(between) + strlen(text) + sizeof ", ..." > list_bytes) {
            snprintf(list + used, list_bytes - used, "%s...", between);
            break;
        }
        used += (size_t)snprintf(list + used, list_bytes - used, "%s%s", between, text);
    }
    return list;
}

static int check_addresses(struct plan *plan, const struct catalog_group *group)
{
    const struct cluster_settings *settings = settings_after(plan);
    uint32_t n = plan_none_refused(plan, CHANGE_PUT_SETTINGS, NULL) ? group->n_backends : 0;
    char text[ENDPOINT_TEXT_BYTES];
    char list[160];
    int first = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct catalog_backend *backend = &group->backends[i];

        if (backend->life == LIFE_REMOVING || is_allowed(settings, &backend->spec.at.addr)) {
            continue;
        }
        int rc = plan_refuse(plan, ERR_INVALID,
                             "server group \"%s\": backend %s is outside the prefixes that the "
                             "cluster settings allow (allowedCidrs): %s",
                             group->spec.name, endpoint_format(&backend->spec.at, text),
                             list_allowed(settings, list, sizeof list));
        if (!plan_goes_on(plan, rc, &first)) {
            break;
        }
    }
    return first;
}

/* --- rules --- */

int catalog_check_rule(const struct server_group *group, uint32_t n_observers, struct errmsg *err)
{
    const struct rule_column *columns[] = {&group->rule.down, &group->rule.up};

    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        if (columns[i]->kind == RULE_AT_LEAST && columns[i]->value > n_observers &&
            !plant_is("catalog-at-least")) {
            return errmsg_set(err, ERR_INVALID,
                              "server group \"%s\": rule at-least %u needs %u observers, the "
                              "cluster would have %" PRIu32,
                              group->name, columns[i]->value, columns[i]->value, n_observers);
        }
    }
    return 0;
}

static int check_rule(struct plan *plan, const struct catalog_group *group, uint32_t n_observers)
{
    struct errmsg message;
    bool is_known = plan_none_refused(plan, CHANGE_PUT_NODE, NULL) &&
                    plan_none_refused(plan, CHANGE_DELETE_NODE, NULL);
    int rc = is_known ? catalog_check_rule(&group->spec, n_observers, &message) : 0;

    return rc == 0 ? 0 : plan_refuse(plan, rc, "%s", message.text);
}

static int compare_draft_name(const void *name, const void *draft)
{
    return strcmp(name, (*(struct group_draft *const *)draft)->after.spec.name);
}

static bool is_drafted(const struct plan *plan, const char *name)
{
    return plan->n_groups > 0 && bsearch(name, plan->groups, plan->n_groups,
                                         sizeof(struct group_draft *), compare_draft_name) != NULL;
}

/* Of new settings, which have no draft; else the change that was judged last. */
static uint32_t index_of_settings(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->command->n_changes; i++) {
        if (plan->command->changes[i].kind == CHANGE_PUT_SETTINGS) {
            return i;
        }
    }
    return plan->change_index;
}

/* Groups that the command does not name, judged by new settings or another number of observers. */
static int check_other_groups(struct plan *plan, uint32_t n_observers)
{
    bool fewer = n_observers < catalog_n_observers(plan->base);
    uint32_t n = plan->settings != NULL || fewer ? plan->base->groups.n_items : 0;
    int first = 0;

    plan->change_index = index_of_settings(plan);
    for (uint32_t i = 0; i < n; i++) {
        const struct catalog_group *group = catalog_group_at(plan->base, i);

        if (group->is_deleted || is_drafted(plan, group->spec.name)) {
            continue;
        }
        int rc = plan->settings != NULL ? check_addresses(plan, group) : 0;
        if (!plan_goes_on(plan, rc, &first) ||
            !plan_goes_on(plan, check_rule(plan, group, n_observers), &first)) {
            break;
        }
    }
    return first;
}

/* --- limits --- */

struct totals {
    int64_t n_groups;
    int64_t n_backends;
    int64_t n_rows;
};

static void add_draft(struct totals *totals, const struct group_draft *draft)
{
    if (draft->before != NULL) {
        totals->n_groups -= !draft->before->group.is_deleted;
        totals->n_backends -= group_n_live(&draft->before->group);
        totals->n_rows -= 1 + (int64_t)draft->before->group.n_backends;
    }
    if (!draft->is_gone) {
        totals->n_groups += !draft->after.is_deleted;
        totals->n_backends += group_n_live(&draft->after);
        totals->n_rows += 1 + (int64_t)draft->after.n_backends;
    }
}

static int check_totals(struct plan *plan)
{
    struct totals totals = {.n_groups = plan->base->n_live_groups,
                            .n_backends = plan->base->n_live_backends,
                            .n_rows = plan->base->n_rows_used};

    for (uint32_t i = 0; i < plan->n_groups; i++) {
        add_draft(&totals, plan->groups[i]);
    }
    const struct {
        const char *what;
        int64_t n;
        int64_t limit;
    } rows[] = {
        {"server groups", totals.n_groups, LIMIT_GROUPS},
        {"backends", totals.n_backends, LIMIT_BACKENDS},
        {"server groups and backends, with those being removed", totals.n_rows, LIMIT_ROWS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].n > rows[i].limit) {
            return plan_refuse(plan, ERR_LIMIT,
                               "the cluster would have %" PRId64 " %s, the limit is %" PRId64,
                               rows[i].n, rows[i].what, rows[i].limit);
        }
    }
    return 0;
}

static int check_draft(struct plan *plan, struct group_draft *draft, uint32_t n_observers)
{
    int first = 0;

    plan->change_index = draft->change_index;
    if (draft->is_gone || draft->after.is_deleted || plan_is_refused(plan, draft->change_index)) {
        return 0;
    }
    if (draft->after.n_backends > LIMIT_GROUP_ROWS) {
        return plan_refuse(plan, ERR_LIMIT,
                           "server group \"%s\": %" PRIu32
                           " backends with those still being removed, the limit is %d: wait for "
                           "removals to end",
                           draft->after.spec.name, draft->after.n_backends, LIMIT_GROUP_ROWS);
    }
    if (plan_goes_on(plan, check_addresses(plan, &draft->after), &first)) {
        plan_goes_on(plan, check_rule(plan, &draft->after, n_observers), &first);
    }
    return first;
}

int plan_check_groups(struct plan *plan)
{
    uint32_t n_observers = plan_n_observers(plan);
    int first = 0;

    for (uint32_t i = 0; i < plan->n_groups; i++) {
        if (!plan_goes_on(plan, check_draft(plan, plan->groups[i], n_observers), &first)) {
            return first;
        }
    }
    if (!plan_goes_on(plan, check_other_groups(plan, n_observers), &first)) {
        return first;
    }
    return plan->answer->err != 0 ? first : check_totals(plan);
}

/* --- targets --- */

static void add_delta(struct plan *plan, uint32_t slot, int32_t delta)
{
    plan->deltas[plan->n_deltas++] = (struct slot_delta){.slot = slot, .delta = delta};
}

static const struct catalog_target *find_target(const struct plan *plan, struct hash128 hash)
{
    size_t cursor = 0;
    uint64_t slot;

    while ((slot = idmap_next(&plan->state->targets, hash.low, &cursor)) != IDMAP_NONE) {
        const struct catalog_target *target = catalog_target_at(plan->base, (uint32_t)slot);

        if (hash128_equal(target->definition_hash, hash)) {
            return target;
        }
    }
    return NULL;
}

struct target_id *plan_place_of(struct group_draft *draft, uint32_t index, uint32_t use)
{
    return use == 0 ? &draft->backends[index].target
                    : &draft->targets[index * draft->after.spec.n_checks + use - 1];
}

/* Gives a backend of a draft the slot it shall use, if its definition has one. */
static void choose_slot(struct plan *plan, struct group_draft *draft, uint32_t index, uint32_t use)
{
    struct target_id *place = plan_place_of(draft, index, use);
    const struct catalog_backend *backend = &draft->backends[index];

    *place = (struct target_id){.slot = CATALOG_NO_SLOT};
    if (draft->is_gone || !catalog_wants_target(&draft->after, backend)) {
        return;
    }
    struct catalog_definition definition =
        catalog_use_definition(&draft->after.spec, &draft->checks, &backend->spec.at, use);
    const struct catalog_target *target = find_target(plan, definition.hash);
    if (target != NULL) {
        *place = target->id;
        add_delta(plan, target->id.slot, 1);
    } else {
        plan->fresh[plan->n_fresh++] = (struct fresh_target){
            .draft = draft, .backend_index = index, .use = use, .hash = definition.hash};
    }
}

/* All that the group used before; what it goes on using is taken again. */
static void release_slots(struct plan *plan, const struct group_part *before)
{
    uint32_t n = before == NULL ? 0 : before->group.n_backends;

    for (uint32_t i = 0; i < n; i++) {
        const struct catalog_backend *backend = &before->group.backends[i];
        const struct target_id *parts = catalog_parts_of(&before->group, backend);

        if (backend->target.slot == CATALOG_NO_SLOT) {
            continue;
        }
        add_delta(plan, backend->target.slot, -1);
        for (uint32_t c = 0; parts != NULL && c < before->group.spec.n_checks; c++) {
            add_delta(plan, parts[c].slot, -1);
        }
    }
}

static int compare_deltas(const void *a, const void *b)
{
    uint32_t slot_a = ((const struct slot_delta *)a)->slot;
    uint32_t slot_b = ((const struct slot_delta *)b)->slot;

    return (slot_a > slot_b) - (slot_a < slot_b);
}

static void merge_deltas(struct plan *plan)
{
    uint32_t n = 0;

    if (plan->n_deltas == 0) {
        return;
    }
    qsort(plan->deltas, plan->n_deltas, sizeof *plan->deltas, compare_deltas);
    for (uint32_t i = 1; i < plan->n_deltas; i++) {
        if (plan->deltas[i].slot == plan->deltas[n].slot) {
            plan->deltas[n].delta += plan->deltas[i].delta;
        } else {
            plan->deltas[++n] = plan->deltas[i];
        }
    }
    plan->n_deltas = n + 1;
}

static int compare_hashes(const void *a, const void *b)
{
    const struct hash128 *hash_a = a;
    const struct hash128 *hash_b = b;

    if (hash_a->high != hash_b->high) {
        return hash_a->high < hash_b->high ? -1 : 1;
    }
    return (hash_a->low > hash_b->low) - (hash_a->low < hash_b->low);
}

/* New definitions, each counted once. */
static uint32_t count_definitions(const struct plan *plan)
{
    struct hash128 *hashes = catalog_alloc(plan->n_fresh, sizeof *hashes);
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_fresh; i++) {
        hashes[i] = plan->fresh[i].hash;
    }
    qsort(hashes, plan->n_fresh, sizeof *hashes, compare_hashes);
    for (uint32_t i = 0; i < plan->n_fresh; i++) {
        n += i == 0 || !hash128_equal(hashes[i - 1], hashes[i]);
    }
    free(hashes);
    return n;
}

static int check_number(struct plan *plan)
{
    uint32_t n_freed = 0;

    if (plan->base->n_targets + plan->n_fresh <= LIMIT_TARGETS) {
        return 0;
    }
    for (uint32_t i = 0; i < plan->n_deltas; i++) {
        const struct catalog_target *target = catalog_target_at(plan->base, plan->deltas[i].slot);

        n_freed += (int64_t)target->n_users + plan->deltas[i].delta == 0;
    }
    uint32_t n = plan->base->n_targets - n_freed + count_definitions(plan);
    if (n > LIMIT_TARGETS) {
        return plan_refuse(plan, ERR_LIMIT,
                           "the cluster would have %" PRIu32 " targets to probe, the limit is %d",
                           n, LIMIT_TARGETS);
    }
    return 0;
}

static size_t n_uses_of(const struct catalog_group *group)
{
    return (size_t)group->n_backends * catalog_n_uses(&group->spec);
}

static void choose_slots(struct plan *plan, struct group_draft *draft)
{
    uint32_t n_uses = catalog_n_uses(&draft->after.spec);

    check_set_make(&draft->after.spec, draft->before != NULL ? &draft->before->checks : NULL,
                   &draft->checks);
    if (n_uses > 1) {
        draft->targets = catalog_alloc((size_t)draft->after.n_backends * draft->after.spec.n_checks,
                                       sizeof *draft->targets);
    }
    release_slots(plan, draft->before);
    for (uint32_t i = 0; i < draft->after.n_backends; i++) {
        for (uint32_t use = 0; use < n_uses; use++) {
            choose_slot(plan, draft, i, use);
        }
    }
}

int plan_targets(struct plan *plan)
{
    size_t n_before = 0;
    size_t n_after = 0;

    for (uint32_t i = 0; i < plan->n_groups; i++) {
        const struct group_draft *draft = plan->groups[i];

        n_before += draft->before != NULL ? n_uses_of(&draft->before->group) : 0;
        n_after += n_uses_of(&draft->after);
    }
    plan->deltas = catalog_alloc(n_before + n_after, sizeof *plan->deltas);
    plan->fresh = catalog_alloc(n_after, sizeof *plan->fresh);
    for (uint32_t i = 0; i < plan->n_groups; i++) {
        choose_slots(plan, plan->groups[i]);
    }
    merge_deltas(plan);
    return check_number(plan);
}
