#include "agent/probe/packet_engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent/probe/packet_local.h"
#include "agent/probe/packet_sender.h"
#include "agent/probe/packet_socket.h"
#include "agent/probe/packet_sources.h"
#include "agent/probe/packet_xdp.h"
#include "agent/probe/probe_attempt.h"
#include "agent/probe/probe_buckets.h"
#include "agent/probe/probe_note.h"
#include "agent/probe/probe_places.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

struct packet_attempt {
    struct probe_attempt probe;
    uint64_t n_dropped; /* the engine's, when it began */
    struct addr source; /* as soon as the SYN is on its way */
    uint32_t isn;       /* initial sequence number */
    uint16_t port;      /* one of ours; 0 = refused: it is in no bucket */
    uint8_t n_syns;     /* sent */
};

struct packet_engine {
    struct probe_engine base; /* first */
    const struct probe_lateness *lateness;
    struct silent_ways ways;
    struct probe_counters *counters;
    const struct probe_sink *sink; /* inside run */
    struct packet_ports ports;
    struct packet_socket sock;
    struct packet_xdp *xdp; /* NULL = the ring sees all */
    struct packet_sources sources;
    struct hash_key key; /* secret: what is unpredictable comes from it */
    uint64_t nonce;
    uint64_t n_dropped;              /* packets that the kernel had no room for */
    struct probe_places places;      /* timers: next SYN, or the deadline */
    struct probe_buckets buckets;    /* by backend and port of ours */
    struct packet_attempt *attempts; /* by place */
    uint64_t *unsent;                /* tokens of places whose SYN waits for flush: capacity */
    uint32_t n_unsent;
    uint64_t flushed_ns; /* when the last flush began */
    struct packet_sender sender;
    struct packet_way own_way; /* where nobody asks for it */
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

/* At most one probe of a backend from a port at a time, so that an answer belongs to one alone.
 * bucket: of backend and port. */
static struct packet_attempt *find_in(struct packet_engine *engine, uint32_t bucket,
                                      const struct endpoint *to, uint16_t port)
{
    uint32_t place = probe_buckets_first(&engine->buckets, bucket);

    while (place != NO_PLACE) {
        struct packet_attempt *attempt = &engine->attempts[place];

        if (attempt->port == port &&
            endpoint_compare(&attempt->probe.target->definition.to, to) == 0) {
            return attempt;
        }
        place = probe_buckets_next(&engine->buckets, place);
    }
    return NULL;
}

static struct packet_attempt *find(struct packet_engine *engine, const struct endpoint *to,
                                   uint16_t port)
{
    return find_in(engine, probe_buckets_find(&engine->buckets, to, port), to, port);
}

/* --- the life of a probe --- */

static struct packet_attempt *take(struct packet_engine *engine, const struct probe_target *target)
{
    struct packet_attempt *attempt =
        &engine->attempts[probe_places_take(&engine->places, target->id.slot)];

    *attempt = (struct packet_attempt){
        .probe = probe_attempt_begin(target, engine->lateness, clock_monotonic_ns()),
        .n_dropped = engine->n_dropped,
    };
    return attempt;
}

static void release(struct packet_engine *engine, struct packet_attempt *attempt)
{
    uint32_t place = index_of(engine, attempt);

    assert(attempt->probe.target != NULL);
    if (attempt->port != 0) {
        probe_buckets_leave(&engine->buckets, place);
    }
    *attempt = (struct packet_attempt){0};
    probe_places_release(&engine->places, place);
}

static void end(struct packet_engine *engine, struct packet_attempt *attempt,
                struct probe_ending ending)
{
    struct probe_result result =
        probe_attempt_result(&attempt->probe, engine->lateness, &engine->ways, ending);

