#include "agent/shim/shim.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/shim/listeners.h"
#include "agent/shim/view.h"
#include "agent/shim/worker.h"
#include "agent/table/table_reader.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/units.h"

/* How often the main thread looks at the words of the root; workers look at them in every round. */
#define ROUND_MS 25
/* A worker that has not come round for this long is stuck: no heartbeat then. */
#define WORKER_STUCK_MS JURY_ABSENT_MS

struct shim {
    const struct shim_config *config;
    struct status_file *status;
    struct status_file *old_status; /* damaged; NULL: no worker uses it any more */
    bool status_is_lost;            /* and could not be made anew yet */
    struct table_reader *reader;
    struct table_snapshot *snapshot; /* the newest; NULL: none yet */
    struct listeners *listeners;
    struct view_box box;
    atomic_int stop;
    struct worker *workers;
    uint32_t n_started;
    uint64_t next_path_ms;
    uint64_t next_beat_ms;
    uint64_t next_retry_ms;
    enum table_look last_look;
    bool agent_is_absent;
    bool has_failed_listeners;
};

/* --- start --- */

/* Each flow takes two descriptors; ask for all we may have and say so if that is too few. */
static void raise_descriptor_limit(const struct shim_config *config)
{
    struct rlimit limit;
    uint64_t needed = 2ULL * config->n_workers * config->worker.n_flows_max + 1024;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < needed) {
        log_event(LOG_LEVEL_WARNING, "few_descriptors",
                  "limit=%llu needed=%llu advice=\"flows beyond the limit are refused\"",
                  (unsigned long long)limit.rlim_max, (unsigned long long)needed);
    }
}

static int start_workers(struct shim *shim, struct errmsg *err)
{
    for (uint32_t i = 0; i < shim->config->n_workers; i++) {
        struct worker *worker = &shim->workers[i];

        worker->config = &shim->config->worker;
        worker->box = &shim->box;
        worker->status = shim->status;
        worker->stop = &shim->stop;
        worker->index = i;
        int result = worker_start(worker, err);
        if (result != 0) {
            return result;
        }
        shim->n_started++;
    }
    return 0;
}

int shim_new(const struct shim_config *config, struct shim **ret_shim, struct errmsg *err)
{
    struct shim *shim = calloc(1, sizeof *shim);
    struct status_options status = {
        .dir = config->status_dir,
        .name = config->name,
        .n_workers = config->n_workers,
        .boot_ns = clock_boottime_ns(),
    };
    int result = 0;

    if (shim == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory");
    }
    shim->config = config;
    view_box_init(&shim->box);
    atomic_init(&shim->stop, WORKER_RUN);
    shim->reader = table_reader_new(config->tables_dir);
    shim->listeners = listeners_new(config->n_workers, config->own);
    shim->workers = calloc(config->n_workers, sizeof *shim->workers);
    if (shim->reader == NULL || shim->listeners == NULL || shim->workers == NULL) {
        result = errmsg_set(err, ERR_NOMEM, "no memory");
    }
    if (result == 0) {
        result = status_file_open(&status, &shim->status, err);
    }
    if (result == 0) {
        raise_descriptor_limit(config);
        result = start_workers(shim, err);
    }
    if (result != 0) {
        shim_free(shim);
        return result;
    }
    *ret_shim = shim;
    return 0;
}

static void stop_workers(struct shim *shim, enum worker_stop stop)
{
    atomic_store(&shim->stop, stop);
    for (uint32_t i = 0; i < shim->n_started; i++) {
        worker_wake(&shim->workers[i]);
    }
}

static void join_workers(struct shim *shim)
{
    for (uint32_t i = 0; i < shim->n_started; i++) {
        worker_join(&shim->workers[i]);
    }
    shim->n_started = 0;
}

void shim_free(struct shim *shim)
{
    if (shim == NULL) {
        return;
    }
    stop_workers(shim, WORKER_ABORT);
    join_workers(shim);
    view_box_close(&shim->box);
    listeners_free(shim->listeners);
    table_snapshot_unref(shim->snapshot);
    table_reader_free(shim->reader);
    status_file_close(shim->old_status);
    status_file_close(shim->status);
    free(shim->workers);
    free(shim);
}

/* --- following the table --- */

static void tell_failed_listeners(struct shim *shim)
{
    size_t n_failed = 0;
    const struct jury_status_failure *failed = listeners_failed(shim->listeners, &n_failed);

    status_file_set_failures(shim->status, failed, n_failed);
    shim->has_failed_listeners = n_failed > 0;
}

