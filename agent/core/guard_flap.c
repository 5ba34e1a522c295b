#include "agent/core/guard_flap.h"

#include "common/base/plant.h"
#include "common/base/units.h"
#include "common/model/guard.h"

#define MEMORY_NS (FLAP_MEMORY_MS * NS_PER_MS)

static bool is_remembered(const struct flap_memory *memory, uint64_t now_ns)
{
    return memory->ejected_ns != 0 && now_ns < memory->ejected_ns + MEMORY_NS;
}

void flap_note_ejection(struct flap_memory *memory, uint64_t now_ns)
{
    if (!is_remembered(memory, now_ns)) {
        memory->n_flaps = 0;
    } else if (memory->n_flaps < UINT8_MAX) {
        memory->n_flaps++;
    }
    memory->ejected_ns = now_ns == 0 ? 1 : now_ns;
}

bool flap_is_flapping(const struct flap_memory *memory, uint64_t now_ns)
{
    return memory->n_flaps > 0 && is_remembered(memory, now_ns);
}

uint64_t flap_hold_ns(const struct flap_memory *memory, uint32_t hold_ms, uint64_t now_ns)
{
    uint64_t ms = hold_ms;

    if (!flap_is_flapping(memory, now_ns) || plant_is("damping-off")) {
        return 0;
    }
    for (uint8_t i = 1;
         i < memory->n_flaps && ms < GUARD_FLAP_HOLD_MS_MAX && !plant_is("damping-never-doubles");
         i++) {
        ms *= 2;
    }
    return (ms < GUARD_FLAP_HOLD_MS_MAX ? ms : GUARD_FLAP_HOLD_MS_MAX) * NS_PER_MS;
}

uint64_t flap_return_ns(const struct flap_memory *memory, uint32_t hold_ms, uint64_t since_ns,
                        uint64_t now_ns)
{
    uint64_t held_ns = since_ns + flap_hold_ns(memory, hold_ms, now_ns);
    uint64_t forgotten_ns = memory->ejected_ns + MEMORY_NS;

    if (held_ns == since_ns) {
        return since_ns;
    }
    if (forgotten_ns < held_ns) {
        held_ns = forgotten_ns;
    }
    return held_ns > since_ns ? held_ns : since_ns;
}
