/* One node's RPC server: every method of the .proto files is answered, every bad call is refused by
 * name, roles come from the options, writes become revisions.
 * ctest labels: twin */
#include "agent/rpc/rpc_server.h"

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
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/config.pb-c.h"
#include "jury/v1/event.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/listener.pb-c.h"
#include "jury/v1/verdict.pb-c.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/random_objects.h"
#include "tests/lib/rpc_world.h"

struct fixture {
    struct rpc_world world;
    struct wire_arena arena;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    rpc_world_open(&fixture->world, 1, 1);
    wire_arena_init(&fixture->arena, 256 * 1024 * 1024);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    rpc_world_close(&fixture->world);
    wire_arena_close(&fixture->arena);
    free(fixture);
    return 0;
}

/* --- requests --- */

static Jury__V1__Document *group_document(struct wire_arena *arena, const char *name,
                                          const char *endpoints)
{
    struct server_group group = {0};
    Jury__V1__Document *document = WIRE_NEW(arena, Jury__V1__Document, jury__v1__document);

    build_group(&group, name, endpoints);
    document->object_case = JURY__V1__DOCUMENT__OBJECT_GROUP;
    document->group = wire_group_new(arena, &group);
    server_group_close(&group);
    return document;
}

static Jury__V1__ApplyRequest *apply_request(struct wire_arena *arena, const char *name,
                                             const char *endpoints)
{
    Jury__V1__ApplyRequest *request =
        WIRE_NEW(arena, Jury__V1__ApplyRequest, jury__v1__apply_request);

    request->documents = wire_alloc_array(arena, 4, sizeof(void *));
    request->documents[request->n_documents++] = group_document(arena, name, endpoints);
    return request;
}

/* Call node 1 and wait. */
static const struct rpc_world_reply *ask(struct fixture *fixture, const char *method,
                                         const void *request, enum key_role role)
{
    struct rpc_world_ask question = {
        .node_id = 1, .method = method, .request = request, .role = role};

    return rpc_world_wait(&fixture->world, rpc_world_call(&fixture->world, &question), 6000);
}

static void apply(struct fixture *fixture, const char *name, const char *endpoints)
{
    const struct rpc_world_reply *reply =
        ask(fixture, "ConfigService/Apply", apply_request(&fixture->arena, name, endpoints),
            KEY_ROLE_ADMIN);

    assert_string_equal(reply->message, "");
    assert_int_equal(reply->code, 0);
}

