/* Several RPC servers: forwarding, linearizable reads, reading one's own writes, life without a
 * leader, and one request id kept through leader kills (row 1.12).
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/rpc/rpc_internal.h"
#include "common/base/plant.h"
#include "common/wire/object.h"
#include "common/wire/unpack.h"
#include "jury/v1/config.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/rpc_world.h"

#define N_ROUNDS 100

struct fixture {
    struct rpc_world world;
    struct wire_arena arena;
};

static struct fixture *fixture_open(uint64_t seed)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    rpc_world_open(&fixture->world, 3, seed);
    wire_arena_init(&fixture->arena, 64 * 1024 * 1024);
    return fixture;
}

static void fixture_close(struct fixture *fixture)
{
    rpc_world_close(&fixture->world);
    wire_arena_close(&fixture->arena);
    free(fixture);
}

static int setup(void **state)
{
    *state = fixture_open(1);
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    return 0;
}

/* A group with one backend, whose name is its only use. */
static Jury__V1__ApplyRequest *apply_request(struct wire_arena *arena, const char *name)
{
    struct server_group group = {0};
    Jury__V1__ApplyRequest *request =
        WIRE_NEW(arena, Jury__V1__ApplyRequest, jury__v1__apply_request);

    build_group(&group, name, "10.0.0.1:80");
    request->documents = wire_alloc_array(arena, 1, sizeof(void *));
    request->documents[0] = WIRE_NEW(arena, Jury__V1__Document, jury__v1__document);
    request->documents[0]->object_case = JURY__V1__DOCUMENT__OBJECT_GROUP;
    request->documents[0]->group = wire_group_new(arena, &group);
    request->n_documents = 1;
    server_group_close(&group);
    return request;
}

static uint32_t begin_apply(struct fixture *fixture, uint64_t node_id, const char *name,
                            const uint8_t *id)
{
    struct rpc_world_ask question = {.node_id = node_id,
                                     .method = "ConfigService/Apply",
                                     .request = apply_request(&fixture->arena, name),
                                     .id = id};

    return rpc_world_call(&fixture->world, &question);
}

static uint32_t begin_get(struct fixture *fixture, uint64_t node_id, const char *name, bool stale,
                          uint64_t min_revision)
{
    Jury__V1__GetGroupRequest *get =
        WIRE_NEW(&fixture->arena, Jury__V1__GetGroupRequest, jury__v1__get_group_request);

    get->name = wire_text(&fixture->arena, name);
    struct rpc_world_ask question = {.node_id = node_id,
                                     .method = "GroupService/GetGroup",
                                     .request = get,
                                     .stale = stale,
                                     .min_revision = min_revision};
    return rpc_world_call(&fixture->world, &question);
}

static uint64_t ms_since(const struct rpc_world_reply *reply, uint64_t start_ns)
{
    return (reply->at_ns - start_ns) / RPC_WORLD_MS;
}

/* --- forwarding --- */

static void a_follower_forwards_a_write_once_with_the_callers_identity(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;
    const struct rpc_world_reply *reply =
        rpc_world_wait(world, begin_apply(fixture, 2, "web", NULL), 1000);

    assert_int_equal(reply->code, 0);
    assert_int_equal(reply->node_id, 1); /* the leader's answer, as it is */
    assert_int_equal(reply->revision, 2);
    assert_int_equal(world->n_forwarded, 1);
    assert_int_equal(world->n_effective, 1);
    assert_int_equal(world->nodes[2].server->counters.forwarded, 1);

    /* The leader looks at the role again: the forwarding node is not the judge. */
    struct rpc_world_ask question = {.node_id = 2,
                                     .role = KEY_ROLE_VIEWER,
                                     .method = "ConfigService/Apply",
                                     .request = apply_request(&fixture->arena, "web2")};
    reply = rpc_world_wait(world, rpc_world_call(world, &question), 1000);
    assert_int_equal(reply->code, ERR_DENIED);
    assert_int_equal(world->n_forwarded, 1);
}

