/* What a replay plays: versions of the group, their slots and rows, and the entries of these. */
#include <stdlib.h>
#include <string.h>

#include "agent/core/replay_state.h"
#include "common/base/err.h"

/* Where a plan comes from. */
struct source {
    const struct engine *engine;
    const struct history *history;
    const struct engine_scope *scope;
    const struct catalog_group *group;
};

static struct history_from from_of(const struct history_entry *entry)
{
    return (struct history_from){.at_ns = entry->at_ns, .step = entry->step};
}

/* --- versions --- */

static void add_version(struct replay_plan *plan, const struct history_version *version)
{
    catalog_group_ref(version->group);
    plan->versions[plan->n_versions++] = *version;
}

static int collect_versions(struct replay_plan *plan, const struct source *source)
{
    const struct catalog_group *group = source->group;
    size_t n = history_n_versions(source->history);

    plan->versions = calloc(n + 1, sizeof *plan->versions);
    if (plan->versions == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const struct history_version *version = history_version_at(source->history, i);

        if (version->group->row.row == group->row.row &&
            version->group->row.birth == group->row.birth) {
            add_version(plan, version);
        }
    }
    add_version(plan, &(struct history_version){.from_ns = source->scope->version.at_ns,
                                                .from_step = source->scope->version.step,
                                                .to_ns = UINT64_MAX,
                                                .group = group});
    return 0;
}

static int collect_surroundings(struct replay_plan *plan, const struct source *source)
{
    size_t n = history_n_surroundings(source->history);

    plan->surroundings = calloc(n + 1, sizeof *plan->surroundings);
    if (plan->surroundings == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        plan->surroundings[i] = *history_surroundings_at(source->history, i);
    }
    plan->n_surroundings = n;
    return 0;
}

/* --- slots and rows --- */

static int by_number_and_birth(uint32_t a, uint64_t a_birth, uint32_t b, uint64_t b_birth)
{
    if (a != b) {
        return a < b ? -1 : 1;
    }
    return (a_birth > b_birth) - (a_birth < b_birth);
}

static int compare_slots(const void *a, const void *b)
{
    const struct replay_slot *x = a;
    const struct replay_slot *y = b;

    return by_number_and_birth(x->id.slot, x->id.birth, y->id.slot, y->id.birth);
}

static int compare_rows(const void *a, const void *b)
{
    const struct replay_row *x = a;
    const struct replay_row *y = b;

    return by_number_and_birth(x->id.row, x->id.birth, y->id.row, y->id.birth);
}

uint32_t replay_find_slot(const struct replay_votes *votes, struct target_id id)
{
    struct replay_slot key = {.id = id};
    const struct replay_slot *found =
        bsearch(&key, votes->slots, votes->n_slots, sizeof key, compare_slots);

    return found == NULL ? CATALOG_NO_SLOT : (uint32_t)(found - votes->slots);
}

uint32_t replay_find_row(const struct replay_votes *votes, struct row_id id)
{
    struct replay_row key = {.id = id};
    const struct replay_row *found =
        bsearch(&key, votes->rows, votes->n_rows, sizeof key, compare_rows);

    return found == NULL ? CATALOG_NO_ROW : (uint32_t)(found - votes->rows);
}

/* Slots or rows with their births, of all versions. */
struct owner {
    uint32_t number;
    uint64_t birth;
};

struct owners {
    struct owner *items;
    uint32_t n;
};

static int compare_owners(const void *a, const void *b)
{
    const struct owner *x = a;
    const struct owner *y = b;

    return by_number_and_birth(x->number, x->birth, y->number, y->birth);
}

static void add_owner(struct owners *owners, uint32_t number, uint64_t birth)
{
    owners->items[owners->n++] = (struct owner){.number = number, .birth = birth};
}

static void sort_owners(struct owners *owners)
{
    uint32_t n_left = 0;

    qsort(owners->items, owners->n, sizeof *owners->items, compare_owners);
    for (uint32_t i = 0; i < owners->n; i++) {
        if (n_left == 0 || compare_owners(&owners->items[n_left - 1], &owners->items[i]) != 0) {
            owners->items[n_left++] = owners->items[i];
        }
    }
    owners->n = n_left;
}

/* What the version before has at the same place is there already: most versions differ in little.
 */
