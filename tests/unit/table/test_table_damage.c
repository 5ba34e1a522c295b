/* Tables of other versions, damaged, removed and stuck: what readers and the writer make of them.
 * ctest labels: twin */
#include "table_fixture.h"

/* --- versions --- */

static void write_file(const struct setup *setup, const char *name, const void *data, size_t n)
{
    char path[SCRATCH_BYTES + 64];
    char temporary[SCRATCH_BYTES + 64];

    snprintf(path, sizeof path, "%s/%s", setup->dir, name);
    snprintf(temporary, sizeof temporary, "%s/temporary", setup->dir);
    FILE *file = fopen(temporary, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    fclose(file);
    assert_int_equal(rename(temporary, path), 0);
}

static void an_unknown_major_is_refused_by_name_and_the_old_mapping_stays(void **state)
{
    (void)state;
    struct setup setup;
    struct table_snapshot *ignored = NULL;
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    struct table_snapshot *snapshot = look_new(&setup);
    struct jury_root newer = *table_snapshot_root(snapshot);
    newer.version = JURY_VERSION_WORD(2, 0);

    write_file(&setup, "root", &newer, sizeof newer);

    assert_int_equal(table_reader_look(setup.reader, true, &ignored, &setup.err), TABLE_REFUSED);
    assert_string_equal(setup.err.text, "root: format version 2.0, this program reads 1.x");
    /* What this process has mapped still follows its words. */
    struct row_word word = *sketch_word(setup.sketch, "web", "10.0.1.1:80");
    word.row_class = ROW_NONE;
    CHECK(&setup, table_writer_apply(setup.writer, &word, 1, 2, &setup.err));
    assert_int_equal(table_snapshot_row(snapshot, word.row, word.birth).row_class, JURY_CLASS_NONE);
    table_snapshot_unref(snapshot);
    setup_close(&setup);
}

/* The same layout as a later minor version would write it: longer header and records. */
static struct fwd_layout grow_records(const struct fwd_layout *from)
{
    const struct jury_layout *old = (const void *)from->bytes;
    struct jury_layout header = *old;
    size_t n_bytes = from->n_bytes + 16 + 8UL * (old->n_listeners + old->n_scopes + old->n_members);
    uint8_t *bytes = calloc(1, n_bytes);
    const struct {
        uint64_t from_at, *to_at;
        uint32_t n, old_bytes, *new_bytes;
    } sections[] = {
        {old->listeners_at, &header.listeners_at, old->n_listeners, old->listener_bytes,
         &header.listener_bytes},
        {old->scopes_at, &header.scopes_at, old->n_scopes, old->scope_bytes, &header.scope_bytes},
        {old->members_at, &header.members_at, old->n_members, old->member_bytes,
         &header.member_bytes},
    };
    uint64_t at = sizeof header + 16;

    header.version = JURY_VERSION_WORD(1, 7);
    header.header_bytes += 16;
    header.file_bytes = n_bytes;
    for (size_t s = 0; s < 3; s++) {
        *sections[s].to_at = at;
        *sections[s].new_bytes += 8;
        for (uint32_t i = 0; i < sections[s].n; i++) {
            memcpy(bytes + at, from->bytes + sections[s].from_at + i * sections[s].old_bytes,
                   sections[s].old_bytes);
            at += *sections[s].new_bytes;
        }
    }
    header.slots_at = at;
    memcpy(bytes + at, from->bytes + old->slots_at, old->n_slots * sizeof(uint16_t));
    memcpy(bytes, &header, sizeof header);
    ((struct jury_layout *)(void *)bytes)->crc32c = fwd_layout_crc(bytes, n_bytes);
    return (struct fwd_layout){.bytes = bytes, .n_bytes = n_bytes};
}

static void a_later_minor_version_with_longer_records_is_read(void **state)
{
    (void)state;
    struct setup setup;
    struct fwd_layout layout;
    struct table_layout view;
    setup_init(&setup);
    CHECK(&setup, sketch_build(setup.sketch, 1, &layout, &setup.err));
    struct fwd_layout newer = grow_records(&layout);

    CHECK(&setup, table_layout_check(newer.bytes, newer.n_bytes, "newer", &view, &setup.err));

    assert_string_equal(table_layout_scope(&view, 1)->name, "web");
    assert_int_equal(table_layout_member(&view, 2)->at.address[2], 1);
    assert_string_equal(table_layout_listener(&view, 0)->name, "front");
    fwd_layout_close(&layout);
    fwd_layout_close(&newer);
    setup_close(&setup);
}

/* --- damaged files --- */

static void a_damaged_layout_is_refused_and_a_good_one_is_taken_again(void **state)
{
    (void)state;
    struct setup setup;
    struct table_snapshot *ignored = NULL;
    struct fwd_layout layout;
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    struct table_snapshot *snapshot = look_new(&setup);
    CHECK(&setup, sketch_build(setup.sketch, 2, &layout, &setup.err));
    layout.bytes[layout.n_bytes / 2] ^= 1;
    uint64_t number = table_writer_next_layout(setup.writer);
    CHECK(&setup, table_layout_store(setup.dir, number, layout.bytes, layout.n_bytes, &setup.err));
    CHECK(&setup, table_writer_publish(setup.writer, number, setup.sketch->n_rows, 2, &setup.err));

    for (int i = 0; i < 2; i++) {
        assert_int_equal(table_reader_look(setup.reader, true, &ignored, &setup.err),
                         TABLE_REFUSED);
        assert_non_null(strstr(setup.err.text, "damaged (checksum differs)"));
    }
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 3, &setup.err));

    struct table_snapshot *good = look_new(&setup);
    assert_int_equal(table_snapshot_layout(good)->header->revision, 3);
    table_snapshot_unref(good);
    table_snapshot_unref(snapshot);
    fwd_layout_close(&layout);
    setup_close(&setup);
}

