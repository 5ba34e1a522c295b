/* Foreign bytes: every bound holds before protobuf-c sees them (S-PB-1..3). */
#include "common/wire/unpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/prng.h"
#include "common/wire/object.h"
#include "jury/v1/config.pb-c.h"
#include "jury/v1/envelope.pb-c.h"
#include "tests/lib/random_objects.h"

static const struct wire_limits limits = {.bytes_max = 1024 * 1024, .elements_max = 262144};

static int unpack_with(const struct wire_limits *bounds, const ProtobufCMessageDescriptor *type,
                       const uint8_t *data, size_t n_bytes, struct errmsg *err)
{
    struct wire_arena arena;
    ProtobufCMessage *message = NULL;

    wire_arena_init(&arena, wire_budget(bounds));
    int rc = wire_unpack(type, bounds, data, n_bytes, &arena, &message, err);
    assert_true((rc == 0) == (message != NULL));
    wire_arena_close(&arena);
    return rc;
}

static int unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t n_bytes,
                  struct errmsg *err)
{
    return unpack_with(&limits, type, data, n_bytes, err);
}

static void an_empty_message_is_all_defaults(void **state)
{
    (void)state;
    struct wire_arena arena;
    struct errmsg err;
    ProtobufCMessage *message;

    wire_arena_init(&arena, wire_budget(&limits));
    assert_int_equal(
        wire_unpack(&jury__v1__request__descriptor, &limits, NULL, 0, &arena, &message, &err), 0);
    assert_string_equal(((Jury__V1__Request *)message)->method, "");
    wire_arena_close(&arena);
}

static void text_that_is_not_utf8_or_holds_a_nul_is_refused(void **state)
{
    (void)state;
    /* Field 1 of BackendRef: a string. */
    static const struct {
        const char *bytes;
        size_t n_bytes;
        int rc;
    } rows[] = {
        {"\x0a\x03web", 5, 0},
        {"\x0a\x03w\0b", 5, ERR_INVALID},
        {"\x0a\x02\xc3\xa9", 4, 0},                   /* e acute */
        {"\x0a\x02\xc0\x80", 4, ERR_INVALID},         /* NUL, overlong */
        {"\x0a\x01\xc3", 3, ERR_INVALID},             /* cut off */
        {"\x0a\x03\xed\xa0\x80", 5, ERR_INVALID},     /* surrogate */
        {"\x0a\x04\xf4\x90\x80\x80", 6, ERR_INVALID}, /* above U+10FFFF */
        {"\x0a\x04\xf0\x9f\x90\x8c", 6, 0},
        {"\x0a\x03\xe0\x80\x80", 5, ERR_INVALID}, /* overlong */
        {"\x0a\x01\xff", 3, ERR_INVALID},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct errmsg err = {{0}};

        assert_int_equal(
            unpack(&jury__v1__backend_ref__descriptor, rows[i].bytes, rows[i].n_bytes, &err),
            rows[i].rc);
        if (rows[i].rc != 0) {
            assert_string_equal(err.text, "message jury.v1.BackendRef, field group: is not text "
                                          "(UTF-8 without NUL)");
        }
    }
}

