/* Writer and reader of the forwarding table in one process: what is written is what is read. */
#include "table_fixture.h"

#include <fcntl.h>

static void nothing_is_visible_before_the_first_publish(void **state)
{
    (void)state;
    struct setup setup;
    struct row_word words[SKETCH_ROWS];
    struct table_snapshot *snapshot = NULL;
    setup_init(&setup);

    size_t n_words = sketch_words(setup.sketch, words);
    CHECK(&setup, table_writer_apply(setup.writer, words, n_words, 1, &setup.err));

    assert_int_equal(table_reader_look(setup.reader, true, &snapshot, &setup.err), TABLE_ABSENT);
    assert_int_equal(table_writer_generation(setup.writer), 0);
    assert_null(snapshot);
    setup_close(&setup);
}

static void what_is_written_is_what_is_read(void **state)
{
    (void)state;
    struct setup setup;
    bool is_current;
    setup_init(&setup);
    struct row_word *word = sketch_word(setup.sketch, "api", "10.0.0.2:80");
    word->row_class = ROW_NONE;
    word->flow_policy = FLOW_CLOSE_AT;
    word->deadline_cause = DEADLINE_DRAIN;
    word->deadline_boot_ns = 12345;
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 7, &setup.err));

    struct table_snapshot *snapshot = look_new(&setup);

    uint64_t generation = table_snapshot_generation(snapshot, &is_current);
    assert_true(is_current);
    assert_true(generation == (UINT64_C(1) << 32 | 1));
    assert_true(generation == table_writer_generation(setup.writer));
    assert_true(table_writer_row_generation(setup.writer, word->row) == generation);
    assert_int_equal(table_snapshot_root(snapshot)->revision, 7);
    struct table_row row = table_snapshot_row(snapshot, word->row, word->birth);
    assert_int_equal(row.row_class, JURY_CLASS_NONE);
    assert_int_equal(row.flow_policy, JURY_FLOW_CLOSE_AT);
    assert_int_equal(row.deadline_cause, DEADLINE_DRAIN);
    assert_int_equal(row.deadline_boot_ns, 12345);
    /* Another birth in that row, a row that is not there: removed. */
    assert_int_equal(table_snapshot_row(snapshot, word->row, word->birth + 1).row_class,
                     JURY_CLASS_REMOVED);
    assert_int_equal(table_snapshot_row(snapshot, LIMIT_ROWS + 1, 1).row_class, JURY_CLASS_REMOVED);
    struct table_snapshot *again = NULL;
    assert_int_equal(table_reader_look(setup.reader, true, &again, &setup.err), TABLE_SAME);
    table_snapshot_unref(snapshot);
    setup_close(&setup);
}

static void a_scope_copy_follows_the_words_and_costs_nothing_when_they_rest(void **state)
{
    (void)state;
    struct setup setup;
    struct row_word words[2];
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    struct table_snapshot *snapshot = look_new(&setup);
    struct table_scopes *scopes = table_scopes_new(snapshot);

    struct select_set set = table_scopes_take(scopes, 0);
    assert_int_equal(set.n_members, 2);
    assert_int_equal(set.weights[0], 100);
    assert_int_equal(set.weights[1], 50);
    assert_int_equal(set.ranks[0], 1);
    uint32_t version = table_scopes_version(scopes, 0);
    table_scopes_take(scopes, 0);
    assert_int_equal(table_scopes_version(scopes, 0), version);

    words[0] = *sketch_word(setup.sketch, "api", "10.0.0.1:80");
    words[0].row_class = ROW_UNREACHABLE;
    words[1] = *sketch_word(setup.sketch, "api", "10.0.0.2:80");
    words[1].birth += 1; /* a purged row that was given out again */
    CHECK(&setup, table_writer_apply(setup.writer, words, 2, 2, &setup.err));
    set = table_scopes_take(scopes, 0);

    assert_int_equal(set.ranks[0], 2);
    assert_int_equal(set.ranks[1], 0);
    assert_int_equal(table_scopes_version(scopes, 0), version + 1);
    assert_int_equal(table_scopes_n_stale(scopes), 0);
    table_scopes_free(scopes);
    table_snapshot_unref(snapshot);
    setup_close(&setup);
}

