#include "agent/loop/zmq_hub.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/loop/zap.h"
#include "common/base/str.h"

#define HUB_PASSES 4 /* looks at all sockets in one turn before the loop's other work is served */

static int watch_events(struct zmq_watch *watch)
{
    int events = 0;
    size_t n_bytes = sizeof events;

    if (zmq_getsockopt(watch->socket, ZMQ_EVENTS, &events, &n_bytes) != 0) {
        return 0;
    }
    return events;
}

/* Reads one message whole. Returns its frames in `frames` (0 = nothing there; dropped messages
 * count as one too and give SIZE_MAX). */
static size_t receive(struct zmq_watch *watch, zmq_msg_t frames[ZMQ_HUB_FRAMES])
{
    size_t n = 0;
    bool is_too_long = false;

    for (;;) {
        zmq_msg_t spare;
        zmq_msg_t *frame = n < ZMQ_HUB_FRAMES ? &frames[n] : &spare;

        zmq_msg_init(frame);
        if (zmq_msg_recv(frame, watch->socket, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(frame);
            break;
        }
        int more = zmq_msg_more(frame);
        if (n < ZMQ_HUB_FRAMES) {
            n++;
        } else {
            is_too_long = true;
            zmq_msg_close(frame);
        }
        if (!more) {
            break;
        }
    }
    if (is_too_long) {
        for (size_t i = 0; i < n; i++) {
            zmq_msg_close(&frames[i]);
        }
        watch->hub->n_too_many_frames++;
        return SIZE_MAX;
    }
    return n;
}

/* Returns the number of messages read. */
static size_t drain(struct zmq_watch *watch)
{
    size_t n_read = 0;

    watch->has_more = false;
    while (!watch->is_closing) {
        zmq_msg_t frames[ZMQ_HUB_FRAMES];

        if (n_read == ZMQ_HUB_DRAIN) {
            watch->has_more = true;
            break;
        }
        size_t n_frames = receive(watch, frames);
        if (n_frames == 0) {
            break;
        }
        n_read++;
        if (n_frames == SIZE_MAX) {
            continue;
        }
        watch->hooks.message(watch->hooks.user, frames, n_frames);
        for (size_t i = 0; i < n_frames; i++) {
            zmq_msg_close(&frames[i]);
        }
    }
    watch->hub->n_messages += n_read;
    return n_read;
}

/* Returns true if a hook ran. */
static bool look(struct zmq_watch *watch, bool was_announced)
{
    bool did_work = false;

    watch->is_due = false;
    if (watch->is_closing) {
        return false;
    }
    int events = watch_events(watch);
    if (watch->wants_write && (events & ZMQ_POLLOUT) != 0) {
        watch->wants_write = false;
        did_work = true;
        watch->hooks.writable(watch->hooks.user);
    }
    if (!watch->is_closing && (events & ZMQ_POLLIN) != 0) {
        size_t n_read = drain(watch);

        did_work = did_work || n_read > 0;
        if (!was_announced) {
            watch->hub->n_found_late += n_read;
        }
    }
    watch->is_due = watch->is_due || did_work;
    return did_work;
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* Its only work is that the loop does not sleep. */
}

static void set_idle(struct zmq_hub *hub, bool is_on)
{
    if (hub->is_idle_on == is_on) {
        return;
    }
    hub->is_idle_on = is_on;
    if (is_on) {
        uv_idle_start(&hub->idle, on_idle);
    } else {
        uv_idle_stop(&hub->idle);
    }
}

void zmq_watch_touched(struct zmq_watch *watch)
{
    if (!watch->is_closing) {
        watch->is_due = true;
        set_idle(watch->hub, true);
    }
}

/* A hook of one socket may send on another whose edge it thereby consumes, so looking goes on until
 * a whole pass found nothing. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct zmq_hub *hub = prepare->data;
    uint64_t now_ms = uv_now(hub->loop);
    bool is_left = false;

    if (now_ms - hub->looked_ms >= ZMQ_HUB_LOOK_MS) {
        hub->looked_ms = now_ms;
        for (struct zmq_watch *watch = hub->first; watch != NULL; watch = watch->next) {
            watch->is_due = true;
        }
    }
    for (int pass = 0; pass == 0 || (pass < HUB_PASSES && is_left); pass++) {
        is_left = false;
        for (struct zmq_watch *watch = hub->first; watch != NULL; watch = watch->next) {
            if (watch->is_due || watch->has_more) {
                look(watch, false);
            }
        }
        for (const struct zmq_watch *watch = hub->first; watch != NULL; watch = watch->next) {
            is_left = is_left || watch->is_due || watch->has_more;
        }
    }
    set_idle(hub, is_left);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    look(poll->data, true);
}

int zmq_hub_start(struct zmq_hub *hub, uv_loop_t *loop)
{
    *hub = (struct zmq_hub){.loop = loop};
    if (uv_prepare_init(loop, &hub->prepare) != 0 || uv_idle_init(loop, &hub->idle) != 0) {
        return ERR_INTERNAL;
    }
    hub->prepare.data = hub;
    return uv_prepare_start(&hub->prepare, on_prepare) == 0 ? 0 : ERR_INTERNAL;
}

void zmq_hub_go_first(struct zmq_hub *hub)
{
    uv_prepare_stop(&hub->prepare);
    uv_prepare_start(&hub->prepare, on_prepare);
}

void zmq_hub_stop(struct zmq_hub *hub)
{
    for (const struct zmq_watch *watch = hub->first; watch != NULL; watch = watch->next) {
        assert(watch->is_closing);
    }
    set_idle(hub, false);
    uv_close((uv_handle_t *)&hub->prepare, NULL);
    uv_close((uv_handle_t *)&hub->idle, NULL);
}

int zmq_watch_start(struct zmq_watch *watch, struct zmq_hub *hub, void *socket,
                    const struct zmq_hooks *hooks)
{
    int fd = -1;
    size_t n_bytes = sizeof fd;

    assert(hooks->message != NULL);
    *watch = (struct zmq_watch){.hub = hub, .socket = socket, .hooks = *hooks};
    if (zmq_getsockopt(socket, ZMQ_FD, &fd, &n_bytes) != 0 ||
        uv_poll_init(hub->loop, &watch->poll, fd) != 0) {
        zmq_close(socket);
        return ERR_INTERNAL;
    }
    watch->poll.data = watch;
    watch->next = hub->first;
    hub->first = watch;
    if (uv_poll_start(&watch->poll, UV_READABLE, on_poll) != 0) {
        zmq_watch_close(watch, NULL, NULL);
        return ERR_INTERNAL;
    }
    /* Connecting and binding may have left commands behind whose edge is gone: look before the
     * first sleep. */
    zmq_watch_touched(watch);
    return 0;
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct zmq_watch *watch = handle->data;
    struct zmq_watch **link = &watch->hub->first;

    while (*link != watch) {
        link = &(*link)->next;
    }
    *link = watch->next;
    zmq_close(watch->socket);
    watch->socket = NULL;
    if (watch->closed != NULL) {
        watch->closed(watch->closed_user);
    }
}

