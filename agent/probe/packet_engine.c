#include "agent/probe/packet_engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent/core/timers.h"
#include "agent/probe/packet_local.h"
#include "agent/probe/packet_socket.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

#define NO_ATTEMPT UINT32_MAX
#define N_BUCKETS (2 * LIMIT_PROBES_IN_FLIGHT) /* a power of two */

struct packet_attempt {
    const struct probe_target *target; /* NULL = free */
    uint64_t start_ns;
    uint64_t deadline_ns;
    struct probe_mark mark;
    uint64_t n_dropped;     /* the engine's, when it began */
    struct addr source;     /* as soon as the SYN is on its way */
    uint32_t isn;           /* initial sequence number */
    uint16_t port;          /* one of ours; 0 = refused: it is in no bucket */
    uint8_t n_syns;         /* sent */
    uint8_t refused_reason; /* enum probe_reason: the result that waits for run */
    uint32_t next;          /* in its bucket, or free */
};

struct packet_engine {
    struct probe_engine base; /* first */
    const struct probe_lateness *lateness;
    struct probe_counters *counters;
    const struct probe_sink *sink; /* inside run */
    struct packet_ports ports;
    struct packet_socket sock;
    struct hash_key key; /* secret: what is unpredictable comes from it */
    uint64_t nonce;
    uint64_t n_dropped;              /* packets that the kernel had no room for */
    struct packet_attempt *attempts; /* base.capacity of them */
    uint32_t *by_slot;               /* target slot -> attempt + 1; 0 = none */
    uint32_t buckets[N_BUCKETS];     /* by backend and port -> first attempt; NO_ATTEMPT = none */
    struct timers timers;            /* by attempt: next SYN, or the deadline */
    uint32_t free_head;
};

static struct packet_engine *of(struct probe_engine *engine)
{
    return (struct packet_engine *)engine;
}

static uint32_t index_of(const struct packet_engine *engine, const struct packet_attempt *attempt)
{
    return (uint32_t)(attempt - engine->attempts);
}

/* --- which probe an answer belongs to --- */

/* Where the probes of that backend from that port are. At most one of them at a time, so that an
 * answer belongs to one probe alone. */
static uint32_t *bucket_of(struct packet_engine *engine, const struct endpoint *to, uint16_t port)
{
    uint8_t bytes[sizeof to->addr.bytes + 5];

    memcpy(bytes, to->addr.bytes, sizeof to->addr.bytes);
    bytes[16] = to->addr.family;
    memcpy(bytes + 17, &to->port, 2);
    memcpy(bytes + 19, &port, 2);
    return &engine->buckets[hash_64(&engine->key, bytes, sizeof bytes) % N_BUCKETS];
}

static struct packet_attempt *find(struct packet_engine *engine, const struct endpoint *to,
                                   uint16_t port)
{
    uint32_t index = *bucket_of(engine, to, port);

    while (index != NO_ATTEMPT) {
        struct packet_attempt *attempt = &engine->attempts[index];

        if (attempt->port == port && endpoint_compare(&attempt->target->definition.to, to) == 0) {
            return attempt;
        }
        index = attempt->next;
    }
    return NULL;
}

static void enter_bucket(struct packet_engine *engine, struct packet_attempt *attempt)
{
    uint32_t *head = bucket_of(engine, &attempt->target->definition.to, attempt->port);

    attempt->next = *head;
    *head = index_of(engine, attempt);
}

static void leave_bucket(struct packet_engine *engine, const struct packet_attempt *attempt)
{
    uint32_t *link = bucket_of(engine, &attempt->target->definition.to, attempt->port);

    while (*link != index_of(engine, attempt)) {
        link = &engine->attempts[*link].next;
    }
    *link = attempt->next;
}

/* --- the life of a probe --- */

static struct packet_attempt *take(struct packet_engine *engine, const struct probe_target *target)
{
    uint32_t index = engine->free_head;
    assert(index != NO_ATTEMPT);
    struct packet_attempt *attempt = &engine->attempts[index];

