/* Several checks of a backend (N20): opinions that are composed of others, and dependencies.
 *
 * Each check is a target like any other. With several local ones the backend's own target is one
 * that nobody probes: its opinion on this node is composed (compose.h) of the node's opinions of
 * its parts, and is the vote. With one local check the backend's target is that check's. A
 * dependency has a verdict by the rule of the backend's group, and that is a mark of the backend
 * and nothing else: no class, guard or group state looks at it. */
#include <assert.h>
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"

static uint32_t place_of(uint32_t owner, unsigned index)
{
    return owner * LIMIT_CHECKS + index + 1;
}

static uint32_t place_owner(uint32_t place)
{
    return (place - 1) / LIMIT_CHECKS;
}

static unsigned place_index(uint32_t place)
{
    return (place - 1) % LIMIT_CHECKS;
}

/* --- what is composed of what --- */

static void unlink_part(struct engine *engine, uint32_t composed, unsigned index)
{
    uint32_t place = place_of(composed, index);
    uint32_t *link = &engine->parts[engine->parts[composed].slots[index]].first_composed;

    while (*link != place) {
        assert(*link != 0);
        link = &engine->parts[place_owner(*link)].next_composed[place_index(*link)];
    }
    *link = engine->parts[composed].next_composed[index];
}

static void unlink_parts(struct engine *engine, uint32_t composed)
{
    struct target_parts *parts = &engine->parts[composed];

    for (unsigned i = 0; i < parts->n_parts; i++) {
        unlink_part(engine, composed, i);
    }
    parts->n_parts = 0;
    parts->part = COMPOSE_NO_PART;
    id_set_remove(&engine->uncomposed, composed);
}

/* Its users have the same parts, each: the first one that comes links them. */
static void link_parts(struct engine *engine, uint32_t composed, const struct server_group *spec,
                       const struct target_id targets[])
{
    struct target_parts *parts = &engine->parts[composed];

    if (parts->n_parts != 0) {
        return;
    }
    parts->k = (uint8_t)group_pass_k(spec);
    for (uint32_t i = 0; i < spec->n_checks; i++) {
        if (spec->checks[i].check_class != CHECK_LOCAL) {
            continue;
        }
        struct target_parts *part = &engine->parts[targets[i].slot];
        unsigned index = parts->n_parts++;

        assert(engine->targets[targets[i].slot].birth == targets[i].birth);
        parts->slots[index] = targets[i].slot;
        parts->next_composed[index] = part->first_composed;
        part->first_composed = place_of(composed, index);
    }
    id_set_add(&engine->uncomposed, composed);
}

void engine_part_changed(struct engine *engine, uint32_t slot)
{
    if (slot >= engine->n_parts) {
        return;
    }
    if (engine->parts[slot].n_parts != 0) {
        id_set_add(&engine->uncomposed, slot);
    }
    for (uint32_t place = engine->parts[slot].first_composed; place != 0;
         place = engine->parts[place_owner(place)].next_composed[place_index(place)]) {
        id_set_add(&engine->uncomposed, place_owner(place));
    }
}

void engine_note_part_probe(struct engine *engine, uint32_t slot, uint64_t start_ns)
{
    if (slot >= engine->n_parts) {
        return;
    }
    for (uint32_t place = engine->parts[slot].first_composed; place != 0;
         place = engine->parts[place_owner(place)].next_composed[place_index(place)]) {
        engine_note_first_probe(engine, place_owner(place), start_ns);
    }
}

/* --- composing --- */

bool engine_is_suspect(const struct engine *engine, uint32_t slot)
{
    uint32_t kinds = target_kinds(&engine->targets[slot]);

    return kinds != 0 && (engine->suspect_mask & kinds) == kinds;
}

/* What this node doubts says nothing; when it doubts all of them, the vote as a whole is suspect
 * and counts nowhere, and its opinion is shown as it is. */
static void collect_opinions(const struct engine *engine, uint32_t slot,
                             uint8_t opinions[LIMIT_CHECKS])
{
    const struct target_parts *parts = &engine->parts[slot];
    bool is_suspect = engine_is_suspect(engine, slot);

    for (unsigned i = 0; i < parts->n_parts; i++) {
        uint32_t part = parts->slots[i];
        bool counts =
            is_suspect || !engine_is_suspect(engine, part) || plant_is("compose-suspect-counts");

        opinions[i] = counts ? engine->targets[part].health.opinion : (uint8_t)OPINION_NONE;
    }
}

/* The reason, age and streak of the vote are those of the part that decides. */
static void take_details(struct engine *engine, uint32_t slot)
{
    const struct target_parts *parts = &engine->parts[slot];
    struct engine_target *target = &engine->targets[slot];

    if (parts->part == COMPOSE_NO_PART) {
        target->health.streak = 0;
        return;
    }
    const struct engine_target *part = &engine->targets[parts->slots[parts->part - 1]];
    target->health.is_failing = part->health.is_failing;
    target->health.streak = part->health.streak;
    target->fail_start_ns = part->fail_start_ns;
    target->conclusive_ns = part->conclusive_ns;
    target->response_us = part->response_us;
    target->http_status = part->http_status;
    target->reason = part->reason;
}

