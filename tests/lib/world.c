#include "tests/lib/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/catalog_builder.h"
#include "tests/lib/world_queue.h"

#define CLOCK_OFFSET_MAX_NS (UINT64_C(1000000) * WORLD_SECOND)
#define BOOT_AHEAD_NS (UINT64_C(777) * WORLD_SECOND)
#define MILLION INT64_C(1000000)

void world_plan(struct world *world, uint64_t at_ns, const struct happening *happening)
{
    struct happening *copy = malloc(sizeof *copy);

    if (copy == NULL ||
        heap_push(&world->queue, at_ns, happening->kind, (uint64_t)(uintptr_t)copy) != 0) {
        abort();
    }
    *copy = *happening;
}

static void init_node(struct world *world, uint64_t id)
{
    world->nodes[id].id = id;
    world->nodes[id].clock_offset_ns = WORLD_SECOND + prng_below(&world->prng, CLOCK_OFFSET_MAX_NS);
    world->nodes[id].boot_ahead_ns = BOOT_AHEAD_NS;
    engine_actions_init(&world->nodes[id].actions);
}

void world_init(struct world *world, uint64_t seed, uint32_t n_nodes)
{
    struct command command = {0};

    assert(n_nodes >= 1 && n_nodes <= WORLD_NODES);
    memset(world, 0, sizeof *world);
    prng_init(&world->prng, seed);
    heap_init(&world->queue);
    world->n_nodes = n_nodes;
    for (uint32_t id = 1; id <= n_nodes; id++) {
        init_node(world, id);
    }
    world->state = catalog_state_new();
    if (world->state == NULL) {
        abort();
    }
    build_init(&command, n_nodes < LIMIT_VOTERS ? n_nodes : LIMIT_VOTERS);
    if (world_commit(world, &command, NULL) != 0) {
        abort();
    }
    if (n_nodes > LIMIT_VOTERS) {
        struct command more = {0};

        for (uint32_t id = LIMIT_VOTERS + 1; id <= n_nodes; id++) {
            build_node(&more, id, ROLE_STANDBY);
        }
        if (world_commit(world, &more, NULL) != 0) {
            abort();
        }
    }
}

static void happening_free(struct happening *happening)
{
    if (happening->kind == HAPPENS_MESSAGE || happening->kind == HAPPENS_REPLAY) {
        world_message_unref(happening->u.message);
    }
    free(happening);
}

void world_close(struct world *world)
{
    struct heap_item item;

    while (heap_pop(&world->queue, &item)) {
        happening_free((struct happening *)(uintptr_t)item.value);
    }
    heap_close(&world->queue);
    world_noise_close(world);
    for (uint32_t id = 1; id <= world->n_nodes; id++) {
        struct world_node *node = &world->nodes[id];

        if (node->is_up) {
            world_crash(world, id);
        }
        engine_actions_close(&node->actions);
        catalog_unref(node->kept_catalog);
        free(node->kept_verdicts);
        free(node->kept_deadlines);
    }
    for (uint32_t i = 0; i < WORLD_REVISIONS; i++) {
        catalog_unref(world->history[i]);
    }
    catalog_state_free(world->state);
}

/* --- the store --- */

static void plan_catalog(struct world *world, struct world_node *node, uint64_t delay_ns)
{
    struct happening happening = {.kind = HAPPENS_CATALOG,
                                  .node_id = node->id,
                                  .epoch = node->epoch,
                                  .u.revision = world->revision};

    world_plan(world, world->now_ns + delay_ns, &happening);
}

struct apply_answer world_apply(struct world *world, struct command *command)
{
    struct apply_answer answer = build_apply(world->state, command);

    if (answer.err != 0) {
        return answer;
    }
    struct catalog *catalog = catalog_state_catalog(world->state);
    world->revision = catalog_revision(catalog);
    assert(world->revision < WORLD_REVISIONS);
    catalog_unref(world->history[world->revision]); /* a command that changed nothing */
    world->history[world->revision] = catalog;
    for (uint32_t id = 1; id <= world->n_nodes; id++) {
        struct world_node *node = &world->nodes[id];

        if (node->is_up && !node->store_is_frozen) {
            plan_catalog(world, node, prng_below(&world->prng, world->store_delay_max_ns + 1));
        }
    }
    return answer;
}

