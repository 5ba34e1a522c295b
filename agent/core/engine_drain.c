/* The completion barrier: what each node still has on rows that drain or were removed. */
#include <assert.h>
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"

uint64_t engine_row_deadline_ns(const struct engine_backend *backend)
{
    return backend->drain_deadline_ns;
}

static bool is_draining(const struct engine_backend *backend)
{
    return backend->birth != 0 && backend->drain_revision != 0 &&
           (backend->life == LIFE_REMOVING || backend->admin_state != ADMIN_ENABLED);
}

void engine_follow_drain(struct engine *engine, uint32_t row)
{
    const struct engine_backend *backend = &engine->backends[row];

    if (!is_draining(backend)) {
        drains_drop(&engine->drains, row);
        id_set_remove(&engine->waiting_drains, row);
        return;
    }
    if (!drains_follow(&engine->drains, row, backend->birth, backend->drain_revision,
                       engine->now_ns)) {
        id_set_add(&engine->waiting_drains, row);
    }
}

static void follow_waiting(struct engine *engine)
{
    uint32_t row;

    while (engine->drains.n_used < LIMIT_DRAINS && id_set_take(&engine->waiting_drains, &row)) {
        engine_follow_drain(engine, row);
    }
}

void engine_hear_report(struct engine *engine, uint64_t peer, const struct drain_report *report)
{
    uint32_t index = observers_index(&engine->observers, peer);
    struct votes_peer_look look;

    if (index == OBSERVER_NO_INDEX || peer == engine->config.node_id) {
        engine->counters.votes_unknown_node++;
        return;
    }
    if (report->n_entries > LIMIT_DRAIN_ENTRIES) {
        engine->counters.messages_malformed++;
        return;
    }
    votes_look_peer(engine->votes, index, &look);
    if (report->epoch < look.epoch) {
        engine->counters.votes_old_epoch++;
        return;
    }
    struct engine_peer *from = &engine->peers[index];
    if (report->epoch == from->report_epoch && report->sequence <= from->report_sequence) {
        engine->counters.votes_stale++;
        return;
    }
    from->report_epoch = report->epoch;
    from->report_sequence = report->sequence;
    from->heard_ns = engine->now_ns;
    for (uint16_t i = 0; i < report->n_entries; i++) {
        const struct drain_entry *entry = &report->entries[i];
        struct drain_word word = {.n_flows = entry->n_flows,
                                  .n_closed = entry->n_closed,
                                  .is_counting = entry->is_counting,
                                  .is_done = entry->is_done};

        const struct drain_id id = {entry->row, entry->birth, entry->drain_revision};

        drains_note(&engine->drains, id, index, &word);
    }
}

static bool deadline_passed(const struct engine *engine, const struct engine_backend *backend)
{
    uint64_t deadline_ns = engine_row_deadline_ns(backend);

    return deadline_ns != 0 && engine->boot_ns >= deadline_ns;
}

static bool is_closing_at_once(const struct engine *engine, const struct engine_backend *backend)
{
    const struct engine_row *row = &engine->rows[backend - engine->backends];

    return (row->has_word && row->flow_policy == FLOW_CLOSE_NOW) ||
           deadline_passed(engine, backend);
}

/* This node's own part: done without flows, at the deadline, or, when nothing counts them, at the
 * deadline or at once if there is none (spec.md 2). */
static void note_own(struct engine *engine, uint32_t row, bool is_counting, uint64_t n_flows,
                     bool is_adopted)
{
    const struct engine_backend *backend = &engine->backends[row];
    uint32_t self = observers_index(&engine->observers, engine->config.node_id);
    struct drain_word word = {
        .n_flows = n_flows, .n_closed = backend->closed.n_closed, .is_counting = is_counting};

    if (self == OBSERVER_NO_INDEX) {
        return;
    }
    if (is_counting) {
        word.is_done = n_flows == 0 && is_adopted;
    } else {
        word.is_done = engine_row_deadline_ns(backend) == 0;
    }
    word.is_done |= deadline_passed(engine, backend);
    drains_note(&engine->drains, (struct drain_id){row, backend->birth, backend->drain_revision},
                self, &word);
}

