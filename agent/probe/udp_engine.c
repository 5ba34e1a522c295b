#include "agent/probe/udp_engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <sodium.h>

#include "agent/core/timers.h"
#include "agent/core/udp_evidence.h"
#include "agent/core/udp_reply.h"
#include "agent/probe/echo_socket.h"
#include "agent/probe/udp_socket.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

#define NO_ATTEMPT UINT32_MAX
#define N_BUCKETS (2 * LIMIT_PROBES_IN_FLIGHT) /* a power of two */
#define EVENTS_PER_WAIT 256
#define HEARD_MAX 16          /* things heard of one probe: the first that matters ends it */
#define ECHO_TOKEN UINT64_MAX /* of the raw sockets; attempts have smaller ones */
#define ECHOES_PER_RUN 4096

struct udp_attempt {
    const struct probe_target *target; /* NULL = free */
    uint64_t start_ns;
    uint64_t deadline_ns;
    struct probe_mark mark;
    struct hash128 token;   /* of its echo request */
    uint64_t n_dropped;     /* the engine's, when it began */
    uint32_t generation;    /* tells a late event of the descriptor's last user apart */
    int fd;                 /* -1 = refused: it is in no bucket */
    uint8_t refused_reason; /* enum probe_reason: the result that waits for run */
    bool is_answered;       /* a datagram came */
    bool is_echoed;
    uint32_t next; /* in its bucket, or free */
};

struct udp_engine {
    struct probe_engine base; /* first */
    const struct probe_lateness *lateness;
    struct probe_counters *counters;
    const struct probe_sink *sink; /* inside run */
    struct echo_socket echo;       /* descriptors -1 without rights */
    struct hash_key key;           /* secret: what is unpredictable comes from it */
    uint64_t nonce;
    uint64_t n_dropped; /* echo replies that the kernel had no room for */
    struct udp_evidence evidence;
    struct udp_attempt *attempts; /* base.capacity of them */
    uint32_t *by_slot;            /* target slot -> attempt + 1; 0 = none */
    uint32_t buckets[N_BUCKETS];  /* by address and port -> first attempt; NO_ATTEMPT = none */
    struct timers timers;         /* by attempt: the deadline */
    uint32_t free_head;
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
    return &attempt->target->definition.check.udp;
}

/* --- which probes look at the same address and port --- */

static uint32_t *bucket_of(struct udp_engine *engine, const struct endpoint *to)
{
    uint8_t bytes[sizeof to->addr.bytes + 3];

    memcpy(bytes, to->addr.bytes, sizeof to->addr.bytes);
    bytes[sizeof to->addr.bytes] = to->addr.family;
    memcpy(bytes + sizeof to->addr.bytes + 1, &to->port, sizeof to->port);
    return &engine->buckets[hash_64(&engine->key, bytes, sizeof bytes) % N_BUCKETS];
}

static void enter_bucket(struct udp_engine *engine, struct udp_attempt *attempt)
{
    uint32_t *head = bucket_of(engine, &attempt->target->definition.to);

    attempt->next = *head;
    *head = index_of(engine, attempt);
}

static void leave_bucket(struct udp_engine *engine, const struct udp_attempt *attempt)
{
    uint32_t *link = bucket_of(engine, &attempt->target->definition.to);

    while (*link != index_of(engine, attempt)) {
        link = &engine->attempts[*link].next;
    }
    *link = attempt->next;
}

/* --- the life of a probe --- */

static struct udp_attempt *take(struct udp_engine *engine, const struct probe_target *target)
{
    uint32_t index = engine->free_head;
    assert(index != NO_ATTEMPT);
    struct udp_attempt *attempt = &engine->attempts[index];
    uint64_t now_ns = clock_monotonic_ns();

    engine->free_head = attempt->next;
    engine->by_slot[target->id.slot] = index + 1;
    *attempt = (struct udp_attempt){
        .target = target,
        .start_ns = now_ns,
        .deadline_ns = now_ns + target->definition.check.timeout_ms * NS_PER_MS,
        .mark = probe_lateness_mark(engine->lateness),
        .n_dropped = engine->n_dropped,
        .generation = attempt->generation,
        .fd = -1,
        .next = NO_ATTEMPT,
    };
    return attempt;
}

static void release(struct udp_engine *engine, struct udp_attempt *attempt)
{
    uint32_t index = index_of(engine, attempt);

    assert(attempt->target != NULL);
    if (attempt->fd >= 0) {
        leave_bucket(engine, attempt);
        close(attempt->fd);
    }
    timers_clear(&engine->timers, index);
    engine->by_slot[attempt->target->id.slot] = 0;
    *attempt = (struct udp_attempt){
        .fd = -1, .generation = attempt->generation + 1, .next = engine->free_head};
    engine->free_head = index;
}

/* How a probe came to its end. */
struct ending {
    enum probe_reason reason;
    bool is_answered; /* the reason is a timeout, but the answer is there now */
    bool is_refused;  /* the target itself said so, to this very probe */
};

