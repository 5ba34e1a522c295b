/* Status files: what a data plane writes is what the agent reads, and what anybody else writes
 * there harms nothing (row 1.9).
 * ctest labels: twin */
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

#include "agent/table/status_file.h"
#include "agent/table/status_reader.h"
#include "common/base/clock.h"
#include "common/base/plant.h"
#include "common/base/prng.h"
#include "common/base/units.h"
#include "tests/lib/scratch.h"
#include "tests/lib/sketch.h"

#define NOW (UINT64_C(1000) * NS_PER_SECOND)

struct setup {
    char dir[SCRATCH_BYTES];
    struct boot_id boot_id;
    struct status_file *file;
    struct status_reader *reader;
    struct errmsg err;
};

#define CHECK(setup, call)                                \
    do {                                                  \
        if ((call) != 0) {                                \
            fail_msg("%s: %s", #call, (setup)->err.text); \
        }                                                 \
    } while (0)

static int open_plane(struct setup *setup, const char *name, struct status_file **ret_file)
{
    struct status_options options = {
        .dir = setup->dir, .name = name, .n_workers = 2, .boot_ns = NOW};

    return status_file_open(&options, ret_file, &setup->err);
}

static void setup_init(struct setup *setup)
{
    memset(setup, 0, sizeof *setup);
    scratch_make(setup->dir);
    CHECK(setup, boot_id_read(&setup->boot_id, &setup->err));
    CHECK(setup, open_plane(setup, "shim", &setup->file));
    CHECK(setup, status_file_reserve(setup->file, 100, &setup->err));
    setup->reader = status_reader_new(setup->dir, &setup->boot_id);
}

static void setup_close(struct setup *setup)
{
    status_reader_free(setup->reader);
    status_file_close(setup->file);
    scratch_remove(setup->dir);
}

static void adopt(struct setup *setup, uint32_t worker, uint64_t generation)
{
    status_set(&status_file_worker(setup->file, worker)->adopted_layout, 5);
    status_set(&status_file_worker(setup->file, worker)->adopted_generation, generation);
}

static void what_the_workers_write_is_summed(void **state)
{
    (void)state;
    struct setup setup;
    struct jury_status_row sum;
    setup_init(&setup);
    status_add(&status_file_row(setup.file, 0, 7, 70)->flows, 3);
    status_add(&status_file_row(setup.file, 1, 7, 70)->flows, 4);
    status_add(&status_file_row(setup.file, 1, 7, 70)->bytes_to_client, 1000);
    status_add(&status_file_row(setup.file, 0, 8, 80)->flows, 9);
    status_sub(&status_file_row(setup.file, 1, 7, 70)->flows, 1);
    status_add(&status_file_worker(setup.file, 0)->accepted, 5);
    status_add(&status_file_worker(setup.file, 1)->accepted, 6);
    adopt(&setup, 0, 12);
    adopt(&setup, 1, 11);
    status_file_beat(setup.file, NOW);

    status_reader_scan(setup.reader, NOW + 1, NULL);

    assert_int_equal(status_reader_n_planes(setup.reader), 1);
    const struct plane_view *view = status_reader_plane(setup.reader, 0);
    assert_string_equal(view->name, "shim");
    assert_int_equal(view->plane_state, PLANE_ALIVE);
    assert_int_equal(view->pid, getpid());
    assert_int_equal(view->n_workers, 2);
    assert_int_equal(view->adopted_generation, 11); /* of the one furthest behind */
    assert_int_equal(view->adopted_layout, 5);
    assert_int_equal(view->totals.accepted, 11);
    assert_true(status_reader_row(setup.reader, 7, 70, &sum));
    assert_int_equal(sum.flows, 6);
    assert_int_equal(sum.bytes_to_client, 1000);
    /* A row that nobody used; rows that are not counted. */
    assert_true(status_reader_row(setup.reader, 9, 90, &sum));
    assert_int_equal(sum.flows, 0);
    assert_false(status_reader_row(setup.reader, 5000, 1, &sum));
    setup_close(&setup);
}

static void a_row_that_was_given_out_again_begins_at_zero(void **state)
{
    (void)state;
    struct setup setup;
    struct jury_status_row sum;
    setup_init(&setup);
    status_add(&status_file_row(setup.file, 0, 7, 70)->flows, 3);
    status_file_row(setup.file, 0, 7, 71);
    status_file_beat(setup.file, NOW);

    status_reader_scan(setup.reader, NOW, NULL);

    assert_true(status_reader_row(setup.reader, 7, 71, &sum));
    assert_int_equal(sum.flows, 0);
    assert_true(status_reader_row(setup.reader, 7, 70, &sum));
    assert_int_equal(sum.flows, 0);
    setup_close(&setup);
}

static void without_a_heartbeat_for_two_seconds_a_plane_is_absent(void **state)
{
    (void)state;
    struct setup setup;
    setup_init(&setup);
    status_file_beat(setup.file, NOW);

    status_reader_scan(setup.reader, NOW + 2 * NS_PER_SECOND, NULL);
    assert_int_equal(status_reader_plane(setup.reader, 0)->plane_state, PLANE_ALIVE);
    status_reader_scan(setup.reader, NOW + 2 * NS_PER_SECOND + 1, NULL);
    assert_int_equal(status_reader_plane(setup.reader, 0)->plane_state, PLANE_ABSENT);
    setup_close(&setup);
}

static void names_are_checked_and_not_shared(void **state)
{
    (void)state;
    struct setup setup;
    struct status_file *other = NULL;
    static const char *const bad[] = {"",    "1st",    "../x",
                                      "a/b", "a name", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    setup_init(&setup);

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(open_plane(&setup, bad[i], &other), ERR_INVALID);
        assert_non_null(strstr(setup.err.text, "must be 1 to 40"));
    }
    assert_int_equal(open_plane(&setup, "shim", &other), ERR_BUSY);
    assert_non_null(strstr(setup.err.text, "running under that name"));
    assert_null(other);
    setup_close(&setup);
}

static void a_drain_is_adopted_when_every_living_plane_has_its_generation(void **state)
{
    (void)state;
    struct setup setup;
    char tables[SCRATCH_BYTES];
    struct table_writer *writer;
    struct sketch *sketch = sketch_new();
    struct status_file *second;
    setup_init(&setup);
    scratch_make(tables);
    sketch_group(sketch, "web", JURY_SCHEDULER_5_TUPLE);
    sketch_backend(sketch, "10.0.0.1:80", 100);
    CHECK(&setup, sketch_writer(tables, 1, &writer, &setup.err));
    CHECK(&setup, sketch_publish(sketch, writer, tables, 1, &setup.err));
    struct row_word *word = sketch_word(sketch, "web", "10.0.0.1:80");
    struct data_plane_row row = {.row = word->row, .birth = word->birth};
    uint64_t before = table_writer_generation(writer);

    word->row_class = ROW_NONE;
    CHECK(&setup, table_writer_apply(writer, word, 1, 2, &setup.err));
    uint64_t after = table_writer_generation(writer);
    assert_true(table_writer_row_generation(writer, word->row) == after && after == before + 1);
    CHECK(&setup, open_plane(&setup, "other", &second));
    CHECK(&setup, status_file_reserve(second, 100, &setup.err));
    status_add(&status_file_row(setup.file, 0, row.row, row.birth)->flows, 2);
    const struct {
        uint64_t first, second;
        bool wanted;
    } rows[] = {{before, before, false},
                {after, before, false},
                {after, after, true},
                {after + 1, after, false}, /* never raised: a lie */
                {0, after, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        adopt(&setup, 0, rows[i].first);
        adopt(&setup, 1, rows[i].first);
        status_set(&status_file_worker(second, 0)->adopted_generation, rows[i].second);
        status_set(&status_file_worker(second, 1)->adopted_generation, rows[i].second);
        status_file_beat(setup.file, NOW);
        status_file_beat(second, NOW);
        status_reader_scan(setup.reader, NOW, NULL);
        assert_true(status_reader_answer(setup.reader, writer, &row, 1));
        assert_int_equal(row.is_adopted, rows[i].wanted);
        assert_int_equal(row.n_flows, 2);
    }
    /* A plane that stopped beating is not waited for; with none left nothing counts. */
    adopt(&setup, 0, after);
    adopt(&setup, 1, after);
    status_file_beat(setup.file, NOW + 9 * NS_PER_SECOND);
    status_reader_scan(setup.reader, NOW + 9 * NS_PER_SECOND, NULL);
    assert_true(status_reader_answer(setup.reader, writer, &row, 1));
    assert_true(row.is_adopted);
    status_reader_scan(setup.reader, NOW + 99 * NS_PER_SECOND, NULL);
    assert_false(status_reader_answer(setup.reader, writer, &row, 1));
    assert_false(row.is_adopted);
    status_file_close(second);
    table_writer_close(writer);
    sketch_free(sketch);
    scratch_remove(tables);
    setup_close(&setup);
}

/* --- files that somebody removes or cuts --- */

struct drain_rig {
    struct setup setup;
    char tables[SCRATCH_BYTES];
    char path[SCRATCH_BYTES + 32];
    struct table_writer *writer;
    struct sketch *sketch;
    struct data_plane_row row;
};

/* A plane that lives, has two flows of a row and has adopted its drain. */
static void drain_init(struct drain_rig *rig)
{
    struct setup *setup = &rig->setup;

    setup_init(setup);
    scratch_make(rig->tables);
    snprintf(rig->path, sizeof rig->path, "%s/shim.status", setup->dir);
    rig->sketch = sketch_new();
    sketch_group(rig->sketch, "web", JURY_SCHEDULER_5_TUPLE);
    sketch_backend(rig->sketch, "10.0.0.1:80", 100);
    CHECK(setup, sketch_writer(rig->tables, 1, &rig->writer, &setup->err));
    CHECK(setup, sketch_publish(rig->sketch, rig->writer, rig->tables, 1, &setup->err));
    struct row_word *word = sketch_word(rig->sketch, "web", "10.0.0.1:80");
    rig->row = (struct data_plane_row){.row = word->row, .birth = word->birth};
    word->row_class = ROW_NONE;
    CHECK(setup, table_writer_apply(rig->writer, word, 1, 2, &setup->err));
    status_add(&status_file_row(setup->file, 0, rig->row.row, rig->row.birth)->flows, 2);
    adopt(setup, 0, table_writer_generation(rig->writer));
    adopt(setup, 1, table_writer_generation(rig->writer));
    status_file_beat(setup->file, NOW);
}

static void drain_close(struct drain_rig *rig)
{
    table_writer_close(rig->writer);
    sketch_free(rig->sketch);
    scratch_remove(rig->tables);
    setup_close(&rig->setup);
}

/* Returns whether anything counts; what was counted and adopted is in the row. */
static bool ask(struct drain_rig *rig, uint64_t at_ns)
{
    status_reader_scan(rig->setup.reader, at_ns, NULL);
    return status_reader_answer(rig->setup.reader, rig->writer, &rig->row, 1);
}

static void a_status_file_that_is_removed_is_named_and_ends_no_drain(void **state)
{
    (void)state;
    struct drain_rig rig;
    drain_init(&rig);
    assert_true(ask(&rig, NOW) && rig.row.is_adopted);
    assert_int_equal(rig.row.n_flows, 2);

    assert_int_equal(unlink(rig.path), 0);
    assert_true(ask(&rig, NOW + 30 * NS_PER_SECOND)); /* not "there is no data plane" */
    assert_false(rig.row.is_adopted);
    assert_int_equal(status_reader_n_planes(rig.setup.reader), 1);
    const struct plane_view *view = status_reader_plane(rig.setup.reader, 0);
    assert_int_equal(view->plane_state, PLANE_GONE);
    assert_string_equal(view->refusal.text, "the status file of data plane \"shim\" was removed: "
                                            "nobody knows whether it runs");
    assert_false(ask(&rig, NOW + (PLANE_GONE_MS + 1) * NS_PER_MS)); /* not for ever */
    assert_int_equal(status_reader_n_planes(rig.setup.reader), 0);
    drain_close(&rig);
}

static void a_status_file_that_is_cut_ends_no_drain_while_it_may_come_back(void **state)
{
    (void)state;
    struct drain_rig rig;
    drain_init(&rig);
    assert_true(ask(&rig, NOW) && rig.row.is_adopted);

    assert_int_equal(truncate(rig.path, 0), 0);
    assert_true(ask(&rig, NOW + 2 * NS_PER_SECOND));
    assert_false(rig.row.is_adopted);
    assert_int_equal(status_reader_plane(rig.setup.reader, 0)->plane_state, PLANE_REFUSED);
    assert_false(ask(&rig, NOW + 3 * NS_PER_SECOND)); /* damaged, and nobody mends it */
    drain_close(&rig);
}

static void the_file_of_a_plane_that_ended_may_be_removed(void **state)
{
    (void)state;
    struct drain_rig rig;
    drain_init(&rig);
    assert_true(ask(&rig, NOW));
    assert_false(ask(&rig, NOW + 9 * NS_PER_SECOND));

    assert_int_equal(unlink(rig.path), 0);
    assert_false(ask(&rig, NOW + 10 * NS_PER_SECOND));
    assert_int_equal(status_reader_n_planes(rig.setup.reader), 0);
    drain_close(&rig);
}

#ifdef JURY_PLANTS
static void twin_a_lost_status_file_that_ends_a_drain_is_caught(void **state)
{
    (void)state;
    struct drain_rig rig;
    drain_init(&rig);
    assert_true(ask(&rig, NOW));
    assert_int_equal(unlink(rig.path), 0);
    plant_set("status-lost-is-done");
    assert_false(ask(&rig, NOW + NS_PER_SECOND)); /* what the guarded reader never says */
    plant_set(NULL);
    drain_close(&rig);
}
#endif

static void a_file_made_anew_has_what_was_counted_and_no_open_flow(void **state)
{
    (void)state;
    struct drain_rig rig;
    struct status_file *fresh;
    drain_init(&rig);
    struct setup *setup = &rig.setup;
    status_add(&status_file_worker(setup->file, 1)->accepted, 7);
    assert_false(status_file_is_damaged(setup->file));
    assert_int_equal(unlink(rig.path), 0);
    assert_true(status_file_is_damaged(setup->file));

    CHECK(setup, status_file_renew(setup->file, NOW, &fresh, &setup->err));
    assert_false(status_file_is_damaged(fresh));
    status_file_carry(setup->file, fresh, 0);
    status_file_carry(setup->file, fresh, 1);
    status_file_close(setup->file);
    setup->file = fresh;
    assert_int_equal(status_file_worker(fresh, 1)->accepted, 7);
    const struct jury_status_row *row = status_file_row(fresh, 0, rig.row.row, rig.row.birth);
    assert_int_equal(row->new_flows, 0);
    assert_int_equal(row->flows, 0);
    assert_ptr_equal(status_file_recount(fresh, 0, rig.row.row, rig.row.birth, 2), row);
    assert_int_equal(row->flows, 2);
    status_file_recount(fresh, 0, rig.row.row, rig.row.birth - 1,
                        5); /* an older owner of the row */
    assert_int_equal(row->flows, 2);
    /* The lock went over. */
    struct status_file *second;
    assert_int_equal(open_plane(setup, "shim", &second), ERR_BUSY);
    drain_close(&rig);
}

/* --- hostile files --- */

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
        cmocka_unit_test(what_the_workers_write_is_summed),
        cmocka_unit_test(a_row_that_was_given_out_again_begins_at_zero),
        cmocka_unit_test(without_a_heartbeat_for_two_seconds_a_plane_is_absent),
        cmocka_unit_test(names_are_checked_and_not_shared),
        cmocka_unit_test(a_drain_is_adopted_when_every_living_plane_has_its_generation),
        cmocka_unit_test(a_status_file_that_is_removed_is_named_and_ends_no_drain),
        cmocka_unit_test(a_status_file_that_is_cut_ends_no_drain_while_it_may_come_back),
        cmocka_unit_test(the_file_of_a_plane_that_ended_may_be_removed),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_a_lost_status_file_that_ends_a_drain_is_caught),
#endif
        cmocka_unit_test(a_file_made_anew_has_what_was_counted_and_no_open_flow),
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
