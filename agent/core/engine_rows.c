/* Rows of backends: what a changed catalog entry makes of a row, its target and its verdict. */
#include <assert.h>
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"
#include "common/base/str.h"

void engine_unlink_user(struct engine *engine, uint32_t row)
{
    struct engine_backend *backend = &engine->backends[row];

    if (!backend->is_linked) {
        return;
    }
    if (backend->previous_user != NO_ROW) {
        engine->backends[backend->previous_user].next_user = backend->next_user;
    } else {
        engine->targets[backend->target.slot].first_row = backend->next_user;
    }
    if (backend->next_user != NO_ROW) {
        engine->backends[backend->next_user].previous_user = backend->previous_user;
    }
    backend->is_linked = false;
    engine_guard_forget(engine, row);
}

static void link_user(struct engine *engine, uint32_t row)
{
    struct engine_backend *backend = &engine->backends[row];
    struct engine_target *target = &engine->targets[backend->target.slot];

    assert(!backend->is_linked && target->birth == backend->target.birth);
    backend->previous_user = NO_ROW;
    backend->next_user = target->first_row;
    if (target->first_row != NO_ROW) {
        engine->backends[target->first_row].previous_user = row;
    }
    target->first_row = row;
    target->is_noted = false; /* the scope may be new */
    backend->is_linked = true;
}

static void set_state(struct engine *engine, struct engine_backend *backend,
                      enum health_state state)
{
    uint8_t before = backend->health_state;

    if (before == state) {
        return;
    }
    backend->health_state = (uint8_t)state;
    backend->since_ns = (int64_t)engine->now_ns;
    if (before != HEALTH_NONE) {
        struct event *event = engine_log(engine, EVENT_VERDICT_CHANGED);

        event->from = before;
        event->to = (uint8_t)state;
        event->backend = backend->at;
        memcpy(event->group, engine->scopes[backend->scope].name, sizeof event->group);
        engine_keep_row(
            engine, (uint32_t)(backend - engine->backends),
            &(struct row_note){.kind = HISTORY_VERDICT, .from = before, .to = (uint8_t)state});
    }
}

static void begin_initial(struct engine *engine, uint32_t row)
{
    struct engine_backend *backend = &engine->backends[row];

    backend->initial_ns = engine->now_ns;
    timers_set(&engine->row_timers, row, engine_initial_end_ns(engine, backend));
}

static const struct kept_verdict *find_kept(const struct engine *engine, uint32_t row)
{
    const struct engine_backend *backend = &engine->backends[row];

    if (engine->replay != NULL) {
        return replay_kept(engine->replay, row);
    }
    const struct catalog_target *target = catalog_target_at(engine->catalog, backend->target.slot);
    return engine_find_kept(engine, row, backend->birth, target->definition_hash);
}

static bool adopt_kept(struct engine *engine, uint32_t row)
{
    struct engine_backend *backend = &engine->backends[row];
    const struct kept_verdict *kept = find_kept(engine, row);

    if (kept == NULL || plant_is("kept-ignored")) {
        return false;
    }
    uint64_t since_ms = kept->since_ms + engine->kept_age_ms;
    set_state(engine, backend, (enum health_state)kept->health_state);
    backend->since_ns = (int64_t)engine->kept_at_ns - (int64_t)(since_ms * NS_PER_MS);
    backend->held_causes = HELD_LAST_KNOWN_GOOD;
    backend->was_judged = true;
    backend->reason = kept->reason;
    backend->http_status = kept->http_status;
    engine_keep_row(engine, row,
                    &(struct row_note){.kind = HISTORY_KEPT, .to = kept->health_state});
    if (!plant_is("guards-forget")) {
        engine_adopt_guards(engine, row, kept);
    }
    return true;
}

