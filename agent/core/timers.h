/* One deadline for each of a fixed range of ids: setting, clearing and finding the earliest cost
 * O(log n), and there is never more than one entry an id, so the memory is bounded by the range.
 * Equal deadlines come out in the order of their ids, so that simulations repeat. */
#ifndef JURY_CORE_TIMERS_H
#define JURY_CORE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#define TIMER_NEVER UINT64_MAX

struct timers {
    uint64_t *at_ns; /* the heap: deadlines, */
    uint32_t *ids;   /* and whose they are */
    uint32_t *place; /* id -> index in heap + 1; 0 = not set */
    uint32_t n_set;
    uint32_t n_ids;
};

void timers_init(struct timers *timers);
void timers_close(struct timers *timers);
/* Make ids 0..n_ids-1 valid; never shrinks. Errors: ERR_NOMEM, nothing changed. */
int timers_reserve(struct timers *timers, uint32_t n_ids);
/* Set or move. at_ns TIMER_NEVER clears. */
void timers_set(struct timers *timers, uint32_t id, uint64_t at_ns);
void timers_clear(struct timers *timers, uint32_t id);
/* The deadline of one id; TIMER_NEVER when it has none. */
uint64_t timers_get(const struct timers *timers, uint32_t id);
/* The earliest deadline; TIMER_NEVER when none is set. */
uint64_t timers_next(const struct timers *timers);
/* Take the earliest id whose deadline is not after now_ns. False: none is due. */
bool timers_pop(struct timers *timers, uint64_t now_ns, uint32_t *ret_id);

#endif
