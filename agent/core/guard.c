#include "agent/core/guard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/plant.h"

uint32_t guard_velocity_limit(uint32_t n_members, uint8_t percent)
{
    uint32_t limit = (uint32_t)((uint64_t)n_members * percent / 100);

    return limit > 0 ? limit : 1;
}

bool guard_is_correlated(uint32_t n_bad, uint32_t n_members)
{
    return n_bad >= 3 && UINT64_C(100) * n_bad > UINT64_C(30) * n_members;
}

/* The two oldest become one, of the later time. */
static void make_room(struct velocity *velocity)
{
    if (velocity->n_batches < VELOCITY_BATCHES) {
        return;
    }
    velocity->batches[1].n += velocity->batches[0].n;
    memmove(&velocity->batches[0], &velocity->batches[1],
            (VELOCITY_BATCHES - 1) * sizeof velocity->batches[0]);
    velocity->n_batches--;
}

static void insert(struct velocity *velocity, uint8_t at, uint64_t at_ns)
{
    memmove(&velocity->batches[at + 1], &velocity->batches[at],
            (size_t)(velocity->n_batches - at) * sizeof velocity->batches[0]);
    velocity->batches[at].at_ns = at_ns;
    velocity->batches[at].n = 1;
    velocity->n_batches++;
}

void velocity_note(struct velocity *velocity, uint64_t now_ns)
{
    uint8_t n = velocity->n_batches;

    assert(n == 0 || velocity->batches[n - 1].at_ns <= now_ns);
    if (n > 0 && velocity->batches[n - 1].at_ns == now_ns) {
        velocity->batches[n - 1].n++;
        return;
    }
    make_room(velocity);
    insert(velocity, velocity->n_batches, now_ns);
}

void velocity_note_past(struct velocity *velocity, uint64_t at_ns)
{
    uint8_t at = 0;

    make_room(velocity);
    while (at < velocity->n_batches && velocity->batches[at].at_ns < at_ns) {
        at++;
    }
    /* Where the oldest were joined, one older than that is counted with them. */
    if (at < velocity->n_batches &&
        (velocity->batches[at].at_ns == at_ns || (at == 0 && velocity->batches[0].n > 1))) {
        velocity->batches[at].n++;
        return;
    }
    insert(velocity, at, at_ns);
}

uint32_t velocity_used(struct velocity *velocity, uint64_t now_ns, uint64_t window_ns)
{
    uint8_t n_old = 0;
    uint32_t n = 0;

    if (plant_is("velocity-half-window")) {
        window_ns /= 2;
    }
    while (n_old < velocity->n_batches && velocity->batches[n_old].at_ns + window_ns <= now_ns) {
        n_old++;
    }
    velocity->n_batches = (uint8_t)(velocity->n_batches - n_old);
    memmove(&velocity->batches[0], &velocity->batches[n_old],
            velocity->n_batches * sizeof velocity->batches[0]);
    for (uint8_t i = 0; i < velocity->n_batches; i++) {
        n += velocity->batches[i].n;
    }
    return n;
}

uint64_t velocity_next_ns(const struct velocity *velocity, uint64_t window_ns)
{
    return velocity->n_batches == 0 ? 0 : velocity->batches[0].at_ns + window_ns;
}

static int compare(const void *a, const void *b)
{
    const struct guard_candidate *x = a;
    const struct guard_candidate *y = b;

    if (x->n_votes != y->n_votes && !plant_is("guard-order")) {
        return x->n_votes > y->n_votes ? -1 : 1;
    }
    return (x->backend_id > y->backend_id) - (x->backend_id < y->backend_id);
}

void guard_sort(struct guard_candidate candidates[], size_t n)
{
    if (n > 1) {
        qsort(candidates, n, sizeof *candidates, compare);
    }
}
