/* Writes become revisions: what is refused is named and changes nothing. */
#include "jury/v1/cluster.pb-c.h"
#include "tests/lib/random_objects.h"
#include "tests/unit/rpc/rpc_fixture.h"

static void a_refused_document_is_named_by_its_index_and_nothing_is_applied(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__ApplyRequest *request = apply_request(&fixture->arena, "web", "10.0.0.1:80");

    /* Bad in shape: told by the node that takes it. */
    request->documents[request->n_documents++] =
        group_document(&fixture->arena, "web2", "10.0.0.2:80");
    request->documents[1]->group->backends[0]->weight = 101;
    const struct rpc_world_reply *reply =
        ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);
    assert_int_equal(reply->code, ERR_INVALID);
    assert_string_equal(reply->document_index, "1");
    assert_string_equal(reply->message, "server group \"web2\": backend \"10.0.0.2\" port 80: "
                                        "weight must be 0..100, got 101");

    /* Bad against the catalog: told by the leader's check. */
    request->documents[1] = group_document(&fixture->arena, "web2", "8.8.8.8:80");
    reply = ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);
    assert_int_equal(reply->code, ERR_INVALID);
    assert_string_equal(reply->document_index, "1");
    assert_non_null(strstr(reply->message, "8.8.8.8"));
    assert_int_equal(rpc_world_revision(&fixture->world, 1), 1);

    Jury__V1__ApplyRequest *empty =
        WIRE_NEW(&fixture->arena, Jury__V1__ApplyRequest, jury__v1__apply_request);
    reply = ask(fixture, "ConfigService/Apply", empty, KEY_ROLE_ADMIN);
    assert_string_equal(reply->message, "documents must be 1..12000, got 0");
    assert_string_equal(reply->document_index, "");
}

static void a_dry_run_says_what_each_document_would_do_and_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct wire_arena *arena = &fixture->arena;

    apply(fixture, "same", "10.0.0.1:80");
    apply(fixture, "other", "10.0.0.2:80");
    uint64_t revision = rpc_world_revision(&fixture->world, 1);
    Jury__V1__ApplyRequest *request = apply_request(arena, "same", "10.0.0.1:80");
    request->documents[request->n_documents++] =
        group_document(arena, "other", "10.0.0.2:80 10.0.0.3:80");
    request->documents[request->n_documents++] = group_document(arena, "new", "10.0.0.4:80");
    request->dry_run = true;
    const struct rpc_world_reply *reply =
        ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);
    Jury__V1__ApplyResponse *response =
        MESSAGE(fixture, reply, Jury__V1__ApplyResponse, jury__v1__apply_response);

    assert_int_equal(response->n_results, 3);
    assert_int_equal(response->results[0]->action, JURY__V1__APPLY_ACTION__APPLY_ACTION_NOTHING);
    assert_int_equal(response->results[1]->action, JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE);
    assert_int_equal(response->results[2]->action, JURY__V1__APPLY_ACTION__APPLY_ACTION_CREATE);
    assert_string_equal(response->results[2]->name, "new");
    assert_int_equal(rpc_world_revision(&fixture->world, 1), revision);

    request->documents[2] = group_document(arena, "new", "8.8.8.8:80");
    reply = ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);
    assert_int_equal(reply->code, ERR_INVALID);
    assert_string_equal(reply->document_index, "2");
    assert_int_equal(fixture->world.nodes[1].n_checks, 2);
}

/* The first one alone was told, so a set with three faults took four runs. */
static void a_dry_run_tells_all_that_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct wire_arena *arena = &fixture->arena;
    Jury__V1__ApplyRequest *request =
        apply_request(arena, "web", "8.8.8.8:80 10.0.0.1:80 9.9.9.9:80");

    request->documents[request->n_documents++] = group_document(arena, "fine", "10.0.0.2:80");
    request->documents[request->n_documents++] = group_document(arena, "other", "7.7.7.7:80");
    request->dry_run = true;
    const struct rpc_world_reply *reply =
        ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);

    assert_int_equal(reply->code, ERR_INVALID);
    assert_string_equal(reply->document_index, "2"); /* by name it comes first */
#define OUTSIDE                                                                             \
    " is outside the prefixes that the cluster settings allow (allowedCidrs): 10.0.0.0/8, " \
    "100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16, fc00::/7\n"
    assert_string_equal(reply->refusals, "0 server group \"web\": backend 8.8.8.8:80" OUTSIDE
                                         "0 server group \"web\": backend 9.9.9.9:80" OUTSIDE
                                         "2 server group \"other\": backend 7.7.7.7:80" OUTSIDE);
#undef OUTSIDE

    request->dry_run = false;
    reply = ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);
    assert_string_equal(reply->refusals, "");
}

/* For clients that have no advice of their own; a dry run tells the same, and neither is refused.
 */