/* Listeners for the newest snapshot, and the view to the workers. */
static void publish(struct shim *shim)
{
    struct shim_view *view;
    struct errmsg err = {{0}};
    char text[2 * ERRMSG_BYTES];

    if (status_file_reserve(shim->status, table_snapshot_layout(shim->snapshot)->header->n_rows,
                            &err) != 0) {
        log_event(LOG_LEVEL_ERROR, "status_file_full", "reason=%s",
                  log_quote(text, sizeof text, err.text));
    }
    if (listeners_follow(shim->listeners, shim->snapshot, &view, &err) != 0) {
        log_event(LOG_LEVEL_ERROR, "table_not_published", "reason=%s",
                  log_quote(text, sizeof text, err.text));
        return;
    }
    view_box_put(&shim->box, view);
    tell_failed_listeners(shim);
    for (uint32_t i = 0; i < shim->n_started; i++) {
        worker_wake(&shim->workers[i]);
    }
}

static void log_look(struct shim *shim, enum table_look look, const struct errmsg *err)
{
    char text[2 * ERRMSG_BYTES];
    const char *event = look == TABLE_ABSENT ? "table_absent" : "table_refused";

    if (look == shim->last_look) {
        return; /* said already */
    }
    shim->last_look = look;
    if (look == TABLE_SAME || look == TABLE_NEW) {
        return;
    }
    log_event(look == TABLE_ABSENT ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR, event,
              "reason=%s goes_on_with=%s", log_quote(text, sizeof text, err->text),
              shim->snapshot == NULL ? "nothing" : "the_last_table");
}

static void look_at_table(struct shim *shim, uint64_t now_ms)
{
    struct table_snapshot *snapshot = NULL;
    struct errmsg err = {{0}};
    bool at_path = now_ms >= shim->next_path_ms;
    enum table_look look = table_reader_look(shim->reader, at_path, &snapshot, &err);

    if (at_path) {
        shim->next_path_ms = now_ms + TABLE_LOOK_MS;
        log_look(shim, look, &err);
    }
    if (look != TABLE_NEW) {
        return;
    }
    table_snapshot_unref(shim->snapshot);
    shim->snapshot = snapshot;
    const struct jury_layout *header = table_snapshot_layout(snapshot)->header;
    log_event(LOG_LEVEL_INFO, "table_followed",
              "layout=%016llx revision=%llu listeners=%u groups=%u backends=%u",
              (unsigned long long)table_snapshot_layout_number(snapshot),
              (unsigned long long)header->revision, header->n_listeners, header->n_scopes,
              header->n_members);
    publish(shim);
    shim->next_retry_ms = now_ms + LISTENERS_SOON_MS;
}

/* An agent that is gone changes nothing here, but somebody may want to know. */
static void look_at_agent(struct shim *shim, uint64_t boot_ns)
{
    if (shim->snapshot == NULL) {
        return;
    }
    uint64_t beat_ns = jury_load(&table_snapshot_root(shim->snapshot)->heartbeat_ns);
    bool is_absent = beat_ns + JURY_ABSENT_MS * NS_PER_MS < boot_ns;

    if (is_absent != shim->agent_is_absent) {
        shim->agent_is_absent = is_absent;
        log_event(is_absent ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
                  is_absent ? "agent_absent" : "agent_back",
                  is_absent ? "goes_on_with=the_last_table" : "");
    }
}

/* In the status file that the worker uses. */
static const struct jury_status_worker *counts_of(const struct shim *shim, uint32_t worker)
{
    return status_file_worker(
        atomic_load_explicit(&shim->workers[worker].used_status, memory_order_acquire), worker);
}

static bool workers_come_round(struct shim *shim, uint64_t boot_ns)
{
    for (uint32_t i = 0; i < shim->n_started; i++) {
        uint64_t beat_ns = jury_load(&counts_of(shim, i)->heartbeat_ns);

        if (beat_ns != 0 && beat_ns + WORKER_STUCK_MS * NS_PER_MS < boot_ns) {
            return false;
        }
    }
    return true;
}

static bool all_use(const struct shim *shim, const struct status_file *status)
{
    for (uint32_t i = 0; i < shim->n_started; i++) {
        if (atomic_load_explicit(&shim->workers[i].used_status, memory_order_acquire) != status) {
            return false;
        }
    }
    return true;
}

/* Whoever removes or cuts the status file takes this data plane out of the agent's sight: it is
 * made anew, one at a time. */
