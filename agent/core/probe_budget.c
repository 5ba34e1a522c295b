#include "agent/core/probe_budget.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/plant.h"
#include "common/base/spare.h"

#define SLACK_NS (NS_PER_SECOND / 10) /* a tenth of a second's budget may start together */

void probe_budget_init(struct probe_budget *budget)
{
    *budget = (struct probe_budget){0};
    timers_init(&budget->turns);
}

void probe_budget_close(struct probe_budget *budget)
{
    timers_close(&budget->turns);
    address_index_close(&budget->addresses);
    free(budget->places);
    free(budget->crowds);
    free(budget->members);
    *budget = (struct probe_budget){0};
}

/* --- buckets --- */

/* Rounded up, so that a rate is never exceeded by rounding. */
static uint64_t step_ns(uint32_t per_second)
{
    return (NS_PER_SECOND + per_second - 1) / per_second;
}

/* When it has room again. */
static uint64_t room_ns(const struct probe_bucket *bucket, uint32_t per_second)
{
    return per_second == 0 || bucket->spent_ns < SLACK_NS ? 0 : bucket->spent_ns - SLACK_NS;
}

static void spend(struct probe_bucket *bucket, uint32_t per_second, uint64_t now_ns)
{
    if (per_second != 0) {
        uint64_t from_ns = bucket->spent_ns > now_ns ? bucket->spent_ns : now_ns;

        bucket->spent_ns = from_ns + step_ns(per_second);
    }
}

int probe_budget_reserve(struct probe_budget *budget, uint32_t n_slots)
{
    uint32_t n = spare_round_up(n_slots);

    if (address_index_reserve(&budget->addresses, n_slots) != 0) {
        return ERR_NOMEM;
    }
    if (n_slots <= budget->n_slots) {
        return 0;
    }
    struct probe_budget_place *places = realloc(budget->places, n * sizeof *places);
    if (places == NULL) {
        return ERR_NOMEM;
    }
    memset(places + budget->n_slots, 0, (n - budget->n_slots) * sizeof *places);
    budget->places = places;
    budget->n_slots = n;
    return 0;
}

/* --- crowds --- */

static int grow_crowds(struct probe_budget *budget)
{
    uint32_t n = spare_round_up(budget->n_crowds + 1);

    if (budget->free_crowd != 0) {
        return 0;
    }
    if (timers_reserve(&budget->turns, n) != 0) {
        return ERR_NOMEM;
    }
    struct probe_budget_crowd *crowds = realloc(budget->crowds, n * sizeof *crowds);
    if (crowds == NULL) {
        return ERR_NOMEM;
    }
    for (uint32_t i = n; i > budget->n_crowds; i--) {
        crowds[i - 1] = (struct probe_budget_crowd){.first = budget->free_crowd};
        budget->free_crowd = i;
    }
    budget->crowds = crowds;
    budget->n_crowds = n;
    return 0;
}

/* Two are free afterwards. */
static int grow_members(struct probe_budget *budget)
{
    uint32_t n = spare_round_up(budget->n_members + 2);

    if (budget->free_member != 0 && budget->members[budget->free_member - 1].next != 0) {
        return 0;
    }
    struct probe_budget_member *members = realloc(budget->members, n * sizeof *members);
    if (members == NULL) {
        return ERR_NOMEM;
    }
    for (uint32_t i = n; i > budget->n_members; i--) {
        members[i - 1] = (struct probe_budget_member){.next = budget->free_member};
        budget->free_member = i;
    }
    budget->members = members;
    budget->n_members = n;
    return 0;
}

static void join_crowd(struct probe_budget *budget, uint32_t crowd, uint32_t slot)
{
    uint32_t i = budget->free_member - 1;

    budget->free_member = budget->members[i].next;
    budget->members[i] =
        (struct probe_budget_member){.slot = slot, .crowd = crowd, .is_used = true};
    budget->places[slot].member = i + 1;
    budget->crowds[crowd].n_targets++;
    budget->crowds[crowd].demand += budget->places[slot].demand;
}

