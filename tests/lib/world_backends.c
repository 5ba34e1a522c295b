/* Backends as nodes see them: the truth of each, and probes that are answered by it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/world_queue.h"

/* --- what answers --- */

struct world_backend *world_backend(struct world *world, const struct endpoint *at)
{
    for (uint32_t i = 0; i < world->n_backends; i++) {
        if (endpoint_compare(&world->backends[i].at, at) == 0) {
            return &world->backends[i];
        }
    }
    assert(world->n_backends < WORLD_BACKENDS);
    struct world_backend *backend = &world->backends[world->n_backends++];
    *backend = (struct world_backend){.at = *at};
    for (uint32_t id = 1; id <= WORLD_NODES; id++) {
        backend->truth[id] = (struct truth){.reason = REASON_OK, .response_ns = WORLD_MS};
    }
    return backend;
}

void world_set_truth(struct world *world, const struct endpoint *at, const struct truth *truth)
{
    struct world_backend *backend = world_backend(world, at);

    for (uint32_t id = 1; id <= WORLD_NODES; id++) {
        backend->truth[id] = *truth;
    }
    backend->script[0] = '\0';
}

static struct truth next_answer(struct world_backend *backend, uint64_t node_id)
{
    uint32_t at = backend->script_at[node_id];
    uint32_t n = (uint32_t)strcspn(backend->script, "*");

    if (backend->script[n] == '*' && at == n) {
        at = backend->script_at[node_id] = 0;
    }
    if (at >= n) {
        return backend->truth[node_id];
    }
    backend->script_at[node_id]++;
    return backend->script[at] == 'S' ? backend->truth[node_id] : backend->script_failure;
}

/* --- what asks --- */

void world_follow_probes(struct world *world, struct world_node *node)
{
    for (uint32_t i = 0; i < node->actions.n_probes; i++) {
        const struct probe_change *change = &node->actions.probes[i];

        if (change->target == NULL) {
            probe_schedule_remove(&node->schedule, change->id);
            continue;
        }
        struct probe_target target = {.id = change->id, .source = change->source};
        catalog_target_definition(change->target, &target.definition);
        if (probe_schedule_add(&node->schedule, &target, change->is_at_start,
                               world_local_ns(world, node)) != 0) {
            abort();
        }
    }
    for (uint32_t i = 0; i < node->actions.n_orders; i++) {
        probe_schedule_order(&node->schedule, &node->actions.orders[i],
                             world_local_ns(world, node));
    }
    if (node->actions.n_probes > 0 || node->actions.n_orders > 0) {
        world_plan_wake(world, node, HAPPENS_PROBE_DUE, probe_schedule_next_ns(&node->schedule),
                        &node->probe_token);
    }
}

static bool is_timeout(uint8_t reason)
{
    return reason == REASON_CONNECT_TIMEOUT || reason == REASON_RECV_RESPONSE_TIMEOUT ||
           reason == REASON_NO_ECHO_REPLY || reason == REASON_SILENT || reason == REASON_ECHO ||
           reason == REASON_ICMP_LIMITED;
}

/* T is what a timeout takes, and what nothing exceeds. */
static struct truth within(struct truth answer, uint32_t timeout_ms)
{
    uint64_t timeout_ns = timeout_ms * WORLD_MS;

    if (!is_timeout(answer.reason) && answer.response_ns >= timeout_ns) {
        answer.reason = REASON_RECV_RESPONSE_TIMEOUT;
    }
    if (is_timeout(answer.reason)) {
        answer.response_ns = timeout_ns;
    }
    return answer;
}

struct truth world_answer_now(struct world *world, const struct world_node *node,
                              const struct target_definition *definition)
{
    return within(world_backend(world, &definition->to)->truth[node->id],
                  definition->check->timeout_ms);
}

static void start_probe(struct world *world, struct world_node *node, struct target_id id)
{
    const struct catalog_target *target = catalog_target_at(engine_catalog(node->engine), id.slot);
    uint64_t now_ns = world_local_ns(world, node);

    assert(target != NULL && target->id.birth == id.birth);
    struct truth answer =
        within(next_answer(world_backend(world, &target->to), node->id), target->check->timeout_ms);
    struct happening happening = {
        .kind = HAPPENS_PROBE_END,
        .node_id = node->id,
        .epoch = node->epoch,
        .u.result = {.id = id,
                     .probe_class = (uint8_t)probe_reason_class(answer.reason),
                     .reason = answer.reason,
                     .is_refused = answer.reason == REASON_CONNECT_FAILED,
                     .http_status = answer.http_status,
                     .start_ns = now_ns,
                     .end_ns = now_ns + answer.response_ns},
    };
    node->n_probes++;
    world_plan(world, world_time_ns(world, node, happening.u.result.end_ns), &happening);
    if (world->hooks.probe_started != NULL) {
        world->hooks.probe_started(world->hooks.user, world, node, id, &answer);
    }
}

/* As a probe thread and its agent do, each second. */
static void look_at_budget(struct world *world, struct world_node *node)
{
    struct probe_budget *budget = &node->schedule.budget;

    (void)probe_budget_look(budget, timers_next(&node->schedule.timers),
                            world_local_ns(world, node));
    if (budget->is_pressed != node->is_pressed) {
        struct engine_event event = {
            .kind = ENGINE_PROBE_BUDGET,
            .u.pressure = {.is_on = budget->is_pressed, .delay_ns = budget->delay_ns}};

        node->is_pressed = budget->is_pressed;
        world_step(world, node, &event);
    }
}

void world_start_probes(struct world *world, struct world_node *node)
{
    struct target_id id;

    while (probe_schedule_start(&node->schedule, world_local_ns(world, node), &id)) {
        start_probe(world, node, id);
    }
    if (world->probe_rates.per_node != 0 || world->probe_rates.per_address != 0) {
        look_at_budget(world, node);
    }
    world_plan_wake(world, node, HAPPENS_PROBE_DUE, probe_schedule_next_ns(&node->schedule),
                    &node->probe_token);
}

void world_end_probe(struct world *world, struct world_node *node,
                     const struct probe_result *result)
{
    struct engine_event event = {.kind = ENGINE_PROBE_RESULT, .u.result = result};

    probe_schedule_end(&node->schedule, result->id, result->end_ns);
    world_step(world, node, &event);
    world_plan_wake(world, node, HAPPENS_PROBE_DUE, probe_schedule_next_ns(&node->schedule),
                    &node->probe_token);
}
