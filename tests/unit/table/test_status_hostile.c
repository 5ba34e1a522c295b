/* Status files: what anybody else writes where a data plane does harms nothing (row 1.9).
 * ctest labels: twin */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/plant.h"
#include "tests/unit/table/status_fixture.h"

static void write_file(const struct setup *setup, const char *name, const void *data, size_t n)
{
    char path[SCRATCH_BYTES + 64];

    snprintf(path, sizeof path, "%s/%s", setup->dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    fclose(file);
}

static struct jury_status good_header(const struct setup *setup)
{
    struct jury_status header = {
        .magic = JURY_STATUS_MAGIC,
        .version = JURY_VERSION_WORD(1, 0),
        .file_bytes = 4096,
        .pid = 1,
        .started_ns = NOW,
        .heartbeat_ns = NOW,
        .adopted_generation = UINT64_MAX,
        .n_workers = 1,
        .n_rows = 16,
        .n_counted_rows = 16,
        .workers_at = sizeof header,
        .worker_bytes = sizeof(struct jury_status_worker),
        .rows_at = 1024,
        .row_bytes = sizeof(struct jury_status_row),
    };

    boot_id_words(&setup->boot_id, &header.boot_low, &header.boot_high);
    return header;
}

struct hostile_row {
    size_t at; /* a word of the file */
    uint64_t value;
    const char *wanted;
};

static const struct hostile_row hostile_rows[] = {
    {offsetof(struct jury_status, magic), 0, "not a status file"},
    {offsetof(struct jury_status, version), JURY_VERSION_WORD(2, 3), "format version 2.3"},
    {offsetof(struct jury_status, n_workers), 0, "0 workers"},
    {offsetof(struct jury_status, n_workers), UINT64_MAX, "workers"},
    {offsetof(struct jury_status, n_rows), UINT64_MAX, "rows"},
    {offsetof(struct jury_status, n_counted_rows), 17, "17 are counted"},
    {offsetof(struct jury_status, n_rows), 262144, "outside the file"},
    {offsetof(struct jury_status, worker_bytes), 0, "outside the file"},
    {offsetof(struct jury_status, row_bytes), UINT64_MAX, "outside the file"},
    {offsetof(struct jury_status, workers_at), UINT64_MAX - 7, "outside the file"},
    {offsetof(struct jury_status, rows_at), 0, "outside the file"},
    {offsetof(struct jury_status, rows_at), 1025, "outside the file"},
    {offsetof(struct jury_status, pid), UINT64_MAX, "process id"},
    {offsetof(struct jury_status, heartbeat_ns), UINT64_MAX, "future"},
    {offsetof(struct jury_status, started_ns), UINT64_MAX, "future"},
    {sizeof(struct jury_status) + offsetof(struct jury_status_worker, flows), UINT64_MAX, "flows"},
};

static const char *refusal_of(struct setup *setup, const struct hostile_row *row)
{
    uint8_t bytes[4096] = {0};
    struct jury_status header = good_header(setup);

    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + row->at, &row->value, sizeof row->value);
    write_file(setup, "evil.status", bytes, sizeof bytes);
    status_reader_scan(setup->reader, NOW, NULL);
    assert_int_equal(status_reader_n_planes(setup->reader), 2);
    const struct plane_view *evil = status_reader_plane(setup->reader, 0);
    assert_string_equal(evil->name, "evil");
    return evil->plane_state == PLANE_REFUSED ? evil->refusal.text : "";
}

static void each_hostile_word_is_refused_by_name_and_the_others_go_on(void **state)
{
    (void)state;
    struct setup setup;
    struct jury_status_row sum;
    setup_init(&setup);
    status_add(&status_file_row(setup.file, 0, 7, 70)->flows, 3);
    status_file_beat(setup.file, NOW);

    for (size_t i = 0; i < sizeof hostile_rows / sizeof hostile_rows[0]; i++) {
        const char *text = refusal_of(&setup, &hostile_rows[i]);

        if (strstr(text, "status file of data plane \"evil\": ") != text ||
            strstr(text, hostile_rows[i].wanted) == NULL) {
            fail_msg("row %zu: wanted \"%s\", got \"%s\"", i, hostile_rows[i].wanted, text);
        }
        assert_int_equal(status_reader_plane(setup.reader, 1)->plane_state, PLANE_ALIVE);
        assert_true(status_reader_row(setup.reader, 7, 70, &sum));
        assert_int_equal(sum.flows, 3);
    }
    setup_close(&setup);
}