static uint32_t take_crowd(struct probe_budget *budget)
{
    uint32_t i = budget->free_crowd - 1;

    budget->free_crowd = budget->crowds[i].first;
    budget->crowds[i] = (struct probe_budget_crowd){0};
    return i;
}

static uint32_t demand_of_interval(uint32_t interval_ms)
{
    return interval_ms == 0 ? 0 : 1000000 / interval_ms;
}

int probe_budget_enter(struct probe_budget *budget, uint32_t slot, const struct addr *addr,
                       uint32_t interval_ms)
{
    if (probe_budget_reserve(budget, slot + 1) != 0) {
        return ERR_NOMEM;
    }
    uint32_t neighbour = address_index_find(&budget->addresses, addr);
    bool has_company = neighbour != ADDRESS_INDEX_NONE;
    if (has_company && (grow_crowds(budget) != 0 || grow_members(budget) != 0)) {
        return ERR_NOMEM;
    }
    address_index_put(&budget->addresses, slot, addr);
    budget->places[slot] = (struct probe_budget_place){.demand = demand_of_interval(interval_ms)};
    budget->demand += budget->places[slot].demand;
    if (has_company) {
        if (budget->places[neighbour].member == 0) {
            join_crowd(budget, take_crowd(budget), neighbour);
        }
        join_crowd(budget, budget->members[budget->places[neighbour].member - 1].crowd, slot);
    }
    return 0;
}

static void leave_crowd(struct probe_budget *budget, uint32_t slot)
{
    uint32_t i = budget->places[slot].member - 1;
    uint32_t crowd = budget->members[i].crowd;

    probe_budget_withdraw(budget, slot);
    budget->crowds[crowd].demand -= budget->places[slot].demand;
    budget->crowds[crowd].n_targets--;
    budget->members[i] = (struct probe_budget_member){.next = budget->free_member};
    budget->free_member = i + 1;
    if (budget->crowds[crowd].n_targets == 0) {
        budget->crowds[crowd] = (struct probe_budget_crowd){.first = budget->free_crowd};
        budget->free_crowd = crowd + 1;
    }
}

void probe_budget_leave(struct probe_budget *budget, uint32_t slot)
{
    if (!address_index_has(&budget->addresses, slot)) {
        return;
    }
    if (budget->places[slot].member != 0) {
        leave_crowd(budget, slot);
    }
    address_index_drop(&budget->addresses, slot);
    budget->demand -= budget->places[slot].demand;
    budget->places[slot] = (struct probe_budget_place){0};
}

void probe_budget_want(struct probe_budget *budget, uint32_t slot, uint32_t interval_ms)
{
    struct probe_budget_place *place = &budget->places[slot];
    uint32_t demand = demand_of_interval(interval_ms);

    assert(address_index_has(&budget->addresses, slot));
    if (place->member != 0) {
        struct probe_budget_crowd *crowd =
            &budget->crowds[budget->members[place->member - 1].crowd];

        crowd->demand = crowd->demand - place->demand + demand;
    }
    budget->demand = budget->demand - place->demand + demand;
    place->demand = demand;
}

/* --- queues --- */

static void set_turn(struct probe_budget *budget, uint32_t crowd)
{
    timers_set(&budget->turns, crowd,
               budget->crowds[crowd].first == 0
                   ? TIMER_NEVER
                   : room_ns(&budget->crowds[crowd].bucket, budget->rates.per_address));
}

void probe_budget_set(struct probe_budget *budget, struct probe_rates rates)
{
    if (rates.per_node == budget->rates.per_node &&
        rates.per_address == budget->rates.per_address) {
        return;
    }
    budget->rates = rates;
    budget->node = (struct probe_bucket){0};
    for (uint32_t i = 0; i < budget->n_crowds; i++) {
        if (budget->crowds[i].n_targets > 0) {
            budget->crowds[i].bucket = (struct probe_bucket){0};
            set_turn(budget, i);
        }
    }
}

