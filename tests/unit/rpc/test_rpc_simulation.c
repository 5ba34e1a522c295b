/* Simulations over RPC: what they are asked with, what they answer, and that they cannot take the
 * thread that counts votes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/plant.h"
#include "common/wire/object.h"
#include "jury/v1/config.pb-c.h"
#include "jury/v1/simulation.pb-c.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/rpc_world.h"

struct fixture {
    struct rpc_world world;
    struct wire_arena arena;
};

static const struct rpc_world_reply *ask(struct fixture *fixture, const char *method,
                                         const void *request, enum key_role role)
{
    struct rpc_world_ask question = {
        .node_id = 1, .method = method, .request = request, .role = role};

    return rpc_world_wait(&fixture->world, rpc_world_call(&fixture->world, &question), 6000);
}

static Jury__V1__ServerGroup *group_message(struct fixture *fixture, const char *name)
{
    struct server_group group = {0};

    build_group(&group, name, "10.0.0.1:80");
    Jury__V1__ServerGroup *message = wire_group_new(&fixture->arena, &group);
    server_group_close(&group);
    return message;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    rpc_world_open(&fixture->world, 1, 1);
    wire_arena_init(&fixture->arena, 256 * 1024 * 1024);
    Jury__V1__ApplyRequest *apply =
        WIRE_NEW(&fixture->arena, Jury__V1__ApplyRequest, jury__v1__apply_request);
    apply->documents = wire_alloc_array(&fixture->arena, 1, sizeof(void *));
    apply->documents[0] = WIRE_NEW(&fixture->arena, Jury__V1__Document, jury__v1__document);
    apply->documents[0]->object_case = JURY__V1__DOCUMENT__OBJECT_GROUP;
    apply->documents[0]->group = group_message(fixture, "web");
    apply->n_documents = 1;
    assert_int_equal(ask(fixture, "ConfigService/Apply", apply, KEY_ROLE_ADMIN)->code, 0);
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

static Jury__V1__SimulateGroupRequest *request_of(struct fixture *fixture, const char *name)
{
    Jury__V1__SimulateGroupRequest *request =
        WIRE_NEW(&fixture->arena, Jury__V1__SimulateGroupRequest, jury__v1__simulate_group_request);

    request->group = group_message(fixture, name);
    return request;
}

static const struct rpc_world_reply *simulate(struct fixture *fixture,
                                              const Jury__V1__SimulateGroupRequest *request)
{
    return ask(fixture, "SimulationService/SimulateGroup", request, KEY_ROLE_VIEWER);
}

static void a_viewer_may_ask_and_nothing_is_applied(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__SimulateGroupRequest *request = request_of(fixture, "web");

    request->group->verdict->down->kind = JURY__V1__RULE__KIND__KIND_ANY;
    const struct rpc_world_reply *reply = simulate(fixture, request);
    assert_string_equal(reply->message, "");
    Jury__V1__SimulateGroupResponse *answer = (Jury__V1__SimulateGroupResponse *)rpc_world_message(
        reply, &jury__v1__simulate_group_response__descriptor, &fixture->arena);
    assert_string_equal(answer->group, "web");
    assert_int_equal(answer->node_id, 1);
    assert_true(answer->changes_nothing);
    assert_true(answer->is_exact);
    assert_true(answer->from_beginning);
    assert_int_equal(answer->was->n_events, 0);
}

static void what_apply_would_refuse_is_refused(void **state)
{
    struct fixture *fixture = *state;
    Jury__V1__SimulateGroupRequest *request = request_of(fixture, "web");

    request->group->verdict->down->kind = JURY__V1__RULE__KIND__KIND_AT_LEAST;
    request->group->verdict->down->value = 5;
    const struct rpc_world_reply *reply = simulate(fixture, request);
    assert_int_equal(reply->code, ERR_INVALID);
    assert_non_null(strstr(reply->message, "at-least 5 needs 5 observers"));

    request = request_of(fixture, "web");
    request->group->check->unhealthy_threshold = 11;
    reply = simulate(fixture, request);
    assert_int_equal(reply->code, ERR_INVALID);

    request->group = NULL;
    reply = simulate(fixture, request);
    assert_string_equal(reply->message, "group must be set: the changed group, whole");

    reply = simulate(fixture, request_of(fixture, "shop"));
    assert_int_equal(reply->code, ERR_NOTFOUND);
}

/* The wall clock goes on while an answer is made. */
static void one_answer_goes_by_one_reading_of_the_wall_clock(void **state)
{
    struct fixture *fixture = *state;

    fixture->world.wall_step_ms = 3600 * 1000;
    const struct rpc_world_reply *reply = simulate(fixture, request_of(fixture, "web"));
    Jury__V1__SimulateGroupResponse *answer = (Jury__V1__SimulateGroupResponse *)rpc_world_message(
        reply, &jury__v1__simulate_group_response__descriptor, &fixture->arena);
    assert_in_range(answer->to->seconds - answer->from->seconds, 0, 60);
}

/* Asks until it is refused; at most n times. */
static unsigned ask_many(struct fixture *fixture, unsigned n)
{
    const Jury__V1__SimulateGroupRequest *request = request_of(fixture, "web");

    for (unsigned i = 0; i < n; i++) {
        const struct rpc_world_reply *reply = simulate(fixture, request);

        if (reply->code != 0) {
            assert_int_equal(reply->code, ERR_BUSY);
            return i;
        }
    }
    return n;
}

static void simulations_get_a_tenth_of_the_time(void **state)
{
    struct fixture *fixture = *state;
    unsigned n = ask_many(fixture, 1000);

    assert_in_range(n, 20, 40);
    rpc_world_run(&fixture->world, 1000);
    n = ask_many(fixture, 1000);
    assert_in_range(n, 5, 20);
}

#ifdef JURY_PLANTS
static void twin_simulations_without_a_budget_are_caught(void **state)
{
    plant_set("simulation-no-budget");
    unsigned n = ask_many(*state, 100);
    plant_set(NULL);
    assert_int_equal(n, 100);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_viewer_may_ask_and_nothing_is_applied, setup, teardown),
        cmocka_unit_test_setup_teardown(what_apply_would_refuse_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(one_answer_goes_by_one_reading_of_the_wall_clock, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(simulations_get_a_tenth_of_the_time, setup, teardown),
#ifdef JURY_PLANTS
        cmocka_unit_test_setup_teardown(twin_simulations_without_a_budget_are_caught, setup,
                                        teardown),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
