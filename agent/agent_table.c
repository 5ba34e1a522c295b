/* The forwarding table: words at once, layouts by the pool, status files of the data planes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/table/table_map.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/units.h"

#define RETRY_LAYOUT_MS 1000
#define DRAIN_ROWS_MIN 64

int agent_table_open(struct agent *agent, struct errmsg *err)
{
    const struct table_identity identity = {.cluster_id = agent->cluster_id,
                                            .node_id = agent->node_id,
                                            .epoch = agent->epoch & UINT32_MAX,
                                            .boot_id = agent->boot_id};

    if (agent->status_reader == NULL) {
        agent->status_reader = status_reader_new(agent->status_dir, &agent->boot_id);
        if (agent->status_reader == NULL) {
            return errmsg_set(err, ERR_NOMEM, "no memory for the status files");
        }
    }
    if (agent->table == NULL) {
        return table_writer_open(agent->table_dir, &identity, &agent->table, err);
    }
    return 0;
}

/* --- words --- */

static void keep_late(struct agent *agent, const struct row_word rows[], size_t n_rows)
{
    struct row_word *all = realloc(agent->late_rows, (agent->n_late_rows + n_rows) * sizeof *all);

    if (all == NULL) {
        abort(); /* the table would stay wrong; a restart writes it anew */
    }
    memcpy(all + agent->n_late_rows, rows, n_rows * sizeof *all);
    agent->late_rows = all;
    agent->n_late_rows += n_rows;
}

/* What could not be written, oldest first. */
static bool write_late(struct agent *agent, uint64_t revision)
{
    if (agent->n_late_rows == 0) {
        return true;
    }
    if (table_writer_apply(agent->table, agent->late_rows, agent->n_late_rows, revision, NULL) !=
        0) {
        return false;
    }
    log_event(LOG_LEVEL_WARNING, "table_write_made_up", "rows=%zu", agent->n_late_rows);
    free(agent->late_rows);
    agent->late_rows = NULL;
    agent->n_late_rows = 0;
    return true;
}

void agent_table_write(struct agent *agent, const struct row_word rows[], size_t n_rows,
                       uint64_t revision)
{
    struct errmsg err = {""};

    if (n_rows == 0) {
        return;
    }
    if (!write_late(agent, revision) ||
        table_writer_apply(agent->table, rows, n_rows, revision, &err) != 0) {
        agent->counts.table_writes_failed++;
        if (agent->n_late_rows == 0) {
            log_event(LOG_LEVEL_ERROR, "table_write_failed", "text=\"%s\"", err.text);
            agent->table_error = err;
        }
        keep_late(agent, rows, n_rows);
    }
}

/* --- layouts --- */

/* What was written there; NULL: it is not there as it was, and costs nothing but time. */
static struct table_map *read_layout(const struct agent *agent, const struct agent_layout_file *as)
{
    char name[TABLE_NAME_BYTES];
    const struct table_file file = {.dir = agent->table_dir,
                                    .name = table_layout_name(as->number, name),
                                    .n_bytes_max = as->n_bytes};
    struct errmsg err;
    struct table_map *map;

    if (as->n_bytes == 0 || table_map_copy(&file, &map, &err) != 0) {
        return NULL;
    }
    if (map->n_bytes != as->n_bytes || fwd_layout_crc(map->bytes, map->n_bytes) != as->crc) {
        table_map_unref(map);
        return NULL;
    }
    return map;
}

/* Pool thread. Touches only what agent_layout says is its own meanwhile. */
static void build_layout(uv_work_t *work)
{
    struct agent *agent = work->data;
    struct agent_layout *layout = &agent->layout;
    struct table_map *last = read_layout(agent, &layout->published);
    const struct fwd_layout before = {.bytes =
                                          last != NULL ? (uint8_t *)(uintptr_t)last->bytes : NULL,
                                      .n_bytes = layout->published.n_bytes};
    struct fwd_layout built = {.bytes = NULL};

    layout->rc = fwd_layout_from_catalog(layout->catalog, last != NULL ? &before : NULL, &built,
                                         &layout->err);
    if (layout->rc == 0) {
        layout->built.n_bytes = built.n_bytes;
        layout->built.crc = ((const struct jury_layout *)(const void *)built.bytes)->crc32c;
        layout->rc = table_layout_store(agent->table_dir, layout->built.number, built.bytes,
                                        built.n_bytes, &layout->err);
    }
    fwd_layout_close(&built);
    table_map_unref(last);
}

static void next_layout(struct agent *agent);

static void on_layout_timer(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    agent->layout.is_blocked = false;
    next_layout(agent);
}

