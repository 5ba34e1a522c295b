/* The store's thread: its loop, its directory, opening and closing raft, the clock and the disk. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/loop/watchdog.h"
#include "agent/store/store_private.h"
#include "common/base/clock.h"
#include "common/base/units.h"

#define RETRY_MS_FULL 1000 /* a disk that was full heals at any moment */
#define DISK_RETRY_MS_LOW 1000
#define DISK_RETRY_MS 60000
#define SLOW_SYNC_US 1000000

void store_fail_stop(struct store *store, int exit_code, const char *sentence)
{
    log_event(LOG_LEVEL_ERROR, "store_fail_stop", "exit=%d reason=\"%s\"", exit_code, sentence);
    store->options.hooks.fail_stop(store->options.hooks.user, exit_code, sentence);
    abort(); /* the hook had to end the process */
}

static const char *state_word(enum store_state state)
{
    switch (state) {
    case STORE_STARTING:
        return "starting";
    case STORE_WAITING:
        return "waiting";
    case STORE_RUNNING:
        return "running";
    case STORE_FAILED:
        return "failed";
    case STORE_NEEDS_OPERATOR:
        return "needs_operator";
    case STORE_STATE_NONE:
        break;
    }
    return "none";
}

void store_set_state(struct store *store, enum store_state state, int err, const char *format, ...)
{
    struct errmsg message;
    va_list args;

    va_start(args, format);
    vsnprintf(message.text, sizeof message.text, format, args);
    va_end(args);
    if (state == store->state && strcmp(message.text, store->message.text) == 0) {
        return;
    }
    bool is_bad = state == STORE_FAILED || state == STORE_NEEDS_OPERATOR;
    log_event(is_bad ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "store_state", "state=%s reason=\"%s\"",
              state_word(state), message.text);
    store->state = (uint8_t)state;
    store->err = err;
    store->message = message;
    store->status_ns = 0;
}

/* --- the directory --- */

static void on_retry(uv_timer_t *timer);

static void failed(struct store *store, int err, const struct errmsg *why)
{
    bool is_for_people =
        err == ERR_CONFIG || err == ERR_CORRUPT || err == ERR_VERSION || err == ERR_DENIED;

    store_set_state(store, is_for_people ? STORE_NEEDS_OPERATOR : STORE_FAILED, err, "%s",
                    why->text);
    uint64_t delay_ms = err == ERR_FULL ? RETRY_MS_FULL : store->retry_ms;
    store->retry_ms =
        store->retry_ms * 2 < STORE_RETRY_MS_MAX ? store->retry_ms * 2 : STORE_RETRY_MS_MAX;
    if (!store->is_stopping) {
        uv_timer_start(&store->retry, on_retry, delay_ms, 0);
    }
}

static int load_init(struct store *store, struct errmsg *err)
{
    free(store->init_command);
    store->init_command = NULL;
    store->is_init_proposed = false;
    int result = data_dir_read_init(&store->dir, &store->init_command, &store->n_init_bytes, err);
    return result == ERR_NOTFOUND ? 0 : result;
}

void store_open(struct store *store)
{
    struct errmsg err = {{0}};
    int result = store->epoch != 0 ? 0 : store_raise_epoch(store, 0, &err);

    if (result == 0 && store_is_marked_restored(store)) {
        store_recall_members(store);
        return;
    }
    if (result == 0) {
        result = load_init(store, &err);
    }
    if (result == 0 && store->tester == NULL) {
        uint32_t segment = store->options.segment_bytes;

        result =
            disk_tester_start(store->dir.store, segment != 0 ? segment : 1u << 20, &store->tester);
        errmsg_set(&err, result, "the disk's watcher cannot be started");
    }
    if (result == 0) {
        store_recall_members(store);
        result = store_raft_open(store, &err);
    }
    if (result != 0) {
        store_close_raft(store, false);
        failed(store, result, &err);
        return;
    }
    store->retry_ms = STORE_RETRY_MS_MIN;
    store_set_state(store, STORE_RUNNING, 0, "%s",
                    store->raft.configuration.n > 0 ? ""
                                                    : "admitted; waiting for the leader's log");
}

