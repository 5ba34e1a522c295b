/* One node's RPC server in a world of its own, and calls of it in a line each. */
#ifndef JURY_TEST_RPC_FIXTURE_H
#define JURY_TEST_RPC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/rpc/rpc_server.h"
#include "common/wire/object.h"
#include "jury/v1/config.pb-c.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/rpc_world.h"

struct fixture {
    struct rpc_world world;
    struct wire_arena arena;
};

static inline int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    rpc_world_open(&fixture->world, 1, 1);
    wire_arena_init(&fixture->arena, 256 * 1024 * 1024);
    *state = fixture;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *fixture = *state;

    rpc_world_close(&fixture->world);
    wire_arena_close(&fixture->arena);
    free(fixture);
    return 0;
}

/* --- requests --- */

static inline Jury__V1__Document *group_document(struct wire_arena *arena, const char *name,
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

static inline Jury__V1__ApplyRequest *apply_request(struct wire_arena *arena, const char *name,
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

static inline void apply(struct fixture *fixture, const char *name, const char *endpoints)
{
    const struct rpc_world_reply *reply =
        ask(fixture, "ConfigService/Apply", apply_request(&fixture->arena, name, endpoints),
            KEY_ROLE_ADMIN);

    assert_string_equal(reply->message, "");
    assert_int_equal(reply->code, 0);
}

#define MESSAGE(fixture, reply, type, prefix) \
    ((type *)rpc_world_message((reply), &prefix##__descriptor, &(fixture)->arena))

static inline Jury__V1__BackendRef *ref(struct fixture *fixture, const char *group, const char *at)
{
    struct endpoint endpoint = build_endpoint(at);

    return wire_backend_ref_new(&fixture->arena, group, &endpoint);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