static void a_hostile_row_word_refuses_its_plane_and_leaves_the_sum(void **state)
{
    (void)state;
    struct setup setup;
    struct jury_status_row sum;
    uint8_t bytes[4096] = {0};
    setup_init(&setup);
    status_add(&status_file_row(setup.file, 0, 7, 70)->flows, 3);
    status_file_beat(setup.file, NOW);
    struct jury_status header = good_header(&setup);
    struct jury_status_row row = {.birth = 70, .flows = UINT64_MAX - 1};
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + 1024 + 7 * sizeof row, &row, sizeof row);
    write_file(&setup, "evil.status", bytes, sizeof bytes);
    status_reader_scan(setup.reader, NOW, NULL);
    assert_int_equal(status_reader_plane(setup.reader, 0)->plane_state, PLANE_ALIVE);

    assert_true(status_reader_row(setup.reader, 7, 70, &sum));

    assert_int_equal(sum.flows, 3);
    assert_int_equal(status_reader_plane(setup.reader, 0)->plane_state, PLANE_REFUSED);
    setup_close(&setup);
}

static void what_is_no_file_of_ours_is_named_or_passed_over(void **state)
{
    (void)state;
    struct setup setup;
    char path[SCRATCH_BYTES + 64];
    char long_name[200];
    struct jury_status header;
    uint32_t n_ignored;
    setup_init(&setup);
    status_file_beat(setup.file, NOW);
    write_file(&setup, "aempty.status", "", 0);
    write_file(&setup, "ashort.status", "JURYPLAN", 8);
    header = good_header(&setup);
    write_file(&setup, "bcut.status", &header, sizeof header); /* sections beyond its end */
    snprintf(path, sizeof path, "%s/cfifo.status", setup.dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/dlink.status", setup.dir);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    snprintf(path, sizeof path, "%s/edir.status", setup.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    memset(long_name, 'x', sizeof long_name);
    strcpy(long_name + 80, ".status");
    write_file(&setup, long_name, "x", 1);
    write_file(&setup, "notes.txt", "x", 1);

    status_reader_scan(setup.reader, NOW, &n_ignored);

    assert_int_equal(n_ignored, 1); /* the long name */
    assert_int_equal(status_reader_n_planes(setup.reader), 7);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(status_reader_plane(setup.reader, i)->plane_state, PLANE_REFUSED);
    }
    assert_string_equal(status_reader_plane(setup.reader, 6)->name, "shim");
    assert_int_equal(status_reader_plane(setup.reader, 6)->plane_state, PLANE_ALIVE);
    rmdir(path);
    setup_close(&setup);
}

static void a_file_that_is_cut_while_it_is_read_harms_nothing(void **state)
{
    (void)state;
    struct setup setup;
    struct jury_status_row sum;
    uint8_t bytes[4096] = {0};
    char path[SCRATCH_BYTES + 64];
    setup_init(&setup);
    status_file_beat(setup.file, NOW);
    struct jury_status header = good_header(&setup);
    memcpy(bytes, &header, sizeof header);
    write_file(&setup, "evil.status", bytes, sizeof bytes);
    status_reader_scan(setup.reader, NOW, NULL);
    snprintf(path, sizeof path, "%s/evil.status", setup.dir);
    assert_int_equal(truncate(path, 600), 0);

    assert_true(status_reader_row(setup.reader, 7, 70, &sum));

    assert_int_equal(sum.flows, 0);
    assert_int_equal(status_reader_plane(setup.reader, 0)->plane_state, PLANE_REFUSED);
    setup_close(&setup);
}

static void more_planes_than_the_bound_are_counted_and_not_read(void **state)
{
    (void)state;
    struct setup setup;
    char name[32];
    uint32_t n_ignored;
    setup_init(&setup);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "a%02d.status", i);
        write_file(&setup, name, "x", 1);
    }

    status_reader_scan(setup.reader, NOW, &n_ignored);

    assert_int_equal(status_reader_n_planes(setup.reader), LIMIT_DATA_PLANES);
    assert_int_equal(n_ignored, 101 - LIMIT_DATA_PLANES);
    setup_close(&setup);
}

#ifdef JURY_PLANTS
static void twin_a_reader_that_checks_no_header_is_caught(void **state)
{
    (void)state;
    struct setup setup;
    unsigned n_missed = 0;
    setup_init(&setup);

    plant_set("status-unchecked");
    for (size_t i = 2; i < 13; i++) {
        /* The sizes of the file bound every read, so an unchecked header is a wrong answer here
         * and not a crash. n_workers = 2^64 - 1 would read until the file ends. */
        if (strstr(refusal_of(&setup, &hostile_rows[i]), hostile_rows[i].wanted) == NULL) {
            n_missed++;
        }
    }
    plant_set(NULL);

    assert_true(n_missed > 5);
    setup_close(&setup);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hostile_word_is_refused_by_name_and_the_others_go_on),
        cmocka_unit_test(a_hostile_row_word_refuses_its_plane_and_leaves_the_sum),
        cmocka_unit_test(what_is_no_file_of_ours_is_named_or_passed_over),
        cmocka_unit_test(a_file_that_is_cut_while_it_is_read_harms_nothing),
        cmocka_unit_test(more_planes_than_the_bound_are_counted_and_not_read),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_a_reader_that_checks_no_header_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
