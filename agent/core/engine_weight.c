/* How much of each weight counts (weight_scale.h).
 *
 * Slow start: a backend that takes new flows after it took none, by the votes or by the operator,
 * begins with a tenth of its weight. Only where another one has all of its weight: else flows have
 * nowhere better to go. Fail-open and warming are no time for it, and whoever took flows then goes
 * on with all of its weight. Each node goes by its own table, from the moment it says so; a node
 * that starts has seen no return, so it takes the whole weight. */
#include <string.h>

#include "agent/core/engine_state.h"
#include "agent/core/weight_scale.h"
#include "common/base/plant.h"

bool engine_has_weighing(const struct server_group *group)
{
    return group->guard.slow_start_ms != 0;
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

static void forget_scope(struct engine *engine, const struct engine_scope *scope)
{
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        engine_forget_weight(engine, row);
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
                      struct engine_weight *weight)
{
    uint64_t duration_ns = scope->guard.slow_start_ms * NS_PER_MS;

    weight->percent = WEIGHT_WHOLE;
    if (weight->slow_ns == 0) {
        return TIMER_NEVER;
    }
    uint64_t elapsed_ns = engine->now_ns - weight->slow_ns;
    weight->percent = weight_slow_percent(elapsed_ns, duration_ns);
    return weight->slow_ns + weight_slow_next_ns(elapsed_ns, duration_ns);
}

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
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        struct engine_weight *weight = &engine->weights[row];

        if (!any_whole) {
            weight->slow_ns = 0;
        }
        uint64_t at_ns = weigh(engine, scope, weight);
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    timers_set(&engine->weight_timers, index,
               plant_is("slow-start-no-step") ? TIMER_NEVER : next_ns);
}

void engine_follow_weighing(struct engine *engine, uint32_t index, const struct server_group *group)
{
    struct engine_scope *scope = &engine->scopes[index];
    bool has_weighing = engine->replay == NULL && engine_has_weighing(group);

    if (scope->has_weighing && !has_weighing) {
        forget_scope(engine, scope);
        timers_clear(&engine->weight_timers, index);
    }
    scope->has_weighing = has_weighing;
}

uint64_t engine_slow_left_ns(const struct engine *engine, uint32_t row, uint64_t now_ns)
{
    if (row >= engine->n_weights || engine->weights[row].slow_ns == 0) {
        return 0;
    }
    uint64_t end_ns = engine->weights[row].slow_ns +
                      engine->scopes[engine->backends[row].scope].guard.slow_start_ms * NS_PER_MS;

    return end_ns > now_ns ? end_ns - now_ns : 0;
}