    engine->free_head = attempt->next;
    engine->by_slot[target->id.slot] = index + 1;
    *attempt = (struct packet_attempt){
        .target = target,
        .start_ns = clock_monotonic_ns(),
        .mark = probe_lateness_mark(engine->lateness),
        .n_dropped = engine->n_dropped,
        .next = NO_ATTEMPT,
    };
    return attempt;
}

static void release(struct packet_engine *engine, struct packet_attempt *attempt)
{
    uint32_t index = index_of(engine, attempt);

    assert(attempt->target != NULL);
    if (attempt->port != 0) {
        leave_bucket(engine, attempt);
    }
    timers_clear(&engine->timers, index);
    engine->by_slot[attempt->target->id.slot] = 0;
    *attempt = (struct packet_attempt){.next = engine->free_head};
    engine->free_head = index;
}

/* How a probe came to its end. */
struct ending {
    enum probe_reason reason;
    bool is_answered; /* the reason is a timeout, but the answer is there now */
    bool is_refused;  /* the target itself said RST */
};

static void end(struct packet_engine *engine, struct packet_attempt *attempt, struct ending ending)
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
        .is_refused = ending.is_refused && reason == REASON_CONNECT_FAILED,
        .start_ns = life.start_ns,
        .end_ns = life.end_ns,
    };

    engine->sink->result(engine->sink->user, &result);
    release(engine, attempt);
}

static enum probe_reason send_segment(const struct packet_engine *engine,
                                      const struct packet_attempt *attempt, uint32_t seq,
                                      uint8_t flags)
{
    const struct packet_tcp tcp = {
        .from = {.addr = attempt->source, .port = attempt->port},
        .to = attempt->target->definition.to,
        .seq = seq,
        .flags = flags,
    };

    return packet_socket_send(&engine->sock, &tcp);
}

/* Of the SYNs that are sent (RFC 6298: an initial timeout of 1 s that doubles). */
static uint64_t next_syn_ns(const struct packet_attempt *attempt)
{
    static const uint64_t after_ns[] = {0, NS_PER_SECOND, 3 * NS_PER_SECOND};

    return attempt->n_syns < sizeof after_ns / sizeof after_ns[0]
               ? attempt->start_ns + after_ns[attempt->n_syns]
               : UINT64_MAX;
}

static enum probe_reason send_syn(struct packet_engine *engine, struct packet_attempt *attempt)
{
    enum probe_reason reason = send_segment(engine, attempt, attempt->isn, PACKET_SYN);

    attempt->n_syns++;
    uint64_t next_ns = next_syn_ns(attempt);
    timers_set(&engine->timers, index_of(engine, attempt),
               next_ns < attempt->deadline_ns ? next_ns : attempt->deadline_ns);
    return reason;
}

/* A port from which no probe of that backend is under way. 0: there is none. */
static uint16_t choose_port(struct packet_engine *engine, const struct endpoint *to,
                            uint32_t random)
{
    for (uint32_t i = 0; i < PACKET_PORTS; i++) {
        uint16_t port = engine->ports.ports[(random + i) % PACKET_PORTS];

        if (find(engine, to, port) == NULL) {
            return port;
        }
    }
    return 0;
}

static enum probe_reason begin(struct packet_engine *engine, struct packet_attempt *attempt)
{
    const struct probe_target *target = attempt->target;
    const uint64_t seed[2] = {target->id.slot, ++engine->nonce};
    uint64_t random = hash_64(&engine->key, seed, sizeof seed);
    enum probe_reason reason = packet_source_find(target, &attempt->source);

    if (reason != REASON_NONE) {
        return reason;
    }
    attempt->port = choose_port(engine, &target->definition.to, (uint32_t)(random >> 32));
    if (attempt->port == 0) {
        return REASON_LOCAL_NO_PORT;
    }
    attempt->isn = (uint32_t)random;
    enter_bucket(engine, attempt);
    return send_syn(engine, attempt);
}

static void engine_abandon(struct probe_engine *base, uint32_t slot)
{
    struct packet_engine *engine = of(base);

    assert(slot < LIMIT_TARGETS);
    if (engine->by_slot[slot] != 0) {
        release(engine, &engine->attempts[engine->by_slot[slot] - 1]);
    }
}

