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
    free(timers->at_ns);
    free(timers->ids);
    free(timers->place);
    *timers = (struct timers){0};
}

int timers_reserve(struct timers *timers, uint32_t n_ids)
{
    if (n_ids <= timers->n_ids) {
        return 0;
    }
    uint64_t *at_ns = realloc(timers->at_ns, n_ids * sizeof *at_ns);
    if (at_ns == NULL) {
        return ERR_NOMEM;
    }
    timers->at_ns = at_ns;
    uint32_t *ids = realloc(timers->ids, n_ids * sizeof *ids);
    if (ids == NULL) {
        return ERR_NOMEM;
    }
    timers->ids = ids;
    uint32_t *place = realloc(timers->place, n_ids * sizeof *place);
    if (place == NULL) {
        return ERR_NOMEM;
    }
    memset(place + timers->n_ids, 0, (n_ids - timers->n_ids) * sizeof *place);
    timers->place = place;
    timers->n_ids = n_ids;
    return 0;
}

/* Of a node of the heap. Four lie side by side, so a heap of 100,000 is half as deep as one of two,
 * and a way through it meets half as many lines of memory. */
#define CHILDREN 4

struct timer_entry {
    uint64_t at_ns;
    uint32_t id;
};

static struct timer_entry entry_at(const struct timers *timers, uint32_t index)
{
    return (struct timer_entry){.at_ns = timers->at_ns[index], .id = timers->ids[index]};
}

static bool comes_before(struct timer_entry a, struct timer_entry b)
{
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.id < b.id;
}

static void put(struct timers *timers, uint32_t index, struct timer_entry entry)
{
    timers->at_ns[index] = entry.at_ns;
    timers->ids[index] = entry.id;
    timers->place[entry.id] = index + 1;
}

static void sift_up(struct timers *timers, uint32_t index)
{
    struct timer_entry entry = entry_at(timers, index);

    while (index > 0 && comes_before(entry, entry_at(timers, (index - 1) / CHILDREN))) {
        put(timers, index, entry_at(timers, (index - 1) / CHILDREN));
        index = (index - 1) / CHILDREN;
    }
    put(timers, index, entry);
}

/* The earliest of the children from `first` on; n_set above it. */
static uint32_t earliest_child(const struct timers *timers, uint32_t first)
{
    uint32_t left = timers->n_set - first;
    uint32_t end = first + (left < CHILDREN ? left : CHILDREN);
    uint32_t earliest = first;

    for (uint32_t child = first + 1; child < end; child++) {
        if (comes_before(entry_at(timers, child), entry_at(timers, earliest))) {
            earliest = child;
        }
    }
    return earliest;
}

static void sift_down(struct timers *timers, uint32_t index)
{
    struct timer_entry entry = entry_at(timers, index);

    while (CHILDREN * index + 1 < timers->n_set) {
        uint32_t child = earliest_child(timers, CHILDREN * index + 1);

        if (!comes_before(entry_at(timers, child), entry)) {
            break;
        }
        put(timers, index, entry_at(timers, child));
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
    timers->at_ns[index] = at_ns;
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
    struct timer_entry last = entry_at(timers, timers->n_set);
    put(timers, index, last);
    sift_up(timers, index);
    sift_down(timers, timers->place[last.id] - 1);
}

uint64_t timers_get(const struct timers *timers, uint32_t id)
{
    assert(id < timers->n_ids);

    return timers->place[id] == 0 ? TIMER_NEVER : timers->at_ns[timers->place[id] - 1];
}

uint64_t timers_next(const struct timers *timers)
{
    return timers->n_set == 0 ? TIMER_NEVER : timers->at_ns[0];
}

bool timers_pop(struct timers *timers, uint64_t now_ns, uint32_t *ret_id)
{
    if (timers->n_set == 0 || timers->at_ns[0] > now_ns) {
        return false;
    }
    *ret_id = timers->ids[0];
    timers_clear(timers, *ret_id);
    return true;
}
