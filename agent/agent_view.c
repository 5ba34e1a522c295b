/* What people may ask: copies of what the parts of this node say of themselves. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>
#include <zmq.h>

#include "agent/agent_internal.h"
#include "agent/core/engine_view.h"
#include "agent/rpc/plane_trouble.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/base/units.h"
#include "common/model/feature_level.h"

#define PROBE_LATE_NS (2 * NS_PER_SECOND)

static uint64_t age_of(uint64_t then_ns)
{
    uint64_t now_ns = clock_monotonic_ns();

    return then_ns == 0 ? RPC_NEVER_NS : now_ns > then_ns ? now_ns - then_ns : 0;
}

static uint8_t rpc_state_of(uint8_t state)
{
    switch ((enum store_state)state) {
    case STORE_STATE_NONE:
        return RPC_STORE_NONE;
    case STORE_STARTING:
        return RPC_STORE_STARTING;
    case STORE_WAITING:
        return RPC_STORE_WAITING;
    case STORE_RUNNING:
        return RPC_STORE_RUNNING;
    case STORE_FAILED:
    case STORE_NEEDS_OPERATOR:
        return RPC_STORE_FAILED;
    }
    return RPC_STORE_NONE;
}

static uint8_t rpc_role_of(uint8_t raft_state)
{
    switch ((enum store_raft_state)raft_state) {
    case STORE_RAFT_FOLLOWER:
        return RPC_ROLE_FOLLOWER;
    case STORE_RAFT_CANDIDATE:
        return RPC_ROLE_CANDIDATE;
    case STORE_RAFT_LEADER:
        return RPC_ROLE_LEADER;
    case STORE_RAFT_NONE:
        break;
    }
    return RPC_ROLE_NONE;
}

bool agent_store_is_down(const struct agent *agent)
{
    return agent->has_status && rpc_state_of(agent->status.state) == RPC_STORE_FAILED;
}

void agent_view_store(void *user, struct rpc_store *ret_store)
{
    const struct agent *agent = user;
    const struct store_status *status = &agent->status;

    if (!agent->has_status) {
        ret_store->state = RPC_STORE_STARTING;
        ret_store->leader_age_ns = RPC_NEVER_NS;
        return;
    }
    *ret_store = (struct rpc_store){.state = rpc_state_of(status->state),
                                    .role = rpc_role_of(status->raft_state),
                                    .is_ready = status->is_ready,
                                    .leader_id = status->leader_id,
                                    .leader_age_ns = status->leader_id == status->node_id &&
                                                             status->leader_id != 0
                                                         ? 0
                                                         : age_of(status->last_leader_ns),
                                    .term = status->term,
                                    .applied_index = status->applied_index,
                                    .last_index = status->last_index,
                                    .revision = status->revision,
                                    .state_hash = status->state_hash,
                                    .free_bytes = status->free_bytes,
                                    .is_disk_full = status->is_disk_full,
                                    .is_disk_slow = status->is_disk_slow,
                                    .fsync_max_us = status->fsync_max_us,
                                    .message = status->message};
}

static const char *libraries(void)
{
    /* Versions of this build: what is loaded is of the same soname. */
    return "raft " JURY_RAFT_VERSION ",libzmq " JURY_ZMQ_VERSION ",libuv " JURY_UV_VERSION
           ",libsodium " SODIUM_VERSION_STRING ",protobuf-c " JURY_PROTOBUFC_VERSION;
}

