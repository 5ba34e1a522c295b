/* Status files that somebody removes or cuts: named, and no drain ends by it.
 * ctest labels: twin */
#include <stdio.h>
#include <unistd.h>

#include "common/base/plant.h"
#include "tests/lib/sketch.h"
#include "tests/unit/table/status_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_file_that_is_removed_is_named_and_ends_no_drain),
        cmocka_unit_test(a_status_file_that_is_cut_ends_no_drain_while_it_may_come_back),
        cmocka_unit_test(the_file_of_a_plane_that_ended_may_be_removed),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_a_lost_status_file_that_ends_a_drain_is_caught),
#endif
        cmocka_unit_test(a_file_made_anew_has_what_was_counted_and_no_open_flow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
