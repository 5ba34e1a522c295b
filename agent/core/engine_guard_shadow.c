/* The shadow of a changed check (R-CFG-4, N14): for its first cycles what the new check says is
 * shown and takes nothing out; recoveries apply. The alarm of many at once is raised all the same.
 *
 * With the automatic stop the shadow does not end while the check would take out more than the
 * group may lose in a window: it stays where it is, tells so, and goes on when fewer would go out,
 * or when the operator changes the check again (a new shadow begins), or switches shadowCycles or
 * shadowStop off. Then the other guards of the group have their say. */
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"

#define PERCENT_WITHOUT_VELOCITY 10 /* R-EJ-1's */

bool engine_in_shadow(const struct engine_scope *scope)
{
    return scope->guards[GUARD_SHADOW].is_on && !plant_is("shadow-off");
}

uint32_t engine_shadow_limit(const struct engine_scope *scope)
{
    uint8_t percent = scope->guard.velocity_percent;

    return guard_velocity_limit(scope->n_members, percent > 0 ? percent : PERCENT_WITHOUT_VELOCITY);
}

static uint64_t end_ns(const struct engine_scope *scope)
{
    return scope->guards[GUARD_SHADOW].since_ns +
           (uint64_t)scope->guard.shadow_cycles * scope->cycle_ms * NS_PER_MS;
}

void engine_begin_shadow(struct engine *engine, uint32_t index, uint64_t since_ns)
{
    struct engine_scope *scope = &engine->scopes[index];
    struct scope_guard *shadow = &scope->guards[GUARD_SHADOW];

    if (scope->guard.shadow_cycles == 0) {
        return;
    }
    if (shadow->is_on && scope->shadow_is_kept) {
        engine_set_guard(engine, scope, GUARD_SHADOW, false);
    }
    scope->shadow_is_kept = false;
    engine_set_guard(engine, scope, GUARD_SHADOW, true);
    shadow->since_ns = since_ns;
    shadow->due_ns = 0;
    engine_guard_due(engine, index, GUARD_SHADOW, end_ns(scope));
}

/* Those that cannot be judged yet may still turn out bad: the check is new; or so is this start of
 * the node, which has heard no votes when it takes up a shadow that is long over its time. A few of
 * them, that nobody can probe perhaps, keep no group in its shadow. */
static uint32_t count_undecided(const struct engine *engine, const struct engine_scope *scope)
{
    unsigned unsettled = HELD_CHECK_CHANGED;
    uint32_t n = 0;

    if (!plant_is("shadow-ends-at-start")) {
        unsettled |= HELD_LAST_KNOWN_GOOD;
    }
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        const struct engine_backend *backend = &engine->backends[row];
        uint8_t causes = backend->held_causes;

        n += backend->health_state == HEALTH_HEALTHY && !backend->is_bad &&
             engine_is_member(backend) && (causes & unsettled) != 0 &&
             (causes & (HELD_FEW_VOTES | HELD_NO_OWN_VOTE)) != 0;
    }
    return n;
}

static void stop(struct engine *engine, struct engine_scope *scope)
{
    if (scope->shadow_is_kept) {
        return;
    }
    scope->shadow_is_kept = true;
    engine->counters.shadows_stopped++;
    struct event *event = engine_log(engine, EVENT_GUARD_CHANGED);
    event->guard = GUARD_SHADOW;
    event->from = 1;
    event->to = GUARD_EVENT_KEPT;
    memcpy(event->group, scope->name, sizeof event->group);
}

void engine_look_shadow(struct engine *engine, uint32_t index)
{
    struct engine_scope *scope = &engine->scopes[index];

    scope->guards[GUARD_SHADOW].due_ns = 0;
    if (scope->guard.shadow_cycles > 0) {
        if (engine->now_ns < end_ns(scope)) {
            engine_guard_due(engine, index, GUARD_SHADOW, end_ns(scope));
            return;
        }
        bool may_stop = scope->guard.shadow_stop && !plant_is("shadow-never-stops");
        uint32_t limit = engine_shadow_limit(scope);
        uint32_t n_bad = engine_n_bad(engine, scope);
        if (may_stop && n_bad > limit) {
            stop(engine, scope); /* a backend that turns (engine_note_turn) or a change wakes it */
            return;
        }
        if (may_stop && n_bad + count_undecided(engine, scope) > limit) {
            engine_guard_due(engine, index, GUARD_SHADOW,
                             engine->now_ns + engine->vote_interval_ns);
            return;
        }
    }
    scope->shadow_is_kept = false;
    engine_set_guard(engine, scope, GUARD_SHADOW, false);
    engine_mark_scope(engine, scope);
}
