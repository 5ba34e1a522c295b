#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/wire/unpack.h"
#include "tests/lib/rpc_hooks.h"
#include "tests/lib/rpc_world_private.h"

static void keep_reply(struct rpc_world *world, const struct rpc_route *route,
                       const struct rpc_frames *frames)
{
    static const struct wire_limits limits = {.bytes_max = 16384, .elements_max = 1000};
    struct rpc_world_reply *reply = &world->replies[route->socket];
    struct wire_arena arena;
    ProtobufCMessage *message;

    reply->n_times++;
    if (reply->has_come) {
        return;
    }
    reply->has_come = true;
    reply->at_ns = world->now_ns;
    reply->envelope = world_bytes(frames->envelope, frames->n_envelope_bytes);
    reply->n_envelope_bytes = frames->n_envelope_bytes;
    reply->payload = world_bytes(frames->payload, frames->n_payload_bytes);
    reply->n_payload_bytes = frames->n_payload_bytes;
    wire_arena_init(&arena, wire_budget(&limits));
    assert_int_equal(wire_unpack(&jury__v1__response__descriptor, &limits, reply->envelope,
                                 reply->n_envelope_bytes, &arena, &message, NULL),
                     0);
    const Jury__V1__Response *response = (const Jury__V1__Response *)message;
    assert_non_null(response->status);
    assert_int_equal(response->request_id.len, REQUEST_ID_BYTES);
    reply->code = response->status->code == JURY__V1__CODE__CODE_OK
                      ? 0
                      : err_from_reason(response->status->reason);
    snprintf(reply->reason, sizeof reply->reason, "%s", response->status->reason);
    snprintf(reply->message, sizeof reply->message, "%s", response->status->message);
    if (response->status->n_metadata == 1) {
        assert_string_equal(response->status->metadata[0]->key, "document_index");
        snprintf(reply->document_index, sizeof reply->document_index, "%s",
                 response->status->metadata[0]->value);
    }
    reply->refusals[0] = '\0';
    for (size_t i = 0; i < response->status->n_refusals; i++) {
        const Jury__V1__Refusal *refusal = response->status->refusals[i];
        size_t used = strlen(reply->refusals);

        snprintf(reply->refusals + used, sizeof reply->refusals - used, "%u %s\n",
                 refusal->document_index, refusal->message);
    }
    reply->revision = response->revision;
    reply->node_id = response->node_id;
    reply->is_stale = response->stale;
    wire_arena_close(&arena);
}

static void hook_reply(void *user, const struct rpc_route *route, const struct rpc_frames *frames)
{
    struct rpc_world_node *node = user;

    if (route->forward_id == 0) {
        keep_reply(node->world, route, frames);
        return;
    }
    struct rpc_world_event *event =
        world_event_new(node->world, EVENT_ANSWER, node->id, route->socket,
                        world_between(node->world, RPC_WORLD_MS / 10, 2 * RPC_WORLD_MS));
    event->cookie = route->forward_id;
    event->envelope = world_bytes(frames->envelope, frames->n_envelope_bytes);
    event->n_envelope_bytes = frames->n_envelope_bytes;
    event->payload = world_bytes(frames->payload, frames->n_payload_bytes);
    event->n_payload_bytes = frames->n_payload_bytes;
}

bool rpc_world_leads(const struct rpc_world_node *node)
{
    return node->world->leader_id == node->id && !node->store_is_off;
}

/* What the store does: a leader checks first, and answers at once what it refuses or knows. */
static int hook_propose(void *user, uint64_t cookie, const uint8_t *command, size_t n_bytes)
{
    struct rpc_world_node *node = user;
    struct rpc_world *world = node->world;

    if (node->propose_error != 0) {
        return node->propose_error;
    }
    struct command decoded;
    struct apply_answer answer;
    assert_int_equal(command_decode(command, n_bytes, &decoded, NULL), 0);
    catalog_check(node->state, &decoded, &answer);
    command_close(&decoded);
    bool is_final = answer.err != 0 || answer.is_repeat;
    struct rpc_world_event *event = world_event_new(
        world, is_final ? EVENT_JUDGED : EVENT_PROPOSAL, node->id, node->id,
        is_final ? RPC_WORLD_MS : world_between(world, world->commit_ns_min, world->commit_ns_max));
    event->cookie = cookie;
    event->payload = is_final ? world_bytes(&answer, sizeof answer) : world_bytes(command, n_bytes);
    event->n_payload_bytes = n_bytes;
    return 0;
}

