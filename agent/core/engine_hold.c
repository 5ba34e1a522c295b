/* The hold switch: it freezes ejections, replicated or this node's own; recoveries apply (spec.md
 * 5). What it does to an answer is in engine_guard.c. */
#include "agent/core/engine_state.h"
#include "agent/core/engine_view.h"
#include "common/base/plant.h"
#include "common/base/str.h"

bool engine_is_held(const struct engine *engine, const struct engine_scope *scope)
{
    if (plant_is("hold-of-group-ignored")) {
        return engine->hold_sources != 0;
    }
    if (plant_is("hold-of-node-ignored")) {
        return ((engine->hold_sources | scope->hold_sources) &
                ~(unsigned)(HOLD_BY_NODE | HOLD_BY_NODE_GROUP)) != 0;
    }
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

/* The first of a group is told by name and at once; those that follow within a V, together: of a
 * mass failure under hold the log would else forget the verdicts before it. */
bool engine_held_is_news(struct engine *engine, uint32_t row)
{
    const struct engine_backend *backend = &engine->backends[row];
    struct engine_scope *scope = &engine->scopes[backend->scope];

    if (engine->now_ns >= scope->held_more_ns || plant_is("held-one-by-one")) {
        scope->held_more_ns = engine->now_ns + engine->vote_interval_ns;
        return true;
    }
    scope->n_held_more[(backend->held_causes & HELD_BY_HOLD) != 0]++;
    engine_guard_due(engine, backend->scope, GUARD_HOLD, scope->held_more_ns);
    return false;
}

void engine_tell_held(struct engine *engine, const struct engine_scope *scope, bool is_held,
                      struct event *event)
{
    struct hold_view holds[4];
    size_t n = engine_view_holds(engine, "", holds);

    n += engine_view_holds(engine, scope->name, holds + n);
    event->guard = GUARD_HOLD;
    event->to = is_held;
    event->from = !is_held;
    if (is_held && n > 0) {
        event->hold_source = holds[0].source;
        str_copy(event->actor, sizeof event->actor, holds[0].by.actor);
    }
}

void engine_tell_held_more(struct engine *engine, uint32_t index)
{
    struct engine_scope *scope = &engine->scopes[index];

    for (unsigned is_held = 0; is_held < 2; is_held++) {
        if (scope->n_held_more[is_held] == 0) {
            continue;
        }
        struct event *event = engine_log(engine, EVENT_HELD_CHANGED);

        str_copy(event->group, sizeof event->group, scope->name);
        event->n_backends = scope->n_held_more[is_held];
        engine_tell_held(engine, scope, is_held != 0, event);
        scope->n_held_more[is_held] = 0;
    }
    scope->held_more_ns = engine->now_ns + engine->vote_interval_ns;
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
        engine_mark_scope(engine, scope);
    } else {
        engine_mark_all(engine);
    }
}