static void add_version_owners(const struct catalog_group *before,
                               const struct catalog_group *group, struct owners *slots,
                               struct owners *rows)
{
    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct catalog_backend *backend = &group->backends[i];
        const struct catalog_backend *old =
            before != NULL && i < before->n_backends ? &before->backends[i] : NULL;

        if (old == NULL || old->row.row != backend->row.row ||
            old->row.birth != backend->row.birth) {
            add_owner(rows, backend->row.row, backend->row.birth);
        }
        if (backend->target.slot != CATALOG_NO_SLOT &&
            (old == NULL || old->target.slot != backend->target.slot ||
             old->target.birth != backend->target.birth)) {
            add_owner(slots, backend->target.slot, backend->target.birth);
        }
    }
}

static int make_votes(struct replay_votes *votes, const struct owners *slots,
                      const struct owners *rows)
{
    votes->slots = calloc(slots->n + 1, sizeof *votes->slots);
    votes->rows = calloc(rows->n, sizeof *votes->rows);
    if (votes->slots == NULL || votes->rows == NULL ||
        id_set_reserve(&votes->changed_rows, rows->n) != 0) {
        return ERR_NOMEM;
    }
    for (; votes->n_slots < slots->n; votes->n_slots++) {
        const struct owner *owner = &slots->items[votes->n_slots];

        votes->slots[votes->n_slots].id =
            (struct target_id){.slot = owner->number, .birth = owner->birth};
    }
    for (; votes->n_rows < rows->n; votes->n_rows++) {
        const struct owner *owner = &rows->items[votes->n_rows];

        votes->rows[votes->n_rows].id =
            (struct row_id){.row = owner->number, .birth = owner->birth};
    }
    return 0;
}

static int collect_owners(struct replay_plan *plan, const struct source *source)
{
    size_t n_max = 1;
    int err = ERR_NOMEM;

    for (size_t i = 0; i < plan->n_versions; i++) {
        n_max += plan->versions[i].group->n_backends;
    }
    struct owners slots = {.items = malloc(n_max * sizeof *slots.items)};
    struct owners rows = {.items = malloc(n_max * sizeof *rows.items)};
    if (slots.items != NULL && rows.items != NULL) {
        add_owner(&rows, source->group->row.row, source->group->row.birth);
        for (size_t i = 0; i < plan->n_versions; i++) {
            add_version_owners(i > 0 ? plan->versions[i - 1].group : NULL, plan->versions[i].group,
                               &slots, &rows);
        }
        sort_owners(&slots);
        sort_owners(&rows);
        err = make_votes(&plan->votes, &slots, &rows);
        plan->scope_row = err == 0 ? replay_find_row(&plan->votes, source->group->row) : 0;
    }
    free(slots.items);
    free(rows.items);
    return err;
}

/* --- where it begins --- */

/* What is up to `from` is not known well enough. */
static void begin_after(struct replay_plan *plan, struct history_from from)
{
    if (history_is_after(&plan->begin, &from)) {
        return;
    }
    plan->begin = from;
    plan->is_whole = false;
}

/* A version whose slot was given to another target since: its votes are gone. */
static void begin_after_lost_slots(struct replay_plan *plan, const struct history *history)
{
    for (size_t i = 0; i < plan->n_versions; i++) {
        const struct history_version *version = &plan->versions[i];

        for (uint32_t b = 0; b < version->group->n_backends; b++) {
            struct target_id target = version->group->backends[b].target;

            if (target.slot != CATALOG_NO_SLOT &&
                !history_slot(history, target.slot, target.birth).birth_matches) {
                begin_after(
                    plan, (struct history_from){.at_ns = version->to_ns, .step = version->to_step});
                break;
            }
        }
    }
}

static void find_begin(struct replay_plan *plan, const struct source *source)
{
    const struct history_version *first = &plan->versions[0];
    struct history_from version = {.at_ns = first->from_ns, .step = first->from_step};

    plan->begin = source->scope->made;
    plan->is_whole = true;
    begin_after(plan, history_complete_from(source->history));
    if (history_is_after(&version, &source->scope->made)) {
        begin_after(plan, version);
    }
    begin_after_lost_slots(plan, source->history);
    for (uint32_t i = 0; i < plan->votes.n_slots; i++) {
        struct target_id id = plan->votes.slots[i].id;

        begin_after(plan, history_slot(source->history, id.slot, id.birth).from);
    }
    for (uint32_t i = 0; i < plan->votes.n_rows; i++) {
        struct row_id id = plan->votes.rows[i].id;
        struct history_chain chain = history_row(source->history, id.row, id.birth);

        plan->votes.rows[i].is_told = chain.birth_matches;
        if (chain.birth_matches) {
            begin_after(plan, chain.from);
        }
    }
}

