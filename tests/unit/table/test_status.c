/* Status files: what a data plane writes is what the agent reads (row 1.9). */
#include <unistd.h>

#include "tests/lib/sketch.h"
#include "tests/unit/table/status_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_workers_write_is_summed),
        cmocka_unit_test(a_row_that_was_given_out_again_begins_at_zero),
        cmocka_unit_test(without_a_heartbeat_for_two_seconds_a_plane_is_absent),
        cmocka_unit_test(names_are_checked_and_not_shared),
        cmocka_unit_test(a_drain_is_adopted_when_every_living_plane_has_its_generation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
