#include "agent/loop/wake.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/err.h"

int wake_init(struct wake *wake)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0) {
        return err_from_errno(errno);
    }
    wake->fd = fd;
    atomic_init(&wake->is_signaled, 0);
    return 0;
}

void wake_close(struct wake *wake)
{
    close(wake->fd);
    wake->fd = -1;
}

void wake_signal(struct wake *wake)
{
    if (atomic_exchange(&wake->is_signaled, 1) != 0) {
        return;
    }
    uint64_t one = 1;
    /* Cannot fail: the counter holds at most a few, and the descriptor is ours. */
    ssize_t n = write(wake->fd, &one, sizeof one);
    (void)n;
}

int wake_fd(const struct wake *wake)
{
    return wake->fd;
}

void wake_clear(struct wake *wake)
{
    uint64_t count;
    ssize_t n = read(wake->fd, &count, sizeof count);

    (void)n;
    /* After the read: a signal in between finds the flag still set and writes nothing, but what it
     * announced was pushed before, and this thread drains after this store. An exchange, so that
     * it also sees that push. */
    atomic_exchange(&wake->is_signaled, 0);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct wake_watch *watch = poll->data;

    (void)status;
    (void)events;
    wake_clear(watch->wake);
    watch->woken(watch->user);
}

int wake_watch_start(struct wake_watch *watch, uv_loop_t *loop, struct wake *wake,
                     void (*woken)(void *user), void *user)
{
    int rc = uv_poll_init(loop, &watch->poll, wake->fd);

    if (rc != 0) {
        return err_from_errno(-rc);
    }
    watch->wake = wake;
    watch->woken = woken;
    watch->user = user;
    watch->poll.data = watch;
    rc = uv_poll_start(&watch->poll, UV_READABLE, on_poll);
    if (rc != 0) {
        uv_close((uv_handle_t *)&watch->poll, NULL);
        return err_from_errno(-rc);
    }
    return 0;
}

void wake_watch_stop(struct wake_watch *watch)
{
    uv_close((uv_handle_t *)&watch->poll, NULL);
}
