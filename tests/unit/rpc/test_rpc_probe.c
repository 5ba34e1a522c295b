/* Probes on demand over RPC: which nodes are asked, what each error comes to, and when the answer
 * comes. What a probe does is shown by tests/integration/probe_now.py. */
#include <inttypes.h>

#include "agent/core/probe_trace.h"
#include "agent/rpc/rpc_internal.h"
#include "jury/v1/probe.pb-c.h"
#include "tests/unit/rpc/rpc_fixture.h"

#define METHOD "ProbeService/ProbeBackend"

static Jury__V1__ProbeBackendRequest *request_of(struct fixture *fixture, const char *backend)
{
    Jury__V1__ProbeBackendRequest *request =
        WIRE_NEW(&fixture->arena, Jury__V1__ProbeBackendRequest, jury__v1__probe_backend_request);

    request->backend = ref(fixture, "web", backend);
    return request;
}

static void add_node(struct fixture *fixture, Jury__V1__ProbeBackendRequest *request, uint64_t id)
{
    if (request->node_ids == NULL) {
        request->node_ids = wire_alloc_array(&fixture->arena, 80, sizeof *request->node_ids);
    }
    request->node_ids[request->n_node_ids++] = id;
}

static uint32_t begin(struct fixture *fixture, const Jury__V1__ProbeBackendRequest *request)
{
    const struct rpc_world_ask question = {.node_id = 1,
                                           .method = METHOD,
                                           .request = request,
                                           .role = KEY_ROLE_OPERATOR,
                                           .deadline_ms = 20000};

    return rpc_world_call(&fixture->world, &question);
}

/* A node's probe has ended, as the probe's thread would tell. */
static void end_probe(struct fixture *fixture, uint64_t node_id, enum probe_reason reason)
{
    struct rpc_world_node *node = &fixture->world.nodes[node_id];
    struct probe_report report = {.engine = "connect"};

    report.result = (struct probe_result){.reason = (uint8_t)reason,
                                          .probe_class = (uint8_t)probe_reason_class(reason),
                                          .start_ns = fixture->world.now_ns,
                                          .end_ns = fixture->world.now_ns + RPC_WORLD_MS};
    (void)addr_parse("10.9.9.9", &report.trace.source.addr, NULL);
    report.trace.source.port = 4000;
    probe_trace_add(&report.trace, fixture->world.now_ns, PROBE_STEP_SYN_SENT);
    rpc_server_probed(node->server, fixture->world.now_ns, node->probe_cookie, &report);
}

static const Jury__V1__ProbeBackendResponse *answer_of(struct fixture *fixture,
                                                       const struct rpc_world_reply *reply)
{
    assert_string_equal(reply->message, "");
    return (const Jury__V1__ProbeBackendResponse *)rpc_world_message(
        reply, &jury__v1__probe_backend_response__descriptor, &fixture->arena);
}

static void the_asked_node_probes_what_the_check_says(void **state)
{
    struct fixture *fixture = *state;

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80");
    uint32_t call = begin(fixture, request_of(fixture, "10.0.0.2:80"));
    const struct rpc_world_node *node = &fixture->world.nodes[1];
    assert_int_equal(node->n_probes, 1);
    assert_int_equal(node->probe_target.definition.to.port, 80);
    assert_int_equal(node->probe_target.definition.check->timeout_ms, 5000);

    rpc_world_run(&fixture->world, 100);
    assert_false(fixture->world.replies[call].has_come);
    end_probe(fixture, 1, REASON_CONNECT_FAILED);
    const Jury__V1__ProbeBackendResponse *answer =
        answer_of(fixture, rpc_world_wait(&fixture->world, call, 100));
    assert_int_equal(answer->n_probes, 1);
    assert_int_equal(answer->probes[0]->node_id, 1);
    assert_string_equal(answer->probes[0]->address, "10.0.0.2");
    assert_string_equal(answer->probes[0]->source_address, "10.9.9.9");
    assert_int_equal(answer->probes[0]->outcome, JURY__V1__PROBE_OUTCOME__PROBE_OUTCOME_FAIL);
    assert_int_equal(answer->probes[0]->n_steps, 1);
}

