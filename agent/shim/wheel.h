/* Timers of one worker's flows: a wheel of slots of 100 ms. Adding, moving and removing cost the
 * same whatever the number of flows; a timer comes at its time or up to one slot later. A deadline
 * beyond one turn is passed over once each turn. Pure: the time comes in. */
#ifndef JURY_SHIM_WHEEL_H
#define JURY_SHIM_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEEL_SLOT_MS 100
#define WHEEL_SLOTS 1024

/* Embedded in what waits; zeroed at the start. */
struct wheel_timer {
    struct wheel_timer *next;
    struct wheel_timer **before; /* NULL: not in the wheel */
    uint64_t due_ms;
};

struct wheel {
    struct wheel_timer *slots[WHEEL_SLOTS];
    uint64_t next_slot; /* counted from time 0; all before were fired */
};

void wheel_init(struct wheel *wheel, uint64_t now_ms);
/* Moves a timer that is in the wheel already. A time that has passed comes at the next slot. */
void wheel_set(struct wheel *wheel, struct wheel_timer *timer, uint64_t due_ms);
void wheel_remove(struct wheel_timer *timer);

/* The next timer that is due, taken out of the wheel, or NULL. Between two calls the caller may
 * remove timers, and set them to times after now_ms. */
struct wheel_timer *wheel_pop(struct wheel *wheel, uint64_t now_ms);

#endif