static void broken_bytes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n_bytes;
        const char *what;
    } rows[] = {
        {"\x0a\x05web", 5, "is cut off"},
        {"\x0a\xff\xff\xff\xff\x0f", 6, "is cut off"},
        {"\x0b", 1, "is of another type"}, /* start of a group */
        {"\x7b", 1, "unknown wire type"},  /* of an unknown field */
        {"\x00\x01", 2, "field number out of range"},
        {"\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, "broken number"},
        {"\x18\x80", 2, "broken number"},
        {"\x1d\x01\x02", 3, "is of another type"},
        {"\x80", 1, "is cut off"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct errmsg err = {{0}};

        assert_int_equal(
            unpack(&jury__v1__backend_ref__descriptor, rows[i].bytes, rows[i].n_bytes, &err),
            ERR_INVALID);
        if (strstr(err.text, rows[i].what) == NULL) {
            fail_msg("row %zu: expected \"%s\" in \"%s\"", i, rows[i].what, err.text);
        }
    }
}

static void too_many_bytes_or_values_are_refused_before_unpacking(void **state)
{
    (void)state;
    struct wire_limits small = {.bytes_max = 64, .elements_max = 10};
    struct errmsg err;
    uint8_t data[128];

    /* Documents that are empty: two bytes each. */
    for (size_t i = 0; i < sizeof data; i += 2) {
        data[i] = 0x0a;
        data[i + 1] = 0;
    }
    const ProtobufCMessageDescriptor *type = &jury__v1__apply_request__descriptor;
    assert_int_equal(unpack_with(&small, type, data, 20, &err), 0);
    assert_int_equal(unpack_with(&small, type, data, 22, &err), ERR_LIMIT);
    assert_string_equal(err.text, "message jury.v1.ApplyRequest holds more than 10 values");
    assert_int_equal(unpack_with(&small, type, data, 65, &err), ERR_LIMIT);
    assert_string_equal(err.text, "message jury.v1.ApplyRequest has 65 bytes, allowed are 64");
}

/* A megabyte of empty sub-messages: 71 MB with the plain allocator (S-PB-2). */
static void a_megabyte_of_empty_messages_stays_within_the_budget(void **state)
{
    (void)state;
    const size_t n_bytes = 1024 * 1024;
    struct wire_limits loose = {.bytes_max = n_bytes, .elements_max = SIZE_MAX};
    struct wire_arena arena;
    struct errmsg err;
    ProtobufCMessage *message = NULL;
    uint8_t *data = malloc(n_bytes);

    assert_non_null(data);
    for (size_t i = 0; i < n_bytes; i += 2) {
        data[i] = 0x0a;
        data[i + 1] = 0;
    }
    wire_arena_init(&arena, wire_budget(&loose));
    int rc = wire_unpack(&jury__v1__apply_request__descriptor, &loose, data, n_bytes, &arena,
                         &message, &err);
    assert_int_equal(rc, ERR_LIMIT);
    assert_non_null(strstr(err.text, "needs more memory than allowed"));
    assert_true(arena.used_bytes <= wire_budget(&loose));
    wire_arena_close(&arena);
    assert_int_equal(unpack(&jury__v1__apply_request__descriptor, data, n_bytes, &err), ERR_LIMIT);
    free(data);
}

/* The budget is generous for what is honest: the densest message that we send. */
static void a_list_of_bare_backends_of_full_size_fits_the_budget(void **state)
{
    (void)state;
    const size_t n_backends = 62000;
    struct wire_arena building, arena;
    struct errmsg err = {{0}};
    ProtobufCMessage *message = NULL;
    size_t n_bytes;

    wire_arena_init(&building, 256 * 1024 * 1024);
    Jury__V1__ServerGroup *group =
        WIRE_NEW(&building, Jury__V1__ServerGroup, jury__v1__server_group);
    group->backends = wire_alloc_array(&building, n_backends, sizeof *group->backends);
    for (size_t i = 0; i < n_backends; i++) {
        Jury__V1__Backend *backend = WIRE_NEW(&building, Jury__V1__Backend, jury__v1__backend);

        backend->address = wire_text(&building, "10.0.0.1");
        backend->port = 80 + (uint32_t)i;
        group->backends[group->n_backends++] = backend;
    }
    uint8_t *data = wire_pack(&group->base, &building, &n_bytes);
    assert_true(n_bytes > 900 * 1024 && n_bytes < limits.bytes_max);

    wire_arena_init(&arena, wire_budget(&limits));
    int rc = wire_unpack(&jury__v1__server_group__descriptor, &limits, data, n_bytes, &arena,
                         &message, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    print_message("%zu bytes on the wire are %zu in memory (budget %zu)\n", n_bytes,
                  arena.used_bytes, arena.budget_bytes);
    wire_arena_close(&arena);
    wire_arena_close(&building);
}

static void fields_of_a_newer_version_are_skipped_or_refused_as_asked(void **state)
{
    (void)state;
    struct wire_limits strict = limits;
    struct errmsg err;
    /* BackendRef with field 15 (a number) inside DrainBackendRequest. */
    static const uint8_t data[] = {0x0a, 0x07, 0x0a, 0x03, 'w', 'e', 'b', 0x78, 0x05};

    assert_int_equal(unpack(&jury__v1__drain_backend_request__descriptor, data, sizeof data, &err),
                     0);
    strict.refuses_unknown = true;
    assert_int_equal(
        unpack_with(&strict, &jury__v1__drain_backend_request__descriptor, data, sizeof data, &err),
        ERR_VERSION);
    assert_string_equal(err.text,
                        "message jury.v1.BackendRef holds field 15, which this node does not know: "
                        "nothing was changed; ask a node of a newer version");
}

/* Every prefix and many bit flips of real messages: refused or read, never a crash (asan). */
static void cut_and_flipped_messages_are_refused_or_read(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct prng prng;
        struct server_group group;
        struct wire_arena building;
        struct errmsg err;
        size_t n_bytes;

        prng_init(&prng, seed);
        random_group(&prng, 4, &group);
        wire_arena_init(&building, 1024 * 1024);
        uint8_t *data = wire_pack(&wire_group_new(&building, &group)->base, &building, &n_bytes);
        for (size_t n = 0; n < n_bytes; n++) {
            unpack(&jury__v1__server_group__descriptor, data, n, &err);
        }
        for (int i = 0; i < 2000; i++) {
            size_t at = prng_below(&prng, n_bytes);
            uint8_t before = data[at];

            data[at] ^= (uint8_t)(1U << prng_below(&prng, 8));
            unpack(&jury__v1__server_group__descriptor, data, n_bytes, &err);
            data[at] = before;
        }
        wire_arena_close(&building);
        server_group_close(&group);
    }
}

static void an_arena_that_has_failed_stays_failed(void **state)
{
    (void)state;
    struct wire_arena arena;

    wire_arena_init(&arena, 100);
    assert_non_null(wire_alloc(&arena, 60));
    assert_null(wire_alloc(&arena, 60));
    assert_null(wire_alloc(&arena, 1));
    assert_null(wire_alloc_array(&arena, SIZE_MAX, 2));
    assert_true(arena.failed);
    wire_arena_close(&arena);
    wire_arena_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_message_is_all_defaults),
        cmocka_unit_test(text_that_is_not_utf8_or_holds_a_nul_is_refused),
        cmocka_unit_test(broken_bytes_are_refused),
        cmocka_unit_test(too_many_bytes_or_values_are_refused_before_unpacking),
        cmocka_unit_test(a_megabyte_of_empty_messages_stays_within_the_budget),
        cmocka_unit_test(a_list_of_bare_backends_of_full_size_fits_the_budget),
        cmocka_unit_test(fields_of_a_newer_version_are_skipped_or_refused_as_asked),
        cmocka_unit_test(cut_and_flipped_messages_are_refused_or_read),
        cmocka_unit_test(an_arena_that_has_failed_stays_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
