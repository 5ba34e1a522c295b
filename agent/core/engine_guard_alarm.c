/* The correlated-failure alarm (R-EJ-5): many of a group that go bad within one failure window have
 * one cause rather than many, and it may be the network, the check or what all of them need. It
 * says so, and changes no verdict.
 *
 * What is counted is what the votes say and not what the other guards let through: the alarm is
 * raised under hold, too. It ends when no longer that many are bad, however long ago they went. */
#include "agent/core/engine_state.h"
#include "common/base/plant.h"

/* Simultaneous failures are seen up to an interval and a vote apart, and with a threshold of 1 the
 * failure window can be shorter than that: two intervals at least. */
static uint64_t window_ns(const struct engine *engine, const struct engine_scope *scope)
{
    uint64_t ms = scope->failure_window_ms;

    if (ms < UINT64_C(2) * scope->interval_ms) {
        ms = UINT64_C(2) * scope->interval_ms;
    }
    return ms * NS_PER_MS + engine->vote_interval_ns;
}

/* Votes of one moment may turn once and again on their way: one that is well for less than one V
 * has not gone bad anew. */
void engine_note_bad(struct engine *engine, uint32_t row, const struct verdict_answer *answer)
{
    struct engine_backend *backend = &engine->backends[row];
    bool was_bad = backend->is_bad;

    /* At a start nobody has voted yet, and what was bad is not well for that. */
    if (!answer->is_decided && (backend->held_causes & HELD_LAST_KNOWN_GOOD) != 0) {
        return;
    }
    if (answer->health_state == HEALTH_HEALTHY) {
        backend->is_bad = false;
    } else if (answer->health_state == HEALTH_UNHEALTHY) {
        if (backend->bad_ns == 0 && backend->health_state == HEALTH_HEALTHY) {
            backend->bad_ns = engine->now_ns == 0 ? 1 : engine->now_ns;
        }
        backend->is_bad = backend->bad_ns != 0;
    }
    if (was_bad != backend->is_bad) {
        engine_note_turn(engine, row);
    }
}

void engine_note_turn(struct engine *engine, uint32_t row)
{
    struct engine_backend *backend = &engine->backends[row];

    backend->turned_ns = engine->now_ns;
    engine->kept_is_old = true;
    engine_guard_due(engine, backend->scope, GUARD_CORRELATED,
                     engine->now_ns + engine->vote_interval_ns);
    if (engine->scopes[backend->scope].shadow_is_kept) {
        engine_guard_due(engine, backend->scope, GUARD_SHADOW,
                         engine->now_ns + engine->vote_interval_ns);
    }
}

/* Returns when the next of those that are well may be forgotten; TIMER_NEVER. */
static uint64_t forget_well(struct engine *engine, const struct engine_scope *scope)
{
    uint64_t next_ns = TIMER_NEVER;

    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        struct engine_backend *backend = &engine->backends[row];
        uint64_t at_ns = backend->turned_ns + engine->vote_interval_ns;

        if (backend->is_bad || backend->bad_ns == 0 || backend->health_state == HEALTH_UNHEALTHY) {
            continue;
        }
        if (at_ns <= engine->now_ns) {
            backend->bad_ns = 0;
        } else if (at_ns < next_ns) {
            next_ns = at_ns;
        }
    }
    return next_ns;
}

bool engine_is_member(const struct engine_backend *backend)
{
    return backend->is_linked && backend->life != LIFE_REMOVING &&
           backend->admin_state == ADMIN_ENABLED;
}

bool engine_counts_as_bad(const struct engine_backend *backend)
{
    return backend->is_bad && engine_is_member(backend);
}

uint32_t engine_n_bad(const struct engine *engine, const struct engine_scope *scope)
{
    uint32_t n = 0;

    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        n += engine_counts_as_bad(&engine->backends[row]);
    }
    return n;
}

/* Of those that are bad, how many went within one window of the last. */
static uint32_t count_recent(const struct engine *engine, const struct engine_scope *scope)
{
    uint64_t newest_ns = 0;
    uint32_t n = 0;

    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        const struct engine_backend *backend = &engine->backends[row];

        if (engine_counts_as_bad(backend) && backend->bad_ns > newest_ns) {
            newest_ns = backend->bad_ns;
        }
    }
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        const struct engine_backend *backend = &engine->backends[row];

        n +=
            engine_counts_as_bad(backend) &&
            (backend->bad_ns + window_ns(engine, scope) >= newest_ns || plant_is("alarm-any-time"));
    }
    return n;
}

/* It goes on, and is no news. */
void engine_adopt_alarm(struct engine *engine, uint32_t index, uint64_t since_ns)
{
    struct engine_scope *scope = &engine->scopes[index];

    if (scope->guard.correlated_alarm && !plant_is("alarm-anew")) {
        scope->guards[GUARD_CORRELATED].is_on = true;
        scope->guards[GUARD_CORRELATED].since_ns = since_ns;
        engine_guard_due(engine, index, GUARD_CORRELATED,
                         engine->now_ns + engine->vote_interval_ns);
    }
}

void engine_look_alarm(struct engine *engine, uint32_t index)
{
    struct engine_scope *scope = &engine->scopes[index];
    bool is_on = scope->guards[GUARD_CORRELATED].is_on;
    uint64_t next_ns = forget_well(engine, scope);
    uint32_t n = is_on ? engine_n_bad(engine, scope) : count_recent(engine, scope);

    engine_set_guard(engine, scope, GUARD_CORRELATED,
                     scope->guard.correlated_alarm && guard_is_correlated(n, scope->n_members) &&
                         !plant_is("alarm-off"));
    if (next_ns != TIMER_NEVER) {
        engine_guard_due(engine, index, GUARD_CORRELATED, next_ns);
    }
}