static void wait_in_queue(struct probe_budget *budget, uint32_t i, uint64_t due_ns)
{
    struct probe_budget_member *member = &budget->members[i];
    struct probe_budget_crowd *crowd = &budget->crowds[member->crowd];

    member->due_ns = due_ns;
    member->is_waiting = true;
    member->before = crowd->last;
    member->next = 0;
    if (crowd->last != 0) {
        budget->members[crowd->last - 1].next = i + 1;
    } else {
        crowd->first = i + 1;
        set_turn(budget, member->crowd);
    }
    crowd->last = i + 1;
    budget->n_waiting++;
}

void probe_budget_withdraw(struct probe_budget *budget, uint32_t slot)
{
    if (!probe_budget_waits(budget, slot)) {
        return;
    }
    struct probe_budget_member *member = &budget->members[budget->places[slot].member - 1];
    struct probe_budget_crowd *crowd = &budget->crowds[member->crowd];

    if (member->before != 0) {
        budget->members[member->before - 1].next = member->next;
    } else {
        crowd->first = member->next;
    }
    if (member->next != 0) {
        budget->members[member->next - 1].before = member->before;
    } else {
        crowd->last = member->before;
    }
    member->is_waiting = false;
    member->next = member->before = 0;
    budget->n_waiting--;
    if (crowd->first == 0) {
        set_turn(budget, member->crowd);
    }
}

bool probe_budget_waits(const struct probe_budget *budget, uint32_t slot)
{
    return slot < budget->n_slots && budget->places[slot].member != 0 &&
           budget->members[budget->places[slot].member - 1].is_waiting;
}

/* --- starts --- */

static void note_delay(struct probe_budget *budget, uint64_t delay_ns, uint64_t now_ns)
{
    budget->delay_max_ns = delay_ns > budget->delay_max_ns ? delay_ns : budget->delay_max_ns;
    if (delay_ns >= PROBE_PRESSURE_NS) {
        budget->pressed_ns = now_ns;
        budget->delay_ns =
            budget->is_pressed && budget->delay_ns > delay_ns ? budget->delay_ns : delay_ns;
        budget->is_pressed = true;
    }
}

/* As long as the slack lasts, late starts are made up for, and nothing waits for them. */
void probe_budget_come(struct probe_budget *budget, uint64_t next_ns, uint64_t now_ns)
{
    bool goes_on = budget->late_to_ns != 0 && next_ns <= budget->late_to_ns;

    if (now_ns > next_ns && (goes_on || now_ns - next_ns > SLACK_NS)) {
        budget->late_from_ns =
            goes_on && budget->late_from_ns < next_ns ? budget->late_from_ns : next_ns;
        budget->late_to_ns = now_ns;
    }
}

/* From when on the budget alone held back what was due at due_ns: later by what the loop was late.
 */
static uint64_t held_from_ns(const struct probe_budget *budget, uint64_t due_ns)
{
    if (due_ns >= budget->late_to_ns || plant_is("probe-budget-blamed")) {
        return due_ns;
    }
    return due_ns < budget->late_from_ns ? due_ns + (budget->late_to_ns - budget->late_from_ns)
                                         : budget->late_to_ns;
}

/* The node's budget had no room when this became due; what is late though it had is so for other
 * reasons. */
static bool waits_for_node(const struct probe_budget *budget, uint64_t held_ns)
{
    return held_ns < room_ns(&budget->node, budget->rates.per_node);
}

static void count_start(struct probe_budget *budget, bool has_waited, uint64_t held_ns,
                        uint64_t now_ns)
{
    spend(&budget->node, budget->rates.per_node, now_ns);
    budget->n_second++;
    if (has_waited && held_ns < now_ns) {
        budget->n_delayed++;
        note_delay(budget, now_ns - held_ns, now_ns);
    }
}

bool probe_budget_has(const struct probe_budget *budget, uint64_t now_ns)
{
    return room_ns(&budget->node, budget->rates.per_node) <= now_ns ||
           plant_is("probe-budget-node");
}

