#include "agent/probe/probe_loop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/plant.h"
#include "common/base/spare.h"

void probe_loop_init(struct probe_loop *loop, const struct probe_loop_options *options,
                     struct ring *results)
{
    assert(options->in_flight_max >= 1 && options->in_flight_max <= LIMIT_PROBES_IN_FLIGHT);
    assert(options->n_allowed <= LIMIT_CIDRS);
    memset(loop, 0, sizeof *loop);
    loop->options = *options;
    loop->results = results;
    probe_schedule_init(&loop->schedule, options->node_id);
    probe_counters_init(&loop->counters);
}

void probe_loop_close(struct probe_loop *loop)
{
    for (uint32_t i = 0; i < loop->n_engines; i++) {
        loop->engines[i]->ops->free(loop->engines[i]);
    }
    probe_schedule_close(&loop->schedule);
    probe_plan_release(loop->plan);
    free(loop->lanes);
    free(loop->waiting);
    free(loop->waiting_slots);
    loop->lanes = NULL;
    loop->waiting = NULL;
    loop->waiting_slots = NULL;
}

void probe_loop_add_engine(struct probe_loop *loop, struct probe_engine *engine)
{
    assert(loop->n_engines < PROBE_ENGINES_MAX && loop->plan == NULL);
    assert(engine->capacity >= loop->options.in_flight_max);
    loop->engines[loop->n_engines++] = engine;
}

void probe_loop_deny(struct probe_loop *loop, uint32_t capabilities)
{
    loop->denied |= capabilities;
}

/* --- results --- */

/* Room for results that wait, n_lanes in all: a reader that is in time never needs any. */
static bool reserve_waiting(struct probe_loop *loop, uint32_t n_lanes)
{
    struct probe_result *waiting = malloc(n_lanes * sizeof *waiting);
    uint32_t *slots = malloc(n_lanes * sizeof *slots);

    if (waiting == NULL || slots == NULL) {
        free(waiting);
        free(slots);
        return false;
    }
    for (uint32_t i = 0; i < loop->n_waiting; i++) {
        uint32_t slot = loop->waiting_slots[(loop->waiting_first + i) % loop->n_lanes];

        slots[i] = slot;
        waiting[slot] = loop->waiting[slot];
    }
    free(loop->waiting);
    free(loop->waiting_slots);
    loop->waiting = waiting;
    loop->waiting_slots = slots;
    loop->waiting_first = 0;
    return true;
}

static void wait_for_room(struct probe_loop *loop, uint32_t slot, const struct probe_result *result)
{
    struct probe_lane *lane = &loop->lanes[slot];

    if (loop->waiting == NULL && !reserve_waiting(loop, loop->n_lanes)) {
        probe_counters_add(&loop->counters, PROBE_N_DROPPED, 1);
        return;
    }
    if (lane->has_waiting) {
        probe_counters_add(&loop->counters, PROBE_N_DROPPED, 1);
    }
    loop->waiting[slot] = *result;
    lane->has_waiting = true;
    if (!lane->is_queued) {
        assert(loop->n_waiting < loop->n_lanes);
        uint32_t at = (loop->waiting_first + loop->n_waiting) % loop->n_lanes;
        loop->waiting_slots[at] = slot;
        loop->n_waiting++;
        lane->is_queued = true;
    }
}

static bool is_calm(struct probe_lane *lane, const struct probe_result *result)
{
    bool is_calm = result->probe_class == PROBE_PASS && lane->n_passes == PROBE_CALM_PASSES;

    if (result->probe_class != PROBE_PASS) {
        lane->n_passes = 0;
    } else if (!is_calm) {
        lane->n_passes++;
    }
    return is_calm || plant_is("all-results-wait");
}

/* Results of one target stay in their order: behind one that waits, none goes out. */
static void hand_out(struct probe_loop *loop, const struct probe_result *result)
{
    uint32_t slot = result->id.slot;
    bool may_wait = is_calm(&loop->lanes[slot], result);

    if (!loop->lanes[slot].has_waiting && ring_push(loop->results, result)) {
        loop->has_news = loop->has_news || !may_wait;
        loop->calm_ns = loop->calm_ns != 0 ? loop->calm_ns : loop->turn_ns;
        return;
    }
    wait_for_room(loop, slot, result);
}