void zmq_watch_close(struct zmq_watch *watch, void (*closed)(void *user), void *user)
{
    assert(!watch->is_closing);
    watch->is_closing = true;
    watch->has_more = false;
    watch->closed = closed;
    watch->closed_user = user;
    uv_close((uv_handle_t *)&watch->poll, on_poll_closed);
}

void zmq_watch_want_write(struct zmq_watch *watch)
{
    assert(watch->hooks.writable != NULL);
    watch->wants_write = true;
    zmq_watch_touched(watch);
}

static int send_error(void)
{
    switch (errno) {
    case EAGAIN:
        return ERR_BUSY;
    case EHOSTUNREACH:
        return ERR_UNREACHABLE;
    default:
        return ERR_INTERNAL;
    }
}

int zmq_watch_send(struct zmq_watch *watch, const struct zmq_part parts[], size_t n_parts)
{
    assert(n_parts > 0);
    if (watch->is_closing) {
        return ERR_BUSY;
    }
    zmq_watch_touched(watch);
    for (size_t i = 0; i < n_parts; i++) {
        int flags = ZMQ_DONTWAIT | (i + 1 < n_parts ? ZMQ_SNDMORE : 0);

        if (zmq_send(watch->socket, parts[i].data, parts[i].n_bytes, flags) < 0) {
            /* Only the first frame of a message can be refused: libzmq keeps the pipe for the
             * rest. */
            return send_error();
        }
    }
    return 0;
}

int zmq_watch_send_frames(struct zmq_watch *watch, zmq_msg_t frames[], size_t n_frames)
{
    assert(n_frames > 0);
    if (watch->is_closing) {
        return ERR_BUSY;
    }
    zmq_watch_touched(watch);
    for (size_t i = 0; i < n_frames; i++) {
        int flags = ZMQ_DONTWAIT | (i + 1 < n_frames ? ZMQ_SNDMORE : 0);

        if (zmq_msg_send(&frames[i], watch->socket, flags) < 0) {
            return send_error();
        }
    }
    return 0;
}

const char *zmq_frame_user_id(zmq_msg_t *frame)
{
    const char *user_id = zmq_msg_gets(frame, "User-Id");

    return user_id == NULL ? "" : user_id;
}

bool zmq_frame_key(zmq_msg_t *frame, uint8_t ret_key[CURVE_KEY_BYTES])
{
    const char *hex = zmq_msg_gets(frame, ZAP_KEY_PROPERTY);

    return hex != NULL && str_unhex(hex, ret_key, CURVE_KEY_BYTES);
}

/* libzmq says "localhost:UID:GID:PID" of a unix socket. */
int64_t zmq_frame_uid(zmq_msg_t *frame)
{
    const char *peer = zmq_msg_gets(frame, "Peer-Address");
    const char *colon = peer == NULL ? NULL : strchr(peer, ':');
    unsigned long uid, gid, pid;
    char end;

    if (colon == NULL || sscanf(colon, ":%lu:%lu:%lu%c", &uid, &gid, &pid, &end) != 3) {
        return -1;
    }
    return uid <= UINT32_MAX ? (int64_t)uid : -1;
}
