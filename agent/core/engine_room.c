/* Room for a catalog, made before anything of it is taken up, so that a lack of memory refuses it
 * as a whole. Grows by a 32nd at least and never shrinks. */
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/err.h"
#include "common/base/spare.h"

static int grow(void **array, size_t item_bytes, uint32_t n_before, uint32_t n_after)
{
    uint8_t *grown = realloc(*array, n_after * item_bytes);

    if (grown == NULL) {
        return ERR_NOMEM;
    }
    memset(grown + n_before * item_bytes, 0, (n_after - n_before) * item_bytes);
    *array = grown;
    return 0;
}

/* Of one scope at a time. */
static int reserve_scratch(struct engine *engine, uint32_t n_before, uint32_t n_rows)
{
    uint32_t before = n_before < LIMIT_GROUP_ROWS ? n_before : LIMIT_GROUP_ROWS;
    uint32_t n = n_rows < LIMIT_GROUP_ROWS ? n_rows : LIMIT_GROUP_ROWS;

    if (n == before) {
        return 0;
    }
    return grow((void **)&engine->candidates, sizeof *engine->candidates, before, n) != 0 ||
                   grow((void **)&engine->members, sizeof *engine->members, before, n) != 0 ||
                   grow((void **)&engine->classes, sizeof *engine->classes, before, n) != 0
               ? ERR_NOMEM
               : 0;
}

static int reserve_slots(struct engine *engine, uint32_t n_slots)
{
    if (n_slots <= engine->n_slots) {
        return 0;
    }
    n_slots = spare_round_up(n_slots);
    if ((engine->history != NULL && history_reserve(engine->history, n_slots, 0) != 0) ||
        votes_reserve(engine->votes, n_slots) != 0 ||
        id_set_reserve(&engine->dirty_slots, n_slots) != 0 ||
        timers_reserve(&engine->opinion_timers, n_slots) != 0 ||

        grow((void **)&engine->targets, sizeof *engine->targets, engine->n_slots, n_slots) != 0) {
        return ERR_NOMEM;
    }
    engine->n_slots = n_slots;
    return 0;
}

/* Only with a check that shares its probes: no others pay for it. */
static int reserve_shares(struct engine *engine, uint32_t n_slots)
{
    if (n_slots <= engine->n_shares) {
        return 0;
    }
    n_slots = spare_round_up(n_slots);
    if (timers_reserve(&engine->share_timers, n_slots) != 0 ||
        id_set_reserve(&engine->orders_due, n_slots) != 0 ||
        grow((void **)&engine->shares, sizeof *engine->shares, engine->n_shares, n_slots) != 0) {
        return ERR_NOMEM;
    }
    engine->n_shares = n_slots;
    return 0;
}

/* Only with a list of checks: likewise. */
static int reserve_parts(struct engine *engine, uint32_t n_slots)
{
    if (n_slots <= engine->n_parts) {
        return 0;
    }
    n_slots = spare_round_up(n_slots);
    if (id_set_reserve(&engine->uncomposed, n_slots) != 0 ||
        grow((void **)&engine->parts, sizeof *engine->parts, engine->n_parts, n_slots) != 0) {
        return ERR_NOMEM;
    }
    engine->n_parts = n_slots;
    return 0;
}

static int reserve_dependencies(struct engine *engine, uint32_t n_rows)
{
    if (n_rows <= engine->n_dependencies) {
        return 0;
    }
    n_rows = spare_round_up(n_rows);
    if (grow((void **)&engine->dependencies, sizeof *engine->dependencies, engine->n_dependencies,
             n_rows) != 0) {
        return ERR_NOMEM;
    }
    engine->n_dependencies = n_rows;
    return 0;
}

static bool has_list(const struct catalog *catalog)
{
    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        if (catalog_group_at(catalog, i)->parts != NULL) {
            return true;
        }
    }
    return false;
}

static bool has_shared_check(const struct catalog *catalog)
{
    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        if (check_is_shared(&catalog_group_at(catalog, i)->spec.check)) {
            return true;
        }
    }
    return false;
}

/* Only with a group that weighs. After rows and scopes: as many as these. */
static int reserve_weights(struct engine *engine, bool has_weights)
{
    if (!has_weights) {
        return 0;
    }
    if (timers_reserve(&engine->weight_timers, engine->n_scopes) != 0) {
        return ERR_NOMEM;
    }
    if (engine->n_rows > engine->n_weights) {
        if (grow((void **)&engine->weights, sizeof *engine->weights, engine->n_weights,
                 engine->n_rows) != 0) {
            return ERR_NOMEM;
        }
        engine->n_weights = engine->n_rows;
    }
    return 0;
}

/* Only with a group that compares response times. */
static int reserve_latencies(struct engine *engine, uint32_t n_slots)
{
    uint32_t before = engine->n_latencies;

    if (n_slots <= before) {
        return 0;
    }
    n_slots = spare_round_up(n_slots);
    uint32_t n_before = before < LIMIT_GROUP_ROWS ? before : LIMIT_GROUP_ROWS;
    uint32_t n = n_slots < LIMIT_GROUP_ROWS ? n_slots : LIMIT_GROUP_ROWS;
    if ((n > n_before && grow((void **)&engine->response_times, sizeof *engine->response_times,
                              n_before, n) != 0) ||
        grow((void **)&engine->latencies, sizeof *engine->latencies, before, n_slots) != 0) {
        return ERR_NOMEM;
    }
    engine->n_latencies = n_slots;
    return 0;
}

