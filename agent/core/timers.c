#include "agent/core/timers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

void timers_init(struct timers *timers)
{
    *timers = (struct timers){0};
}

void timers_close(struct timers *timers)
{
    free(timers->heap);
    free(timers->place);
    *timers = (struct timers){0};
}

int timers_reserve(struct timers *timers, uint32_t n_ids)
{
    if (n_ids <= timers->n_ids) {
        return 0;
    }
    struct timer_entry *heap = realloc(timers->heap, n_ids * sizeof *heap);
    if (heap == NULL) {
        return ERR_NOMEM;
    }
    timers->heap = heap;
    uint32_t *place = realloc(timers->place, n_ids * sizeof *place);
    if (place == NULL) {
        return ERR_NOMEM;
    }
    memset(place + timers->n_ids, 0, (n_ids - timers->n_ids) * sizeof *place);
    timers->place = place;
    timers->n_ids = n_ids;
    return 0;
}

static bool comes_before(const struct timer_entry *a, const struct timer_entry *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->id < b->id;
}

static void put(struct timers *timers, uint32_t index, struct timer_entry entry)
{
    timers->heap[index] = entry;
    timers->place[entry.id] = index + 1;
}

static void sift_up(struct timers *timers, uint32_t index)
{
    struct timer_entry entry = timers->heap[index];

    while (index > 0 && comes_before(&entry, &timers->heap[(index - 1) / 2])) {
        put(timers, index, timers->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    put(timers, index, entry);
}

static void sift_down(struct timers *timers, uint32_t index)
{
    struct timer_entry entry = timers->heap[index];

    for (;;) {
        uint32_t child = 2 * index + 1;

        if (child >= timers->n_set) {
            break;
        }
        if (child + 1 < timers->n_set &&
            comes_before(&timers->heap[child + 1], &timers->heap[child])) {
            child++;
        }
        if (!comes_before(&timers->heap[child], &entry)) {
            break;
        }
        put(timers, index, timers->heap[child]);
        index = child;
    }
    put(timers, index, entry);
}

void timers_set(struct timers *timers, uint32_t id, uint64_t at_ns)
{
    assert(id < timers->n_ids);

    if (at_ns == TIMER_NEVER) {
        timers_clear(timers, id);
        return;
    }
    if (timers->place[id] == 0) {
        put(timers, timers->n_set++, (struct timer_entry){.at_ns = at_ns, .id = id});
        sift_up(timers, timers->n_set - 1);
        return;
    }
    uint32_t index = timers->place[id] - 1;
    timers->heap[index].at_ns = at_ns;
    sift_up(timers, index);
    sift_down(timers, timers->place[id] - 1);
}

void timers_clear(struct timers *timers, uint32_t id)
{
    assert(id < timers->n_ids);

    if (timers->place[id] == 0) {
        return;
    }
    uint32_t index = timers->place[id] - 1;
    timers->place[id] = 0;
    timers->n_set--;
    if (index == timers->n_set) {
        return;
    }
    struct timer_entry last = timers->heap[timers->n_set];
    put(timers, index, last);
    sift_up(timers, index);
    sift_down(timers, timers->place[last.id] - 1);
}

uint64_t timers_get(const struct timers *timers, uint32_t id)
{
    assert(id < timers->n_ids);

    return timers->place[id] == 0 ? TIMER_NEVER : timers->heap[timers->place[id] - 1].at_ns;
}

uint64_t timers_next(const struct timers *timers)
{
    return timers->n_set == 0 ? TIMER_NEVER : timers->heap[0].at_ns;
}

bool timers_pop(struct timers *timers, uint64_t now_ns, uint32_t *ret_id)
{
    if (timers->n_set == 0 || timers->heap[0].at_ns > now_ns) {
        return false;
    }
    *ret_id = timers->heap[0].id;
    timers_clear(timers, *ret_id);
    return true;
}
