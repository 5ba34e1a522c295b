#include "agent/shim/wheel.h"

#include <string.h>

void wheel_init(struct wheel *wheel, uint64_t now_ms)
{
    memset(wheel, 0, sizeof *wheel);
    wheel->next_slot = now_ms / WHEEL_SLOT_MS;
}

void wheel_remove(struct wheel_timer *timer)
{
    if (timer->before == NULL) {
        return;
    }
    *timer->before = timer->next;
    if (timer->next != NULL) {
        timer->next->before = timer->before;
    }
    timer->before = NULL;
    timer->next = NULL;
}

static void insert(struct wheel *wheel, struct wheel_timer *timer, uint64_t slot)
{
    struct wheel_timer **head = &wheel->slots[slot % WHEEL_SLOTS];

    timer->next = *head;
    timer->before = head;
    if (timer->next != NULL) {
        timer->next->before = &timer->next;
    }
    *head = timer;
}

void wheel_set(struct wheel *wheel, struct wheel_timer *timer, uint64_t due_ms)
{
    /* Rounded up, so that no timer comes early. */
    uint64_t slot = (due_ms + WHEEL_SLOT_MS - 1) / WHEEL_SLOT_MS;

    wheel_remove(timer);
    timer->due_ms = due_ms;
    insert(wheel, timer, slot < wheel->next_slot ? wheel->next_slot : slot);
}

struct wheel_timer *wheel_pop(struct wheel *wheel, uint64_t now_ms)
{
    while (wheel->next_slot <= now_ms / WHEEL_SLOT_MS) {
        struct wheel_timer *timer = wheel->slots[wheel->next_slot % WHEEL_SLOTS];

        while (timer != NULL && timer->due_ms > wheel->next_slot * WHEEL_SLOT_MS) {
            timer = timer->next;
        }
        if (timer != NULL) {
            wheel_remove(timer);
            return timer;
        }
        wheel->next_slot++;
    }
    return NULL;
}
