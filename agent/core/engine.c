#include "agent/core/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/cluster_watch.h"
#include "agent/core/engine_state.h"
#include "common/base/err.h"
#include "common/base/prng.h"

#define DEFAULT_INTERVAL_NS (1000 * NS_PER_MS)

struct engine *engine_new(const struct engine_config *config, uint64_t now_ns)
{
    struct engine *engine = calloc(1, sizeof *engine);

    assert(config->node_id != 0);
    if (engine == NULL) {
        return NULL;
    }
    engine->config = *config;
    engine->now_ns = now_ns;
    engine->start_ns = now_ns;
    self_doubt_init(&engine->doubt, config->node_id, now_ns);
    engine->vote_interval_ns = DEFAULT_INTERVAL_NS;
    engine->free_scope = NO_SCOPE;
    observers_init(&engine->observers, config->node_id);
    id_set_init(&engine->dirty_slots);
    id_set_init(&engine->orders_due);
    id_set_init(&engine->uncomposed);
    id_set_init(&engine->dirty_scopes);
    id_set_init(&engine->freed_rows);
    id_set_init(&engine->waiting_drains);
    timers_init(&engine->opinion_timers);
    timers_init(&engine->share_timers);
    timers_init(&engine->row_timers);
    timers_init(&engine->guard_timers);
    timers_init(&engine->weight_timers);
    drains_init(&engine->drains);
    engine->votes = votes_new();
    engine->history = history_new(now_ns, config->history_entries);
    if (engine->votes == NULL || engine->history == NULL || event_ring_init(&engine->events) != 0) {
        engine_free(engine);
        return NULL;
    }
    votes_set_interval(engine->votes, engine->vote_interval_ns);

    /* Nodes that were started by one command do not all speak at the same moment. */
    struct prng prng;
    prng_init(&prng, config->seed);
    engine->next_vector_ns = now_ns + prng_below(&prng, engine->vote_interval_ns);
    return engine;
}

void engine_free(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    catalog_unref(engine->catalog);
    votes_free(engine->votes);
    history_free(engine->history);
    id_set_close(&engine->dirty_slots);
    id_set_close(&engine->orders_due);
    id_set_close(&engine->uncomposed);
    id_set_close(&engine->dirty_scopes);
    id_set_close(&engine->freed_rows);
    id_set_close(&engine->waiting_drains);
    timers_close(&engine->opinion_timers);
    timers_close(&engine->share_timers);
    timers_close(&engine->row_timers);
    timers_close(&engine->guard_timers);
    timers_close(&engine->weight_timers);
    drains_close(&engine->drains);
    event_ring_close(&engine->events);
    free(engine->targets);
    free(engine->shares);
    free(engine->parts);
    free(engine->dependencies);
    free(engine->backends);
    free(engine->rows);
    free(engine->weights);
    free(engine->latencies);
    free(engine->response_times);
    free(engine->scopes);
    free(engine->members);
    free(engine->candidates);
    free(engine->classes);
    free(engine->kept_verdicts);
    free(engine->kept_deadlines);
    free(engine);
}

void engine_set_epoch(struct engine *engine, uint64_t epoch)
{
    assert(epoch > engine->config.epoch);
    engine->config.epoch = epoch;
}

void engine_actions_init(struct engine_actions *actions)
{
    memset(actions, 0, sizeof *actions);
    actions->wake_ns = TIMER_NEVER;
}

void engine_actions_close(struct engine_actions *actions)
{
    free(actions->probes);
    free(actions->rows);
    engine_actions_init(actions);
}

/* The big arrays are not wiped: their counts say what is valid. Probes change with the catalog
 * alone, so their room lasts for a step. */
static void empty_actions(struct engine_actions *actions)
{
    free(actions->probes);
    actions->probes = NULL;
    actions->probes_capacity = 0;
    actions->n_chunks = 0;
    actions->has_hello = false;
    actions->has_drain_report = false;
    actions->n_changes = 0;
    actions->has_question = false;
    actions->n_replies = 0;
    actions->n_probes = 0;
    actions->n_orders = 0;
    actions->n_rows = 0;
    actions->layout_due = false;
    actions->catalog = NULL;
    actions->n_purges = 0;
    actions->n_events = 0;
    actions->verdicts_changed = false;
}

struct event *engine_log(struct engine *engine, enum event_kind kind)
{
    if (engine->events.next_sequence > LIMIT_EVENTS) {
        engine->counters.events_lost++;
    }
    struct event *event = event_ring_add(&engine->events);

    event->kind = (uint8_t)kind;
    event->at_ns = engine->now_ns;
    event->node_id = engine->config.node_id;
    event->revision = engine->catalog == NULL ? 0 : catalog_revision(engine->catalog);
    return event;
}

void engine_mark_all(struct engine *engine)
{
    for (uint32_t slot = 0; slot < engine->n_slots; slot++) {
        if (engine->targets[slot].birth != 0) {
            id_set_add(&engine->dirty_slots, slot);
        }
    }
}

void engine_mark_scopes(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->n_scopes; i++) {
        if (engine->scopes[i].row.birth != 0) {
            id_set_add(&engine->dirty_scopes, i);
        }
    }
}

