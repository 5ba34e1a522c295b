#include "tests/lib/world_ask.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "agent/core/catalog.h"
#include "agent/rpc/rpc_server.h"
#include "common/model/feature_level.h"
#include "nodectl/ctl.h"
#include "tests/lib/rpc_hooks.h"
#include "tests/lib/scratch.h"
#include "tests/lib/world_probe.h"

#define ANSWER_LIMIT_NS (60 * WORLD_SECOND) /* of world time */
#define ENDED "inproc://ended"

/* What the store promised: told to the server outside of its own calls. */
struct promise {
    bool is_set;
    uint64_t cookie;
    uint8_t *command; /* NULL: a barrier, or a simulation */
    size_t n_bytes;
    struct rpc_simulation *simulation;
    bool is_check;
    struct apply_answer checked; /* with it */
    struct catalog_refusals refusals;
};

/* A probe on demand that goes on. */
struct going {
    bool is_set;
    uint64_t cookie;
    uint64_t end_ns; /* world time */
    struct probe_report report;
};

/* What another node answered to a forwarded call. */
struct forwarded {
    uint64_t forward_id;
    uint8_t *envelope, *payload;
    size_t n_envelope_bytes, n_payload_bytes;
};

struct asked {
    struct asked *peers[WORLD_NODES + 1]; /* nodes that this one has forwarded to */
    struct forwarded forwarded;           /* of such a one */
    bool is_peer;
    struct going probe;
    struct world *world;
    struct world_node *node;
    struct rpc_server *server;
    struct promise promise;
    void *context;
    void *router;
    void *ended; /* a word comes when the command has come to its end */
    bool has_replied;
    char *argv[WORLD_ASK_WORDS + 4];
    int argc;
    struct world_answer *answer;
};

/* --- the simulated store --- */

static bool is_joined(const struct world *world, uint64_t a, uint64_t b)
{
    return a == b || (!world->links[a][b].is_cut && !world->links[b][a].is_cut);
}

static bool has_store(const struct world *world, uint64_t id)
{
    return world->nodes[id].is_up && !world->nodes[id].store_is_frozen;
}

static uint32_t n_reached(const struct world *world, uint64_t id)
{
    uint32_t n = 0;

    for (uint64_t other = 1; other <= world->n_nodes; other++) {
        n += has_store(world, other) && is_joined(world, id, other);
    }
    return n;
}

uint64_t world_leader(const struct world *world, uint64_t node_id)
{
    for (uint64_t id = 1; id <= world->n_nodes; id++) {
        if (has_store(world, id) && n_reached(world, id) >= world->n_nodes / 2 + 1) {
            return has_store(world, node_id) && is_joined(world, id, node_id) ? id : 0;
        }
    }
    return 0;
}

static void hook_store(void *user, struct rpc_store *ret_store)
{
    const struct asked *asked = user;
    const struct world_node *node = asked->node;
    uint64_t leader_id = world_leader(asked->world, node->id);

    *ret_store = (struct rpc_store){.state = RPC_STORE_RUNNING,
                                    .role = leader_id == node->id ? RPC_ROLE_LEADER
                                            : leader_id != 0      ? RPC_ROLE_FOLLOWER
                                                                  : RPC_ROLE_CANDIDATE,
                                    .is_ready = leader_id == node->id,
                                    .leader_id = leader_id,
                                    .leader_age_ns = leader_id != 0 ? 0 : RPC_NEVER_NS,
                                    .term = 1,
                                    .applied_index = node->store_revision,
                                    .last_index = node->store_revision,
                                    .revision = node->store_revision};
    if (node->store_is_frozen) {
        ret_store->state = RPC_STORE_FAILED;
        errmsg_set(&ret_store->message, 0, "the scenario keeps it from going on");
    }
}

