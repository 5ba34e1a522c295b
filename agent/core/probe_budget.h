/* How many probes a node begins in a second, in all and to one address: pure, with the caller's
 * clock.
 *
 * A start that the budget has no room for waits; none is dropped:
 * - for the node's budget the targets wait in the order in which they became due;
 * - for that of an address they stand in a queue of the address, one place a target, so that it is
 *   round robin over them; other addresses go on meanwhile.
 * In any second it lets through the budget, a tenth of it and one more: starts that happen to be
 * due together are not spread for nothing.
 *
 * Only the time counts in which there was no room: that the loop comes late, of a machine that
 * stood still or is loaded, is not the budget's doing.
 *
 * Back-pressure begins when a start has waited for PROBE_PRESSURE_NS, and ends when none has for
 * PROBE_RELIEF_NS. While it lasts a stated window of a target is longer by the delay for each probe
 * in it; and an opinion whose target waits for so long that its last result is out of date becomes
 * `none`, as any other does. One thread owns it. */
#ifndef JURY_CORE_PROBE_BUDGET_H
#define JURY_CORE_PROBE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/address_index.h"
#include "agent/core/timers.h"
#include "common/base/addr.h"
#include "common/base/units.h"

#define PROBE_PRESSURE_NS (100 * NS_PER_MS)
#define PROBE_RELIEF_NS (10 * NS_PER_SECOND)

/* Starts a second; 0 = without a limit. */
struct probe_rates {
    uint32_t per_node;
    uint32_t per_address;
};

/* What is left of one budget: the time up to which it is spent. */
struct probe_bucket {
    uint64_t spent_ns;
};

/* An address with several targets. One alone at its address cannot exceed a budget: with the
 * shortest interval it begins as many as the smallest budget has. So it takes no more memory. */
struct probe_budget_crowd {
    struct probe_bucket bucket;
    uint64_t demand; /* what intervals come to, of those that do not rest: starts in 1,000 s */
    uint32_t n_targets;
    uint32_t first; /* of the queue: member + 1; 0 = nobody waits. Of a free crowd: the next one */
    uint32_t last;
};

/* A target of a crowd. */
struct probe_budget_member {
    uint64_t due_ns; /* of the start that waits */
    uint32_t slot;
    uint32_t crowd;
    uint32_t next; /* in the queue: member + 1; of a free one: the next free one */
    uint32_t before;
    bool is_used;
    bool is_waiting;
};

struct probe_budget_place {
    uint32_t member; /* + 1; 0 = alone at its address */
    uint32_t demand; /* starts in 1,000 s; 0 while it rests */
};

struct probe_budget {
    struct probe_rates rates;
    struct probe_bucket node;
    struct address_index addresses;    /* those with the same key share a budget */
    struct probe_budget_place *places; /* by slot */
    uint32_t n_slots;
    struct probe_budget_crowd *crowds;
    uint32_t n_crowds;   /* places for them, used and free */
    uint32_t free_crowd; /* + 1 */
    struct timers turns; /* by crowd: when the first of its queue may start */
    struct probe_budget_member *members;
    uint32_t n_members;   /* places for them, used and free */
    uint32_t free_member; /* + 1 */

    uint64_t late_from_ns; /* the last time in which what was due had room, and the loop was late */
    uint64_t late_to_ns;
    uint32_t n_waiting;    /* in queues of addresses */
    uint64_t n_delayed;    /* starts that waited */
    uint64_t delay_max_ns; /* the longest ever */
    uint64_t second_ns;    /* when the second that is being counted began */
    uint32_t n_second;     /* starts in it */
    uint32_t n_used;       /* starts in the second before */
    bool is_pressed;
    uint64_t pressed_ns; /* when a start last waited for PROBE_PRESSURE_NS */
    uint64_t delay_ns;   /* the longest in this back-pressure, or the last one */
    uint64_t demand;     /* of all addresses; probes that take no time */
    uint32_t top_slot;   /* of the crowds one of a target at the address with most demand, */
    uint64_t top_demand; /* and that; 0 = no crowd */
};

void probe_budget_init(struct probe_budget *budget);
void probe_budget_close(struct probe_budget *budget);
/* Takes effect with the next start, for those that wait, too. */
void probe_budget_set(struct probe_budget *budget, struct probe_rates rates);

/* Room for slots below n_slots. Errors: ERR_NOMEM, nothing changed. */
int probe_budget_reserve(struct probe_budget *budget, uint32_t n_slots);
/* The target of this slot, which is free, is at that address. interval_ms: 0 = no demand. Errors:
 * ERR_NOMEM, nothing changed. */
int probe_budget_enter(struct probe_budget *budget, uint32_t slot, const struct addr *addr,
                       uint32_t interval_ms);
/* It is not probed any more, and waits no more. A free slot is ignored. */
void probe_budget_leave(struct probe_budget *budget, uint32_t slot);
/* It does not wait any more. */
void probe_budget_withdraw(struct probe_budget *budget, uint32_t slot);
/* What its interval comes to from now on; 0 = it rests, and counts in no demand. */
void probe_budget_want(struct probe_budget *budget, uint32_t slot, uint32_t interval_ms);
bool probe_budget_waits(const struct probe_budget *budget, uint32_t slot);

/* The loop comes at now_ns to what it could have started at next_ns, or earlier than that. Before
 * each start. */
void probe_budget_come(struct probe_budget *budget, uint64_t next_ns, uint64_t now_ns);
/* Whether the node's budget lets anything start. */
bool probe_budget_has(const struct probe_budget *budget, uint64_t now_ns);
/* It was due at due_ns, and starts now (true), or waits for its turn. Only if the node's budget
 * has room. */
bool probe_budget_start(struct probe_budget *budget, uint32_t slot, uint64_t due_ns,
                        uint64_t now_ns);
/* When the first that waits for its address has its turn; TIMER_NEVER = nobody waits. */
uint64_t probe_budget_turn_ns(const struct probe_budget *budget);
/* The one whose turn has come: it starts now. Only if the node's budget has room and its turn is
 * not after now_ns. ret_due_ns: when it was due. */
uint32_t probe_budget_take_turn(struct probe_budget *budget, uint64_t now_ns, uint64_t *ret_due_ns);
/* When something may start that could at `wanted_ns`: later if the node's budget is spent. */
uint64_t probe_budget_next_ns(const struct probe_budget *budget, uint64_t wanted_ns);

/* Bring n_used, is_pressed and the top up to date, once a second. oldest_due_ns: of what waits for
 * the node's budget, or later. Returns whether it was time. */
bool probe_budget_look(struct probe_budget *budget, uint64_t oldest_due_ns, uint64_t now_ns);

#endif
