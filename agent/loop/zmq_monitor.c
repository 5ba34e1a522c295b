#include "agent/loop/zmq_monitor.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/loop/peername.h"

#define MONITOR_NAME_BYTES 64

/* No others are asked for: each is a message, sent by the thread that serves all connections. */
#define EVENTS_OF_BOTH                                                       \
    (ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |  \
     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | \
     ZMQ_EVENT_DISCONNECTED)
#define EVENTS_OF_LISTENER (EVENTS_OF_BOTH | ZMQ_EVENT_ACCEPTED)
#define EVENTS_OF_DIALLER (EVENTS_OF_BOTH | ZMQ_EVENT_CLOSED)

#define ROOM_FRAMES_MAX 8192 /* libzmq queues 2000 events of two frames */

static const char *const words[] = {[ZMQ_SEEN_NONE] = "none",
#define SEEN_WORD(name, word, sentence) [name] = word,
                                    ZMQ_EVENTS_SEEN(SEEN_WORD)
#undef SEEN_WORD
};

static const char *const sentences[] = {[ZMQ_SEEN_NONE] = "",
#define SEEN_SENTENCE(name, word, sentence) [name] = sentence,
                                        ZMQ_EVENTS_SEEN(SEEN_SENTENCE)
#undef SEEN_SENTENCE
};

const char *zmq_seen_word(enum zmq_seen seen)
{
    return seen < ZMQ_SEEN_COUNT ? words[seen] : "unknown";
}

const char *zmq_seen_sentence(enum zmq_seen seen)
{
    return seen < ZMQ_SEEN_COUNT ? sentences[seen] : "";
}

static void remember(struct zmq_monitor *monitor, int fd)
{
    if (monitor->n_handshakes == ZMQ_MONITOR_HANDSHAKES) {
        memmove(&monitor->handshakes[0], &monitor->handshakes[1],
                sizeof monitor->handshakes - sizeof monitor->handshakes[0]);
        monitor->n_handshakes--;
    }
    monitor->handshakes[monitor->n_handshakes].fd = fd;
    monitor->handshakes[monitor->n_handshakes].peer = peername_of(fd);
    monitor->n_handshakes++;
}

static struct endpoint forget(struct zmq_monitor *monitor, uint32_t index)
{
    struct endpoint peer = monitor->handshakes[index].peer;

    monitor->n_handshakes--;
    memmove(&monitor->handshakes[index], &monitor->handshakes[index + 1],
            (monitor->n_handshakes - index) * sizeof monitor->handshakes[0]);
    return peer;
}

/* libzmq does not say whose handshake succeeded. The newest: what is old is most likely silent. */
static struct endpoint forget_newest(struct zmq_monitor *monitor)
{
    return monitor->n_handshakes > 0 ? forget(monitor, monitor->n_handshakes - 1)
                                     : (struct endpoint){.port = 0};
}

static enum zmq_seen protocol_failure(uint32_t value)
{
    if (value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) {
        return ZMQ_SEEN_NO_KEY;
    }
    if (value == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC) {
        return ZMQ_SEEN_WRONG_KEY;
    }
    return ZMQ_SEEN_GARBAGE;
}

static void tell(struct zmq_monitor *monitor, const struct zmq_event *event)
{
    if (monitor->happened != NULL) {
        monitor->happened(monitor->user, event);
    }
}

static struct zmq_event pop_failure(struct zmq_monitor *monitor)
{
    struct zmq_event failure = monitor->failures[0];

    monitor->n_failures--;
    memmove(&monitor->failures[0], &monitor->failures[1],
            monitor->n_failures * sizeof monitor->failures[0]);
    return failure;
}

/* A failed handshake. A listener learns with the next event but which descriptor it was. */
static void failed(struct zmq_monitor *monitor, enum zmq_seen seen, uint32_t zap_status)
{
    const struct zmq_event event = {.seen = seen, .zap_status = zap_status};

    if (!monitor->is_listener) {
        tell(monitor, &event);
        return;
    }
    if (monitor->n_failures == ZMQ_MONITOR_FAILURES) {
        const struct zmq_event oldest = pop_failure(monitor);

        tell(monitor, &oldest);
    }
    monitor->failures[monitor->n_failures++] = event;
}

/* A descriptor that ends while it is under way belongs to the failure that was said last; without
 * one, libzmq has no word for it: it was no ZMTP. */