static int hook_propose(void *user, uint64_t cookie, const uint8_t *command, size_t n_bytes)
{
    struct asked *asked = user;

    asked->promise = (struct promise){
        .is_set = true, .cookie = cookie, .command = malloc(n_bytes), .n_bytes = n_bytes};
    if (asked->promise.command == NULL) {
        abort();
    }
    memcpy(asked->promise.command, command, n_bytes);
    return 0;
}

static int hook_barrier(void *user, uint64_t cookie)
{
    ((struct asked *)user)->promise = (struct promise){.is_set = true, .cookie = cookie};
    return 0;
}

static int hook_simulate(void *user, uint64_t cookie, struct rpc_simulation *job)
{
    ((struct asked *)user)->promise =
        (struct promise){.is_set = true, .cookie = cookie, .simulation = job};
    return 0;
}

/* A dry run: judged at once, on the catalog in use, and told later. */
static int hook_check(void *user, uint64_t cookie, struct command *command)
{
    struct asked *asked = user;
    struct errmsg err;

    asked->promise = (struct promise){.is_set = true, .is_check = true, .cookie = cookie};
    int rc = rpc_check_catalog(engine_catalog(asked->node->engine), command,
                               &asked->promise.checked, &asked->promise.refusals, &err);
    command_close(command);
    free(command);
    return rc;
}

static void keep_promise(struct asked *asked)
{
    struct promise promise = asked->promise;
    struct apply_answer answer = promise.checked;
    struct command command;

    if (!promise.is_set) {
        return;
    }
    asked->promise = (struct promise){.is_set = false};
    if (promise.simulation != NULL) {
        rpc_simulation_run(promise.simulation);
        rpc_server_simulated(asked->server, world_local_ns(asked->world, asked->node),
                             promise.cookie, promise.simulation);
        return;
    }
    if (promise.command != NULL) {
        if (command_decode(promise.command, promise.n_bytes, &command, NULL) != 0) {
            abort();
        }
        answer = world_apply(asked->world, &command);
        free(promise.command);
    }
    struct rpc_done done = {.outcome = RPC_DONE,
                            .revision = asked->world->revision,
                            .answer = promise.command != NULL || promise.is_check ? &answer : NULL,
                            .refusals = promise.is_check ? &promise.refusals : NULL};
    rpc_server_done(asked->server, world_local_ns(asked->world, asked->node), promise.cookie,
                    &done);
}

/* --- probes on demand, here and on other nodes --- */

static int hook_probe(void *user, uint64_t cookie, const struct probe_target *target,
                      struct errmsg *err)
{
    struct asked *asked = user;
    struct going *probe = &asked->probe;

    (void)err;
    *probe = (struct going){.is_set = true, .cookie = cookie};
    world_probe(asked->world, asked->node, target, &probe->report);
    probe->end_ns = world_time_ns(asked->world, asked->node, probe->report.result.end_ns);
    return 0;
}

static void end_probe(struct asked *asked)
{
    if (asked->probe.is_set && asked->world->now_ns >= asked->probe.end_ns) {
        asked->probe.is_set = false;
        rpc_server_probed(asked->server, world_local_ns(asked->world, asked->node),
                          asked->probe.cookie, &asked->probe.report);
    }
}

static uint8_t *copy(const uint8_t *data, size_t n_bytes)
{
    uint8_t *bytes = malloc(n_bytes + 1);

    if (bytes == NULL) {
        abort();
    }
    memcpy(bytes, n_bytes == 0 ? (const uint8_t *)"" : data, n_bytes);
    return bytes;
}

/* The answer of a peer is kept until the asked node takes it. */
static void keep_forwarded(struct asked *peer, const struct rpc_frames *frames)
{
    peer->forwarded.envelope = copy(frames->envelope, frames->n_envelope_bytes);
    peer->forwarded.n_envelope_bytes = frames->n_envelope_bytes;
    peer->forwarded.payload = copy(frames->payload, frames->n_payload_bytes);
    peer->forwarded.n_payload_bytes = frames->n_payload_bytes;
}

