/* The one place where ZeroMQ sockets meet libuv.
 *
 * ZMQ_FD is a wake-up and not a readiness flag: it tells of commands for the socket, and any call
 * on the socket may consume it. Serving one message an event loses the rest. So after each call on
 * a socket a hub looks at its ZMQ_EVENTS before the loop may sleep, reads until nothing is left (at
 * most ZMQ_HUB_DRAIN messages a socket and turn; then an idle handle keeps the loop awake), and
 * looks once more until a look found nothing (raft-zmq.md rules 19-22). A look that found nothing
 * was the last call, so whatever comes later makes the descriptor readable: the hub leaves such a
 * socket alone, for a look costs two system calls and a busy loop turns some hundred times a second
 * with some dozens of sockets. All the same it looks at all of them each ZMQ_HUB_LOOK_MS.
 *
 * One hub a loop; everything here belongs to that loop's thread. A socket is given to its watch and
 * closed by it. */
#ifndef JURY_LOOP_ZMQ_HUB_H
#define JURY_LOOP_ZMQ_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>
#include <zmq.h>

#include "agent/loop/sock.h"
#include "common/base/err.h"

#define ZMQ_HUB_DRAIN 256 /* messages read from one socket before others get their turn */
#define ZMQ_HUB_LOOK_MS 100
#define ZMQ_HUB_FRAMES 8 /* frames a message; more are read, dropped and counted */

struct zmq_watch;

struct zmq_hub {
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_idle_t idle;
    struct zmq_watch *first;
    bool is_idle_on;
    uint64_t looked_ms;         /* at all, by the loop's clock */
    uint64_t n_monitors;        /* for unique names, zmq_monitor.h */
    uint64_t n_messages;        /* read */
    uint64_t n_found_late;      /* messages that no descriptor event had announced */
    uint64_t n_too_many_frames; /* dropped messages */
};

/* Starts looking. libuv runs the youngest prepare handle first: start the hub after raft_start, so
 * that messages come in before raft_uv fires its callbacks (raft-022.md rule 3).
 * Errors: ERR_INTERNAL. */
int zmq_hub_start(struct zmq_hub *hub, uv_loop_t *loop);
/* Look before all prepare handles that are there now: for a hub that had to be started earlier. */
void zmq_hub_go_first(struct zmq_hub *hub);
/* zmq_watch_close was called for every watch; their sockets may still be closing. The hub's memory
 * must last until the loop has run its close callbacks. */
void zmq_hub_stop(struct zmq_hub *hub);

struct zmq_hooks {
    void *user;
    /* One whole message, 1..ZMQ_HUB_FRAMES frames, borrowed. May close any watch, also its own. */
    void (*message)(void *user, zmq_msg_t frames[], size_t n_frames);
    /* There is room again after zmq_watch_want_write; NULL = never asked for. */
    void (*writable)(void *user);
};

struct zmq_watch {
    struct zmq_hub *hub;
    struct zmq_watch *next;
    void *socket;
    struct zmq_hooks hooks;
    uv_poll_t poll;
    void (*closed)(void *user);
    void *closed_user;
    bool is_closing;
    bool wants_write;
    bool has_more; /* stopped at ZMQ_HUB_DRAIN */
    bool is_due;   /* to be looked at before the loop sleeps */
};

/* socket: taken, also on failure. Options are set before. Errors: ERR_INTERNAL, ERR_LIMIT. */
int zmq_watch_start(struct zmq_watch *watch, struct zmq_hub *hub, void *socket,
                    const struct zmq_hooks *hooks);
/* No hook runs after this call. The socket is closed and closed(user) called when libuv has let go
 * of the descriptor; the watch's memory must last until then. closed may be NULL. */
void zmq_watch_close(struct zmq_watch *watch, void (*closed)(void *user), void *user);

/* After a call on the socket that is none of these, such as zmq_connect. */
void zmq_watch_touched(struct zmq_watch *watch);

/* Ask for one call of `writable`. */
void zmq_watch_want_write(struct zmq_watch *watch);

struct zmq_part {
    const void *data;
    size_t n_bytes;
};

/* One message of n_parts frames, copied; all or nothing, never waits.
 * Errors: ERR_BUSY (the queue is full or nobody is connected), ERR_UNREACHABLE (a ROUTER's peer is
 * gone), ERR_INTERNAL. */
int zmq_watch_send(struct zmq_watch *watch, const struct zmq_part parts[], size_t n_parts);
/* Likewise, not copied. Close each frame afterwards in any case. */
int zmq_watch_send_frames(struct zmq_watch *watch, zmq_msg_t frames[], size_t n_frames);

/* The authenticated "role:id" of the connection a frame came on (zap.h), or "" without one. */
const char *zmq_frame_user_id(zmq_msg_t *frame);
/* The public key of the peer's handshake. False: it made none by CURVE. */
bool zmq_frame_key(zmq_msg_t *frame, uint8_t ret_key[CURVE_KEY_BYTES]);
/* User id of the process at the other end of a unix socket, as the kernel knew it when it
 * connected; -1 = not known. */
int64_t zmq_frame_uid(zmq_msg_t *frame);

#endif
