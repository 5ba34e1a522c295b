#include "tests/lib/rpc_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/feature_level.h"
#include "common/wire/unpack.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/rpc_world_private.h"

uint64_t world_between(struct rpc_world *world, uint64_t min, uint64_t max)
{
    return min + prng_below(&world->prng, max - min + 1);
}

void *world_bytes(const void *data, size_t n_bytes)
{
    void *copy = malloc(n_bytes + 1);

    assert_non_null(copy);
    if (n_bytes > 0) {
        memcpy(copy, data, n_bytes);
    }
    return copy;
}

struct rpc_world_event *world_event_new(struct rpc_world *world, enum event_of_world kind,
                                        uint64_t from, uint64_t to, uint64_t delay_ns)
{
    for (size_t i = 0; i < RPC_WORLD_QUEUE; i++) {
        if (world->queue[i].kind == EVENT_FREE) {
            world->queue[i] = (struct rpc_world_event){
                .kind = (uint8_t)kind, .from = from, .to = to, .at_ns = world->now_ns + delay_ns};
            return &world->queue[i];
        }
    }
    fail_msg("the world's queue is full");
    return NULL;
}

static void free_event(struct rpc_world_event *event)
{
    free(event->envelope);
    free(event->payload);
    if (event->command != NULL) {
        command_close(event->command);
        free(event->command);
    }
    rpc_simulation_free(event->simulation);
    *event = (struct rpc_world_event){0};
}

/* --- nodes --- */

static void engine_take(struct rpc_world_node *node)
{
    struct catalog *catalog = catalog_state_catalog(node->state);
    struct engine_event event = {.kind = ENGINE_CATALOG,
                                 .now_ns = node->world->now_ns,
                                 .boot_ns = node->world->now_ns,
                                 .u.catalog = catalog};

    if (catalog_revision(catalog) > 0) {
        assert_int_equal(engine_step(node->engine, &event, node->world->actions), 0);
    }
    catalog_unref(catalog);
    node->adopt_ns = 0;
}

/* Apply what is committed; *answer: of the last entry, if there was one. */
static void node_apply(struct rpc_world_node *node, struct apply_answer *answer)
{
    struct rpc_world *world = node->world;

    for (; node->n_applied < world->n_log; node->n_applied++) {
        struct command command;

        assert_int_equal(command_decode(world->log[node->n_applied].data,
                                        world->log[node->n_applied].n_bytes, &command, NULL),
                         0);
        catalog_apply(node->state, &command, answer);
        command_close(&command);
    }
    if (node->adopt_ns == 0) {
        node->adopt_ns = world->now_ns + node->engine_lag_ns;
    }
}

void rpc_world_start(struct rpc_world *world, uint64_t node_id)
{
    struct rpc_world_node *node = &world->nodes[node_id];
    struct engine_config config = {.node_id = node_id, .epoch = 1, .seed = node_id};
    struct rpc_hooks hooks = rpc_world_hooks(node);

    node->world = world;
    node->id = node_id;
    node->is_up = true;
    node->feature_level = feature_level();
    node->n_applied = 0;
    node->state = catalog_state_new();
    node->engine = engine_new(&config, world->now_ns);
    node->server = rpc_server_new(&hooks, prng_next(&world->prng));
    assert_non_null(node->state);
    assert_non_null(node->engine);
    assert_non_null(node->server);
    struct apply_answer answer;
    node_apply(node, &answer);
    engine_take(node);
}

void rpc_world_kill(struct rpc_world *world, uint64_t node_id)
{
    struct rpc_world_node *node = &world->nodes[node_id];

    if (!node->is_up) {
        return;
    }
    for (size_t i = 0; i < RPC_WORLD_QUEUE; i++) {
        struct rpc_world_event *event = &world->queue[i];

        /* Messages on the wire go on to others; the node's own promises go with it. */
        if (event->kind != EVENT_FREE && event->to == node_id) {
            free_event(event);
        }
    }
    rpc_server_free(node->server);
    engine_free(node->engine);
    catalog_state_free(node->state);
    node->server = NULL;
    node->engine = NULL;
    node->state = NULL;
    node->is_up = false;
    if (world->leader_id == node_id) {
        world->leader_id = 0;
    }
}

