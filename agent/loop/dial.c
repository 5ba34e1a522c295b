#include "agent/loop/dial.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/addr.h"
#include "common/base/str.h"

#define REDIAL_MS_MIN 200
#define REDIAL_MS_MAX 2000
#define REFUSED_MS_MIN 1000 /* a peer that said 400 or 500 is asked again, but not often */
#define REFUSED_MS_MAX 10000
#define ZAP_STATUS_TRY_LATER 300

struct dial {
    struct dial_lane *lane;
    struct dial *next;
    void *user;
    struct dial_peer peer;
    struct zmq_watch watch;
    struct zmq_monitor monitor;
    uv_timer_t timer;                  /* the next attempt */
    size_t place;                      /* tried now */
    uint64_t cookie;                   /* of the question under way; 0 = none */
    char address[ENDPOINT_TEXT_BYTES]; /* numeric, connected to or being connected to */
    uint32_t n_failures;
    uint32_t n_refusals;
    bool is_up;
    bool is_unresolved;
    bool is_closing;
    bool must_reconnect; /* libzmq has given up on this address */
    int n_handles;       /* not closed yet */
};

static void disconnect(struct dial *dial)
{
    char endpoint[ENDPOINT_TEXT_BYTES + 8];

    if (dial->address[0] != '\0') {
        snprintf(endpoint, sizeof endpoint, "tcp://%s", dial->address);
        zmq_disconnect(dial->watch.socket, endpoint);
        zmq_watch_touched(&dial->watch);
        dial->address[0] = '\0';
        dial->is_up = false;
    }
    dial->must_reconnect = false;
}

/* To the current place's port at `addr`. Nothing if libzmq is at that already. */
static void connect_to(struct dial *dial, const struct addr *addr)
{
    struct endpoint to = {.addr = *addr, .port = dial->peer.places[dial->place].port};
    char text[ENDPOINT_TEXT_BYTES];
    char endpoint[ENDPOINT_TEXT_BYTES + 8];

    endpoint_format(&to, text);
    dial->is_unresolved = false;
    if (strcmp(text, dial->address) == 0 && !dial->must_reconnect) {
        return;
    }
    disconnect(dial);
    snprintf(endpoint, sizeof endpoint, "tcp://%s", text);
    if (zmq_connect(dial->watch.socket, endpoint) == 0) {
        memcpy(dial->address, text, sizeof text);
    }
    zmq_watch_touched(&dial->watch);
}

static void schedule(struct dial *dial, uint64_t delay_ms);

static void attempt(struct dial *dial)
{
    const struct dial_place *place = &dial->peer.places[dial->place];
    struct addr addr;

    if (addr_parse(place->host, &addr, NULL) == 0) {
        connect_to(dial, &addr);
        return;
    }
    if (dial->cookie != 0) {
        return; /* asked already */
    }
    dial->cookie = ++dial->lane->next_cookie;
    if (dial->lane->resolver_client == NULL ||
        resolver_ask(dial->lane->resolver_client, dial->cookie, place->host) != 0) {
        dial->cookie = 0;
        dial->is_unresolved = true;
        schedule(dial, REDIAL_MS_MAX);
    }
}

static void on_timer(uv_timer_t *timer)
{
    attempt(timer->data);
}

static void schedule(struct dial *dial, uint64_t delay_ms)
{
    uv_timer_start(&dial->timer, on_timer, delay_ms, 0);
}

static uint64_t backoff_ms(uint32_t n_attempts, uint64_t ms_min, uint64_t ms_max)
{
    uint64_t delay_ms = ms_min;

    for (uint32_t i = 1; i < n_attempts && delay_ms < ms_max; i++) {
        delay_ms *= 2;
    }
    return delay_ms < ms_max ? delay_ms : ms_max;
}

/* libzmq goes on trying the same address by itself; another place or another address of the name
 * is ours to find. */
static void failed(struct dial *dial)
{
    bool is_numeric;
    struct addr addr;

    dial->n_failures++;
    is_numeric = addr_parse(dial->peer.places[dial->place].host, &addr, NULL) == 0;
    if (dial->peer.n_places == 1 && is_numeric && !dial->must_reconnect) {
        return;
    }
    if (!uv_is_active((uv_handle_t *)&dial->timer)) {
        dial->place = (dial->place + 1) % dial->peer.n_places;
        schedule(dial, backoff_ms(dial->n_failures, REDIAL_MS_MIN, REDIAL_MS_MAX));
    }
}

static void refused(struct dial *dial, uint32_t zap_status)
{
    dial->n_refusals++;
    if (zap_status == ZAP_STATUS_TRY_LATER) {
        return; /* libzmq asks again by itself */
    }
    dial->must_reconnect = true;
    schedule(dial, backoff_ms(dial->n_refusals, REFUSED_MS_MIN, REFUSED_MS_MAX));
}