/* A call that another node forwarded, to node 2, which does not lead. Returns its code. */
static int forward_to_follower(struct fixture *fixture, const char *method)
{
    struct rpc_world *world = &fixture->world;
    struct rpc_identity identity = {
        .caller = RPC_CALLER_PEER, .role = KEY_ROLE_ADMIN, .name = "alice"};
    struct rpc_route route = {.socket = world->n_calls++};
    struct rpc_frames frames = {0};
    uint8_t id[REQUEST_ID_BYTES] = {1};
    Jury__V1__Request *request = WIRE_NEW(&fixture->arena, Jury__V1__Request, jury__v1__request);

    request->api_version = 1;
    request->method = wire_text(&fixture->arena, method);
    request->deadline_ms = 1000;
    request->request_id = (ProtobufCBinaryData){sizeof id, id};
    frames.envelope = wire_pack(&request->base, &fixture->arena, &frames.n_envelope_bytes);
    if (strstr(method, "Apply") != NULL) {
        frames.payload = wire_pack(&apply_request(&fixture->arena, "web")->base, &fixture->arena,
                                   &frames.n_payload_bytes);
    }
    rpc_server_handle(world->nodes[2].server, world->now_ns, &identity, &route, &frames);
    rpc_world_run(world, 100);
    return world->replies[route.socket].code;
}

static void a_forwarded_call_is_never_forwarded_on(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(forward_to_follower(fixture, "jury.v1.ConfigService/Apply"), ERR_NOTLEADER);
    assert_int_equal(forward_to_follower(fixture, "jury.v1.ClusterService/ReadBarrier"),
                     ERR_NOTLEADER);
    assert_int_equal(fixture->world.n_forwarded, 0);
}

static void an_answer_from_another_node_than_the_asked_one_is_ignored(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;
    uint32_t call = begin_apply(fixture, 2, "web", NULL);
    struct rpc_server *server = world->nodes[2].server;
    uint64_t forward_id = 0;
    struct rpc_frames frames = {.envelope = (const uint8_t *)"", .n_envelope_bytes = 0};

    for (size_t i = 0; i < LIMIT_RPC_OUTSTANDING; i++) {
        forward_id = server->calls[i].stage == CALL_FORWARD ? server->calls[i].cookie : forward_id;
    }
    assert_int_not_equal(forward_id, 0);
    rpc_server_forward_answer(server, world->now_ns, 3, forward_id, &frames);
    assert_int_equal(server->n_calls, 1);
    assert_int_equal(rpc_world_wait(world, call, 1000)->code, 0);
}

/* --- reads --- */

static void a_read_on_a_lagging_follower_shows_what_was_committed_before_it(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;

    world->nodes[3].engine_lag_ns = 200 * RPC_WORLD_MS;
    assert_int_equal(rpc_world_wait(world, begin_apply(fixture, 1, "web", NULL), 1000)->code, 0);
    assert_int_equal(catalog_revision(engine_catalog(world->nodes[3].engine)), 1);

    uint32_t stale = begin_get(fixture, 3, "web", true, 0);
    uint32_t fresh = begin_get(fixture, 3, "web", false, 0);
    const struct rpc_world_reply *reply = rpc_world_wait(world, stale, 1);
    assert_int_equal(reply->code, ERR_NOTFOUND);
    reply = rpc_world_wait(world, fresh, 1000);
    assert_int_equal(reply->code, 0);
    assert_int_equal(reply->revision, 2);
    assert_int_equal(reply->node_id, 3);
    assert_false(reply->is_stale);
}

static void a_client_reads_its_own_write_on_every_node(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;

    world->nodes[2].engine_lag_ns = 300 * RPC_WORLD_MS;
    uint64_t revision = rpc_world_wait(world, begin_apply(fixture, 3, "web", NULL), 1000)->revision;
    /* A local method, which asks no leader, waits for the revision as well. */
    struct rpc_world_ask question = {
        .node_id = 2, .method = "VerdictService/ListVerdicts", .min_revision = revision};
    const struct rpc_world_reply *reply =
        rpc_world_wait(world, rpc_world_call(world, &question), 1000);
    assert_int_equal(reply->code, 0);
    assert_int_equal(reply->revision, revision);
}