#define MESSAGE(fixture, reply, type, prefix) \
    ((type *)rpc_world_message((reply), &prefix##__descriptor, &(fixture)->arena))

static Jury__V1__BackendRef *ref(struct fixture *fixture, const char *group, const char *at)
{
    struct endpoint endpoint = build_endpoint(at);

    return wire_backend_ref_new(&fixture->arena, group, &endpoint);
}

/* --- the contract --- */

static void every_method_of_the_contract_has_a_handler_and_is_answered(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < wire_n_methods(); i++) {
        const struct wire_method *method = wire_method_at(i);
        const struct handler *handler = rpc_handler_find(method->name);
        const char *name = method->name + strlen("jury.v1.");

        if (handler == NULL) {
            fail_msg("nobody answers %s", method->name);
        }
        assert_true((handler->command != NULL) == (method->kind == METHOD_WRITE));
        assert_true((handler->answer_write != NULL) == (method->kind == METHOD_WRITE));
        if (strcmp(name, "ClusterService/InitCluster") != 0) {
            /* An empty request: answered with OK or refused in a sentence, never dropped. */
            const struct rpc_world_reply *reply = ask(fixture, name, NULL, KEY_ROLE_ADMIN);

            assert_true(reply->code == 0 || reply->message[0] != '\0');
        }
    }
}

/* --- envelopes --- */

static void bad_envelopes_are_refused_by_name(void **state)
{
    struct fixture *fixture = *state;
    static const uint8_t no_id[REQUEST_ID_BYTES];
    static const struct {
        struct rpc_world_ask ask;
        int code;
        const char *sentence;
    } rows[] = {
        {{.method = "GroupService/ListGroups", .api_version = 2},
         ERR_VERSION,
         "the call is of API version 2, and this node understands version 1"},
        {{.method = "GroupService/Explode"},
         ERR_UNKNOWN_METHOD,
         "there is no method \"jury.v1.GroupService/Explode\""},
        {{.method = "GroupService/ListGroups", .deadline_ms = 60001},
         ERR_INVALID,
         "deadline_ms must be 1..60000, got 60001"},
        {{.method = "GroupService/ListGroups", .id = no_id},
         ERR_INVALID,
         "request_id must be 16 bytes, not all zero, got 16"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rpc_world_ask question = rows[i].ask;

        question.node_id = 1;
        const struct rpc_world_reply *reply =
            rpc_world_wait(&fixture->world, rpc_world_call(&fixture->world, &question), 1);
        assert_int_equal(reply->code, rows[i].code);
        assert_string_equal(reply->message, rows[i].sentence);
    }
}

static void frames_that_are_no_call_are_dropped_and_counted(void **state)
{
    struct fixture *fixture = *state;
    static const uint8_t garbage[] = "GET / HTTP/1.1\r\n\r\n";
    uint8_t large[RPC_ENVELOPE_BYTES_MAX + 1] = {0};
    struct rpc_frames frames = {.envelope = garbage, .n_envelope_bytes = sizeof garbage - 1};

    uint32_t first = rpc_world_frames(&fixture->world, 1, KEY_ROLE_ADMIN, &frames);
    frames.envelope = large;
    frames.n_envelope_bytes = sizeof large;
    uint32_t second = rpc_world_frames(&fixture->world, 1, KEY_ROLE_ADMIN, &frames);
    rpc_world_run(&fixture->world, 100);

    assert_false(fixture->world.replies[first].has_come);
    assert_false(fixture->world.replies[second].has_come);
    struct rpc_counters counters = fixture->world.nodes[1].server->counters;
    assert_int_equal(counters.dropped_malformed, 2);
    assert_int_equal(counters.calls, 2);
}

static void payloads_that_are_too_large_or_broken_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct wire_arena *arena = &fixture->arena;
    Jury__V1__GetGroupRequest *get =
        WIRE_NEW(arena, Jury__V1__GetGroupRequest, jury__v1__get_group_request);

    get->name = wire_alloc(arena, LIMIT_RPC_MESSAGE_BYTES + 2);
    memset(get->name, 'a', LIMIT_RPC_MESSAGE_BYTES + 1);
    const struct rpc_world_reply *reply =
        ask(fixture, "GroupService/GetGroup", get, KEY_ROLE_ADMIN);
    assert_int_equal(reply->code, ERR_LIMIT);
    assert_string_equal(reply->message, "the call has 1048581 bytes, allowed are 1048576");

    /* A listing's page size where a name should be. */
    Jury__V1__ListGroupsRequest *list =
        WIRE_NEW(arena, Jury__V1__ListGroupsRequest, jury__v1__list_groups_request);
    list->page_size = 5;
    reply = ask(fixture, "GroupService/GetGroup", list, KEY_ROLE_ADMIN);
    assert_int_equal(reply->code, ERR_INVALID);
    assert_string_equal(reply->message,
                        "message jury.v1.GetGroupRequest, field name: is of another type");
}

static void a_write_with_a_field_of_a_newer_version_is_refused(void **state)
{
    struct fixture *fixture = *state;
    /* ApplyRequest{documents: [Document{group: ServerGroup{99: 1}}]} */
    static const uint8_t payload[] = {0x0a, 0x05, 0x0a, 0x03, 0x98, 0x06, 0x01};
    static const uint8_t id[REQUEST_ID_BYTES] = {1};
    Jury__V1__Request *request = WIRE_NEW(&fixture->arena, Jury__V1__Request, jury__v1__request);
    struct rpc_frames frames = {.payload = payload, .n_payload_bytes = sizeof payload};

    request->api_version = 1;
    request->method = wire_text(&fixture->arena, "jury.v1.ConfigService/Apply");
    request->deadline_ms = 1000;
    request->request_id = (ProtobufCBinaryData){sizeof id, (uint8_t *)(uintptr_t)id};
    frames.envelope = wire_pack(&request->base, &fixture->arena, &frames.n_envelope_bytes);
    uint32_t call = rpc_world_frames(&fixture->world, 1, KEY_ROLE_ADMIN, &frames);

    assert_int_equal(fixture->world.replies[call].code, ERR_VERSION);
    assert_non_null(strstr(fixture->world.replies[call].message,
                           "message jury.v1.ServerGroup holds field 99, which this node does not "
                           "know: nothing was changed"));
}

/* --- roles --- */

static void a_viewer_is_refused_a_write_and_an_operator_an_apply(void **state)
{
    struct fixture *fixture = *state;

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    Jury__V1__DrainBackendRequest *drain =
        WIRE_NEW(&fixture->arena, Jury__V1__DrainBackendRequest, jury__v1__drain_backend_request);
    drain->backend = ref(fixture, "web", "10.0.0.1:80");
    uint64_t revision = rpc_world_revision(&fixture->world, 1);

    const struct rpc_world_reply *reply =
        ask(fixture, "BackendService/DrainBackend", drain, KEY_ROLE_VIEWER);
    assert_int_equal(reply->code, ERR_DENIED);
    assert_string_equal(reply->reason, "NOT_ALLOWED");
    assert_string_equal(reply->message, "\"alice\" is a viewer, and "
                                        "jury.v1.BackendService/DrainBackend needs the role "
                                        "operator");
    reply = ask(fixture, "ConfigService/Apply",
                apply_request(&fixture->arena, "web2", "10.0.0.9:80"), KEY_ROLE_OPERATOR);
    assert_int_equal(reply->code, ERR_DENIED);
    assert_string_equal(reply->message,
                        "\"alice\" is an operator, and jury.v1.ConfigService/Apply needs the role "
                        "admin");
    assert_int_equal(rpc_world_revision(&fixture->world, 1), revision);

    reply = ask(fixture, "BackendService/DrainBackend", drain, KEY_ROLE_OPERATOR);
    assert_int_equal(reply->code, 0);
    assert_int_equal(rpc_world_revision(&fixture->world, 1), revision + 1);
    assert_int_equal(fixture->world.nodes[1].server->counters.refused_role, 2);
}

#ifdef JURY_PLANTS
static void a_server_that_does_not_look_at_roles_is_caught(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__ApplyRequest *request = apply_request(&fixture->arena, "web", "10.0.0.1:80");

    plant_set("rpc-no-role-check");
    const struct rpc_world_reply *reply =
        ask(fixture, "ConfigService/Apply", request, KEY_ROLE_VIEWER);
    plant_set(NULL);
    assert_int_equal(reply->code, 0);
    assert_int_equal(rpc_world_revision(&fixture->world, 1), 2);
}
#endif

static void each_method_asks_for_the_role_of_its_proto_option(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < wire_n_methods(); i++) {
        const struct wire_method *method = wire_method_at(i);

        for (enum key_role role = KEY_ROLE_VIEWER; role < method->role; role++) {
            const struct rpc_world_reply *reply =
                ask(fixture, method->name + strlen("jury.v1."), NULL, role);

            assert_int_equal(reply->code, ERR_DENIED);
        }
    }
}