void agent_view_node(void *user, struct rpc_node *ret_node)
{
    const struct agent *agent = user;
    struct probe_counts counts;

    ret_node->node_id = agent->is_formed ? agent->node_id : agent->config->node_id;
    ret_node->cluster_id = agent->cluster_id;
    ret_node->epoch = agent->epoch;
    memcpy(ret_node->key.bytes, agent->keys->public_key, PUBLIC_KEY_BYTES);
    ret_node->uptime_ns = clock_monotonic_ns() - agent->start_ns;
    ret_node->is_last_known_good = agent->is_last_known_good;
    ret_node->libraries = libraries();
    ret_node->feature_level = feature_level();
    endpoint_format(&agent->config->mesh_listen[0], ret_node->mesh_address);
    endpoint_format(&agent->config->raft_listen[0], ret_node->raft_address);
    ret_node->probe_sources = *agent_probe_sources(agent);
    ret_node->lacks_shared_space = agent_lacks_shared_space(agent);
    if (agent->probes != NULL) {
        probe_thread_counts(agent->probes, &counts);
        ret_node->n_probes_in_flight = (uint32_t)counts.values[PROBE_N_IN_FLIGHT];
        uint32_t capabilities = probe_thread_capabilities(agent->probes);
        bool is_half_open = (capabilities & PROBE_CAN_TCP_HALF_OPEN) != 0;
        ret_node->probe_engine = is_half_open ? "connect, packet" : "connect";
        probe_capabilities_format(capabilities, ret_node->capabilities,
                                  sizeof ret_node->capabilities);
        ret_node->half_open_problem = probe_thread_packet_problem(agent->probes);
        const struct packet_way_words way = packet_way_words(probe_thread_way(agent->probes));

        ret_node->half_open_receive = way.receive;
        ret_node->half_open_receive_reason = way.receive_why;
        ret_node->half_open_send = way.send;
        ret_node->half_open_send_reason = way.send_why;
        agent_probe_budget_view(agent, &counts, &ret_node->probe_budget);
    }
    if (agent->table != NULL) {
        ret_node->published_generation = table_writer_generation(agent->table);
    }
    if (agent->engine != NULL && engine_catalog(agent->engine) != NULL) {
        agent_table_problem(agent, &ret_node->table_problem);
    }
}

void agent_view_peer(void *user, uint64_t node_id, struct rpc_peer *ret_peer)
{
    const struct agent *agent = user;
    struct mesh_peer_status mesh;

    ret_peer->age_ns = RPC_NEVER_NS;
    ret_peer->raft_age_ns = RPC_NEVER_NS;
    if (mesh_peer_status(agent->mesh, node_id, &mesh)) {
        ret_peer->age_ns = age_of(mesh.last_heard_ns);
        ret_peer->feature_level = mesh.feature_level;
        ret_peer->lacks_shared_space = mesh.lacks_shared_space;
        ret_peer->unbuilt = mesh.unbuilt;
        ret_peer->store_is_down = mesh.store_is_down;
        ret_peer->n_received = mesh.n_received;
        ret_peer->n_dropped = mesh.n_dropped;
        str_copy(ret_peer->endpoint, sizeof ret_peer->endpoint, mesh.address);
    }
    for (uint32_t i = 0; agent->has_status && i < agent->status.n_peers; i++) {
        if (agent->status.peers[i].node_id == node_id) {
            ret_peer->raft_age_ns = age_of(agent->status.peers[i].last_contact_ns);
            ret_peer->is_restored = agent->status.peers[i].state == STORE_PEER_RESTORED;
        }
    }
}

static_assert(JURY_STATUS_FAILURES <= RPC_LISTENER_FAILURES, "each that is named has a place");

static uint8_t rpc_plane_state_of(uint8_t plane_state)
{
    switch ((enum plane_state)plane_state) {
    case PLANE_NONE:
        break;
    case PLANE_ALIVE:
        return RPC_PLANE_ALIVE;
    case PLANE_ABSENT:
        return RPC_PLANE_ABSENT;
    case PLANE_REFUSED:
        return RPC_PLANE_REFUSED;
    case PLANE_GONE:
        return RPC_PLANE_GONE;
    }
    return RPC_PLANE_NONE;
}

static uint64_t plane_age(const struct plane_view *plane)
{
    return plane->plane_state == PLANE_REFUSED ? RPC_NEVER_NS : plane->heartbeat_age_ns;
}

bool agent_view_data_plane(void *user, size_t index, struct rpc_data_plane *ret_plane)
{
    const struct agent *agent = user;

    if (agent->status_reader == NULL || index >= status_reader_n_planes(agent->status_reader)) {
        return false;
    }
    const struct plane_view *plane = status_reader_plane(agent->status_reader, index);
    ret_plane->pid = (uint32_t)plane->pid;
    ret_plane->state = rpc_plane_state_of(plane->plane_state);
    ret_plane->age_ns = plane_age(plane);
    ret_plane->problem = plane->refusal;
    ret_plane->n_failures_all = plane->n_failures_all;
    ret_plane->adopted_generation = plane->adopted_generation;
    ret_plane->flows = plane->totals.flows;
    str_copy(ret_plane->name, sizeof ret_plane->name, plane->name);
    ret_plane->n_failures = plane->n_failures;
    for (uint32_t i = 0; i < plane->n_failures; i++) {
        const struct jury_status_failure *failure = &plane->failures[i];
        /* The word is another program's: 0 or an unknown number is no reason. */
        const char *text = failure->errnum != 0 && failure->errnum <= INT_MAX
                               ? strerrordesc_np((int)failure->errnum)
                               : NULL;

        ret_plane->failures[i] =
            (struct rpc_listener_failure){.listener_id = failure->listener_id,
                                          .reason = text != NULL ? text : "it does not say why"};
    }
    return true;
}

