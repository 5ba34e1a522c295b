/* Commands as bytes: nothing is lost, nothing damaged is taken (row 1.3, 1.13). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/catalog_codec.h"
#include "common/base/prng.h"
#include "common/base/str.h"
#include "common/model/feature_level.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/random_objects.h"

/* --- objects --- */

struct image {
    struct bytes_writer writer;
    struct codec_in in;
};

static void write_image(struct image *image)
{
    bytes_writer_init(&image->writer, 1 << 20);
}

static struct codec_in *read_image(struct image *image, uint8_t minor)
{
    assert_false(image->writer.failed);
    image->in = (struct codec_in){.minor = minor};
    bytes_reader_init(&image->in.bytes, image->writer.data, image->writer.n_bytes);
    return &image->in;
}

/* ROUND_TRIP(type, make, write, read, level): read by the oldest program that its level allows, the
 * object that comes back has the same bytes, and every prefix of them is refused. A new field of
 * the codec without a level of its own (feature_level.c) is left over there, and refused. */
#define ROUND_TRIP(type, make, write, read, level, close)                                \
    do {                                                                                 \
        struct image image;                                                              \
        struct image again;                                                              \
        struct type *object = calloc(1, sizeof *object);                                 \
        struct type *copy = calloc(1, sizeof *copy);                                     \
                                                                                         \
        make;                                                                            \
        write_image(&image);                                                             \
        write(&image.writer, object);                                                    \
        read(read_image(&image, level), copy);                                           \
        assert_true(codec_done(&image.in));                                              \
        write_image(&again);                                                             \
        write(&again.writer, copy);                                                      \
        assert_int_equal(image.writer.n_bytes, again.writer.n_bytes);                    \
        assert_memory_equal(image.writer.data, again.writer.data, image.writer.n_bytes); \
        size_t n_bytes = image.writer.n_bytes;                                           \
        for (size_t cut = 0; cut < n_bytes; cut++) {                                     \
            image.writer.n_bytes = cut;                                                  \
            read(read_image(&image, level), copy);                                       \
            assert_false(codec_done(&image.in));                                         \
        }                                                                                \
        bytes_writer_close(&image.writer);                                               \
        bytes_writer_close(&again.writer);                                               \
        close(object);                                                                   \
        close(copy);                                                                     \
        free(object);                                                                    \
        free(copy);                                                                      \
    } while (0)

static void owns_nothing(const void *object)
{
    (void)object;
}

static void read_group_anew(struct codec_in *in, struct server_group *group)
{
    server_group_close(group);
    codec_read_group(in, group);
}

static void objects_come_back_as_they_were(void **unused)
{
    struct prng prng;
    const char *field;

    (void)unused;
    prng_init(&prng, 1);
    for (unsigned i = 0; i < 100; i++) {
        ROUND_TRIP(server_group, random_group(&prng, 0, object), codec_write_group, read_group_anew,
                   feature_level_of_group(object, &field), server_group_close);
        ROUND_TRIP(listener, random_listener(&prng, object), codec_write_listener,
                   codec_read_listener, FEATURE_LEVEL_BASE, owns_nothing);
        ROUND_TRIP(cluster_settings, random_settings(&prng, object), codec_write_settings,
                   codec_read_settings, FEATURE_LEVEL_BASE, owns_nothing);
        ROUND_TRIP(member_node, random_node(&prng, object), codec_write_node, codec_read_node,
                   FEATURE_LEVEL_BASE, owns_nothing);
        ROUND_TRIP(access_key, random_key(&prng, object), codec_write_key, codec_read_key,
                   FEATURE_LEVEL_BASE, owns_nothing);
    }
}

static void a_field_that_is_not_known_is_never_passed_over(void **unused)
{
    struct image image;
    struct access_key key = {.name = "root", .role = KEY_ROLE_ADMIN, .key = {{1}}};
    struct access_key copy;

    (void)unused;
    write_image(&image);
    codec_write_key(&image.writer, &key);
    bytes_write_u32(&image.writer, 0xabcdef);
    codec_end(&image.writer, 0);
    codec_read_key(read_image(&image, FEATURE_LEVEL), &copy);
    assert_false(codec_done(&image.in));
    bytes_writer_close(&image.writer);
}

