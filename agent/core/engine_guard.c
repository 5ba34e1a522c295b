/* Guards: what limits the verdicts of this node (spec.md 5).
 *
 * Hold: a switch that freezes ejections, replicated or this node's own; recoveries apply. Velocity:
 * so many ejections of a group in a window; what is more is pending until its turn comes (guard.h).
 * Hold is looked at first, and what it freezes is not pending. */
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"
#include "common/base/str.h"

/* --- hold --- */

bool engine_is_held(const struct engine *engine, const struct engine_scope *scope)
{
    return (engine->hold_sources | scope->hold_sources) != 0;
}

static void tell_hold(struct engine *engine, const char *group, enum hold_source source, bool is_on,
                      const struct hold_origin *origin)
{
    struct event *event = engine_log(engine, EVENT_GUARD_CHANGED);

    event->guard = GUARD_HOLD;
    event->hold_source = (uint8_t)source;
    event->from = !is_on;
    event->to = is_on;
    str_copy(event->group, sizeof event->group, group);
    str_copy(event->actor, sizeof event->actor, origin->actor);
    if (is_on) {
        engine->counters.holds_entered++;
    } else {
        engine->counters.holds_left++;
    }
}

uint64_t engine_hold_since_ns(const struct engine *engine, const struct engine_scope *scope)
{
    uint64_t scope_ns = scope->guards[GUARD_HOLD].since_ns;

    if (engine->hold_sources == 0) {
        return scope->hold_sources == 0 ? 0 : scope_ns;
    }
    return scope->hold_sources != 0 && scope_ns < engine->hold_since_ns ? scope_ns
                                                                        : engine->hold_since_ns;
}

/* Returns true when the source turned on or off. */
static bool follow_source(struct engine *engine, struct engine_scope *scope,
                          enum hold_source source, bool is_on)
{
    uint8_t *sources = scope != NULL ? &scope->hold_sources : &engine->hold_sources;
    uint64_t *since_ns =
        scope != NULL ? &scope->guards[GUARD_HOLD].since_ns : &engine->hold_since_ns;
    bool was_on = (*sources & source) != 0;

    if (*sources == 0) {
        *since_ns = engine->now_ns;
    }
    *sources = (uint8_t)(is_on ? *sources | source : *sources & ~(unsigned)source);
    return was_on != is_on;
}

static void mark_scope(struct engine *engine, const struct engine_scope *scope)
{
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        if (engine->backends[row].is_linked) {
            id_set_add(&engine->dirty_slots, engine->backends[row].target.slot);
        }
    }
}

void engine_follow_cluster_hold(struct engine *engine)
{
    const struct cluster_settings *settings = catalog_settings(engine->catalog);
    bool is_on = settings->hold == HOLD_ON;

    engine->held_by_cluster = settings->held_by;
    if (follow_source(engine, NULL, HOLD_BY_CLUSTER, is_on)) {
        tell_hold(engine, "", HOLD_BY_CLUSTER, is_on, &settings->held_by);
        engine_mark_all(engine);
    }
}

/* The caller marks the group's slots. */
void engine_follow_group_hold(struct engine *engine, struct engine_scope *scope,
                              const struct server_group *spec)
{
    bool is_on = spec->hold == HOLD_ON;

    scope->held_by_group = spec->held_by;
    if (follow_source(engine, scope, HOLD_BY_GROUP, is_on)) {
        tell_hold(engine, scope->name, HOLD_BY_GROUP, is_on, &spec->held_by);
    }
}

static struct engine_scope *find_scope(struct engine *engine, const char *name)
{
    const struct catalog_group *group =
        engine->catalog == NULL ? NULL : catalog_group_find(engine->catalog, name);

    return group == NULL ? NULL : &engine->scopes[engine->rows[group->row.row].scope];
}

void engine_override_hold(struct engine *engine, const struct hold_override *override)
{
    struct engine_scope *scope = NULL;
    struct hold_origin origin = {.wall_ms = override->wall_ms};
    enum hold_source source = HOLD_BY_NODE;

    str_copy(origin.actor, sizeof origin.actor, override->actor);
    if (override->group[0] != '\0') {
        scope = find_scope(engine, override->group);
        source = HOLD_BY_NODE_GROUP;
        if (scope == NULL) {
            return;
        }
    }
    if (!follow_source(engine, scope, source, override->is_on)) {
        return;
    }
    if (scope != NULL) {
        engine_keep_row(engine, scope->row.row,
                        &(struct row_note){.kind = HISTORY_NODE_HOLD,
                                           .from = !override->is_on,
                                           .to = override->is_on});
    }
    *(scope != NULL ? &scope->held_by_node : &engine->held_by_node) = origin;
    tell_hold(engine, override->group, source, override->is_on, &origin);
    if (scope != NULL) {
        mark_scope(engine, scope);
    } else {
        engine_mark_all(engine);
    }
}

/* --- one answer --- */

/* An ejection takes a backend out that was in; `initial` to unhealthy takes nothing away. */
static bool is_ejection(const struct engine_backend *backend, const struct verdict_answer *answer)
{
    return backend->health_state == HEALTH_HEALTHY && answer->health_state == HEALTH_UNHEALTHY;
}

