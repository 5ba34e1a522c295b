#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/store/data_dir.h"

struct place {
    char path[64];
    struct data_dir dir;
    struct data_dir_owner owner;
    struct identity identity;
    bool must_fail;
    int n_bootstraps;
};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof *place);

    snprintf(place->path, sizeof place->path, "/tmp/jury-dir-XXXXXX");
    assert_non_null(mkdtemp(place->path));
    assert_int_equal(data_dir_init(&place->dir, place->path, NULL), 0);
    memset(&place->owner.key, 7, sizeof place->owner.key);
    place->owner.allow_tmpfs = true;
    place->identity = (struct identity){
        .node_id = 3, .incarnation = identity_new_incarnation(), .key = place->owner.key};
    memset(&place->identity.cluster_id, 9, sizeof place->identity.cluster_id);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;

    data_dir_close(&place->dir);
    files_remove_tree(place->path, NULL);
    free(place);
    return 0;
}

static int bootstrap(void *user, const char *raft_dir, const struct identity *identity,
                     struct errmsg *err)
{
    struct place *place = user;
    char path[FILES_PATH_BYTES];

    (void)identity;
    place->n_bootstraps++;
    if (place->must_fail) {
        return errmsg_set(err, ERR_FULL, "no space for it");
    }
    assert_int_equal(files_path(path, raft_dir, "log", err), 0);
    return files_create(path, "log", 3, err);
}

static enum data_dir_state open_it(struct place *place, struct identity *identity)
{
    enum data_dir_state state = DATA_DIR_NONE;
    struct errmsg err;

    assert_int_equal(data_dir_open(&place->dir, &place->owner, &state, identity, &err), 0);
    return state;
}

static int make_it(struct place *place)
{
    struct data_dir_first first = {.command = (const uint8_t *)"command!",
                                   .n_command_bytes = 8,
                                   .bootstrap = bootstrap,
                                   .user = place};
    struct errmsg err;

    return data_dir_make(&place->dir, &place->identity, &first, &err);
}

static void made_once_and_found_again(void **state)
{
    struct place *place = *state;
    struct identity identity = {0};
    uint64_t epoch = 0;
    bool was_damaged = true;
    uint8_t *command = NULL;
    size_t n_bytes = 0;
    struct errmsg err;

    assert_int_equal(open_it(place, &identity), DATA_DIR_EMPTY);
    assert_int_equal(make_it(place), 0);
    assert_int_equal(open_it(place, &identity), DATA_DIR_READY);
    assert_memory_equal(&identity, &place->identity, sizeof identity);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(data_dir_raise_epoch(&place->dir, 0, &epoch, &was_damaged, &err), 0);
        assert_int_equal(epoch, i);
    }
    assert_int_equal(data_dir_read_init(&place->dir, &command, &n_bytes, &err), 0);
    assert_memory_equal(command, "command!", 8);
    free(command);
    assert_int_equal(data_dir_drop_init(&place->dir, &err), 0);
    assert_int_equal(data_dir_read_init(&place->dir, &command, &n_bytes, &err), ERR_NOTFOUND);
}

static void failure_in_the_middle_leaves_it_empty(void **state)
{
    struct place *place = *state;
    struct identity identity;

    open_it(place, &identity);
    place->must_fail = true;
    assert_int_equal(make_it(place), ERR_FULL);
    assert_false(files_exists(place->dir.store));
    place->must_fail = false;
    assert_int_equal(make_it(place), 0);
    assert_int_equal(place->n_bootstraps, 2);
}

