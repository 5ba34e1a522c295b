#include "agent/probe/udp_engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "agent/core/udp_evidence.h"
#include "agent/core/udp_reply.h"
#include "agent/probe/echo_socket.h"
#include "agent/probe/probe_attempt.h"
#include "agent/probe/probe_buckets.h"
#include "agent/probe/probe_events.h"
#include "agent/probe/probe_note.h"
#include "agent/probe/probe_places.h"
#include "agent/probe/udp_socket.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

#define HEARD_MAX 16          /* things heard of one probe: the first that matters ends it */
#define ECHO_TOKEN UINT64_MAX /* of the raw sockets; attempts have smaller ones */
#define ECHOES_PER_RUN 4096

struct udp_attempt {
    struct probe_attempt probe;
    struct hash128 token; /* of its echo request */
    uint64_t n_dropped;   /* the engine's, when it began */
    int fd;               /* -1 = refused: it is in no bucket */
    bool is_answered;     /* a datagram came */
    bool is_echoed;
};

struct udp_engine {
    struct probe_engine base; /* first */
    const struct probe_lateness *lateness;
    struct silent_ways ways;
    struct probe_counters *counters;
    const struct probe_sink *sink; /* inside run */
    struct echo_socket echo;       /* descriptors -1 without rights */
    struct hash_key key;           /* secret: what is unpredictable comes from it */
    uint64_t nonce;
    bool is_used;       /* a probe has been submitted */
    uint64_t n_dropped; /* echo replies that the kernel had no room for */
    struct udp_evidence evidence;
    struct probe_places places;   /* timers: the deadline */
    struct probe_buckets buckets; /* which probes look at the same address and port */
    struct udp_attempt *attempts; /* by place */
};

static struct udp_engine *of(struct probe_engine *engine)
{
    return (struct udp_engine *)engine;
}

static uint32_t index_of(const struct udp_engine *engine, const struct udp_attempt *attempt)
{
    return (uint32_t)(attempt - engine->attempts);
}

static const struct udp_check *check_of(const struct udp_attempt *attempt)
{
    return &attempt->probe.target->definition.check->udp;
}

/* --- the life of a probe --- */

static struct udp_attempt *take(struct udp_engine *engine, const struct probe_target *target)
{
    struct udp_attempt *attempt =
        &engine->attempts[probe_places_take(&engine->places, target->id.slot)];

    *attempt = (struct udp_attempt){
        .probe = probe_attempt_begin(target, engine->lateness, clock_monotonic_ns()),
        .n_dropped = engine->n_dropped,
        .fd = -1,
    };
    return attempt;
}

static void release(struct udp_engine *engine, struct udp_attempt *attempt)
{
    uint32_t place = index_of(engine, attempt);

    assert(attempt->probe.target != NULL);
    if (attempt->fd >= 0) {
        probe_buckets_leave(&engine->buckets, place);
        close(attempt->fd);
    }
    *attempt = (struct udp_attempt){.fd = -1};
    probe_places_release(&engine->places, place);
}

static void end(struct udp_engine *engine, struct udp_attempt *attempt, struct probe_ending ending)
{
    struct probe_result result =
        probe_attempt_result(&attempt->probe, engine->lateness, &engine->ways, ending);

    engine->sink->result(engine->sink->user, &result);
    release(engine, attempt);
}

static enum probe_reason send_echo(struct udp_engine *engine, struct udp_attempt *attempt)
{
    const uint64_t seed[2] = {index_of(engine, attempt), ++engine->nonce};

    attempt->token = hash_128(&engine->key, seed, sizeof seed);
    const struct icmp_echo echo = {
        .id = engine->echo.id, .index = index_of(engine, attempt), .token = attempt->token};
    enum probe_reason reason = echo_socket_send(&engine->echo, attempt->probe.target, &echo);

    if (reason == REASON_NONE) {
        probe_note(&engine->base, PROBE_STEP_ECHO_SENT);
    }
    return reason;
}

