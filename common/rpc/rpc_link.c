#include "common/rpc/rpc_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/units.h"

#define HANDSHAKE_MS 5000
#define WATCHED_EVENTS                                                                             \
    (ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED | \
     ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |                             \
     ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)

static bool set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool set_curve(void *socket, const struct public_key *server_key, const struct key_pair *key)
{
    return zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server_key->bytes, PUBLIC_KEY_BYTES) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, key->public_key.bytes, PUBLIC_KEY_BYTES) ==
               0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, key->secret, SECRET_KEY_BYTES) == 0;
}

static bool set_options(void *socket)
{
    int64_t bytes_max = LIMIT_RPC_MESSAGE_BYTES;

    /* IMMEDIATE: nothing is queued for a peer that is not there, so a send means a connection. */
    return set_int(socket, ZMQ_LINGER, 0) && set_int(socket, ZMQ_IMMEDIATE, 1) &&
           set_int(socket, ZMQ_IPV6, 1) && set_int(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) &&
           set_int(socket, ZMQ_HEARTBEAT_IVL, 1000) &&
           set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, 3000) &&
           zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &bytes_max, sizeof bytes_max) == 0;
}

static bool open_monitor(struct rpc_link *link, void *context)
{
    char address[64];

    snprintf(address, sizeof address, "inproc://rpc-link-%p", link->socket);
    if (zmq_socket_monitor(link->socket, address, WATCHED_EVENTS) != 0) {
        return false;
    }
    link->monitor = zmq_socket(context, ZMQ_PAIR);
    return link->monitor != NULL && set_int(link->monitor, ZMQ_LINGER, 0) &&
           zmq_connect(link->monitor, address) == 0;
}

int rpc_link_open(struct rpc_link *link, void *context, const struct link_target *to,
                  struct errmsg *err)
{
    *link = (struct rpc_link){.socket = zmq_socket(context, ZMQ_DEALER),
                              .has_keys = to->server_key != NULL};
    if (link->socket == NULL || !set_options(link->socket) ||
        (to->server_key != NULL && !set_curve(link->socket, to->server_key, to->key)) ||
        !open_monitor(link, context)) {
        int errnum = errno;

        rpc_link_close(link);
        return errmsg_set(err, ERR_IO, "cannot open a socket: %s", zmq_strerror(errnum));
    }
    if (zmq_connect(link->socket, to->address) != 0) {
        int errnum = errno;

        rpc_link_close(link);
        return errmsg_set(err, ERR_USAGE, "endpoint \"%s\": %s", to->address, zmq_strerror(errnum));
    }
    return 0;
}

void rpc_link_close(struct rpc_link *link)
{
    if (link->socket != NULL) {
        zmq_socket_monitor(link->socket, NULL, 0);
        zmq_close(link->socket);
    }
    if (link->monitor != NULL) {
        zmq_close(link->monitor);
    }
    *link = (struct rpc_link){0};
}