/* --- entries --- */

static bool is_played(const struct replay_plan *plan, const struct history_entry *entry)
{
    struct history_from at = from_of(entry);

    return plan->is_whole ? !history_is_after(&plan->begin, &at)
                          : history_is_after(&at, &plan->begin);
}

/* Where a slot or row of the history is in the replay: index + 1; 0 = it is not. */
struct maps {
    uint32_t *slots;
    uint32_t *rows;
};

static int make_maps(const struct replay_plan *plan, const struct history *history,
                     struct maps *maps)
{
    const struct replay_votes *votes = &plan->votes;

    maps->slots = calloc(HISTORY_INDEXES, sizeof *maps->slots);
    maps->rows = calloc(HISTORY_INDEXES, sizeof *maps->rows);
    if (maps->slots == NULL || maps->rows == NULL) {
        return ERR_NOMEM;
    }
    for (uint32_t i = 0; i < votes->n_slots; i++) {
        struct target_id id = votes->slots[i].id;
        struct history_chain chain = history_slot(history, id.slot, id.birth);

        if (chain.birth_matches) {
            maps->slots[chain.index] = i + 1;
        }
    }
    for (uint32_t i = 0; i < votes->n_rows; i++) {
        struct row_id id = votes->rows[i].id;
        struct history_chain chain = history_row(history, id.row, id.birth);

        if (chain.birth_matches) {
            maps->rows[chain.index] = i + 1;
        }
    }
    return 0;
}

/* Newest first, until all of the group is there or there is no more room. */
static void collect_backwards(struct replay_plan *plan, const struct history *history,
                              const struct maps *maps)
{
    uint64_t first = history_first(history);

    for (uint64_t number = history_next(history); number-- > first;) {
        const struct history_entry *entry = history_by_number(history, number);
        uint32_t index = entry->kind == HISTORY_NONE ? 0
                         : history_is_of_slot(entry) ? maps->slots[entry->index]
                                                     : maps->rows[entry->index];

        if (!is_played(plan, entry)) {
            return;
        }
        if (index == 0 || (entry->kind == HISTORY_RESULT && !plan->counts_results)) {
            continue;
        }
        if (plan->n_entries == LIMIT_REPLAY_ENTRIES) {
            begin_after(plan, from_of(entry));
            return;
        }
        plan->entries[plan->n_entries++] =
            (struct replay_entry){.entry = *entry, .index = index - 1};
    }
}

static void put_in_order(struct replay_plan *plan)
{
    /* The rest of a step that was cut. */
    while (plan->n_entries > 0 && !is_played(plan, &plan->entries[plan->n_entries - 1].entry)) {
        plan->n_entries--;
    }
    for (size_t i = 0, j = plan->n_entries; i + 1 < j; i++) {
        struct replay_entry swapped = plan->entries[i];

        plan->entries[i] = plan->entries[--j];
        plan->entries[j] = swapped;
    }
}

static int collect_entries(struct replay_plan *plan, const struct history *history)
{
    struct maps maps = {0};
    int err = make_maps(plan, history, &maps);

    plan->entries = calloc(LIMIT_REPLAY_ENTRIES, sizeof *plan->entries);
    if (err == 0 && plan->entries != NULL) {
        collect_backwards(plan, history, &maps);
        put_in_order(plan);
    }
    free(maps.slots);
    free(maps.rows);
    return plan->entries == NULL ? ERR_NOMEM : err;
}

