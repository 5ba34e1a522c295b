/* A worker: one thread with its own listening sockets, epoll and flows. It shares nothing with the
 * others but what is published to it (view.h) and a stop word; its numbers go to its own block of
 * the status file. */
#ifndef JURY_SHIM_WORKER_H
#define JURY_SHIM_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/shim/chooser.h"
#include "agent/shim/flow.h"
#include "agent/shim/view.h"
#include "agent/table/status_file.h"
#include "common/base/log.h"

enum worker_stop {
    WORKER_RUN = 0,
    WORKER_FINISH = 1, /* end when the last flow has ended; nothing is accepted any more */
    WORKER_ABORT = 2   /* reset all flows and end */
};

struct worker_config {
    uint32_t n_flows_max;
    uint32_t n_buffers;
    uint32_t connect_timeout_ms; /* of all attempts of one flow together */
};

struct worker {
    /* Set before the start, kept. */
    const struct worker_config *config;
    struct view_box *box;
    struct status_file *status; /* that is in use; the worker's thread */
    const atomic_int *stop;     /* enum worker_stop */
    uint32_t index;

    /* A status file that was made anew, and the one that the worker uses: the old one may be closed
     * when they are the same. */
    _Atomic(struct status_file *) next_status;
    _Atomic(struct status_file *) used_status;

    pthread_t thread;
    int epoll_fd;
    int wake_fd;  /* eventfd: a view or a stop is there */
    int spare_fd; /* given up to refuse a connection when descriptors have run out; -1 = none */
    struct shim_view *view; /* adopted; NULL before the first table */
    unsigned long view_version;
    uint64_t generation; /* adopted */
    struct chooser chooser;
    struct flow_pool flows;
    struct wheel wheel;
    struct relay_buffers buffers;
    struct jury_status_worker *counts;
    struct flow *ready; /* with work left, in turn */
    struct flow **ready_end;
    struct flow *starved; /* waiting for a buffer */
    struct flow *dead;
    uint64_t now_ms;
    uint64_t next_tick_ms;
    struct log_limit limit_log;
};

/* What epoll's data carries. */
enum worker_event {
    WORKER_EVENT_WAKE = 0,
    WORKER_EVENT_LISTENER = 1, /* index of the view's entry */
    WORKER_EVENT_CLIENT = 2,   /* index of the flow */
    WORKER_EVENT_BACKEND = 3
};

/* Errors: ERR_NOMEM, ERR_IO, with a sentence; nothing runs then. */
int worker_start(struct worker *worker, struct errmsg *err);
/* Any thread: look at the box and the stop word now. */
void worker_wake(struct worker *worker);
/* Wait for the thread to end and free everything. */
void worker_join(struct worker *worker);

/* Put a flow in the line of those with work left. */
void worker_make_ready(struct worker *worker, struct flow *flow);
/* End a flow: both sockets are closed, by RST if so wanted, and it is uncounted. */
void worker_end_flow(struct worker *worker, struct flow *flow, bool by_reset);

#endif
