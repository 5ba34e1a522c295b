#include "agent/shim/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/core/drain.h"
#include "agent/shim/tcp.h"
#include "common/base/clock.h"
#include "common/base/plant.h"
#include "common/base/units.h"

#define EVENTS_A_ROUND 256

/* --- flows in and out of their lists --- */

void worker_make_ready(struct worker *worker, struct flow *flow)
{
    if (flow->is_ready) {
        return;
    }
    flow->is_ready = true;
    flow->next = NULL;
    *worker->ready_end = flow;
    worker->ready_end = &flow->next;
}

static void close_socket(int *fd, bool by_reset)
{
    if (*fd < 0) {
        return;
    }
    if (by_reset) {
        /* Closing with a linger time of 0 sends RST and drops what was not sent. */
        struct linger linger = {.l_onoff = 1, .l_linger = 0};

        setsockopt(*fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    close(*fd);
    *fd = -1;
}

void worker_end_flow(struct worker *worker, struct flow *flow, bool by_reset)
{
    assert(flow->phase == PHASE_CONNECTING || flow->phase == PHASE_OPEN);
    wheel_remove(&flow->timer);
    relay_release(&flow->relay, &worker->buffers);
    close_socket(&flow->relay.ends[RELAY_CLIENT].fd, by_reset);
    close_socket(&flow->relay.ends[RELAY_BACKEND].fd, by_reset);
    flow_leave(&worker->flows, flow);
    if (flow->scope_counts != NULL && flow->scope_counts->birth == flow->scope_birth) {
        status_sub(&flow->scope_counts->flows, 1);
    }
    status_sub(&worker->counts->flows, 1);
    flow->phase = PHASE_DEAD;
    if (!flow->is_ready) {
        flow->next = worker->dead;
        worker->dead = flow;
    }
}

/* Events of this round may still name a dead flow, so its slot is free only after the round. */
static void bury_dead(struct worker *worker)
{
    while (worker->dead != NULL) {
        struct flow *flow = worker->dead;

        worker->dead = flow->next;
        flow_give_back(&worker->flows, flow);
    }
}

static void run_ready(struct worker *worker)
{
    struct flow *flow = worker->ready;

    worker->ready = NULL;
    worker->ready_end = &worker->ready;
    while (flow != NULL) {
        struct flow *next = flow->next;

        flow->is_ready = false;
        if (flow->phase == PHASE_DEAD) {
            flow->next = worker->dead;
            worker->dead = flow;
        } else if (tcp_pump(worker, flow) == RELAY_STARVED) {
            flow->is_ready = true;
            flow->next = worker->starved;
            worker->starved = flow;
        }
        flow = next;
    }
    while (worker->starved != NULL && relay_buffers_left(&worker->buffers)) {
        flow = worker->starved;
        worker->starved = flow->next;
        flow->is_ready = false;
        worker_make_ready(worker, flow);
        if (worker->buffers.n_free == 0) {
            break; /* one at a time: the first may take what there is */
        }
    }
}

/* --- following the table --- */

static void watch_listeners(struct worker *worker, const struct shim_view *view)
{
    const struct shim_view *last = worker->view;

    for (uint32_t i = 0; last != NULL && i < last->n_entries; i++) {
        const struct shim_listener *listener = last->entries[i].listener;
        bool is_kept = i < view->n_entries && view->entries[i].listener == listener;

        if (!is_kept) {
            epoll_ctl(worker->epoll_fd, EPOLL_CTL_DEL, listener->fds[worker->index], NULL);
        }
    }
    for (uint32_t i = 0; i < view->n_entries; i++) {
        const struct shim_listener *listener = view->entries[i].listener;
        bool is_kept = last != NULL && i < last->n_entries && last->entries[i].listener == listener;
        struct epoll_event event = {
            .events = EPOLLIN,
            .data.u64 = (uint64_t)WORKER_EVENT_LISTENER << 32 | i,
        };

        if (!is_kept) {
            epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, listener->fds[worker->index], &event);
        }
    }
}

static void follow_view(struct worker *worker)
{
    struct shim_view *view = view_box_take(worker->box, &worker->view_version);

    if (view == NULL) {
        return;
    }
    if (chooser_follow(&worker->chooser, view->snapshot) != 0) {
        /* The old table serves on; the generation stays unadopted, which the agent sees. */
        log_event(LOG_LEVEL_ERROR, "table_not_adopted", "worker=%u reason=\"out of memory\"",
                  worker->index);
        shim_view_unref(view);
        worker->view_version = 0; /* take it again in the next round */
        return;
    }
    watch_listeners(worker, view);
    shim_view_unref(worker->view);
    worker->view = view;
    worker->generation = 0;
}

/* What the policy of their backends asks of existing flows (spec.md 6). */
static void apply_policies(struct worker *worker)
{
    uint64_t boot_ns = clock_boottime_ns();
    struct row_use *next;

    for (struct row_use *use = worker->flows.used; use != NULL; use = next) {
        struct table_row row = table_snapshot_row(worker->view->snapshot, use->row, use->birth);

        next = use->next_used; /* the use goes with its last flow */
        if (drain_decide(row.flow_policy, row.deadline_boot_ns, boot_ns) != DRAIN_CLOSE ||
            plant_is("shim-never-close")) {
            continue;
        }
        for (uint32_t left = use->n_flows; left > 0; left--) {
            struct flow *flow = use->flows;

            status_add(&worker->counts->closed, 1);
            if (use->counts != NULL) {
                flow_count(use->counts, use->birth, &use->counts->closed, 1);
            }
            worker_end_flow(worker, flow, true);
        }
    }
}

/* The status file was made anew: what was counted goes on there, and what is open is counted again.
 */
static void follow_status(struct worker *worker)
{
    struct status_file *status = atomic_load_explicit(&worker->next_status, memory_order_acquire);
    uint64_t n_flows = 0;

    if (status == worker->status) {
        return;
    }
    status_file_carry(worker->status, status, worker->index);
    worker->status = status;
    worker->counts = status_file_worker(status, worker->index);
    for (uint32_t i = 0; i < worker->flows.n_touched; i++) {
        struct flow *flow = &worker->flows.flows[i];

        if (flow->phase == PHASE_CONNECTING || flow->phase == PHASE_OPEN) {
            n_flows++;
            flow->scope_counts =
                status_file_recount(status, worker->index, flow->scope_row, flow->scope_birth, 1);
        }
    }
    for (struct row_use *use = worker->flows.used; use != NULL; use = use->next_used) {
        use->counts =
            status_file_recount(status, worker->index, use->row, use->birth, use->n_flows);
    }
    status_set(&worker->counts->flows, n_flows);
    if (worker->view != NULL && worker->generation != 0) {
        status_set(&worker->counts->adopted_layout,
                   table_snapshot_layout_number(worker->view->snapshot));
        status_set(&worker->counts->adopted_generation, worker->generation);
    }
    atomic_store_explicit(&worker->used_status, status, memory_order_release);
}

/* At the top of the loop, before any event is taken: what is published as adopted holds for
 * everything that follows. */
static void adopt(struct worker *worker)
{
    bool is_current;

    follow_view(worker);
    if (worker->view == NULL) {
        return;
    }
    uint64_t generation = table_snapshot_generation(worker->view->snapshot, &is_current);
    if (generation <= worker->generation || !is_current) { /* it goes back in a cut file only */
        return;
    }
    worker->generation = generation;
    chooser_adopt(&worker->chooser, generation);
    apply_policies(worker);
    status_set(&worker->counts->adopted_layout,
               table_snapshot_layout_number(worker->view->snapshot));
    status_set(&worker->counts->adopted_generation, generation);
}

/* --- the loop --- */

static void tick(struct worker *worker)
{
    struct wheel_timer *timer;

    while ((timer = wheel_pop(&worker->wheel, worker->now_ms)) != NULL) {
        tcp_on_timer(worker, (struct flow *)(void *)((char *)timer - offsetof(struct flow, timer)));
    }
    if (worker->view != NULL) {
        apply_policies(worker);
    }
    status_set(&worker->counts->heartbeat_ns, clock_boottime_ns());
    worker->next_tick_ms = worker->now_ms + WHEEL_SLOT_MS;
}

static void dispatch(struct worker *worker, const struct epoll_event *event)
{
    uint32_t index = (uint32_t)event->data.u64;
    uint64_t value;

    switch ((enum worker_event)(event->data.u64 >> 32)) {
    case WORKER_EVENT_WAKE:
        if (read(worker->wake_fd, &value, sizeof value) < 0) {
            assert(errno == EAGAIN || errno == EINTR);
        }
        break;
    case WORKER_EVENT_LISTENER:
        /* A view that was adopted after the event was taken may have fewer. */
        if (index < worker->view->n_entries) {
            tcp_accept(worker, &worker->view->entries[index]);
        }
        break;
    case WORKER_EVENT_CLIENT:
        tcp_on_event(worker, flow_at(&worker->flows, index), RELAY_CLIENT, event->events);
        break;
    case WORKER_EVENT_BACKEND:
        tcp_on_event(worker, flow_at(&worker->flows, index), RELAY_BACKEND, event->events);
        break;
    }
}

static int wait_ms(const struct worker *worker)
{
    if (worker->ready != NULL) {
        return 0;
    }
    uint64_t now_ms = clock_monotonic_ns() / NS_PER_MS;

    return worker->next_tick_ms > now_ms ? (int)(worker->next_tick_ms - now_ms) : 0;
}

static void end_all_flows(struct worker *worker)
{
    struct row_use *use;

    while ((use = worker->flows.used) != NULL) {
        worker_end_flow(worker, use->flows, true);
    }
}

static void *worker_run(void *user)
{
    struct worker *worker = user;
    struct epoll_event events[EVENTS_A_ROUND];

    for (;;) {
        int n = epoll_wait(worker->epoll_fd, events, EVENTS_A_ROUND, wait_ms(worker));

        worker->now_ms = clock_monotonic_ns() / NS_PER_MS;
        follow_status(worker);
        adopt(worker);
        for (int i = 0; i < n; i++) {
            dispatch(worker, &events[i]);
        }
        run_ready(worker);
        if (worker->now_ms >= worker->next_tick_ms) {
            tick(worker);
        }
        int stop = atomic_load_explicit(worker->stop, memory_order_relaxed);
        if (stop == WORKER_ABORT) {
            end_all_flows(worker);
        }
        bury_dead(worker);
        if (stop != WORKER_RUN && worker->flows.used == NULL) {
            return NULL;
        }
    }
}

/* --- start and end --- */

static int make_descriptors(struct worker *worker, struct errmsg *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};

    worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    worker->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (worker->epoll_fd < 0 || worker->wake_fd < 0 || worker->spare_fd < 0 ||
        epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->wake_fd, &event) != 0) {
        return errmsg_set(err, err_from_errno(errno), "worker %u: %s", worker->index,
                          strerror(errno));
    }
    return 0;
}