static void compose_slot(struct engine *engine, uint32_t slot, struct engine_actions *actions)
{
    struct target_parts *parts = &engine->parts[slot];
    struct engine_target *target = &engine->targets[slot];
    struct composed before = {.opinion = (uint8_t)target->health.opinion, .part = parts->part};
    uint8_t opinions[LIMIT_CHECKS];

    if (parts->n_parts == 0) {
        return;
    }
    collect_opinions(engine, slot, opinions);
    struct composed after = compose(opinions, parts->n_parts, parts->k, &before);
    target->health.opinion = after.opinion & 3U;
    parts->part = after.part;
    take_details(engine, slot);
    if (after.opinion != before.opinion) {
        engine_opinion_changed(engine, slot, (enum opinion)before.opinion, actions);
    } else if (after.part != before.part) {
        engine_publish_change(engine, slot, actions); /* another reason for the same vote */
    }
}

void engine_compose(struct engine *engine, struct engine_actions *actions)
{
    /* Not taken out one by one: a change of the composed opinion would put it in again. */
    for (uint32_t slot = id_set_next(&engine->uncomposed, 0); slot != ID_SET_END;
         slot = id_set_next(&engine->uncomposed, slot + 1)) {
        compose_slot(engine, slot, actions);
        id_set_remove(&engine->uncomposed, slot);
    }
}

uint32_t engine_deciding_slot(const struct engine *engine, uint32_t slot)
{
    return slot < engine->n_parts && engine->parts[slot].part != COMPOSE_NO_PART
               ? engine->parts[slot].slots[engine->parts[slot].part - 1]
               : slot;
}

/* --- dependencies --- */

bool engine_is_degraded(const struct engine *engine, uint32_t row)
{
    const struct row_dependencies *dependencies =
        row < engine->n_dependencies ? &engine->dependencies[row] : NULL;

    for (unsigned i = 0; dependencies != NULL && i < dependencies->n; i++) {
        if (dependencies->states[i] == HEALTH_UNHEALTHY) {
            return true;
        }
    }
    return false;
}

static void unlink_dependency(struct engine *engine, uint32_t row, unsigned index)
{
    struct row_dependencies *dependencies = &engine->dependencies[row];
    uint32_t place = place_of(row, index);

    if (dependencies->targets[index].birth == 0) {
        return; /* its target left before it */
    }
    uint32_t *link = &engine->parts[dependencies->targets[index].slot].first_dependent;
    while (*link != place) {
        assert(*link != 0);
        link = &engine->dependencies[place_owner(*link)].next_dependent[place_index(*link)];
    }
    *link = dependencies->next_dependent[index];
    dependencies->targets[index].birth = 0;
}

void engine_free_dependencies(struct engine *engine, uint32_t row)
{
    if (row >= engine->n_dependencies) {
        return;
    }
    for (unsigned i = 0; i < engine->dependencies[row].n; i++) {
        unlink_dependency(engine, row, i);
    }
    engine->dependencies[row] = (struct row_dependencies){0};
}

/* What is known of the same target goes on. */
static uint8_t state_before(const struct row_dependencies *before, struct target_id target)
{
    if (plant_is("dependency-forgotten")) {
        return HEALTH_INITIAL;
    }
    for (unsigned i = 0; i < before->n; i++) {
        if (before->targets[i].slot == target.slot && before->targets[i].birth == target.birth) {
            return before->states[i];
        }
    }
    return HEALTH_INITIAL;
}

static void link_dependencies(struct engine *engine, uint32_t row, const struct server_group *spec,
                              const struct target_id targets[])
{
    struct row_dependencies before = engine->dependencies[row];
    struct row_dependencies *after = &engine->dependencies[row];

    engine_free_dependencies(engine, row);
    for (uint32_t i = 0; i < spec->n_checks; i++) {
        struct target_id target = targets[i];

        if (spec->checks[i].check_class != CHECK_DEPENDENCY || target.slot == CATALOG_NO_SLOT) {
            continue;
        }
        struct target_parts *parts = &engine->parts[target.slot];
        unsigned index = after->n++;

        after->checks[index] = (uint8_t)i;
        after->states[index] = state_before(&before, target);
        after->targets[index] = target;
        after->next_dependent[index] = parts->first_dependent;
        parts->first_dependent = place_of(row, index);
        id_set_add(&engine->dirty_slots, target.slot);
    }
}

void engine_follow_parts(struct engine *engine, uint32_t row, const struct catalog_group *group,
                         const struct catalog_backend *from)
{
    const struct target_id *parts = catalog_parts_of(group, from);

    if (parts == NULL) {
        engine_free_dependencies(engine, row);
        return;
    }
    if (from->target.slot != CATALOG_NO_SLOT && group_is_composed(&group->spec)) {
        link_parts(engine, from->target.slot, &group->spec, parts);
    }
    link_dependencies(engine, row, &group->spec, parts);
}