static int hook_barrier(void *user, uint64_t cookie)
{
    struct rpc_world_node *node = user;
    struct rpc_world *world = node->world;

    world->n_barriers++;
    world_event_new(world, EVENT_BARRIER, node->id, node->id,
                    world_between(world, world->commit_ns_min, world->commit_ns_max))
        ->cookie = cookie;
    return 0;
}

static int hook_init(void *user, uint64_t cookie, const struct cluster_init *init,
                     struct errmsg *err)
{
    struct rpc_world_node *node = user;

    (void)err;
    node->init = *init;
    node->init_cookie = cookie;
    return 0;
}

static int hook_check(void *user, uint64_t cookie, struct command *command)
{
    struct rpc_world_node *node = user;
    struct rpc_world_event *event =
        world_event_new(node->world, EVENT_CHECK, node->id, node->id, 2 * RPC_WORLD_MS);

    node->n_checks++;
    event->cookie = cookie;
    event->command = command;
    return 0;
}

static int hook_simulate(void *user, uint64_t cookie, struct rpc_simulation *job)
{
    struct rpc_world_node *node = user;
    struct rpc_world_event *event =
        world_event_new(node->world, EVENT_SIMULATION, node->id, node->id, 2 * RPC_WORLD_MS);

    event->cookie = cookie;
    event->simulation = job;
    return 0;
}

/* The world's test says when it ends and what came of it. */
static int hook_probe(void *user, uint64_t cookie, const struct probe_target *target,
                      struct errmsg *err)
{
    struct rpc_world_node *node = user;

    node->n_probes++;
    node->probe_cookie = cookie;
    node->probe_target = *target;
    node->probe_check = *target->definition.check;
    node->probe_target.definition.check = &node->probe_check;
    return node->probe_error == 0 ? 0 : errmsg_set(err, node->probe_error, "the test says so");
}

static void hook_store(void *user, struct rpc_store *ret_store)
{
    struct rpc_world_node *node = user;

    ret_store->state = RPC_STORE_RUNNING;
    if (node->store_is_off) {
        ret_store->leader_age_ns = 3200 * RPC_WORLD_MS;
        ret_store->role = RPC_ROLE_CANDIDATE;
        return;
    }
    ret_store->role = rpc_world_leads(node) ? RPC_ROLE_LEADER : RPC_ROLE_FOLLOWER;
    ret_store->is_ready = rpc_world_leads(node) && node->world->leader_is_ready;
    ret_store->leader_id = node->world->leader_id;
    ret_store->leader_age_ns = 0;
}

static int hook_forward(void *user, uint64_t forward_id, uint64_t node_id,
                        const struct rpc_identity *identity, const struct rpc_frames *frames)
{
    struct rpc_world_node *node = user;

    assert_in_range(node_id, 1, node->world->n_nodes);
    if (node->forward_error != 0) {
        return node->forward_error;
    }
    struct rpc_world_event *event =
        world_event_new(node->world, EVENT_FORWARD, node->id, node_id,
                        world_between(node->world, RPC_WORLD_MS / 10, 2 * RPC_WORLD_MS));
    event->cookie = forward_id;
    event->identity = *identity;
    event->envelope = world_bytes(frames->envelope, frames->n_envelope_bytes);
    event->n_envelope_bytes = frames->n_envelope_bytes;
    event->payload = world_bytes(frames->payload, frames->n_payload_bytes);
    event->n_payload_bytes = frames->n_payload_bytes;
    node->world->n_forwarded++;
    return 0;
}