int world_commit(struct world *world, struct command *command, struct errmsg *err)
{
    struct apply_answer answer = world_apply(world, command);

    if (answer.err != 0 && err != NULL) {
        *err = answer.message;
    }
    return answer.err;
}

uint64_t world_add_node(struct world *world, enum raft_role role)
{
    struct command command = {0};
    uint64_t id = world->n_nodes + 1;

    if (id > WORLD_NODES) {
        return 0;
    }
    build_node(&command, id, role);
    if (world_commit(world, &command, NULL) != 0) {
        return 0;
    }
    init_node(world, id);
    world->n_nodes++;
    return id;
}

bool world_remove_node(struct world *world, uint64_t node_id)
{
    struct command command = {0};

    build_delete_node(&command, node_id);
    if (world_commit(world, &command, NULL) != 0) {
        return false;
    }
    if (world->nodes[node_id].is_up) {
        world_stop(world, node_id);
    }
    world->nodes[node_id].is_gone = true;
    return true;
}

void world_freeze_store(struct world *world, uint64_t node_id, bool frozen)
{
    struct world_node *node = &world->nodes[node_id];

    node->store_is_frozen = frozen;
    if (!frozen && node->is_up) {
        plan_catalog(world, node, 0);
    }
}

static void give_catalog(struct world *world, struct world_node *node, struct catalog *catalog)
{
    struct engine_event event = {.kind = ENGINE_CATALOG, .u.catalog = catalog};

    world_step(world, node, &event);
}

/* --- nodes --- */

static uint64_t local_at(const struct world_node *node, uint64_t at_ns)
{
    int64_t gained_ns = (int64_t)(at_ns / MILLION) * node->clock_ppm +
                        (int64_t)(at_ns % MILLION) * node->clock_ppm / MILLION;

    return at_ns + node->clock_offset_ns + (uint64_t)gained_ns;
}

uint64_t world_local_ns(const struct world *world, const struct world_node *node)
{
    return local_at(node, world->now_ns);
}

uint64_t world_boot_ns(const struct world *world, const struct world_node *node)
{
    return world_local_ns(world, node) + node->boot_ahead_ns;
}

uint64_t world_time_ns(const struct world *world, const struct world_node *node, uint64_t local_ns)
{
    uint64_t now_ns = world_local_ns(world, node);
    uint64_t rate = (uint64_t)(MILLION + node->clock_ppm);

    if (local_ns <= now_ns) {
        return world->now_ns; /* what is late is due now */
    }
    uint64_t left_ns = local_ns - now_ns;
    uint64_t ns = left_ns / rate * MILLION + left_ns % rate * MILLION / rate;
    uint64_t at_ns = world->now_ns + (ns > 2 ? ns - 2 : 0); /* two roundings */
    while (local_at(node, at_ns) < local_ns) {
        at_ns++;
    }
    return at_ns;
}

void world_plan_wake(struct world *world, struct world_node *node, enum happening_kind kind,
                     uint64_t local_ns, uint64_t *token)
{
    if (local_ns == TIMER_NEVER) {
        return;
    }
    struct happening happening = {
        .kind = (uint8_t)kind, .node_id = node->id, .epoch = node->epoch, .token = ++*token};

    world_plan(world, world_time_ns(world, node, local_ns), &happening);
}

void world_step(struct world *world, struct world_node *node, struct engine_event *event)
{
    event->now_ns = world_local_ns(world, node);
    event->boot_ns = world_boot_ns(world, node);
    if (world->hooks.before != NULL) {
        world->hooks.before(world->hooks.user, world, node, event);
    }
    if (engine_step(node->engine, event, &node->actions) != 0) {
        abort();
    }
    world->n_steps++;
    if (node->actions.n_purges > 0) {
        node->purge = node->actions.purges[0];
        node->purge_ns = world->now_ns;
    }
    if (world->hooks.after != NULL) {
        world->hooks.after(world->hooks.user, world, node, event);
    }
    world_send_actions(world, node);
    world_follow_probes(world, node);
    world_plan_wake(world, node, HAPPENS_WAKE, node->actions.wake_ns, &node->wake_token);
}

