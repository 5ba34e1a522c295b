/* A probe loop with a fake engine and a virtual clock. Slot n is 10.1.n/256.n%256, a tcp target
 * with T = 1 s. Failed expectations fail the test. */
#ifndef JURY_TESTS_PROBE_WORLD_H
#define JURY_TESTS_PROBE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/probe/probe_loop.h"
#include "tests/lib/fake_probe_engine.h"

#define PROBE_WORLD_SLOTS 2048

struct probe_world {
    struct probe_loop loop;
    struct fake_probe_engine *engine;
    struct ring *results;
    struct probe_plan_editor editor;
    uint64_t now_ns;
};

void probe_world_init(struct probe_world *world, uint32_t in_flight_max, uint32_t ring_results);
void probe_world_close(struct probe_world *world);

struct probe_target probe_world_target(uint32_t slot, uint64_t birth, uint32_t interval_ms);
/* In the editor; probe_world_publish makes the loop take it. */
void probe_world_set(struct probe_world *world, uint32_t slot, uint64_t birth,
                     uint32_t interval_ms);
void probe_world_publish(struct probe_world *world);

void probe_world_turn(struct probe_world *world);
/* Turn at each moment the loop asks for, until end_ns; results go to on_result if there is one. */
void probe_world_run_until(struct probe_world *world, uint64_t end_ns,
                           void (*on_result)(void *user, const struct probe_result *result),
                           void *user);
bool probe_world_pop(struct probe_world *world, struct probe_result *ret_result);
uint64_t probe_world_count(const struct probe_world *world, enum probe_count count);

#endif
