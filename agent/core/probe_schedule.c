#include "agent/core/probe_schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/limits.h"
#include "common/base/plant.h"
#include "common/base/spare.h"
#include "common/base/units.h"

#define ADDED_WINDOW_NS (UINT64_C(1000) * NS_PER_MS)

void probe_schedule_init(struct probe_schedule *schedule, uint64_t node_id)
{
    *schedule = (struct probe_schedule){.node_id = node_id};
    timers_init(&schedule->timers);
    probe_budget_init(&schedule->budget);
}

void probe_schedule_close(struct probe_schedule *schedule)
{
    timers_close(&schedule->timers);
    probe_budget_close(&schedule->budget);
    free(schedule->targets);
    *schedule = (struct probe_schedule){0};
}

uint64_t probe_schedule_phase_ns(uint64_t node_id, const struct probe_target *target,
                                 bool is_at_start)
{
    struct {
        uint64_t birth;
        uint32_t slot;
        uint16_t port;
        uint8_t address[17];
        uint8_t pad;
    } what;
    struct hash_key key = {.k0 = node_id, .k1 = UINT64_C(0x7068617365)};
    uint64_t window_ns = target->definition.check->interval_ms * NS_PER_MS;

    memset(&what, 0, sizeof what);
    what.birth = target->id.birth;
    what.slot = target->id.slot;
    what.port = target->definition.to.port;
    what.address[0] = target->definition.to.addr.family;
    memcpy(&what.address[1], target->definition.to.addr.bytes, 16);

    if (!is_at_start && window_ns > ADDED_WINDOW_NS) {
        window_ns = ADDED_WINDOW_NS;
    }
    return window_ns == 0 ? 0 : hash_64(&key, &what, sizeof what) % window_ns;
}

int probe_schedule_reserve(struct probe_schedule *schedule, uint32_t n_slots)
{
    assert(n_slots <= LIMIT_TARGETS);
    if (n_slots <= schedule->n_slots) {
        return 0;
    }
    uint32_t capacity = spare_round_up(n_slots);
    if (timers_reserve(&schedule->timers, capacity) != 0 ||
        probe_budget_reserve(&schedule->budget, n_slots) != 0) {
        return ERR_NOMEM;
    }
    struct scheduled_target *targets = realloc(schedule->targets, capacity * sizeof *targets);
    if (targets == NULL) {
        return ERR_NOMEM;
    }
    memset(targets + schedule->n_slots, 0, (capacity - schedule->n_slots) * sizeof *targets);
    schedule->targets = targets;
    schedule->n_slots = capacity;
    return 0;
}

int probe_schedule_add(struct probe_schedule *schedule, const struct probe_target *target,
                       bool is_at_start, uint64_t now_ns)
{
    uint32_t slot = target->id.slot;

    assert(target->id.birth != 0);
    if (slot >= LIMIT_TARGETS) {
        return ERR_LIMIT;
    }
    int err = probe_schedule_reserve(schedule, slot + 1);
    if (err == 0) {
        probe_budget_leave(&schedule->budget, slot);
        err = probe_budget_enter(&schedule->budget, slot, &target->definition.to.addr,
                                 target->definition.check->interval_ms);
    }
    if (err != 0) {
        return err;
    }
    schedule->targets[slot] = (struct scheduled_target){
        .birth = target->id.birth,
        .interval_ms = target->definition.check->interval_ms,
        .is_fixed = target->definition.check->pacing == PACING_FIXED,
    };
    timers_set(&schedule->timers, slot,
               now_ns + probe_schedule_phase_ns(schedule->node_id, target, is_at_start));
    return 0;
}

static uint64_t interval_of_ns(const struct scheduled_target *target)
{
    return target->interval_ms * NS_PER_MS;
}

static struct scheduled_target *find(struct probe_schedule *schedule, struct target_id id)
{
    if (id.slot >= schedule->n_slots || id.birth == 0 ||
        schedule->targets[id.slot].birth != id.birth) {
        return NULL;
    }
    return &schedule->targets[id.slot];
}

void probe_schedule_remove(struct probe_schedule *schedule, struct target_id id)
{
    struct scheduled_target *target = find(schedule, id);

    if (target != NULL) {
        probe_budget_leave(&schedule->budget, id.slot);
        *target = (struct scheduled_target){0};
        timers_clear(&schedule->timers, id.slot);
    }
}

uint64_t probe_schedule_next_ns(const struct probe_schedule *schedule)
{
    uint64_t due_ns = timers_next(&schedule->timers);
    uint64_t turn_ns = probe_budget_turn_ns(&schedule->budget);

    return probe_budget_next_ns(&schedule->budget, turn_ns < due_ns ? turn_ns : due_ns);
}

bool probe_schedule_start(struct probe_schedule *schedule, uint64_t now_ns,
                          struct target_id *ret_id)
{
    return probe_schedule_start_near(schedule, now_ns, now_ns, ret_id);
}

#define BEAT_SLACK 8 /* a pause is shortened by 1/8 at most */

/* A beat is kept, or else each wake-up would move it a little further; after a start that is late
 * by more than the slack, such as one of a machine that slept, the beat begins anew. */
static uint64_t beat_of_start_ns(const struct scheduled_target *target, uint64_t due_ns,
                                 uint64_t now_ns)
{
    return target->is_fixed && now_ns < due_ns + interval_of_ns(target) / BEAT_SLACK &&
                   !plant_is("fixed-drifts")
               ? due_ns
               : now_ns;
}