static void disconnected(struct zmq_monitor *monitor, int fd)
{
    struct zmq_event event = {.seen = ZMQ_SEEN_DISCONNECTED};

    for (uint32_t i = 0; i < monitor->n_handshakes; i++) {
        if (monitor->handshakes[i].fd == fd) {
            event.seen = ZMQ_SEEN_GARBAGE;
            event.peer = forget(monitor, i);
            break;
        }
    }
    if (monitor->n_failures > 0) {
        struct endpoint peer = event.peer;

        event = pop_failure(monitor);
        event.peer = peer;
    }
    tell(monitor, &event);
}

static void decode(struct zmq_monitor *monitor, uint16_t event, uint32_t value)
{
    struct zmq_event out = {.seen = ZMQ_SEEN_NONE};

    switch (event) {
    case ZMQ_EVENT_ACCEPTED:
        remember(monitor, (int)value);
        return;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        out.seen = ZMQ_SEEN_CONNECTED;
        out.peer = forget_newest(monitor);
        tell(monitor, &out);
        return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        failed(monitor, value == EAGAIN || value == ETIMEDOUT ? ZMQ_SEEN_SILENT : ZMQ_SEEN_GAVE_UP,
               0);
        return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        failed(monitor, protocol_failure(value), 0);
        return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        failed(monitor, ZMQ_SEEN_REFUSED, value);
        return;
    case ZMQ_EVENT_DISCONNECTED:
        disconnected(monitor, (int)value);
        return;
    case ZMQ_EVENT_CLOSED:
        if (!monitor->is_listener) {
            out.seen = ZMQ_SEEN_CONNECT_FAILED;
            tell(monitor, &out);
        }
        return;
    default:
        return;
    }
}

static void on_message(void *user, zmq_msg_t frames[], size_t n_frames)
{
    uint16_t event;
    uint32_t value;

    /* First frame: 16 bit event, 32 bit value, in the machine's order; second: the address. */
    if (n_frames == 0 || zmq_msg_size(&frames[0]) != sizeof event + sizeof value) {
        return;
    }
    const uint8_t *data = zmq_msg_data(&frames[0]);
    memcpy(&event, data, sizeof event);
    memcpy(&value, data + sizeof event, sizeof value);
    decode(user, event, value);
}

int zmq_monitor_start(struct zmq_monitor *monitor, struct zmq_hub *hub, void *context, void *socket,
                      bool is_listener)
{
    char name[MONITOR_NAME_BYTES];
    int linger_ms = 0;
    const struct zmq_hooks hooks = {.user = monitor, .message = on_message};

    *monitor = (struct zmq_monitor){.socket = socket, .is_listener = is_listener};
    /* Never used twice: a closed socket lets go of its name some time later. */
    snprintf(name, sizeof name, "inproc://monitor-%p-%llu", (void *)hub,
             (unsigned long long)hub->n_monitors++);
    void *pair = zmq_socket(context, ZMQ_PAIR);
    if (pair == NULL) {
        return ERR_LIMIT;
    }
    zmq_setsockopt(pair, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    if (zmq_socket_monitor(socket, name, is_listener ? EVENTS_OF_LISTENER : EVENTS_OF_DIALLER) !=
            0 ||
        zmq_connect(pair, name) != 0) {
        zmq_close(pair);
        return ERR_INTERNAL;
    }
    return zmq_watch_start(&monitor->watch, hub, pair, &hooks);
}

void zmq_monitor_set_hook(struct zmq_monitor *monitor,
                          void (*happened)(void *user, const struct zmq_event *event), void *user)
{
    monitor->happened = happened;
    monitor->user = user;
}

/* libzmq's thread holds a lock of the socket while it waits for room for an event, and the call
 * that ends the monitor takes that lock: make room first. */
static void make_room(struct zmq_monitor *monitor)
{
    zmq_msg_t frame;

    zmq_msg_init(&frame);
    for (int i = 0; i < ROOM_FRAMES_MAX; i++) {
        if (zmq_msg_recv(&frame, monitor->watch.socket, ZMQ_DONTWAIT) < 0) {
            break;
        }
    }
    zmq_msg_close(&frame);
}

void zmq_monitor_close(struct zmq_monitor *monitor, void (*closed)(void *user), void *user)
{
    make_room(monitor);
    zmq_socket_monitor(monitor->socket, NULL, 0);
    zmq_watch_close(&monitor->watch, closed, user);
}