void rpc_world_open(struct rpc_world *world, uint32_t n_nodes, uint64_t seed)
{
    struct command command = {0};
    struct errmsg err;

    assert_true(n_nodes <= RPC_WORLD_NODES);
    memset(world, 0, sizeof *world);
    prng_init(&world->prng, seed);
    world->now_ns = 1000 * RPC_WORLD_MS;
    world->n_nodes = n_nodes;
    world->commit_ns_min = 2 * RPC_WORLD_MS;
    world->commit_ns_max = 20 * RPC_WORLD_MS;
    world->actions = calloc(1, sizeof *world->actions);
    assert_non_null(world->actions);
    engine_actions_init(world->actions);
    build_init(&command, n_nodes);
    assert_int_equal(command_encode(&command, &world->log[0].data, &world->log[0].n_bytes, &err),
                     0);
    command_close(&command);
    world->n_log = 1;
    for (uint64_t id = 1; id <= n_nodes; id++) {
        rpc_world_start(world, id);
    }
    rpc_world_set_leader(world, 1);
}

void rpc_world_close(struct rpc_world *world)
{
    for (uint64_t id = 1; id <= world->n_nodes; id++) {
        rpc_world_kill(world, id);
    }
    for (size_t i = 0; i < RPC_WORLD_QUEUE; i++) {
        free_event(&world->queue[i]);
    }
    for (size_t i = 0; i < world->n_log; i++) {
        free(world->log[i].data);
    }
    for (uint32_t i = 0; i < world->n_calls; i++) {
        free(world->replies[i].envelope);
        free(world->replies[i].payload);
    }
    engine_actions_close(world->actions);
    free(world->actions);
}

uint64_t rpc_world_revision(const struct rpc_world *world, uint64_t node_id)
{
    struct catalog *catalog = catalog_state_catalog(world->nodes[node_id].state);
    uint64_t revision = catalog_revision(catalog);

    catalog_unref(catalog);
    return revision;
}

/* --- the store --- */

static void tell_all(struct rpc_world_node *node, uint64_t cookie, enum rpc_outcome outcome,
                     const struct apply_answer *answer, const struct catalog_refusals *refusals)
{
    struct rpc_done done = {.outcome = (uint8_t)outcome, .answer = answer, .refusals = refusals};

    if (outcome == RPC_DONE) {
        done.revision = rpc_world_revision(node->world, node->id);
    }
    rpc_server_done(node->server, node->world->now_ns, cookie, &done);
}

static void tell(struct rpc_world_node *node, uint64_t cookie, enum rpc_outcome outcome,
                 const struct apply_answer *answer)
{
    tell_all(node, cookie, outcome, answer, NULL);
}

static void commit(struct rpc_world *world, struct rpc_world_event *event, bool silently)
{
    struct rpc_world_node *node = &world->nodes[event->from];
    struct apply_answer answer;
    uint64_t cookie = event->cookie;

    assert_true(world->n_log < RPC_WORLD_LOG);
    world->log[world->n_log].data = event->payload;
    world->log[world->n_log].n_bytes = event->n_payload_bytes;
    event->payload = NULL;
    world->n_log++;
    node_apply(node, &answer);
    world->n_effective += answer.err == 0 && !answer.is_repeat;
    free_event(event);
    if (!silently) {
        tell(node, cookie, RPC_DONE, &answer);
    }
}

size_t rpc_world_n_proposals(const struct rpc_world *world)
{
    size_t n = 0;

    for (size_t i = 0; i < RPC_WORLD_QUEUE; i++) {
        n += world->queue[i].kind == EVENT_PROPOSAL;
    }
    return n;
}

void rpc_world_commit(struct rpc_world *world, bool silently)
{
    for (size_t i = 0; i < RPC_WORLD_QUEUE; i++) {
        if (world->queue[i].kind == EVENT_PROPOSAL) {
            commit(world, &world->queue[i], silently);
        }
    }
}

