/* A probe engine with a virtual clock whose outcomes a test decides: for the rules of the probe
 * loop that hold whatever an engine does. */
#ifndef JURY_TESTS_FAKE_PROBE_ENGINE_H
#define JURY_TESTS_FAKE_PROBE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/probe/probe_engine.h"

struct fake_probe {
    const struct probe_target *target; /* NULL = nothing under way */
    uint64_t start_ns;
    uint64_t end_ns; /* UINT64_MAX = never by itself */
};

struct fake_probe_engine {
    struct probe_engine base; /* first */
    uint64_t now_ns;          /* set by the test */
    /* How a probe will end, decided at its submit. Returns how long it takes; UINT64_MAX = its
     * result never comes. NULL = passes after 1 ms. */
    uint64_t (*plan)(void *user, const struct probe_target *target, enum probe_reason *ret_reason);
    void *user;
    struct fake_probe *probes; /* by slot */
    uint8_t *reasons;          /* by slot */
    uint32_t n_slots;
    uint32_t n_submitted;
    uint32_t n_abandoned; /* of probes under way */
    uint32_t n_in_flight;
    uint32_t in_flight_max; /* ever */
};

/* n_slots: slots 0..n_slots-1 may be submitted. Freed by ops->free. */
struct fake_probe_engine *fake_probe_engine_new(uint32_t n_slots, uint32_t capacity,
                                                uint32_t capabilities);

#endif