/* Data planes count what they closed from their own start, over all drains. The first look at a
 * drain comes before its deadline, so it tells what was closed before; only where flows are closed
 * at once it may come too late. */
static void note_closed(struct engine *engine, uint32_t row, uint64_t counter)
{
    struct engine_backend *backend = &engine->backends[row];

    if (backend->closed_low != (uint32_t)backend->drain_revision) {
        backend->closed_low = (uint32_t)backend->drain_revision;
        backend->closed.n_closed = 0;
        backend->closed.is_begun &= is_closing_at_once(engine, backend);
    }
    closed_count_note(&backend->closed, counter, is_closing_at_once(engine, backend));
}

void engine_take_data_plane(struct engine *engine, const struct data_plane_status *status)
{
    engine->data_plane_counts = status->is_counting;
    engine->data_plane_ns = engine->now_ns;
    for (size_t i = 0; status->is_counting && i < status->n_rows; i++) {
        const struct data_plane_row *row = &status->rows[i];

        if (row->row < engine->n_rows && engine->backends[row->row].birth == row->birth) {
            note_closed(engine, row->row, row->n_closed);
            note_own(engine, row->row, true, row->n_flows, row->is_adopted);
        }
    }
}

/* Members that are not heard, this node itself never among them. */
static uint64_t find_silent(const struct engine *engine)
{
    uint32_t self = observers_index(&engine->observers, engine->config.node_id);
    uint64_t silent = 0;

    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        bool is_heard = engine->peers[i].heard_ns != 0 &&
                        engine->now_ns <= engine->peers[i].heard_ns + 3 * engine->vote_interval_ns;

        silent |= (uint64_t)(!is_heard && i != self) << i;
    }
    return silent;
}

/* Peers that neither are done nor can be waited for any longer: not heard, and past the deadline,
 * or past the idle timeout where there is none. */
static uint64_t given_up(const struct engine *engine, const struct drain *drain)
{
    const struct engine_backend *backend = &engine->backends[drain->row];
    uint64_t idle_ns = engine->scopes[backend->scope].idle_timeout_ms * NS_PER_MS;
    bool waited = engine_row_deadline_ns(backend) != 0
                      ? deadline_passed(engine, backend)
                      : engine->now_ns >= drain->since_ns + idle_ns;

    return waited ? find_silent(engine) : 0;
}

static uint64_t find_observers(const struct engine *engine)
{
    uint64_t observers = 0;

    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        observers |= (uint64_t)engine->observers.members[i].is_observer << i;
    }
    return observers;
}

uint64_t engine_drain_pending(const struct engine *engine, const struct drain *drain)
{
    return find_observers(engine) & ~drain->done & ~given_up(engine, drain);
}

uint64_t engine_drain_uncounted(const struct engine *engine, const struct drain *drain)
{
    return drain_uncounted(drain, find_observers(engine), find_silent(engine));
}

uint64_t engine_drain_waiting(const struct engine *engine, uint32_t row)
{
    return id_set_has(&engine->waiting_drains, row) ? find_observers(engine) : 0;
}

uint64_t engine_drain_unreported(const struct engine *engine, const struct drain *drain)
{
    return engine_drain_pending(engine, drain) & ~drain->reported &
           ~engine_drain_uncounted(engine, drain);
}

static void log_done(struct engine *engine, struct drain *drain)
{
    const struct engine_backend *backend = &engine->backends[drain->row];
    uint64_t uncounted = engine_drain_uncounted(engine, drain);

    if (drain->is_told) {
        return;
    }
    struct event *event = engine_log(engine, EVENT_DRAIN_DONE);
    drain->is_told = true;
    event->backend = backend->at;
    memcpy(event->group, engine->scopes[backend->scope].name, sizeof event->group);
    event->n_flows = drain_flows(drain, ~uncounted);
    event->n_uncounted = (uint8_t)__builtin_popcountll(uncounted);
}

/* The row is about to be another one, to drain anew, to be enabled or to be gone. Its drain may be
 * over since the last vote interval: that is told now or never. A removal is purged when every node
 * is done, whether this one heard it or not. */