static void flush_waiting(struct probe_loop *loop)
{
    while (loop->n_waiting > 0) {
        uint32_t slot = loop->waiting_slots[loop->waiting_first];
        struct probe_lane *lane = &loop->lanes[slot];

        if (lane->has_waiting) {
            if (!ring_push(loop->results, &loop->waiting[slot])) {
                return;
            }
            loop->has_news = true;
            lane->has_waiting = false;
        }
        lane->is_queued = false;
        loop->waiting_first = (loop->waiting_first + 1) % loop->n_lanes;
        loop->n_waiting--;
    }
}

/* A probe has its one result. */
static void finish(struct probe_loop *loop, const struct probe_result *result)
{
    probe_counters_add(&loop->counters, PROBE_N_FINISHED, 1);
    probe_counters_result(&loop->counters, (enum probe_reason)result->reason);
    probe_schedule_end(&loop->schedule, result->id, result->end_ns);
    hand_out(loop, result);
}

static void on_result(void *user, const struct probe_result *result)
{
    struct probe_loop *loop = user;

    assert(result->id.slot < loop->n_lanes);
    struct probe_lane *lane = &loop->lanes[result->id.slot];
    assert(lane->planned != NULL && lane->planned->target.id.birth == result->id.birth);
    assert(lane->in_flight);
    lane->in_flight = false;
    loop->n_in_flight--;
    finish(loop, result);
}

/* --- starts --- */

bool probe_loop_allows(const struct probe_loop_options *options, const struct addr *to)
{
    if (options->n_allowed == 0 || plant_is("probe-allowed")) {
        return true;
    }
    for (uint32_t i = 0; i < options->n_allowed; i++) {
        if (cidr_contains(&options->allowed[i], to)) {
            return true;
        }
    }
    return false;
}

static struct probe_engine *engine_of(const struct probe_loop *loop, const struct probe_lane *lane)
{
    return lane->engine == 0 ? NULL : loop->engines[lane->engine - 1];
}

/* A probe that this node does not make at all. */
static void refuse(struct probe_loop *loop, struct target_id id, enum probe_reason reason,
                   uint64_t now_ns)
{
    struct probe_result result = {
        .id = id,
        .probe_class = (uint8_t)probe_reason_class(reason),
        .reason = (uint8_t)reason,
        .start_ns = now_ns,
        .end_ns = now_ns,
    };

    finish(loop, &result);
}

static enum probe_reason why_none_can(const struct probe_loop *loop,
                                      const struct target_definition *definition)
{
    uint32_t needed = probe_capability_of(definition);

    if ((loop->denied & needed) != 0) {
        return REASON_LOCAL_NO_PERMISSION;
    }
    return (needed & PROBE_OPTIONAL) != 0 ? REASON_LOCAL_NOT_BUILT : REASON_LOCAL_UNSUPPORTED;
}

/* Less than 2^32 ms, 49 days. */
static uint32_t since_start_ms(const struct probe_lane *lane, uint64_t now_ns)
{
    return (uint32_t)(now_ns / NS_PER_MS) - lane->start_ms;
}

static void start_probe(struct probe_loop *loop, struct target_id id, uint64_t now_ns)
{
    struct probe_lane *lane = &loop->lanes[id.slot];

    assert(lane->planned != NULL && lane->planned->target.id.birth == id.birth);
    assert(!lane->in_flight);
    const struct probe_target *target = &lane->planned->target;
    const struct health_check *check = target->definition.check;
    probe_counters_add(&loop->counters, PROBE_N_STARTED, 1);
    if (!probe_loop_allows(&loop->options, &target->definition.to.addr)) {
        refuse(loop, id, REASON_LOCAL_FORBIDDEN, now_ns);
        return;
    }
    struct probe_engine *engine = engine_of(loop, lane);
    if (engine == NULL) {
        refuse(loop, id, why_none_can(loop, &target->definition), now_ns);
        return;
    }
    if (since_start_ms(lane, now_ns) > check->timeout_ms + 2 * check->interval_ms) {
        lane->n_passes = 0; /* it rested: the opinion may have run out */
    }
    lane->start_ms = (uint32_t)(now_ns / NS_PER_MS);
    lane->in_flight = true;
    loop->n_in_flight++;
    probe_counters_add(&loop->counters, engine->counted_as, 1);
    engine->ops->submit(engine, target);
}