/* It left with the socket that was opened for it. */
static void note_datagram(struct udp_engine *engine, const struct udp_attempt *attempt)
{
    const struct check_data *payload = &check_of(attempt)->payload;

    if (engine->base.trace != NULL) {
        probe_step_set_bytes(
            probe_trace_add(engine->base.trace, attempt->probe.start_ns, PROBE_STEP_DATAGRAM_SENT),
            payload->bytes, payload->n_bytes);
    }
}

static enum probe_reason begin(struct udp_engine *engine, struct udp_attempt *attempt)
{
    const struct probe_target *target = attempt->probe.target;
    uint32_t place = index_of(engine, attempt);
    enum probe_reason reason = udp_socket_open(
        target, engine->base.fd, probe_places_token(&engine->places, place), &attempt->fd);

    if (reason != REASON_NONE) {
        return reason;
    }
    probe_buckets_enter(&engine->buckets,
                        probe_buckets_find(&engine->buckets, &target->definition.to, 0), place);
    probe_note_source(&engine->base, attempt->fd);
    note_datagram(engine, attempt);
    return check_of(attempt)->method == UDP_PORT_ECHO ? send_echo(engine, attempt) : REASON_NONE;
}

static void engine_abandon(struct probe_engine *base, uint32_t slot)
{
    struct udp_engine *engine = of(base);
    uint32_t place = probe_places_of_slot(&engine->places, slot);

    if (place != NO_PLACE) {
        release(engine, &engine->attempts[place]);
    }
}

static void engine_submit(struct probe_engine *base, const struct probe_target *target)
{
    struct udp_engine *engine = of(base);

    assert((base->capabilities & probe_capability_of(&target->definition)) != 0);
    engine->is_used = true;
    struct udp_attempt *attempt = take(engine, target);
    enum probe_reason reason = begin(engine, attempt);
    attempt->probe.refused_reason = (uint8_t)reason;
    timers_set(&engine->places.timers, index_of(engine, attempt),
               reason != REASON_NONE ? attempt->probe.start_ns : attempt->probe.deadline_ns);
}

/* --- what was heard --- */

/* One of them was told: all that look at the same address and port fail by it. One that has had its
 * datagram waits for nothing of the kind (S98). */
static void take_refusal(struct udp_engine *engine, struct udp_attempt *told)
{
    const struct endpoint at = told->probe.target->definition.to;
    uint32_t place =
        probe_buckets_first(&engine->buckets, probe_buckets_find(&engine->buckets, &at, 0));

    udp_evidence_refused(&engine->evidence, &at, clock_monotonic_ns());
    while (place != NO_PLACE) {
        struct udp_attempt *attempt = &engine->attempts[place];

        place = probe_buckets_next(&engine->buckets, place);
        if (endpoint_compare(&attempt->probe.target->definition.to, &at) != 0 ||
            (attempt != told &&
             (attempt->is_answered || attempt->probe.refused_reason != REASON_NONE ||
              plant_is("udp-own-evidence")))) {
            continue;
        }
        if (attempt != told) {
            probe_counters_add(engine->counters, PROBE_N_REFUSALS_SHARED, 1);
            udp_evidence_presumed(&engine->evidence, &at, clock_monotonic_ns());
        }
        end(engine, attempt,
            (struct probe_ending){.reason = REASON_PORT_UNREACHABLE,
                                  .is_refused = attempt == told});
    }
}

static void take_datagram(struct udp_engine *engine, struct udp_attempt *attempt,
                          const uint8_t bytes[], size_t n_bytes)
{
    const struct udp_check *check = check_of(attempt);
    struct probe_ending ending = {.reason = REASON_OK};

    udp_evidence_answered(&engine->evidence, &attempt->probe.target->definition.to);
    attempt->is_answered = true;
    if (check->method == UDP_PORT_ECHO && !attempt->is_echoed) {
        return;
    }
    if (check->method == UDP_EXCHANGE && !udp_reply_matches(check, bytes, n_bytes)) {
        ending.reason = REASON_RESPONSE_MISMATCH;
    }
    if (check->method == UDP_EXCHANGE && probe_attempt_is_overdue(&attempt->probe)) {
        ending = (struct probe_ending){.reason = REASON_RECV_RESPONSE_TIMEOUT, .is_answered = true};
    }
    end(engine, attempt, ending);
}

