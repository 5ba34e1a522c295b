/* Which guards are at work on a group, each in one sentence (engine_view.h). */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/engine_state.h"

static bool counts_for(const struct engine_backend *backend, enum guard_kind guard)
{
    switch (guard) {
    case GUARD_HOLD:
        return (backend->held_causes & HELD_BY_HOLD) != 0;
    case GUARD_VELOCITY:
        return backend->is_pending;
    case GUARD_DAMPING:
        return backend->is_returning && backend->is_damped;
    case GUARD_RETURN:
        return backend->is_returning && !backend->is_damped;
    case GUARD_SHADOW:
        return (backend->held_causes & HELD_BY_SHADOW) != 0;
    case GUARD_CORRELATED:
        return engine_counts_as_bad(backend);
    case GUARD_NONE:
        break;
    }
    return false;
}

static void say_hold(const struct engine *engine, const struct engine_scope *scope,
                     struct guard_view *view)
{
    struct hold_view holds[4];
    size_t n = engine_view_holds(engine, "", holds);

    n += engine_view_holds(engine, scope->name, holds + n);
    assert(n > 0);
    snprintf(view->sentence, sizeof view->sentence,
             "hold is on (%s%s%.128s%s): %u %s in service against the votes",
             hold_source_word(holds[0].source), holds[0].by.actor[0] != '\0' ? ", by " : "",
             holds[0].by.actor, n > 1 ? ", and more" : "", view->n_backends,
             view->n_backends == 1 ? "backend stays" : "backends stay");
}

static void say_shadow(const struct engine *engine, const struct engine_scope *scope,
                       struct guard_view *view)
{
    uint32_t n = engine_n_bad(engine, scope);
    char window[32];

    if (scope->shadow_is_kept) {
        snprintf(view->sentence, sizeof view->sentence,
                 "shadow of the changed check is kept beyond its %u cycles: it would take out %u, "
                 "more than %u, and takes out none; nodectl apply -f FILE accepts it with guard: "
                 "{shadowCycles: 0}, and reverts it with the check as it was",
                 scope->guard.shadow_cycles, n, engine_shadow_limit(scope));
        return;
    }
    snprintf(view->sentence, sizeof view->sentence,
             "shadow of the changed check (%u cycles of %s): it would take out %u",
             scope->guard.shadow_cycles,
             units_format_duration_ms(scope->cycle_ms, window, sizeof window), n);
}

static void say_guard(const struct engine *engine, const struct engine_scope *scope,
                      struct guard_view *view)
{
    char window[32];

    switch ((enum guard_kind)view->guard) {
    case GUARD_HOLD:
        say_hold(engine, scope, view);
        break;
    case GUARD_VELOCITY:
        snprintf(view->sentence, sizeof view->sentence,
                 "velocity limit (%u in %s): %u pending, in service against the votes",
                 guard_velocity_limit(scope->n_members, scope->guard.velocity_percent),
                 units_format_duration_ms(scope->guard.velocity_window_ms, window, sizeof window),
                 view->n_backends);
        break;
    case GUARD_DAMPING:
        snprintf(view->sentence, sizeof view->sentence,
                 "flap damping: %u %s kept from returning by going down again and again",
                 view->n_backends, view->n_backends == 1 ? "is" : "are");
        break;
    case GUARD_RETURN:
        snprintf(view->sentence, sizeof view->sentence,
                 "limit on returns (%u in %s): %u pending, out of service against the votes",
                 guard_velocity_limit(scope->n_members, scope->guard.return_percent),
                 units_format_duration_ms(scope->guard.return_window_ms, window, sizeof window),
                 view->n_backends);
        break;
    case GUARD_SHADOW:
        say_shadow(engine, scope, view);
        break;
    case GUARD_CORRELATED:
        snprintf(view->sentence, sizeof view->sentence,
                 "ALARM: %u of %u backends went bad at once (over 30 %% within a failure window): "
                 "look for one cause - network, check, or what they all need",
                 view->n_backends, scope->n_members);
        break;
    case GUARD_NONE:
        break;
    }
}

/* Since when, or 0 when it is not at work. */
static uint64_t guard_since_ns(const struct engine *engine, const struct engine_scope *scope,
                               enum guard_kind guard)
{
    if (guard == GUARD_HOLD) {
        return engine_hold_since_ns(engine, scope);
    }
    return scope->guards[guard].is_on ? scope->guards[guard].since_ns : 0;
}

void engine_view_guards(const struct engine *engine, const struct engine_scope *scope,
                        uint64_t now_ns, struct group_view *group)
{
    for (unsigned guard = GUARD_NONE + 1; guard < GUARD_KINDS; guard++) {
        uint64_t since_ns = guard_since_ns(engine, scope, (enum guard_kind)guard);

        if (since_ns == 0) {
            continue;
        }
        struct guard_view *view = &group->guards[group->n_guards++];
        view->guard = (uint8_t)guard;
        view->since_ns = now_ns > since_ns ? now_ns - since_ns : 0;
        for (uint32_t row = scope->first_row; row != NO_ROW;
             row = engine->backends[row].next_in_scope) {
            view->n_backends += counts_for(&engine->backends[row], (enum guard_kind)guard);
        }
        say_guard(engine, scope, view);
    }
}

uint32_t engine_n_guarded(const struct engine *engine, unsigned guard,
                          char name[LIMIT_NAME_BYTES + 1])
{
    uint32_t n = 0;

    name[0] = '\0';
    for (uint32_t i = 0; i < engine->n_scopes; i++) {
        const struct engine_scope *scope = &engine->scopes[i];

        if (scope->row.birth == 0 || guard_since_ns(engine, scope, (enum guard_kind)guard) == 0 ||
            (guard == GUARD_SHADOW && !scope->shadow_is_kept)) {
            continue;
        }
        if (n++ == 0) {
            memcpy(name, scope->name, sizeof scope->name);
        }
    }
    return n;
}