/* The edge of a slot at which what is due then is started: the next one, or the one before if that
 * is early by PROBE_SLOT_EARLY of a slot at most. A backend that answers at once stays on its edge
 * so, and is not a whole slot later each time. */
static uint64_t edge_of(const struct probe_loop *loop, uint64_t due_ns)
{
    uint64_t slot_ns = loop->options.slot_ns;

    if (slot_ns == 0 || due_ns > TIMER_NEVER - slot_ns) {
        return due_ns;
    }
    uint64_t early_ns = slot_ns / PROBE_SLOT_EARLY;
    uint64_t from_ns = due_ns < early_ns ? 0 : due_ns - early_ns;
    return (from_ns + slot_ns - 1) / slot_ns * slot_ns;
}

/* The last due time whose edge has come. */
static uint64_t due_until_ns(const struct probe_loop *loop, uint64_t now_ns)
{
    uint64_t slot_ns = loop->options.slot_ns;

    return slot_ns == 0 ? now_ns : now_ns / slot_ns * slot_ns + slot_ns / PROBE_SLOT_EARLY;
}

/* Those whose time has come, PROBE_STARTS_PER_TURN at most. Returns how many. */
static unsigned take_due(struct probe_loop *loop, uint64_t now_ns,
                         struct target_id ret_ids[PROBE_STARTS_PER_TURN])
{
    const uint64_t until_ns = due_until_ns(loop, now_ns);
    unsigned n = 0;

    while (n < PROBE_STARTS_PER_TURN) {
        uint64_t due_ns = probe_schedule_next_ns(&loop->schedule);

        if (due_ns > until_ns) {
            break;
        }
        if (loop->n_in_flight + n >= loop->options.in_flight_max) {
            loop->full_ns = now_ns;
            break;
        }
        if (due_ns <= loop->full_ns && due_ns < now_ns) {
            probe_counters_add(&loop->counters, PROBE_N_DELAYED, 1);
            probe_counters_max(&loop->counters, PROBE_DELAY_MAX_NS, now_ns - due_ns);
        }
        if (!probe_schedule_start_near(&loop->schedule, until_ns, now_ns, &ret_ids[n])) {
            break;
        }
        __builtin_prefetch(&loop->lanes[ret_ids[n].slot], 1);
        n++;
    }
    return n;
}

/* Many targets do not fit into the processor's cache: what a start needs is asked of memory some
 * starts ahead. */
#define STARTS_AHEAD 4

static void start_due(struct probe_loop *loop, uint64_t now_ns)
{
    struct target_id ids[PROBE_STARTS_PER_TURN];
    unsigned n = take_due(loop, now_ns, ids);

    for (unsigned i = 0; i < n + STARTS_AHEAD; i++) {
        if (i < n) {
            const struct planned_target *planned = loop->lanes[ids[i].slot].planned;

            __builtin_prefetch(planned);
            __builtin_prefetch(&planned->target.source);
        }
        if (i >= STARTS_AHEAD) {
            start_probe(loop, ids[i - STARTS_AHEAD], now_ns);
        }
    }
}

static bool is_lost(const struct probe_lane *lane, uint64_t now_ns)
{
    return lane->in_flight &&
           since_start_ms(lane, now_ns) >=
               PROBE_LOST_NS / NS_PER_MS + lane->planned->target.definition.check->timeout_ms;
}