static void take_forwarded(struct asked *asked, struct asked *peer)
{
    struct forwarded *forwarded = &peer->forwarded;
    const struct rpc_frames frames = {.envelope = forwarded->envelope,
                                      .n_envelope_bytes = forwarded->n_envelope_bytes,
                                      .payload = forwarded->payload,
                                      .n_payload_bytes = forwarded->n_payload_bytes};

    if (forwarded->envelope != NULL) {
        rpc_server_forward_answer(asked->server, world_local_ns(asked->world, asked->node),
                                  peer->node->id, forwarded->forward_id, &frames);
        free(forwarded->envelope);
        free(forwarded->payload);
        *forwarded = (struct forwarded){0};
    }
}

/* What has come to its end by now, of the asked node and of those it asked. */
static void end_probes(struct asked *asked)
{
    end_probe(asked);
    for (uint64_t id = 1; id <= asked->world->n_nodes; id++) {
        if (asked->peers[id] != NULL) {
            end_probe(asked->peers[id]);
            take_forwarded(asked, asked->peers[id]);
        }
    }
}

static uint64_t next_probe_ns(const struct asked *asked)
{
    uint64_t next_ns = asked->probe.is_set ? asked->probe.end_ns : UINT64_MAX;

    for (uint64_t id = 1; id <= asked->world->n_nodes; id++) {
        const struct asked *peer = asked->peers[id];

        if (peer != NULL && peer->probe.is_set && peer->probe.end_ns < next_ns) {
            next_ns = peer->probe.end_ns;
        }
    }
    return next_ns;
}

/* --- what is not simulated --- */

static int hook_init(void *user, uint64_t cookie, const struct cluster_init *init,
                     struct errmsg *err)
{
    (void)user;
    (void)cookie;
    (void)init;
    return errmsg_set(err, ERR_CONFLICT, "a world is a cluster already");
}

static struct rpc_server *server_new(struct asked *asked);

/* The other node's own server takes it at once; what it answers comes when its probe has ended. */
static int forward_probe(struct asked *asked, uint64_t forward_id, uint64_t node_id,
                         const struct rpc_identity *identity, const struct rpc_frames *frames)
{
    struct world_node *node = &asked->world->nodes[node_id];
    struct rpc_identity peer_identity = *identity;
    const struct rpc_route route = {.forward_id = forward_id};

    if (!node->is_up || !is_joined(asked->world, asked->node->id, node_id)) {
        return ERR_UNREACHABLE;
    }
    if (asked->peers[node_id] == NULL) {
        struct asked *peer = calloc(1, sizeof *peer);

        if (peer == NULL) {
            abort();
        }
        *peer = (struct asked){.world = asked->world, .node = node, .is_peer = true};
        peer->server = server_new(peer);
        asked->peers[node_id] = peer;
    }
    asked->peers[node_id]->forwarded.forward_id = forward_id;
    peer_identity.caller = RPC_CALLER_PEER;
    rpc_server_handle(asked->peers[node_id]->server, world_local_ns(asked->world, node),
                      &peer_identity, &route, frames);
    return 0;
}

static int hook_forward(void *user, uint64_t forward_id, uint64_t node_id,
                        const struct rpc_identity *identity, const struct rpc_frames *frames)
{
    struct asked *asked = user;

    if (memmem(frames->envelope, frames->n_envelope_bytes, "ProbeService", 12) != NULL) {
        return forward_probe(asked, forward_id, node_id, identity, frames);
    }
    /* Without an answer the client's deadline would show, which is of real time. */
    fprintf(stderr, "node %u does not lead: ask node %u, or with --stale\n",
            (unsigned)asked->node->id, (unsigned)node_id);
    exit(1);
}

/* --- views --- */

static void hook_ask_peers(void *user, struct target_id target)
{
    struct asked *asked = user;
    struct engine_event event = {.kind = ENGINE_ASK, .u.target = target};

    world_step(asked->world, asked->node, &event);
}

static int hook_override_hold(void *user, const struct hold_override *hold)
{
    struct asked *asked = user;
    struct engine_event event = {.kind = ENGINE_HOLD, .u.hold = hold};

    world_step(asked->world, asked->node, &event);
    return 0;
}