void rpc_world_set_leader(struct rpc_world *world, uint64_t node_id)
{
    uint64_t last_id = world->leader_id;

    world->leader_id = node_id;
    world->leader_is_ready = true;
    for (size_t i = 0; i < RPC_WORLD_QUEUE; i++) {
        struct rpc_world_event *event = &world->queue[i];
        bool is_store = event->kind == EVENT_PROPOSAL || event->kind == EVENT_BARRIER ||
                        event->kind == EVENT_JUDGED;

        if (is_store && event->from == last_id && last_id != node_id) {
            uint64_t cookie = event->cookie;

            free_event(event);
            tell(&world->nodes[last_id], cookie, RPC_UNKNOWN, NULL);
        }
    }
}

static void check(struct rpc_world *world, struct rpc_world_event *event)
{
    struct rpc_world_node *node = &world->nodes[event->from];
    struct catalog_refusals refusals;
    struct apply_answer answer;
    uint64_t cookie = event->cookie;
    struct errmsg err;

    assert_int_equal(
        rpc_check_catalog(engine_catalog(node->engine), event->command, &answer, &refusals, &err),
        0);
    free_event(event);
    tell_all(node, cookie, RPC_DONE, &answer, &refusals);
}

static void simulated(struct rpc_world *world, struct rpc_world_event *event)
{
    struct rpc_world_node *node = &world->nodes[event->from];
    struct rpc_simulation *simulation = event->simulation;
    uint64_t cookie = event->cookie;

    event->simulation = NULL;
    free_event(event);
    rpc_simulation_run(simulation);
    rpc_server_simulated(node->server, world->now_ns, cookie, simulation);
}

/* --- the mesh --- */

static void deliver(struct rpc_world *world, struct rpc_world_event *event)
{
    struct rpc_world_node *from = &world->nodes[event->from], *to = &world->nodes[event->to];
    struct rpc_world_event message = *event;
    struct rpc_frames frames = {.envelope = message.envelope,
                                .n_envelope_bytes = message.n_envelope_bytes,
                                .payload = message.payload,
                                .n_payload_bytes = message.n_payload_bytes};

    *event = (struct rpc_world_event){0};
    if (to->is_up && !to->is_cut && !from->is_cut) {
        if (message.kind == EVENT_FORWARD) {
            struct rpc_route route = {.socket = (uint32_t)message.from,
                                      .forward_id = message.cookie};

            message.identity.caller = RPC_CALLER_PEER;
            rpc_server_handle(to->server, world->now_ns, &message.identity, &route, &frames);
        } else {
            rpc_server_forward_answer(to->server, world->now_ns, message.from, message.cookie,
                                      &frames);
        }
    }
    free_event(&message);
}

/* --- time --- */

static void happen(struct rpc_world *world, struct rpc_world_event *event)
{
    uint64_t cookie = event->cookie;
    struct rpc_world_node *node = &world->nodes[event->from];

    switch ((enum event_of_world)event->kind) {
    case EVENT_PROPOSAL:
        commit(world, event, false);
        break;
    case EVENT_BARRIER:
        free_event(event);
        tell(node, cookie, rpc_world_leads(node) ? RPC_DONE : RPC_NOT_LEADER, NULL);
        break;
    case EVENT_CHECK:
        check(world, event);
        break;
    case EVENT_SIMULATION:
        simulated(world, event);
        break;
    case EVENT_FORWARD:
    case EVENT_ANSWER:
        deliver(world, event);
        break;
    case EVENT_JUDGED: {
        struct apply_answer answer;
        memcpy(&answer, event->payload, sizeof answer);
        free_event(event);
        tell(node, cookie, RPC_DONE, &answer);
        break;
    }
    case EVENT_FREE:
        break;
    }
}

/* A server that still wants to be polled at once makes its node spin. A poll that was asked for
 * from inside takes one more. */
static void poll_server(struct rpc_world_node *node)
{
    uint64_t now_ns = node->world->now_ns;

    rpc_server_poll(node->server, now_ns);
    if (rpc_server_next_ns(node->server) <= now_ns) {
        rpc_server_poll(node->server, now_ns);
    }
    assert_true(rpc_server_next_ns(node->server) > now_ns);
}

static void follow(struct rpc_world_node *node)
{
    struct rpc_world *world = node->world;

    if (node->n_applied < world->n_log && !node->store_is_off) {
        if (node->apply_ns == 0) {
            node->apply_ns = world->now_ns + world_between(world, RPC_WORLD_MS, 30 * RPC_WORLD_MS);
        } else if (world->now_ns >= node->apply_ns) {
            node->apply_ns = 0;
            struct apply_answer answer;
            node_apply(node, &answer);
        }
    }
    if (node->adopt_ns != 0 && world->now_ns >= node->adopt_ns) {
        engine_take(node);
        poll_server(node);
    }
    if (rpc_server_next_ns(node->server) <= world->now_ns || world->now_ns % 7 == 0) {
        poll_server(node);
    }
}

