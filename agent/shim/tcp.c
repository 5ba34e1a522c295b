#include "agent/shim/tcp.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/core/drain.h"
#include "agent/core/flow_key.h"
#include "agent/core/fwd_layout.h"
#include "agent/shim/sockaddr.h"
#include "common/base/clock.h"
#include "common/base/units.h"

#define ACCEPTS_A_ROUND 64
#define LIMIT_LOG_PERIOD_NS (10 * NS_PER_SECOND)

static const struct table_layout *layout_of(const struct worker *worker)
{
    return table_snapshot_layout(worker->view->snapshot);
}

static struct jury_status_row *counts_of(struct worker *worker, uint32_t row, uint64_t birth)
{
    return status_file_row(worker->status, worker->index, row, birth);
}

static void reset_and_close(int fd)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static void refuse_at_limit(struct worker *worker, const char *what)
{
    uint64_t n_dropped;

    status_add(&worker->counts->refused_limit, 1);
    if (log_allowed(&worker->limit_log, clock_monotonic_ns(), LIMIT_LOG_PERIOD_NS, &n_dropped)) {
        log_event(LOG_LEVEL_WARNING, "flows_refused", "worker=%u reason=%s flows=%u dropped=%llu",
                  worker->index, what, worker->flows.n_flows, (unsigned long long)n_dropped);
    }
}

static int watch(struct worker *worker, struct flow *flow, enum relay_side side)
{
    uint64_t kind = side == RELAY_CLIENT ? WORKER_EVENT_CLIENT : WORKER_EVENT_BACKEND;
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
        .data.u64 = kind << 32 | flow_index(&worker->flows, flow),
    };

    return epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, flow->relay.ends[side].fd, &event);
}

