/* How much of each weight counts (weight_scale.h).
 *
 * Graded by votes: what a node counts of a backend's votes says, beside the verdict, how many are
 * content. Nodes that count the same votes grade alike. By latency: each node compares what its own
 * probes of the group's members took, so it steers its own flows alone; members are looked at
 * together and once an interval, so that nothing follows a single answer. What a node doubts of
 * itself it does not look at meanwhile.
 *
 * Slow start: a backend that takes new flows after it took none, by the votes or by the operator,
 * begins with a tenth of its weight. Only where another one has all of its weight: else flows have
 * nowhere better to go. Fail-open and warming are no time for it, and whoever took flows then goes
 * on with all of its weight. Each node goes by its own table, from the moment it says so; a node
 * that starts has seen no return, so it takes the whole weight. */
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"

bool engine_has_weighing(const struct server_group *group)
{
    return group->guard.slow_start_ms != 0 || group->graded_weight != GRADED_OFF;
}

uint8_t engine_weight_percent(const struct engine *engine, uint32_t row)
{
    return row < engine->n_weights && engine->weights[row].percent != 0
               ? engine->weights[row].percent
               : WEIGHT_WHOLE;
}

void engine_forget_weight(struct engine *engine, uint32_t row)
{
    if (row < engine->n_weights) {
        engine->weights[row] = (struct engine_weight){0};
    }
}

static bool takes_flows(uint8_t row_class)
{
    return row_class == ROW_HEALTHY || row_class == ROW_UNREACHABLE;
}

/* It begins or ends. Returns true if the backend has all of its weight. */
static bool follow_slow_start(const struct engine *engine, const struct engine_scope *scope,
                              uint8_t row_class, struct engine_weight *weight)
{
    bool was_out = weight->is_out;

    weight->is_out = row_class == ROW_NONE;
    if (!takes_flows(row_class)) {
        weight->slow_ns = 0;
        return false;
    }
    if (scope->guard.slow_start_ms > 0 &&
        (was_out || (weight->slow_ns != 0 && plant_is("slow-start-anew")))) {
        weight->slow_ns = engine->now_ns == 0 ? 1 : engine->now_ns;
    }
    if (weight->slow_ns != 0 &&
        engine->now_ns - weight->slow_ns >= scope->guard.slow_start_ms * NS_PER_MS) {
        weight->slow_ns = 0;
    }
    return weight->slow_ns == 0;
}

/* Returns when its next step comes; TIMER_NEVER. */
static uint64_t weigh(const struct engine *engine, const struct engine_scope *scope,
                      uint8_t row_class, struct engine_weight *weight)
{
    uint64_t duration_ns = scope->guard.slow_start_ms * NS_PER_MS;

    weight->percent = takes_flows(row_class) && weight->graded != 0 ? weight->graded : WEIGHT_WHOLE;
    if (weight->slow_ns == 0) {
        return TIMER_NEVER;
    }
    uint64_t elapsed_ns = engine->now_ns - weight->slow_ns;
    weight->percent = weight_join(weight_slow_percent(elapsed_ns, duration_ns), weight->percent);
    return weight->slow_ns + weight_slow_next_ns(elapsed_ns, duration_ns);
}

/* --- graded --- */

static void set_graded(struct engine *engine, struct engine_weight *weight, uint8_t percent)
{
    uint8_t before = weight->graded == 0 ? WEIGHT_WHOLE : weight->graded;

    engine->counters.weights_graded += percent != before;
    weight->graded = percent;
}

/* Votes that may not decide do not grade: a verdict that is held or pending steers nothing. */
static uint8_t votes_percent(const struct engine_backend *backend, const struct tally *tally)
{
    bool is_kept = backend->held_causes != 0 || backend->is_pending;

    return is_kept && !plant_is("graded-though-held")
               ? WEIGHT_WHOLE
               : weight_votes_percent(tally->n_pass, tally->n_fail);
}

void engine_grade_votes(struct engine *engine, uint32_t row, const struct tally *tally)
{
    const struct engine_backend *backend = &engine->backends[row];

    if (engine->scopes[backend->scope].graded_weight != GRADED_BY_VOTES) {
        return;
    }
    uint8_t before = engine->weights[row].graded;

    set_graded(engine, &engine->weights[row], votes_percent(backend, tally));
    if (engine->weights[row].graded != before && !plant_is("graded-unseen")) {
        id_set_add(&engine->dirty_scopes, backend->scope);
    }
}

void engine_note_latency(struct engine *engine, uint32_t slot)
{
    const struct engine_target *target = &engine->targets[slot];

    if (slot >= engine->n_latencies || engine_is_suspect(engine, slot)) {
        return;
    }
    if (target->health.opinion != OPINION_PASS) {
        engine_forget_latency(engine, slot); /* of a backend that is not well it tells nothing */
        return;
    }
    weight_latency_note(&engine->latencies[slot], target->response_us);
}

void engine_forget_latency(struct engine *engine, uint32_t slot)
{
    if (slot < engine->n_latencies) {
        engine->latencies[slot] = (struct weight_latency){0};
    }
}

/* NULL: nothing is known of it, or it takes no flows of first choice. */
static const struct weight_latency *latency_of(const struct engine *engine, uint32_t row,
                                               uint8_t row_class)
{
    const struct engine_backend *backend = &engine->backends[row];

    if (row_class != ROW_HEALTHY || !backend->is_linked ||
        engine->targets[backend->target.slot].health.opinion != OPINION_PASS ||
        !weight_latency_is_known(&engine->latencies[backend->target.slot])) {
        return NULL;
    }
    return &engine->latencies[backend->target.slot];
}