/* R-PROBE-2: no target stays unprobed for ever because one result went missing. */
static void sweep(struct probe_loop *loop, uint64_t now_ns)
{
    if (now_ns < loop->sweep_ns) {
        return;
    }
    loop->sweep_ns = now_ns + PROBE_SWEEP_NS;
    for (uint32_t slot = 0; slot < loop->n_lanes && loop->n_in_flight > 0; slot++) {
        struct probe_lane *lane = &loop->lanes[slot];

        if (!is_lost(lane, now_ns)) {
            continue;
        }
        struct probe_engine *engine = engine_of(loop, lane);
        struct probe_result result = {
            .id = lane->planned->target.id,
            .probe_class = PROBE_INCONCLUSIVE,
            .reason = REASON_LOCAL_LATE,
            .start_ns = now_ns - since_start_ms(lane, now_ns) * NS_PER_MS,
            .end_ns = now_ns,
        };
        assert(engine != NULL);
        engine->ops->abandon(engine, slot);
        lane->in_flight = false;
        loop->n_in_flight--;
        probe_counters_add(&loop->counters, PROBE_N_LOST, 1);
        finish(loop, &result);
    }
}

static void look_at_budget(struct probe_loop *loop, uint64_t now_ns)
{
    struct probe_budget *budget = &loop->schedule.budget;

    if (!probe_budget_look(budget, timers_next(&loop->schedule.timers), now_ns)) {
        return;
    }
    const struct {
        enum probe_count count;
        uint64_t value;
    } values[] = {
        {PROBE_BUDGET_NODE_RATE, budget->rates.per_node},
        {PROBE_BUDGET_ADDRESS_RATE, budget->rates.per_address},
        {PROBE_BUDGET_USED, budget->n_used},
        {PROBE_BUDGET_DEMAND, (budget->demand + 999) / 1000},
        {PROBE_BUDGET_TOP_DEMAND, (budget->top_demand + 999) / 1000},
        {PROBE_BUDGET_TOP_SLOT, budget->top_slot},
        {PROBE_BUDGET_WAITING, budget->n_waiting},
        {PROBE_BUDGET_DELAYED, budget->n_delayed},
        {PROBE_BUDGET_DELAY_MAX_NS, budget->delay_max_ns},
        {PROBE_BUDGET_DELAY_NS, budget->delay_ns},
        {PROBE_BUDGET_PRESSED, budget->is_pressed},
    };

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        probe_counters_set(&loop->counters, values[i].count, values[i].value);
    }
}

void probe_loop_turn(struct probe_loop *loop, uint64_t now_ns)
{
    const struct probe_sink sink = {.result = on_result, .user = loop};

    loop->turn_ns = now_ns;
    flush_waiting(loop);
    for (uint32_t i = 0; i < loop->n_engines; i++) {
        loop->engines[i]->ops->run(loop->engines[i], &sink);
    }
    start_due(loop, now_ns);
    for (uint32_t i = 0; i < loop->n_engines; i++) {
        if (loop->engines[i]->ops->flush != NULL) {
            loop->engines[i]->ops->flush(loop->engines[i]);
        }
    }
    if (loop->n_in_flight > 0) {
        sweep(loop, now_ns);
    }
    look_at_budget(loop, now_ns);
    probe_counters_set(&loop->counters, PROBE_N_IN_FLIGHT, loop->n_in_flight);
}

