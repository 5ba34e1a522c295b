/* Returns that wait: flap damping (R-FLAP-1, guard_flap.h) and the limit on returns (R-EJ-6).
 *
 * A return waits for one V, as an ejection does; for its hold time, if it is of a backend that
 * flaps; and for its turn, if more would return than a window may have. Nobody waits in a group
 * that is in fail-open or closed, or would be for lack of those that wait: they return at once.
 * After that the limit stays off for one window: the group had sent its flows to all of them, and
 * to let them return one by one would give everything to the first. */
#include "agent/core/engine_state.h"
#include "common/base/plant.h"

bool engine_has_returns(const struct engine_scope *scope)
{
    return (scope->guard.return_percent > 0 || scope->guard.flap_hold_ms > 0) &&
           !plant_is("return-at-once");
}

static bool is_bad(const struct engine_scope *scope)
{
    return scope->result.group_state == GROUP_FAIL_OPEN ||
           scope->result.group_state == GROUP_CLOSED;
}

void engine_wait_return(struct engine *engine, uint32_t row, struct verdict_answer *answer)
{
    struct engine_backend *backend = &engine->backends[row];

    engine_freeze(engine, backend, 0, answer);
    backend->is_returning = true;
    backend->is_damped =
        flap_hold_ns(&backend->flaps, engine->scopes[backend->scope].guard.flap_hold_ms,
                     engine->now_ns) > 0;
    if (backend->return_ns != 0) {
        if (is_bad(&engine->scopes[backend->scope])) { /* since a break: needed at once */
            id_set_add(&engine->dirty_scopes, backend->scope);
        }
        return;
    }
    backend->return_ns = engine->now_ns == 0 ? 1 : engine->now_ns;
    engine_guard_due(engine, backend->scope, GUARD_RETURN,
                     engine->now_ns + engine->vote_interval_ns);
    id_set_add(&engine->dirty_scopes, backend->scope); /* it may be needed at once */
}

/* Votes of one moment that arrive in another order turn once and again on one node and not on the
 * other: whether it is a break is seen one V later. */
void engine_break_return(struct engine *engine, uint32_t row)
{
    struct engine_backend *backend = &engine->backends[row];

    backend->is_damped = false;
    if (backend->health_state == HEALTH_UNHEALTHY && backend->return_ns != 0 &&
        backend->break_ns == 0 && !plant_is("damping-breaks-unseen")) {
        backend->break_ns = engine->now_ns;
    }
    engine_guard_due(engine, backend->scope, GUARD_RETURN,
                     engine->now_ns + engine->vote_interval_ns);
}

/* Returns when it is to be looked at; TIMER_NEVER. */
static uint64_t settle_break(const struct engine *engine, struct engine_backend *backend)
{
    uint64_t at_ns = backend->break_ns + engine->vote_interval_ns;

    if (backend->break_ns == 0) {
        return TIMER_NEVER;
    }
    if (at_ns > engine->now_ns) {
        return at_ns;
    }
    backend->break_ns = 0;
    if (!backend->is_returning) {
        backend->return_ns = 0;
    }
    return TIMER_NEVER;
}

static bool has_limit(const struct engine *engine, const struct engine_scope *scope)
{
    uint64_t window_ns = scope->guard.return_window_ms * NS_PER_MS;

    return scope->guard.return_percent > 0 && !is_bad(scope) &&
           (scope->well_ns == 0 || engine->now_ns >= scope->well_ns + window_ns);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Those that wait for nothing but their turn. ret_next_ns: when the others are to be looked at. */
static size_t collect_returning(struct engine *engine, const struct engine_scope *scope,
                                uint64_t *ret_next_ns, bool *ret_damped)
{
    size_t n = 0;

    *ret_next_ns = TIMER_NEVER;
    *ret_damped = false;
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        struct engine_backend *backend = &engine->backends[row];
        struct tally tally;

        *ret_next_ns = earlier(*ret_next_ns, settle_break(engine, backend));
        if (!backend->is_returning || !backend->is_linked) {
            continue;
        }
        uint64_t at_ns = flap_return_ns(&backend->flaps, scope->guard.flap_hold_ms,
                                        backend->return_ns, engine->now_ns);
        backend->is_damped = at_ns > engine->now_ns;
        if (backend->is_damped) {
            *ret_damped = true;
            /* One V later, so that all nodes find the same ones at the end of their hold. */
            *ret_next_ns = earlier(*ret_next_ns, at_ns + engine->vote_interval_ns);
            continue;
        }
        engine_weigh(engine, backend->target.slot, &tally);
        engine->candidates[n++] = (struct guard_candidate){
            .row = row, .n_votes = tally.n_pass, .backend_id = backend->backend_id};
    }
    return n;
}

/* Counted is who takes his turn: votes may say otherwise in the same step (engine_guard.c). */
static void admit(struct engine *engine, struct engine_backend *backend)
{
    backend->is_admitted = true;
    if (plant_is("return-counts-turns")) {
        velocity_note(&engine->scopes[backend->scope].returns, engine->now_ns);
    }
}

void engine_admit_returns(struct engine *engine, uint32_t index)
{
    struct engine_scope *scope = &engine->scopes[index];
    uint64_t window_ns = scope->guard.return_window_ms * NS_PER_MS;
    uint32_t limit = guard_velocity_limit(scope->n_members, scope->guard.return_percent);
    uint32_t used = velocity_used(&scope->returns, engine->now_ns, window_ns);
    uint64_t next_ns;
    bool is_damped;
    size_t n = collect_returning(engine, scope, &next_ns, &is_damped);
    size_t n_room = !has_limit(engine, scope) ? n : used < limit ? limit - used : 0;

    guard_sort(engine->candidates, n);
    for (size_t i = 0; i < n && i < n_room; i++) {
        struct engine_backend *backend = &engine->backends[engine->candidates[i].row];

        admit(engine, backend);
        id_set_add(&engine->dirty_slots, backend->target.slot);
    }
    engine_set_guard(engine, scope, GUARD_RETURN, n > n_room);
    engine_set_guard(engine, scope, GUARD_DAMPING, is_damped);
    if (n > n_room) {
        uint64_t room_ns = velocity_next_ns(&scope->returns, window_ns);

        next_ns = earlier(next_ns, room_ns != 0 ? room_ns : engine->now_ns + window_ns);
    }
    if (next_ns != TIMER_NEVER) {
        engine_guard_due(engine, index, GUARD_RETURN, next_ns);
    }
}

bool engine_release_returns(struct engine *engine, uint32_t index, struct engine_actions *actions)
{
    struct engine_scope *scope = &engine->scopes[index];
    bool any = false;

    if (plant_is("return-limit-in-fail-open")) {
        return false;
    }
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        struct engine_backend *backend = &engine->backends[row];

        if (backend->is_returning && backend->is_linked) {
            any = true;
            admit(engine, backend);
            engine_judge_slot(engine, backend->target.slot, actions);
        }
    }
    engine_set_guard(engine, scope, GUARD_RETURN, false);
    engine_set_guard(engine, scope, GUARD_DAMPING, false);
    return any;
}