static const struct engine *hook_engine(void *user)
{
    return ((const struct asked *)user)->node->engine;
}

static void hook_node(void *user, struct rpc_node *ret_node)
{
    const struct asked *asked = user;
    const struct world_node *node = asked->node;
    const struct catalog *catalog = engine_catalog(node->engine);

    ret_node->node_id = node->id;
    ret_node->epoch = node->epoch;
    ret_node->uptime_ns = asked->world->now_ns - node->started_ns;
    ret_node->is_last_known_good = catalog != NULL && node->store_revision == 0;
    ret_node->probe_engine = "simulated";
    snprintf(ret_node->capabilities, sizeof ret_node->capabilities, "tcp-full,http");
    ret_node->libraries = "";
    ret_node->feature_level = feature_level();
    snprintf(ret_node->mesh_address, sizeof ret_node->mesh_address, "10.255.0.%u:7400",
             (unsigned)node->id);
    snprintf(ret_node->raft_address, sizeof ret_node->raft_address, "10.255.0.%u:7401",
             (unsigned)node->id);
    if (catalog != NULL && catalog_n_slots(catalog) > 0) {
        struct rpc_probe_source *source = &ret_node->probe_sources.sources[0];
        char text[ADDR_TEXT_BYTES];

        snprintf(text, sizeof text, "10.255.0.%u", (unsigned)node->id);
        (void)addr_parse(text, &source->addr, NULL);
        source->n_targets = catalog_n_slots(catalog);
        ret_node->probe_sources.n_sources = 1;
    }
    if (catalog != NULL) {
        ret_node->cluster_id = catalog_cluster_id(catalog);
    }
}

/* The mesh has heard a peer when the engine has. */
static void hook_peer(void *user, uint64_t node_id, struct rpc_peer *ret_peer)
{
    const struct asked *asked = user;
    struct peer_view peers[LIMIT_NODES];
    size_t n =
        engine_view_peers(asked->node->engine, world_local_ns(asked->world, asked->node), peers);
    bool is_reached =
        has_store(asked->world, node_id) && is_joined(asked->world, asked->node->id, node_id);

    ret_peer->raft_age_ns = is_reached ? 0 : RPC_NEVER_NS;
    for (size_t i = 0; i < n; i++) {
        if (peers[i].node_id == node_id) {
            ret_peer->feature_level = peers[i].hello_age_ns == AGE_NEVER ? 0 : feature_level();
            ret_peer->age_ns = peers[i].hello_age_ns < peers[i].vector_age_ns
                                   ? peers[i].hello_age_ns
                                   : peers[i].vector_age_ns;
        }
    }
    snprintf(ret_peer->endpoint, sizeof ret_peer->endpoint, "10.255.0.%u:7400", (unsigned)node_id);
}

static bool hook_data_plane(void *user, size_t index, struct rpc_data_plane *ret_data_plane)
{
    const struct world_node *node = ((const struct asked *)user)->node;

    if (index > 0 || !node->is_counting) {
        return false;
    }
    ret_data_plane->state = RPC_PLANE_ALIVE;
    ret_data_plane->pid = 1;
    ret_data_plane->flows = node->n_flows;
    snprintf(ret_data_plane->name, sizeof ret_data_plane->name, "simulated");
    return true;
}

static bool hook_ready_check(void *user, size_t index, struct rpc_ready_check *ret_check)
{
    static const char *const names[] = {"leader", "votes", "probes"};
    const struct asked *asked = user;

    if (index >= sizeof names / sizeof names[0]) {
        return false;
    }
    snprintf(ret_check->name, sizeof ret_check->name, "%s", names[index]);
    if (index == 1) {
        ret_check->is_ok = engine_votes_suffice(
            asked->node->engine, world_local_ns(asked->world, asked->node), &ret_check->message);
    } else if (index == 2) {
        ret_check->is_ok = engine_probes_are_trusted(asked->node->engine, &ret_check->message);
    } else {
        ret_check->is_ok = world_leader(asked->world, asked->node->id) != 0;
        if (!ret_check->is_ok) {
            errmsg_set(&ret_check->message, 0, "no leader is known");
        }
    }
    return true;
}