static void worker_free(struct worker *worker)
{
    int fds[] = {worker->epoll_fd, worker->wake_fd, worker->spare_fd};

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    chooser_close(&worker->chooser);
    shim_view_unref(worker->view);
    relay_buffers_close(&worker->buffers);
    flow_pool_close(&worker->flows);
}

int worker_start(struct worker *worker, struct errmsg *err)
{
    worker->now_ms = clock_monotonic_ns() / NS_PER_MS;
    worker->next_tick_ms = worker->now_ms;
    worker->ready_end = &worker->ready;
    worker->counts = status_file_worker(worker->status, worker->index);
    atomic_init(&worker->next_status, worker->status);
    atomic_init(&worker->used_status, worker->status);
    wheel_init(&worker->wheel, worker->now_ms);
    chooser_init(&worker->chooser, clock_monotonic_ns() + worker->index);
    int result = make_descriptors(worker, err);
    if (result == 0 && (flow_pool_init(&worker->flows, worker->config->n_flows_max) != 0 ||
                        relay_buffers_init(&worker->buffers, worker->config->n_buffers) != 0)) {
        result = errmsg_set(err, ERR_NOMEM, "worker %u: no memory for %u flows and %u buffers",
                            worker->index, worker->config->n_flows_max, worker->config->n_buffers);
    }
    if (result == 0) {
        int errnum = pthread_create(&worker->thread, NULL, worker_run, worker);

        if (errnum != 0) {
            result = errmsg_set(err, err_from_errno(errnum), "worker %u: %s", worker->index,
                                strerror(errnum));
        }
    }
    if (result != 0) {
        worker_free(worker);
    }
    return result;
}

void worker_wake(struct worker *worker)
{
    uint64_t one = 1;
    /* EAGAIN: it is awake already. */
    ssize_t n = write(worker->wake_fd, &one, sizeof one);

    (void)n;
}

void worker_join(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
    worker_free(worker);
}