static void a_caller_without_a_role_is_refused_everything(void **state)
{
    struct fixture *fixture = *state;
    static const uint8_t roles[] = {KEY_ROLE_NONE, KEY_ROLE_ADMIN + 1, 200};
    uint8_t id[REQUEST_ID_BYTES] = {7};
    struct rpc_frames frames = {0};
    Jury__V1__Request *request = WIRE_NEW(&fixture->arena, Jury__V1__Request, jury__v1__request);

    request->api_version = 1;
    request->method = wire_text(&fixture->arena, "jury.v1.NodeService/GetVersion");
    request->deadline_ms = 1000;
    request->request_id = (ProtobufCBinaryData){sizeof id, id};
    frames.envelope = wire_pack(&request->base, &fixture->arena, &frames.n_envelope_bytes);
    for (size_t i = 0; i < sizeof roles; i++) {
        uint32_t call = rpc_world_frames(&fixture->world, 1, (enum key_role)roles[i], &frames);

        assert_int_equal(fixture->world.replies[call].code, ERR_UNAUTHENTICATED);
    }
}

/* --- reads and writes --- */

static void what_was_applied_is_read_back_with_every_default_filled_in(void **state)
{
    struct fixture *fixture = *state;
    struct server_group group, expected;
    struct errmsg err = {{0}};

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80");
    Jury__V1__GetGroupRequest *get =
        WIRE_NEW(&fixture->arena, Jury__V1__GetGroupRequest, jury__v1__get_group_request);
    get->name = wire_text(&fixture->arena, "web");
    const struct rpc_world_reply *reply =
        ask(fixture, "GroupService/GetGroup", get, KEY_ROLE_VIEWER);
    Jury__V1__GetGroupResponse *response =
        MESSAGE(fixture, reply, Jury__V1__GetGroupResponse, jury__v1__get_group_response);

    assert_int_equal(wire_group_read(response->group, &group, &err), 0);
    build_group(&expected, "web", "10.0.0.1:80 10.0.0.2:80");
    for (uint32_t i = 0; i < expected.n_backends; i++) {
        expected.backends[i].admin_state = ADMIN_ENABLED;
        assert_memory_equal(&group.backends[i], &expected.backends[i], sizeof group.backends[i]);
    }
    assert_memory_equal(&group.check, &expected.check, sizeof group.check);
    assert_int_equal(reply->revision, 2);
    assert_int_equal(response->changed_revision, 2);
    server_group_close(&group);
    server_group_close(&expected);

    Jury__V1__DescribeGroupRequest *describe =
        WIRE_NEW(&fixture->arena, Jury__V1__DescribeGroupRequest, jury__v1__describe_group_request);
    describe->name = get->name;
    reply = ask(fixture, "GroupService/DescribeGroup", describe, KEY_ROLE_VIEWER);
    Jury__V1__DescribeGroupResponse *description =
        MESSAGE(fixture, reply, Jury__V1__DescribeGroupResponse, jury__v1__describe_group_response);
    /* nlb: T 5 s, I 5 s, U 2 (S89): 15 s; V 1 s. */
    assert_int_equal(description->failure_window->opinion->seconds, 15);
    assert_int_equal(description->failure_window->verdict->seconds, 17);
    assert_int_equal(description->failure_window->verdict->nanos, 100000000);
    assert_int_equal(description->n_backends, 2);
    assert_int_equal(description->backends[0]->verdict->state, HEALTH_INITIAL);
    assert_int_equal(description->summary->n_eligible, 2);
}

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

