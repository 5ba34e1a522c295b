/* A thread that looks whether the loops move.
 *
 * Each watched loop beats from a timer. A loop that has not beaten for WATCHDOG_STALL_MS is a
 * stall: counted, logged once, and readable by the engine's shell (a stall of health or probe
 * raises self-doubt). One that may abort and has not beaten for WATCHDOG_ABORT_MS gets SIGABRT on
 * its own thread, so that the handler prints where it stands and the supervisor starts the agent
 * anew. The store only ever stalls: a slow disk is no failure (design.md 5).
 *
 * Time is counted in the watchdog's own rounds and not by the clock: a stopped process or machine
 * stands still for all threads alike and is nobody's stall. */
#ifndef JURY_LOOP_WATCHDOG_H
#define JURY_LOOP_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>

#define WATCHDOG_ROUND_MS 250
#define WATCHDOG_BEAT_MS 100 /* how often a loop should beat */
#define WATCHDOG_STALL_MS 1000
#define WATCHDOG_ABORT_MS 30000
#define WATCHDOG_LOOPS 8

/* Zeroed by watchdog_add; read by anybody. */
struct watchdog_loop {
    _Atomic uint64_t n_beats;
    _Atomic uint64_t n_stalls;         /* that have begun */
    _Atomic uint32_t longest_stall_ms; /* of those that ended, and of the one that lasts */
    _Atomic bool is_stalled;
    const char *name;
    bool may_abort;
    pthread_t thread;
    uint64_t beats_seen; /* watchdog thread */
    uint32_t n_rounds_silent;
};

struct watchdog;
/* round_ms: WATCHDOG_ROUND_MS; tests take shorter rounds, and all other times shrink with it.
 * Errors: ERR_NOMEM, ERR_LIMIT. */
int watchdog_start(uint32_t round_ms, struct watchdog **ret_watchdog);
void watchdog_stop(struct watchdog *watchdog);

/* Any thread, at most WATCHDOG_LOOPS. loop, name: kept until watchdog_stop. thread: of the loop,
 * must live until watchdog_remove. */
void watchdog_add(struct watchdog *watchdog, struct watchdog_loop *loop, const char *name,
                  pthread_t thread, bool may_abort);
/* Before the loop's thread ends; returns when the watchdog does not look at it any more. */
void watchdog_remove(struct watchdog *watchdog, struct watchdog_loop *loop);

/* The loop's thread. */
static inline void watchdog_beat(struct watchdog_loop *loop)
{
    atomic_fetch_add_explicit(&loop->n_beats, 1, memory_order_relaxed);
}

/* Install the SIGABRT handler that writes a backtrace to standard error and then dies of the
 * signal. Call once in main, before threads start. */
void watchdog_install_backtrace(void);

#endif