static void a_node_that_stays_behind_says_so_after_a_second(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;

    world->nodes[3].engine_lag_ns = 10000 * RPC_WORLD_MS;
    uint64_t revision = rpc_world_wait(world, begin_apply(fixture, 1, "web", NULL), 1000)->revision;
    uint64_t start_ns = world->now_ns;
    const struct rpc_world_reply *reply =
        rpc_world_wait(world, begin_get(fixture, 3, "web", false, revision), 2000);
    assert_int_equal(reply->code, ERR_BUSY);
    assert_string_equal(reply->message, "this node has revision 1 and not yet 2: ask another node, "
                                        "or with stale");
    assert_in_range(ms_since(reply, start_ns), 1000, 1100);

    /* A local method answers and says that it is behind. */
    struct rpc_world_ask question = {
        .node_id = 3, .method = "VerdictService/ListVerdicts", .min_revision = revision};
    reply = rpc_world_wait(world, rpc_world_call(world, &question), 2000);
    assert_int_equal(reply->code, 0);
    assert_true(reply->is_stale);
    assert_int_equal(reply->revision, 1);
}

static void reads_that_wait_together_share_one_barrier(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;
    uint32_t calls[40];

    for (size_t i = 0; i < 40; i++) {
        calls[i] = begin_get(fixture, i % 2 == 0 ? 1 : 2, "web", false, 0);
    }
    for (size_t i = 0; i < 40; i++) {
        assert_int_equal(rpc_world_wait(world, calls[i], 1000)->code, ERR_NOTFOUND);
    }
    /* First calls: one here, one forwarded; then one for the others of each node; and none more. */
    assert_in_range(world->n_barriers, 2, 4);
}

/* --- without a leader --- */

static void without_a_leader_writes_and_reads_fail_within_a_second_and_name_the_peers(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;

    rpc_world_set_leader(world, 0);
    rpc_world_kill(world, 3);
    uint64_t start_ns = world->now_ns;
    uint32_t write = begin_apply(fixture, 2, "web", NULL);
    uint32_t read = begin_get(fixture, 2, "web", false, 0);
    uint32_t stale = begin_get(fixture, 2, "web", true, 0);
    const struct rpc_world_reply *reply = rpc_world_wait(world, write, 1000);
    assert_int_equal(reply->code, ERR_NOLEADER);
    assert_string_equal(reply->message,
                        "no leader: nothing was changed; this is node 2, node 1 was heard 200ms "
                        "ago, node 3 was never heard");
    assert_in_range(ms_since(reply, start_ns), 800, 999);
    reply = rpc_world_wait(world, read, 1000);
    assert_int_equal(reply->code, ERR_NOLEADER);
    assert_string_equal(reply->message,
                        "no leader: the newest committed state cannot be known; this is node 2, "
                        "node 1 was heard 200ms ago, node 3 was never heard");
    assert_in_range(ms_since(reply, start_ns), 800, 999);
    reply = rpc_world_wait(world, stale, 1);
    assert_int_equal(reply->code, ERR_NOTFOUND);
    assert_int_equal(ms_since(reply, start_ns), 0);
    assert_int_equal(world->n_log, 1);
}

/* It said "nothing was changed", and the next leader carried it out. */
static bool is_called_undone(struct fixture *fixture, uint64_t through)
{
    struct rpc_world *world = &fixture->world;

    rpc_world_set_leader(world, 1);
    world->commit_ns_min = world->commit_ns_max = 5000 * RPC_WORLD_MS;
    uint32_t write = begin_apply(fixture, through, "web", NULL);
    rpc_world_run(world, 100); /* it is in the leader's log */
    rpc_world_set_leader(world, 0);
    const struct rpc_world_reply *reply = rpc_world_wait(world, write, 2000);
    assert_int_equal(reply->code, ERR_NOLEADER);
    bool is_undone = strstr(reply->message, "nothing was changed") != NULL;
    bool may_be_made = strstr(reply->message, "it may still be made: ask again with the same "
                                              "request id") != NULL;
    assert_true(is_undone != may_be_made);

    /* One that nobody had is another matter. */
    reply = rpc_world_wait(world, begin_apply(fixture, through, "web", NULL), 2000);
    assert_non_null(strstr(reply->message, "no leader: nothing was changed"));
    return is_undone;
}