static void end(struct udp_engine *engine, struct udp_attempt *attempt, struct ending ending)
{
    struct probe_life life = {
        .start_ns = attempt->start_ns,
        .deadline_ns = attempt->deadline_ns,
        .end_ns = clock_monotonic_ns(),
        .mark = attempt->mark,
        .is_answered = ending.is_answered,
    };
    enum probe_reason reason = probe_lateness_judge(engine->lateness, &life, ending.reason);
    struct probe_result result = {
        .id = attempt->target->id,
        .probe_class = (uint8_t)probe_reason_class(reason),
        .reason = (uint8_t)reason,
        .is_refused = ending.is_refused && reason == REASON_PORT_UNREACHABLE,
        .start_ns = life.start_ns,
        .end_ns = life.end_ns,
    };

    engine->sink->result(engine->sink->user, &result);
    release(engine, attempt);
}

static enum probe_reason send_echo(struct udp_engine *engine, struct udp_attempt *attempt)
{
    const uint64_t seed[2] = {index_of(engine, attempt), ++engine->nonce};

    attempt->token = hash_128(&engine->key, seed, sizeof seed);
    const struct icmp_echo echo = {
        .id = engine->echo.id, .index = index_of(engine, attempt), .token = attempt->token};
    return echo_socket_send(&engine->echo, attempt->target, &echo);
}

static enum probe_reason begin(struct udp_engine *engine, struct udp_attempt *attempt)
{
    uint64_t token = (uint64_t)attempt->generation << 32 | index_of(engine, attempt);
    enum probe_reason reason =
        udp_socket_open(attempt->target, engine->base.fd, token, &attempt->fd);

    if (reason != REASON_NONE) {
        return reason;
    }
    enter_bucket(engine, attempt);
    return check_of(attempt)->method == UDP_PORT_ECHO ? send_echo(engine, attempt) : REASON_NONE;
}

static void engine_abandon(struct probe_engine *base, uint32_t slot)
{
    struct udp_engine *engine = of(base);

    assert(slot < LIMIT_TARGETS);
    if (engine->by_slot[slot] != 0) {
        release(engine, &engine->attempts[engine->by_slot[slot] - 1]);
    }
}

static void engine_submit(struct probe_engine *base, const struct probe_target *target)
{
    struct udp_engine *engine = of(base);

    assert((base->capabilities & probe_capability_of(&target->definition)) != 0);
    assert(engine->by_slot[target->id.slot] == 0);
    struct udp_attempt *attempt = take(engine, target);
    enum probe_reason reason = begin(engine, attempt);
    attempt->refused_reason = (uint8_t)reason;
    timers_set(&engine->timers, index_of(engine, attempt),
               reason != REASON_NONE ? attempt->start_ns : attempt->deadline_ns);
}

/* --- what was heard --- */

static bool is_overdue(const struct udp_attempt *attempt)
{
    return clock_monotonic_ns() >= attempt->deadline_ns;
}

/* One of them was told: all that look at the same address and port fail by it. One that has had its
 * datagram waits for nothing of the kind (S98). */
static void take_refusal(struct udp_engine *engine, struct udp_attempt *told)
{
    const struct endpoint at = told->target->definition.to;
    uint32_t index = *bucket_of(engine, &at);

    udp_evidence_refused(&engine->evidence, &at, clock_monotonic_ns());
    while (index != NO_ATTEMPT) {
        struct udp_attempt *attempt = &engine->attempts[index];

        index = attempt->next;
        if (endpoint_compare(&attempt->target->definition.to, &at) != 0 ||
            (attempt != told && (attempt->is_answered || attempt->refused_reason != REASON_NONE ||
                                 plant_is("udp-own-evidence")))) {
            continue;
        }
        if (attempt != told) {
            probe_counters_add(engine->counters, PROBE_N_REFUSALS_SHARED, 1);
            udp_evidence_presumed(&engine->evidence, &at, clock_monotonic_ns());
        }
        end(engine, attempt,
            (struct ending){.reason = REASON_PORT_UNREACHABLE, .is_refused = attempt == told});
    }
}