static void try_directory(struct store *store)
{
    enum data_dir_state state = DATA_DIR_NONE;
    struct errmsg err = {{0}};

    if (store->is_stopping || store->is_raft_open) {
        return;
    }
    int result = data_dir_open(&store->dir, &store->owner, &state, &store->identity, &err);
    store->is_empty = result == 0 && state == DATA_DIR_EMPTY;
    if (result != 0) {
        failed(store, result, &err);
        return;
    }
    store->has_identity = state == DATA_DIR_READY;
    if (store->has_identity) {
        store_open(store);
    } else {
        store_say_waiting(store);
    }
}

static void on_retry(uv_timer_t *timer)
{
    try_directory(timer->data);
}

/* --- closing --- */

static void on_handle_closed(uv_handle_t *handle)
{
    (void)handle;
}

static void on_lane_closed(void *user)
{
    struct store *store = user;

    zmq_hub_stop(&store->hub);
    wake_watch_stop(&store->wake_watch);
    uv_close((uv_handle_t *)&store->ticker, on_handle_closed);
    uv_close((uv_handle_t *)&store->retry, on_handle_closed);
    uv_close((uv_handle_t *)&store->turn, on_handle_closed);
}

/* Raft may be gone before the transfer's callback, or the clock, asks once more. */
static void close_lane(struct store *store)
{
    if (store->lane.is_open) {
        raft_lane_close(&store->lane, on_lane_closed);
    }
}

static void on_raft_closed(struct raft *raft)
{
    struct store *store = raft->data;

    raft_wrap_close(&store->wrap);
    store->is_raft_open = false;
    store->is_raft_closing = false;
    if (store->is_stopping) {
        close_lane(store);
    } else if (store->must_reopen) {
        uv_timer_start(&store->retry, on_retry, 0, 0);
    }
}

void store_close_raft(struct store *store, bool must_reopen)
{
    if (store->is_raft_closing) {
        return;
    }
    store->must_reopen = must_reopen;
    if (!store->is_raft_open) {
        if (store->is_stopping) {
            close_lane(store);
        }
        return;
    }
    store->is_raft_closing = true;
    store->close_ns = store->now_ns;
    store->is_raft_started = false;
    store->is_ready = false;
    store->is_ready_asked = false;
    store->change_id = 0;
    if (store->has_held_snapshot) {
        raft_wrap_drop(&store->held_snapshot);
        store->has_held_snapshot = false;
    }
    store->raft.data = store;
    raft_close(&store->raft, on_raft_closed);
    store_drop_queue(store);
}

static void begin_stop(struct store *store)
{
    if (store->is_stopping) {
        return;
    }
    bool is_leader = store_is_leader(store);

    store->is_stopping = true;
    store->stop_ns = store->now_ns;
    uv_timer_stop(&store->retry);
    if (is_leader && (store->is_transfer_running || store_start_transfer(store, 0, NULL))) {
        return; /* its callback goes on, at the latest after an election timeout */
    }
    store_close_raft(store, false);
}

/* --- the clock --- */

/* Short of space, what raft_uv retries is the making of a segment, which is sound; a failed write
 * is seen by the tracer before any retry. */
static void set_disk_retry(struct store *store)
{
    raft_uv_set_disk_retry(&store->wrap.io,
                           store->is_disk_full ? DISK_RETRY_MS_LOW : DISK_RETRY_MS);
}