    engine->sink->result(engine->sink->user, &result);
    release(engine, attempt);
}

static struct packet_tcp segment_of(const struct packet_attempt *attempt, uint32_t seq,
                                    uint8_t flags)
{
    return (struct packet_tcp){
        .from = {.addr = attempt->source, .port = attempt->port},
        .to = attempt->probe.target->definition.to,
        .seq = seq,
        .flags = flags,
    };
}

/* One that nobody waits for, and on which nothing depends. */
static void send_alone(struct packet_engine *engine, const struct packet_attempt *attempt,
                       uint8_t flags)
{
    const struct packet_tcp tcp = segment_of(attempt, attempt->isn + 1, flags);

    if (packet_socket_send(&engine->sock, &tcp) == REASON_NONE && flags == PACKET_RST) {
        probe_note(&engine->base, PROBE_STEP_RST_SENT);
    }
}

/* Of the SYNs that are sent (RFC 6298: an initial timeout of 1 s that doubles). */
static uint64_t next_syn_ns(const struct packet_attempt *attempt)
{
    static const uint64_t after_ns[] = {0, NS_PER_SECOND, 3 * NS_PER_SECOND};

    return attempt->n_syns < sizeof after_ns / sizeof after_ns[0]
               ? attempt->probe.start_ns + after_ns[attempt->n_syns]
               : UINT64_MAX;
}

static void refuse(struct packet_engine *engine, struct packet_attempt *attempt,
                   enum probe_reason reason)
{
    attempt->probe.refused_reason = (uint8_t)reason;
    timers_set(&engine->places.timers, index_of(engine, attempt), attempt->probe.start_ns);
}

/* A SYN was handed to the kernel, or refused by it. */
static void on_sent(void *user, uint32_t place, enum probe_reason reason)
{
    struct packet_engine *engine = user;
    struct packet_attempt *attempt = &engine->attempts[place];

    if (reason != REASON_NONE) {
        refuse(engine, attempt, reason);
        return;
    }
    probe_note_at(&engine->base, engine->flushed_ns,
                  attempt->n_syns == 1 ? PROBE_STEP_SYN_SENT : PROBE_STEP_SYN_REPEATED);
}

/* The probe begins with its first SYN, and so does its T. */
static void send_syn(struct packet_engine *engine, struct packet_attempt *attempt, uint64_t now_ns)
{
    const struct packet_tcp tcp = segment_of(attempt, attempt->isn, PACKET_SYN);
    const struct probe_target *target = attempt->probe.target;
    bool is_repeat = attempt->n_syns > 0;

    if (!is_repeat) {
        attempt->probe = probe_attempt_begin(target, engine->lateness, now_ns);
    }
    attempt->n_syns++;
    uint64_t next_ns = next_syn_ns(attempt);
    timers_set(&engine->places.timers, index_of(engine, attempt),
               next_ns < attempt->probe.deadline_ns ? next_ns : attempt->probe.deadline_ns);
    packet_sender_add(&engine->sender, &tcp, target->id.slot, index_of(engine, attempt), is_repeat);
}

/* Their answers are looked for at the end of the slot, all at once. */
static void engine_flush(struct probe_engine *base)
{
    struct packet_engine *engine = of(base);
    uint64_t now_ns = clock_monotonic_ns();

    if (engine->n_unsent == 0) {
        return;
    }
    engine->flushed_ns = now_ns;
    for (uint32_t i = 0; i < engine->n_unsent; i++) {
        uint32_t place = probe_places_of_token(&engine->places, engine->unsent[i]);

        if (place != NO_PLACE) {
            send_syn(engine, &engine->attempts[place], now_ns);
        }
    }
    engine->n_unsent = 0;
    packet_sender_flush(&engine->sender);
    base->quiet_ns = probe_slot_after(now_ns);
}

static void send_syn_later(struct packet_engine *engine, struct packet_attempt *attempt)
{
    if (engine->n_unsent == engine->base.capacity) {
        engine_flush(&engine->base);
    }
    engine->unsent[engine->n_unsent++] =
        probe_places_token(&engine->places, index_of(engine, attempt));
}

/* A port from which no probe of that backend is under way, and enter its bucket. Port 0: there is
 * none. */
static void choose_port(struct packet_engine *engine, struct packet_attempt *attempt,
                        uint32_t random)
{
    const struct endpoint *to = &attempt->probe.target->definition.to;

    for (uint32_t i = 0; i < PACKET_PORTS && attempt->port == 0; i++) {
        uint16_t port = engine->ports.ports[(random + i) % PACKET_PORTS];
        uint32_t bucket = probe_buckets_find(&engine->buckets, to, port);

        if (find_in(engine, bucket, to, port) == NULL) {
            attempt->port = port;
            probe_buckets_enter(&engine->buckets, bucket, index_of(engine, attempt));
        }
    }
}

static enum probe_reason begin(struct packet_engine *engine, struct packet_attempt *attempt)
{
    const struct probe_target *target = attempt->probe.target;
    const uint64_t seed[2] = {target->id.slot, ++engine->nonce};
    uint64_t random = hash_64(&engine->key, seed, sizeof seed);

