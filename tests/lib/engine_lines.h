/* What a judge asks of a whole group after each step: the few figures of a backend, cheaper than
 * engine_view_backend. */
#ifndef JURY_TESTS_ENGINE_LINES_H
#define JURY_TESTS_ENGINE_LINES_H

#include "agent/core/engine_view.h"

/* One line a backend, in the catalog's order. */
struct backend_line {
    struct endpoint at;
    uint64_t backend_id;
    uint8_t weight, admin_state, life, health_state, marks, row_class;
    bool is_unreachable;
    uint8_t n_fail, n_pass, n_counted, n_observers;
    uint8_t reason;
};
size_t engine_view_lines(const struct engine *engine, const char *group,
                         struct backend_line lines[], size_t capacity);

/* Of the group itself. */
struct scope_line {
    uint32_t guards_on; /* bits 1 << enum guard_kind; GUARD_HOLD is never among them */
    bool shadow_is_kept;
};
/* Zero when it is not there. */
struct scope_line engine_view_scope_line(const struct engine *engine, struct row_id scope);
/* Raised in all groups, since the start. */
uint64_t engine_view_n_alarms(const struct engine *engine);

#endif