static void a_share_of_the_weight_is_a_change_of_the_scope(void **state)
{
    (void)state;
    struct setup setup;
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    struct table_snapshot *snapshot = look_new(&setup);
    struct table_scopes *scopes = table_scopes_new(snapshot);
    struct select_set set = table_scopes_take(scopes, 0);
    uint32_t version = table_scopes_version(scopes, 0);
    assert_int_equal(set.shares[0], 100); /* nobody said anything: the whole weight */

    struct row_word word = *sketch_word(setup.sketch, "api", "10.0.0.1:80");
    word.weight_percent = 37;
    CHECK(&setup, table_writer_apply(setup.writer, &word, 1, 2, &setup.err));
    set = table_scopes_take(scopes, 0);

    assert_int_equal(set.shares[0], 37);
    assert_int_equal(set.weights[0], 100);
    assert_int_equal(set.ranks[0], 1);
    assert_int_equal(set.shares[1], 100);
    assert_int_equal(table_scopes_version(scopes, 0), version + 1);
    struct table_row row = table_snapshot_row(snapshot, word.row, word.birth);
    assert_int_equal(row.share, 37);
    assert_int_equal(row.row_class, JURY_CLASS_HEALTHY);
    table_scopes_free(scopes);
    table_snapshot_unref(snapshot);
    setup_close(&setup);
}

static void a_word_of_an_older_table_has_its_whole_weight(void **state)
{
    (void)state;
    uint64_t now = JURY_VERSION_WORD(1, 2);
    uint64_t before = JURY_VERSION_WORD(1, 1); /* the count of changes had those bits */

    assert_int_equal(jury_word_share(UINT64_C(40) << 40, now), 40);
    assert_int_equal(jury_word_share(UINT64_C(40) << 40, before), 100);
    assert_int_equal(jury_word_share(0, now), 100);
    assert_int_equal(jury_word_share(UINT64_C(101) << 40, now), 100);
    assert_int_equal(jury_word_share(UINT64_C(1) << 40, JURY_VERSION_WORD(1, 9)), 1);
}

/* Write into the current state file, as after 16 million changes of one row. */
static void set_word(struct setup *setup, uint32_t row, uint64_t word)
{
    DIR *dir = opendir(setup->dir);
    char path[SCRATCH_BYTES + 300] = "";

    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strncmp(entry->d_name, "state.", 6) == 0) {
            snprintf(path, sizeof path, "%s/%s", setup->dir, entry->d_name);
        }
    }
    closedir(dir);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    off_t at = (off_t)(sizeof(struct jury_state) + row * sizeof(struct jury_row));
    assert_int_equal(pwrite(fd, &word, sizeof word, at), sizeof word);
    close(fd);
}

static void the_count_of_changes_wraps_and_touches_nothing_beside_it(void **state)
{
    (void)state;
    struct setup setup;
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    struct table_snapshot *snapshot = look_new(&setup);
    struct row_word word = *sketch_word(setup.sketch, "api", "10.0.0.1:80");
    uint64_t before = jury_load(table_snapshot_word(snapshot, word.row));

    set_word(&setup, word.row, before | UINT64_C(0xffffff) << 16);
    word.row_class = ROW_NONE;
    word.weight_percent = 64;
    CHECK(&setup, table_writer_apply(setup.writer, &word, 1, 2, &setup.err));

    struct table_row row = table_snapshot_row(snapshot, word.row, word.birth);
    assert_int_equal(row.n_changes, 0);
    assert_int_equal(row.share, 64);
    assert_int_equal(row.row_class, JURY_CLASS_NONE);
    table_snapshot_unref(snapshot);
    setup_close(&setup);
}