static void on_event(void *user, const struct zmq_event *event)
{
    struct dial *dial = user;
    bool was_up = dial->is_up;

    if (dial->is_closing) {
        return;
    }
    switch (event->seen) {
    case ZMQ_SEEN_CONNECTED:
        dial->is_up = true;
        dial->n_failures = 0;
        dial->n_refusals = 0;
        uv_timer_stop(&dial->timer);
        break;
    case ZMQ_SEEN_REFUSED:
        dial->is_up = false;
        refused(dial, event->zap_status);
        break;
    case ZMQ_SEEN_CONNECT_FAILED:
    case ZMQ_SEEN_DISCONNECTED:
    case ZMQ_SEEN_NO_KEY:
    case ZMQ_SEEN_WRONG_KEY:
    case ZMQ_SEEN_GARBAGE:
    case ZMQ_SEEN_SILENT:
    case ZMQ_SEEN_GAVE_UP:
        dial->is_up = false;
        failed(dial);
        break;
    case ZMQ_SEEN_NONE:
    case ZMQ_SEEN_COUNT:
        return;
    }
    bool is_news = dial->is_up != was_up || event->seen != ZMQ_SEEN_CONNECT_FAILED;
    if (is_news && dial->lane->hooks.changed != NULL) {
        dial->lane->hooks.changed(dial->lane->hooks.user, dial, dial->is_up, event);
    }
    if (!dial->is_closing && dial->is_up && !was_up && dial->lane->hooks.writable != NULL) {
        zmq_watch_want_write(&dial->watch);
    }
}

static void on_message(void *user, zmq_msg_t frames[], size_t n_frames)
{
    struct dial *dial = user;

    if (dial->lane->hooks.message != NULL) {
        dial->lane->hooks.message(dial->lane->hooks.user, dial, frames, n_frames);
    }
}

static void on_writable(void *user)
{
    struct dial *dial = user;

    if (dial->lane->hooks.writable != NULL) {
        dial->lane->hooks.writable(dial->lane->hooks.user, dial);
    }
}

static void on_answer(void *user, const struct resolver_answer *answer)
{
    struct dial_lane *lane = user;
    struct dial *dial = lane->first;

    while (dial != NULL && (dial->cookie != answer->cookie || dial->is_closing)) {
        dial = dial->next;
    }
    if (dial == NULL) {
        return;
    }
    dial->cookie = 0;
    if (strcmp(answer->host, dial->peer.places[dial->place].host) != 0) {
        attempt(dial); /* the places were changed meanwhile */
        return;
    }
    if (answer->err != 0) {
        dial->is_unresolved = true;
        dial->n_failures++;
        dial->place = (dial->place + 1) % dial->peer.n_places;
        schedule(dial, REDIAL_MS_MAX);
        return;
    }
    /* The next of its addresses at each failure, so that one that is dead is not in the way. */
    connect_to(dial, &answer->addresses[dial->n_failures % answer->n_addresses]);
}

int dial_lane_start(struct dial_lane *lane)
{
    if (lane->resolver == NULL) {
        return 0;
    }
    return resolver_client_open(lane->resolver, lane->hub->loop, on_answer, lane,
                                &lane->resolver_client);
}

static void copy_places(struct dial_peer *to, const struct dial_peer *from)
{
    assert(from->n_places > 0 && from->n_places <= DIAL_PLACES);
    memset(to->places, 0, sizeof to->places); /* so that equal places are equal byte for byte */
    for (size_t i = 0; i < from->n_places; i++) {
        str_copy(to->places[i].host, sizeof to->places[i].host, from->places[i].host);
        to->places[i].port = from->places[i].port;
    }
    to->n_places = from->n_places;
}

static void free_dial(struct dial *dial)
{
    struct dial **link = &dial->lane->first;

    while (*link != dial) {
        link = &(*link)->next;
    }
    *link = dial->next;
    free(dial);
}

static void handle_closed(struct dial *dial);

static void on_watch_closed(void *user)
{
    handle_closed(user);
}

static void on_timer_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

/* Three handles that close by themselves: watch, monitor, timer. */
static int open_handles(struct dial *dial, struct errmsg *err)
{
    struct dial_lane *lane = dial->lane;
    const struct zmq_hooks hooks = {.user = dial, .message = on_message, .writable = on_writable};
    void *socket;
    int rc = sock_dealer_open(&lane->sock, dial->peer.server_key, &socket, err);

    if (rc != 0) {
        return rc;
    }
    rc = zmq_monitor_start(&dial->monitor, lane->hub, lane->sock.context, socket, false);
    if (rc != 0) {
        zmq_close(socket);
        return errmsg_set(err, rc, "cannot watch the connection to node %llu",
                          (unsigned long long)dial->peer.peer_id);
    }
    zmq_monitor_set_hook(&dial->monitor, on_event, dial);
    uv_timer_init(lane->hub->loop, &dial->timer);
    dial->timer.data = dial;
    dial->next = lane->first;
    lane->first = dial;
    rc = zmq_watch_start(&dial->watch, lane->hub, socket, &hooks);
    dial->n_handles = rc == 0 ? 3 : 2;
    if (rc != 0) {
        dial->is_closing = true;
        zmq_watch_close(&dial->monitor.watch, on_watch_closed, dial);
        uv_close((uv_handle_t *)&dial->timer, on_timer_closed);
        errmsg_set(err, rc, "cannot watch the connection to node %llu",
                   (unsigned long long)dial->peer.peer_id);
    }
    return rc;
}