static void look_for_weighing(const struct catalog *catalog, struct engine_room *room)
{
    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        const struct server_group *spec = &catalog_group_at(catalog, i)->spec;

        room->has_weights |= engine_has_weighing(spec);
        if (spec->graded_weight == GRADED_BY_LATENCY) {
            room->n_latencies = catalog_n_slots(catalog);
        }
    }
}

static int reserve_rows(struct engine *engine, uint32_t n_rows)
{
    uint32_t before = engine->n_rows;

    if (n_rows <= before) {
        return 0;
    }
    n_rows = spare_round_up(n_rows);
    if ((engine->history != NULL && history_reserve(engine->history, 0, n_rows) != 0) ||
        id_set_reserve(&engine->freed_rows, n_rows) != 0 ||
        id_set_reserve(&engine->waiting_drains, n_rows) != 0 ||
        timers_reserve(&engine->row_timers, n_rows) != 0 ||
        drains_reserve(&engine->drains, n_rows) != 0 ||
        reserve_scratch(engine, before, n_rows) != 0 ||
        grow((void **)&engine->backends, sizeof *engine->backends, before, n_rows) != 0 ||
        grow((void **)&engine->rows, sizeof *engine->rows, before, n_rows) != 0) {
        return ERR_NOMEM;
    }
    for (uint32_t row = before; row < n_rows; row++) {
        engine->rows[row].scope = NO_SCOPE;
    }
    engine->n_rows = n_rows;
    return 0;
}

static int reserve_scopes(struct engine *engine, uint32_t n_scopes)
{
    uint32_t before = engine->n_scopes;

    if (n_scopes <= before) {
        return 0;
    }
    n_scopes = spare_round_up(n_scopes);
    if (id_set_reserve(&engine->dirty_scopes, n_scopes) != 0 ||
        timers_reserve(&engine->guard_timers, n_scopes) != 0 ||
        grow((void **)&engine->scopes, sizeof *engine->scopes, before, n_scopes) != 0) {
        return ERR_NOMEM;
    }
    for (uint32_t i = n_scopes; i-- > before;) {
        engine->scopes[i].first_row = engine->free_scope;
        engine->free_scope = i;
    }
    engine->n_scopes = n_scopes;
    return 0;
}

static int reserve_actions(const struct engine *engine, struct engine_actions *actions)
{
    uint32_t n_probes = 3 * engine->n_slots;

    if (actions->probes_capacity < n_probes) {
        /* Not wiped, and given back with the next step: only what is used becomes memory. */
        free(actions->probes);
        actions->probes = malloc(n_probes * sizeof *actions->probes);
        actions->probes_capacity = actions->probes == NULL ? 0 : n_probes;
        if (actions->probes == NULL) {
            return ERR_NOMEM;
        }
    }
    if (actions->rows_capacity < engine->n_rows) {
        /* Not wiped: likewise. */
        struct row_word *rows = realloc(actions->rows, engine->n_rows * sizeof *rows);
        if (rows == NULL) {
            return ERR_NOMEM;
        }
        actions->rows = rows;
        actions->rows_capacity = engine->n_rows;
    }
    return 0;
}

int engine_reserve_room(struct engine *engine, const struct engine_room *room,
                        struct engine_actions *actions)
{
    int err = reserve_slots(engine, room->n_slots);

    if (err == 0) {
        err = reserve_shares(engine, room->n_shares);
    }
    if (err == 0) {
        err = reserve_parts(engine, room->n_parts);
    }
    if (err == 0) {
        err = reserve_dependencies(engine, room->n_dependencies);
    }
    if (err == 0) {
        err = reserve_rows(engine, room->n_rows);
    }
    if (err == 0) {
        err = reserve_scopes(engine, room->n_scopes);
    }
    if (err == 0) {
        err = reserve_weights(engine, room->has_weights);
    }
    if (err == 0) {
        err = reserve_latencies(engine, room->n_latencies);
    }
    return err == 0 ? reserve_actions(engine, actions) : err;
}

int engine_reserve(struct engine *engine, const struct catalog *catalog,
                   struct engine_actions *actions)
{
    size_t n_before = engine->catalog == NULL ? 0 : catalog_n_groups(engine->catalog);
    bool has_lists = has_list(catalog);
    /* Groups that go and groups that come have places at the same time. */
    struct engine_room room = {.n_slots = catalog_n_slots(catalog),
                               .n_shares = has_shared_check(catalog) ? catalog_n_slots(catalog) : 0,
                               .n_parts = has_lists ? catalog_n_slots(catalog) : 0,
                               .n_dependencies = has_lists ? catalog_n_rows(catalog) : 0,
                               .n_rows = catalog_n_rows(catalog),
                               .n_scopes = (uint32_t)(n_before + catalog_n_groups(catalog))};

    look_for_weighing(catalog, &room);
    if (engine->history != NULL &&
        history_reserve_nodes(engine->history, (uint32_t)catalog_n_nodes(catalog)) != 0) {
        return ERR_NOMEM;
    }
    return engine_reserve_room(engine, &room, actions);
}