void rpc_world_run(struct rpc_world *world, uint64_t ms)
{
    uint64_t until_ns = world->now_ns + ms * RPC_WORLD_MS;

    while (world->now_ns < until_ns) {
        world->now_ns += RPC_WORLD_MS;
        for (size_t i = 0; i < RPC_WORLD_QUEUE; i++) {
            if (world->queue[i].kind != EVENT_FREE && world->queue[i].at_ns <= world->now_ns) {
                happen(world, &world->queue[i]);
            }
        }
        for (uint64_t id = 1; id <= world->n_nodes; id++) {
            if (world->nodes[id].is_up) {
                follow(&world->nodes[id]);
            }
        }
    }
}

/* --- calls --- */

uint32_t rpc_world_frames(struct rpc_world *world, uint64_t node_id, enum key_role role,
                          const struct rpc_frames *frames)
{
    struct rpc_route route = {.socket = world->n_calls};
    struct rpc_identity identity = {
        .caller = RPC_CALLER_KEY, .role = (uint8_t)role, .name = "alice"};

    assert_true(world->n_calls < RPC_WORLD_CALLS);
    world->n_calls++;
    rpc_server_handle(world->nodes[node_id].server, world->now_ns, &identity, &route, frames);
    return route.socket;
}

uint32_t rpc_world_call(struct rpc_world *world, const struct rpc_world_ask *ask)
{
    struct wire_arena arena;
    struct rpc_frames frames = {0};
    uint8_t id[REQUEST_ID_BYTES];

    wire_arena_init(&arena, 64 * 1024 * 1024);
    Jury__V1__Request *request = WIRE_NEW(&arena, Jury__V1__Request, jury__v1__request);
    for (size_t i = 0; i < sizeof id; i++) {
        id[i] = (uint8_t)(prng_next(&world->prng) | 1);
    }
    if (ask->id != NULL) {
        memcpy(id, ask->id, sizeof id);
    }
    request->api_version = ask->api_version != 0 ? ask->api_version : 1;
    request->method = wire_format(&arena, "jury.v1.%s", ask->method);
    request->deadline_ms = ask->deadline_ms != 0 ? ask->deadline_ms : 5000;
    request->request_id.data = id;
    request->request_id.len = sizeof id;
    request->stale = ask->stale;
    request->min_revision = ask->min_revision;
    frames.envelope = wire_pack(&request->base, &arena, &frames.n_envelope_bytes);
    if (ask->request != NULL) {
        frames.payload = wire_pack(ask->request, &arena, &frames.n_payload_bytes);
    }
    uint32_t call = rpc_world_frames(
        world, ask->node_id, ask->role != KEY_ROLE_NONE ? ask->role : KEY_ROLE_ADMIN, &frames);
    wire_arena_close(&arena);
    return call;
}

const struct rpc_world_reply *rpc_world_wait(struct rpc_world *world, uint32_t call, uint64_t ms)
{
    for (uint64_t i = 0; i < ms && !world->replies[call].has_come; i++) {
        rpc_world_run(world, 1);
    }
    if (!world->replies[call].has_come) {
        fail_msg("call %u was not answered within %u ms", call, (unsigned)ms);
    }
    return &world->replies[call];
}

ProtobufCMessage *rpc_world_message(const struct rpc_world_reply *reply,
                                    const ProtobufCMessageDescriptor *type,
                                    struct wire_arena *arena)
{
    static const struct wire_limits limits = {.bytes_max = 1 << 20, .elements_max = 1 << 19};
    struct errmsg err = {{0}};
    ProtobufCMessage *message = NULL;

    if (reply->code != 0) {
        fail_msg("refused: %s: %s", reply->reason, reply->message);
    }
    wire_unpack(type, &limits, reply->payload, reply->n_payload_bytes, arena, &message, &err);
    assert_string_equal(err.text, "");
    assert_non_null(message);
    return message;
}