void engine_free_parts(struct engine *engine, uint32_t slot)
{
    struct target_parts *parts = slot < engine->n_parts ? &engine->parts[slot] : NULL;

    if (parts == NULL) {
        return;
    }
    unlink_parts(engine, slot);
    while (parts->first_composed != 0) {
        unlink_parts(engine, place_owner(parts->first_composed));
    }
    while (parts->first_dependent != 0) {
        unlink_dependency(engine, place_owner(parts->first_dependent),
                          place_index(parts->first_dependent));
    }
}

static void tell_dependency(struct engine *engine, uint32_t row, unsigned index, uint8_t before,
                            const struct tally *tally)
{
    const struct engine_backend *backend = &engine->backends[row];
    const struct row_dependencies *dependencies = &engine->dependencies[row];
    const struct engine_target *target = &engine->targets[dependencies->targets[index].slot];
    struct event *event = engine_log_backend(engine, backend, EVENT_DEPENDENCY_CHANGED, tally);
    bool is_down = dependencies->states[index] == HEALTH_UNHEALTHY;

    event->from = before;
    event->to = dependencies->states[index];
    event->is_by_own = verdict_is_by_own(&engine->scopes[backend->scope].rule, tally,
                                         (enum health_state)event->to);
    engine_tell_votes(engine, dependencies->targets[index].slot, is_down, event);
    if (is_down && target->health.opinion == OPINION_FAIL) {
        event->since_first_fail_ns = engine->now_ns - target->fail_start_ns;
    }
    engine_tell_check(engine, row, dependencies->checks[index], event);
}

static void judge_dependency(struct engine *engine, uint32_t row, unsigned index,
                             const struct tally *tally)
{
    struct row_dependencies *dependencies = &engine->dependencies[row];
    uint8_t before = dependencies->states[index];
    struct verdict_question question = {
        .rule = &engine->scopes[engine->backends[row].scope].rule,
        .tally = tally,
        .health_state = before,
    };
    uint8_t after = verdict_decide(&question).health_state;

    if (after == before) {
        return;
    }
    dependencies->states[index] = after;
    if (plant_is("dependency-ejects") && after == HEALTH_UNHEALTHY) {
        engine->backends[row].health_state = HEALTH_UNHEALTHY;
    }
    if (after == HEALTH_UNHEALTHY || before == HEALTH_UNHEALTHY) {
        tell_dependency(engine, row, index, before, tally);
    }
}

void engine_judge_dependents(struct engine *engine, uint32_t slot, const struct tally *tally)
{
    uint32_t place = slot < engine->n_parts ? engine->parts[slot].first_dependent : 0;

    while (place != 0) {
        uint32_t row = place_owner(place);

        judge_dependency(engine, row, place_index(place), tally);
        place = engine->dependencies[row].next_dependent[place_index(place)];
    }
}

/* --- names --- */

/* NULL: the group is not, or not any more, in the catalog; a replay has none. */
static const struct server_group *spec_of(const struct engine *engine, uint32_t row)
{
    const struct engine_scope *scope = &engine->scopes[engine->backends[row].scope];
    const struct catalog_group *group =
        engine->replay == NULL ? catalog_group_find(engine->catalog, scope->name) : NULL;

    return group == NULL || group->spec.n_checks == 0 ? NULL : &group->spec;
}

const char *engine_part_name(const struct engine *engine, uint32_t row, uint8_t part)
{
    const struct server_group *spec = part == COMPOSE_NO_PART ? NULL : spec_of(engine, row);
    const struct named_check *check = spec == NULL ? NULL : group_local_check(spec, part - 1U);

    return check == NULL ? "" : check->name;
}

void engine_tell_check(const struct engine *engine, uint32_t row, uint8_t index,
                       struct event *event)
{
    const struct server_group *spec = spec_of(engine, row);

    if (spec != NULL && index < spec->n_checks) {
        memcpy(event->check, spec->checks[index].name, sizeof event->check);
    }
}

uint32_t engine_find_user(const struct engine *engine, uint32_t slot, const char **ret_check)
{
    const struct target_parts *parts = slot < engine->n_parts ? &engine->parts[slot] : NULL;
    uint32_t row = engine->targets[slot].first_row;

    *ret_check = "";
    if (row != NO_ROW || parts == NULL) {
        return row;
    }
    if (parts->first_composed != 0) {
        row = engine->targets[place_owner(parts->first_composed)].first_row;
        if (row != NO_ROW) {
            *ret_check =
                engine_part_name(engine, row, (uint8_t)(place_index(parts->first_composed) + 1));
        }
    } else if (parts->first_dependent != 0) {
        row = place_owner(parts->first_dependent);
        const struct server_group *spec = spec_of(engine, row);
        uint8_t check = engine->dependencies[row].checks[place_index(parts->first_dependent)];

        *ret_check = spec != NULL && check < spec->n_checks ? spec->checks[check].name : "";
    }
    return row;
}