static void what_is_applied_is_warned_of_in_the_answer(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__ApplyRequest *request = apply_request(&fixture->arena, "web", "10.0.0.1:80");

    request->documents[0]->group->check->enabled = false;
    request->documents[request->n_documents++] =
        group_document(&fixture->arena, "plain", "10.0.0.2:80");
    for (int is_dry = 1; is_dry >= 0; is_dry--) {
        request->dry_run = is_dry != 0;
        const struct rpc_world_reply *reply =
            ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);
        Jury__V1__ApplyResponse *response =
            MESSAGE(fixture, reply, Jury__V1__ApplyResponse, jury__v1__apply_response);

        assert_int_equal(reply->code, 0);
        assert_int_equal(response->results[0]->n_warnings, 1);
        const Jury__V1__Warning *warning = response->results[0]->warnings[0];
        assert_string_equal(warning->id, "check-off");
        assert_string_equal(warning->field, "check.enabled");
        assert_non_null(strstr(warning->text, "better"));
        assert_int_equal(response->results[1]->n_warnings, 0);
    }
}

static void expected_revisions_and_force_are_passed_on(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__ApplyRequest *request;

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    request = apply_request(&fixture->arena, "web", "10.0.0.1:80 10.0.0.2:80");
    request->documents[0]->precondition_case = JURY__V1__DOCUMENT__PRECONDITION_EXPECTED_REVISION;
    request->documents[0]->expected_revision = 1;
    const struct rpc_world_reply *reply =
        ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);
    assert_int_equal(reply->code, ERR_CONFLICT);

    request = apply_request(&fixture->arena, "web", "10.0.0.1:80");
    reply = ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);
    assert_int_equal(reply->code, ERR_FORCE);
    request->force = WIRE_NEW(&fixture->arena, Jury__V1__Force, jury__v1__force);
    request->force->count = 2;
    reply = ask(fixture, "ConfigService/Apply", request, KEY_ROLE_ADMIN);
    assert_string_equal(reply->message, "");
    assert_int_equal(reply->code, 0);
}

static void a_drain_and_its_end_are_seen_in_the_list(void **state)
{
    struct fixture *fixture = *state;
    struct wire_arena *arena = &fixture->arena;

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    Jury__V1__DrainBackendRequest *drain =
        WIRE_NEW(arena, Jury__V1__DrainBackendRequest, jury__v1__drain_backend_request);
    drain->backend = ref(fixture, "web", "10.0.0.2:80");
    drain->timeout = wire_duration_new(arena, 30 * NS_PER_SECOND);
    const struct rpc_world_reply *reply =
        ask(fixture, "BackendService/DrainBackend", drain, KEY_ROLE_OPERATOR);
    uint64_t revision =
        MESSAGE(fixture, reply, Jury__V1__DrainBackendResponse, jury__v1__drain_backend_response)
            ->revision;
    assert_int_equal(revision, 3);

    reply = ask(fixture, "BackendService/ListBackends", NULL, KEY_ROLE_VIEWER);
    Jury__V1__ListBackendsResponse *list =
        MESSAGE(fixture, reply, Jury__V1__ListBackendsResponse, jury__v1__list_backends_response);
    assert_int_equal(list->n_backends, 3);
    assert_null(list->backends[0]->drain);
    assert_non_null(list->backends[1]->drain);
    assert_int_equal(list->backends[1]->drain->revision, 3);
    assert_int_equal(list->backends[1]->drain->timeout->seconds, 30);
    assert_int_equal(list->backends[1]->backend->admin_state,
                     JURY__V1__ADMIN_STATE__ADMIN_STATE_DRAINING);

    Jury__V1__ReadyBackendRequest *ready =
        WIRE_NEW(arena, Jury__V1__ReadyBackendRequest, jury__v1__ready_backend_request);
    ready->backend = drain->backend;
    reply = ask(fixture, "BackendService/ReadyBackend", ready, KEY_ROLE_OPERATOR);
    assert_int_equal(reply->code, 0);
    reply = ask(fixture, "BackendService/ListBackends", NULL, KEY_ROLE_VIEWER);
    list =
        MESSAGE(fixture, reply, Jury__V1__ListBackendsResponse, jury__v1__list_backends_response);
    assert_null(list->backends[1]->drain);

    drain->timeout = wire_duration_new(arena, 3601 * NS_PER_SECOND);
    reply = ask(fixture, "BackendService/DrainBackend", drain, KEY_ROLE_OPERATOR);
    assert_string_equal(reply->message, "timeout must be at most 1h");
}

static Jury__V1__SetBackendRequest *set_request(struct fixture *fixture, const char *at)
{
    Jury__V1__SetBackendRequest *set =
        WIRE_NEW(&fixture->arena, Jury__V1__SetBackendRequest, jury__v1__set_backend_request);

    set->backend = ref(fixture, "web", at);
    return set;
}

static bool is_unchanged(struct fixture *fixture, const struct rpc_world_reply *reply)
{
    return MESSAGE(fixture, reply, Jury__V1__SetBackendResponse, jury__v1__set_backend_response)
        ->is_unchanged;
}

