#include "agent/loop/watchdog.h"

#include <assert.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/loop/thread.h"
#include "common/base/err.h"
#include "common/base/log.h"

#define STALL_ROUNDS (WATCHDOG_STALL_MS / WATCHDOG_ROUND_MS)
#define ABORT_ROUNDS (WATCHDOG_ABORT_MS / WATCHDOG_ROUND_MS)
#define BACKTRACE_FRAMES 64

struct watchdog {
    pthread_t thread;
    pthread_mutex_t mutex; /* the list and must_stop; held during a look, which waits for nothing */
    pthread_cond_t changed;
    bool must_stop;
    uint32_t round_ms;
    struct watchdog_loop *loops[WATCHDOG_LOOPS];
    uint32_t n_loops;
};

static void note_longest(struct watchdog_loop *loop, uint32_t silent_ms)
{
    if (silent_ms > atomic_load_explicit(&loop->longest_stall_ms, memory_order_relaxed)) {
        atomic_store_explicit(&loop->longest_stall_ms, silent_ms, memory_order_relaxed);
    }
}

static void abort_loop(const struct watchdog_loop *loop)
{
    log_event(LOG_LEVEL_ERROR, "loop_stuck",
              "loop=%s silent_ms=%d action=\"abort, the supervisor starts the agent again\"",
              loop->name, WATCHDOG_ABORT_MS);
    /* On its own stack, so that the backtrace shows where it stands. */
    pthread_kill(loop->thread, SIGABRT);
}

static void look_at(struct watchdog_loop *loop)
{
    uint64_t n_beats = atomic_load_explicit(&loop->n_beats, memory_order_relaxed);

    if (n_beats != loop->beats_seen) {
        loop->beats_seen = n_beats;
        if (atomic_load(&loop->is_stalled)) {
            atomic_store(&loop->is_stalled, false);
            log_event(LOG_LEVEL_WARNING, "loop_stall_ended", "loop=%s silent_ms=%u", loop->name,
                      loop->n_rounds_silent * WATCHDOG_ROUND_MS);
        }
        loop->n_rounds_silent = 0;
        return;
    }
    loop->n_rounds_silent++;
    if (loop->n_rounds_silent < STALL_ROUNDS) {
        return;
    }
    note_longest(loop, loop->n_rounds_silent * WATCHDOG_ROUND_MS);
    if (!atomic_load(&loop->is_stalled)) {
        atomic_store(&loop->is_stalled, true);
        atomic_fetch_add_explicit(&loop->n_stalls, 1, memory_order_relaxed);
        log_event(LOG_LEVEL_WARNING, "loop_stalled", "loop=%s silent_ms=%u", loop->name,
                  loop->n_rounds_silent * WATCHDOG_ROUND_MS);
    }
    if (loop->may_abort && loop->n_rounds_silent == ABORT_ROUNDS) {
        abort_loop(loop);
    }
}

static void *run(void *arg)
{
    struct watchdog *watchdog = arg;

    pthread_mutex_lock(&watchdog->mutex);
    while (!watchdog->must_stop) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)watchdog->round_ms * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        int rc = pthread_cond_timedwait(&watchdog->changed, &watchdog->mutex, &until);
        if (rc != ETIMEDOUT) {
            continue;
        }
        for (uint32_t i = 0; i < watchdog->n_loops; i++) {
            look_at(watchdog->loops[i]);
        }
    }
    pthread_mutex_unlock(&watchdog->mutex);
    return NULL;
}

int watchdog_start(uint32_t round_ms, struct watchdog **ret_watchdog)
{
    struct watchdog *watchdog = calloc(1, sizeof *watchdog);
    pthread_condattr_t attributes;

    if (watchdog == NULL) {
        return ERR_NOMEM;
    }
    assert(round_ms > 0 && round_ms <= WATCHDOG_ROUND_MS);
    watchdog->round_ms = round_ms;
    pthread_mutex_init(&watchdog->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int rc = thread_start(&watchdog->thread, "watchdog", run, watchdog);
    if (rc != 0) {
        pthread_cond_destroy(&watchdog->changed);
        pthread_mutex_destroy(&watchdog->mutex);
        free(watchdog);
        return rc;
    }
    *ret_watchdog = watchdog;
    return 0;
}

void watchdog_stop(struct watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->mutex);
    watchdog->must_stop = true;
    pthread_cond_signal(&watchdog->changed);
    pthread_mutex_unlock(&watchdog->mutex);
    pthread_join(watchdog->thread, NULL);
    pthread_cond_destroy(&watchdog->changed);
    pthread_mutex_destroy(&watchdog->mutex);
    free(watchdog);
}

void watchdog_add(struct watchdog *watchdog, struct watchdog_loop *loop, const char *name,
                  pthread_t thread, bool may_abort)
{
    memset(loop, 0, sizeof *loop);
    loop->name = name;
    loop->thread = thread;
    loop->may_abort = may_abort;
    pthread_mutex_lock(&watchdog->mutex);
    assert(watchdog->n_loops < WATCHDOG_LOOPS);
    watchdog->loops[watchdog->n_loops++] = loop;
    pthread_mutex_unlock(&watchdog->mutex);
}

void watchdog_remove(struct watchdog *watchdog, struct watchdog_loop *loop)
{
    pthread_mutex_lock(&watchdog->mutex);
    for (uint32_t i = 0; i < watchdog->n_loops; i++) {
        if (watchdog->loops[i] == loop) {
            watchdog->loops[i] = watchdog->loops[--watchdog->n_loops];
            break;
        }
    }
    pthread_mutex_unlock(&watchdog->mutex);
}

static void on_abort(int signal_number)
{
    void *frames[BACKTRACE_FRAMES];
    struct sigaction standard = {.sa_handler = SIG_DFL};
    int n_frames = backtrace(frames, BACKTRACE_FRAMES);

    backtrace_symbols_fd(frames, n_frames, STDERR_FILENO);
    sigaction(signal_number, &standard, NULL);
    raise(signal_number);
}

void watchdog_install_backtrace(void)
{
    struct sigaction action = {.sa_handler = on_abort};
    void *frames[1];

    /* The first call loads a library and allocates; not in a signal handler. */
    backtrace(frames, 1);
    sigemptyset(&action.sa_mask);
    sigaction(SIGABRT, &action, NULL);
}