static void a_change_that_a_leader_had_is_not_called_undone(void **state)
{
    assert_false(is_called_undone(*state, 1)); /* its own log has it */
    assert_false(is_called_undone(*state, 2)); /* it was forwarded */
}

static void a_stale_answer_says_so_with_its_revision(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;

    assert_int_equal(rpc_world_wait(world, begin_apply(fixture, 1, "web", NULL), 1000)->code, 0);
    rpc_world_run(world, 100);
    world->nodes[2].store_is_off = true;
    const struct rpc_world_reply *reply =
        rpc_world_wait(world, begin_get(fixture, 2, "web", true, 0), 1);
    assert_int_equal(reply->code, 0);
    assert_true(reply->is_stale);
    assert_int_equal(reply->revision, 2);
}

static void an_election_of_half_a_second_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;

    rpc_world_set_leader(world, 0);
    uint32_t write = begin_apply(fixture, 2, "web", NULL);
    uint32_t read = begin_get(fixture, 3, "web", false, 0);
    rpc_world_run(world, 500);
    rpc_world_set_leader(world, 3);
    assert_int_equal(rpc_world_wait(world, write, 500)->code, 0);
    assert_int_equal(rpc_world_wait(world, read, 500)->n_times, 1);
    rpc_world_run(world, 1000);
    assert_int_equal(world->replies[write].n_times, 1);
}

static void a_leader_whose_answer_never_comes_is_asked_again_until_the_deadline(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;

    world->nodes[1].is_cut = true;
    uint64_t start_ns = world->now_ns;
    const struct rpc_world_reply *reply =
        rpc_world_wait(world, begin_apply(fixture, 2, "web", NULL), 6000);
    assert_int_equal(reply->code, ERR_TIMEOUT);
    assert_int_equal(ms_since(reply, start_ns), 5000);
    assert_int_equal(world->n_forwarded, 2);

    /* The cut ends before the second asking: it is done. */
    uint32_t call = begin_apply(fixture, 2, "web", NULL);
    rpc_world_run(world, 1000);
    world->nodes[1].is_cut = false;
    assert_int_equal(rpc_world_wait(world, call, 3000)->code, 0);
    assert_int_equal(world->n_effective, 1);
}

/* Its disk takes nine seconds for a write: the answer to the first asking is one, though it was
 * asked again meanwhile, and what was asked is done once. */
static void a_leader_that_answers_late_is_heard(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;

    world->commit_ns_min = world->commit_ns_max = 9500 * RPC_WORLD_MS;
    uint64_t start_ns = world->now_ns;
    size_t n_log = world->n_log;
    struct rpc_world_ask question = {.node_id = 2,
                                     .method = "ConfigService/Apply",
                                     .request = apply_request(&fixture->arena, "web"),
                                     .deadline_ms = 30000};
    uint32_t write = rpc_world_call(world, &question);
    const struct rpc_world_reply *reply = rpc_world_wait(world, write, 12000);
    assert_int_equal(reply->code, 0);
    assert_in_range(ms_since(reply, start_ns), 9500, 9999);
    assert_int_equal(world->n_forwarded, 4); /* again after 3, 6 and 9 s */
    assert_int_equal(world->n_log, n_log + 1);

    uint64_t n_barriers = world->n_barriers;
    start_ns = world->now_ns;
    question.method = "GroupService/ListGroups";
    question.request = NULL;
    uint32_t read = rpc_world_call(world, &question);
    reply = rpc_world_wait(world, read, 12000);
    assert_int_equal(reply->code, 0);
    assert_in_range(ms_since(reply, start_ns), 9500, 9999);
    assert_int_equal(world->n_barriers, n_barriers + 1);

    rpc_world_run(world, 40000);
    assert_int_equal(world->replies[write].n_times, 1);
    assert_int_equal(world->replies[read].n_times, 1);
    assert_int_equal(world->n_effective, 1);
}