static bool is_recovery(const struct engine_backend *backend, const struct verdict_answer *answer)
{
    return backend->health_state == HEALTH_UNHEALTHY && answer->health_state == HEALTH_HEALTHY;
}

/* The verdict stays as it was, and steers nothing: the backend is used as healthy. */
static void freeze(const struct engine_backend *backend, uint8_t cause,
                   struct verdict_answer *answer)
{
    answer->health_state = backend->health_state;
    answer->is_gray = backend->is_gray;
    answer->is_decided = false;
    answer->is_unreachable = false;
    answer->held_causes |= cause;
}

/* --- velocity --- */

static bool has_velocity(const struct engine_scope *scope)
{
    return scope->guard.velocity_percent > 0 && scope->n_members >= scope->guard.exempt_below &&
           !plant_is("velocity-off");
}

static void set_velocity(struct engine *engine, struct engine_scope *scope, bool is_on)
{
    struct scope_guard *state = &scope->guards[GUARD_VELOCITY];

    if (state->is_on == is_on) {
        return;
    }
    *state = (struct scope_guard){.is_on = is_on, .since_ns = engine->now_ns};
    struct event *event = engine_log(engine, EVENT_GUARD_CHANGED);
    event->guard = GUARD_VELOCITY;
    event->from = !is_on;
    event->to = is_on;
    memcpy(event->group, scope->name, sizeof event->group);
    if (is_on) {
        engine->counters.velocity_entered++;
    } else {
        engine->counters.velocity_left++;
    }
}

void engine_follow_guard_policy(struct engine *engine, uint32_t index,
                                const struct catalog_group *group)
{
    struct engine_scope *scope = &engine->scopes[index];

    scope->guard = group->spec.guard;
    scope->n_members = 0;
    for (uint32_t i = 0; i < group->n_backends; i++) {
        scope->n_members += group->backends[i].life != LIFE_REMOVING &&
                            group->backends[i].spec.admin_state == ADMIN_ENABLED;
    }
    if (!has_velocity(scope)) {
        set_velocity(engine, scope, false);
        timers_clear(&engine->guard_timers, index);
    }
}

static size_t collect_pending(struct engine *engine, const struct engine_scope *scope)
{
    size_t n = 0;

    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        const struct engine_backend *backend = &engine->backends[row];
        struct tally tally;

        if (!backend->is_pending || !backend->is_linked) {
            continue;
        }
        engine_tally(engine, backend->target.slot, &tally);
        engine->candidates[n++] = (struct guard_candidate){
            .row = row, .n_fail = tally.n_fail, .backend_id = backend->backend_id};
    }
    return n;
}

/* Those whose turn it is are judged once more in this step, and then leave. */
void engine_admit_pending(struct engine *engine, uint32_t index)
{
    struct engine_scope *scope = &engine->scopes[index];
    uint64_t window_ns = scope->guard.velocity_window_ms * NS_PER_MS;
    uint32_t limit = guard_velocity_limit(scope->n_members, scope->guard.velocity_percent);
    uint32_t used = velocity_used(&scope->velocity, engine->now_ns, window_ns);
    size_t n = collect_pending(engine, scope);
    size_t n_room = used < limit ? limit - used : 0;

    guard_sort(engine->candidates, n);
    for (size_t i = 0; i < n && i < n_room; i++) {
        struct engine_backend *backend = &engine->backends[engine->candidates[i].row];

        backend->is_admitted = true;
        velocity_note(&scope->velocity, engine->now_ns);
        id_set_add(&engine->dirty_slots, backend->target.slot);
    }
    set_velocity(engine, scope, n > n_room);
    if (n > n_room) {
        timers_set(&engine->guard_timers, index, velocity_next_ns(&scope->velocity, window_ns));
    }
}

/* Votes of one moment arrive one after the other, and on each node in an order of their own: the
 * first ejection of a group waits for one V, in which all nodes come to hold the same votes. */
static void wait_for_turn(struct engine *engine, struct engine_backend *backend,
                          struct verdict_answer *answer)
{
    freeze(backend, 0, answer);
    backend->is_pending = true;
    if (timers_get(&engine->guard_timers, backend->scope) == TIMER_NEVER) {
        timers_set(&engine->guard_timers, backend->scope,
                   engine->now_ns + engine->vote_interval_ns);
    }
}

void engine_guard_answer(struct engine *engine, uint32_t row, struct verdict_answer *answer)
{
    struct engine_backend *backend = &engine->backends[row];
    const struct engine_scope *scope = &engine->scopes[backend->scope];
    bool is_held = engine_is_held(engine, scope) && !plant_is("hold-ignored");
    bool was_admitted = backend->is_admitted;

    backend->is_pending = false;
    backend->is_admitted = false;
    if (!is_ejection(backend, answer)) {
        if (is_held && plant_is("hold-blocks-recovery") && is_recovery(backend, answer)) {
            freeze(backend, HELD_BY_HOLD, answer);
        }
        return;
    }
    if (is_held) {
        freeze(backend, HELD_BY_HOLD, answer);
    } else if (has_velocity(scope) && !was_admitted) {
        wait_for_turn(engine, backend, answer);
    }
}