static void lists_come_in_pages_that_lose_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct wire_arena *arena = &fixture->arena;
    char name[16];
    size_t n_groups = 0, n_backends = 0, n_pages = 0;

    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "g%d", i);
        apply(fixture, name, "10.0.0.1:80 10.0.0.2:80 [fd00::1]:80");
    }
    Jury__V1__ListGroupsRequest *groups =
        WIRE_NEW(arena, Jury__V1__ListGroupsRequest, jury__v1__list_groups_request);
    groups->page_size = 3;
    do {
        const struct rpc_world_reply *reply =
            ask(fixture, "GroupService/ListGroups", groups, KEY_ROLE_VIEWER);
        Jury__V1__ListGroupsResponse *response =
            MESSAGE(fixture, reply, Jury__V1__ListGroupsResponse, jury__v1__list_groups_response);

        for (size_t i = 0; i < response->n_groups; i++, n_groups++) {
            snprintf(name, sizeof name, "g%zu", n_groups);
            assert_string_equal(response->groups[i]->name, name);
        }
        groups->page_token = response->next_page_token;
        n_pages++;
    } while (groups->page_token[0] != '\0');
    assert_int_equal(n_groups, 7);
    assert_int_equal(n_pages, 3);

    Jury__V1__ListBackendsRequest *backends =
        WIRE_NEW(arena, Jury__V1__ListBackendsRequest, jury__v1__list_backends_request);
    backends->page_size = 4;
    do {
        const struct rpc_world_reply *reply =
            ask(fixture, "BackendService/ListBackends", backends, KEY_ROLE_VIEWER);
        Jury__V1__ListBackendsResponse *response = MESSAGE(
            fixture, reply, Jury__V1__ListBackendsResponse, jury__v1__list_backends_response);

        n_backends += response->n_backends;
        backends->page_token = response->next_page_token;
    } while (backends->page_token[0] != '\0');
    assert_int_equal(n_backends, 21);

    backends->page_token = wire_text(arena, "nonsense");
    assert_string_equal(
        ask(fixture, "BackendService/ListBackends", backends, KEY_ROLE_VIEWER)->message,
        "page_token is not one that this node gave");
    groups->page_size = 1001;
    assert_string_equal(ask(fixture, "GroupService/ListGroups", groups, KEY_ROLE_VIEWER)->message,
                        "page_size must be 0..1000, got 1001");
}

