/* Guards: what limits the verdicts of this node (spec.md 5).
 *
 * An ejection is looked at by hold (engine_hold.c), then by the shadow of a changed check
 * (engine_guard_shadow.c), then by velocity: so many ejections of a group in a window; what is more
 * is pending until its turn comes (guard.h). What one freezes the next does not see. A return is
 * looked at by engine_guard_return.c. The alarm of engine_guard_alarm.c changes nothing. */
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"

/* --- a guard at work --- */

static void count_change(struct engine_counters *counters, enum guard_kind guard, bool is_on)
{
    switch (guard) {
    case GUARD_VELOCITY:
        *(is_on ? &counters->velocity_entered : &counters->velocity_left) += 1;
        break;
    case GUARD_DAMPING:
        *(is_on ? &counters->damping_entered : &counters->damping_left) += 1;
        break;
    case GUARD_RETURN:
        *(is_on ? &counters->returns_entered : &counters->returns_left) += 1;
        break;
    case GUARD_SHADOW:
        *(is_on ? &counters->shadows_begun : &counters->shadows_ended) += 1;
        break;
    case GUARD_CORRELATED:
        *(is_on ? &counters->alarms_raised : &counters->alarms_ended) += 1;
        break;
    case GUARD_NONE:
    case GUARD_HOLD:
        break;
    }
}

void engine_set_guard(struct engine *engine, struct engine_scope *scope, enum guard_kind guard,
                      bool is_on)
{
    struct scope_guard *state = &scope->guards[guard];

    if (state->is_on == is_on) {
        return;
    }
    state->is_on = is_on;
    state->since_ns = engine->now_ns;
    engine->kept_is_old = true;
    struct event *event = engine_log(engine, EVENT_GUARD_CHANGED);
    event->guard = (uint8_t)guard;
    event->from = !is_on;
    event->to = is_on;
    memcpy(event->group, scope->name, sizeof event->group);
    count_change(&engine->counters, guard, is_on);
}

static void arm(struct engine *engine, uint32_t index)
{
    const struct engine_scope *scope = &engine->scopes[index];
    uint64_t at_ns = TIMER_NEVER;

    for (unsigned guard = GUARD_NONE + 1; guard < GUARD_KINDS; guard++) {
        uint64_t due_ns = scope->guards[guard].due_ns;

        if (due_ns != 0 && due_ns < at_ns) {
            at_ns = due_ns;
        }
    }
    timers_set(&engine->guard_timers, index, at_ns);
}

void engine_guard_due(struct engine *engine, uint32_t index, enum guard_kind guard, uint64_t at_ns)
{
    uint64_t *due_ns = &engine->scopes[index].guards[guard].due_ns;

    if (*due_ns == 0 || at_ns < *due_ns) {
        *due_ns = at_ns;
        arm(engine, index);
    }
}

static bool take_due(struct engine *engine, uint32_t index, enum guard_kind guard)
{
    uint64_t *due_ns = &engine->scopes[index].guards[guard].due_ns;

    if (*due_ns == 0 || *due_ns > engine->now_ns) {
        return false;
    }
    *due_ns = 0;
    return true;
}

void engine_mark_scope(struct engine *engine, const struct engine_scope *scope)
{
    if (plant_is("hold-end-unseen") && scope->hold_sources == 0) {
        return;
    }
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        if (engine->backends[row].is_linked) {
            id_set_add(&engine->dirty_slots, engine->backends[row].target.slot);
        }
    }
}

/* --- velocity --- */

static bool has_velocity(const struct engine_scope *scope)
{
    return scope->guard.velocity_percent > 0 && scope->n_members >= scope->guard.exempt_below &&
           !plant_is("velocity-off");
}

/* Ejections wait for one V: to be counted, or so that damping remembers the same on all nodes. */
static bool has_turns(const struct engine_scope *scope)
{
    return has_velocity(scope) || scope->guard.flap_hold_ms > 0;
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
        engine_weigh(engine, backend->target.slot, &tally);
        engine->candidates[n++] = (struct guard_candidate){
            .row = row, .n_votes = tally.n_fail, .backend_id = backend->backend_id};
    }
    return n;
}