static void engine_submit(struct probe_engine *base, const struct probe_target *target)
{
    struct packet_engine *engine = of(base);

    assert((base->capabilities & probe_capability_of(&target->definition)) != 0);
    assert(engine->by_slot[target->id.slot] == 0);
    struct packet_attempt *attempt = take(engine, target);
    attempt->deadline_ns = attempt->start_ns + target->definition.check.timeout_ms * NS_PER_MS;
    enum probe_reason reason = begin(engine, attempt);
    if (reason != REASON_NONE) {
        attempt->refused_reason = (uint8_t)reason;
        timers_set(&engine->timers, index_of(engine, attempt), attempt->start_ns);
    }
}

/* --- answers --- */

/* What a packet says about the probe that it is for; REASON_NONE: nothing. */
static enum probe_reason judge(const struct packet_attempt *attempt, const struct packet_seen *seen)
{
    const uint8_t flags = seen->tcp.flags & (PACKET_SYN | PACKET_RST | PACKET_ACK);

    if (seen->kind == PACKET_UNREACHABLE) {
        return seen->tcp.seq == attempt->isn ? REASON_CONNECT_FAILED : REASON_NONE;
    }
    if (seen->tcp.ack != attempt->isn + 1 && !plant_is("packet-any-ack")) {
        return REASON_NONE;
    }
    if (flags == (PACKET_SYN | PACKET_ACK)) {
        return REASON_OK;
    }
    return flags == (PACKET_RST | PACKET_ACK) ? REASON_CONNECT_FAILED : REASON_NONE;
}

static void take_packet(struct packet_engine *engine, const struct packet_seen *seen)
{
    bool is_segment = seen->kind == PACKET_SEGMENT;
    const struct endpoint *backend = is_segment ? &seen->tcp.from : &seen->tcp.to;
    const struct endpoint *own = is_segment ? &seen->tcp.to : &seen->tcp.from;
    struct packet_attempt *attempt =
        seen->kind == PACKET_NONE ? NULL : find(engine, backend, own->port);
    enum probe_reason reason = attempt == NULL || attempt->refused_reason != REASON_NONE ||
                                       addr_compare(&own->addr, &attempt->source) != 0
                                   ? REASON_NONE
                                   : judge(attempt, seen);

    if (reason == REASON_NONE) {
        probe_counters_add(engine->counters, PROBE_N_PACKETS_IGNORED, 1);
        return;
    }
    if (plant_is("packet-acks") && reason == REASON_OK) {
        send_segment(engine, attempt, attempt->isn + 1, PACKET_ACK);
    }
    bool is_overdue = clock_monotonic_ns() >= attempt->deadline_ns;
    end(engine, attempt,
        (struct ending){.reason = is_overdue ? REASON_CONNECT_TIMEOUT : reason,
                        .is_answered = is_overdue,
                        .is_refused = is_segment});
}

/* --- time --- */

static void time_out(struct packet_engine *engine, struct packet_attempt *attempt)
{
    bool is_proof = engine->n_dropped == attempt->n_dropped;

    if (attempt->target->definition.check.tcp.on_timeout == TCP_ON_TIMEOUT_RST) {
        /* Nobody waits for it, and nothing depends on it. */
        (void)send_segment(engine, attempt, attempt->isn + 1, PACKET_RST);
    }
    end(engine, attempt,
        (struct ending){.reason = is_proof ? REASON_CONNECT_TIMEOUT : REASON_LOCAL_NO_BUFFER});
}

static void on_timer(struct packet_engine *engine, struct packet_attempt *attempt, uint64_t now_ns)
{
    enum probe_reason reason = (enum probe_reason)attempt->refused_reason;

    if (reason == REASON_NONE && now_ns >= attempt->deadline_ns) {
        time_out(engine, attempt);
        return;
    }
    if (reason == REASON_NONE) {
        reason = send_syn(engine, attempt);
    }
    if (reason != REASON_NONE) {
        end(engine, attempt, (struct ending){.reason = reason});
    }
}