static void block_layouts(struct agent *agent, uint64_t delay_ms)
{
    agent->layout.is_blocked = true;
    uv_timer_start(&agent->layout.timer, on_layout_timer, delay_ms, 0);
}

/* A revision that could not be published is tried again unless a newer one waits. */
static void layout_failed(struct agent *agent)
{
    struct agent_layout *layout = &agent->layout;

    agent->counts.layouts_failed++;
    layout->is_late = true;
    agent->table_error = layout->err;
    log_event(LOG_LEVEL_ERROR, "layout_failed", "revision=%llu error=\"%s\" text=\"%s\"",
              (unsigned long long)catalog_revision(layout->catalog), err_text(layout->rc),
              layout->err.text);
    if (layout->waiting == NULL) {
        layout->waiting = catalog_ref(layout->catalog);
    }
    block_layouts(agent, RETRY_LAYOUT_MS);
}

static void layout_built(struct agent *agent)
{
    struct agent_layout *layout = &agent->layout;
    uint64_t revision = catalog_revision(layout->catalog);

    write_late(agent, revision);
    layout->rc = table_writer_publish(agent->table, layout->built.number,
                                      catalog_n_rows(layout->catalog), revision, &layout->err);
    if (layout->rc != 0) {
        layout_failed(agent);
        return;
    }
    layout->published = layout->built;
    layout->is_late = false;
    agent->counts.layouts++;
    log_event(LOG_LEVEL_DEBUG, "layout_published", "revision=%llu bytes=%zu generation=%llu",
              (unsigned long long)revision, layout->published.n_bytes,
              (unsigned long long)table_writer_generation(agent->table));
    block_layouts(agent, TABLE_LAYOUT_INTERVAL_MS);
}

static void on_layout_built(uv_work_t *work, int status)
{
    struct agent *agent = work->data;
    struct agent_layout *layout = &agent->layout;

    (void)status;
    layout->is_busy = false;
    if (!agent->is_stopping && layout->rc != 0) {
        layout_failed(agent);
    } else if (!agent->is_stopping) {
        layout_built(agent);
    }
    catalog_unref(layout->catalog);
    layout->catalog = NULL;
}

static void next_layout(struct agent *agent)
{
    struct agent_layout *layout = &agent->layout;

    if (layout->is_busy || layout->is_blocked || layout->waiting == NULL || agent->is_stopping) {
        return;
    }
    layout->catalog = layout->waiting;
    layout->waiting = NULL;
    layout->built = (struct agent_layout_file){.number = table_writer_next_layout(agent->table)};
    layout->err.text[0] = '\0';
    layout->work.data = agent;
    layout->is_busy = true;
    if (uv_queue_work(&agent->loop, &layout->work, build_layout, on_layout_built) != 0) {
        layout->is_busy = false;
        layout->rc = ERR_LIMIT;
        layout_failed(agent);
        catalog_unref(layout->catalog);
        layout->catalog = NULL;
    }
}

void agent_layout_due(struct agent *agent, struct catalog *catalog)
{
    catalog_unref(agent->layout.waiting);
    agent->layout.waiting = catalog_ref(catalog);
    next_layout(agent);
}

/* --- status files --- */

static bool room_for(struct agent *agent, size_t n_rows)
{
    struct drain_row *drains = realloc(agent->drain_rows, n_rows * sizeof *drains);
    if (drains != NULL) {
        agent->drain_rows = drains;
    }
    struct data_plane_row *planes = realloc(agent->plane_rows, n_rows * sizeof *planes);
    if (planes != NULL) {
        agent->plane_rows = planes;
    }
    if (drains == NULL || planes == NULL) {
        return false;
    }
    agent->plane_rows_capacity = n_rows;
    return true;
}

/* All rows that drain; grows until the last place stays free. SIZE_MAX: no memory. */
static size_t collect_drains(struct agent *agent)
{
    if (agent->plane_rows_capacity == 0 && !room_for(agent, DRAIN_ROWS_MIN)) {
        return SIZE_MAX;
    }
    for (;;) {
        size_t n_rows =
            engine_drain_rows(agent->engine, agent->drain_rows, agent->plane_rows_capacity);

        if (n_rows < agent->plane_rows_capacity) {
            return n_rows;
        }
        if (!room_for(agent, agent->plane_rows_capacity * 2)) {
            return SIZE_MAX;
        }
    }
}