static void a_leader_that_cannot_be_reached_from_here_is_named(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world *world = &fixture->world;

    world->nodes[2].forward_error = ERR_UNREACHABLE;
    uint64_t start_ns = world->now_ns;
    const struct rpc_world_reply *reply =
        rpc_world_wait(world, begin_apply(fixture, 2, "web", NULL), 2000);
    assert_int_equal(reply->code, ERR_NOLEADER);
    assert_non_null(strstr(reply->message, "node 1 leads and cannot be reached from here"));
    assert_in_range(ms_since(reply, start_ns), 800, 999);
}

/* --- one request id through leader kills --- */

/* What a client does: asks again under its id, on the next node, until it has an answer. */
static const struct rpc_world_reply *ask_until_done(struct fixture *fixture, uint32_t first_call,
                                                    const char *name, const uint8_t *id)
{
    struct rpc_world *world = &fixture->world;
    uint32_t call = first_call;
    uint64_t node_id = 1;

    for (int i = 0; i < 8; i++) {
        for (int ms = 0; ms < 1500 && !world->replies[call].has_come; ms++) {
            rpc_world_run(world, 1);
        }
        if (world->replies[call].has_come && world->replies[call].code != ERR_NOLEADER) {
            break;
        }
        do {
            node_id = node_id % 3 + 1;
        } while (!world->nodes[node_id].is_up);
        call = begin_apply(fixture, node_id, name, id);
    }
    assert_true(world->replies[call].has_come);
    return &world->replies[call];
}

/* The leader goes between proposal and answer in one of the ways that there are. */
static void lose_leader(struct rpc_world *world)
{
    uint64_t leader_id = world->leader_id;
    uint64_t next_id = leader_id % 3 + 1;
    bool dies = prng_below(&world->prng, 3) != 0;
    bool is_committed = prng_below(&world->prng, 2) == 0;

    for (int i = 0; i < 20 && rpc_world_n_proposals(world) == 0; i++) {
        rpc_world_run(world, 1);
    }
    if (is_committed) {
        rpc_world_commit(world, true);
    }
    if (dies) {
        rpc_world_kill(world, leader_id);
    } else {
        rpc_world_set_leader(world, 0);
    }
    rpc_world_run(world, prng_below(&world->prng, 1200));
    rpc_world_set_leader(world, next_id);
    if (dies && prng_below(&world->prng, 2) == 0) {
        rpc_world_start(world, leader_id);
    }
}

/* Later, on any node, and after other writes: the same answer. */
static void ask_everywhere(struct fixture *fixture, const uint8_t *id,
                           const struct rpc_world_reply *first)
{
    struct rpc_world *world = &fixture->world;
    const struct rpc_world_reply *other =
        rpc_world_wait(world, begin_apply(fixture, world->leader_id, "other", NULL), 3000);

    assert_int_equal(other->code, 0);
    for (uint64_t node = 1; node <= 3; node++) {
        if (!world->nodes[node].is_up) {
            continue;
        }
        const struct rpc_world_reply *again =
            rpc_world_wait(world, begin_apply(fixture, node, "web", id), 3000);
        assert_int_equal(again->code, 0);
        assert_int_equal(again->revision, first->revision);
        assert_int_equal(again->n_payload_bytes, first->n_payload_bytes);
        assert_memory_equal(again->payload, first->payload, first->n_payload_bytes);
    }
    assert_int_equal(world->n_effective, 2);
}