/* The votes as they stood where it begins. */
static void fold_past(struct replay_plan *plan, const struct history *history)
{
    for (uint32_t i = 0; i < plan->votes.n_slots; i++) {
        struct replay_slot *slot = &plan->votes.slots[i];
        struct history_chain chain = history_slot(history, slot->id.slot, slot->id.birth);

        if (!chain.birth_matches) {
            continue;
        }
        slot->votes = history_slot_base(history, chain.index);
        for (uint32_t place = chain.first; place != 0;) {
            const struct history_entry *entry = history_at(history, place);

            if (is_played(plan, entry)) {
                break;
            }
            replay_take_vote(slot, entry);
            place = entry->next;
        }
    }
}

/* What the history told of a row before it begins. */
static struct history_row find_row_before(const struct replay_plan *plan,
                                          const struct history *history, struct row_id id)
{
    struct history_chain chain = history_row(history, id.row, id.birth);

    for (uint32_t place = chain.first; place != 0;) {
        const struct history_entry *entry = history_at(history, place);

        if (is_played(plan, entry)) {
            break;
        }
        history_fold_row(&chain.before, entry);
        place = entry->next;
    }
    return chain.before;
}

/* The verdicts as they stood where it begins. One that was told neither before nor after has not
 * changed at all. */
static void find_first_states(struct replay_plan *plan, const struct source *source)
{
    struct replay_votes *votes = &plan->votes;

    for (uint32_t i = 0; i < votes->n_rows; i++) {
        struct row_id id = votes->rows[i].id;
        const struct engine_backend *backend = &source->engine->backends[id.row];
        struct history_row before = find_row_before(plan, source->history, id);

        votes->rows[i].begins = before.state;
        votes->rows[i].joined_ns = before.joined_ns;
        votes->rows[i].was_kept = before.was_kept;
        votes->rows[i].initial_ns = before.initial_ns;
        if (before.state == HEALTH_NONE && backend->birth == id.birth) {
            votes->rows[i].begins = backend->health_state;
        }
    }
    for (size_t i = plan->n_entries; i-- > 0;) {
        const struct history_entry *entry = &plan->entries[i].entry;

        if (entry->kind == HISTORY_VERDICT) {
            votes->rows[plan->entries[i].index].begins = entry->from;
        }
    }
    for (uint32_t i = 0; i < votes->n_rows; i++) {
        struct row_id id = votes->rows[i].id;
        const struct engine_backend *backend = &source->engine->backends[id.row];
        uint8_t begins = votes->rows[i].begins;

        const struct kept_verdict *kept = engine_kept_of_row(source->engine, id);

        votes->rows[i].kept = kept != NULL ? *kept : (struct kept_verdict){0};
        votes->rows[i].begins_gray = backend->birth == id.birth && backend->is_gray &&
                                     backend->health_state == begins && begins != HEALTH_INITIAL;
    }
}

int replay_plan_make(struct replay_plan *plan, const struct engine *engine,
                     const struct catalog_group *group)
{
    const struct source source = {.engine = engine,
                                  .history = engine->history,
                                  .scope = &engine->scopes[engine->rows[group->row.row].scope],
                                  .group = group};

    *plan = (struct replay_plan){
        .config = engine->config,
        .end_ns = engine->now_ns,
        .kept_at_ns = engine->kept_at_ns,
        .kept_age_ms = engine->kept_age_ms,
        .is_held = (source.scope->hold_sources & HOLD_BY_NODE_GROUP) != 0,
        .first_probe_ns = source.scope->first_probe_ns,
        .counts_results = plan->counts_results,
    };
    id_set_init(&plan->votes.changed_rows);
    int err = collect_versions(plan, &source);
    if (err == 0) {
        err = collect_surroundings(plan, &source);
    }
    if (err == 0) {
        err = collect_owners(plan, &source);
    }
    if (err == 0) {
        find_begin(plan, &source);
        err = collect_entries(plan, source.history);
    }
    if (err == 0) {
        fold_past(plan, source.history);
        find_first_states(plan, &source);
    }
    return err;
}

void replay_plan_close(struct replay_plan *plan)
{
    for (uint32_t i = 0; i < plan->votes.n_slots; i++) {
        free(plan->votes.slots[i].details);
    }
    for (size_t i = 0; i < plan->n_versions; i++) {
        catalog_group_unref(plan->versions[i].group);
    }
    id_set_close(&plan->votes.changed_rows);
    free(plan->votes.slots);
    free(plan->votes.rows);
    free(plan->versions);
    free(plan->surroundings);
    free(plan->entries);
}
