/* Last-known-good: what this node used last, for a start without the store. Read before the loop
 * runs; encoded and written on the pool, since the disk may stand still. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/lkg_codec.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/plant.h"
#include "common/base/units.h"

#define DEADLINES_MIN 64

void agent_kept_close(struct agent_kept *kept)
{
    catalog_unref(kept->catalog);
    free(kept->verdicts);
    free(kept->deadlines);
    *kept = (struct agent_kept){.is_there = false};
}

/* --- reading --- */

static int decode_catalog(const struct lkg *lkg, struct catalog **ret_catalog, struct errmsg *err)
{
    struct catalog_chunk_view *views = calloc(lkg->n_chunks + 1, sizeof *views);
    size_t n_views = 0;

    if (views == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the catalog");
    }
    for (size_t i = 0; i < lkg->n_chunks; i++) {
        if (lkg->chunks[i].kind == LKG_CATALOG) {
            views[n_views++] = (struct catalog_chunk_view){.data = lkg->chunks[i].data,
                                                           .n_bytes = lkg->chunks[i].n_bytes};
        }
    }
    int rc = catalog_decode(views, n_views, ret_catalog, err);
    free(views);
    return rc;
}

/* Verdicts or deadlines that cannot be read are left out: the catalog alone is worth much. */
static void decode_rest(const struct agent *agent, const struct lkg *lkg, struct agent_kept *kept)
{
    for (size_t i = 0; i < lkg->n_chunks; i++) {
        const struct lkg_chunk *chunk = &lkg->chunks[i];
        int rc = 0;

        if (chunk->kind == LKG_VERDICTS && kept->verdicts == NULL) {
            rc = lkg_decode_verdicts(chunk->data, chunk->n_bytes, &kept->verdicts,
                                     &kept->n_verdicts);
        } else if (chunk->kind == LKG_DEADLINES && kept->deadlines == NULL &&
                   memcmp(lkg->head.boot_id, agent->boot_id.bytes, sizeof lkg->head.boot_id) == 0) {
            /* The boot-time clock of another boot says nothing. */
            rc = lkg_decode_deadlines(chunk->data, chunk->n_bytes, &kept->deadlines,
                                      &kept->n_deadlines);
        }
        if (rc != 0) {
            log_event(LOG_LEVEL_WARNING, "last_known_good_in_part", "kind=%u error=\"%s\"",
                      chunk->kind, err_text(rc));
        }
    }
}

void agent_lkg_read(struct agent *agent)
{
    struct errmsg err = {""};
    struct agent_kept kept = {.is_there = true};
    struct lkg lkg;
    int rc = lkg_read(agent->data_dir, &lkg, &err);

    if (rc == ERR_NOTFOUND) {
        return;
    }
    if (rc == 0) {
        kept.head = lkg.head;
        rc = decode_catalog(&lkg, &kept.catalog, &err);
        if (rc == 0) {
            decode_rest(agent, &lkg, &kept);
        }
        lkg_close(&lkg);
    }
    if (rc != 0) {
        log_event(LOG_LEVEL_WARNING, "last_known_good_unusable", "error=\"%s\" text=\"%s\"",
                  err_text(rc), err.text);
        return;
    }
    agent->kept = kept;
    log_event(LOG_LEVEL_INFO, "last_known_good_read", "revision=%llu verdicts=%zu deadlines=%zu",
              (unsigned long long)kept.head.revision, kept.n_verdicts, kept.n_deadlines);
}

/* --- writing --- */

static int encode(const struct agent_lkg *lkg, uint8_t **ret_data, size_t *ret_n_bytes,
                  struct errmsg *err)
{
    size_t n_catalog = catalog_n_chunks(lkg->catalog);
    struct lkg_chunk *chunks = calloc(n_catalog + 2, sizeof *chunks);
    uint8_t *verdicts = NULL, *deadlines = NULL;
    int rc = chunks == NULL ? ERR_NOMEM : 0;

    for (size_t i = 0; rc == 0 && i < n_catalog; i++) {
        chunks[i].kind = LKG_CATALOG;
        chunks[i].data = catalog_chunk_at(lkg->catalog, i, &chunks[i].n_bytes);
    }
    if (rc == 0) {
        rc = lkg_encode_verdicts(lkg->verdicts, lkg->n_verdicts, &verdicts,
                                 &chunks[n_catalog].n_bytes);
    }
    if (rc == 0) {
        chunks[n_catalog].kind = LKG_VERDICTS;
        chunks[n_catalog].data = verdicts;
        rc = lkg_encode_deadlines(lkg->deadlines, lkg->n_deadlines, &deadlines,
                                  &chunks[n_catalog + 1].n_bytes);
    }
    if (rc == 0) {
        chunks[n_catalog + 1].kind = LKG_DEADLINES;
        chunks[n_catalog + 1].data = deadlines;
        const struct lkg file = {.head = lkg->head, .chunks = chunks, .n_chunks = n_catalog + 2};

        rc = lkg_encode(&file, ret_data, ret_n_bytes, err);
    } else {
        errmsg_set(err, rc, "no memory for the last-known-good file");
    }
    free(verdicts);
    free(deadlines);
    free(chunks);
    return rc;
}

