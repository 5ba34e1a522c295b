/* Key files: what is written can be read by its owner alone, and every bad file is refused in a
 * sentence without a word of the secret. */
#include "common/rpc/key_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <zmq.h>

struct fixture {
    char folder[64];
    char path[96];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/jury-key-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof fixture->path, "%s/node.key", fixture->folder);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    unlink(fixture->path);
    rmdir(fixture->folder);
    free(fixture);
    return 0;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, 0600);
}

static void a_generated_pair_comes_back_equal_and_is_0600(void **state)
{
    struct fixture *fixture = *state;
    struct key_pair pair, back;
    struct public_key public_key;
    struct stat status;
    struct errmsg err = {{0}};

    umask(0);
    assert_int_equal(key_pair_generate(&pair, &err), 0);
    assert_int_equal(key_file_write(fixture->path, &pair, &err), 0);
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);

    assert_int_equal(key_file_read(fixture->path, &back, &err), 0);
    assert_memory_equal(&back.public_key, &pair.public_key, sizeof pair.public_key);
    assert_memory_equal(back.secret, pair.secret, SECRET_KEY_BYTES);
    assert_int_equal(key_file_read_public(fixture->path, &public_key, &err), 0);
    assert_memory_equal(&public_key, &pair.public_key, sizeof public_key);
    key_pair_close(&pair);
    key_pair_close(&back);
}

static void an_existing_file_is_never_overwritten(void **state)
{
    struct fixture *fixture = *state;
    struct key_pair pair;
    struct errmsg err;

    write_text(fixture->path, "precious\n");
    assert_int_equal(key_pair_generate(&pair, &err), 0);
    assert_int_equal(key_file_write(fixture->path, &pair, &err), ERR_EXISTS);
    assert_non_null(strstr(err.text, "never overwritten"));
    key_pair_close(&pair);
}

#define PUBLIC "public 8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a\n"
#define SECRET "secret 77076d0a7318a57d3c16c17251b26645df7b3a8c2a0e5b1e2f3c9f4d1a2b3c4d\n"

static void bad_files_are_refused_in_a_sentence_without_the_secret(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *text;
        const char *what;
    } rows[] = {
        {"", "holds no public key"},
        {"jury-key 2\n" PUBLIC SECRET, ":1: this is not a line of a key file"},
        {PUBLIC SECRET, ":1: this is not a line of a key file"},
        {"jury-key 1\n" PUBLIC, "holds a public key only"},
        {"jury-key 1\n" PUBLIC SECRET, "do not belong together"},
        {"jury-key 1\nsecret 77076d0a\n", ":2: this is not a line of a key file"},
        {"jury-key 1\n" PUBLIC PUBLIC SECRET, ":3: this is not a line of a key file"},
        {"-----BEGIN PRIVATE KEY-----\n", ":1: this is not a line of a key file"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct key_pair pair;
        struct errmsg err = {{0}};

        write_text(fixture->path, rows[i].text);
        assert_int_equal(key_file_read(fixture->path, &pair, &err), ERR_CONFIG);
        if (strstr(err.text, rows[i].what) == NULL) {
            fail_msg("row %zu: expected \"%s\" in \"%s\"", i, rows[i].what, err.text);
        }
        assert_null(strstr(err.text, "77076d0a"));
    }
}

static void a_file_that_others_can_read_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct key_pair pair, back;
    struct public_key public_key;
    struct errmsg err;
    static const mode_t modes[] = {0640, 0604, 0660, 0601};

    assert_int_equal(key_pair_generate(&pair, &err), 0);
    assert_int_equal(key_file_write(fixture->path, &pair, &err), 0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char expected[64];

        chmod(fixture->path, modes[i]);
        assert_int_equal(key_file_read(fixture->path, &back, &err), ERR_CONFIG);
        snprintf(expected, sizeof expected, "can be read by others (mode %04o)",
                 (unsigned)modes[i]);
        assert_non_null(strstr(err.text, expected));
    }
    assert_int_equal(key_file_read_public(fixture->path, &public_key, &err), 0);
    chmod(fixture->path, 0400);
    assert_int_equal(key_file_read(fixture->path, &back, &err), 0);
    key_pair_close(&pair);
    key_pair_close(&back);
}

static void what_is_no_regular_file_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct key_pair pair;
    struct errmsg err;

    assert_int_equal(key_file_read(fixture->path, &pair, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(key_file_read(fixture->folder, &pair, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    assert_int_equal(key_file_read(fixture->path, &pair, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "not a regular file"));
}

static void public_keys_are_read_as_hex_and_as_z85(void **state)
{
    (void)state;
    struct key_pair pair;
    struct public_key back;
    struct errmsg err;
    char text[PUBLIC_KEY_TEXT_BYTES], z85[41];

    assert_int_equal(key_pair_generate(&pair, &err), 0);
    assert_int_equal(
        public_key_parse(public_key_format(&pair.public_key, text), "key", &back, &err), 0);
    assert_memory_equal(&back, &pair.public_key, sizeof back);
    zmq_z85_encode(z85, pair.public_key.bytes, PUBLIC_KEY_BYTES);
    assert_int_equal(public_key_parse(z85, "key", &back, &err), 0);
    assert_memory_equal(&back, &pair.public_key, sizeof back);
    assert_int_equal(public_key_parse("abc", "server key", &back, &err), ERR_INVALID);
    assert_string_equal(
        err.text, "server key must be 64 hex digits or 40 characters of Z85, got 3 characters");
    key_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_generated_pair_comes_back_equal_and_is_0600, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_existing_file_is_never_overwritten, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_files_are_refused_in_a_sentence_without_the_secret,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_others_can_read_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_refused, setup, teardown),
        cmocka_unit_test(public_keys_are_read_as_hex_and_as_z85),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
