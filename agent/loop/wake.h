/* Waking another thread: one eventfd a sleeper.
 *
 * Signals coalesce, so the woken thread looks into every ring and mailbox it owns. A thread with a
 * poll loop of its own polls wake_fd and calls wake_clear; a libuv loop uses wake_watch. */
#ifndef JURY_LOOP_WAKE_H
#define JURY_LOOP_WAKE_H

#include <stdatomic.h>
#include <uv.h>

struct wake {
    int fd;
    _Atomic int is_signaled;
};

/* Errors: as err_from_errno of eventfd(2). */
int wake_init(struct wake *wake);
void wake_close(struct wake *wake);

/* Any thread, never waits. What was pushed or put before this call is seen by the sleeper after
 * its wake_clear. A system call only if the sleeper has not been signaled already. */
void wake_signal(struct wake *wake);

/* The sleeper: readable after a signal. */
int wake_fd(const struct wake *wake);
/* The sleeper, before it drains its rings: a signal during the draining wakes it once more. */
void wake_clear(struct wake *wake);

/* The libuv form: calls woken(user) on the loop after signals. */
struct wake_watch {
    uv_poll_t poll;
    struct wake *wake;
    void (*woken)(void *user);
    void *user;
};

/* wake: kept until wake_watch_stop. Loop thread. */
int wake_watch_start(struct wake_watch *watch, uv_loop_t *loop, struct wake *wake,
                     void (*woken)(void *user), void *user);
/* Loop thread. The watch's memory must last until the loop has run its close callbacks. */
void wake_watch_stop(struct wake_watch *watch);

#endif