static void unmarked_directory_goes_only_if_it_never_spoke(void **state)
{
    struct place *place = *state;
    char marker[FILES_PATH_BYTES], fresh[FILES_PATH_BYTES];
    enum data_dir_state found = DATA_DIR_NONE;
    struct identity identity;
    struct errmsg err;
    uint64_t epoch;
    bool was_damaged;

    open_it(place, &identity);
    assert_int_equal(make_it(place), 0);
    files_path(marker, place->dir.store, "complete", NULL);
    files_path(fresh, place->path, "store.new", NULL);
    assert_int_equal(unlink(marker), 0);
    assert_int_equal(mkdir(fresh, 0700), 0);
    assert_int_equal(open_it(place, &identity), DATA_DIR_EMPTY);
    assert_false(files_exists(place->dir.store));
    assert_false(files_exists(fresh));

    assert_int_equal(make_it(place), 0);
    assert_int_equal(data_dir_raise_epoch(&place->dir, 0, &epoch, &was_damaged, &err), 0);
    assert_int_equal(unlink(marker), 0);
    assert_int_equal(data_dir_open(&place->dir, &place->owner, &found, &identity, &err),
                     ERR_CORRUPT);
    assert_non_null(strstr(err.text, "/store/complete is missing"));
    assert_non_null(strstr(err.text, "restore this file"));
    assert_non_null(strstr(err.text, "new node id"));
    assert_true(files_exists(place->dir.store));
}

static void damaged_identity_is_named_and_to_be_restored(void **state)
{
    struct place *place = *state;
    char path[FILES_PATH_BYTES];
    enum data_dir_state found = DATA_DIR_NONE;
    struct identity identity;
    struct errmsg err;

    open_it(place, &identity);
    assert_int_equal(make_it(place), 0);
    files_path(path, place->dir.store, "identity", NULL);
    for (int round = 0; round < 4; round++) {
        static const char noise[4096] = "\x80\xff\x01 noise";

        assert_int_equal(unlink(path), 0);
        if (round < 3) { /* some bytes, none, more than any; and no file */
            static const size_t n_bytes[] = {9, 0, sizeof noise};
            assert_int_equal(files_create(path, noise, n_bytes[round], &err), 0);
        }
        assert_int_equal(data_dir_open(&place->dir, &place->owner, &found, &identity, &err),
                         ERR_CORRUPT);
        assert_int_equal(found, DATA_DIR_NONE);
        assert_non_null(strstr(err.text, path));
        assert_non_null(strstr(err.text, "damaged"));
        assert_non_null(strstr(err.text, "restore this file"));
    }
}

static void wrong_owners_are_told_whose_it_is(void **state)
{
    struct place *place = *state;
    struct data_dir_owner other = place->owner;
    struct identity identity;
    struct data_dir second;
    struct errmsg err;

    open_it(place, &identity);
    assert_int_equal(make_it(place), 0);
    assert_int_equal(data_dir_init(&second, place->path, &err), 0);
    assert_int_equal(data_dir_check(&second, &place->owner, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "another agent is using it"));
    data_dir_close(&place->dir);
    assert_int_equal(data_dir_check(&second, &place->owner, &err), 0);
    other.node_id = 4;
    assert_int_equal(data_dir_check(&second, &other, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "belongs to node 3"));
    other.node_id = 3;
    memset(&other.key, 8, sizeof other.key);
    assert_int_equal(data_dir_check(&second, &other, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "public key 07070707"));
    assert_int_equal(data_dir_init(&second, "/nonexistent/place", &err), 0);
    assert_int_equal(data_dir_check(&second, &place->owner, &err), ERR_CONFIG);
}

static void list_of_members_is_whole_or_refused(void **state)
{
    struct place *place = *state;
    struct identity identity;
    uint8_t *data = NULL;
    size_t n_bytes = 0;
    struct errmsg err;
    char path[FILES_PATH_BYTES];

    open_it(place, &identity);
    assert_int_equal(make_it(place), 0);
    assert_int_equal(data_dir_read_members(&place->dir, &data, &n_bytes, &err), ERR_NOTFOUND);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(data_dir_write_members(&place->dir, (const uint8_t *)"members", 7, &err),
                         0);
    }
    assert_int_equal(data_dir_read_members(&place->dir, &data, &n_bytes, &err), 0);
    assert_int_equal(n_bytes, 7);
    assert_memory_equal(data, "members", 7);
    free(data);
    files_path(path, place->dir.store, "members", NULL);
    assert_int_equal(files_overwrite(path, 6, "X", 1, &err), 0);
    assert_int_equal(data_dir_read_members(&place->dir, &data, &n_bytes, &err), ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(made_once_and_found_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failure_in_the_middle_leaves_it_empty, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unmarked_directory_goes_only_if_it_never_spoke, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(damaged_identity_is_named_and_to_be_restored, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(wrong_owners_are_told_whose_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(list_of_members_is_whole_or_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