static void set_nodelay(int fd)
{
    int on = 1;

    /* Bytes are passed on as they come; waiting for more is the ends' business. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* --- connecting --- */

static void open_flow(struct worker *worker, struct flow *flow)
{
    flow->phase = PHASE_OPEN;
    flow->relay.ends[RELAY_BACKEND].is_writable = true;
    flow->relay.ends[RELAY_BACKEND].is_readable = true;
    flow->last_active_ms = worker->now_ms;
    wheel_set(&worker->wheel, &flow->timer, worker->now_ms + flow->idle_timeout_ms);
    worker_make_ready(worker, flow);
}

enum attempt {
    ATTEMPT_STARTED = 0,
    ATTEMPT_FAILED = 1, /* of that backend */
    ATTEMPT_LIMIT = 2   /* a local bound; another backend would not do better */
};

static enum attempt start_attempt(struct worker *worker, struct flow *flow,
                                  const struct jury_member *member)
{
    struct sockaddr_storage address;
    struct endpoint at;

    fwd_endpoint_get(&member->at, &at);
    socklen_t n_bytes = sockaddr_put(&at, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno == EAFNOSUPPORT ? ATTEMPT_FAILED : ATTEMPT_LIMIT;
    }
    set_nodelay(fd);
    flow->relay.ends[RELAY_BACKEND] = (struct relay_end){.fd = fd};
    int rc = connect(fd, (struct sockaddr *)&address, n_bytes);
    if (rc != 0 && errno != EINPROGRESS) {
        return errno == EADDRNOTAVAIL || errno == EAGAIN ? ATTEMPT_LIMIT : ATTEMPT_FAILED;
    }
    if (watch(worker, flow, RELAY_BACKEND) != 0) {
        return ATTEMPT_LIMIT;
    }
    if (rc == 0) {
        open_flow(worker, flow);
        return ATTEMPT_STARTED;
    }
    uint64_t due_ms = worker->now_ms + worker->config->connect_timeout_ms / SELECT_TRIES;
    wheel_set(&worker->wheel, &flow->timer,
              due_ms < flow->connect_deadline_ms ? due_ms : flow->connect_deadline_ms);
    return ATTEMPT_STARTED;
}

/* The attempt under way has failed or is given up. */
static void drop_attempt(struct worker *worker, struct flow *flow)
{
    struct row_use *use = flow->use;

    status_add(&worker->counts->connect_failures, 1);
    if (use->counts != NULL) {
        flow_count(use->counts, use->birth, &use->counts->connect_failures, 1);
    }
    if (flow->relay.ends[RELAY_BACKEND].fd >= 0) {
        reset_and_close(flow->relay.ends[RELAY_BACKEND].fd);
        flow->relay.ends[RELAY_BACKEND].fd = -1;
    }
    wheel_remove(&flow->timer);
    flow_leave(&worker->flows, flow);
}

static uint32_t pick_next(struct worker *worker, const struct flow *flow)
{
    uint32_t scope =
        table_snapshot_scope_of_row(worker->view->snapshot, flow->scope_row, flow->scope_birth);

    if (scope == TABLE_NO_SCOPE || flow->n_tried == SELECT_TRIES) {
        return SELECT_NONE;
    }
    return chooser_pick(&worker->chooser, scope, flow->hash, flow->tried_ids, flow->n_tried);
}

/* Try members one after the other until an attempt is under way. Ends the flow when none is left.
 */
static void connect_to(struct worker *worker, struct flow *flow, uint32_t member_index)
{
    while (member_index != SELECT_NONE && worker->now_ms < flow->connect_deadline_ms) {
        const struct jury_member *member = table_layout_member(layout_of(worker), member_index);

        if (flow->n_tried > 0) {
            status_add(&worker->counts->retried, 1);
        }
        flow->tried_ids[flow->n_tried++] = member->select_id;
        /* Counted before the backend is contacted: see the drain barrier in jury_table.h. */
        flow_join(&worker->flows, flow, member->row, member->birth,
                  counts_of(worker, member->row, member->birth));
        switch (start_attempt(worker, flow, member)) {
        case ATTEMPT_STARTED:
            return;
        case ATTEMPT_LIMIT:
            refuse_at_limit(worker, "descriptors_or_ports");
            worker_end_flow(worker, flow, true);
            return;
        case ATTEMPT_FAILED:
            break;
        }
        drop_attempt(worker, flow);
        member_index = pick_next(worker, flow);
    }
    status_add(&worker->counts->unreached, 1);
    worker_end_flow(worker, flow, true);
}

static void on_connect_event(struct worker *worker, struct flow *flow)
{
    int errnum = 0;
    socklen_t n_bytes = sizeof errnum;

    if (getsockopt(flow->relay.ends[RELAY_BACKEND].fd, SOL_SOCKET, SO_ERROR, &errnum, &n_bytes) !=
        0) {
        errnum = errno;
    }
    if (errnum == 0) {
        open_flow(worker, flow);
        return;
    }
    drop_attempt(worker, flow);
    connect_to(worker, flow, pick_next(worker, flow));
}

static void on_connect_timer(struct worker *worker, struct flow *flow)
{
    uint32_t member = pick_next(worker, flow);

    if (member == SELECT_NONE && worker->now_ms < flow->connect_deadline_ms) {
        /* Nobody else to ask: this attempt has all the time there is. */
        wheel_set(&worker->wheel, &flow->timer, flow->connect_deadline_ms);
        return;
    }
    drop_attempt(worker, flow);
    connect_to(worker, flow, member);
}

/* --- accepting --- */

static bool key_of(const struct shim_entry *entry, int fd, const struct sockaddr_storage *client,
                   struct flow_key *ret_key)
{
    struct sockaddr_storage local;
    socklen_t n_bytes = sizeof local;

    *ret_key = (struct flow_key){.ip_protocol = IPPROTO_TCP};
    sockaddr_get(client, &ret_key->source);
    ret_key->destination = entry->listener->at;
    if (addr_is_unspecified(&entry->listener->at.addr)) {
        if (getsockname(fd, (struct sockaddr *)&local, &n_bytes) != 0) {
            return false;
        }
        sockaddr_get(&local, &ret_key->destination);
    }
    return ret_key->source.addr.family != ADDR_NONE;
}

static uint64_t hash_of(const struct worker *worker, const struct jury_scope *scope,
                        const struct flow_key *key)
{
    const struct jury_layout *header = layout_of(worker)->header;
    struct hash_key hash_key = {.k0 = header->hash_key0, .k1 = header->hash_key1};

    return flow_key_hash(key, scope->scheduler, &hash_key);
}

static void count_refused(struct worker *worker, const struct jury_scope *scope)
{
    struct jury_status_row *counts = counts_of(worker, scope->row, scope->birth);

    status_add(&worker->counts->refused_closed, 1);
    if (counts != NULL) {
        flow_count(counts, scope->birth, &counts->refused, 1);
    }
}

/* Fill in a new flow and count it. */
static void begin_flow(struct worker *worker, struct flow *flow, int fd,
                       const struct jury_listener *listener, const struct jury_scope *scope)
{
    flow->phase = PHASE_CONNECTING;
    flow->relay.ends[RELAY_CLIENT].fd = fd;
    flow->idle_timeout_ms =
        listener->idle_timeout_ms != 0 ? listener->idle_timeout_ms : scope->idle_timeout_ms;
    flow->connect_deadline_ms = worker->now_ms + worker->config->connect_timeout_ms;
    flow->last_active_ms = worker->now_ms;
    flow->scope_row = scope->row;
    flow->scope_birth = scope->birth;
    flow->scope_counts = counts_of(worker, scope->row, scope->birth);
    status_add(&worker->counts->flows, 1);
    if (flow->scope_counts != NULL) {
        flow_count(flow->scope_counts, scope->birth, &flow->scope_counts->flows, 1);
        flow_count(flow->scope_counts, scope->birth, &flow->scope_counts->new_flows, 1);
    }
}

static void take_client(struct worker *worker, const struct shim_entry *entry, int fd,
                        const struct sockaddr_storage *client)
{
    const struct jury_listener *listener = table_layout_listener(layout_of(worker), entry->index);
    const struct jury_scope *scope = table_layout_scope(layout_of(worker), listener->scope);
    struct flow_key key;

    status_add(&worker->counts->accepted, 1);
    if (!key_of(entry, fd, client, &key)) {
        reset_and_close(fd); /* gone already */
        return;
    }
    uint64_t hash = hash_of(worker, scope, &key);
    uint32_t member = chooser_pick(&worker->chooser, listener->scope, hash, NULL, 0);
    if (member == SELECT_NONE) {
        count_refused(worker, scope);
        reset_and_close(fd);
        return;
    }
    struct flow *flow = flow_take(&worker->flows);
    if (flow == NULL) {
        refuse_at_limit(worker, "flows");
        reset_and_close(fd);
        return;
    }
    set_nodelay(fd);
    begin_flow(worker, flow, fd, listener, scope);
    flow->hash = hash;
    if (watch(worker, flow, RELAY_CLIENT) != 0) {
        refuse_at_limit(worker, "epoll");
        worker_end_flow(worker, flow, true);
        return;
    }
    connect_to(worker, flow, member);
}

/* No descriptor left: without this the connection would stay in the queue and wake us for ever. */
static void refuse_one(struct worker *worker, int listener_fd)
{
    if (worker->spare_fd >= 0) {
        close(worker->spare_fd);
    }
    int fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        status_add(&worker->counts->accepted, 1);
        refuse_at_limit(worker, "descriptors");
        reset_and_close(fd);
    }
    worker->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void tcp_accept(struct worker *worker, const struct shim_entry *entry)
{
    int listener_fd = entry->listener->fds[worker->index];

    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        struct sockaddr_storage client;
        socklen_t n_bytes = sizeof client;
        int fd = accept4(listener_fd, (struct sockaddr *)&client, &n_bytes,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            take_client(worker, entry, fd, &client);
        } else if (errno == EMFILE || errno == ENFILE) {
            refuse_one(worker, listener_fd);
            return;
        } else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == EINVAL ||
                   errno == EBADF) {
            return;
        } /* else: that one connection is gone again, look at the next */
    }
}

