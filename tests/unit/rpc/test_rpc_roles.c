/* Who may call what: roles come from the options of the .proto files.
 * ctest labels: twin */
#include "agent/rpc/rpc_internal.h"
#include "common/base/plant.h"
#include "common/wire/unpack.h"
#include "tests/unit/rpc/rpc_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_viewer_is_refused_a_write_and_an_operator_an_apply),
        TEST(each_method_asks_for_the_role_of_its_proto_option),
        TEST(a_caller_without_a_role_is_refused_everything),
#ifdef JURY_PLANTS
        TEST(a_server_that_does_not_look_at_roles_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