    if (engine->n_unsent == 0) {
        packet_sources_refresh(&engine->sources);
        packet_sender_refresh(&engine->sender, engine->sources.generation, attempt->probe.start_ns);
    }
    enum probe_reason reason =
        packet_sources_find(&engine->sources, target, attempt->probe.start_ns, &attempt->source);

    if (reason != REASON_NONE) {
        return reason;
    }
    choose_port(engine, attempt, (uint32_t)(random >> 32));
    if (attempt->port == 0) {
        return REASON_LOCAL_NO_PORT;
    }
    attempt->isn = (uint32_t)random;
    if (engine->base.trace != NULL) {
        engine->base.trace->source =
            (struct endpoint){.addr = attempt->source, .port = attempt->port};
    }
    return REASON_NONE;
}

static void engine_abandon(struct probe_engine *base, uint32_t slot)
{
    struct packet_engine *engine = of(base);
    uint32_t place = probe_places_of_slot(&engine->places, slot);

    if (place != NO_PLACE) {
        release(engine, &engine->attempts[place]);
    }
    packet_sources_forget(&engine->sources, slot);
    packet_sender_forget(&engine->sender, slot);
}

static void engine_submit(struct probe_engine *base, const struct probe_target *target)
{
    struct packet_engine *engine = of(base);

    assert((base->capabilities & probe_capability_of(&target->definition)) != 0);
    struct packet_attempt *attempt = take(engine, target);
    enum probe_reason reason = begin(engine, attempt);
    if (reason != REASON_NONE) {
        refuse(engine, attempt, reason);
        return;
    }
    timers_set(&engine->places.timers, index_of(engine, attempt), attempt->probe.start_ns);
    send_syn_later(engine, attempt);
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

/* An answer, or what only looks like one. */
static void note_packet(struct packet_engine *engine, const struct packet_seen *seen,
                        uint64_t came_ns, enum probe_reason reason)
{
    struct probe_engine *base = &engine->base;

    if (reason == REASON_NONE) {
        probe_note_text(base, PROBE_STEP_IGNORED,
                        seen->kind == PACKET_SEGMENT ? "it does not acknowledge this probe's SYN"
                                                     : "an ICMP error about another SYN");
    } else if (seen->kind == PACKET_UNREACHABLE) {
        probe_note_icmp(base, &seen->by, seen->icmp_type, seen->icmp_code);
    } else if (reason == REASON_OK) {
        probe_note_at(base, came_ns, PROBE_STEP_SYN_ACK_RECEIVED);
        probe_note_at(base, came_ns, PROBE_STEP_RST_SENT); /* not by us (packet_engine.h) */
    } else {
        probe_note_at(base, came_ns, PROBE_STEP_RST_RECEIVED);
    }
}

static void take_packet(void *user, const struct packet_seen *seen, uint64_t came_ns)
{
    struct packet_engine *engine = user;
    bool is_segment = seen->kind == PACKET_SEGMENT;
    const struct endpoint *backend = is_segment ? &seen->tcp.from : &seen->tcp.to;
    const struct endpoint *own = is_segment ? &seen->tcp.to : &seen->tcp.from;
    struct packet_attempt *attempt =
        seen->kind == PACKET_NONE ? NULL : find(engine, backend, own->port);
    enum probe_reason reason = attempt == NULL || attempt->probe.refused_reason != REASON_NONE ||
                                       addr_compare(&own->addr, &attempt->source) != 0
                                   ? REASON_NONE
                                   : judge(attempt, seen);

    if (attempt != NULL && engine->base.trace != NULL) {
        note_packet(engine, seen, came_ns, reason);
    }
    if (reason == REASON_NONE) {
        probe_counters_add(engine->counters, PROBE_N_PACKETS_IGNORED, 1);
        return;
    }
    if (plant_is("packet-acks") && reason == REASON_OK) {
        send_alone(engine, attempt, PACKET_ACK);
    }
    struct probe_ending ending = {
        .reason = reason,
        .is_refused = is_segment && reason == REASON_CONNECT_FAILED,
        .end_ns = came_ns < attempt->probe.start_ns ? attempt->probe.start_ns : came_ns,
    };
    if (came_ns >= attempt->probe.deadline_ns) {
        ending = (struct probe_ending){.reason = REASON_CONNECT_TIMEOUT, .is_answered = true};
    }
    end(engine, attempt, ending);
}

/* --- time --- */

static void time_out(struct packet_engine *engine, struct packet_attempt *attempt)
{
    bool is_proof = engine->n_dropped == attempt->n_dropped;

    probe_note(&engine->base, PROBE_STEP_DEADLINE);
    if (attempt->probe.target->definition.check->tcp.on_timeout == TCP_ON_TIMEOUT_RST) {
        send_alone(engine, attempt, PACKET_RST);
    }
    end(engine, attempt,
        (struct probe_ending){.reason =
                                  is_proof ? REASON_CONNECT_TIMEOUT : REASON_LOCAL_NO_BUFFER});
}

static void on_timer(struct packet_engine *engine, struct packet_attempt *attempt, uint64_t now_ns)
{
    enum probe_reason reason = (enum probe_reason)attempt->probe.refused_reason;

    if (reason == REASON_NONE && now_ns >= attempt->probe.deadline_ns) {
        time_out(engine, attempt);
        return;
    }
    if (reason != REASON_NONE) {
        end(engine, attempt, (struct probe_ending){.reason = reason});
    } else if (attempt->n_syns > 0) {
        send_syn_later(engine, attempt);
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
    uint64_t came_ns;
    uint32_t n_seen = 0;
    uint32_t place;

    engine->sink = sink;
    packet_socket_look(&engine->sock, now_ns);
    while (n_seen < PACKET_FRAMES && packet_socket_next(&engine->sock, &seen, &came_ns)) {
        take_packet(engine, &seen, came_ns);
        n_seen++;
    }
    probe_counters_add(engine->counters, PROBE_N_SEEN_BY_RING, n_seen);
    if (engine->xdp != NULL) {
        uint32_t n_noted = packet_xdp_take(engine->xdp, take_packet, engine);

        probe_counters_add(engine->counters, PROBE_N_SEEN_BY_XDP, n_noted);
        n_seen += engine->places.n_taken; /* no descriptor tells of notes: look once a slot */
    }
    if (n_seen > 0) {
        base->quiet_ns = probe_slot_after(now_ns);
    }
    if (timers_next(&engine->places.timers) <= now_ns) {
        count_dropped(engine);
    }
    while (timers_pop(&engine->places.timers, now_ns, &place)) {
        on_timer(engine, &engine->attempts[place], now_ns);
    }
    engine_flush(base);
    engine->sink = NULL;
}

static uint64_t engine_next_ns(const struct probe_engine *base)
{
    const struct packet_engine *engine = (const struct packet_engine *)base;

    return timers_next(&engine->places.timers);
}

/* --- making and ending --- */

static void engine_free(struct probe_engine *base)
{
    struct packet_engine *engine = of(base);

    packet_sender_close(&engine->sender);
    packet_xdp_close(engine->xdp);
    packet_socket_close(&engine->sock);
    packet_ports_close(&engine->ports);
    silent_ways_close(&engine->ways);
    packet_sources_close(&engine->sources);
    probe_buckets_close(&engine->buckets);
    probe_places_close(&engine->places);
    free(engine->attempts);
    free(engine->unsent);
    sodium_memzero(&engine->key, sizeof engine->key);
    free(engine);
}

static const struct probe_engine_ops ops = {
    .free = engine_free,
    .submit = engine_submit,
    .abandon = engine_abandon,
    .flush = engine_flush,
    .next_ns = engine_next_ns,
    .run = engine_run,
};

/* Or the ring sees all, and the way says why. */
static void open_xdp(struct packet_engine *engine, enum packet_receive receive)
{
    enum packet_receive_why why = RECEIVE_CHOSEN;

    if (receive != PACKET_RECEIVE_RING) {
        why = packet_xdp_open(engine->ports.ports, PACKET_PORTS,
                              receive == PACKET_RECEIVE_XDP_DRIVER, &engine->xdp);
    }
    packet_way_set_receive(engine->sender.way, false, why);
    engine->sender.xdp = engine->xdp;
}

/* The sockets, and then the ports that their filter lets through. */
static int open_sockets(struct packet_engine *engine, struct errmsg *err)
{
    int rc = packet_ports_open(&engine->ports, err);

    if (rc != 0) {
        engine->sock = PACKET_SOCKET_CLOSED;
        return rc;
    }
    rc = packet_socket_open(&engine->sock, engine->ports.ports, PACKET_PORTS, err);
    if (rc == 0 && engine->sender.choice != PACKET_SEND_IP) {
        rc = packet_socket_open_link(&engine->sock, err);
    }
    engine->base.fd = engine->sock.receive_fd;
    return rc;
}

static int reserve(struct packet_engine *engine, uint32_t capacity, struct errmsg *err)
{
    engine->attempts = calloc(capacity, sizeof *engine->attempts);
    engine->unsent = calloc(capacity, sizeof *engine->unsent);
    if (engine->attempts == NULL || engine->unsent == NULL ||
        probe_places_init(&engine->places, capacity) != 0 ||
        probe_buckets_init(&engine->buckets, capacity, &engine->key) != 0) {
        return errmsg_set(err, ERR_NOMEM, "probe engine \"packet\": out of memory");
    }
    return 0;
}

int packet_engine_new(const struct packet_engine_options *options, struct probe_engine **ret_engine,
                      struct errmsg *err)
{
    assert(options->capacity >= 1 && options->capacity <= LIMIT_PROBES_IN_FLIGHT);
    struct packet_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL) {
        return errmsg_set(err, ERR_NOMEM, "probe engine \"packet\": out of memory");
    }
    engine->base = (struct probe_engine){
        .ops = &ops,
        .name = "packet",
        .counted_as = PROBE_N_BY_PACKET,
        .capabilities = PROBE_CAN_TCP_HALF_OPEN,
        .capacity = options->capacity,
        .fd = -1,
        .has_expected = true, /* what comes for nobody fills the ring, too */
    };
    engine->lateness = options->lateness;
    engine->counters = options->counters;
    randombytes_buf(&engine->key, sizeof engine->key);
    packet_sources_init(&engine->sources);
    engine->sender = (struct packet_sender){
        .sock = &engine->sock,
        .counters = options->counters,
        .way = options->way != NULL ? options->way : &engine->own_way,
        .choice = (uint8_t)options->send,
        .sent = on_sent,
        .user = engine,
    };
    int rc = open_sockets(engine, err);
    if (rc == 0) {
        rc = reserve(engine, options->capacity, err);
    }
    if (rc != 0) {
        engine_free(&engine->base);
        return rc;
    }
    open_xdp(engine, options->receive);
    packet_sender_open(&engine->sender);
    *ret_engine = &engine->base;
    return 0;
}