/* Changes no verdict: what a node has no fresh result of it has no vote on, and says why. */
static void take_pressure(struct engine *engine, const struct probe_pressure *pressure)
{
    if (pressure->is_on == engine->is_pressed) {
        return;
    }
    struct event *event = engine_log(engine, EVENT_PROBE_BUDGET);

    event->from = engine->is_pressed;
    event->to = pressure->is_on;
    event->delay_ns = pressure->delay_ns;
    engine->is_pressed = pressure->is_on;
}

/* No verdict looks at it. */
static void take_news(struct engine *engine, const struct cluster_news *news)
{
    struct event *event = engine_log(engine, (enum event_kind)news->kind);

    event->from = news->to == 0;
    event->to = news->to;
    event->node_id = news->node_id != 0 ? news->node_id : event->node_id;
    event->before_id = news->before_id;
    event->span_ns = news->span_ns;
    event->n_untold = news->n_untold;
    event->n_counted = news->n_have;
    event->n_observers = news->n_of;
    event->n_needed = news->n_needed;
}

static int handle(struct engine *engine, const struct engine_event *event,
                  struct engine_actions *actions)
{
    switch ((enum engine_event_kind)event->kind) {
    case ENGINE_TICK:
        break;
    case ENGINE_CATALOG:
        return engine_take_catalog(engine, event->u.catalog, actions);
    case ENGINE_PROBE_RESULT:
        engine_take_result(engine, event->u.result, actions);
        break;
    case ENGINE_HELLO:
        engine_hear_hello(engine, event->peer, event->u.hello);
        break;
    case ENGINE_VOTE_CHUNK:
        engine_hear_chunk(engine, event->peer, event->u.chunk);
        break;
    case ENGINE_VOTE_CHANGE:
        engine_hear_change(engine, event->peer, event->u.change);
        break;
    case ENGINE_VOTE_QUESTION:
        engine_answer(engine, event->peer, event->u.question, actions);
        break;
    case ENGINE_DRAIN_REPORT:
        engine_hear_report(engine, event->peer, event->u.report);
        break;
    case ENGINE_ASK:
        engine_ask(engine, event->u.target, actions);
        break;
    case ENGINE_LAST_KNOWN_GOOD:
        return engine_take_kept(engine, event->u.kept);
    case ENGINE_DATA_PLANE:
        engine_take_data_plane(engine, event->u.data_plane);
        break;
    case ENGINE_LOOP_LATE:
        self_doubt_note_late(&engine->doubt, event->u.late_ns, engine->now_ns);
        engine->doubt_is_due = true;
        break;
    case ENGINE_SENTINEL:
        engine_hear_sentinel(engine, event->u.sentinel);
        break;
    case ENGINE_PROBE_BUDGET:
        take_pressure(engine, &event->u.pressure);
        break;
    case ENGINE_HOLD:
        engine_override_hold(engine, event->u.hold);
        break;
    case ENGINE_NEWS:
        take_news(engine, event->u.news);
        break;
    }
    return 0;
}

static void run_row_timer(struct engine *engine, uint32_t row)
{
    if (engine->rows[row].scope != NO_SCOPE) {
        id_set_add(&engine->dirty_scopes, engine->rows[row].scope);
    } else if (engine->backends[row].is_linked) {
        id_set_add(&engine->dirty_slots, engine->backends[row].target.slot);
    }
}

void engine_run_verdict_timers(struct engine *engine)
{
    uint32_t id;

    while (timers_pop(&engine->row_timers, engine->now_ns, &id)) {
        engine_keep_row(engine, id, &(struct row_note){.kind = HISTORY_TIMER});
        run_row_timer(engine, id);
    }
    while (timers_pop(&engine->guard_timers, engine->now_ns, &id)) {
        engine_run_guards(engine, id); /* and keeps the votes that it saw */
        engine_keep_row(engine, engine->scopes[id].row.row,
                        &(struct row_note){.kind = HISTORY_GUARD});
    }
}

/* Everything that is due by time, before the event is looked at. */
static void run_timers(struct engine *engine, struct engine_actions *actions)
{
    uint32_t id;

    votes_age(engine->votes, engine->now_ns, &engine->dirty_slots);
    while (timers_pop(&engine->opinion_timers, engine->now_ns, &id)) {
        engine_opinion_stale(engine, id, actions);
    }
    while (timers_pop(&engine->share_timers, engine->now_ns, &id)) {
        id_set_add(&engine->dirty_slots, id);
    }
    engine_run_verdict_timers(engine);
    while (timers_pop(&engine->weight_timers, engine->now_ns, &id)) {
        id_set_add(&engine->dirty_scopes, id);
    }
    if (observers_next_ns(&engine->observers) <= engine->now_ns) {
        uint8_t before = observers_n(&engine->observers);

        if (observers_enter_due(&engine->observers, engine->now_ns)) {
            struct event *event = engine_log(engine, EVENT_OBSERVERS_CHANGED);

            event->from = before;
            event->to = observers_n(&engine->observers);
            engine_mark_all(engine);
        }
    }
}

