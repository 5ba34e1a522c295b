#include "agent/probe/probe_thread.h"

#include <assert.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/loop/mailbox.h"
#include "agent/loop/ring.h"
#include "agent/loop/thread.h"
#include "agent/probe/connect_engine.h"
#include "agent/probe/order_batch.h"
#include "agent/probe/packet_engine.h"
#include "agent/probe/probe_clocks.h"
#include "agent/probe/probe_lateness.h"
#include "agent/probe/udp_engine.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"

struct probe_thread {
    /* shared */
    struct mailbox plans;
    struct mailbox orders; /* struct order_batch */
    struct wake wake;
    struct ring *results;
    _Atomic bool is_stopping;
    /* set before the thread starts */
    struct wake *results_wake;
    struct watchdog_loop *watched;
    uint32_t capabilities;
    struct errmsg packet_problem;
    pthread_t id;
    /* written by the thread, read by anybody */
    struct packet_way way;
    /* the thread's own; the counters are read by anybody */
    struct probe_lateness lateness;
    struct probe_loop loop;
};

static void take_newest_plan(struct probe_thread *thread, uint64_t now_ns)
{
    struct probe_plan *plan = mailbox_take(&thread->plans);

    if (plan == NULL) {
        return;
    }
    int err = probe_loop_take_plan(&thread->loop, plan, now_ns);
    if (err != 0) {
        log_event(LOG_LEVEL_ERROR, "probe_plan_incomplete", "targets=%u error=\"%s\"",
                  plan->n_targets, err_text(err));
    }
}

/* The plan that an order is about was given before it. */
static void follow_orders(struct probe_thread *thread, uint64_t now_ns)
{
    struct order_batch *batch = mailbox_take(&thread->orders);

    take_newest_plan(thread, now_ns);
    for (uint32_t i = 0; batch != NULL && i < batch->n_orders; i++) {
        probe_schedule_order(&thread->loop.schedule, &batch->orders[i], now_ns);
    }
    free(batch);
}