static void weight_and_maintenance_are_set_by_an_operator_within_their_ranges(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__SetBackendRequest *set = set_request(fixture, "10.0.0.2:80");

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    set->weight_choice_case = JURY__V1__SET_BACKEND_REQUEST__WEIGHT_CHOICE_WEIGHT;
    set->weight = 30;
    set->admin_state = JURY__V1__ADMIN_STATE__ADMIN_STATE_MAINTENANCE;
    assert_int_equal(ask(fixture, "BackendService/SetBackend", set, KEY_ROLE_VIEWER)->code,
                     ERR_DENIED);
    assert_false(
        is_unchanged(fixture, ask(fixture, "BackendService/SetBackend", set, KEY_ROLE_OPERATOR)));
    const struct rpc_world_reply *reply =
        ask(fixture, "BackendService/ListBackends", NULL, KEY_ROLE_VIEWER);
    Jury__V1__Backend *backend =
        MESSAGE(fixture, reply, Jury__V1__ListBackendsResponse, jury__v1__list_backends_response)
            ->backends[1]
            ->backend;
    assert_int_equal(backend->weight, 30);
    assert_int_equal(backend->admin_state, JURY__V1__ADMIN_STATE__ADMIN_STATE_MAINTENANCE);
    assert_true(
        is_unchanged(fixture, ask(fixture, "BackendService/SetBackend", set, KEY_ROLE_OPERATOR)));

    set->weight = 300; /* not 44 */
    reply = ask(fixture, "BackendService/SetBackend", set, KEY_ROLE_OPERATOR);
    assert_string_equal(reply->message, "weight must be 0..100, got 300");
    set->weight = 30;
    set->admin_state = (Jury__V1__AdminState)257; /* not enabled */
    reply = ask(fixture, "BackendService/SetBackend", set, KEY_ROLE_OPERATOR);
    assert_string_equal(reply->message,
                        "admin_state must be enabled, draining or maintenance, got the number 257");
    set = set_request(fixture, "10.0.0.2:80");
    reply = ask(fixture, "BackendService/SetBackend", set, KEY_ROLE_OPERATOR);
    assert_non_null(strstr(reply->message, "the change sets nothing"));
}

static void init_takes_the_clusters_id_from_the_request_so_that_a_retry_is_the_same(void **state)
{
    struct fixture *fixture = *state;
    struct prng prng;
    struct member_node node;
    uint8_t id[REQUEST_ID_BYTES] = {0xab, 0xcd, 1};

    prng_init(&prng, 3);
    Jury__V1__InitClusterRequest *request =
        WIRE_NEW(&fixture->arena, Jury__V1__InitClusterRequest, jury__v1__init_cluster_request);
    request->members = wire_alloc_array(&fixture->arena, 3, sizeof(void *));
    for (uint64_t i = 1; i <= 3; i++) {
        random_node(&prng, &node);
        node.node_id = i;
        node.role = ROLE_NONE;
        request->members[request->n_members++] = wire_node_new(&fixture->arena, &node);
    }
    struct rpc_world_ask question = {
        .node_id = 1, .method = "ClusterService/InitCluster", .request = request, .id = id};
    uint32_t call = rpc_world_call(&fixture->world, &question);
    rpc_world_run(&fixture->world, 50);
    struct rpc_world_node *world_node = &fixture->world.nodes[1];
    assert_false(fixture->world.replies[call].has_come);
    assert_int_equal(world_node->init.n_nodes, 3);
    assert_int_equal(world_node->init.nodes[2].role, ROLE_VOTER);
    assert_int_equal(world_node->init.settings.vote_interval_ms, 1000);
    assert_memory_equal(world_node->init.cluster_id.bytes, id, sizeof id);

    struct rpc_done done = {.outcome = RPC_DONE, .revision = 1};
    rpc_server_done(world_node->server, fixture->world.now_ns, world_node->init_cookie, &done);
    Jury__V1__InitClusterResponse *response =
        MESSAGE(fixture, &fixture->world.replies[call], Jury__V1__InitClusterResponse,
                jury__v1__init_cluster_response);
    assert_string_equal(response->cluster_id, "abcd0100000000000000000000000000");

    call = rpc_world_call(&fixture->world, &question);
    done = (struct rpc_done){.outcome = RPC_EXISTS, .message = "it is a member already"};
    rpc_server_done(world_node->server, fixture->world.now_ns, world_node->init_cookie, &done);
    assert_string_equal(fixture->world.replies[call].message, "it is a member already");
    assert_int_equal(fixture->world.replies[call].code, ERR_EXISTS); /* was NOT_READY once */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_refused_document_is_named_by_its_index_and_nothing_is_applied),
        TEST(a_dry_run_says_what_each_document_would_do_and_changes_nothing),
        TEST(a_dry_run_tells_all_that_is_refused),
        TEST(a_dry_run_tells_all_that_is_refused),
        TEST(what_is_applied_is_warned_of_in_the_answer),
        TEST(expected_revisions_and_force_are_passed_on),
        TEST(a_drain_and_its_end_are_seen_in_the_list),
        TEST(weight_and_maintenance_are_set_by_an_operator_within_their_ranges),
        TEST(init_takes_the_clusters_id_from_the_request_so_that_a_retry_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