void store_look_at_space(struct store *store)
{
    store->free_checked_ns = store->now_ns;
    if (data_dir_free_bytes(&store->dir, &store->free_bytes) != 0) {
        return;
    }
    bool is_full = store->free_bytes < store->options.free_space_min_bytes;
    if (is_full != store->is_disk_full) {
        log_event(is_full ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "store_disk_space",
                  "directory=%s free_bytes=%llu writes=%s", store->dir.path,
                  (unsigned long long)store->free_bytes, is_full ? "refused" : "accepted");
        store->is_disk_full = is_full;
        store->status_ns = 0;
    }
    if (store->is_raft_open && !store->is_raft_closing) {
        set_disk_retry(store);
    }
}

static void note_syncs(struct store *store)
{
    uint64_t max_us = raft_wrap_take_max_us(&store->wrap);

    if (store->now_ns - store->minute_ns >= 60 * NS_PER_SECOND) {
        store->minute_ns = store->now_ns;
        store->fsync_max_before_us = store->fsync_max_us;
        store->fsync_max_us = 0;
    }
    if (max_us > store->fsync_max_us) {
        if (max_us >= SLOW_SYNC_US && store->fsync_max_us < SLOW_SYNC_US) {
            log_event(LOG_LEVEL_WARNING, "store_slow_disk", "directory=%s sync_us=%llu",
                      store->dir.path, (unsigned long long)max_us);
        }
        store->fsync_max_us = max_us;
    }
}

static void act_on_disk(struct store *store, enum disk_verdict verdict, const struct errmsg *why)
{
    struct errmsg test = {{0}};
    char sentence[2 * ERRMSG_BYTES + 4];
    uint64_t duration_ns;

    switch (verdict) {
    case DISK_FINE:
        break;
    case DISK_ASK:
        disk_tester_ask(store->tester);
        break;
    case DISK_SLOW:
    case DISK_FULL:
        break;
    case DISK_REOPEN:
        log_event(LOG_LEVEL_WARNING, "store_reopen", "reason=\"space came back\"");
        store_close_raft(store, true);
        break;
    case DISK_FAILED:
        disk_tester_result(store->tester, &duration_ns, &test);
        snprintf(sentence, sizeof sentence, "%s%s%s", why->text, test.text[0] != '\0' ? ": " : "",
                 test.text);
        store_fail_stop(store, STORE_EXIT_RESTART, sentence);
    }
}

static void watch_disk(struct store *store)
{
    struct disk_view view = {.now_ns = store->now_ns};
    struct errmsg why = {{0}};

    if (!store->is_raft_started) {
        return;
    }
    note_syncs(store);
    view.last_index = raft_last_index(&store->raft);
    view.stored_index = store->raft.last_stored;
    view.is_installing = store->raft.snapshot.installing;
    view.has_failed_write = store->wrap.has_failed_write;
    view.is_full = store->is_disk_full;
    view.test = disk_tester_result(store->tester, &view.test_duration_ns, NULL);
    enum disk_verdict verdict = disk_watch_step(&store->watch, &view, &why);
    bool is_slow = verdict == DISK_SLOW;
    if (is_slow != store->is_disk_slow) {
        log_event(LOG_LEVEL_WARNING, "store_disk", "directory=%s is_blocked=%d", store->dir.path,
                  is_slow);
        store->is_disk_slow = is_slow;
        store->status_ns = 0;
    }
    act_on_disk(store, verdict, &why);
}

static void on_tick(uv_timer_t *timer)
{
    struct store *store = timer->data;

    store->now_ns = clock_monotonic_ns();
    if (store->options.watchdog_loop != NULL) {
        watchdog_beat(store->options.watchdog_loop);
    }
    if (store->is_raft_closing) {
        if (store->now_ns - store->close_ns >= STORE_CLOSE_NS) {
            store_fail_stop(store, STORE_EXIT_RESTART,
                            "the log could not be closed within 45 s: the disk is blocked");
        }
        return;
    }
    if (store->is_stopping) {
        if (store->now_ns - store->stop_ns >= STORE_STOP_NS) {
            store_close_raft(store, false); /* nobody took over */
        }
        return;
    }
    if (store->now_ns - store->free_checked_ns >= NS_PER_SECOND) {
        store_look_at_space(store);
        store_look_at_directory(store);
    }
    watch_disk(store);
    store_peers_turn(store);
    store_members_turn(store);
    store_init_turn(store);
}