static long left_ms(uint64_t until_ns)
{
    uint64_t now_ns = clock_monotonic_ns();

    return now_ns >= until_ns ? 0 : (long)((until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
}

/* The next event of the monitor, or 0 when there is none now. */
static uint16_t next_event(struct rpc_link *link)
{
    uint16_t event = 0;
    zmq_msg_t frame;
    bool has_more = true;

    for (int i = 0; has_more; i++) {
        zmq_msg_init(&frame);
        if (zmq_msg_recv(&frame, link->monitor, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&frame);
            return 0;
        }
        if (i == 0 && zmq_msg_size(&frame) >= sizeof event) {
            memcpy(&event, zmq_msg_data(&frame), sizeof event);
        }
        has_more = zmq_msg_more(&frame) != 0;
        zmq_msg_close(&frame);
    }
    return event;
}

/* An agent that does not know the key (ZAP 300) hangs up without a word, and so does one whose own
 * key is another. On the unix socket there are no keys: there it has just died. */
static enum link_end hung_up(const struct rpc_link *link)
{
    return link->has_keys ? LINK_DENIED : LINK_LOST;
}

/* What an event means before the handshake is done; LINK_SILENT: go on. */
static enum link_end before_ready(struct rpc_link *link, uint16_t event)
{
    switch (event) {
    case ZMQ_EVENT_CONNECTED:
        link->was_connected = true;
        return LINK_SILENT;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        link->is_ready = true;
        return LINK_ANSWERED;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    case ZMQ_EVENT_DISCONNECTED:
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        return hung_up(link);
    case ZMQ_EVENT_CLOSED:
    case ZMQ_EVENT_CONNECT_RETRIED:
        return link->was_connected ? hung_up(link) : LINK_REFUSED;
    default:
        return LINK_SILENT;
    }
}

enum link_end rpc_link_wait_ready(struct rpc_link *link, uint64_t until_ns)
{
    zmq_pollitem_t item = {.socket = link->monitor, .events = ZMQ_POLLIN};

    while (!link->is_ready) {
        uint16_t event = next_event(link);

        if (event != 0) {
            enum link_end end = before_ready(link, event);
            if (end != LINK_SILENT) {
                return end;
            }
            continue;
        }
        long timeout_ms = left_ms(until_ns);
        if (timeout_ms == 0) {
            return link->was_connected ? LINK_NO_HANDSHAKE : LINK_REFUSED;
        }
        zmq_poll(&item, 1, timeout_ms);
    }
    return LINK_ANSWERED;
}

bool rpc_link_send(struct rpc_link *link, const struct link_frames *frames)
{
    return zmq_send(link->socket, "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT) == 0 &&
           zmq_send(link->socket, frames->envelope, frames->n_envelope_bytes,
                    ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
           zmq_send(link->socket, frames->payload, frames->n_payload_bytes, ZMQ_DONTWAIT) >= 0;
}

/* [empty][envelope][payload]. False: nothing there, or a message of another form. */
static bool take_answer(struct rpc_link *link, struct link_answer *answer, bool *ret_is_empty)
{
    zmq_msg_t frame;
    bool has_more = true;
    int n_frames = 0;

    zmq_msg_init(&answer->envelope);
    zmq_msg_init(&answer->payload);
    *ret_is_empty = false;
    while (has_more) {
        zmq_msg_init(&frame);
        if (zmq_msg_recv(&frame, link->socket, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&frame);
            *ret_is_empty = n_frames == 0;
            break;
        }
        has_more = zmq_msg_more(&frame) != 0;
        if (n_frames == 1) {
            zmq_msg_move(&answer->envelope, &frame);
        } else if (n_frames == 2) {
            zmq_msg_move(&answer->payload, &frame);
        } else if (n_frames == 0 && zmq_msg_size(&frame) != 0) {
            n_frames = 8; /* no delimiter: whatever follows, it is not an answer */
        }
        n_frames++;
        zmq_msg_close(&frame);
    }
    if (n_frames == 3 && !has_more) {
        return true;
    }
    zmq_msg_close(&answer->envelope);
    zmq_msg_close(&answer->payload);
    return false;
}

enum link_end rpc_link_receive(struct rpc_link *link, uint64_t until_ns,
                               struct link_answer *ret_answer)
{
    zmq_pollitem_t items[] = {{.socket = link->socket, .events = ZMQ_POLLIN},
                              {.socket = link->monitor, .events = ZMQ_POLLIN}};

    for (;;) {
        bool is_empty;

        if (take_answer(link, ret_answer, &is_empty)) {
            return LINK_ANSWERED;
        }
        if (!is_empty) {
            continue;
        }
        uint16_t event = next_event(link);
        if (event == ZMQ_EVENT_DISCONNECTED || event == ZMQ_EVENT_CLOSED) {
            return LINK_LOST;
        }
        if (event != 0) {
            continue;
        }
        long timeout_ms = left_ms(until_ns);
        if (timeout_ms == 0) {
            return LINK_SILENT;
        }
        zmq_poll(items, 2, timeout_ms);
    }
}
