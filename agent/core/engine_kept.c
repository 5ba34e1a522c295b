/* Last-known-good: what is taken up at a start, and what is kept for the next one. */
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/err.h"
#include "common/base/plant.h"

/* --- taken up --- */

static int by_row(const void *a, const void *b)
{
    const struct kept_verdict *x = a;
    const struct kept_verdict *y = b;

    return (x->row > y->row) - (x->row < y->row);
}

static int deadline_by_row(const void *a, const void *b)
{
    const struct kept_deadline *x = a;
    const struct kept_deadline *y = b;

    if (x->row != y->row) {
        return x->row < y->row ? -1 : 1;
    }
    return (int)x->is_exact - (int)y->is_exact; /* the old table's first (spec.md 6) */
}

int engine_take_kept(struct engine *engine, const struct last_known_good *kept)
{
    struct kept_verdict *verdicts = malloc((kept->n_verdicts + 1) * sizeof *verdicts);
    struct kept_deadline *deadlines = malloc((kept->n_deadlines + 1) * sizeof *deadlines);

    if (verdicts == NULL || deadlines == NULL) {
        free(verdicts);
        free(deadlines);
        return ERR_NOMEM;
    }
    free(engine->kept_verdicts);
    free(engine->kept_deadlines);
    if (kept->n_verdicts > 0) {
        memcpy(verdicts, kept->verdicts, kept->n_verdicts * sizeof *verdicts);
        qsort(verdicts, kept->n_verdicts, sizeof *verdicts, by_row);
    }
    if (kept->n_deadlines > 0) {
        memcpy(deadlines, kept->deadlines, kept->n_deadlines * sizeof *deadlines);
        qsort(deadlines, kept->n_deadlines, sizeof *deadlines, deadline_by_row);
    }
    engine->kept_verdicts = verdicts;
    engine->n_kept_verdicts = kept->n_verdicts;
    engine->kept_deadlines = deadlines;
    engine->n_kept_deadlines = kept->n_deadlines;
    engine->kept_at_ns = engine->now_ns;
    engine->kept_age_ms = kept->age_ms;
    return 0;
}

const struct kept_verdict *engine_kept_of_row(const struct engine *engine, struct row_id row)
{
    struct kept_verdict key = {.row = row.row};
    const struct kept_verdict *found =
        engine->n_kept_verdicts == 0
            ? NULL
            : bsearch(&key, engine->kept_verdicts, engine->n_kept_verdicts, sizeof key, by_row);

    return found != NULL && found->birth == row.birth ? found : NULL;
}

const struct kept_verdict *engine_find_kept(const struct engine *engine, uint32_t row,
                                            uint64_t birth, struct hash128 definition)
{
    const struct kept_verdict *found =
        engine_kept_of_row(engine, (struct row_id){.row = row, .birth = birth});

    bool is_defined_so = found != NULL && found->definition_hash.low == definition.low &&
                         found->definition_hash.high == definition.high;
    if (found == NULL || (!is_defined_so && !plant_is("kept-any-definition")) ||
        (found->health_state != HEALTH_HEALTHY && found->health_state != HEALTH_UNHEALTHY)) {
        return NULL;
    }
    return found;
}

uint64_t engine_use_kept_deadline(struct engine *engine, uint32_t row, uint64_t birth,
                                  uint64_t drain_revision)
{
    for (size_t i = 0; i < engine->n_kept_deadlines; i++) {
        struct kept_deadline *kept = &engine->kept_deadlines[i];
        bool is_that_drain = kept->is_exact ? kept->drain_revision == drain_revision
                                            : drain_revision <= kept->drain_revision;

        if (kept->row == row && kept->birth == birth && is_that_drain) {
            kept->row = NO_ROW; /* once: a later drain or verdict begins anew */
            return kept->deadline_boot_ns;
        }
    }
    return 0;
}

/* --- kept for the next start --- */

static bool is_kept(const struct engine_backend *backend)
{
    return backend->birth != 0 && backend->is_linked &&
           (backend->health_state == HEALTH_HEALTHY || backend->health_state == HEALTH_UNHEALTHY);
}

/* One more than the milliseconds since then; 0 = never, or so long ago that it says nothing. */
static uint32_t ago_ms(uint64_t then_ns, uint64_t now_ns)
{
    uint64_t ms = now_ns > then_ns ? (now_ns - then_ns) / NS_PER_MS : 0;

    return then_ns == 0 || ms >= UINT32_MAX ? 0 : (uint32_t)ms + 1;
}

static uint32_t guard_ago_ms(const struct scope_guard *guard, uint64_t now_ns)
{
    return guard->is_on ? ago_ms(guard->since_ns, now_ns) : 0;
}

size_t engine_n_kept_verdicts(const struct engine *engine)
{
    size_t n = 0;

    for (uint32_t row = 0; row < engine->n_rows; row++) {
        n += is_kept(&engine->backends[row]);
    }
    return n;
}

size_t engine_keep_verdicts(const struct engine *engine, uint64_t now_ns,
                            struct kept_verdict verdicts[], size_t capacity)
{
    size_t n = 0;

    for (uint32_t row = 0; row < engine->n_rows && n < capacity; row++) {
        const struct engine_backend *backend = &engine->backends[row];

        if (!is_kept(backend)) {
            continue;
        }
        const struct scope_guard *guards = engine->scopes[backend->scope].guards;

        verdicts[n++] = (struct kept_verdict){
            .row = row,
            .birth = backend->birth,
            .definition_hash =
                catalog_target_at(engine->catalog, backend->target.slot)->definition_hash,
            .health_state = backend->health_state,
            .reason = backend->reason,
            .http_status = backend->http_status,
            .since_ms = (uint64_t)((int64_t)now_ns - backend->since_ns) / NS_PER_MS,
            .ejected_ms = ago_ms(backend->flaps.ejected_ns, now_ns),
            .n_flaps = backend->flaps.n_flaps,
            .shadow_ms = guard_ago_ms(&guards[GUARD_SHADOW], now_ns),
            .bad_ms = backend->is_bad ? ago_ms(backend->bad_ns, now_ns) : 0,
            .alarm_ms = guard_ago_ms(&guards[GUARD_CORRELATED], now_ns),
        };
    }
    return n;
}

size_t engine_keep_deadlines(const struct engine *engine, struct kept_deadline deadlines[],
                             size_t capacity)
{
    size_t n = 0;

    for (uint32_t row = 0; row < engine->n_rows && n < capacity; row++) {
        const struct engine_backend *backend = &engine->backends[row];

        if (backend->birth != 0 && backend->drain_deadline_ns != 0) {
            deadlines[n++] = (struct kept_deadline){
                .row = row,
                .birth = backend->birth,
                .drain_revision = backend->deadline_revision,
                .is_exact = true,
                .deadline_boot_ns = backend->drain_deadline_ns,
            };
        }
        if (n < capacity && backend->birth != 0 && backend->verdict_deadline_ns != 0) {
            deadlines[n++] = (struct kept_deadline){
                .row = row,
                .birth = backend->birth,
                .is_exact = true,
                .deadline_boot_ns = backend->verdict_deadline_ns,
            };
        }
    }
    return n;
}