/* --- readiness: of this node's own work, never of the backends' health --- */

static void check_cluster(const struct agent *agent, struct rpc_ready_check *check)
{
    check->is_ok = agent->is_formed;
    if (!check->is_ok) {
        errmsg_set(&check->message, 0, "%s",
                   agent->has_status && agent->status.message.text[0] != '\0'
                       ? agent->status.message.text
                       : "the store is starting");
    }
}

static void check_store(const struct agent *agent, struct rpc_ready_check *check)
{
    check->is_ok = agent->has_status && agent->status.state == STORE_RUNNING;
    if (!check->is_ok) {
        errmsg_set(&check->message, 0, "the store does not run: %s", agent->status.message.text);
    }
}

static void check_leader(const struct agent *agent, struct rpc_ready_check *check)
{
    check->is_ok = agent->has_status && agent->status.leader_id != 0;
    if (!check->is_ok) {
        errmsg_set(&check->message, 0, "no leader is known: the catalog cannot be changed");
    }
}

static void check_catalog(const struct agent *agent, struct rpc_ready_check *check)
{
    check->is_ok = agent->engine != NULL && engine_catalog(agent->engine) != NULL;
    if (!check->is_ok) {
        errmsg_set(&check->message, 0, "no catalog has been loaded");
    } else if (agent->is_last_known_good) {
        check->is_ok = false;
        errmsg_set(&check->message, 0, "serving from last-known-good, the store has given nothing");
    }
}

static void check_votes(const struct agent *agent, struct rpc_ready_check *check)
{
    check->is_ok = agent->engine != NULL &&
                   engine_votes_suffice(agent->engine, clock_monotonic_ns(), &check->message);
}

static void check_probes(const struct agent *agent, struct rpc_ready_check *check)
{
    check->is_ok = agent->probes != NULL && !atomic_load(&agent->probe_loop.is_stalled);
    if (!check->is_ok) {
        errmsg_set(&check->message, 0,
                   agent->probes == NULL ? "the probe thread does not run"
                                         : "the probe thread stands still");
    } else if (agent->engine != NULL) {
        check->is_ok = engine_probes_are_trusted(agent->engine, &check->message);
    }
}

static void check_table(const struct agent *agent, struct rpc_ready_check *check)
{
    check->is_ok = !agent_table_problem(agent, &check->message);
}

/* Whoever keeps an address here by this answer needs to know that nothing forwards any more. */
static void check_data_plane(const struct agent *agent, struct rpc_ready_check *check)
{
    size_t n = agent->status_reader == NULL ? 0 : status_reader_n_planes(agent->status_reader);
    struct plane_tally tally = {0};

    for (size_t i = 0; i < n; i++) {
        const struct plane_view *plane = status_reader_plane(agent->status_reader, i);

        plane_tally_add(&tally,
                        &(struct plane_look){.name = plane->name,
                                             .state = rpc_plane_state_of(plane->plane_state),
                                             .age_ns = plane_age(plane),
                                             .problem = plane->refusal.text});
    }
    plane_tally_check(&tally, check);
}

/* Whoever waits for this node should know that it ejects nothing; it is ready all the same. */
static void check_hold(const struct agent *agent, struct rpc_ready_check *check)
{
    char text[HOLD_TEXT_BYTES] = "";

    check->is_ok = true;
    if (agent->engine != NULL) {
        engine_say_holds(agent->engine, text);
    }
    if (text[0] != '\0') {
        errmsg_set(&check->message, 0, "%s", text);
    }
}

bool agent_view_ready(void *user, size_t index, struct rpc_ready_check *ret_check)
{
    static const struct {
        const char *name;
        void (*check)(const struct agent *agent, struct rpc_ready_check *check);
    } checks[] = {
        {"cluster", check_cluster}, {"store", check_store},           {"leader", check_leader},
        {"catalog", check_catalog}, {"votes", check_votes},           {"probes", check_probes},
        {"table", check_table},     {"data_plane", check_data_plane}, {"hold", check_hold}};

    if (index >= sizeof checks / sizeof checks[0]) {
        return false;
    }
    str_copy(ret_check->name, sizeof ret_check->name, checks[index].name);
    checks[index].check(user, ret_check);
    return true;
}