static void a_new_layout_leaves_rows_where_they_are_and_the_old_file_goes(void **state)
{
    (void)state;
    struct setup setup;
    bool is_current;
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    struct table_snapshot *first = look_new(&setup);
    assert_int_equal(n_files(&setup), 4); /* root, layout, state, lock */
    uint64_t generation = table_snapshot_generation(first, &is_current);

    sketch_group(setup.sketch, "zzz", JURY_SCHEDULER_WRR);
    sketch_backend(setup.sketch, "10.0.2.1:80", 1);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 2, &setup.err));

    assert_true(table_snapshot_generation(first, &is_current) > generation);
    assert_false(is_current); /* that generation needs the new layout */
    struct table_snapshot *second = look_new(&setup);
    assert_int_equal(table_snapshot_layout(second)->header->n_scopes, 3);
    /* The first snapshot is still whole, though its file is gone. */
    assert_int_equal(table_snapshot_layout(first)->header->n_scopes, 2);
    assert_string_equal(table_layout_scope(table_snapshot_layout(first), 1)->name, "web");
    assert_int_equal(n_files(&setup), 4);
    table_snapshot_unref(first);
    table_snapshot_unref(second);
    setup_close(&setup);
}

static void a_state_file_that_is_too_small_is_replaced_with_all_its_words(void **state)
{
    (void)state;
    struct setup setup;
    struct row_word far = {.scope_row = 5000, .row = 5001, .birth = 9, .row_class = ROW_HEALTHY};
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    struct table_snapshot *before = look_new(&setup);

    CHECK(&setup, table_writer_apply(setup.writer, &far, 1, 2, &setup.err));

    struct table_snapshot *after = look_new(&setup);
    struct row_word *word = sketch_word(setup.sketch, "web", "10.0.1.1:80");
    assert_true(table_snapshot_n_rows(before) < 5000);
    assert_int_equal(table_snapshot_n_rows(after), 8192);
    assert_int_equal(table_snapshot_row(after, 5001, 9).row_class, JURY_CLASS_HEALTHY);
    assert_int_equal(table_snapshot_row(after, word->row, word->birth).row_class,
                     JURY_CLASS_HEALTHY);
    assert_int_equal(n_files(&setup), 4);

    far.row = LIMIT_ROWS;
    assert_int_equal(table_writer_apply(setup.writer, &far, 1, 3, &setup.err), ERR_LIMIT);
    assert_non_null(strstr(setup.err.text, "row 262144"));
    table_snapshot_unref(before);
    table_snapshot_unref(after);
    setup_close(&setup);
}

static void a_new_agent_goes_on_above_the_old_generation_whatever_its_epoch(void **state)
{
    (void)state;
    struct setup setup;
    bool is_current;
    uint64_t last = 0;
    setup_init(&setup);
    for (uint64_t start = 0; start < 4; start++) {
        static const uint64_t epochs[] = {1, 2, 2, 1}; /* kept twice, then lost */

        table_writer_close(setup.writer);
        CHECK(&setup, sketch_writer(setup.dir, epochs[start], &setup.writer, &setup.err));
        CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, start + 1, &setup.err));
        struct table_snapshot *snapshot = look_new(&setup);
        uint64_t generation = table_snapshot_generation(snapshot, &is_current);

        assert_true(generation > last);
        assert_int_equal(n_files(&setup), 4);
        last = generation;
        table_snapshot_unref(snapshot);
    }
    setup_close(&setup);
}