int dial_open(struct dial_lane *lane, const struct dial_peer *peer, struct dial **ret_dial,
              struct errmsg *err)
{
    struct dial *dial = calloc(1, sizeof *dial);

    if (dial == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for a connection to node %llu",
                          (unsigned long long)peer->peer_id);
    }
    dial->lane = lane;
    dial->peer.peer_id = peer->peer_id;
    memcpy(dial->peer.server_key, peer->server_key, CURVE_KEY_BYTES);
    copy_places(&dial->peer, peer);
    int rc = open_handles(dial, err);
    if (rc != 0) {
        if (dial->n_handles == 0) {
            free(dial);
        }
        return rc;
    }
    attempt(dial);
    *ret_dial = dial;
    return 0;
}

/* What a lane waits for when it closes. */
struct lane_closing {
    struct dial_lane *lane;
    void (*closed)(void *user);
    void *user;
    uv_idle_t idle;
};

static void handle_closed(struct dial *dial)
{
    if (--dial->n_handles == 0) {
        free_dial(dial);
    }
}

void dial_close(struct dial *dial)
{
    assert(!dial->is_closing);
    dial->is_closing = true;
    zmq_monitor_close(&dial->monitor, on_watch_closed, dial);
    zmq_watch_close(&dial->watch, on_watch_closed, dial);
    uv_close((uv_handle_t *)&dial->timer, on_timer_closed);
}

static void on_closing_freed(uv_handle_t *handle)
{
    struct lane_closing *closing = handle->data;
    void (*closed)(void *user) = closing->closed;
    void *user = closing->user;

    free(closing);
    if (closed != NULL) {
        closed(user);
    }
}

static void on_closing_idle(uv_idle_t *idle)
{
    struct lane_closing *closing = idle->data;

    if (closing->lane->first == NULL) {
        uv_close((uv_handle_t *)idle, on_closing_freed);
    }
}

void dial_lane_close(struct dial_lane *lane, void (*closed)(void *user), void *user)
{
    struct lane_closing *closing = calloc(1, sizeof *closing);

    for (struct dial *dial = lane->first; dial != NULL; dial = dial->next) {
        if (!dial->is_closing) {
            dial_close(dial);
        }
    }
    if (lane->resolver_client != NULL) {
        resolver_client_close(lane->resolver_client);
        lane->resolver_client = NULL;
    }
    if (closing == NULL) {
        abort(); /* at the end of the process, with nothing left to do without it */
    }
    *closing = (struct lane_closing){.lane = lane, .closed = closed, .user = user};
    uv_idle_init(lane->hub->loop, &closing->idle);
    closing->idle.data = closing;
    uv_idle_start(&closing->idle, on_closing_idle);
}

void dial_set_places(struct dial *dial, const struct dial_peer *peer)
{
    struct dial_peer before = dial->peer;

    copy_places(&dial->peer, peer);
    if (before.n_places == dial->peer.n_places &&
        memcmp(before.places, dial->peer.places, sizeof before.places) == 0) {
        return;
    }
    dial->place = 0;
    dial->n_failures = 0;
    attempt(dial);
}

uint64_t dial_peer_id(const struct dial *dial)
{
    return dial->peer.peer_id;
}

const uint8_t *dial_server_key(const struct dial *dial)
{
    return dial->peer.server_key;
}

bool dial_is_up(const struct dial *dial)
{
    return dial->is_up;
}

uint32_t dial_n_failures(const struct dial *dial)
{
    return dial->n_failures;
}

bool dial_is_unresolved(const struct dial *dial)
{
    return dial->is_unresolved;
}

const char *dial_address(const struct dial *dial)
{
    return dial->address;
}

void *dial_user(const struct dial *dial)
{
    return dial->user;
}

void dial_set_user(struct dial *dial, void *user)
{
    dial->user = user;
}

int dial_send(struct dial *dial, const struct zmq_part parts[], size_t n_parts)
{
    if (dial->is_closing) {
        return ERR_BUSY;
    }
    return zmq_watch_send(&dial->watch, parts, n_parts);
}

void dial_want_write(struct dial *dial)
{
    zmq_watch_want_write(&dial->watch);
}