bool probe_budget_start(struct probe_budget *budget, uint32_t slot, uint64_t due_ns,
                        uint64_t now_ns)
{
    uint32_t member = budget->places[slot].member;
    uint32_t per_address = plant_is("probe-budget-address") ? 0 : budget->rates.per_address;

    assert(!probe_budget_waits(budget, slot));
    if (member != 0 && per_address != 0) {
        struct probe_budget_crowd *crowd = &budget->crowds[budget->members[member - 1].crowd];

        if (crowd->first != 0 || room_ns(&crowd->bucket, per_address) > now_ns) {
            wait_in_queue(budget, member - 1, due_ns);
            return false;
        }
        spend(&crowd->bucket, per_address, now_ns);
    }
    uint64_t held_ns = held_from_ns(budget, due_ns);
    count_start(budget, waits_for_node(budget, held_ns), held_ns, now_ns);
    return true;
}

uint64_t probe_budget_turn_ns(const struct probe_budget *budget)
{
    return timers_next(&budget->turns);
}

uint32_t probe_budget_take_turn(struct probe_budget *budget, uint64_t now_ns, uint64_t *ret_due_ns)
{
    uint32_t i;
    bool is_due = timers_pop(&budget->turns, now_ns, &i);

    assert(is_due && budget->crowds[i].first != 0);
    const struct probe_budget_member *member = &budget->members[budget->crowds[i].first - 1];
    *ret_due_ns = member->due_ns;
    probe_budget_withdraw(budget, member->slot);
    spend(&budget->crowds[i].bucket, budget->rates.per_address, now_ns);
    set_turn(budget, i);
    count_start(budget, true, held_from_ns(budget, *ret_due_ns), now_ns);
    return member->slot;
}

uint64_t probe_budget_next_ns(const struct probe_budget *budget, uint64_t wanted_ns)
{
    uint64_t room = room_ns(&budget->node, budget->rates.per_node);

    return wanted_ns < room && !plant_is("probe-budget-node") ? room : wanted_ns;
}

static uint64_t oldest_waiting_ns(const struct probe_budget *budget, uint64_t now_ns)
{
    uint64_t oldest_ns = now_ns;

    for (uint32_t i = 0; budget->n_waiting > 0 && i < budget->n_crowds; i++) {
        uint32_t first = budget->crowds[i].n_targets == 0 ? 0 : budget->crowds[i].first;

        if (first != 0) {
            uint64_t held_ns = held_from_ns(budget, budget->members[first - 1].due_ns);

            oldest_ns = held_ns < oldest_ns ? held_ns : oldest_ns;
        }
    }
    return oldest_ns;
}

static void find_top(struct probe_budget *budget)
{
    budget->top_demand = 0;
    for (uint32_t i = 0; i < budget->n_members; i++) {
        const struct probe_budget_member *member = &budget->members[i];

        if (member->is_used && budget->crowds[member->crowd].demand > budget->top_demand) {
            budget->top_demand = budget->crowds[member->crowd].demand;
            budget->top_slot = member->slot;
        }
    }
}

bool probe_budget_look(struct probe_budget *budget, uint64_t oldest_due_ns, uint64_t now_ns)
{
    if (now_ns < budget->second_ns + NS_PER_SECOND) {
        return false;
    }
    budget->n_used = now_ns < budget->second_ns + 2 * NS_PER_SECOND ? budget->n_second : 0;
    budget->n_second = 0;
    budget->second_ns = now_ns;
    find_top(budget);

    uint64_t oldest_ns = oldest_waiting_ns(budget, now_ns);
    uint64_t held_ns = held_from_ns(budget, oldest_due_ns);
    if (waits_for_node(budget, held_ns) && held_ns < oldest_ns) {
        oldest_ns = held_ns;
    }
    note_delay(budget, now_ns - oldest_ns, now_ns);
    if (budget->is_pressed && now_ns >= budget->pressed_ns + PROBE_RELIEF_NS) {
        budget->is_pressed = false;
    }
    return true;
}