/* The end of each turn of the loop: runs after raft_uv's prepare handle, being older. */
static void on_turn(uv_prepare_t *prepare)
{
    struct store *store = prepare->data;

    store->now_ns = clock_monotonic_ns();
    store_raft_turn(store);
    store_publish_state(store);
    if (store->status_ns == 0 || store->now_ns - store->status_ns >= STORE_STATUS_NS) {
        store_publish_status(store);
    }
    if (store->is_wake_due) {
        store->is_wake_due = false;
        store->options.hooks.wake(store->options.hooks.user);
    }
}

static void on_woken(void *user)
{
    struct store *store = user;

    store->now_ns = clock_monotonic_ns();
    if (atomic_load(&store->must_stop)) {
        begin_stop(store);
    }
    store_take_requests(store);
}

/* --- the thread --- */

static void on_seen(void *user, const struct zmq_event *event)
{
    const struct store *store = user;

    if (store->options.hooks.seen != NULL) {
        store->options.hooks.seen(store->options.hooks.user, event);
    }
}

static void start_handles(struct store *store)
{
    const struct raft_lane_hooks hooks = {.user = store,
                                          .received = store_on_frame,
                                          .connected = store_on_connected,
                                          .seen = on_seen,
                                          .resolver = store->options.resolver};

    uv_prepare_init(&store->loop, &store->turn);
    store->turn.data = store;
    uv_prepare_start(&store->turn, on_turn);
    uv_timer_init(&store->loop, &store->ticker);
    store->ticker.data = store;
    uv_timer_start(&store->ticker, on_tick, STORE_TICK_MS, STORE_TICK_MS);
    uv_timer_init(&store->loop, &store->retry);
    store->retry.data = store;
    int result = wake_watch_start(&store->wake_watch, &store->loop, &store->wake, on_woken, store);
    if (result == 0) {
        result = zmq_hub_start(&store->hub, &store->loop);
    }
    if (result == 0) {
        result = raft_lane_start(&store->lane, &store->hub, store->listener, &store->sock, &hooks);
    }
    if (result != 0) {
        store_fail_stop(store, STORE_EXIT_RESTART, "the store's loop cannot be set up");
    }
}

static void free_lists(struct store *store)
{
    struct ask *ask;

    while ((ask = ask_pop(&store->queue)) != NULL || (ask = ask_pop(&store->applying)) != NULL ||
           (ask = ask_pop(&store->barrier_now)) != NULL ||
           (ask = ask_pop(&store->barrier_next)) != NULL ||
           (ask = ask_pop(&store->inits)) != NULL) {
        ask_free(ask);
    }
    while (ring_pop(store->requests, &ask)) {
        ask_free(ask);
    }
    free(store->init_command);
    store->init_command = NULL;
}

void *store_main(void *arg)
{
    struct store *store = arg;

    if (store->options.watchdog != NULL) {
        watchdog_add(store->options.watchdog, store->options.watchdog_loop, "store", pthread_self(),
                     false);
    }
    store->now_ns = clock_monotonic_ns();
    store->minute_ns = store->now_ns;
    store->retry_ms = STORE_RETRY_MS_MIN;
    store_set_state(store, STORE_STARTING, 0, "%s", "");
    start_handles(store);
    try_directory(store);
    uv_run(&store->loop, UV_RUN_DEFAULT);
    if (store->options.watchdog != NULL) {
        watchdog_remove(store->options.watchdog, store->options.watchdog_loop);
    }
    disk_tester_stop(store->tester);
    store_close_peers(store);
    free_lists(store);
    data_dir_close(&store->dir);
    return NULL;
}