static void count_lateness(struct probe_thread *thread)
{
    struct probe_counters *counters = &thread->loop.counters;

    probe_counters_set(counters, PROBE_STALLED_NS, thread->lateness.stalled_ns);
    probe_counters_set(counters, PROBE_LATE_MAX_NS, thread->lateness.late_max_ns);
    probe_counters_set(counters, PROBE_SUSPENDED_NS, thread->lateness.suspended_ns);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When to be back: for the loop, for the watchdog, and often enough while probes are under way that
 * a stall can be seen (probe_lateness.h). Counted from the start of this turn, so that a turn that
 * takes long counts as a stall too. */
static uint64_t next_wake_ns(const struct probe_thread *thread, uint64_t turn_ns)
{
    uint64_t next_ns = probe_loop_next_ns(&thread->loop, turn_ns);

    if (thread->loop.n_in_flight > 0) {
        next_ns = earlier(next_ns, turn_ns + PROBE_WAKE_MAX_NS);
    }
    if (thread->watched != NULL) {
        next_ns = earlier(next_ns, turn_ns + WATCHDOG_BEAT_MS * NS_PER_MS);
    }
    return next_ns;
}

/* Looks that engines put off: to be late for one is nobody's stall, since nothing was due. */
static uint64_t next_look_ns(const struct probe_thread *thread, uint64_t turn_ns)
{
    uint64_t next_ns = TIMER_NEVER;

    for (uint32_t i = 0; i < thread->loop.n_engines; i++) {
        const struct probe_engine *engine = thread->loop.engines[i];

        if (engine->has_expected && engine->quiet_ns > turn_ns) {
            next_ns = earlier(next_ns, engine->quiet_ns);
        }
    }
    return next_ns;
}

/* Returns whether another thread woke this one. */
static bool wait_until(struct probe_thread *thread, uint64_t until_ns)
{
    struct pollfd fds[1 + PROBE_ENGINES_MAX] = {
        {.fd = wake_fd(&thread->wake), .events = POLLIN},
    };
    nfds_t n_fds = 1;
    uint64_t now_ns = clock_monotonic_ns();

    for (uint32_t i = 0; i < thread->loop.n_engines; i++) {
        const struct probe_engine *engine = thread->loop.engines[i];

        if (engine->quiet_ns <= now_ns) {
            fds[n_fds++] = (struct pollfd){.fd = engine->fd, .events = POLLIN};
        }
    }
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec wait = {
        .tv_sec = (time_t)(wait_ns / NS_PER_SECOND),
        .tv_nsec = (long)(wait_ns % NS_PER_SECOND),
    };
    /* Errors are EINTR or a shortage of kernel memory: the turn goes on in either case. */
    int n = ppoll(fds, n_fds, until_ns == TIMER_NEVER ? NULL : &wait, NULL);
    return n > 0 && fds[0].revents != 0;
}

static void *thread_body(void *arg)
{
    struct probe_thread *thread = arg;
    uint64_t boottime_ns;
    uint64_t now_ns = probe_clocks_read(&boottime_ns);
    bool is_woken = false;

    probe_lateness_init(&thread->lateness, now_ns, boottime_ns);
    while (!atomic_load_explicit(&thread->is_stopping, memory_order_acquire)) {
        if (thread->watched != NULL) {
            watchdog_beat(thread->watched);
        }
        if (is_woken) {
            wake_clear(&thread->wake);
            follow_orders(thread, now_ns);
        }
        probe_loop_turn(&thread->loop, clock_monotonic_ns());
        count_lateness(thread);

        uint64_t next_ns = next_wake_ns(thread, now_ns);
        uint64_t back_ns = earlier(next_ns, next_look_ns(thread, now_ns));
        if (probe_loop_wants_reader(&thread->loop, back_ns)) {
            wake_signal(thread->results_wake);
        }
        probe_lateness_sleep(&thread->lateness, next_ns);
        is_woken = wait_until(thread, back_ns);
        now_ns = probe_clocks_read(&boottime_ns);
        probe_lateness_wake(&thread->lateness, now_ns, boottime_ns);
    }
    return NULL;
}

static void drop_plan(void *plan)
{
    probe_plan_release(plan);
}

static void free_thread(struct probe_thread *thread)
{
    probe_loop_close(&thread->loop);
    mailbox_close(&thread->plans);
    mailbox_close(&thread->orders);
    wake_close(&thread->wake);
    ring_free(thread->results);
    free(thread);
}

static void add_engine(struct probe_thread *thread, struct probe_engine *engine)
{
    probe_loop_add_engine(&thread->loop, engine);
    thread->capabilities |= engine->capabilities;
}

static int add_connect_engine(struct probe_thread *thread, uint32_t in_flight_max,
                              bool with_options, struct errmsg *err)
{
    struct probe_engine *engine;
    int rc = connect_engine_new(in_flight_max, &thread->lateness, &engine, err);

    if (rc == 0) {
        if (with_options) {
            /* Or such probes say that they cannot be made. */
            (void)connect_engine_enable_tls(engine);
            (void)connect_engine_enable_grpc(engine);
            connect_engine_enable_rst(engine);
        }
        add_engine(thread, engine);
    }
    return rc;
}

/* Without rights it makes all kinds but one. */
static int add_udp_engine(struct probe_thread *thread, uint32_t in_flight_max, struct errmsg *err)
{
    struct probe_engine *engine;
    int rc = udp_engine_new(in_flight_max, &thread->lateness, &thread->loop.counters, &engine, err);

    if (rc == 0) {
        add_engine(thread, engine);
        probe_loop_deny(&thread->loop, PROBE_CAN_UDP_PORT_ECHO & ~engine->capabilities);
    }
    return rc;
}

/* Without rights, or on a kernel that has no packet sockets, the node goes on with its other kinds
 * of probes; without descriptors or memory it does not start. */
static int add_packet_engine(struct probe_thread *thread, uint32_t in_flight_max,
                             struct errmsg *err)
{
    struct probe_engine *engine;
    const struct packet_engine_options options = {
        .capacity = in_flight_max,
        .send = thread->loop.options.half_open_send,
        .receive = thread->loop.options.half_open_receive,
        .lateness = &thread->lateness,
        .counters = &thread->loop.counters,
        .way = &thread->way,
    };
    int rc = packet_engine_new(&options, &engine, &thread->packet_problem);

    if (rc == 0) {
        add_engine(thread, engine);
    } else if (rc == ERR_DENIED) {
        probe_loop_deny(&thread->loop, PROBE_CAN_TCP_HALF_OPEN);
        rc = 0;
    } else if (rc == ERR_IO) {
        rc = 0;
    } else {
        *err = thread->packet_problem;
    }
    return rc;
}

/* Everything but the thread. */
static int prepare(struct probe_thread *thread, const struct probe_thread_options *options,
                   struct errmsg *err)
{
    struct probe_loop_options loop = options->loop;

    loop.in_flight_max = loop.in_flight_max == 0 ? LIMIT_PROBES_IN_FLIGHT : loop.in_flight_max;
    loop.slot_ns = PROBE_SLOT_NS;
    thread->results =
        ring_new(sizeof(struct probe_result),
                 options->ring_results == 0 ? LIMIT_RESULT_RING : options->ring_results);
    probe_loop_init(&thread->loop, &loop, thread->results);
    if (thread->results == NULL) {
        return errmsg_set(err, ERR_NOMEM, "probe thread: out of memory for the result ring");
    }
    int rc = add_connect_engine(thread, loop.in_flight_max, options->makes_packets, err);
    if (rc == 0 && options->makes_packets) {
        rc = add_packet_engine(thread, loop.in_flight_max, err);
    }
    if (rc == 0 && options->makes_packets) {
        rc = add_udp_engine(thread, loop.in_flight_max, err);
    }
    return rc;
}

int probe_thread_start(const struct probe_thread_options *options, struct probe_thread **ret_thread,
                       struct errmsg *err)
{
    assert(options->results_wake != NULL);
    struct probe_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return errmsg_set(err, ERR_NOMEM, "probe thread: out of memory");
    }
    atomic_init(&thread->is_stopping, false);
    thread->results_wake = options->results_wake;
    thread->watched = options->watched;
    int rc = wake_init(&thread->wake);
    if (rc != 0) {
        free(thread);
        return errmsg_set(err, rc, "probe thread: no descriptor for its wake-up: %s", err_text(rc));
    }
    mailbox_init(&thread->plans, drop_plan);
    mailbox_init(&thread->orders, free);
    rc = prepare(thread, options, err);
    if (rc == 0) {
        rc = thread_start(&thread->id, "jury-probe", thread_body, thread);
        if (rc != 0) {
            errmsg_set(err, rc, "probe thread: cannot start: %s", err_text(rc));
        }
    }
    if (rc != 0) {
        free_thread(thread);
        return rc;
    }
    *ret_thread = thread;
    return 0;
}