static void heal_status(struct shim *shim, uint64_t boot_ns)
{
    struct status_file *status = NULL;
    struct errmsg err = {{0}};
    char text[2 * ERRMSG_BYTES];

    if (shim->old_status != NULL && all_use(shim, shim->status)) {
        status_file_close(shim->old_status);
        shim->old_status = NULL;
    }
    if (shim->old_status != NULL || !status_file_is_damaged(shim->status)) {
        return;
    }
    if (status_file_renew(shim->status, boot_ns, &status, &err) != 0) {
        if (!shim->status_is_lost) {
            log_event(LOG_LEVEL_ERROR, "status_file_lost", "reason=%s goes_on=\"trying again\"",
                      log_quote(text, sizeof text, err.text));
        }
        shim->status_is_lost = true;
        return;
    }
    log_event(LOG_LEVEL_WARNING, "status_file_made_anew",
              "text=\"somebody removed it or cut it short\"");
    shim->status_is_lost = false;
    shim->old_status = shim->status;
    shim->status = status;
    tell_failed_listeners(shim);
    for (uint32_t i = 0; i < shim->n_started; i++) {
        atomic_store_explicit(&shim->workers[i].next_status, status, memory_order_release);
        worker_wake(&shim->workers[i]);
    }
}

static void round_of(struct shim *shim)
{
    uint64_t now_ms = clock_monotonic_ns() / NS_PER_MS;
    uint64_t boot_ns = clock_boottime_ns();

    look_at_table(shim, now_ms);
    status_file_sum(shim->status);
    if (now_ms >= shim->next_beat_ms) {
        shim->next_beat_ms = now_ms + JURY_HEARTBEAT_MS;
        look_at_agent(shim, boot_ns);
        heal_status(shim, boot_ns);
        if (workers_come_round(shim, boot_ns)) {
            status_file_beat(shim->status, boot_ns);
        }
    }
    if (shim->snapshot != NULL && shim->has_failed_listeners && now_ms >= shim->next_retry_ms) {
        shim->next_retry_ms = now_ms + LISTENERS_RETRY_MS;
        publish(shim);
    }
}

/* --- running and stopping --- */

/* SIGTERM or SIGINT within the time? */
static bool wait_for_signal(uint64_t timeout_ms)
{
    sigset_t signals;
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ms / 1000),
                               .tv_nsec = (long)(timeout_ms % 1000 * NS_PER_MS)};

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    return sigtimedwait(&signals, NULL, &timeout) > 0;
}

static uint64_t n_flows_of(const struct shim *shim)
{
    uint64_t n_flows = 0;

    for (uint32_t i = 0; i < shim->n_started; i++) {
        n_flows += jury_load(&counts_of(shim, i)->flows);
    }
    return n_flows;
}

/* Nothing is accepted any more; flows get their time, and the status file goes on telling. */
static void finish(struct shim *shim)
{
    uint64_t end_ms = clock_monotonic_ns() / NS_PER_MS + shim->config->stop_timeout_ms;

    log_event(LOG_LEVEL_INFO, "stopping", "flows=%llu timeout_ms=%u",
              (unsigned long long)n_flows_of(shim), shim->config->stop_timeout_ms);
    if (shim->snapshot != NULL) {
        struct shim_view *view = shim_view_new(shim->snapshot, 0);

        if (view != NULL) {
            view_box_put(&shim->box, view);
        }
        listeners_free(shim->listeners);
        shim->listeners = NULL;
    }
    stop_workers(shim, WORKER_FINISH);
    while (n_flows_of(shim) > 0 && clock_monotonic_ns() / NS_PER_MS < end_ms) {
        if (wait_for_signal(ROUND_MS)) {
            break;
        }
        status_file_beat(shim->status, clock_boottime_ns());
    }
    uint64_t n_left = n_flows_of(shim);
    stop_workers(shim, WORKER_ABORT);
    join_workers(shim);
    log_event(LOG_LEVEL_INFO, "stopped", "flows_reset=%llu", (unsigned long long)n_left);
}

void shim_run(struct shim *shim)
{
    log_event(LOG_LEVEL_INFO, "started", "workers=%u tables=%s status=%s name=%s",
              shim->config->n_workers, shim->config->tables_dir, shim->config->status_dir,
              shim->config->name);
    shim->last_look = TABLE_SAME;
    do {
        round_of(shim);
    } while (!wait_for_signal(ROUND_MS));
    finish(shim);
}