static int hook_override_hold(void *user, const struct hold_override *hold)
{
    struct rpc_world_node *node = user;
    struct engine_event event = {.kind = ENGINE_HOLD,
                                 .now_ns = node->world->now_ns,
                                 .boot_ns = node->world->now_ns,
                                 .u.hold = hold};

    return engine_step(node->engine, &event, node->world->actions);
}

static void hook_ask_peers(void *user, struct target_id target)
{
    struct rpc_world_node *node = user;
    struct engine_event event = {.kind = ENGINE_ASK,
                                 .now_ns = node->world->now_ns,
                                 .boot_ns = node->world->now_ns,
                                 .u.target = target};

    node->n_asked++;
    engine_step(node->engine, &event, node->world->actions);
    /* The agent polls after each step of the engine: the server must bear it. */
    rpc_server_poll(node->server, node->world->now_ns);
}

static const struct engine *hook_engine(void *user)
{
    return ((struct rpc_world_node *)user)->engine;
}

static void hook_node(void *user, struct rpc_node *ret_node)
{
    const struct rpc_world_node *node = user;

    ret_node->node_id = node->id;
    ret_node->epoch = 1;
    ret_node->probe_engine = "connect";
    snprintf(ret_node->capabilities, sizeof ret_node->capabilities, "tcp-full,http");
    ret_node->libraries = "raft 0.22.1,libzmq 4.3.4";
    ret_node->feature_level = node->feature_level;
    ret_node->probe_budget = node->probe_budget;
    if (catalog_n_nodes(engine_catalog(node->engine)) > 0) {
        ret_node->cluster_id = catalog_cluster_id(engine_catalog(node->engine));
    }
}

static void hook_peer(void *user, uint64_t node_id, struct rpc_peer *ret_peer)
{
    const struct rpc_world_node *node = user;

    if (node_id <= node->world->n_nodes && node->world->nodes[node_id].is_up) {
        ret_peer->feature_level = node->world->nodes[node_id].feature_level;
        ret_peer->age_ns = 200 * RPC_WORLD_MS;
        ret_peer->raft_age_ns = 300 * RPC_WORLD_MS;
    }
}

static bool hook_data_plane(void *user, size_t index, struct rpc_data_plane *ret_data_plane)
{
    const struct rpc_world_node *node = user;

    if (index > 0) {
        return false;
    }
    if (node->world->plane.state != RPC_PLANE_NONE) {
        *ret_data_plane = node->world->plane;
        return true;
    }
    ret_data_plane->state = RPC_PLANE_ALIVE;
    ret_data_plane->pid = 4711;
    ret_data_plane->flows = 12;
    snprintf(ret_data_plane->name, sizeof ret_data_plane->name, "shim");
    return true;
}

static bool hook_ready_check(void *user, size_t index, struct rpc_ready_check *ret_check)
{
    (void)user;
    snprintf(ret_check->name, sizeof ret_check->name, "%s", index == 0 ? "leader" : "catalog");
    ret_check->is_ok = index == 0;
    snprintf(ret_check->message.text, sizeof ret_check->message.text, "%s",
             index == 0 ? "" : "not caught up");
    return index < 2;
}

static void hook_counters(void *user, counter_emit emit, void *to)
{
    const struct rpc_world_node *node = user;
    struct counter_set set = rpc_server_counter_set(node->server);

    counter_set_emit(&set, emit, to);
}

static int64_t hook_wall_ms(void *user)
{
    struct rpc_world *world = ((struct rpc_world_node *)user)->world;

    world->wall_ahead_ms += world->wall_step_ms;
    return 1800000000000 + world->wall_ahead_ms + (int64_t)(world->now_ns / 1000000);
}

static uint64_t hook_boot_ns(void *user)
{
    return ((struct rpc_world_node *)user)->world->now_ns;
}

struct rpc_hooks rpc_world_hooks(struct rpc_world_node *node)
{
    struct rpc_hooks hooks = RPC_HOOKS_OF(node);

    return hooks;
}
