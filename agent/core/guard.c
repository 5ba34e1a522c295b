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

void velocity_note(struct velocity *velocity, uint64_t now_ns)
{
    uint8_t n = velocity->n_batches;

    assert(n == 0 || velocity->batches[n - 1].at_ns <= now_ns);
    if (n > 0 && velocity->batches[n - 1].at_ns == now_ns) {
        velocity->batches[n - 1].n++;
        return;
    }
    if (n == VELOCITY_BATCHES) {
        velocity->batches[1].n += velocity->batches[0].n;
        memmove(&velocity->batches[0], &velocity->batches[1],
                (VELOCITY_BATCHES - 1) * sizeof velocity->batches[0]);
        n--;
    }
    velocity->batches[n].at_ns = now_ns;
    velocity->batches[n].n = 1;
    velocity->n_batches = (uint8_t)(n + 1);
}

uint32_t velocity_used(struct velocity *velocity, uint64_t now_ns, uint64_t window_ns)
{
    uint8_t n_old = 0;
    uint32_t n = 0;

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

    if (x->n_fail != y->n_fail && !plant_is("guard-order")) {
        return x->n_fail > y->n_fail ? -1 : 1;
    }
    return (x->backend_id > y->backend_id) - (x->backend_id < y->backend_id);
}

void guard_sort(struct guard_candidate candidates[], size_t n)
{
    if (n > 1) {
        qsort(candidates, n, sizeof *candidates, compare);
    }
}