bool probe_loop_wants_reader(struct probe_loop *loop, uint64_t next_ns)
{
    bool is_due = loop->has_news || (loop->calm_ns != 0 && next_ns >= loop->calm_ns &&
                                     next_ns - loop->calm_ns > PROBE_CALM_NS);

    if (is_due) {
        loop->has_news = false;
        loop->calm_ns = 0;
    }
    return is_due;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t probe_loop_next_ns(const struct probe_loop *loop, uint64_t now_ns)
{
    uint64_t next_ns = TIMER_NEVER;

    for (uint32_t i = 0; i < loop->n_engines; i++) {
        next_ns = earlier(next_ns, loop->engines[i]->ops->next_ns(loop->engines[i]));
    }
    if (loop->n_in_flight < loop->options.in_flight_max) {
        next_ns = earlier(next_ns, edge_of(loop, probe_schedule_next_ns(&loop->schedule)));
    }
    if (loop->n_in_flight > 0) {
        next_ns = earlier(next_ns, loop->sweep_ns);
    }
    if (loop->n_waiting > 0) {
        next_ns = earlier(next_ns, now_ns + PROBE_RETRY_RING_NS);
    }
    return next_ns;
}

/* --- plans --- */

static int reserve(struct probe_loop *loop, uint32_t n_lanes)
{
    if (n_lanes <= loop->n_lanes) {
        return 0;
    }
    int err = probe_schedule_reserve(&loop->schedule, n_lanes);
    if (err != 0) {
        return err;
    }
    uint32_t capacity = spare_round_up(n_lanes);
    struct probe_lane *lanes = realloc(loop->lanes, capacity * sizeof *lanes);
    if (lanes == NULL) {
        return ERR_NOMEM;
    }
    memset(lanes + loop->n_lanes, 0, (capacity - loop->n_lanes) * sizeof *lanes);
    loop->lanes = lanes;
    if (loop->waiting != NULL && !reserve_waiting(loop, capacity)) {
        return ERR_NOMEM;
    }
    loop->n_lanes = capacity;
    return 0;
}

static void leave(struct probe_loop *loop, uint32_t slot)
{
    struct probe_lane *lane = &loop->lanes[slot];

    probe_schedule_remove(&loop->schedule, lane->planned->target.id);
    struct probe_engine *engine = engine_of(loop, lane);
    if (engine != NULL) {
        engine->ops->abandon(engine, slot);
    }
    if (lane->in_flight) {
        lane->in_flight = false;
        loop->n_in_flight--;
        probe_counters_add(&loop->counters, PROBE_N_ABANDONED, 1);
    }
    if (lane->has_waiting) {
        lane->has_waiting = false;
        probe_counters_add(&loop->counters, PROBE_N_DROPPED, 1);
    }
    lane->planned = NULL;
    lane->engine = 0;
}

/* As a lane has it. */
static uint8_t choose_engine(const struct probe_loop *loop,
                             const struct target_definition *definition)
{
    uint32_t needed = probe_capability_of(definition);

    for (uint8_t i = 0; i < loop->n_engines; i++) {
        if ((loop->engines[i]->capabilities & needed) != 0) {
            return (uint8_t)(i + 1);
        }
    }
    return 0;
}

static int enter(struct probe_loop *loop, const struct planned_target *planned, uint64_t now_ns)
{
    uint32_t slot = planned->target.id.slot;

    int err = probe_schedule_add(&loop->schedule, &planned->target, planned->is_at_start, now_ns);
    if (err != 0) {
        return err;
    }
    loop->lanes[slot].planned = planned;
    loop->lanes[slot].n_passes = 0;
    loop->lanes[slot].engine = choose_engine(loop, &planned->target.definition);
    return 0;
}

static void leave_what_went(struct probe_loop *loop, const struct probe_plan *next)
{
    uint32_t at = 0;

    for (uint32_t i = 0; loop->plan != NULL && i < loop->plan->n_targets; i++) {
        const struct planned_target *old = loop->plan->targets[i];
        uint32_t slot = old->target.id.slot;

        while (at < next->n_targets && next->targets[at]->target.id.slot < slot) {
            at++;
        }
        bool stays = at < next->n_targets && next->targets[at] == old;
        if (!stays && loop->lanes[slot].planned == old) {
            leave(loop, slot);
        }
    }
}

int probe_loop_take_plan(struct probe_loop *loop, struct probe_plan *plan, uint64_t now_ns)
{
    int first_err = 0;

    probe_budget_set(&loop->schedule.budget, plan->rates);
    leave_what_went(loop, plan);
    if (plan->n_targets > 0) {
        /* All at once; without memory for all of them, as many as there is room for. */
        (void)reserve(loop, plan->targets[plan->n_targets - 1]->target.id.slot + 1);
    }
    for (uint32_t i = 0; i < plan->n_targets; i++) {
        const struct planned_target *planned = plan->targets[i];
        uint32_t slot = planned->target.id.slot;

        int err = reserve(loop, slot + 1);
        if (err == 0 && loop->lanes[slot].planned != planned) {
            assert(loop->lanes[slot].planned == NULL);
            err = enter(loop, planned, now_ns);
        }
        first_err = first_err != 0 ? first_err : err;
    }
    probe_plan_release(loop->plan);
    loop->plan = plan;
    probe_counters_set(&loop->counters, PROBE_N_TARGETS, plan->n_targets);
    return first_err;
}