static void all_nodes_probe_at_once_and_are_told_by_id(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__ProbeBackendRequest *request = request_of(fixture, "10.0.0.1:80");

    apply(fixture, "web", "10.0.0.1:80");
    rpc_world_run(&fixture->world, 1000);
    request->all_nodes = true;
    uint32_t call = begin(fixture, request);
    rpc_world_run(&fixture->world, 100);
    for (uint64_t id = fixture->world.n_nodes; id >= 1; id--) {
        assert_int_equal(fixture->world.nodes[id].n_probes, 1);
        assert_false(fixture->world.replies[call].has_come);
        end_probe(fixture, id, id == 2 ? REASON_CONNECT_TIMEOUT : REASON_OK);
    }
    const Jury__V1__ProbeBackendResponse *answer =
        answer_of(fixture, rpc_world_wait(&fixture->world, call, 100));
    assert_int_equal(answer->n_probes, fixture->world.n_nodes);
    for (size_t i = 0; i < answer->n_probes; i++) {
        assert_int_equal(answer->probes[i]->node_id, i + 1);
        assert_int_equal(answer->probes[i]->reason,
                         i + 1 == 2 ? JURY__V1__PROBE_REASON__PROBE_REASON_CONNECT_TIMEOUT
                                    : JURY__V1__PROBE_REASON__PROBE_REASON_OK);
    }
}

static void a_node_that_does_not_answer_is_a_row_among_several(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__ProbeBackendRequest *request = request_of(fixture, "10.0.0.1:80");

    apply(fixture, "web", "10.0.0.1:80");
    rpc_world_run(&fixture->world, 1000);
    add_node(fixture, request, 3);
    add_node(fixture, request, 1);
    fixture->world.nodes[3].is_cut = true;
    uint32_t call = begin(fixture, request);
    end_probe(fixture, 1, REASON_OK);
    uint64_t start_ns = fixture->world.now_ns;
    const struct rpc_world_reply *reply = rpc_world_wait(&fixture->world, call, 20000);
    const Jury__V1__ProbeBackendResponse *answer = answer_of(fixture, reply);
    assert_null(answer->probes[0]->error);
    assert_non_null(answer->probes[1]->error);
    assert_string_equal(answer->probes[1]->error->reason, "DEADLINE_PASSED");
    /* The timeout of the check and a second. */
    assert_in_range(reply->at_ns - start_ns, 5900 * RPC_WORLD_MS, 6100 * RPC_WORLD_MS);
}

static void alone_its_error_is_the_calls(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__ProbeBackendRequest *request = request_of(fixture, "10.0.0.1:80");

    apply(fixture, "web", "10.0.0.1:80");
    rpc_world_run(&fixture->world, 1000);
    add_node(fixture, request, 2);
    fixture->world.nodes[2].probe_error = ERR_BUSY;
    const struct rpc_world_reply *reply =
        rpc_world_wait(&fixture->world, begin(fixture, request), 100);
    assert_int_equal(reply->code, ERR_BUSY);
    assert_string_equal(reply->message, "node 2: the test says so");

    fixture->world.nodes[1].forward_error = ERR_UNREACHABLE;
    reply = rpc_world_wait(&fixture->world, begin(fixture, request), 100);
    assert_int_equal(reply->code, ERR_UNREACHABLE);
    assert_string_equal(reply->message, "node 2: it cannot be reached from the asked node");
}

static void check_refusal(struct fixture *fixture, const Jury__V1__ProbeBackendRequest *request,
                          int code, const char *message)
{
    const struct rpc_world_reply *reply =
        rpc_world_wait(&fixture->world, begin(fixture, request), 100);

    assert_int_equal(reply->code, code);
    assert_string_equal(reply->message, message);
    assert_int_equal(fixture->world.nodes[1].n_probes, 0);
}