/* Those whose turn it is are judged once more in this step, and then leave. */
static void admit_pending(struct engine *engine, uint32_t index)
{
    struct engine_scope *scope = &engine->scopes[index];
    uint64_t window_ns = scope->guard.velocity_window_ms * NS_PER_MS;
    uint32_t limit = guard_velocity_limit(scope->n_members, scope->guard.velocity_percent);
    uint32_t used = velocity_used(&scope->velocity, engine->now_ns, window_ns);
    size_t n = collect_pending(engine, scope);
    size_t n_room = !has_velocity(scope) ? n : used < limit ? limit - used : 0;

    guard_sort(engine->candidates, n);
    for (size_t i = 0; i < n && i < n_room; i++) {
        struct engine_backend *backend = &engine->backends[engine->candidates[i].row];

        backend->is_admitted = true;
        if (plant_is("velocity-counts-turns")) {
            velocity_note(&scope->velocity, engine->now_ns);
        }
        id_set_add(&engine->dirty_slots, backend->target.slot);
    }
    engine_set_guard(engine, scope, GUARD_VELOCITY, n > n_room);
    if (n > n_room) {
        uint64_t next_ns = velocity_next_ns(&scope->velocity, window_ns);

        engine_guard_due(engine, index, GUARD_VELOCITY,
                         next_ns != 0 ? next_ns : engine->now_ns + window_ns);
    }
}

/* Whoever waits does so until the window has room. */
static bool is_full(const struct engine *engine, struct engine_scope *scope)
{
    uint64_t window_ns = scope->guard.velocity_window_ms * NS_PER_MS;

    bool has_room = !has_velocity(scope) ||
                    velocity_used(&scope->velocity, engine->now_ns, window_ns) <
                        guard_velocity_limit(scope->n_members, scope->guard.velocity_percent);

    return scope->guards[GUARD_VELOCITY].is_on && (!has_room || plant_is("velocity-room-unseen"));
}

/* Votes of one moment arrive one after the other, and on each node in an order of their own: the
 * first ejection of a group waits for one V, in which all nodes come to hold the same votes. What
 * is due later may be left over from others, who wait no more, and from a longer V. */
static void wait_for_turn(struct engine *engine, struct engine_backend *backend,
                          struct verdict_answer *answer)
{
    engine_freeze(engine, backend, 0, answer);
    backend->is_pending = true;
    struct engine_scope *scope = &engine->scopes[backend->scope];

    if (scope->guards[GUARD_VELOCITY].due_ns == 0 || !is_full(engine, scope)) {
        engine_guard_due(engine, backend->scope, GUARD_VELOCITY,
                         engine->now_ns +
                             (plant_is("turn-at-once") ? 0 : engine->vote_interval_ns));
    }
}

/* Its turn is another's, or nobody waits any more: what was due later is looked at soon. */
static void forget_turn(struct engine *engine, const struct engine_backend *backend)
{
    if (engine->scopes[backend->scope].guards[GUARD_VELOCITY].due_ns != 0) {
        engine_guard_due(engine, backend->scope, GUARD_VELOCITY,
                         engine->now_ns + engine->vote_interval_ns);
    }
}

