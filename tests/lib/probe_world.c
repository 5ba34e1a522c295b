#include "tests/lib/probe_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/kept_check.h"

void probe_world_init(struct probe_world *world, uint32_t in_flight_max, uint32_t ring_results)
{
    struct probe_loop_options options = {.node_id = 1, .in_flight_max = in_flight_max};

    memset(world, 0, sizeof *world);
    world->now_ns = 1000 * NS_PER_SECOND;
    world->results = ring_new(sizeof(struct probe_result), ring_results);
    probe_loop_init(&world->loop, &options, world->results);
    world->engine = fake_probe_engine_new(PROBE_WORLD_SLOTS, in_flight_max,
                                          PROBE_CAN_TCP_FULL | PROBE_CAN_HTTP);
    world->engine->now_ns = world->now_ns;
    probe_loop_add_engine(&world->loop, &world->engine->base);
    probe_plan_editor_init(&world->editor);
}

void probe_world_close(struct probe_world *world)
{
    probe_loop_close(&world->loop);
    probe_plan_editor_close(&world->editor);
    ring_free(world->results);
}

struct probe_target probe_world_target(uint32_t slot, uint64_t birth, uint32_t interval_ms)
{
    const struct health_check check = {.type = CHECK_TYPE_TCP,
                                       .pacing = PACING_END_TO_START,
                                       .timeout_ms = 1000,
                                       .interval_ms = interval_ms,
                                       .tcp = {.handshake = TCP_FULL, .close = TCP_CLOSE_RST}};
    struct probe_target target = {
        .id = {.slot = slot, .birth = birth},
        .definition = {.to.port = 80, .check = kept_check(&check)},
    };
    char text[ADDR_TEXT_BYTES];

    snprintf(text, sizeof text, "10.1.%u.%u", (slot >> 8) & 0xff, slot & 0xff);
    assert_int_equal(addr_parse(text, &target.definition.to.addr, NULL), 0);
    return target;
}

void probe_world_set(struct probe_world *world, uint32_t slot, uint64_t birth, uint32_t interval_ms)
{
    struct probe_target target = probe_world_target(slot, birth, interval_ms);

    assert_int_equal(probe_plan_editor_set(&world->editor, &target, true), 0);
}

void probe_world_publish(struct probe_world *world)
{
    struct probe_plan *plan = probe_plan_editor_publish(&world->editor);

    assert_non_null(plan);
    assert_int_equal(probe_loop_take_plan(&world->loop, plan, world->now_ns), 0);
}

uint64_t probe_world_count(const struct probe_world *world, enum probe_count count)
{
    struct probe_counts counts;

    probe_counters_read(&world->loop.counters, &counts);
    return counts.values[count];
}

void probe_world_turn(struct probe_world *world)
{
    world->engine->now_ns = world->now_ns;
    probe_loop_turn(&world->loop, world->now_ns);
}

void probe_world_run_until(struct probe_world *world, uint64_t end_ns,
                           void (*on_result)(void *user, const struct probe_result *result),
                           void *user)
{
    struct probe_result result;

    for (;;) {
        probe_world_turn(world);
        while (on_result != NULL && ring_pop(world->results, &result)) {
            on_result(user, &result);
        }
        uint64_t next_ns = probe_loop_next_ns(&world->loop, world->now_ns);
        if (next_ns > end_ns) {
            break;
        }
        world->now_ns = next_ns > world->now_ns ? next_ns : world->now_ns;
    }
    world->now_ns = end_ns;
}

bool probe_world_pop(struct probe_world *world, struct probe_result *ret_result)
{
    return ring_pop(world->results, ret_result);
}