static void what_cannot_be_is_refused_before_anything_is_sent(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__ProbeBackendRequest *request;

    apply(fixture, "web", "10.0.0.1:80");
    check_refusal(fixture, request_of(fixture, "10.0.0.9:80"), ERR_NOTFOUND,
                  "backend 10.0.0.9:80 of server group \"web\" does not exist");
    request = request_of(fixture, "10.0.0.1:80");
    request->backend->group = wire_text(&fixture->arena, "shop");
    check_refusal(fixture, request, ERR_NOTFOUND, "server group \"shop\" does not exist");
    request = request_of(fixture, "10.0.0.1:80");
    add_node(fixture, request, 77);
    check_refusal(fixture, request, ERR_NOTFOUND, "node 77 is no member");
    request = request_of(fixture, "10.0.0.1:80");
    add_node(fixture, request, 1);
    add_node(fixture, request, 1);
    check_refusal(fixture, request, ERR_INVALID, "node 1 is named twice");
    request->all_nodes = true;
    check_refusal(fixture, request, ERR_INVALID, "all_nodes and node_ids exclude each other");

    const struct rpc_world_reply *reply =
        ask(fixture, METHOD, request_of(fixture, "10.0.0.1:80"), KEY_ROLE_VIEWER);
    assert_int_equal(reply->code, ERR_DENIED);
    struct rpc_world_ask question = {.node_id = 1,
                                     .method = METHOD,
                                     .request = request_of(fixture, "10.0.0.1:80"),
                                     .deadline_ms = 6000};
    reply = rpc_world_wait(&fixture->world, rpc_world_call(&fixture->world, &question), 100);
    assert_int_equal(reply->code, ERR_INVALID);
    assert_string_equal(reply->message,
                        "the check's timeout is 5000 ms, so the call needs a deadline of 6100 ms "
                        "or more, got 6000");
}

static int setup_three(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    rpc_world_open(&fixture->world, 3, 1);
    wire_arena_init(&fixture->arena, 256 * 1024 * 1024);
    *state = fixture;
    return 0;
}

/* One of several checks is named, and each node probes by that one. */
static void of_several_checks_one_is_named(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__ApplyRequest *put = apply_request(&fixture->arena, "web", "10.0.0.1:80");
    struct server_group group;

    build_group(&group, "web", "10.0.0.1:80");
    build_check(&group, "port", CHECK_TYPE_TCP, 0, CHECK_LOCAL);
    build_check(&group, "page", CHECK_TYPE_HTTP, 81, CHECK_LOCAL);
    build_check(&group, "db", CHECK_TYPE_TCP, 5432, CHECK_DEPENDENCY);
    put->documents[0]->group = wire_group_new(&fixture->arena, &group);
    server_group_close(&group);
    assert_string_equal(ask(fixture, "ConfigService/Apply", put, KEY_ROLE_ADMIN)->message, "");
    rpc_world_run(&fixture->world, 1000);

    Jury__V1__ProbeBackendRequest *request = request_of(fixture, "10.0.0.1:80");
    check_refusal(fixture, request, ERR_INVALID,
                  "server group \"web\" has several checks: name one, port, page or db");
    request->check = wire_text(&fixture->arena, "web");
    check_refusal(fixture, request, ERR_NOTFOUND,
                  "server group \"web\" has no check \"web\", it has port, page or db");
    request->check = wire_text(&fixture->arena, "page");
    request->all_nodes = true;
    begin(fixture, request);
    rpc_world_run(&fixture->world, 100);
    for (uint64_t id = 1; id <= 3; id++) {
        const struct target_definition *definition =
            &fixture->world.nodes[id].probe_target.definition;

        assert_int_equal(fixture->world.nodes[id].n_probes, 1);
        assert_int_equal(definition->check->type, CHECK_TYPE_HTTP);
        assert_int_equal(definition->to.port, 81);
    }

    apply(fixture, "one", "10.0.0.1:80");
    request->backend->group = wire_text(&fixture->arena, "one");
    const struct rpc_world_reply *reply =
        rpc_world_wait(&fixture->world, begin(fixture, request), 100);
    assert_int_equal(reply->code, ERR_NOTFOUND);
    assert_string_equal(reply->message,
                        "server group \"one\" has one check, which has no name: leave it out");
}

#define THREE_NODES(test) cmocka_unit_test_setup_teardown(test, setup_three, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        THREE_NODES(the_asked_node_probes_what_the_check_says),
        THREE_NODES(of_several_checks_one_is_named),
        THREE_NODES(all_nodes_probe_at_once_and_are_told_by_id),
        THREE_NODES(a_node_that_does_not_answer_is_a_row_among_several),
        THREE_NODES(alone_its_error_is_the_calls),
        THREE_NODES(what_cannot_be_is_refused_before_anything_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