static void a_new_agent_finds_the_deadlines_of_the_old_table(void **state)
{
    (void)state;
    struct setup setup;
    struct kept_deadline deadlines[4];
    setup_init(&setup);
    struct row_word *drained = sketch_word(setup.sketch, "api", "10.0.0.2:80");
    *drained = (struct row_word){.scope_row = drained->scope_row,
                                 .row = drained->row,
                                 .birth = drained->birth,
                                 .row_class = ROW_NONE,
                                 .flow_policy = FLOW_CLOSE_AT,
                                 .deadline_cause = DEADLINE_DRAIN,
                                 .deadline_boot_ns = 777};
    struct row_word *failed = sketch_word(setup.sketch, "web", "10.0.1.1:80");
    failed->flow_policy = FLOW_CLOSE_AT;
    failed->deadline_cause = DEADLINE_VERDICT;
    failed->deadline_boot_ns = 888;
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 41, &setup.err));
    table_writer_close(setup.writer);

    CHECK(&setup, sketch_writer(setup.dir, 2, &setup.writer, &setup.err));

    assert_int_equal(table_writer_old_revision(setup.writer), 41);
    assert_int_equal(table_writer_old_deadlines(setup.writer, deadlines, 4), 2);
    assert_int_equal(deadlines[0].row, drained->row);
    assert_int_equal(deadlines[0].birth, drained->birth);
    assert_int_equal(deadlines[0].drain_revision, 41);
    assert_int_equal(deadlines[0].deadline_boot_ns, 777);
    assert_false(deadlines[0].is_exact);
    assert_int_equal(deadlines[1].drain_revision, 0);
    assert_int_equal(deadlines[1].deadline_boot_ns, 888);
    /* They stay readable after this agent has published its own table. */
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 42, &setup.err));
    assert_int_equal(table_writer_old_deadlines(setup.writer, deadlines, 0), 2);
    setup_close(&setup);
}

static void the_table_of_another_node_is_not_ours_but_its_generation_counts(void **state)
{
    (void)state;
    struct setup setup;
    struct table_identity other = {.node_id = 2, .epoch = 1};
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 41, &setup.err));
    uint64_t generation = table_writer_generation(setup.writer);
    table_writer_close(setup.writer);

    CHECK(&setup, boot_id_read(&other.boot_id, &setup.err));
    CHECK(&setup, table_writer_open(setup.dir, &other, &setup.writer, &setup.err));

    assert_int_equal(table_writer_old_revision(setup.writer), 0);
    assert_int_equal(table_writer_old_deadlines(setup.writer, NULL, 0), 0);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    assert_true(table_writer_generation(setup.writer) > generation);
    setup_close(&setup);
}

static void two_agents_can_not_write_one_table(void **state)
{
    (void)state;
    struct setup setup;
    struct table_writer *second = NULL;
    char pid[16];
    setup_init(&setup);

    assert_int_equal(sketch_writer(setup.dir, 2, &second, &setup.err), ERR_BUSY);

    snprintf(pid, sizeof pid, "pid %d", (int)getpid());
    assert_non_null(strstr(setup.err.text, pid));
    assert_non_null(strstr(setup.err.text, setup.dir));
    assert_null(second);
    assert_int_equal(sketch_writer("/nowhere/at/all", 2, &second, &setup.err), ERR_NOTFOUND);
    assert_non_null(strstr(setup.err.text, "/nowhere/at/all"));
    setup_close(&setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_visible_before_the_first_publish),
        cmocka_unit_test(what_is_written_is_what_is_read),
        cmocka_unit_test(a_scope_copy_follows_the_words_and_costs_nothing_when_they_rest),
        cmocka_unit_test(a_share_of_the_weight_is_a_change_of_the_scope),
        cmocka_unit_test(a_word_of_an_older_table_has_its_whole_weight),
        cmocka_unit_test(the_count_of_changes_wraps_and_touches_nothing_beside_it),
        cmocka_unit_test(a_new_layout_leaves_rows_where_they_are_and_the_old_file_goes),
        cmocka_unit_test(a_state_file_that_is_too_small_is_replaced_with_all_its_words),
        cmocka_unit_test(a_new_agent_goes_on_above_the_old_generation_whatever_its_epoch),
        cmocka_unit_test(a_new_agent_finds_the_deadlines_of_the_old_table),
        cmocka_unit_test(the_table_of_another_node_is_not_ours_but_its_generation_counts),
        cmocka_unit_test(two_agents_can_not_write_one_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
