/* Views of the hold switch: which holds are on, and what they keep. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/core/engine_state.h"
#include "agent/core/engine_view.h"

static size_t add_hold(struct hold_view holds[], size_t n, unsigned sources,
                       enum hold_source source, const struct hold_origin *by)
{
    if ((sources & source) == 0) {
        return n;
    }
    holds[n] = (struct hold_view){.source = (uint8_t)source, .by = *by};
    return n + 1;
}

size_t engine_view_holds(const struct engine *engine, const char *name, struct hold_view holds[2])
{
    const struct catalog_group *group =
        engine->catalog == NULL ? NULL : catalog_group_find(engine->catalog, name);
    size_t n = 0;

    if (name[0] == '\0') {
        n = add_hold(holds, n, engine->hold_sources, HOLD_BY_CLUSTER, &engine->held_by_cluster);
        return add_hold(holds, n, engine->hold_sources, HOLD_BY_NODE, &engine->held_by_node);
    }
    if (group != NULL) {
        const struct engine_scope *scope = &engine->scopes[engine->rows[group->row.row].scope];

        n = add_hold(holds, n, scope->hold_sources, HOLD_BY_GROUP, &scope->held_by_group);
        n = add_hold(holds, n, scope->hold_sources, HOLD_BY_NODE_GROUP, &scope->held_by_node);
    }
    return n;
}

uint32_t engine_n_held_by_hold(const struct engine *engine)
{
    uint32_t n = 0;

    for (uint32_t row = 0; row < engine->n_rows; row++) {
        n += (engine->backends[row].held_causes & HELD_BY_HOLD) != 0;
    }
    return n;
}

void engine_say_holds(const struct engine *engine, char text[HOLD_TEXT_BYTES])
{
    struct hold_view holds[2];
    size_t n = engine_view_holds(engine, "", holds);
    size_t n_groups = 0;
    const char *name = "every group";

    for (size_t i = 0; engine->catalog != NULL && i < catalog_n_groups(engine->catalog); i++) {
        const char *group = catalog_group_at(engine->catalog, i)->spec.name;
        struct hold_view found[2];
        size_t n_found = engine_view_holds(engine, group, found);

        if (n == 0 && n_groups == 0 && n_found > 0) {
            holds[0] = found[0];
            name = group;
        }
        n_groups += n_found > 0;
    }
    text[0] = '\0';
    if (n == 0 && n_groups == 0) {
        return;
    }
    size_t n_more = n == 0 ? n_groups - 1 : n_groups;
    int used = snprintf(text, HOLD_TEXT_BYTES, "hold is on for %.128s (%s%s%.128s)", name,
                        hold_source_word(holds[0].source),
                        holds[0].by.actor[0] != '\0' ? ", by " : "", holds[0].by.actor);
    if (n_more > 0) {
        snprintf(text + used, HOLD_TEXT_BYTES - (size_t)used, " and for %zu %s of its own", n_more,
                 n_more == 1 ? "group" : "groups");
    }
}