static void find_median(struct engine *engine, struct engine_scope *scope)
{
    size_t n_known = 0;
    uint32_t n = 0;

    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        const struct weight_latency *latency = latency_of(engine, row, engine->classes[n++]);

        if (latency != NULL) {
            engine->response_times[n_known++] = weight_latency_us(latency);
        }
    }
    scope->median_us =
        n_known >= WEIGHT_LATENCY_MEMBERS ? weight_median_us(engine->response_times, n_known) : 0;
    scope->median_us += n_known >= WEIGHT_LATENCY_MEMBERS && scope->median_us == 0;
}

/* All members at once, each interval. */
static void grade_latency(struct engine *engine, struct engine_scope *scope)
{
    uint32_t n = 0;

    if (engine->now_ns < scope->grade_ns && !plant_is("graded-at-once")) {
        return;
    }
    scope->grade_ns = engine->now_ns + scope->interval_ms * NS_PER_MS;
    if (scope->first_row == NO_ROW || !engine->backends[scope->first_row].is_linked ||
        engine_is_suspect(engine, engine->backends[scope->first_row].target.slot)) {
        return;
    }
    find_median(engine, scope);
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        const struct weight_latency *latency = latency_of(engine, row, engine->classes[n++]);
        struct engine_weight *weight = &engine->weights[row];
        uint8_t before = weight->graded == 0 ? WEIGHT_WHOLE : weight->graded;
        bool is_compared = latency != NULL && scope->median_us != 0;

        set_graded(engine, weight,
                   is_compared ? weight_latency_percent(weight_latency_us(latency),
                                                        scope->median_us, before)
                               : WEIGHT_WHOLE);
    }
}

/* --- the scope --- */

void engine_weigh_scope(struct engine *engine, uint32_t index)
{
    struct engine_scope *scope = &engine->scopes[index];
    uint64_t next_ns = TIMER_NEVER;
    bool any_whole = plant_is("slow-start-of-all");
    uint32_t n_begun = 0;
    uint32_t n = 0;

    if (!scope->has_weighing) {
        return;
    }
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        struct engine_weight *weight = &engine->weights[row];
        bool was_slow = weight->slow_ns != 0;

        any_whole |= follow_slow_start(engine, scope, engine->classes[n++], weight);
        n_begun += weight->slow_ns != 0 && !was_slow;
    }
    engine->counters.slow_starts += any_whole ? n_begun : 0;
    if (scope->graded_weight == GRADED_BY_LATENCY) {
        grade_latency(engine, scope);
        next_ns = scope->grade_ns;
    }
    n = 0;
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        struct engine_weight *weight = &engine->weights[row];

        if (!any_whole) {
            weight->slow_ns = 0;
        }
        uint64_t at_ns = weigh(engine, scope, engine->classes[n++], weight);
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    timers_set(&engine->weight_timers, index,
               plant_is("slow-start-no-step") ? TIMER_NEVER : next_ns);
}

/* What graded before says nothing of what does now. */
static void forget_grades(struct engine *engine, struct engine_scope *scope)
{
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        if (row < engine->n_weights) {
            engine->weights[row].graded = 0;
        }
    }
    scope->median_us = 0;
}

static void forget_slow_starts(struct engine *engine, const struct engine_scope *scope)
{
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        engine_forget_weight(engine, row);
    }
}

void engine_follow_weighing(struct engine *engine, uint32_t index, const struct server_group *group)
{
    struct engine_scope *scope = &engine->scopes[index];
    bool has_weighing = engine->replay == NULL && engine_has_weighing(group);
    uint8_t graded = has_weighing ? group->graded_weight : GRADED_OFF;

    if (scope->has_weighing && !has_weighing) {
        forget_slow_starts(engine, scope);
        timers_clear(&engine->weight_timers, index);
    }
    if (scope->graded_weight != graded) {
        forget_grades(engine, scope);
        scope->grade_ns = engine->now_ns + scope->interval_ms * NS_PER_MS;
    }
    scope->graded_weight = graded;
    scope->has_weighing = has_weighing;
}

/* --- for people --- */

static uint64_t slow_left_ns(const struct engine *engine, uint32_t row, uint64_t now_ns)
{
    if (engine->weights[row].slow_ns == 0) {
        return 0;
    }
    uint64_t end_ns = engine->weights[row].slow_ns +
                      engine->scopes[engine->backends[row].scope].guard.slow_start_ms * NS_PER_MS;

    return end_ns > now_ns ? end_ns - now_ns : 0;
}

void engine_view_weight(const struct engine *engine, uint32_t row, uint64_t now_ns,
                        struct backend_view *view)
{
    const struct engine_backend *backend = &engine->backends[row];
    const struct engine_scope *scope = &engine->scopes[backend->scope];

    view->weight_percent = engine_weight_percent(engine, row);
    view->graded_percent = WEIGHT_WHOLE;
    if (!scope->has_weighing || view->weight_percent == WEIGHT_WHOLE) {
        return;
    }
    view->slow_left_ns = slow_left_ns(engine, row, now_ns);
    view->graded_by = scope->graded_weight;
    view->graded_percent =
        engine->weights[row].graded == 0 ? WEIGHT_WHOLE : engine->weights[row].graded;
    if (view->graded_by == GRADED_BY_LATENCY && backend->is_linked) {
        view->smoothed_us = weight_latency_us(&engine->latencies[backend->target.slot]);
        view->median_us = scope->median_us;
    }
}