/* What the data planes say of the rows that drain. */
static void tell_engine(struct agent *agent)
{
    size_t n_rows = collect_drains(agent);

    if (n_rows == SIZE_MAX) {
        return; /* asked again with the next tick */
    }
    for (size_t i = 0; i < n_rows; i++) {
        agent->plane_rows[i] = (struct data_plane_row){.row = agent->drain_rows[i].row,
                                                       .birth = agent->drain_rows[i].birth};
    }
    bool is_counting =
        status_reader_answer(agent->status_reader, agent->table, agent->plane_rows, n_rows);
    if (n_rows == 0 && is_counting == agent->was_counting) {
        return;
    }
    const struct data_plane_status status = {
        .is_counting = is_counting, .rows = agent->plane_rows, .n_rows = n_rows};
    struct engine_event event = {.kind = ENGINE_DATA_PLANE, .u.data_plane = &status};
    agent->was_counting = is_counting;
    agent_step(agent, &event);
}

static void log_planes(const struct agent *agent, size_t n_before, size_t n_now)
{
    if (n_before == n_now) {
        return;
    }
    log_event(n_now < n_before ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "data_planes",
              "files=%zu before=%zu dir=%s", n_now, n_before, agent->status_dir);
}

/* Their words are lost to all data planes, and only a new start writes them all. */
static void look_for_cuts(const struct agent *agent)
{
    struct errmsg err = {""};

    if (table_writer_is_cut(agent->table, &err)) {
        log_event(LOG_LEVEL_ERROR, "table_cut", "exit=%d text=\"%s\"", AGENT_EXIT_RESTART,
                  err.text);
        _exit(AGENT_EXIT_RESTART);
    }
}

/* The next publish makes all files anew; a layout that waits or is being built is one. */
static void make_files_anew(struct agent *agent)
{
    struct catalog *catalog = engine_catalog(agent->engine);
    struct errmsg err = {""};

    if (agent->layout.is_busy || agent->layout.is_blocked || catalog == NULL) {
        return;
    }
    if (table_writer_reopen(agent->table, &err) != 0) {
        if (strcmp(err.text, agent->table_error.text) != 0) {
            log_event(LOG_LEVEL_ERROR, "table_files_gone", "text=\"%s\"", err.text);
        }
        agent->table_error = err;
        return;
    }
    agent_layout_due(agent, agent->layout.waiting != NULL ? agent->layout.waiting : catalog);
}

/* Whoever cleans the run directory under a running agent should hear of it, and find the table
 * again. */
static void look_at_files(struct agent *agent)
{
    bool is_gone = !table_writer_is_in_place(agent->table);

    if (is_gone != agent->table_is_gone) {
        agent->table_is_gone = is_gone;
        agent->counts.tables_made_anew += !is_gone;
        log_event(is_gone ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO,
                  is_gone ? "table_files_gone" : "table_files_back", "dir=%s generation=%llu",
                  agent->table_dir, (unsigned long long)table_writer_generation(agent->table));
    }
    if (is_gone) {
        make_files_anew(agent);
    }
}

bool agent_table_problem(const struct agent *agent, struct errmsg *ret_problem)
{
    const char *why = agent->table_error.text;
    const char *before = why[0] != '\0' ? ": " : "";

    if (agent->table == NULL || !table_writer_is_published(agent->table)) {
        errmsg_set(ret_problem, 0, "no forwarding table is published%s%s", before, why);
    } else if (agent->n_late_rows > 0 || agent->layout.is_late) {
        errmsg_set(ret_problem, 0, "the forwarding table is out of date%s%s", before, why);
    } else if (agent->table_is_gone) {
        errmsg_set(ret_problem, 0,
                   "files of the forwarding table in %s were removed or replaced: a data plane "
                   "that starts "
                   "now finds none until they are made anew%s%s",
                   agent->table_dir, before, why);
    } else {
        return false;
    }
    return true;
}

void agent_table_tick(struct agent *agent)
{
    uint64_t boot_ns = clock_boottime_ns();
    uint32_t n_ignored = 0;

    if (!agent->is_formed) {
        return;
    }
    if (agent->n_late_rows > 0) {
        const struct catalog *catalog = engine_catalog(agent->engine);

        write_late(agent, catalog != NULL ? catalog_revision(catalog) : 0);
    }
    table_writer_heartbeat(agent->table, boot_ns);
    look_for_cuts(agent);
    look_at_files(agent);
    size_t n_before = status_reader_n_planes(agent->status_reader);
    status_reader_scan(agent->status_reader, boot_ns, &n_ignored);
    log_planes(agent, n_before, status_reader_n_planes(agent->status_reader));
    tell_engine(agent);
}

void agent_table_close(struct agent *agent)
{
    catalog_unref(agent->layout.waiting);
    table_writer_close(agent->table);
    status_reader_free(agent->status_reader);
}