/* One round. Returns how often the write took effect. */
static uint64_t run_round(uint64_t seed, bool asks_everywhere, bool *ret_asked_once)
{
    struct fixture *fixture = fixture_open(seed);
    struct rpc_world *world = &fixture->world;
    uint8_t id[REQUEST_ID_BYTES] = {0x1d};
    uint64_t node_id = 1 + prng_below(&world->prng, 3);

    memcpy(id + 8, &seed, sizeof seed);
    world->commit_ns_min = world->commit_ns_max = 60000 * RPC_WORLD_MS; /* by hand */
    uint32_t call = begin_apply(fixture, node_id, "web", id);
    lose_leader(world);
    world->commit_ns_min = 2 * RPC_WORLD_MS;
    world->commit_ns_max = 20 * RPC_WORLD_MS;
    const struct rpc_world_reply *first = ask_until_done(fixture, call, "web", id);
    *ret_asked_once = first == &world->replies[call];
    assert_string_equal(first->message, "");
    assert_int_equal(first->code, 0);
    uint64_t n_applied = world->n_effective;
    if (asks_everywhere && n_applied == 1) {
        ask_everywhere(fixture, id, first);
    }
    fixture_close(fixture);
    return n_applied;
}

static void one_request_id_through_a_leader_kill_is_applied_once_with_the_same_answer(void **state)
{
    unsigned n_asked_once = 0;

    (void)state;
    for (uint64_t seed = 0; seed < N_ROUNDS; seed++) {
        bool asked_once;
        uint64_t n_applied = run_round(seed, true, &asked_once);

        if (n_applied != 1) {
            fail_msg("seed %u: applied %u times", (unsigned)seed, (unsigned)n_applied);
        }
        n_asked_once += asked_once;
    }
    print_message("%d rounds, %u answered without asking again\n", N_ROUNDS, n_asked_once);
}

#ifdef JURY_PLANTS
static void a_server_that_makes_new_ids_is_caught(void **state)
{
    unsigned n_twice = 0;

    (void)state;
    plant_set("rpc-new-id-on-retry");
    for (uint64_t seed = 0; seed < N_ROUNDS; seed++) {
        bool asked_once;

        n_twice += run_round(seed, false, &asked_once) > 1;
    }
    plant_set(NULL);
    print_message("%u of %d rounds applied twice\n", n_twice, N_ROUNDS);
    assert_true(n_twice > 0);
}

static void a_server_that_calls_a_given_change_undone_is_caught(void **state)
{
    plant_set("rpc-given-is-nothing");
    bool is_undone = is_called_undone(*state, 1);
    plant_set(NULL);
    assert_true(is_undone);
}

static void a_node_that_forwards_forwarded_calls_is_caught(void **state)
{
    struct fixture *fixture = *state;

    plant_set("rpc-forward-loop");
    forward_to_follower(fixture, "jury.v1.ConfigService/Apply");
    plant_set(NULL);
    assert_true(fixture->world.n_forwarded > 0);
}
#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_follower_forwards_a_write_once_with_the_callers_identity),
        TEST(a_forwarded_call_is_never_forwarded_on),
        TEST(an_answer_from_another_node_than_the_asked_one_is_ignored),
        TEST(a_read_on_a_lagging_follower_shows_what_was_committed_before_it),
        TEST(a_client_reads_its_own_write_on_every_node),
        TEST(a_node_that_stays_behind_says_so_after_a_second),
        TEST(reads_that_wait_together_share_one_barrier),
        TEST(without_a_leader_writes_and_reads_fail_within_a_second_and_name_the_peers),
        TEST(a_change_that_a_leader_had_is_not_called_undone),
        TEST(a_stale_answer_says_so_with_its_revision),
        TEST(an_election_of_half_a_second_is_waited_for),
        TEST(a_leader_whose_answer_never_comes_is_asked_again_until_the_deadline),
        TEST(a_leader_that_answers_late_is_heard),
        TEST(a_leader_that_cannot_be_reached_from_here_is_named),
        cmocka_unit_test(one_request_id_through_a_leader_kill_is_applied_once_with_the_same_answer),
#ifdef JURY_PLANTS
        cmocka_unit_test(a_server_that_makes_new_ids_is_caught),
        TEST(a_node_that_forwards_forwarded_calls_is_caught),
        TEST(a_server_that_calls_a_given_change_undone_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