/* Pool thread: only what was copied for it, and the counted catalog. */
static void write_file(uv_work_t *work)
{
    struct agent *agent = work->data;
    struct agent_lkg *lkg = &agent->lkg;
    uint8_t *data = NULL;
    size_t n_bytes = 0;

    lkg->rc = encode(lkg, &data, &n_bytes, &lkg->err);
    lkg->n_bytes = n_bytes;
    if (lkg->rc == 0) {
        lkg->rc = lkg_write(agent->data_dir, data, n_bytes, &lkg->err);
    }
    free(data);
}

static void let_go(struct agent_lkg *lkg)
{
    catalog_unref(lkg->catalog);
    free(lkg->verdicts);
    free(lkg->deadlines);
    lkg->catalog = NULL;
    lkg->verdicts = NULL;
    lkg->deadlines = NULL;
}

static void on_written(uv_work_t *work, int status)
{
    struct agent *agent = work->data;
    struct agent_lkg *lkg = &agent->lkg;

    (void)status;
    let_go(lkg);
    lkg->is_busy = false;
    lkg_budget_spend(&lkg->budget, lkg->n_bytes);
    if (lkg->rc == 0) {
        agent->counts.lkg_written++;
        return;
    }
    lkg->is_dirty = true;
    if (agent->counts.lkg_failed++ == 0) {
        log_event(LOG_LEVEL_WARNING, "last_known_good_not_written", "error=\"%s\" text=\"%s\"",
                  err_text(lkg->rc), lkg->err.text);
    }
}

/* All deadlines; grows until the last place stays free. */
static bool copy_deadlines(struct agent *agent)
{
    struct agent_lkg *lkg = &agent->lkg;

    for (size_t capacity = DEADLINES_MIN;; capacity *= 2) {
        struct kept_deadline *all = realloc(lkg->deadlines, capacity * sizeof *all);

        if (all == NULL) {
            return false;
        }
        lkg->deadlines = all;
        lkg->n_deadlines = engine_keep_deadlines(agent->engine, all, capacity);
        if (lkg->n_deadlines < capacity) {
            return true;
        }
    }
}

static bool copy_verdicts(struct agent *agent)
{
    struct agent_lkg *lkg = &agent->lkg;
    size_t n_verdicts = engine_n_kept_verdicts(agent->engine);

    lkg->verdicts = calloc(n_verdicts + 1, sizeof *lkg->verdicts);
    if (lkg->verdicts == NULL) {
        return false;
    }
    lkg->n_verdicts =
        engine_keep_verdicts(agent->engine, clock_monotonic_ns(), lkg->verdicts, n_verdicts);
    return true;
}

/* Copies what the pool shall write. */
static bool prepare(struct agent *agent)
{
    struct agent_lkg *lkg = &agent->lkg;
    struct catalog *catalog = engine_catalog(agent->engine);

    if (catalog == NULL || catalog_revision(catalog) == 0) {
        return false;
    }
    if (!copy_verdicts(agent) || !copy_deadlines(agent)) {
        let_go(lkg);
        return false;
    }
    lkg->catalog = catalog_ref(catalog);
    lkg->head = (struct lkg_head){.cluster_id = agent->cluster_id,
                                  .node_id = agent->node_id,
                                  .revision = catalog_revision(catalog),
                                  .wall_ms = clock_wall_ms()};
    memcpy(lkg->head.boot_id, agent->boot_id.bytes, sizeof lkg->head.boot_id);
    return true;
}

static bool is_new_catalog(const struct agent *agent)
{
    const struct catalog *catalog = engine_catalog(agent->engine);

    return catalog != NULL && catalog_revision(catalog) != agent->lkg.head.revision;
}

void agent_lkg_tick(struct agent *agent)
{
    struct agent_lkg *lkg = &agent->lkg;
    uint64_t now_ns = clock_monotonic_ns();

    if (!agent->is_formed || lkg->is_busy || !lkg->is_dirty || agent->is_stopping ||
        !lkg_budget_allows(&lkg->budget, now_ns, is_new_catalog(agent))) {
        return;
    }
    if (!prepare(agent)) {
        return;
    }
    lkg_budget_start(&lkg->budget, now_ns);
    lkg->is_dirty = false;
    lkg->work.data = agent;
    if (plant_is("health-waits-for-disk")) {
        write_file(&lkg->work);
    }
    lkg->is_busy = uv_queue_work(&agent->loop, &lkg->work, write_file, on_written) == 0;
    if (!lkg->is_busy) {
        let_go(lkg);
        lkg->is_dirty = true;
    }
}