static void set_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static void every_index_of_a_layout_is_checked(void **state)
{
    (void)state;
    struct setup setup;
    struct fwd_layout good;
    setup_init(&setup);
    CHECK(&setup, sketch_build(setup.sketch, 1, &good, &setup.err));
    const struct jury_layout *header = (const void *)good.bytes;
    const struct {
        size_t at;
        uint32_t value;
        const char *wanted;
    } rows[] = {
        {offsetof(struct jury_layout, magic), 0, "not a layout file"},
        {offsetof(struct jury_layout, version) + 4, 9, "format version 9."},
        {offsetof(struct jury_layout, file_bytes), 100, "bytes long"},
        {offsetof(struct jury_layout, header_bytes), 8, "record size"},
        {offsetof(struct jury_layout, listener_bytes), 0, "record size"},
        {offsetof(struct jury_layout, scope_bytes), 100000, "record size"},
        {offsetof(struct jury_layout, member_bytes), 65, "record size"},
        {offsetof(struct jury_layout, n_rows), 1U << 30, "rows"},
        {offsetof(struct jury_layout, n_rows), 1, "scope 0"},
        {offsetof(struct jury_layout, n_listeners), UINT32_MAX, "outside"},
        {offsetof(struct jury_layout, n_scopes), UINT32_MAX, "outside"},
        {offsetof(struct jury_layout, n_scopes), 1, "without a scope"},
        {offsetof(struct jury_layout, n_members), UINT32_MAX, "outside"},
        {offsetof(struct jury_layout, n_slots) + 4, UINT32_MAX, "outside"},
        {offsetof(struct jury_layout, members_at) + 4, UINT32_MAX, "outside"},
        {offsetof(struct jury_layout, slots_at), 145, "outside"},
        {header->listeners_at + offsetof(struct jury_listener, scope), 2, "listener 0"},
        {header->listeners_at + offsetof(struct jury_listener, at) + 16, 0, "listener 0"},
        {header->scopes_at + offsetof(struct jury_scope, row), 5, "scope 0"},
        {header->scopes_at + offsetof(struct jury_scope, first_member), 1, "scope 0"},
        {header->scopes_at + offsetof(struct jury_scope, n_members), UINT32_MAX, "scope 0"},
        {header->scopes_at + offsetof(struct jury_scope, n_slots), UINT32_MAX, "scope 0"},
        {header->scopes_at + offsetof(struct jury_scope, first_slot), 400, "scope 0"},
        {header->members_at + offsetof(struct jury_member, row), 5, "scope 0"},
        {header->members_at + offsetof(struct jury_member, scope), 1, "scope 0"},
        {header->members_at + offsetof(struct jury_member, weight), 101, "scope 0"},
        {header->members_at + offsetof(struct jury_member, at) + 16, 80, "scope 0"},
        {header->slots_at, 0x00050005, "scope 0"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t *bytes = malloc(good.n_bytes);
        struct table_layout view;

        memcpy(bytes, good.bytes, good.n_bytes);
        set_u32(bytes + rows[i].at, rows[i].value);
        ((struct jury_layout *)(void *)bytes)->crc32c = fwd_layout_crc(bytes, good.n_bytes);
        setup.err.text[0] = '\0';
        assert_true(table_layout_check(bytes, good.n_bytes, "layout", &view, &setup.err) != 0);
        if (strstr(setup.err.text, rows[i].wanted) == NULL) {
            fail_msg("row %zu: wanted \"%s\", got \"%s\"", i, rows[i].wanted, setup.err.text);
        }
        free(bytes);
    }
    fwd_layout_close(&good);
    setup_close(&setup);
}

static void a_missing_layout_is_absent_and_the_last_table_stays(void **state)
{
    (void)state;
    struct setup setup;
    char path[SCRATCH_BYTES + 64];
    char name[TABLE_NAME_BYTES];
    struct table_snapshot *ignored = NULL;
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    struct table_snapshot *snapshot = look_new(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 2, &setup.err));
    struct jury_root root = *table_snapshot_root(snapshot);
    snprintf(path, sizeof path, "%s/%s", setup.dir, table_layout_name(root.layout, name));
    assert_int_equal(unlink(path), 0);

    assert_int_equal(table_reader_look(setup.reader, true, &ignored, &setup.err), TABLE_ABSENT);

    assert_non_null(strstr(setup.err.text, name));
    assert_int_equal(table_snapshot_layout(snapshot)->header->revision, 1);
    table_snapshot_unref(snapshot);
    setup_close(&setup);
}

