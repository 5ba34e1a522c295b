/* What happens to the connections of a socket: libzmq's monitor, decoded, and for a listening
 * socket the reason why a connection came to nothing.
 *
 * ZAP sees only what has got through the greeting; scanners, clients without a key and garbage end
 * before it and show here alone. */
#ifndef JURY_LOOP_ZMQ_MONITOR_H
#define JURY_LOOP_ZMQ_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/loop/zmq_hub.h"
#include "common/base/addr.h"

/* X(name, word, sentence) */
#define ZMQ_EVENTS_SEEN(X)                                                          \
    X(ZMQ_SEEN_CONNECTED, "connected", "the handshake succeeded")                   \
    X(ZMQ_SEEN_CONNECT_FAILED, "connect_failed", "nobody answers at that address")  \
    X(ZMQ_SEEN_DISCONNECTED, "disconnected", "the connection ended")                \
    X(ZMQ_SEEN_NO_KEY, "no_key", "it did not use CURVE")                            \
    X(ZMQ_SEEN_WRONG_KEY, "wrong_key", "it holds another public key for this node") \
    X(ZMQ_SEEN_GARBAGE, "garbage", "it did not speak ZMTP")                         \
    X(ZMQ_SEEN_SILENT, "silent", "it said nothing in time")                         \
    X(ZMQ_SEEN_GAVE_UP, "gave_up", "the connection ended during the handshake")     \
    X(ZMQ_SEEN_REFUSED, "refused", "the ZAP handler said no")

enum zmq_seen {
    ZMQ_SEEN_NONE = 0,
#define ZMQ_SEEN_ENUM(name, word, sentence) name,
    ZMQ_EVENTS_SEEN(ZMQ_SEEN_ENUM)
#undef ZMQ_SEEN_ENUM
    ZMQ_SEEN_COUNT
};
const char *zmq_seen_word(enum zmq_seen seen);
const char *zmq_seen_sentence(enum zmq_seen seen);

struct zmq_event {
    enum zmq_seen seen;
    uint32_t zap_status; /* ZMQ_SEEN_REFUSED: 300, 400 or 500; else 0 */
    /* Of the peer, listening sockets only. libzmq's events carry no address, so it is asked of the
     * descriptor; when handshakes overlap it may be another one's. */
    struct endpoint peer; /* ADDR_NONE: not known */
};

#define ZMQ_MONITOR_HANDSHAKES 64 /* connections under way that are remembered by descriptor */
#define ZMQ_MONITOR_FAILURES 8    /* whose descriptor is not known yet */

struct zmq_monitor {
    struct zmq_watch watch;
    void *socket; /* monitored */
    void (*happened)(void *user, const struct zmq_event *event);
    void *user;
    bool is_listener;
    uint32_t n_failures; /* said by libzmq, oldest first; the descriptor's end follows */
    struct zmq_event failures[ZMQ_MONITOR_FAILURES];
    uint32_t n_handshakes; /* oldest first */
    struct {
        int fd;
        struct endpoint peer;
    } handshakes[ZMQ_MONITOR_HANDSHAKES];
};

/* context, socket: kept until zmq_monitor_close. Call before binding or connecting, on the hub's
 * thread. Errors: ERR_LIMIT, ERR_INTERNAL. */
int zmq_monitor_start(struct zmq_monitor *monitor, struct zmq_hub *hub, void *context, void *socket,
                      bool is_listener);
/* Set before the first event can come: right after start. */
void zmq_monitor_set_hook(struct zmq_monitor *monitor,
                          void (*happened)(void *user, const struct zmq_event *event), void *user);
/* Before the monitored socket's watch is closed; memory as in zmq_watch_close. */
void zmq_monitor_close(struct zmq_monitor *monitor, void (*closed)(void *user), void *user);

#endif