/* Returns whether the probe has ended. */
static bool take_one(struct udp_engine *engine, struct udp_attempt *attempt, enum udp_heard heard)
{
    switch (heard) {
    case UDP_HEARD_REFUSED:
        if (plant_is("udp-icmp-ignored")) {
            return false;
        }
        take_refusal(engine, attempt);
        return true;
    case UDP_HEARD_UNREACHABLE:
        end(engine, attempt, (struct probe_ending){.reason = REASON_CONNECT_FAILED});
        return true;
    case UDP_HEARD_OTHER:
        probe_counters_add(engine->counters, PROBE_N_ICMP_IGNORED, 1);
        break;
    case UDP_HEARD_DATAGRAM:
    case UDP_HEARD_NOTHING:
        break;
    }
    return false;
}

/* Returns whether the probe has ended. */
static bool serve(struct udp_engine *engine, struct udp_attempt *attempt)
{
    const struct addr *backend = &attempt->probe.target->definition.to.addr;
    struct udp_news news;
    uint64_t token = probe_places_token(&engine->places, index_of(engine, attempt));

    for (unsigned n = 0; n < HEARD_MAX; n++) {
        enum udp_heard heard = udp_socket_hear(attempt->fd, backend, &news);

        if (heard == UDP_HEARD_NOTHING) {
            return false;
        }
        if (news.told.sender.family != ADDR_NONE) {
            probe_note_icmp(&engine->base, &news.told.sender, news.told.type, news.told.code);
        }
        if (heard == UDP_HEARD_DATAGRAM) {
            probe_note_bytes(&engine->base, PROBE_STEP_DATAGRAM_RECEIVED, news.bytes, news.n_bytes);
            take_datagram(engine, attempt, news.bytes, news.n_bytes);
        }
        if (take_one(engine, attempt, heard) ||
            probe_places_of_token(&engine->places, token) == NO_PLACE) {
            return true;
        }
    }
    return false;
}

/* A reply belongs to the one probe that has its secret, and comes from its backend. */
static void take_echo(struct udp_engine *engine, const struct icmp_echo *echo,
                      const struct addr *from)
{
    struct udp_attempt *attempt =
        echo->index < engine->base.capacity ? &engine->attempts[echo->index] : NULL;

    if (attempt == NULL || attempt->probe.target == NULL || attempt->fd < 0 ||
        check_of(attempt)->method != UDP_PORT_ECHO ||
        memcmp(&attempt->token, &echo->token, sizeof echo->token) != 0 ||
        addr_compare(&attempt->probe.target->definition.to.addr, from) != 0) {
        probe_counters_add(engine->counters, PROBE_N_ICMP_IGNORED, 1);
        return;
    }
    probe_note(&engine->base, PROBE_STEP_ECHO_RECEIVED);
    if (probe_attempt_is_overdue(&attempt->probe)) {
        end(engine, attempt,
            (struct probe_ending){.reason = REASON_NO_ECHO_REPLY, .is_answered = true});
        return;
    }
    attempt->is_echoed = true;
    if (attempt->is_answered) {
        end(engine, attempt, (struct probe_ending){.reason = REASON_OK});
    }
}

static void take_echoes(struct udp_engine *engine)
{
    struct icmp_echo echo;
    struct addr from;

    for (unsigned n = 0; n < ECHOES_PER_RUN && echo_socket_next(&engine->echo, &echo, &from); n++) {
        take_echo(engine, &echo, &from);
    }
}

