/* One node's RPC server: every method of the .proto files is answered, every bad call is refused by
 * name, and what waits has its bounds. */
#include "agent/rpc/rpc_internal.h"
#include "common/wire/unpack.h"
#include "jury/v1/group.pb-c.h"
#include "tests/unit/rpc/rpc_fixture.h"

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
    const struct CMUnitTest tests[] = {
        TEST(every_method_of_the_contract_has_a_handler_and_is_answered),
        TEST(bad_envelopes_are_refused_by_name),
        TEST(frames_that_are_no_call_are_dropped_and_counted),
        TEST(payloads_that_are_too_large_or_broken_are_refused),
        TEST(a_write_with_a_field_of_a_newer_version_is_refused),
        TEST(more_calls_than_allowed_are_told_to_come_back),
        TEST(a_call_ends_at_its_deadline),
        TEST(a_store_that_takes_no_more_is_told_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