/* They were once removed under a running agent, which went on calling the table well. */
static void the_writer_sees_that_its_files_were_removed(void **state)
{
    (void)state;
    static const char *const kinds[] = {"root", "layout.", "state."};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct setup setup;
        char command[SCRATCH_BYTES + 64];
        setup_init(&setup);
        assert_true(table_writer_is_in_place(setup.writer));
        CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
        CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 2, &setup.err));
        assert_true(table_writer_is_in_place(setup.writer));

        snprintf(command, sizeof command, "rm %s/%s*", setup.dir, kinds[i]);
        assert_int_equal(system(command), 0);

        assert_false(table_writer_is_in_place(setup.writer));
        setup_close(&setup);
    }
}

/* Swapped for a link, or for another file, it was told as cut short, and ended the agent. */
static void a_file_swapped_for_a_link_is_gone_and_not_cut(void **state)
{
    (void)state;
    static const char *const swaps[] = {
        "ln -sf /dev/null %s/root",
        "for f in %s/state.*; do ln -sf /dev/null $f; done",
        "for f in %s/layout.*; do ln -sf /dev/null $f; done",
        "for f in %s/state.*; do cp -p $f $f.old; ln -sf $f.old $f; done",
        "for f in %s/state.*; do echo > $f.other; mv -f $f.other $f; done",
        "cd %s; echo > other; mv -f other root",
    };

    for (size_t i = 0; i < sizeof swaps / sizeof swaps[0]; i++) {
        struct setup setup;
        char command[SCRATCH_BYTES + 96];
        setup_init(&setup);
        CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
        assert_true(table_writer_is_in_place(setup.writer));

        snprintf(command, sizeof command, swaps[i], setup.dir);
        assert_int_equal(system(command), 0);

        assert_false(table_writer_is_in_place(setup.writer));
        assert_false(table_writer_is_cut(setup.writer, &setup.err));
        snprintf(command, sizeof command, "rm -f %s/*.old", setup.dir);
        assert_int_equal(system(command), 0);
        setup_close(&setup);
    }
}