/* --- open flows --- */

static void count_bytes(struct worker *worker, struct flow *flow)
{
    uint64_t *moved = flow->relay.n_bytes;
    struct jury_status_row *rows[] = {flow->use->counts, flow->scope_counts};
    uint64_t births[] = {flow->use->birth, flow->scope_birth};

    status_add(&worker->counts->bytes_to_backend, moved[RELAY_CLIENT]);
    status_add(&worker->counts->bytes_to_client, moved[RELAY_BACKEND]);
    for (size_t i = 0; i < 2; i++) {
        if (rows[i] != NULL) {
            flow_count(rows[i], births[i], &rows[i]->bytes_to_backend, moved[RELAY_CLIENT]);
            flow_count(rows[i], births[i], &rows[i]->bytes_to_client, moved[RELAY_BACKEND]);
        }
    }
    moved[RELAY_CLIENT] = 0;
    moved[RELAY_BACKEND] = 0;
}

enum relay_outcome tcp_pump(struct worker *worker, struct flow *flow)
{
    if (flow->phase != PHASE_OPEN) {
        return RELAY_WAIT;
    }
    enum relay_outcome outcome = relay_pump(&flow->relay, &worker->buffers);
    if (flow->relay.n_bytes[RELAY_CLIENT] + flow->relay.n_bytes[RELAY_BACKEND] > 0) {
        flow->last_active_ms = worker->now_ms;
        count_bytes(worker, flow);
    }
    switch (outcome) {
    case RELAY_WAIT:
    case RELAY_STARVED:
        break;
    case RELAY_MORE:
        worker_make_ready(worker, flow);
        break;
    case RELAY_DONE:
        status_add(&worker->counts->ended, 1);
        worker_end_flow(worker, flow, false);
        break;
    case RELAY_BROKEN:
        status_add(&worker->counts->reset, 1);
        worker_end_flow(worker, flow, true);
        break;
    }
    return outcome;
}

