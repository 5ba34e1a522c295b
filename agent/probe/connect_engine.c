#include "agent/probe/connect_engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/probe/connect_attempt.h"
#include "agent/probe/connect_socket.h"
#include "agent/probe/connect_trace.h"
#include "agent/probe/probe_events.h"
#include "agent/probe/probe_note.h"
#include "common/base/clock.h"
#include "common/base/limits.h"

/* How long answers gather before they are looked at: by as much a probe may seem slower than it
 * was.
 */
#define CONNECT_QUIET_NS (NS_PER_MS / 2)

static struct connect_engine *of(struct probe_engine *engine)
{
    return (struct connect_engine *)engine;
}

/* A tcp check that says or wants more than a handshake. */
static bool has_line(const struct health_check *check)
{
    return check->type == CHECK_TYPE_TCP && check->tcp.expect.n_bytes > 0;
}

static void send_part(struct connect_engine *engine, struct attempt *attempt)
{
    if (has_line(attempt->probe.target->definition.check)) {
        attempt_send_line(engine, attempt);
    } else {
        attempt_send_request(engine, attempt);
    }
}

static void receive_part(struct connect_engine *engine, struct attempt *attempt)
{
    if (has_line(attempt->probe.target->definition.check)) {
        attempt_receive_line(engine, attempt);
    } else {
        attempt_receive(engine, attempt);
    }
}

static void complete_connect(struct connect_engine *engine, struct attempt *attempt)
{
    const struct health_check *check = attempt->probe.target->definition.check;

    attempt->is_established = true;
    if (probe_attempt_is_overdue(&attempt->probe)) {
        attempt_end_too_late(engine, attempt, REASON_CONNECT_TIMEOUT);
        return;
    }
    if (check_is_secured(check)) {
        attempt_begin_tls(engine, attempt);
        return;
    }
    if (check->type == CHECK_TYPE_GRPC) {
        attempt_begin_grpc(engine, attempt);
        return;
    }
    if (check->type == CHECK_TYPE_HTTP || has_line(check)) {
        if (has_line(check)) { /* its timer may be that of the look */
            connect_rst_end(engine, attempt);
            timers_set(&engine->places.timers, attempt_index(engine, attempt),
                       attempt->probe.deadline_ns);
        }
        attempt->step = STEP_SENDING;
        send_part(engine, attempt);
        return;
    }
    attempt_deliver(engine, attempt, REASON_OK);
    attempt_release(engine, attempt, check->tcp.close == TCP_CLOSE_FIN ? END_BY_FIN : END_BY_RST);
}

static void on_connecting(struct connect_engine *engine, struct attempt *attempt, uint32_t events)
{
    if ((events & EPOLLOUT) != 0 && (events & (EPOLLERR | EPOLLHUP)) == 0) {
        connect_trace_connecting(engine, attempt, REASON_NONE);
        complete_connect(engine, attempt);
        return;
    }
    enum probe_reason reason = connect_socket_error(attempt->fd);

    connect_trace_connecting(engine, attempt, reason);
    const struct health_check *check = attempt->probe.target->definition.check;
    if (reason == REASON_CONNECT_INTERRUPT && check->type == CHECK_TYPE_TCP && !has_line(check)) {
        reason = REASON_NONE; /* the SYN-ACK came, and this is all that is asked for */
    }
    if (reason != REASON_NONE) {
        attempt_end(engine, attempt, reason);
        return;
    }
    complete_connect(engine, attempt);
}