/* How many of the ways of removing files a reader recovers from, at the next publish. */
static unsigned n_made_anew(void)
{
    static const char *const removals[] = {"rm %s/root",
                                           "rm %s/layout.*",
                                           "rm %s/state.*",
                                           "rm -r %s/*",
                                           "rm -r %s",
                                           "mv %s %s.away",
                                           "ln -sf /dev/null %s/root",
                                           "for f in %s/[ls]*.*; do ln -sf /dev/null $f; done"};
    unsigned n_good = 0;

    for (size_t i = 0; i < sizeof removals / sizeof removals[0]; i++) {
        struct setup setup;
        struct table_snapshot *snapshot = NULL;
        char command[2 * SCRATCH_BYTES + 64];
        bool is_current;
        setup_init(&setup);
        struct row_word *word = sketch_word(setup.sketch, "api", "10.0.0.2:80");
        word->row_class = ROW_NONE;
        CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
        struct table_snapshot *before = look_new(&setup);
        uint64_t generation = table_writer_generation(setup.writer);

        snprintf(command, sizeof command, removals[i], setup.dir, setup.dir);
        assert_int_equal(system(command), 0);
        CHECK(&setup, table_writer_reopen(setup.writer, &setup.err));
        CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));

        /* One that has the old files mapped, and one that starts now. */
        struct table_reader *late = table_reader_new(setup.dir);
        struct table_snapshot *fresh = NULL;
        if (table_reader_look(setup.reader, true, &snapshot, &setup.err) == TABLE_NEW &&
            table_reader_look(late, true, &fresh, &setup.err) == TABLE_NEW) {
            assert_true(table_snapshot_generation(fresh, &is_current) > generation);
            assert_int_equal(table_snapshot_row(fresh, word->row, word->birth).row_class,
                             JURY_CLASS_NONE);
            assert_true(table_writer_is_in_place(setup.writer));
            n_good++;
        }
        table_reader_free(late);
        table_snapshot_unref(fresh);
        table_snapshot_unref(snapshot);
        table_snapshot_unref(before);
        snprintf(command, sizeof command, "rm -rf %s.away", setup.dir);
        assert_int_equal(system(command), 0);
        setup_close(&setup);
    }
    return n_good;
}

/* They stayed away until the agent was started again. */
static void removed_files_are_made_anew_by_the_next_publish(void **state)
{
    (void)state;
    assert_int_equal(n_made_anew(), 8);
}