void probe_thread_stop(struct probe_thread *thread)
{
    if (thread == NULL) {
        return;
    }
    atomic_store_explicit(&thread->is_stopping, true, memory_order_release);
    wake_signal(&thread->wake);
    pthread_join(thread->id, NULL);
    free_thread(thread);
}

void probe_thread_plan(struct probe_thread *thread, struct probe_plan *plan)
{
    mailbox_put(&thread->plans, plan);
    wake_signal(&thread->wake);
}

int probe_thread_order(struct probe_thread *thread, const struct probe_order orders[],
                       uint32_t n_orders)
{
    struct order_batch *waiting = mailbox_take(&thread->orders);
    struct order_batch *batch = order_batch_join(waiting, orders, n_orders);

    if (batch == NULL) {
        return ERR_NOMEM;
    }
    mailbox_put(&thread->orders, batch);
    wake_signal(&thread->wake);
    return 0;
}

bool probe_thread_pop(struct probe_thread *thread, struct probe_result *ret_result)
{
    return ring_pop(thread->results, ret_result);
}

void probe_thread_counts(const struct probe_thread *thread, struct probe_counts *ret_counts)
{
    probe_counters_read(&thread->loop.counters, ret_counts);
}

const char *probe_thread_packet_problem(const struct probe_thread *thread)
{
    return thread->packet_problem.text;
}

const struct packet_way *probe_thread_way(const struct probe_thread *thread)
{
    return &thread->way;
}

uint32_t probe_thread_capabilities(const struct probe_thread *thread)
{
    return thread->capabilities;
}

pthread_t probe_thread_id(const struct probe_thread *thread)
{
    return thread->id;
}