/* What a changed row makes of its verdict. changed: its target is another one than before. */
static void follow_state(struct engine *engine, uint32_t row, bool is_new, bool changed)
{
    struct engine_backend *backend = &engine->backends[row];

    if (backend->target.slot == CATALOG_NO_SLOT) {
        backend->held_causes = 0;
        backend->is_returning = false;
        backend->return_ns = 0;
        backend->break_ns = 0;
        backend->is_bad = false;
        backend->bad_ns = 0;
        backend->is_gray = false;
        backend->is_unreachable = false;
        timers_clear(&engine->row_timers, row);
        set_state(engine, backend,
                  backend->admin_state == ADMIN_MAINTENANCE ? HEALTH_UNUSED : HEALTH_UNAVAILABLE);
        return;
    }
    switch ((enum health_state)backend->health_state) {
    case HEALTH_NONE:
    case HEALTH_UNUSED:
        backend->joined_ns = engine->now_ns;
        if (!is_new || !adopt_kept(engine, row)) {
            set_state(engine, backend, HEALTH_INITIAL);
            begin_initial(engine, row);
        }
        break;
    case HEALTH_UNAVAILABLE:
        /* It was used as healthy; switching checks on is a changed check. */
        set_state(engine, backend, HEALTH_HEALTHY);
        backend->held_causes = HELD_CHECK_CHANGED;
        engine_begin_shadow(engine, backend->scope, engine->now_ns);
        break;
    case HEALTH_INITIAL:
        if (changed) {
            begin_initial(engine, row);
            engine_keep_row(engine, row,
                            &(struct row_note){.kind = HISTORY_VERDICT,
                                               .from = HEALTH_INITIAL,
                                               .to = HEALTH_INITIAL});
        }
        break;
    case HEALTH_HEALTHY:
    case HEALTH_UNHEALTHY:
        if (changed && plant_is("check-forgets")) {
            set_state(engine, backend, HEALTH_INITIAL);
            begin_initial(engine, row);
        } else if (changed) {
            backend->held_causes |= HELD_CHECK_CHANGED;
            backend->is_gray = false;
            backend->is_unreachable = false;
            backend->is_bad = false; /* by the check before */
            backend->bad_ns = 0;
            engine_begin_shadow(engine, backend->scope, engine->now_ns);
        }
        break;
    }
}

static void tell_admin(struct engine *engine, const struct engine_backend *backend,
                       uint8_t admin_state)
{
    struct event *event = engine_log(engine, EVENT_ADMIN_CHANGED);

    event->from = backend->admin_state;
    event->to = admin_state;
    event->backend = backend->at;
    memcpy(event->group, engine->scopes[backend->scope].name, sizeof event->group);
    str_copy(event->actor, sizeof event->actor, engine->change_actor);
}

void engine_update_row(struct engine *engine, uint32_t scope, const struct catalog_group *group,
                       const struct catalog_backend *from)
{
    uint32_t row = from->row.row;
    struct engine_backend *backend = &engine->backends[row];
    bool is_new = backend->birth != from->row.birth;

    if (is_new) {
        assert(backend->birth == 0);
        *backend =
            (struct engine_backend){.birth = from->row.birth, .target = {.slot = CATALOG_NO_SLOT}};
        if (engine->history != NULL) {
            history_reset_row(engine->history, from->row, engine->now_ns);
        }
    }
    bool changed =
        backend->target.slot != from->target.slot || backend->target.birth != from->target.birth;
    if (changed) {
        engine_unlink_user(engine, row);
        backend->target = from->target;
    }
    if (!backend->is_linked && from->target.slot != CATALOG_NO_SLOT) {
        link_user(engine, row);
        id_set_add(&engine->dirty_slots, from->target.slot);
    }
    if (!is_new && backend->drain_revision != from->drain_revision) {
        engine_leave_drain(engine, row);
    }
    backend->backend_id = from->id;
    backend->at = from->spec.at;
    backend->scope = scope;
    backend->weight = from->spec.weight;
    if (!is_new && backend->admin_state != from->spec.admin_state) {
        tell_admin(engine, backend, from->spec.admin_state);
    }
    backend->admin_state = from->spec.admin_state;
    backend->life = from->life;
    backend->drain_revision = from->drain_revision;
    backend->drain_timeout_ms = from->drain_timeout_ms;
    engine_follow_parts(engine, row, group, from);
    follow_state(engine, row, is_new, changed);
    if (engine->replay == NULL) {
        engine_follow_drain(engine, row);
    }
}

void engine_free_row(struct engine *engine, uint32_t row)
{
    engine_unlink_user(engine, row);
    engine_free_dependencies(engine, row);
    timers_clear(&engine->row_timers, row);
    engine_leave_drain(engine, row);
    drains_drop(&engine->drains, row);
    engine_forget_weight(engine, row);
    id_set_remove(&engine->waiting_drains, row);
    engine->backends[row] = (struct engine_backend){0};
    id_set_add(&engine->freed_rows, row);
}