static void run_interval(struct engine *engine, struct engine_actions *actions)
{
    if (engine->now_ns < engine->next_vector_ns) {
        return;
    }
    /* A late loop sends one vector and keeps the beat. */
    uint64_t n_beats = (engine->now_ns - engine->next_vector_ns) / engine->vote_interval_ns + 1;

    engine->next_vector_ns += n_beats * engine->vote_interval_ns;
    engine->n_changes_told = 0;
    engine_publish_vector(engine, actions);
    engine_run_drains(engine, actions);
}

void engine_settle(struct engine *engine, struct engine_actions *actions)
{
    uint32_t id;

    engine_keep_surroundings(engine);
    engine_compose(engine, actions);
    while (id_set_take(&engine->dirty_slots, &id)) {
        engine_judge_slot(engine, id, actions);
    }
    while (id_set_take(&engine->dirty_scopes, &id)) {
        engine_settle_scope(engine, id, actions);
    }
    engine_tell_freed(engine, actions);
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t engine_verdict_timer_ns(const struct engine *engine)
{
    return earliest(timers_next(&engine->row_timers), timers_next(&engine->guard_timers));
}

static uint64_t find_wake_ns(const struct engine *engine)
{
    uint64_t wake_ns = engine->next_vector_ns;

    wake_ns = earliest(wake_ns, votes_next_ns(engine->votes));
    if (engine->orders_due.n_set > 0) {
        return engine->now_ns;
    }
    wake_ns = earliest(wake_ns, timers_next(&engine->share_timers));
    wake_ns = earliest(wake_ns, engine->silent_ns);
    wake_ns = earliest(wake_ns, timers_next(&engine->opinion_timers));
    wake_ns = earliest(wake_ns, engine_verdict_timer_ns(engine));
    wake_ns = earliest(wake_ns, timers_next(&engine->weight_timers));
    return earliest(wake_ns, observers_next_ns(&engine->observers));
}

int engine_step(struct engine *engine, const struct engine_event *event,
                struct engine_actions *actions)
{
    uint64_t revision_before = engine->catalog == NULL ? 0 : catalog_revision(engine->catalog);
    bool was_open = engine_table_is_open(engine);

    assert(event->now_ns >= engine->now_ns);
    engine->now_ns = event->now_ns;
    engine->step++;
    engine->boot_ns = event->boot_ns;
    empty_actions(actions);
    actions->first_event = engine->events.next_sequence;

    run_timers(engine, actions);
    int err = handle(engine, event, actions);
    if (!was_open && engine_table_is_open(engine)) {
        engine_mark_scopes(engine);
    }
    if (engine->now_ns >= engine->next_vector_ns || event->kind == ENGINE_CATALOG) {
        engine_survey(engine);
    }
    engine_run_doubt(engine, actions);
    engine_share_hear(engine);
    engine_settle(engine, actions); /* before the drains are looked at: it sets their deadlines */
    run_interval(engine, actions);
    engine_give_orders(engine, actions);

    actions->verdicts_changed = actions->verdicts_changed || engine->kept_is_old;
    engine->kept_is_old = false;
    if (engine_table_is_open(engine) && catalog_revision(engine->catalog) != revision_before) {
        actions->layout_due = true;
        actions->catalog = engine->catalog;
    }
    actions->n_events = (uint32_t)(engine->events.next_sequence - actions->first_event);
    actions->wake_ns = find_wake_ns(engine);
    return err;
}

void engine_expect(const struct engine *engine, const struct probe_result *result)
{
    uint32_t slot = result->id.slot;

    if (slot < engine->n_slots) {
        const struct engine_target *target = &engine->targets[slot];

        __builtin_prefetch(target, 1);
        __builtin_prefetch(&target->last_us, 1); /* a target begins anywhere in a line */
        __builtin_prefetch(&engine->opinion_timers.place[slot]);
    }
}

struct catalog *engine_catalog(const struct engine *engine)
{
    return engine->catalog;
}

uint8_t engine_marks(const struct engine *engine, const struct engine_backend *backend)
{
    unsigned marks = 0;

    if (backend->held_causes != 0) {
        marks |= MARK_HELD;
    }
    if (backend->is_pending || backend->is_returning) {
        marks |= MARK_PENDING;
    }
    if (engine->scopes[backend->scope].guard.flap_hold_ms > 0 &&
        flap_is_flapping(&backend->flaps, engine->now_ns)) {
        marks |= MARK_FLAPPING;
    }
    if (backend->is_gray) {
        marks |= MARK_GRAY;
    }
    if (backend->is_linked) {
        marks |= engine_is_suspect(engine, backend->target.slot) ? MARK_SUSPECT : 0;
    }
    if (engine->scopes[backend->scope].result.is_warming &&
        backend->health_state == HEALTH_INITIAL && !engine_is_late(engine, backend)) {
        marks |= MARK_WARMING;
    }
    if (engine_is_degraded(engine, (uint32_t)(backend - engine->backends))) {
        marks |= MARK_DEGRADED;
    }
    return (uint8_t)marks;
}
