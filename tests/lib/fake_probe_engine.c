#include "tests/lib/fake_probe_engine.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/units.h"

static struct fake_probe_engine *of(struct probe_engine *base)
{
    return (struct fake_probe_engine *)base;
}

static void fake_free(struct probe_engine *base)
{
    free(of(base)->probes);
    free(of(base)->reasons);
    free(base);
}

static void fake_submit(struct probe_engine *base, const struct probe_target *target)
{
    struct fake_probe_engine *engine = of(base);
    uint32_t slot = target->id.slot;
    enum probe_reason reason = REASON_OK;
    uint64_t took_ns = NS_PER_MS;

    assert(slot < engine->n_slots && engine->probes[slot].target == NULL);
    if (engine->plan != NULL) {
        took_ns = engine->plan(engine->user, target, &reason);
    }
    engine->probes[slot] = (struct fake_probe){
        .target = target,
        .start_ns = engine->now_ns,
        .end_ns = took_ns == UINT64_MAX ? UINT64_MAX : engine->now_ns + took_ns,
    };
    engine->reasons[slot] = (uint8_t)reason;
    engine->n_submitted++;
    engine->n_in_flight++;
    if (engine->n_in_flight > engine->in_flight_max) {
        engine->in_flight_max = engine->n_in_flight;
    }
    assert(engine->n_in_flight <= base->capacity);
}

static void fake_abandon(struct probe_engine *base, uint32_t slot)
{
    struct fake_probe_engine *engine = of(base);

    assert(slot < engine->n_slots);
    if (engine->probes[slot].target != NULL) {
        engine->probes[slot].target = NULL;
        engine->n_abandoned++;
        engine->n_in_flight--;
    }
}

static uint64_t fake_next_ns(const struct probe_engine *base)
{
    const struct fake_probe_engine *engine = (const struct fake_probe_engine *)base;
    uint64_t next_ns = UINT64_MAX;

    for (uint32_t i = 0; engine->n_in_flight > 0 && i < engine->n_slots; i++) {
        if (engine->probes[i].target != NULL && engine->probes[i].end_ns < next_ns) {
            next_ns = engine->probes[i].end_ns;
        }
    }
    return next_ns;
}

static void fake_run(struct probe_engine *base, const struct probe_sink *sink)
{
    struct fake_probe_engine *engine = of(base);

    for (uint32_t i = 0; engine->n_in_flight > 0 && i < engine->n_slots; i++) {
        struct fake_probe *probe = &engine->probes[i];

        if (probe->target == NULL || probe->end_ns > engine->now_ns) {
            continue;
        }
        struct probe_result result = {
            .id = probe->target->id,
            .probe_class = (uint8_t)probe_reason_class(engine->reasons[i]),
            .reason = engine->reasons[i],
            .start_ns = probe->start_ns,
            .end_ns = probe->end_ns,
        };
        probe->target = NULL;
        engine->n_in_flight--;
        sink->result(sink->user, &result);
    }
}

static const struct probe_engine_ops ops = {
    .free = fake_free,
    .submit = fake_submit,
    .abandon = fake_abandon,
    .next_ns = fake_next_ns,
    .run = fake_run,
};

struct fake_probe_engine *fake_probe_engine_new(uint32_t n_slots, uint32_t capacity,
                                                uint32_t capabilities)
{
    struct fake_probe_engine *engine = calloc(1, sizeof *engine);

    assert(engine != NULL);
    engine->base = (struct probe_engine){
        .ops = &ops,
        .name = "fake",
        .counted_as = PROBE_N_BY_CONNECT,
        .capabilities = capabilities,
        .capacity = capacity,
        .fd = -1,
    };
    engine->probes = calloc(n_slots, sizeof *engine->probes);
    engine->reasons = calloc(n_slots, sizeof *engine->reasons);
    assert(engine->probes != NULL && engine->reasons != NULL);
    engine->n_slots = n_slots;
    return engine;
}