void tcp_on_event(struct worker *worker, struct flow *flow, enum relay_side side, uint32_t events)
{
    struct relay_end *end = &flow->relay.ends[side];

    if (flow->phase != PHASE_CONNECTING && flow->phase != PHASE_OPEN) {
        return; /* ended in this round */
    }
    end->is_readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    end->is_writable |= (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    /* RST from a side that is not read: the client while we connect, or one that sent its FIN. */
    if ((events & EPOLLERR) != 0 &&
        (end->saw_eof || (side == RELAY_CLIENT && flow->phase == PHASE_CONNECTING))) {
        status_add(&worker->counts->reset, 1);
        worker_end_flow(worker, flow, true);
        return;
    }
    if (flow->phase == PHASE_OPEN) {
        worker_make_ready(worker, flow);
    } else if (side == RELAY_BACKEND) {
        on_connect_event(worker, flow);
    }
}

/* How long ago the last packet came from either side: what moved no byte (an acknowledgement, a
 * window) counts too. */
static uint64_t silent_ms(const struct flow *flow)
{
    uint64_t silent = UINT64_MAX;

    for (int side = 0; side < 2; side++) {
        struct tcp_info info;
        socklen_t n_bytes = sizeof info;

        if (getsockopt(flow->relay.ends[side].fd, IPPROTO_TCP, TCP_INFO, &info, &n_bytes) == 0) {
            uint64_t age = info.tcpi_last_data_recv < info.tcpi_last_ack_recv
                               ? info.tcpi_last_data_recv
                               : info.tcpi_last_ack_recv;
            silent = age < silent ? age : silent;
        }
    }
    return silent;
}

static void on_idle_timer(struct worker *worker, struct flow *flow)
{
    uint64_t boot_ns = clock_boottime_ns();
    uint64_t idle_ms = worker->now_ms - flow->last_active_ms;
    struct table_row row =
        table_snapshot_row(worker->view->snapshot, flow->use->row, flow->use->birth);

    if (idle_ms >= flow->idle_timeout_ms) {
        uint64_t silent = silent_ms(flow);

        idle_ms = silent < idle_ms ? silent : idle_ms;
    }
    if (idle_ms < flow->idle_timeout_ms) {
        wheel_set(&worker->wheel, &flow->timer, worker->now_ms + flow->idle_timeout_ms - idle_ms);
        return;
    }
    if (drain_decide(row.flow_policy, row.deadline_boot_ns, boot_ns) == DRAIN_KEEP_IDLE) {
        wheel_set(&worker->wheel, &flow->timer,
                  worker->now_ms + drain_left_ms(row.deadline_boot_ns, boot_ns));
        return;
    }
    status_add(&worker->counts->idled, 1);
    worker_end_flow(worker, flow, true);
}

void tcp_on_timer(struct worker *worker, struct flow *flow)
{
    if (flow->phase == PHASE_CONNECTING) {
        on_connect_timer(worker, flow);
    } else {
        assert(flow->phase == PHASE_OPEN);
        on_idle_timer(worker, flow);
    }
}
