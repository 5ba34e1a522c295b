/* A thread that probes: plans in by a mailbox, results out by a ring, one wake-up each way
 * (design.md 5), of the reader at most one a turn, and fewer while all is well (PROBE_CALM_NS). It
 * owns its sockets and timers, never waits for a reader, and shares nothing but immutable values.
 * More threads may share the work: each gets the plan of its own targets.
 *
 * Start one, give it plans, take results whenever `results_wake` says so. */
#ifndef JURY_PROBE_THREAD_H
#define JURY_PROBE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/loop/wake.h"
#include "agent/loop/watchdog.h"
#include "agent/probe/probe_counts.h"
#include "agent/probe/probe_loop.h"
#include "agent/probe/probe_plan.h"
#include "common/base/err.h"

struct probe_thread_options {
    struct probe_loop_options loop; /* in_flight_max 0 = LIMIT_PROBES_IN_FLIGHT */
    uint32_t ring_results;          /* 0 = LIMIT_RESULT_RING */
    bool makes_packets;            /* tls, grpc, tcp half-open and udp, too, if this process has the
                                      rights */
    struct wake *results_wake;     /* signaled when results wait; kept */
    struct watchdog_loop *watched; /* beaten in each turn; kept; NULL = none */
};

struct probe_thread;

/* options: borrowed, but for what says kept. Errors: ERR_NOMEM, ERR_LIMIT (descriptors, threads),
 * with a sentence. */
int probe_thread_start(const struct probe_thread_options *options, struct probe_thread **ret_thread,
                       struct errmsg *err);
/* Ends all probes under way, waits for the thread (at most one turn), frees everything. Results
 * not taken yet are gone. NULL is allowed. */
void probe_thread_stop(struct probe_thread *thread);

/* Any thread: probe this from now on. plan: taken. The newest plan wins. */
void probe_thread_plan(struct probe_thread *thread, struct probe_plan *plan);
/* The thread that gives the plans: follow these after the plans so far, and after orders before
 * them. orders: copied. Errors: ERR_NOMEM: they and those that waited are not followed. */
int probe_thread_order(struct probe_thread *thread, const struct probe_order orders[],
                       uint32_t n_orders);
/* The reader's thread: the oldest result; false when there is none. */
bool probe_thread_pop(struct probe_thread *thread, struct probe_result *ret_result);

/* Any thread. */
void probe_thread_counts(const struct probe_thread *thread, struct probe_counts *ret_counts);
/* What it can make, a set of enum probe_capability. */
uint32_t probe_thread_capabilities(const struct probe_thread *thread);
/* Why half-open probes cannot be made though options.makes_packets said so, a sentence that lives
 * with the thread; empty when they can. */
const char *probe_thread_packet_problem(const struct probe_thread *thread);
/* How half-open probes leave, now. Lives with the thread. */
const struct packet_way *probe_thread_way(const struct probe_thread *thread);
/* For watchdog_add. */
pthread_t probe_thread_id(const struct probe_thread *thread);

#endif