/* --- counters --- */

static const struct counter_field agent_fields[] = {
#define AGENT_FIELD(name, help) COUNTER_FIELD(struct agent_counters, name, help)
    AGENT_COUNTERS(AGENT_FIELD)
#undef AGENT_FIELD
};

static const struct counter_field store_fields[] = {
#define STORE_FIELD(name, help) COUNTER_FIELD(struct store_counters, name, help)
    STORE_COUNTERS(STORE_FIELD)
#undef STORE_FIELD
};

static const struct counter_field engine_fields[] = {
#define ENGINE_FIELD(name, help) COUNTER_FIELD(struct engine_counters, name, help)
    ENGINE_COUNTERS(ENGINE_FIELD)
#undef ENGINE_FIELD
};

#define N_FIELDS(fields) (sizeof(fields) / sizeof((fields)[0]))

void agent_counters_open(struct agent *agent)
{
    const struct counter_set refused = refusals_counters(&agent->refusals);
    const struct counter_set mesh = mesh_counter_set(agent->mesh);
    const struct counter_set rpc = rpc_server_counter_set(agent->rpc);

    counters_add(&agent->counters, &refused);
    counters_add(&agent->counters, &mesh);
    counters_add(&agent->counters, &rpc);
    counters_add(&agent->counters, &(struct counter_set){.prefix = "store",
                                                         .fields = store_fields,
                                                         .n_fields = N_FIELDS(store_fields),
                                                         .values = &agent->store_counts});
    counters_add(&agent->counters, &(struct counter_set){.prefix = "agent",
                                                         .fields = agent_fields,
                                                         .n_fields = N_FIELDS(agent_fields),
                                                         .values = &agent->counts});
}

void agent_counters_formed(struct agent *agent)
{
    counters_add(&agent->counters,
                 &(struct counter_set){.prefix = "engine",
                                       .fields = engine_fields,
                                       .n_fields = N_FIELDS(engine_fields),
                                       .values = engine_view_counters(agent->engine)});
}

void agent_view_counters(void *user, counter_emit emit, void *to)
{
    const struct agent *agent = user;
    const struct watchdog_loop *loops[] = {&agent->health_loop, &agent->probe_loop,
                                           &agent->store_loop};
    static const char *const names[] = {"health", "probe", "store"};
    struct probe_counts counts;

    counters_emit(&agent->counters, emit, to);
    const struct counter_value of_mesh[] = {
        {.name = "loop_messages",
         .label = "mesh",
         .value = agent->hub.n_messages,
         .help = "messages read from ZeroMQ sockets"},
        {.name = "loop_messages_found_late",
         .label = "mesh",
         .value = agent->hub.n_found_late,
         .help = "messages that only the second look found"},
        {.name = "zap_accepted", .value = zap_n_accepted(agent->zap), .help = "connections let in"},
    };
    for (size_t i = 0; i < sizeof of_mesh / sizeof of_mesh[0]; i++) {
        emit(to, &of_mesh[i]);
    }
    for (unsigned reason = ZAP_REFUSED_NONE + 1; reason < ZAP_REFUSED_COUNT; reason++) {
        emit(to, &(struct counter_value){
                     .name = "zap_refused",
                     .label = zap_refusal_word((enum zap_refusal_reason)reason),
                     .value = zap_n_refused(agent->zap, (enum zap_refusal_reason)reason),
                     .help = "connections refused, by reason"});
    }
    for (size_t i = 0; i < 3; i++) {
        emit(to,
             &(struct counter_value){.name = "loop_stalls",
                                     .label = names[i],
                                     .value = atomic_load(&loops[i]->n_stalls),
                                     .help = "times a loop stood still for more than a second"});
        emit(to, &(struct counter_value){.name = "loop_longest_stall_ms",
                                         .label = names[i],
                                         .value = atomic_load(&loops[i]->longest_stall_ms),
                                         .help = "longest of them",
                                         .is_gauge = true});
    }
    if (agent->probes != NULL) {
        probe_thread_counts(agent->probes, &counts);
        probe_counts_emit(&counts, emit, to);
    }
}