/* The next that the budget lets start. ret_due_ns: when it was due. */
static bool take_next(struct probe_schedule *schedule, uint64_t until_ns, uint32_t *ret_slot,
                      uint64_t *ret_due_ns)
{
    struct probe_budget *budget = &schedule->budget;

    probe_budget_come(budget, probe_schedule_next_ns(schedule), until_ns);
    for (;;) {
        uint64_t due_ns = timers_next(&schedule->timers);
        uint64_t turn_ns = probe_budget_turn_ns(budget);

        if ((due_ns > until_ns && turn_ns > until_ns) || !probe_budget_has(budget, until_ns)) {
            return false;
        }
        if (turn_ns <= due_ns) {
            *ret_slot = probe_budget_take_turn(budget, until_ns, ret_due_ns);
            return true;
        }
        bool is_due = timers_pop(&schedule->timers, until_ns, ret_slot);
        assert(is_due);
        if (probe_budget_start(budget, *ret_slot, due_ns, until_ns)) {
            *ret_due_ns = due_ns;
            return true;
        }
    }
}

bool probe_schedule_start_near(struct probe_schedule *schedule, uint64_t until_ns, uint64_t now_ns,
                               struct target_id *ret_id)
{
    uint64_t due_ns;
    uint32_t slot;

    if (!take_next(schedule, until_ns, &slot, &due_ns)) {
        return false;
    }
    struct scheduled_target *target = &schedule->targets[slot];
    assert(target->birth != 0 && !target->in_flight);

    target->in_flight = true;
    target->start_ns = beat_of_start_ns(target, due_ns, now_ns);
    *ret_id = (struct target_id){.slot = slot, .birth = target->birth};
    return true;
}

/* The first beat that is not before the end. */
static uint64_t next_beat_ns(const struct scheduled_target *target, uint64_t end_ns)
{
    uint64_t took_ns = end_ns - target->start_ns;
    uint64_t n_beats = (took_ns + interval_of_ns(target) - 1) / interval_of_ns(target);

    return target->start_ns + (n_beats == 0 ? 1 : n_beats) * interval_of_ns(target);
}

/* The beat after `after_ns` and not later than an interval after it. */
static uint64_t beat_after_ns(const struct scheduled_target *target, uint64_t after_ns)
{
    uint64_t interval_ns = interval_of_ns(target);
    uint64_t passed_ns = (after_ns % interval_ns + interval_ns - target->beat_ns % interval_ns) %
                         interval_ns; /* since the last beat */

    return after_ns + interval_ns - passed_ns;
}

static uint64_t after_pause_ns(const struct scheduled_target *target, uint64_t end_ns)
{
    if (target->beat_ns == 0 || interval_of_ns(target) == 0) {
        return end_ns + interval_of_ns(target);
    }
    uint64_t least_ns = end_ns + interval_of_ns(target) - interval_of_ns(target) / BEAT_SLACK;
    uint64_t beat_ns = beat_after_ns(target, end_ns);
    return beat_ns > least_ns ? beat_ns : least_ns;
}

void probe_schedule_order(struct probe_schedule *schedule, const struct probe_order *order,
                          uint64_t now_ns)
{
    struct scheduled_target *target = find(schedule, order->id);

    if (target == NULL) {
        return;
    }
    bool rested = target->is_resting;
    target->is_resting = !order->is_on;
    target->beat_ns = order->beat_ns;
    probe_budget_want(&schedule->budget, order->id.slot,
                      target->is_resting ? 0 : target->interval_ms);
    if (target->in_flight) {
        return; /* its end sets the next */
    }
    if (target->is_resting) {
        timers_clear(&schedule->timers, order->id.slot);
        probe_budget_withdraw(&schedule->budget, order->id.slot);
    } else if (probe_budget_waits(&schedule->budget, order->id.slot)) {
        return; /* it keeps its turn */
    } else if (order->is_now) {
        timers_set(&schedule->timers, order->id.slot, now_ns);
    } else if (rested) {
        timers_set(&schedule->timers, order->id.slot, beat_after_ns(target, now_ns));
    }
}

/* A planted fault: one that is slow makes another wait for more than an interval, now and then. */
static void put_off(struct probe_schedule *schedule, uint32_t slot, uint64_t now_ns)
{
    const struct scheduled_target *target = &schedule->targets[slot];

    if (slot < schedule->n_slots && target->birth != 0 && !target->in_flight &&
        now_ns < target->start_ns + interval_of_ns(target)) {
        timers_set(&schedule->timers, slot, now_ns + 2 * interval_of_ns(target));
    }
}

void probe_schedule_end(struct probe_schedule *schedule, struct target_id id, uint64_t end_ns)
{
    struct scheduled_target *target = find(schedule, id);

    if (target == NULL || !target->in_flight) {
        return;
    }
    if (end_ns < target->start_ns) {
        end_ns = target->start_ns;
    }
    target->in_flight = false;
    if (plant_is("slow-starves") && end_ns - target->start_ns > 100 * NS_PER_MS) {
        put_off(schedule, id.slot + 1, end_ns);
    }
    if (plant_is("interval-from-start")) {
        end_ns = target->start_ns;
    }
    if (target->is_resting) {
        return;
    }
    timers_set(&schedule->timers, id.slot,
               target->is_fixed && interval_of_ns(target) > 0 ? next_beat_ns(target, end_ns)
                                                              : after_pause_ns(target, end_ns));
}