static void give_kept(struct world *world, struct world_node *node, bool with_catalog)
{
    struct last_known_good kept = {
        .age_ms = (world->now_ns - node->kept_ns) / WORLD_MS,
        .verdicts = node->kept_verdicts,
        .n_verdicts = node->n_kept_verdicts,
        .deadlines = node->kept_deadlines,
        .n_deadlines = node->n_kept_deadlines,
    };
    struct engine_event event = {.kind = ENGINE_LAST_KNOWN_GOOD, .u.kept = &kept};

    world_step(world, node, &event);
    if (with_catalog && node->kept_catalog != NULL) {
        give_catalog(world, node, node->kept_catalog);
    }
}

void world_start(struct world *world, uint64_t node_id, unsigned kept, uint64_t store_delay_ns)
{
    struct world_node *node = &world->nodes[node_id];
    struct engine_config config = {.node_id = node_id,
                                   .epoch = ++node->epoch,
                                   .seed = prng_next(&world->prng),
                                   .history_entries = world->history_entries};

    assert(!node->is_up && !node->is_gone);
    node->is_up = true;
    node->stalled_until_ns = 0;
    node->store_revision = 0;
    node->started_ns = world->now_ns;
    node->is_counting = false;
    node->n_flows = 0;
    node->engine = engine_new(&config, world_local_ns(world, node));
    if (node->engine == NULL) {
        abort();
    }
    probe_schedule_init(&node->schedule, node_id);
    probe_budget_set(&node->schedule.budget, world->probe_rates);
    node->is_pressed = false;
    if (kept != WORLD_KEPT_NONE) {
        give_kept(world, node, kept == WORLD_KEPT_ALL);
    }
    if (!node->store_is_frozen) {
        plan_catalog(world, node, store_delay_ns);
    }
}

void world_keep(struct world *world, uint64_t node_id)
{
    struct world_node *node = &world->nodes[node_id];
    size_t n = engine_n_kept_verdicts(node->engine);
    const struct catalog *catalog = engine_catalog(node->engine);
    size_t n_deadlines = catalog == NULL ? 0 : 2 * (size_t)catalog_n_rows(catalog);

    free(node->kept_verdicts);
    free(node->kept_deadlines);
    node->kept_verdicts = calloc(n + 1, sizeof *node->kept_verdicts);
    node->kept_deadlines = calloc(n_deadlines + 1, sizeof *node->kept_deadlines);
    if (node->kept_verdicts == NULL || node->kept_deadlines == NULL) {
        abort();
    }
    node->n_kept_verdicts =
        engine_keep_verdicts(node->engine, world_local_ns(world, node), node->kept_verdicts, n);
    node->n_kept_deadlines = engine_keep_deadlines(node->engine, node->kept_deadlines, n_deadlines);
    catalog_unref(node->kept_catalog);
    node->kept_catalog = catalog == NULL ? NULL : catalog_ref(engine_catalog(node->engine));
    node->kept_ns = world->now_ns;
}

void world_crash(struct world *world, uint64_t node_id)
{
    struct world_node *node = &world->nodes[node_id];

    assert(node->is_up);
    engine_free(node->engine);
    node->engine = NULL;
    probe_schedule_close(&node->schedule);
    node->is_up = false;
}

void world_stop(struct world *world, uint64_t node_id)
{
    world_keep(world, node_id);
    world_crash(world, node_id);
}

void world_stall(struct world *world, uint64_t node_id, uint64_t duration_ns)
{
    struct world_node *node = &world->nodes[node_id];
    struct happening end = {.kind = HAPPENS_STALL_END,
                            .node_id = node_id,
                            .epoch = node->epoch,
                            .u.late_ns = duration_ns};

    if (world->now_ns + duration_ns <= node->stalled_until_ns) {
        return; /* it stands still for longer already */
    }
    node->stalled_until_ns = world->now_ns + duration_ns;
    world_plan(world, node->stalled_until_ns, &end);
}

void world_cut(struct world *world, uint64_t from, uint64_t to, bool cut)
{
    world->links[from][to].is_cut = cut;
}