static void a_stuck_sequence_ends_in_the_last_copy_or_in_single_words(void **state)
{
    (void)state;
    struct setup setup;
    setup_init(&setup);
    CHECK(&setup, sketch_publish(setup.sketch, setup.writer, setup.dir, 1, &setup.err));
    struct table_snapshot *snapshot = look_new(&setup);
    struct table_scopes *with_copy = table_scopes_new(snapshot);
    struct table_scopes *without = table_scopes_new(snapshot);
    table_scopes_adopt(with_copy, 1);
    table_scopes_take(with_copy, 0);
    /* An agent that died while it wrote scope 0: odd for good. The mapping is read-only for
     * readers, so write through the file. */
    char path[SCRATCH_BYTES + 64];
    char name[TABLE_NAME_BYTES];
    struct jury_state header;
    uint64_t odd = 99;
    snprintf(path, sizeof path, "%s/%s", setup.dir,
             table_state_name(table_snapshot_root(snapshot)->state, name));
    FILE *file = fopen(path, "r+");
    assert_int_equal(fread(&header, sizeof header, 1, file), 1);
    uint32_t scope_row = setup.sketch->scopes[0].row;
    struct row_word *word = sketch_word(setup.sketch, "api", "10.0.0.1:80");
    fseek(file, (long)(header.sequences_at + scope_row * 8UL), SEEK_SET);
    fwrite(&odd, 8, 1, file);
    uint64_t half = ROW_UNREACHABLE | word->birth << 48;
    fseek(file, (long)(header.rows_at + word->row * 16UL), SEEK_SET);
    fwrite(&half, 8, 1, file);
    fclose(file);

    assert_int_equal(table_scopes_take(with_copy, 0).ranks[0], 1);
    assert_int_equal(table_scopes_n_stale(with_copy), 1);
    assert_int_equal(table_scopes_take(without, 0).ranks[0], 2);
    assert_int_equal(table_scopes_n_unguarded(without), 1);
    /* A copy from before a generation that this reader has reported as adopted is not used. */
    table_scopes_adopt(with_copy, 2);
    assert_int_equal(table_scopes_take(with_copy, 0).ranks[0], 2);
    assert_int_equal(table_scopes_n_unguarded(with_copy), 1);
    table_scopes_free(with_copy);
    table_scopes_free(without);
    table_snapshot_unref(snapshot);
    setup_close(&setup);
}

#ifdef JURY_PLANTS
static void twin_a_writer_that_goes_on_without_its_files_is_caught(void **state)
{
    (void)state;
    plant_set("table-stays-gone");
    assert_true(n_made_anew() < 8);
    plant_set(NULL);
}

static void twin_a_reader_without_its_checks_takes_what_the_tests_above_refuse(void **state)
{
    (void)state;
    struct setup setup;
    struct fwd_layout good;
    setup_init(&setup);
    CHECK(&setup, sketch_build(setup.sketch, 1, &good, &setup.err));
    const struct jury_layout *header = (const void *)good.bytes;
    const struct {
        const char *plant;
        size_t at;
        uint32_t value;
        bool with_checksum;
    } rows[] = {
        {"table-any-major", offsetof(struct jury_layout, version) + 4, 9, true},
        {"table-any-slot", header->slots_at, 0x00050005, true},
        {"table-no-checksum", header->members_at + offsetof(struct jury_member, weight), 99, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct table_layout view;
        uint8_t *bytes = malloc(good.n_bytes);

        memcpy(bytes, good.bytes, good.n_bytes);
        set_u32(bytes + rows[i].at, rows[i].value);
        if (rows[i].with_checksum) {
            ((struct jury_layout *)(void *)bytes)->crc32c = fwd_layout_crc(bytes, good.n_bytes);
        }
        assert_true(table_layout_check(bytes, good.n_bytes, "layout", &view, &setup.err) != 0);
        plant_set(rows[i].plant);
        assert_int_equal(table_layout_check(bytes, good.n_bytes, "layout", &view, &setup.err), 0);
        plant_set(NULL);
        free(bytes);
    }
    fwd_layout_close(&good);
    setup_close(&setup);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_major_is_refused_by_name_and_the_old_mapping_stays),
        cmocka_unit_test(a_later_minor_version_with_longer_records_is_read),
        cmocka_unit_test(a_damaged_layout_is_refused_and_a_good_one_is_taken_again),
        cmocka_unit_test(every_index_of_a_layout_is_checked),
        cmocka_unit_test(a_missing_layout_is_absent_and_the_last_table_stays),
        cmocka_unit_test(the_writer_sees_that_its_files_were_removed),
        cmocka_unit_test(a_file_swapped_for_a_link_is_gone_and_not_cut),
        cmocka_unit_test(removed_files_are_made_anew_by_the_next_publish),
        cmocka_unit_test(a_stuck_sequence_ends_in_the_last_copy_or_in_single_words),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_a_writer_that_goes_on_without_its_files_is_caught),
        cmocka_unit_test(twin_a_reader_without_its_checks_takes_what_the_tests_above_refuse),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