/* --- commands --- */

static void make_command(struct command *command)
{
    struct prng prng;
    struct server_group group;

    prng_init(&prng, 2);
    *command = (struct command){.wall_ms = -7, .is_forced = true, .forced_count = 3};
    strcpy(command->actor, "root");
    command->request_id.bytes[3] = 9;
    random_group(&prng, 20, &group);
    build_put_group(command, &group)->has_expected_revision = true;
    command->changes[0].expected_revision = 77;
    server_group_close(&group);
    build_delete_group(command, "web");
    build_listener(command, "front", "[2001:db8::1]:80", "web");
    build_delete_listener(command, "front");
    build_node(command, UINT64_MAX, ROLE_VOTER);
    build_delete_node(command, 3);
    build_key(command, "root", KEY_ROLE_ADMIN, 1);
    build_delete_key(command, "root");
    build_admin(command, "web", "10.0.0.1:80", ADMIN_DRAINING);
    build_weight(command, "web", "10.0.0.1:80", 3);
    build_init(command, 3);
    struct catalog *catalog = build_catalog(1, "web", "10.0.0.1:80");
    build_purge(command, catalog, "web", "10.0.0.1:80");
    build_settings(command, catalog_settings(catalog));
    catalog_unref(catalog);
}

static uint8_t *encode(const struct command *command, size_t *ret_n_bytes)
{
    uint8_t *data;
    struct errmsg err;

    if (command_encode(command, &data, ret_n_bytes, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return data;
}

static void commands_come_back_as_they_were(void **unused)
{
    struct command command;
    struct command copy;
    size_t n_bytes;
    size_t n_again;

    (void)unused;
    make_command(&command);
    uint8_t *data = encode(&command, &n_bytes);
    assert_int_equal(n_bytes % 8, 0);
    assert_int_equal(command_decode(data, n_bytes, &copy, NULL), 0);
    uint8_t *again = encode(&copy, &n_again);
    assert_int_equal(n_bytes, n_again);
    assert_memory_equal(data, again, n_bytes);
    assert_int_equal(copy.wall_ms, -7);
    assert_string_equal(copy.actor, "root");
    assert_int_equal(copy.changes[0].expected_revision, 77);
    assert_true(copy.changes[4].u.node->node_id == UINT64_MAX);
    command_close(&command);
    command_close(&copy);
    free(data);
    free(again);
}

/* Whatever is cut off or flipped: refused with a sentence, or read as some other command that has
 * exactly those bytes. Never a crash. */
static void damaged_commands_are_refused(void **unused)
{
    struct command command;
    struct command copy;
    struct errmsg err;
    size_t n_bytes;
    unsigned n_taken = 0;

    (void)unused;
    make_command(&command);
    uint8_t *data = encode(&command, &n_bytes);
    command_close(&command);
    for (size_t cut = 0; cut < n_bytes; cut++) {
        assert_int_equal(command_decode(data, cut, &copy, &err), ERR_CORRUPT);
    }
    for (size_t bit = 0; bit < 8 * n_bytes; bit++) {
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int rc = command_decode(data, n_bytes, &copy, &err);
        if (rc == 0) {
            size_t n_again;
            uint8_t *again;

            n_taken++;
            if (data[5] >= FEATURE_LEVEL_BASE) { /* an older minor is written anew as the base */
                again = encode(&copy, &n_again);
                assert_int_equal(n_bytes, n_again);
                assert_memory_equal(data, again, n_bytes);
                free(again);
            }
            command_close(&copy);
        } else {
            assert_true(rc == ERR_CORRUPT || rc == ERR_VERSION);
            assert_true(strlen(err.text) > 10);
        }
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(n_taken > 0); /* values inside fields */
    free(data);
}

static void an_unknown_version_is_refused_in_one_sentence(void **unused)
{
    struct command command = {0};
    struct command copy;
    struct errmsg err;
    size_t n_bytes;

    (void)unused;
    build_delete_group(&command, "web");
    uint8_t *data = encode(&command, &n_bytes);
    command_close(&command);
    data[5] = 7; /* minor: it may hold a field that this version does not know */
    assert_int_equal(command_decode(data, n_bytes, &copy, &err), ERR_VERSION);
    assert_string_equal(err.text, "a command of version 1.7: this node reads up to 1.3, update it");
    data[5] = FEATURE_LEVEL; /* more than it needs: the same command in other bytes */
    assert_int_equal(command_decode(data, n_bytes, &copy, &err), ERR_CORRUPT);
    data[5] = FEATURE_LEVEL_BASE;
    data[4] = 2; /* major */
    assert_int_equal(command_decode(data, n_bytes, &copy, &err), ERR_VERSION);
    assert_string_equal(err.text, "a command of version 2.2: this node reads up to 1.3, update it");
    data[4] = 1;
    data[51] = 200; /* kind of the first change */
    assert_int_equal(command_decode(data, n_bytes, &copy, &err), ERR_VERSION);
    assert_string_equal(err.text,
                        "a command with a change of kind 200, which this version does not "
                        "know: update this node");
    free(data);
}

static void a_command_that_is_too_long_names_its_size(void **unused)
{
    struct command command = {0};
    struct server_group group;
    struct errmsg err;
    uint8_t *data;
    size_t n_bytes;
    char name[16];

    (void)unused;
    build_group(&group, "web", "10.0.0.1:80");
    memset(group.backends[0].description, 'x', LIMIT_DESCRIPTION_BYTES);
    for (unsigned i = 0; i < 3000; i++) {
        sprintf(name, "group%u", i);
        strcpy(group.name, name);
        build_put_group(&command, &group);
    }
    server_group_close(&group);
    assert_int_equal(command_encode(&command, &data, &n_bytes, &err), ERR_LIMIT);
    unsigned long size = strtoul(err.text + strlen("the change set is "), NULL, 10);
    assert_in_range(size, LIMIT_COMMAND_BYTES + 1, 2 * LIMIT_COMMAND_BYTES);
    assert_non_null(strstr(err.text, " bytes long, the limit of one command is 524288: split it"));
    command_close(&command);
    for (unsigned i = 0; i < LIMIT_CHANGES_PER_COMMAND + 1; i++) {
        build_delete_node(&command, i);
    }
    assert_int_equal(command_encode(&command, &data, &n_bytes, &err), ERR_LIMIT);
    assert_string_equal(err.text, "the change set holds 12001 changes, the limit of one command is "
                                  "12000: split it");
    command_close(&command);
}

static void read_recorded(const char *hex, struct command *ret_command)
{
    uint8_t data[1024];
    size_t n_bytes = strlen(hex) / 2;

    assert_in_range(n_bytes, 1, sizeof data);
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned byte;

        sscanf(hex + 2 * i, "%2x", &byte);
        data[i] = (uint8_t)byte;
    }
    assert_int_equal(command_decode(data, n_bytes, ret_command, NULL), 0);
}

/* The command of the_format_is_the_recorded_one in format 1.0, which had no hold (R-CFG-3). */
static void a_command_of_format_1_0_is_read_as_not_held(void **unused)
{
    static const char command_hex[] =
        "4a434d4401000000d70000000100000000000000000000000000000088130000000000000400726f"
        "6f740000000000020000008000000002000000000000000000400000000300776562020202000801"
        "00000000160000000101010000881300008813000002020300000002010206000000010001000001"
        "00e0930400a0bb0d0000000000020000000d000000040a00000150006400000000001900000006fc"
        "000000000000000000000000000001500064000000000028000000040000000000000000001a0000"
        "00050066726f6e7404c000020150005000020000000003007765620000000000";
    struct command command;

    (void)unused;
    read_recorded(command_hex, &command);
    assert_string_equal(command.changes[0].u.group->name, "web");
    assert_int_equal(command.changes[0].u.group->hold, HOLD_OFF);
    assert_false(command.changes[0].u.group->guard.velocity_percent);
    command_close(&command);
}

/* In format 1.1, whose guard was the velocity limit alone. */
static void a_command_of_format_1_1_has_a_velocity_limit_and_an_alarm(void **unused)
{
    static const char command_hex[] =
        "4a434d4401010000e90000000100000000000000000000000000000088130000000000000400726f"
        "6f740000000000020000009200000002000000000000000000520000000300776562020202000801"
        "00000000160000000101010000881300008813000002020300000002010206000000010001000001"
        "00e0930400a0bb0d0000000000000000000000000000000000307500000a00020000000d00000004"
        "0a00000150006400000000001900000006fc00000000000000000000000000000150006400000000"
        "0028000000040000000000000000001a000000050066726f6e7404c0000201500050000200000000"
        "0300776562000000";
    struct command command;

    (void)unused;
    read_recorded(command_hex, &command);
    const struct guard_policy *guard = &command.changes[0].u.group->guard;
    assert_int_equal(guard->velocity_window_ms, 30000);
    assert_int_equal(guard->exempt_below, 10);
    assert_int_equal(guard->flap_hold_ms, 0);
    assert_int_equal(guard->return_percent, 0);
    assert_int_equal(guard->return_window_ms, 10000);
    assert_int_equal(guard->shadow_cycles, 0);
    assert_true(guard->shadow_stop);
    assert_true(guard->correlated_alarm);
    command_close(&command);
}

/* The bytes of format 1.2. Another result on another machine or compiler would split a cluster; a
 * change of the format needs a new minor version and, for what is released, a reader of the old one
 * (R-CFG-3). */
static void the_format_is_the_recorded_one(void **unused)
{
    static const char command_hex[] =
        "4a434d4401020000f60000000100000000000000000000000000000088130000000000000400726f"
        "6f740000000000020000009f000000020000000000000000005f0000000300776562020202000801"
        "00000000160000000101010000881300008813000002020300000002010206000000010001000001"
        "00e0930400a0bb0d0000000000000000000000000000000000307500000a00000000000010270000"
        "00000101020000000d000000040a00000150006400000000001900000006fc000000000000000000"
        "000000000001500064000000000028000000040000000000000000001a000000050066726f6e7404"
        "c00002015000500002000000000300776562000000000000";
    struct catalog_state *state = build_state(3);
    struct command command = {.wall_ms = 5000};
    char text[1024];
    size_t n_bytes;

    (void)unused;
    strcpy(command.actor, "root");
    command.request_id.bytes[0] = 1;
    build_put(&command, "web", "10.0.0.1:80 [fc00::1]:80");
    build_listener(&command, "front", "192.0.2.1:80", "web");
    uint8_t *data = encode(&command, &n_bytes);
    str_hex(data, n_bytes, text);
    assert_string_equal(text, command_hex);
    free(data);
    build_commit(state, &command);
    build_put(&command, "web", "10.0.0.1:80");
    build_commit(state, &command);
    build_admin(&command, "web", "10.0.0.1:80", ADMIN_DRAINING);
    build_commit(state, &command);
    struct catalog *catalog = catalog_state_catalog(state);
    struct hash128 hash = catalog_state_hash(catalog);
    assert_true(hash.low == UINT64_C(0xf0a3ac70dad51ad1) &&
                hash.high == UINT64_C(0xbb7e52d70741e514));
    catalog_unref(catalog);
    catalog_state_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_come_back_as_they_were),
        cmocka_unit_test(a_field_that_is_not_known_is_never_passed_over),
        cmocka_unit_test(commands_come_back_as_they_were),
        cmocka_unit_test(damaged_commands_are_refused),
        cmocka_unit_test(an_unknown_version_is_refused_in_one_sentence),
        cmocka_unit_test(a_command_that_is_too_long_names_its_size),
        cmocka_unit_test(a_command_of_format_1_0_is_read_as_not_held),
        cmocka_unit_test(a_command_of_format_1_1_has_a_velocity_limit_and_an_alarm),
        cmocka_unit_test(the_format_is_the_recorded_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