static void count_dropped(struct packet_engine *engine)
{
    uint64_t n_dropped = packet_socket_take_dropped(&engine->sock);

    engine->n_dropped += n_dropped;
    probe_counters_add(engine->counters, PROBE_N_PACKETS_DROPPED, n_dropped);
}

/* What is overdue is judged after everything that has come was looked at: an answer that is there
 * is never taken for silence. */
static void engine_run(struct probe_engine *base, const struct probe_sink *sink)
{
    struct packet_engine *engine = of(base);
    uint64_t now_ns = clock_monotonic_ns();
    struct packet_seen seen;
    uint32_t index;

    engine->sink = sink;
    for (uint32_t n = 0; n < PACKET_FRAMES && packet_socket_next(&engine->sock, &seen); n++) {
        take_packet(engine, &seen);
    }
    if (timers_next(&engine->timers) <= now_ns) {
        count_dropped(engine);
    }
    while (timers_pop(&engine->timers, now_ns, &index)) {
        on_timer(engine, &engine->attempts[index], now_ns);
    }
    engine->sink = NULL;
}

static uint64_t engine_next_ns(const struct probe_engine *base)
{
    const struct packet_engine *engine = (const struct packet_engine *)base;

    return timers_next(&engine->timers);
}

/* --- making and ending --- */

static void engine_free(struct probe_engine *base)
{
    struct packet_engine *engine = of(base);

    packet_socket_close(&engine->sock);
    packet_ports_close(&engine->ports);
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

/* The sockets, and then the ports that their filter lets through. */
static int open_sockets(struct packet_engine *engine, struct errmsg *err)
{
    int rc = packet_ports_open(&engine->ports, err);

    if (rc != 0) {
        engine->sock = (struct packet_socket){.receive_fd = -1, -1, -1, NULL, 0};
        return rc;
    }
    rc = packet_socket_open(&engine->sock, engine->ports.ports, PACKET_PORTS, err);
    engine->base.fd = engine->sock.receive_fd;
    return rc;
}

static int reserve(struct packet_engine *engine, uint32_t capacity, struct errmsg *err)
{
    timers_init(&engine->timers);
    engine->attempts = calloc(capacity, sizeof *engine->attempts);
    engine->by_slot = calloc(LIMIT_TARGETS, sizeof *engine->by_slot);
    if (engine->attempts == NULL || engine->by_slot == NULL ||
        timers_reserve(&engine->timers, capacity) != 0) {
        return errmsg_set(err, ERR_NOMEM, "probe engine \"packet\": out of memory");
    }
    engine->free_head = NO_ATTEMPT;
    for (uint32_t i = capacity; i-- > 0;) {
        engine->attempts[i].next = engine->free_head;
        engine->free_head = i;
    }
    for (uint32_t i = 0; i < N_BUCKETS; i++) {
        engine->buckets[i] = NO_ATTEMPT;
    }
    return 0;
}

int packet_engine_new(uint32_t capacity, const struct probe_lateness *lateness,
                      struct probe_counters *counters, struct probe_engine **ret_engine,
                      struct errmsg *err)
{
    assert(capacity >= 1 && capacity <= LIMIT_PROBES_IN_FLIGHT);
    struct packet_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL) {
        return errmsg_set(err, ERR_NOMEM, "probe engine \"packet\": out of memory");
    }
    engine->base = (struct probe_engine){
        .ops = &ops,
        .name = "packet",
        .counted_as = PROBE_N_BY_PACKET,
        .capabilities = PROBE_CAN_TCP_HALF_OPEN,
        .capacity = capacity,
        .fd = -1,
    };
    engine->lateness = lateness;
    engine->counters = counters;
    randombytes_buf(&engine->key, sizeof engine->key);
    int rc = open_sockets(engine, err);
    if (rc == 0) {
        rc = reserve(engine, capacity, err);
    }
    if (rc != 0) {
        engine_free(&engine->base);
        return rc;
    }
    *ret_engine = &engine->base;
    return 0;
}