static void why_names_every_observer_and_what_would_change_it(void **state)
{
    struct fixture *fixture = *state;

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80");
    Jury__V1__WhyRequest *request =
        WIRE_NEW(&fixture->arena, Jury__V1__WhyRequest, jury__v1__why_request);
    request->backend = ref(fixture, "web", "10.0.0.1:80");
    const struct rpc_world_reply *reply =
        ask(fixture, "VerdictService/Why", request, KEY_ROLE_VIEWER);
    Jury__V1__WhyResponse *why =
        MESSAGE(fixture, reply, Jury__V1__WhyResponse, jury__v1__why_response);

    assert_int_equal(why->node_id, 1);
    assert_int_equal(why->verdict->state, HEALTH_INITIAL);
    assert_int_equal(why->n_votes, 1);
    assert_true(why->votes[0]->is_self);
    assert_string_equal(why->probing->address, "10.0.0.1");
    assert_int_equal(why->probing->port, 80);
    assert_true(why->next_down->sentence[0] != '\0');
    assert_true(why->next_up->sentence[0] != '\0');
    assert_true(why->sentence[0] != '\0');
    assert_int_equal(fixture->world.nodes[1].n_asked, 1);

    request->backend = ref(fixture, "web", "10.0.0.9:80");
    reply = ask(fixture, "VerdictService/Why", request, KEY_ROLE_VIEWER);
    assert_int_equal(reply->code, ERR_NOTFOUND);
    assert_string_equal(reply->message,
                        "backend 10.0.0.9:80 of server group \"web\" does not exist");
    request->backend = NULL;
    reply = ask(fixture, "VerdictService/Why", request, KEY_ROLE_VIEWER);
    assert_string_equal(reply->message, "backend must be set: group, address and port");
}

static Jury__V1__GetStatusResponse *status_of(struct fixture *fixture)
{
    const struct rpc_world_reply *reply =
        ask(fixture, "ClusterService/GetStatus", NULL, KEY_ROLE_VIEWER);

    return MESSAGE(fixture, reply, Jury__V1__GetStatusResponse, jury__v1__get_status_response);
}

static void a_data_plane_that_cannot_be_read_is_told_in_words_and_never_healthy(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_data_plane *plane = &fixture->world.plane;

    apply(fixture, "web", "10.0.0.1:80");
    *plane =
        (struct rpc_data_plane){.state = RPC_PLANE_REFUSED, .name = "shim", .age_ns = RPC_NEVER_NS};
    errmsg_set(&plane->problem, 0, "status file of data plane \"shim\": cut short");
    Jury__V1__GetStatusResponse *status = status_of(fixture);
    assert_int_equal(status->health, JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_DEGRADED);
    assert_int_equal(status->n_problems, 1);
    assert_string_equal(status->problems[0], plane->problem.text);
    assert_false(status->data_planes[0]->is_alive);
    assert_int_equal(status->data_planes[0]->state,
                     JURY__V1__DATA_PLANE_STATE__DATA_PLANE_STATE_REFUSED);
    assert_null(status->data_planes[0]->age);
}

static void listeners_that_cannot_be_opened_and_have_no_place_are_counted(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_data_plane *plane = &fixture->world.plane;

    apply(fixture, "web", "10.0.0.1:80");
    *plane = (struct rpc_data_plane){.state = RPC_PLANE_ALIVE, .name = "shim"};
    plane->n_failures_all = RPC_LISTENER_FAILURES;
    assert_int_equal(status_of(fixture)->n_problems, 0); /* none of a listener that is there */
    plane->n_failures_all = RPC_LISTENER_FAILURES + 3;
    Jury__V1__GetStatusResponse *status = status_of(fixture);
    assert_int_equal(status->n_problems, 1);
    assert_string_equal(status->problems[0],
                        "and 3 more listeners that data plane shim cannot open");
    assert_int_equal(status->data_planes[0]->failures_total, RPC_LISTENER_FAILURES + 3);
}