static void on_event(struct probe_engine *base, const struct epoll_event *event)
{
    struct connect_engine *engine = of(base);
    uint32_t place = connect_pool_place(&engine->pool, event->data.fd);

    if (place == NO_PLACE) {
        return;
    }
    struct attempt *attempt = &engine->attempts[place];
    if ((event->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        attempt->is_readable = true;
        attempt->has_fin = (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == EPOLLRDHUP;
    }
    switch ((enum attempt_step)attempt->step) {
    case STEP_CONNECTING:
        on_connecting(engine, attempt, event->events);
        break;
    case STEP_SENDING:
        send_part(engine, attempt);
        break;
    case STEP_RECEIVING:
        if (attempt->is_readable) {
            receive_part(engine, attempt);
        }
        break;
    case STEP_TALKING:
        if (attempt->tls != NULL) {
            attempt_run_tls(engine, attempt);
        } else {
            attempt_run_grpc(engine, attempt);
        }
        break;
    case STEP_LINGERING:
        attempt_linger(engine, attempt);
        break;
    case STEP_FREE:
    case STEP_REFUSED:
        break;
    }
}

static void on_timer(struct connect_engine *engine, struct attempt *attempt)
{
    switch ((enum attempt_step)attempt->step) {
    case STEP_REFUSED:
        attempt_end(engine, attempt, (enum probe_reason)attempt->probe.refused_reason);
        break;
    case STEP_CONNECTING:
        if (connect_rst_look(engine, attempt)) {
            timers_set(&engine->places.timers, attempt_index(engine, attempt),
                       attempt->probe.deadline_ns);
            break;
        }
        probe_note(&engine->base, PROBE_STEP_DEADLINE);
        connect_rst_send(engine, attempt);
        attempt_end(engine, attempt, REASON_CONNECT_TIMEOUT);
        break;
    case STEP_SENDING:
    case STEP_RECEIVING:
    case STEP_TALKING:
        probe_note(&engine->base, PROBE_STEP_DEADLINE);
        attempt_end(engine, attempt, REASON_RECV_RESPONSE_TIMEOUT);
        break;
    case STEP_LINGERING:
        attempt_release(engine, attempt, END_BY_RST);
        break;
    case STEP_FREE:
        assert(false); /* a free attempt has no timer */
        break;
    }
}

/* What is overdue now is judged after everything that is ready has been served: an answer that is
 * there is never taken for silence, wherever in this function the thread is held up. */
static void engine_run(struct probe_engine *base, const struct probe_sink *sink)
{
    struct connect_engine *engine = of(base);
    uint64_t now_ns = clock_monotonic_ns();
    uint32_t place;

    if (engine->pool.n_fds == 0 && engine->places.n_taken == 0) {
        return; /* nothing to ask the kernel for yet; later, kept sockets may have events, too */
    }
    engine->sink = sink;
    connect_trace_look(engine);
    connect_rst_drain(engine);
    if (probe_events_serve(base, on_event) > 0) {
        base->quiet_ns = now_ns + CONNECT_QUIET_NS;
    }
    while (timers_pop(&engine->places.timers, now_ns, &place)) {
        on_timer(engine, &engine->attempts[place]);
    }
    base->has_expected = engine->places.n_taken > 0;
    engine->sink = NULL;
}

static uint64_t engine_next_ns(const struct probe_engine *base)
{
    const struct connect_engine *engine = (const struct connect_engine *)base;

    return timers_next(&engine->places.timers);
}

static void engine_abandon(struct probe_engine *base, uint32_t slot)
{
    struct connect_engine *engine = of(base);
    uint32_t place = probe_places_of_slot(&engine->places, slot);

    if (place != NO_PLACE) {
        attempt_release(engine, &engine->attempts[place], END_BY_RST);
    }
}

static void engine_submit(struct probe_engine *base, const struct probe_target *target)
{
    struct connect_engine *engine = of(base);

    assert((base->capabilities & probe_capability_of(&target->definition)) != 0);
    engine_abandon(base, target->id.slot); /* at most one that lingers */
    if (!probe_places_have_room(&engine->places)) {
        assert(engine->linger_oldest != NO_PLACE);
        attempt_release(engine, &engine->attempts[engine->linger_oldest], END_BY_RST);
    }
    uint32_t place = probe_places_take(&engine->places, target->id.slot);
    struct attempt *attempt = &engine->attempts[place];
    connect_rst_prepare(engine, attempt, target);
    uint64_t start_ns;
    enum probe_reason reason = connect_socket_open(target, &engine->pool, &start_ns, &attempt->fd);
    attempt->probe = probe_attempt_begin(target, engine->lateness, start_ns);
    attempt->probe.refused_reason = (uint8_t)reason;
    attempt->step = reason == REASON_NONE ? STEP_CONNECTING : STEP_REFUSED;
    base->quiet_ns = start_ns + CONNECT_QUIET_NS;
    base->has_expected = true;
    http_reply_init(&attempt->reply);
    if (reason == REASON_NONE) {
        connect_pool_serve(&engine->pool, attempt->fd, place);
    }
    connect_trace_opened(engine, attempt);
    timers_set(&engine->places.timers, place,
               reason == REASON_NONE ? connect_rst_look_ns(engine, attempt) : start_ns);
}

static void engine_free(struct probe_engine *base)
{
    struct connect_engine *engine = of(base);

    for (uint32_t i = 0; engine->attempts != NULL && i < base->capacity; i++) {
        if (engine->attempts[i].step != STEP_FREE) {
            attempt_release(engine, &engine->attempts[i], END_BY_RST);
        }
    }
    silent_ways_close(&engine->ways);
    connect_pool_close(&engine->pool);
    if (base->fd >= 0) {
        close(base->fd);
    }
    connect_engine_drop_tls(engine);
    connect_rst_close(engine);
    probe_places_close(&engine->places);
    free(engine->attempts);
    free(engine);
}

static const struct probe_engine_ops ops = {
    .free = engine_free,
    .submit = engine_submit,
    .abandon = engine_abandon,
    .next_ns = engine_next_ns,
    .run = engine_run,
};

int connect_engine_new(uint32_t capacity, const struct probe_lateness *lateness,
                       struct probe_engine **ret_engine, struct errmsg *err)
{
    assert(capacity >= 1 && capacity <= LIMIT_PROBES_IN_FLIGHT);
    struct connect_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL) {
        return errmsg_set(err, ERR_NOMEM, "probe engine \"connect\": out of memory");
    }
    engine->base = (struct probe_engine){
        .ops = &ops,
        .name = "connect",
        .counted_as = PROBE_N_BY_CONNECT,
        .capabilities = PROBE_CAN_TCP_FULL | PROBE_CAN_HTTP,
        .capacity = capacity,
        .fd = epoll_create1(EPOLL_CLOEXEC),
    };
    int epoll_errnum = errno;
    engine->lateness = lateness;
    connect_pool_init(&engine->pool, engine->base.fd);
    engine->linger_oldest = NO_PLACE;
    engine->linger_youngest = NO_PLACE;
    engine->attempts = calloc(capacity, sizeof *engine->attempts);
    if (engine->base.fd < 0) {
        engine_free(&engine->base);
        return errmsg_set(err, err_from_errno(epoll_errnum), "probe engine \"connect\": epoll: %s",
                          strerror(epoll_errnum));
    }
    if (engine->attempts == NULL || probe_places_init(&engine->places, capacity) != 0) {
        engine_free(&engine->base);
        return errmsg_set(err, ERR_NOMEM, "probe engine \"connect\": out of memory");
    }
    for (uint32_t i = 0; i < capacity; i++) {
        engine->attempts[i].fd = -1;
    }
    *ret_engine = &engine->base;
    return 0;
}
