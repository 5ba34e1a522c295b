#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/shim/chooser.h"
#include "tests/lib/scratch.h"
#include "tests/lib/sketch.h"

struct setup {
    char dir[SCRATCH_BYTES];
    struct sketch *sketch;
    struct table_writer *writer;
    struct table_reader *reader;
    struct chooser chooser;
};

static void describe(struct setup *setup, uint8_t weight)
{
    sketch_clear(setup->sketch);
    sketch_group(setup->sketch, "web", JURY_SCHEDULER_WRR);
    sketch_backend(setup->sketch, "10.0.0.1:80", weight);
    sketch_backend(setup->sketch, "10.0.0.2:80", 30);
    sketch_backend(setup->sketch, "10.0.0.3:80", 20);
}

static void publish(struct setup *setup, uint64_t revision)
{
    struct table_snapshot *snapshot = NULL;
    struct errmsg err = {{0}};

    assert_int_equal(sketch_publish(setup->sketch, setup->writer, setup->dir, revision, &err), 0);
    assert_int_equal(table_reader_look(setup->reader, true, &snapshot, &err), TABLE_NEW);
    assert_int_equal(chooser_follow(&setup->chooser, snapshot), 0);
    table_snapshot_unref(snapshot);
}

static void setup_init(struct setup *setup)
{
    struct errmsg err;

    memset(setup, 0, sizeof *setup);
    scratch_make(setup->dir);
    setup->sketch = sketch_new();
    setup->reader = table_reader_new(setup->dir);
    assert_int_equal(sketch_writer(setup->dir, 1, &setup->writer, &err), 0);
    chooser_init(&setup->chooser, 3);
    describe(setup, 50);
    publish(setup, 1);
}

static void setup_close(struct setup *setup)
{
    chooser_close(&setup->chooser);
    table_reader_free(setup->reader);
    table_writer_close(setup->writer);
    sketch_free(setup->sketch);
    scratch_remove(setup->dir);
}

static void count(struct setup *setup, unsigned n, unsigned n_turns[3])
{
    memset(n_turns, 0, 3 * sizeof n_turns[0]);
    for (unsigned i = 0; i < n; i++) {
        n_turns[chooser_pick(&setup->chooser, 0, i, NULL, 0)]++;
    }
}

static void a_cycle_goes_on_over_a_layout_that_leaves_its_scope_alone(void **state)
{
    (void)state;
    struct setup setup;
    unsigned first[3];
    unsigned second[3];
    setup_init(&setup);

    count(&setup, 3, first);
    describe(&setup, 50);
    sketch_group(setup.sketch, "zzz", JURY_SCHEDULER_WRR);
    publish(&setup, 2);
    count(&setup, 7, second);

    assert_int_equal(first[0] + second[0], 5);
    assert_int_equal(first[1] + second[1], 3);
    assert_int_equal(first[2] + second[2], 2);
    setup_close(&setup);
}

static void another_weight_begins_a_new_cycle(void **state)
{
    (void)state;
    struct setup setup;
    unsigned n_turns[3];
    setup_init(&setup);
    count(&setup, 3, n_turns);

    describe(&setup, 10);
    publish(&setup, 2);
    count(&setup, 6, n_turns);

    assert_int_equal(n_turns[0], 1);
    assert_int_equal(n_turns[1], 3);
    assert_int_equal(n_turns[2], 2);
    setup_close(&setup);
}

static void an_ejected_member_leaves_the_cycle_at_once(void **state)
{
    (void)state;
    struct setup setup;
    unsigned n_turns[3];
    struct errmsg err;
    setup_init(&setup);
    count(&setup, 3, n_turns);
    struct row_word word = *sketch_word(setup.sketch, "web", "10.0.0.1:80");

    word.row_class = ROW_NONE;
    assert_int_equal(table_writer_apply(setup.writer, &word, 1, 2, &err), 0);
    count(&setup, 5, n_turns);

    assert_int_equal(n_turns[0], 0);
    assert_int_equal(n_turns[1], 3);
    assert_int_equal(n_turns[2], 2);
    setup_close(&setup);
}

static void what_was_tried_is_passed_over_until_nobody_is_left(void **state)
{
    (void)state;
    struct setup setup;
    uint64_t tried[3];
    uint32_t seen = 0;
    setup_init(&setup);
    const uint64_t *ids = table_snapshot_ids(setup.chooser.snapshot);

    for (uint32_t n = 0; n < 3; n++) {
        uint32_t member = chooser_pick(&setup.chooser, 0, 99, tried, n);

        assert_true(member < 3);
        seen |= 1U << member;
        tried[n] = ids[member];
    }

    assert_int_equal(seen, 7);
    assert_int_equal(chooser_pick(&setup.chooser, 0, 99, tried, 3), SELECT_NONE);
    setup_close(&setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cycle_goes_on_over_a_layout_that_leaves_its_scope_alone),
        cmocka_unit_test(another_weight_begins_a_new_cycle),
        cmocka_unit_test(an_ejected_member_leaves_the_cycle_at_once),
        cmocka_unit_test(what_was_tried_is_passed_over_until_nobody_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
