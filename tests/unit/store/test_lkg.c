#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/store/files.h"
#include "agent/store/lkg.h"

static const struct lkg_head head = {.cluster_id = {{1, 2, 3}},
                                     .node_id = 2,
                                     .revision = 77,
                                     .wall_ms = 1700000000000,
                                     .boot_id = {9, 8, 7}};
static struct lkg_chunk chunks[] = {
    {.kind = LKG_CATALOG, .data = (const uint8_t *)"catalog one", .n_bytes = 11},
    {.kind = LKG_CATALOG, .data = (const uint8_t *)"two", .n_bytes = 3},
    {.kind = LKG_VERDICTS, .data = (const uint8_t *)"", .n_bytes = 0},
    {.kind = 900, .data = (const uint8_t *)"of a later minor", .n_bytes = 16},
};

static uint8_t *encode(uint64_t revision, size_t *ret_n_bytes)
{
    struct lkg with = {.head = head, .chunks = chunks, .n_chunks = 4};
    uint8_t *data = NULL;
    struct errmsg err;

    with.head.revision = revision;
    assert_int_equal(lkg_encode(&with, &data, ret_n_bytes, &err), 0);
    return data;
}

static void file_is_read_as_it_was_written(void **state)
{
    struct lkg lkg;
    struct errmsg err;
    size_t n;
    uint8_t *data = encode(77, &n);

    (void)state;
    assert_int_equal(lkg_decode(data, n, &lkg, &err), 0);
    assert_memory_equal(&lkg.head, &head, sizeof head);
    assert_int_equal(lkg.n_chunks, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(lkg.chunks[i].kind, chunks[i].kind);
        assert_int_equal(lkg.chunks[i].n_bytes, chunks[i].n_bytes);
        assert_memory_equal(lkg.chunks[i].data, chunks[i].data, chunks[i].n_bytes);
    }
    lkg_close(&lkg);
}

static void damage_anywhere_is_refused_and_never_partly_used(void **state)
{
    struct lkg lkg = {.n_chunks = 99};
    struct errmsg err;
    size_t n;
    uint8_t *data = encode(77, &n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        data[i] ^= 0x10;
        assert_int_not_equal(lkg_decode(data, n, &lkg, &err), 0);
        data[i] ^= 0x10;
        assert_int_not_equal(lkg_decode(data, i, &lkg, &err), 0);
    }
    assert_int_equal(lkg.n_chunks, 99);
    free(data);
}

struct place {
    char dir[64];
    char newest[FILES_PATH_BYTES];
    char older[FILES_PATH_BYTES];
    char fresh[FILES_PATH_BYTES];
};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof *place);

    snprintf(place->dir, sizeof place->dir, "/tmp/jury-lkg-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    files_path(place->newest, place->dir, "lkg", NULL);
    files_path(place->older, place->dir, "lkg.old", NULL);
    files_path(place->fresh, place->dir, "lkg.new", NULL);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;

    files_remove_tree(place->dir, NULL);
    free(place);
    return 0;
}

static void write_revision(const struct place *place, uint64_t revision)
{
    struct errmsg err;
    size_t n;
    uint8_t *data = encode(revision, &n);

    assert_int_equal(lkg_write(place->dir, data, n, &err), 0);
    free(data);
}

static uint64_t read_revision(const struct place *place)
{
    struct lkg lkg;
    struct errmsg err;

    if (lkg_read(place->dir, &lkg, &err) != 0) {
        return 0;
    }
    uint64_t revision = lkg.head.revision;
    lkg_close(&lkg);
    return revision;
}

static void damage(const char *path)
{
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    fseek(file, 40, SEEK_SET);
    fputc(0xff, file);
    fclose(file);
}

static void newest_whole_generation_is_read(void **state)
{
    struct place *place = *state;
    struct lkg lkg;
    struct errmsg err;

    assert_int_equal(lkg_read(place->dir, &lkg, &err), ERR_NOTFOUND);
    write_revision(place, 1);
    assert_int_equal(read_revision(place), 1);
    write_revision(place, 2);
    write_revision(place, 3);
    assert_int_equal(read_revision(place), 3);

    damage(place->newest);
    assert_int_equal(read_revision(place), 2);
    damage(place->older);
    assert_int_equal(lkg_read(place->dir, &lkg, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "checksum"));
}

static void a_kill_at_each_step_of_the_write_leaves_a_generation(void **state)
{
    struct place *place = *state;
    size_t n;
    uint8_t *data = encode(3, &n);
    FILE *file;

    write_revision(place, 1);
    write_revision(place, 2);
    for (size_t cut = 0; cut < n; cut += 7) { /* in the middle of the temporary file */
        file = fopen(place->fresh, "w");
        fwrite(data, 1, cut, file);
        fclose(file);
        assert_int_equal(read_revision(place), 2);
    }
    file = fopen(place->fresh, "w");
    fwrite(data, 1, n, file);
    fclose(file);
    assert_int_equal(read_revision(place), 2); /* before the first rename */
    assert_int_equal(rename(place->newest, place->older), 0);
    assert_int_equal(read_revision(place), 3); /* between the two */
    free(data);
    write_revision(place, 4);
    assert_int_equal(read_revision(place), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_is_read_as_it_was_written),
        cmocka_unit_test(damage_anywhere_is_refused_and_never_partly_used),
        cmocka_unit_test_setup_teardown(newest_whole_generation_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_kill_at_each_step_of_the_write_leaves_a_generation,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