static void hook_counters(void *user, counter_emit emit, void *to)
{
    const struct asked *asked = user;
    struct counter_set set = rpc_server_counter_set(asked->server);

    counter_set_emit(&set, emit, to);
}

static int64_t hook_wall_ms(void *user)
{
    return WORLD_WALL_MS + (int64_t)(((const struct asked *)user)->world->now_ns / WORLD_MS);
}

static uint64_t hook_boot_ns(void *user)
{
    const struct asked *asked = user;

    return world_boot_ns(asked->world, asked->node);
}

/* --- the socket --- */

static void hook_reply(void *user, const struct rpc_route *route, const struct rpc_frames *frames)
{
    struct asked *asked = user;

    if (asked->is_peer) {
        keep_forwarded(asked, frames);
        return;
    }
    asked->has_replied = true;
    if (zmq_send(asked->router, route->bytes, route->n_bytes, ZMQ_SNDMORE) < 0 ||
        zmq_send(asked->router, "", 0, ZMQ_SNDMORE) < 0 ||
        zmq_send(asked->router, frames->envelope, frames->n_envelope_bytes, ZMQ_SNDMORE) < 0 ||
        zmq_send(asked->router, frames->payload, frames->n_payload_bytes, 0) < 0) {
        abort();
    }
}

static void take_frame(struct asked *asked, zmq_msg_t *frame)
{
    zmq_msg_init(frame);
    if (zmq_msg_recv(frame, asked->router, 0) < 0) {
        abort();
    }
}

/* Let the world go on until the call is answered. */
static void run_until_replied(struct asked *asked)
{
    struct world *world = asked->world;
    uint64_t limit_ns = world->now_ns + ANSWER_LIMIT_NS;
    struct heap_item item;

    for (;;) {
        keep_promise(asked);
        end_probes(asked);
        rpc_server_poll(asked->server, world_local_ns(world, asked->node));
        if (asked->has_replied) {
            return;
        }
        if (asked->promise.is_set) {
            continue;
        }
        uint64_t next_ns = rpc_server_next_ns(asked->server) - asked->node->clock_offset_ns;
        if (next_probe_ns(asked) < next_ns) {
            next_ns = next_probe_ns(asked);
        }
        if (heap_peek(&world->queue, &item) && item.key < next_ns) {
            next_ns = item.key;
        }
        assert(next_ns >= world->now_ns && next_ns <= limit_ns);
        world_run(world, next_ns);
    }
}

static void serve_call(struct asked *asked)
{
    struct rpc_route route = {.socket = 0};
    struct rpc_identity identity = {.caller = RPC_CALLER_LOCAL, .role = KEY_ROLE_ADMIN};
    zmq_msg_t id, empty, envelope, payload;

    snprintf(identity.name, sizeof identity.name, "local socket of node %" PRIu64 ", uid 0",
             asked->node->id);
    take_frame(asked, &id);
    take_frame(asked, &empty);
    take_frame(asked, &envelope);
    take_frame(asked, &payload);
    assert(zmq_msg_size(&id) <= sizeof route.bytes && !zmq_msg_more(&payload));
    route.n_bytes = (uint8_t)zmq_msg_size(&id);
    memcpy(route.bytes, zmq_msg_data(&id), route.n_bytes);
    struct rpc_frames frames = {.envelope = zmq_msg_data(&envelope),
                                .n_envelope_bytes = zmq_msg_size(&envelope),
                                .payload = zmq_msg_data(&payload),
                                .n_payload_bytes = zmq_msg_size(&payload)};
    asked->has_replied = false;
    rpc_server_handle(asked->server, world_local_ns(asked->world, asked->node), &identity, &route,
                      &frames);
    run_until_replied(asked);
    zmq_msg_close(&id);
    zmq_msg_close(&empty);
    zmq_msg_close(&envelope);
    zmq_msg_close(&payload);
}