/* As the shell does: each second, so that the engine knows that it is still counted. */
static void report_flows(struct world *world, struct world_node *node)
{
    struct drain_row drains[WORLD_BACKENDS];
    struct data_plane_row rows[WORLD_BACKENDS];
    size_t n = engine_drain_rows(node->engine, drains, WORLD_BACKENDS);
    struct happening again = {.kind = HAPPENS_FLOWS,
                              .node_id = node->id,
                              .epoch = node->epoch,
                              .token = ++node->flows_token};

    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct data_plane_row){.row = drains[i].row,
                                          .birth = drains[i].birth,
                                          .n_flows = node->n_flows,
                                          .is_adopted = true};
    }
    const struct data_plane_status status = {.is_counting = true, .rows = rows, .n_rows = n};
    struct engine_event event = {.kind = ENGINE_DATA_PLANE, .u.data_plane = &status};
    world_step(world, node, &event);
    world_plan(world, world->now_ns + WORLD_SECOND, &again);
}

void world_set_flows(struct world *world, struct world_node *node, uint64_t n_flows)
{
    node->is_counting = true;
    node->n_flows = n_flows;
    report_flows(world, node);
}

/* --- the loop --- */

/* Puts off what a standing node is late for. */
static bool put_off(struct world *world, struct happening *happening)
{
    const struct world_node *node = &world->nodes[happening->node_id];

    if (!node->is_up || node->stalled_until_ns <= world->now_ns ||
        happening->kind == HAPPENS_STALL_END) {
        return false;
    }
    if (happening->kind == HAPPENS_PROBE_END) {
        struct probe_result *result = &happening->u.result;

        result->probe_class = PROBE_INCONCLUSIVE;
        result->reason = REASON_LOCAL_LATE;
        result->end_ns = local_at(node, node->stalled_until_ns);
    }
    if (heap_push(&world->queue, node->stalled_until_ns, happening->kind,
                  (uint64_t)(uintptr_t)happening) != 0) {
        abort();
    }
    world->n_stalled++;
    return true;
}

static void happen(struct world *world, struct happening *happening)
{
    struct world_node *node = &world->nodes[happening->node_id];
    struct engine_event tick = {.kind = ENGINE_TICK};
    struct engine_event late = {.kind = ENGINE_LOOP_LATE};

    if (!node->is_up || (happening->kind != HAPPENS_MESSAGE && happening->epoch != node->epoch)) {
        return;
    }
    switch ((enum happening_kind)happening->kind) {
    case HAPPENS_WAKE:
        if (happening->token == node->wake_token) {
            world_step(world, node, &tick);
        }
        break;
    case HAPPENS_PROBE_DUE:
        if (happening->token == node->probe_token) {
            world_start_probes(world, node);
        }
        break;
    case HAPPENS_PROBE_END:
        world_end_probe(world, node, &happening->u.result);
        break;
    case HAPPENS_MESSAGE:
        if (world->n_replays_max > 0) { /* before: what it knows now decides */
            world_make_noise(world, node, happening->u.message);
        }
        world_deliver(world, node, happening->u.message);
        break;
    case HAPPENS_REPLAY:
        world_deliver(world, node, happening->u.message);
        break;
    case HAPPENS_CATALOG:
        if (!node->store_is_frozen) {
            if (happening->u.revision > node->store_revision) {
                node->store_revision = happening->u.revision;
            }
            give_catalog(world, node, world->history[happening->u.revision]);
        }
        break;
    case HAPPENS_STALL_END:
        late.u.late_ns = happening->u.late_ns;
        world_step(world, node, &late);
        break;
    case HAPPENS_FLOWS:
        if (happening->token == node->flows_token) {
            report_flows(world, node);
        }
        break;
    }
}

void world_run(struct world *world, uint64_t until_ns)
{
    struct heap_item item;

    while (heap_peek(&world->queue, &item) && item.key <= until_ns) {
        heap_pop(&world->queue, &item);
        struct happening *happening = (struct happening *)(uintptr_t)item.value;

        assert(item.key >= world->now_ns);
        world->now_ns = item.key;
        if (!put_off(world, happening)) {
            happen(world, happening);
            happening_free(happening);
        }
    }
    world->now_ns = until_ns;
}