/* --- time --- */

/* What a pass by silence comes to, and what silence is where an answer was wanted. */
static enum probe_reason judge_silence(struct udp_engine *engine, const struct udp_attempt *attempt,
                                       enum probe_reason if_silent)
{
    const struct target_definition *definition = &attempt->probe.target->definition;
    enum udp_silence silence =
        udp_evidence_judge(&engine->evidence, &definition->to, attempt->probe.start_ns,
                           definition->check->interval_ms * NS_PER_MS);

    switch (silence) {
    case UDP_SILENCE_REFUSED:
        probe_counters_add(engine->counters, PROBE_N_REFUSALS_SHARED, 1);
        return REASON_PORT_UNREACHABLE;
    case UDP_SILENCE_LIMITED:
        return probe_reason_class(if_silent) == PROBE_PASS ? REASON_ICMP_LIMITED : if_silent;
    case UDP_SILENCE_HOLDS:
        break;
    }
    return if_silent;
}

static enum probe_reason judge_timeout(struct udp_engine *engine, const struct udp_attempt *attempt)
{
    switch ((enum udp_method)check_of(attempt)->method) {
    case UDP_PORT_ECHO:
        if (attempt->is_echoed) {
            return judge_silence(engine, attempt, REASON_ECHO);
        }
        if (engine->n_dropped != attempt->n_dropped) {
            return REASON_LOCAL_NO_BUFFER;
        }
        return attempt->is_answered ? REASON_NO_ECHO_REPLY
                                    : judge_silence(engine, attempt, REASON_NO_ECHO_REPLY);
    case UDP_EXCHANGE:
        return judge_silence(engine, attempt, REASON_RECV_RESPONSE_TIMEOUT);
    case UDP_PORT:
    case UDP_METHOD_NONE:
        break;
    }
    return judge_silence(engine, attempt, REASON_SILENT);
}

static void on_timer(struct udp_engine *engine, struct udp_attempt *attempt)
{
    enum probe_reason reason = (enum probe_reason)attempt->probe.refused_reason;

    if (reason == REASON_NONE) {
        /* What is there is never taken for silence, also when more came than one event reads. */
        if (serve(engine, attempt)) {
            return;
        }
        probe_note(&engine->base, PROBE_STEP_DEADLINE);
        reason = judge_timeout(engine, attempt);
    }
    end(engine, attempt, (struct probe_ending){.reason = reason});
}

static void on_event(struct probe_engine *base, const struct epoll_event *event)
{
    struct udp_engine *engine = of(base);

    if (event->data.u64 == ECHO_TOKEN) {
        return; /* read in each run */
    }
    uint32_t place = probe_places_of_token(&engine->places, event->data.u64);
    struct udp_attempt *attempt = place == NO_PLACE ? NULL : &engine->attempts[place];

    if (attempt != NULL && attempt->fd >= 0 && attempt->probe.refused_reason == REASON_NONE) {
        serve(engine, attempt);
    }
}

static void engine_run(struct probe_engine *base, const struct probe_sink *sink)
{
    struct udp_engine *engine = of(base);
    uint64_t now_ns = clock_monotonic_ns();
    uint32_t place;

    if (!engine->is_used) {
        return; /* nothing to ask the kernel for: not even a late echo can be there */
    }
    engine->sink = sink;
    probe_events_serve(base, on_event);
    take_echoes(engine);
    if (timers_next(&engine->places.timers) <= now_ns) {
        engine->n_dropped = echo_socket_dropped(&engine->echo);
    }
    while (timers_pop(&engine->places.timers, now_ns, &place)) {
        on_timer(engine, &engine->attempts[place]);
    }
    engine->sink = NULL;
}

static uint64_t engine_next_ns(const struct probe_engine *base)
{
    const struct udp_engine *engine = (const struct udp_engine *)base;

    return timers_next(&engine->places.timers);
}

/* --- making and ending --- */