static void status_ready_node_events_and_counters_tell_of_the_node(void **state)
{
    struct fixture *fixture = *state;

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80");
    const struct rpc_world_reply *reply =
        ask(fixture, "ClusterService/GetStatus", NULL, KEY_ROLE_VIEWER);
    Jury__V1__GetStatusResponse *status =
        MESSAGE(fixture, reply, Jury__V1__GetStatusResponse, jury__v1__get_status_response);
    assert_int_equal(status->health, JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_HEALTHY);
    assert_int_equal(status->n_members, 1);
    assert_true(status->members[0]->is_self && status->members[0]->is_leader);
    assert_int_equal(status->revision, 2);
    assert_int_equal(strlen(status->state_hash), 32);
    assert_int_equal(strlen(status->cluster_id), 32);
    assert_int_equal(status->backends->total, 2);
    assert_int_equal(status->data_planes[0]->flows, 12);

    reply = ask(fixture, "NodeService/CheckReady", NULL, KEY_ROLE_VIEWER);
    Jury__V1__CheckReadyResponse *ready =
        MESSAGE(fixture, reply, Jury__V1__CheckReadyResponse, jury__v1__check_ready_response);
    assert_false(ready->is_ready);
    assert_string_equal(ready->checks[1]->message, "not caught up");

    reply = ask(fixture, "NodeService/DescribeNode", NULL, KEY_ROLE_VIEWER);
    Jury__V1__DescribeNodeResponse *node =
        MESSAGE(fixture, reply, Jury__V1__DescribeNodeResponse, jury__v1__describe_node_response);
    assert_int_equal(node->n_targets, 2);
    assert_int_equal(node->probe_engine->n_capabilities, 2);
    assert_string_equal(node->probe_engine->capabilities[1], "http");

    reply = ask(fixture, "EventService/ListEvents", NULL, KEY_ROLE_VIEWER);
    Jury__V1__ListEventsResponse *events =
        MESSAGE(fixture, reply, Jury__V1__ListEventsResponse, jury__v1__list_events_response);
    assert_true(events->n_events > 0);
    assert_int_equal(events->events[0]->sequence, 1);
    assert_true(events->events[0]->message[0] != '\0');
    assert_int_equal(events->last_sequence, events->events[events->n_events - 1]->sequence);
    for (size_t i = 0; i < events->n_events; i++) {
        print_message("event %s\n", events->events[i]->message);
    }

    reply = ask(fixture, "NodeService/ListCounters", NULL, KEY_ROLE_VIEWER);
    Jury__V1__ListCountersResponse *counters =
        MESSAGE(fixture, reply, Jury__V1__ListCountersResponse, jury__v1__list_counters_response);
    assert_string_equal(counters->counters[0]->name, "rpc_calls");
    assert_int_equal(counters->counters[0]->value, 6);
    assert_true(counters->counters[0]->help[0] != '\0');

    reply = ask(fixture, "ClusterService/ListMembers", NULL, KEY_ROLE_VIEWER);
    assert_int_equal(
        MESSAGE(fixture, reply, Jury__V1__ListMembersResponse, jury__v1__list_members_response)
            ->n_members,
        1);
    reply = ask(fixture, "KeyService/ListKeys", NULL, KEY_ROLE_VIEWER);
    Jury__V1__ListKeysResponse *keys =
        MESSAGE(fixture, reply, Jury__V1__ListKeysResponse, jury__v1__list_keys_response);
    assert_string_equal(keys->keys[0]->key->name, "root");
    reply = ask(fixture, "ClusterService/GetSettings", NULL, KEY_ROLE_VIEWER);
    assert_int_equal(
        MESSAGE(fixture, reply, Jury__V1__GetSettingsResponse, jury__v1__get_settings_response)
            ->settings->n_allowed_cidrs,
        5);
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

/* --- bounds --- */

static void more_calls_than_allowed_are_told_to_come_back(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world_ask question = {.node_id = 1, .method = "GroupService/ListGroups"};
    uint32_t n_busy = 0;

    fixture->world.commit_ns_min = fixture->world.commit_ns_max = 1000 * RPC_WORLD_MS;
    for (int i = 0; i < LIMIT_RPC_OUTSTANDING + 10; i++) {
        uint32_t call = rpc_world_call(&fixture->world, &question);

        n_busy +=
            fixture->world.replies[call].has_come && fixture->world.replies[call].code == ERR_BUSY;
    }
    assert_int_equal(n_busy, 10);
    assert_int_equal(fixture->world.nodes[1].server->n_calls, LIMIT_RPC_OUTSTANDING);
    /* They wait for two barriers: the first began with the first call. */
    rpc_world_run(&fixture->world, 2100);
    assert_int_equal(fixture->world.nodes[1].server->n_calls, 0);
    assert_int_equal(fixture->world.n_barriers, 2);
    for (uint32_t i = 0; i < fixture->world.n_calls; i++) {
        assert_int_equal(fixture->world.replies[i].n_times, 1);
    }
}

static void a_call_ends_at_its_deadline(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_world_ask question = {.node_id = 1,
                                     .method = "ConfigService/Apply",
                                     .request =
                                         apply_request(&fixture->arena, "web", "10.0.0.1:80"),
                                     .deadline_ms = 250};

    fixture->world.commit_ns_min = fixture->world.commit_ns_max = 400 * RPC_WORLD_MS;
    uint64_t start_ns = fixture->world.now_ns;
    const struct rpc_world_reply *reply =
        rpc_world_wait(&fixture->world, rpc_world_call(&fixture->world, &question), 1000);
    assert_int_equal(reply->code, ERR_TIMEOUT);
    assert_int_equal((reply->at_ns - start_ns) / RPC_WORLD_MS, 250);
    assert_string_equal(reply->message,
                        "jury.v1.ConfigService/Apply was not done within 250 ms: it may still be "
                        "carried out; ask again with the same request id");
    rpc_world_run(&fixture->world, 500);
    assert_int_equal(rpc_world_revision(&fixture->world, 1), 2);
    assert_int_equal(reply->n_times, 1);
}

static void a_store_that_takes_no_more_is_told_on(void **state)
{
    struct fixture *fixture = *state;

    fixture->world.nodes[1].propose_error = ERR_BUSY;
    const struct rpc_world_reply *reply =
        ask(fixture, "ConfigService/Apply", apply_request(&fixture->arena, "web", "10.0.0.1:80"),
            KEY_ROLE_ADMIN);
    assert_int_equal(reply->code, ERR_BUSY);
    assert_non_null(strstr(reply->message, "the store takes no more writes for the moment"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_method_of_the_contract_has_a_handler_and_is_answered),
        TEST(bad_envelopes_are_refused_by_name),
        TEST(frames_that_are_no_call_are_dropped_and_counted),
        TEST(payloads_that_are_too_large_or_broken_are_refused),
        TEST(a_write_with_a_field_of_a_newer_version_is_refused),
        TEST(a_viewer_is_refused_a_write_and_an_operator_an_apply),
        TEST(each_method_asks_for_the_role_of_its_proto_option),
        TEST(a_caller_without_a_role_is_refused_everything),
        TEST(what_was_applied_is_read_back_with_every_default_filled_in),
        TEST(a_refused_document_is_named_by_its_index_and_nothing_is_applied),
        TEST(a_dry_run_says_what_each_document_would_do_and_changes_nothing),
        TEST(expected_revisions_and_force_are_passed_on),
        TEST(a_drain_and_its_end_are_seen_in_the_list),
        TEST(lists_come_in_pages_that_lose_nothing),
        TEST(why_names_every_observer_and_what_would_change_it),
        TEST(status_ready_node_events_and_counters_tell_of_the_node),
        TEST(a_data_plane_that_cannot_be_read_is_told_in_words_and_never_healthy),
        TEST(listeners_that_cannot_be_opened_and_have_no_place_are_counted),
        TEST(init_takes_the_clusters_id_from_the_request_so_that_a_retry_is_the_same),
        TEST(more_calls_than_allowed_are_told_to_come_back),
        TEST(a_call_ends_at_its_deadline),
        TEST(a_store_that_takes_no_more_is_told_on),
#ifdef JURY_PLANTS
        TEST(a_server_that_does_not_look_at_roles_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
