#include "tests/lib/engine_lines.h"

#include "agent/core/engine_state.h"

static void view_line(const struct engine *engine, const struct catalog_backend *from,
                      struct backend_line *line)
{
    const struct engine_backend *backend = &engine->backends[from->row.row];
    const struct engine_row *row = &engine->rows[from->row.row];
    struct tally tally = {.n_observers = observers_n(&engine->observers)};

    if (backend->is_linked) {
        engine_tally(engine, backend->target.slot, &tally);
    }
    *line = (struct backend_line){
        .at = from->spec.at,
        .backend_id = from->id,
        .weight = from->spec.weight,
        .admin_state = from->spec.admin_state,
        .life = from->life,
        .health_state = backend->health_state,
        .marks = engine_marks(engine, backend),
        .row_class = row->has_word ? row->row_class : ROW_NONE,
        .is_unreachable = backend->is_unreachable,
        .n_fail = tally.n_fail,
        .n_pass = tally.n_pass,
        .n_counted = tally_counted(&tally),
        .n_observers = tally.n_observers,
        .reason = backend->reason,
    };
}

size_t engine_view_lines(const struct engine *engine, const char *name, struct backend_line lines[],
                         size_t capacity)
{
    const struct catalog_group *group =
        engine->catalog == NULL ? NULL : catalog_group_find(engine->catalog, name);
    size_t n = 0;

    for (size_t i = 0; group != NULL && i < group->n_backends && n < capacity; i++) {
        view_line(engine, &group->backends[i], &lines[n++]);
    }
    return n;
}

struct scope_line engine_view_scope_line(const struct engine *engine, struct row_id id)
{
    struct scope_line line = {0};
    uint32_t index = engine->rows[id.row].scope;

    if (index == NO_SCOPE || engine->scopes[index].row.birth != id.birth) {
        return line;
    }
    const struct engine_scope *scope = &engine->scopes[index];
    for (unsigned guard = GUARD_NONE + 1; guard < GUARD_KINDS; guard++) {
        line.guards_on |= (uint32_t)scope->guards[guard].is_on << guard;
    }
    line.shadow_is_kept = scope->shadow_is_kept;
    return line;
}

uint64_t engine_view_n_alarms(const struct engine *engine)
{
    return engine->counters.alarms_raised;
}