/* --- the command, on a thread of its own: its client blocks --- */

static void *run_command(void *user)
{
    struct asked *asked = user;
    char *environment[] = {NULL};
    size_t n_out, n_err;
    struct ctl_process process = {.argc = asked->argc,
                                  .argv = asked->argv,
                                  .environment = environment,
                                  .in = fopen("/dev/null", "r"),
                                  .out = open_memstream(&asked->answer->out, &n_out),
                                  .err = open_memstream(&asked->answer->err, &n_err)};
    void *ended = zmq_socket(asked->context, ZMQ_PAIR);

    if (process.in == NULL || process.out == NULL || process.err == NULL || ended == NULL ||
        zmq_connect(ended, ENDED) != 0) {
        abort();
    }
    asked->answer->status = ctl_main(&process);
    fclose(process.in);
    fclose(process.out);
    fclose(process.err);
    if (zmq_send(ended, "", 0, 0) != 0) {
        abort();
    }
    zmq_close(ended);
    return NULL;
}

static void serve(struct asked *asked)
{
    pthread_t thread;
    zmq_pollitem_t items[] = {{.socket = asked->router, .events = ZMQ_POLLIN},
                              {.socket = asked->ended, .events = ZMQ_POLLIN}};

    if (pthread_create(&thread, NULL, run_command, asked) != 0) {
        abort();
    }
    while ((items[1].revents & ZMQ_POLLIN) == 0) {
        if (zmq_poll(items, 2, -1) < 0) {
            abort();
        }
        if ((items[0].revents & ZMQ_POLLIN) != 0) {
            serve_call(asked);
        }
    }
    pthread_join(thread, NULL);
}

static struct rpc_server *server_new(struct asked *asked)
{
    struct rpc_hooks hooks = RPC_HOOKS_OF(asked);
    struct rpc_server *server = rpc_server_new(&hooks, 1);

    if (server == NULL) {
        abort();
    }
    return server;
}

void world_ask(struct world *world, uint64_t node_id, char *const words[], size_t n_words,
               struct world_answer *ret_answer)
{
    static char name[] = "nodectl", flag[] = "--socket";
    struct asked asked = {
        .world = world, .node = &world->nodes[node_id], .answer = ret_answer, .argc = 3};
    char folder[SCRATCH_BYTES], path[SCRATCH_BYTES + 16], address[SCRATCH_BYTES + 32];

    assert(asked.node->is_up && n_words <= WORLD_ASK_WORDS);
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/agent.sock", folder);
    snprintf(address, sizeof address, "ipc://%s", path);
    asked.argv[0] = name;
    asked.argv[1] = flag;
    asked.argv[2] = path;
    for (size_t i = 0; i < n_words; i++) {
        asked.argv[asked.argc++] = words[i];
    }
    asked.context = zmq_ctx_new();
    asked.router = zmq_socket(asked.context, ZMQ_ROUTER);
    asked.ended = zmq_socket(asked.context, ZMQ_PAIR);
    if (asked.router == NULL || asked.ended == NULL || zmq_bind(asked.router, address) != 0 ||
        zmq_bind(asked.ended, ENDED) != 0) {
        abort();
    }
    asked.server = server_new(&asked);
    serve(&asked);
    rpc_server_free(asked.server);
    for (uint64_t id = 1; id <= world->n_nodes; id++) {
        if (asked.peers[id] != NULL) {
            rpc_server_free(asked.peers[id]->server);
            free(asked.peers[id]);
        }
    }
    zmq_close(asked.router);
    zmq_close(asked.ended);
    zmq_ctx_term(asked.context);
    scratch_remove(folder);
}

void world_answer_close(struct world_answer *answer)
{
    free(answer->out);
    free(answer->err);
    *answer = (struct world_answer){.status = 0};
}