void engine_leave_drain(struct engine *engine, uint32_t row)
{
    struct drain *drain = drains_find(&engine->drains, row);
    bool is_purged = drain != NULL && engine->backends[row].life == LIFE_REMOVING;

    if (drain != NULL && !plant_is("drain-end-untold") &&
        (is_purged || engine_drain_pending(engine, drain) == 0)) {
        log_done(engine, drain);
    }
}

static void tell_done(struct engine *engine, struct drain *drain, struct engine_actions *actions)
{
    const struct engine_backend *backend = &engine->backends[drain->row];

    log_done(engine, drain);
    if (backend->life != LIFE_REMOVING) {
        return;
    }
    if (actions->n_purges == ENGINE_PURGES) {
        engine->counters.purges_deferred++;
        return;
    }
    struct backend_purge *purge = &actions->purges[actions->n_purges++];
    *purge = (struct backend_purge){.at = backend->at,
                                    .backend_id = backend->backend_id,
                                    .drain_revision = backend->drain_revision};
    memcpy(purge->group, engine->scopes[backend->scope].name, sizeof purge->group);
}

static void report(struct engine *engine, struct engine_actions *actions)
{
    uint32_t self = observers_index(&engine->observers, engine->config.node_id);
    struct drain_report *report = &actions->drain_report;
    uint32_t n_seen = 0;

    if (self == OBSERVER_NO_INDEX || engine->drains.n_used == 0 || engine->config.epoch == 0) {
        return;
    }
    report->epoch = engine->config.epoch;
    report->sequence = engine->sequence;
    report->n_entries = 0;
    while (n_seen < engine->drains.n_places && report->n_entries < LIMIT_DRAIN_ENTRIES) {
        engine->drain_cursor = (engine->drain_cursor + 1) % engine->drains.n_places;
        n_seen++;
        const struct drain *drain = &engine->drains.drains[engine->drain_cursor];
        if (drain->row == NO_ROW || (drain->reported >> self & 1) == 0) {
            continue;
        }
        report->entries[report->n_entries++] = (struct drain_entry){
            .row = drain->row,
            .birth = drain->birth,
            .drain_revision = drain->drain_revision,
            .n_flows = drain->n_flows[self],
            .n_closed = drain->n_closed[self],
            .is_counting = (drain->counting >> self & 1) != 0,
            .is_done = (drain->done >> self & 1) != 0,
        };
    }
    actions->has_drain_report = report->n_entries > 0;
}

/* Own part of the drains that no data plane speaks for just now, or whose time is over. */
static void note_own_by_time(struct engine *engine)
{
    uint32_t self = observers_index(&engine->observers, engine->config.node_id);
    bool counts = engine->data_plane_counts &&
                  engine->now_ns <= engine->data_plane_ns + 3 * engine->vote_interval_ns;

    for (uint32_t i = 0; self != OBSERVER_NO_INDEX && i < engine->drains.n_places; i++) {
        const struct drain *drain = &engine->drains.drains[i];

        if (drain->row != NO_ROW &&
            (!counts || deadline_passed(engine, &engine->backends[drain->row]))) {
            note_own(engine, drain->row, counts, drain->n_flows[self], false);
        }
    }
}

void engine_run_drains(struct engine *engine, struct engine_actions *actions)
{
    follow_waiting(engine);
    note_own_by_time(engine);
    report(engine, actions);
    for (uint32_t i = 0; i < engine->drains.n_places; i++) {
        struct drain *drain = &engine->drains.drains[i];

        if (drain->row != NO_ROW && engine_drain_pending(engine, drain) == 0) {
            tell_done(engine, drain, actions);
        }
    }
}

size_t engine_drain_rows(const struct engine *engine, struct drain_row rows[], size_t capacity)
{
    size_t n = 0;

    for (uint32_t i = 0; i < engine->drains.n_places && n < capacity; i++) {
        const struct drain *drain = &engine->drains.drains[i];

        if (drain->row != NO_ROW) {
            rows[n++] = (struct drain_row){
                .row = drain->row, .birth = drain->birth, .drain_revision = drain->drain_revision};
        }
    }
    return n;
}