static void engine_free(struct probe_engine *base)
{
    struct udp_engine *engine = of(base);

    for (uint32_t i = 0; engine->attempts != NULL && i < base->capacity; i++) {
        if (engine->attempts[i].fd >= 0) {
            close(engine->attempts[i].fd);
        }
    }
    silent_ways_close(&engine->ways);
    echo_socket_close(&engine->echo);
    if (base->fd >= 0) {
        close(base->fd);
    }
    probe_buckets_close(&engine->buckets);
    probe_places_close(&engine->places);
    free(engine->attempts);
    sodium_memzero(&engine->key, sizeof engine->key);
    free(engine);
}

static const struct probe_engine_ops ops = {
    .free = engine_free,
    .submit = engine_submit,
    .abandon = engine_abandon,
    .next_ns = engine_next_ns,
    .run = engine_run,
};

static int reserve(struct udp_engine *engine, uint32_t capacity, struct errmsg *err)
{
    engine->attempts = calloc(capacity, sizeof *engine->attempts);
    for (uint32_t i = 0; engine->attempts != NULL && i < capacity; i++) {
        engine->attempts[i].fd = -1;
    }
    if (engine->attempts == NULL || probe_places_init(&engine->places, capacity) != 0 ||
        probe_buckets_init(&engine->buckets, capacity, &engine->key) != 0) {
        return errmsg_set(err, ERR_NOMEM, "probe engine \"udp\": out of memory");
    }
    return 0;
}

static int watch(const struct udp_engine *engine, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = ECHO_TOKEN};

    return fd < 0 ? 0 : epoll_ctl(engine->base.fd, EPOLL_CTL_ADD, fd, &event);
}

/* Without rights, or raw sockets, the engine makes what needs none. */
static int open_sockets(struct udp_engine *engine, struct errmsg *err)
{
    struct errmsg problem;

    engine->base.fd = epoll_create1(EPOLL_CLOEXEC);
    int rc = engine->base.fd < 0 ? -1 : 0;
    if (rc == 0 && echo_socket_open(&engine->echo, (uint16_t)engine->key.k0, &problem) == 0) {
        engine->base.capabilities |= PROBE_CAN_UDP_PORT_ECHO;
        rc = watch(engine, engine->echo.ipv4_fd);
        rc = rc == 0 ? watch(engine, engine->echo.ipv6_fd) : rc;
    }
    return rc == 0 ? 0
                   : errmsg_set(err, err_from_errno(errno), "probe engine \"udp\": no epoll: %s",
                                strerror(errno));
}

int udp_engine_new(uint32_t capacity, const struct probe_lateness *lateness,
                   struct probe_counters *counters, struct probe_engine **ret_engine,
                   struct errmsg *err)
{
    struct hash_key evidence_key;

    assert(capacity >= 1 && capacity <= LIMIT_PROBES_IN_FLIGHT);
    struct udp_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL) {
        return errmsg_set(err, ERR_NOMEM, "probe engine \"udp\": out of memory");
    }
    engine->base = (struct probe_engine){
        .ops = &ops,
        .name = "udp",
        .counted_as = PROBE_N_BY_UDP,
        .capabilities = PROBE_CAN_UDP_PORT | PROBE_CAN_UDP_EXCHANGE,
        .capacity = capacity,
        .fd = -1,
    };
    engine->lateness = lateness;
    engine->counters = counters;
    engine->echo = (struct echo_socket){.ipv4_fd = -1, .ipv6_fd = -1};
    randombytes_buf(&engine->key, sizeof engine->key);
    randombytes_buf(&evidence_key, sizeof evidence_key);
    udp_evidence_init(&engine->evidence, &evidence_key);
    int rc = reserve(engine, capacity, err);
    if (rc == 0) {
        rc = open_sockets(engine, err);
    }
    if (rc != 0) {
        engine_free(&engine->base);
        return rc;
    }
    *ret_engine = &engine->base;
    return 0;
}