void engine_guard_forget(struct engine *engine, uint32_t row)
{
    struct engine_backend *backend = &engine->backends[row];

    if ((backend->is_pending || backend->is_admitted) && !plant_is("pending-outlives-target")) {
        backend->is_pending = backend->is_admitted = false;
        forget_turn(engine, backend);
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

/* It steers nothing: a backend that stays healthy is used as such. */
void engine_freeze(struct engine *engine, const struct engine_backend *backend, uint8_t cause,
                   struct verdict_answer *answer)
{
    engine->counters.changes_guarded++;
    answer->health_state = backend->health_state;
    answer->is_gray = backend->is_gray;
    answer->is_decided = false;
    answer->is_unreachable = false;
    answer->held_causes |= cause;
}

static void guard_ejection(struct engine *engine, struct engine_backend *backend, bool was_admitted,
                           struct verdict_answer *answer)
{
    struct engine_scope *scope = &engine->scopes[backend->scope];

    if (engine_is_held(engine, scope) && !plant_is("hold-ignored")) {
        engine_freeze(engine, backend, HELD_BY_HOLD, answer);
    } else if (engine_in_shadow(scope)) {
        engine_freeze(engine, backend, HELD_BY_SHADOW, answer);
    } else if (has_turns(scope) && !was_admitted) {
        wait_for_turn(engine, backend, answer);
    } else if (has_turns(scope)) {
        backend->return_ns = 0;
        backend->break_ns = 0;
        flap_note_ejection(&backend->flaps, engine->now_ns);
        if (!plant_is("velocity-uncounted")) {
            velocity_note(&scope->velocity, engine->now_ns);
        }
    }
}

static void guard_return(struct engine *engine, uint32_t row, bool was_admitted,
                         struct verdict_answer *answer)
{
    struct engine_backend *backend = &engine->backends[row];
    struct engine_scope *scope = &engine->scopes[backend->scope];

    if (plant_is("hold-blocks-recovery") && engine_is_held(engine, scope)) {
        engine_freeze(engine, backend, HELD_BY_HOLD, answer);
    } else if (engine_has_returns(scope) && !was_admitted) {
        engine_wait_return(engine, row, answer);
    } else {
        if (was_admitted && !plant_is("return-uncounted")) {
            velocity_note(&scope->returns, engine->now_ns);
        }
        backend->return_ns = 0;
        if (backend->bad_ns != 0) {
            engine_note_turn(engine, row);
        }
    }
}

void engine_guard_answer(struct engine *engine, uint32_t row, struct verdict_answer *answer)
{
    struct engine_backend *backend = &engine->backends[row];
    bool was_admitted = backend->is_admitted;
    bool was_returning = backend->is_returning;
    bool was_leaving = backend->is_pending;

    engine_note_bad(engine, row, answer);
    backend->is_pending = false;
    backend->is_returning = false;
    backend->is_admitted = false;
    if (is_ejection(backend, answer)) {
        guard_ejection(engine, backend, was_admitted, answer);
    } else if (is_recovery(backend, answer)) {
        guard_return(engine, row, was_admitted, answer);
    }
    if (was_leaving && !backend->is_pending && answer->health_state != HEALTH_UNHEALTHY) {
        forget_turn(engine, backend);
    }
    if (was_returning && !backend->is_returning) {
        engine_break_return(engine, row);
    }
}

/* --- a restart --- */

/* On this start's clock, which may have begun later: never earlier than it was. */
static uint64_t then_ns(const struct engine *engine, uint32_t kept_ms)
{
    uint64_t ago_ns = (kept_ms - 1 + engine->kept_age_ms) * NS_PER_MS;

    return engine->kept_at_ns > ago_ns ? engine->kept_at_ns - ago_ns : 1;
}

void engine_adopt_guards(struct engine *engine, uint32_t row, const struct kept_verdict *kept)
{
    struct engine_backend *backend = &engine->backends[row];
    struct engine_scope *scope = &engine->scopes[backend->scope];

    if (kept->ejected_ms != 0) {
        backend->flaps = (struct flap_memory){.ejected_ns = then_ns(engine, kept->ejected_ms),
                                              .n_flaps = kept->n_flaps};
        velocity_note_past(&scope->velocity, backend->flaps.ejected_ns);
    }
    if (kept->shadow_ms != 0 && !scope->guards[GUARD_SHADOW].is_on) {
        engine_begin_shadow(engine, backend->scope, then_ns(engine, kept->shadow_ms));
    }
    if (kept->bad_ms != 0) {
        backend->is_bad = true;
        backend->bad_ns = then_ns(engine, kept->bad_ms);
    }
    if (kept->alarm_ms != 0 && !scope->guards[GUARD_CORRELATED].is_on) {
        engine_adopt_alarm(engine, backend->scope, then_ns(engine, kept->alarm_ms));
    }
}

/* --- the group --- */

void engine_follow_guard_policy(struct engine *engine, uint32_t index,
                                const struct catalog_group *group)
{
    struct engine_scope *scope = &engine->scopes[index];

    if (group->spec.guard.correlated_alarm) {
        /* Those that are bad by now will not turn for it: it was off, or one comes back from a
         * drain and is a member again. */
        engine_guard_due(engine, index, GUARD_CORRELATED,
                         engine->now_ns + engine->vote_interval_ns);
    }
    scope->guard = group->spec.guard;
    scope->cycle_ms = group_cycle_ms(&group->spec);
    scope->n_members = 0;
    for (uint32_t i = 0; i < group->n_backends; i++) {
        scope->n_members += group->backends[i].life != LIFE_REMOVING &&
                            group->backends[i].spec.admin_state == ADMIN_ENABLED;
    }
    /* What has been waiting is looked at by the new policy; the caller marks the slots. */
    for (unsigned guard = GUARD_NONE + 1; guard < GUARD_KINDS; guard++) {
        if (scope->guards[guard].is_on && !plant_is("velocity-room-unseen")) {
            engine_guard_due(engine, index, (enum guard_kind)guard,
                             guard == GUARD_SHADOW ? engine->now_ns
                                                   : engine->now_ns + engine->vote_interval_ns);
        }
    }
}

void engine_run_guards(struct engine *engine, uint32_t index)
{
    bool is_ejecting = take_due(engine, index, GUARD_VELOCITY);

    if (take_due(engine, index, GUARD_HOLD)) {
        engine_tell_held_more(engine, index);
    }
    /* Returns first: where one comes for one that goes, the group is not without any between. */
    if (take_due(engine, index, GUARD_RETURN) || take_due(engine, index, GUARD_DAMPING) ||
        (is_ejecting && engine_has_returns(&engine->scopes[index]))) {
        engine_admit_returns(engine, index);
    }
    if (is_ejecting) {
        admit_pending(engine, index);
    }
    if (take_due(engine, index, GUARD_SHADOW)) {
        engine_look_shadow(engine, index);
    }
    if (take_due(engine, index, GUARD_CORRELATED)) {
        engine_look_alarm(engine, index);
    }
    arm(engine, index);
}
