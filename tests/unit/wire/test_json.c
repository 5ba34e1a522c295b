/* ProtoJSON by hand-written expectations; the long comparison with another implementation is
 * tests/integration/protojson.py. */
#include "common/wire/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/prng.h"
#include "common/wire/object.h"
#include "common/wire/unpack.h"
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/config.pb-c.h"
#include "tests/lib/random_objects.h"

static int setup(void **state)
{
    struct wire_arena *arena = calloc(1, sizeof *arena);

    assert_non_null(arena);
    wire_arena_init(arena, 8 * 1024 * 1024);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    wire_arena_close(*state);
    free(*state);
    return 0;
}

static char *compact(const ProtobufCMessage *message)
{
    json_t *json = wire_json_new(message);
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

    json_decref(json);
    return text;
}

static void a_message_comes_with_defaults_but_without_what_is_not_set(void **state)
{
    struct wire_arena *arena = *state;
    Jury__V1__AccessKey *key = WIRE_NEW(arena, Jury__V1__AccessKey, jury__v1__access_key);
    Jury__V1__Backend *backend = WIRE_NEW(arena, Jury__V1__Backend, jury__v1__backend);

    key->name = wire_text(arena, "ops");
    char *text = compact(&key->base);
    assert_string_equal(text,
                        "{\"name\":\"ops\",\"publicKey\":\"\",\"role\":\"ROLE_UNSPECIFIED\"}");
    free(text);
    key->expires = wire_timestamp_new(arena, 1767225600250);
    key->role = JURY__V1__ROLE__ROLE_ADMIN;
    text = compact(&key->base);
    assert_string_equal(text, "{\"name\":\"ops\",\"publicKey\":\"\",\"role\":\"ROLE_ADMIN\","
                              "\"expires\":\"2026-01-01T00:00:00.250Z\"}");
    free(text);
    /* A member of a oneof: absent, or there with its default. */
    text = compact(&backend->base);
    assert_null(strstr(text, "weight"));
    free(text);
    backend->weight_choice_case = JURY__V1__BACKEND__WEIGHT_CHOICE_WEIGHT;
    text = compact(&backend->base);
    assert_non_null(strstr(text, "\"weight\":0"));
    free(text);
}

static void numbers_of_64_bits_are_strings_and_unknown_enums_numbers(void **state)
{
    struct wire_arena *arena = *state;
    Jury__V1__StoreStatus *store = WIRE_NEW(arena, Jury__V1__StoreStatus, jury__v1__store_status);

    store->term = UINT64_MAX;
    store->state = (Jury__V1__StoreState)99;
    store->leader_age = wire_duration_new(arena, 1500000000);
    char *text = compact(&store->base);
    assert_non_null(strstr(text, "\"term\":\"18446744073709551615\""));
    assert_non_null(strstr(text, "\"state\":99"));
    assert_non_null(strstr(text, "\"leaderAge\":\"1.500s\""));
    free(text);
}

static void times_out_of_range_are_null_and_not_nonsense(void **state)
{
    struct wire_arena *arena = *state;
    Jury__V1__StoreStatus *store = WIRE_NEW(arena, Jury__V1__StoreStatus, jury__v1__store_status);

    store->leader_age = wire_duration_new(arena, 0);
    store->leader_age->seconds = INT64_MIN;
    store->leader_age->nanos = INT32_MIN;
    char *text = compact(&store->base);
    assert_non_null(strstr(text, "\"leaderAge\":null"));
    free(text);
}

static void refusals_name_the_path_of_the_field(void **state)
{
    struct wire_arena *arena = *state;
    static const struct {
        const char *json;
        const char *sentence;
    } rows[] = {
        {"{\"documents\":[{\"group\":{\"check\":{\"prot\":80}}}]}",
         "documents.group.check.prot: is an unknown field"},
        {"{\"documents\":[{\"group\":{\"check\":{\"port\":\"x\"}}}]}",
         "documents.group.check.port: must be a whole number of 0 or more in range"},
        {"{\"documents\":{}}", "documents: must be a list"},
        {"{\"dryRun\":1}", "dryRun: must be true or false"},
        {"{\"dryRun\":true,\"dry_run\":true}", "dry_run: is there twice, in two spellings"},
        {"[]", "must be an object"},
        {"{\"documents\":[{\"listener\":{},\"key\":{}}]}",
         "documents.key: excludes another field that is set"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct errmsg err = {{0}};
        ProtobufCMessage *message;
        json_t *json = json_loads(rows[i].json, 0, NULL);

        assert_non_null(json);
        assert_int_equal(
            wire_json_read(&jury__v1__apply_request__descriptor, json, arena, &message, &err),
            ERR_INVALID);
        assert_string_equal(err.text, rows[i].sentence);
        json_decref(json);
    }
}

static void a_document_that_is_too_much_is_refused(void **state)
{
    struct wire_arena small;
    struct errmsg err;
    ProtobufCMessage *message;
    json_t *json = json_loads("{\"name\":\"0123456789\",\"backends\":[{},{},{},{}]}", 0, NULL);

    (void)state;
    wire_arena_init(&small, 400);
    assert_int_equal(
        wire_json_read(&jury__v1__server_group__descriptor, json, &small, &message, &err),
        ERR_LIMIT);
    wire_arena_close(&small);
    json_decref(json);
}

static void objects_come_back_equal_through_json(void **state)
{
    struct wire_arena *arena = *state;

    for (uint64_t seed = 0; seed < 100; seed++) {
        struct prng prng;
        struct server_group group, back;
        struct errmsg err = {{0}};
        ProtobufCMessage *message;

        prng_init(&prng, seed);
        random_group(&prng, 6, &group);
        json_t *json = wire_json_new(&wire_group_new(arena, &group)->base);
        assert_int_equal(
            wire_json_read(&jury__v1__server_group__descriptor, json, arena, &message, &err), 0);
        assert_int_equal(wire_group_read((Jury__V1__ServerGroup *)message, &back, &err), 0);
        assert_true(is_same_group(&back, &group));
        json_decref(json);
        server_group_close(&group);
        server_group_close(&back);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_message_comes_with_defaults_but_without_what_is_not_set),
        TEST(numbers_of_64_bits_are_strings_and_unknown_enums_numbers),
        TEST(times_out_of_range_are_null_and_not_nonsense),
        TEST(refusals_name_the_path_of_the_field),
        TEST(a_document_that_is_too_much_is_refused),
        TEST(objects_come_back_equal_through_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