static void take_datagram(struct udp_engine *engine, struct udp_attempt *attempt,
                          const uint8_t bytes[], size_t n_bytes)
{
    const struct udp_check *check = check_of(attempt);
    struct ending ending = {.reason = REASON_OK};

    udp_evidence_answered(&engine->evidence, &attempt->target->definition.to);
    attempt->is_answered = true;
    if (check->method == UDP_PORT_ECHO && !attempt->is_echoed) {
        return;
    }
    if (check->method == UDP_EXCHANGE && !udp_reply_matches(check, bytes, n_bytes)) {
        ending.reason = REASON_RESPONSE_MISMATCH;
    }
    if (check->method == UDP_EXCHANGE && is_overdue(attempt)) {
        ending = (struct ending){.reason = REASON_RECV_RESPONSE_TIMEOUT, .is_answered = true};
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
        end(engine, attempt, (struct ending){.reason = REASON_CONNECT_FAILED});
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
    const struct addr *backend = &attempt->target->definition.to.addr;
    uint8_t bytes[LIMIT_UDP_PAYLOAD_BYTES];
    size_t n_bytes = 0;
    uint32_t generation = attempt->generation;

    for (unsigned n = 0; n < HEARD_MAX; n++) {
        enum udp_heard heard = udp_socket_hear(attempt->fd, backend, bytes, sizeof bytes, &n_bytes);

        if (heard == UDP_HEARD_NOTHING) {
            return false;
        }
        if (heard == UDP_HEARD_DATAGRAM) {
            take_datagram(engine, attempt, bytes, n_bytes);
        }
        if (take_one(engine, attempt, heard) || attempt->generation != generation) {
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

    if (attempt == NULL || attempt->target == NULL || attempt->fd < 0 ||
        check_of(attempt)->method != UDP_PORT_ECHO ||
        memcmp(&attempt->token, &echo->token, sizeof echo->token) != 0 ||
        addr_compare(&attempt->target->definition.to.addr, from) != 0) {
        probe_counters_add(engine->counters, PROBE_N_ICMP_IGNORED, 1);
        return;
    }
    if (is_overdue(attempt)) {
        end(engine, attempt, (struct ending){.reason = REASON_NO_ECHO_REPLY, .is_answered = true});
        return;
    }
    attempt->is_echoed = true;
    if (attempt->is_answered) {
        end(engine, attempt, (struct ending){.reason = REASON_OK});
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
    const struct target_definition *definition = &attempt->target->definition;
    enum udp_silence silence =
        udp_evidence_judge(&engine->evidence, &definition->to, attempt->start_ns,
                           definition->check.interval_ms * NS_PER_MS);

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
    enum probe_reason reason = (enum probe_reason)attempt->refused_reason;

    if (reason == REASON_NONE) {
        /* What is there is never taken for silence, also when more came than one event reads. */
        if (serve(engine, attempt)) {
            return;
        }
        reason = judge_timeout(engine, attempt);
    }
    end(engine, attempt, (struct ending){.reason = reason});
}

static void on_event(struct udp_engine *engine, uint64_t token)
{
    if (token == ECHO_TOKEN) {
        return; /* read in each run */
    }
    struct udp_attempt *attempt = &engine->attempts[(uint32_t)token];

    if (attempt->target != NULL && attempt->fd >= 0 && attempt->refused_reason == REASON_NONE &&
        attempt->generation == token >> 32) {
        serve(engine, attempt);
    }
}

static void engine_run(struct probe_engine *base, const struct probe_sink *sink)
{
    struct udp_engine *engine = of(base);
    struct epoll_event events[EVENTS_PER_WAIT];
    uint32_t n_rounds = base->capacity / EVENTS_PER_WAIT + 1;
    uint64_t now_ns = clock_monotonic_ns();
    uint32_t index;

    engine->sink = sink;
    for (uint32_t round = 0; round < n_rounds; round++) {
        int n = epoll_wait(base->fd, events, EVENTS_PER_WAIT, 0);

        for (int i = 0; i < n; i++) {
            on_event(engine, events[i].data.u64);
        }
        if (n < EVENTS_PER_WAIT) {
            break;
        }
    }
    take_echoes(engine);
    if (timers_next(&engine->timers) <= now_ns) {
        engine->n_dropped = echo_socket_dropped(&engine->echo);
    }
    while (timers_pop(&engine->timers, now_ns, &index)) {
        on_timer(engine, &engine->attempts[index]);
    }
    engine->sink = NULL;
}

static uint64_t engine_next_ns(const struct probe_engine *base)
{
    const struct udp_engine *engine = (const struct udp_engine *)base;

    return timers_next(&engine->timers);
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
    echo_socket_close(&engine->echo);
    if (base->fd >= 0) {
        close(base->fd);
    }
    timers_close(&engine->timers);
    free(engine->attempts);
    free(engine->by_slot);
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
    timers_init(&engine->timers);
    engine->attempts = calloc(capacity, sizeof *engine->attempts);
    engine->by_slot = calloc(LIMIT_TARGETS, sizeof *engine->by_slot);
    engine->free_head = NO_ATTEMPT;
    for (uint32_t i = capacity; engine->attempts != NULL && i-- > 0;) {
        engine->attempts[i] = (struct udp_attempt){.fd = -1, .next = engine->free_head};
        engine->free_head = i;
    }
    for (uint32_t i = 0; i < N_BUCKETS; i++) {
        engine->buckets[i] = NO_ATTEMPT;
    }
    if (engine->attempts == NULL || engine->by_slot == NULL ||
        timers_reserve(&engine->timers, capacity) != 0) {
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
