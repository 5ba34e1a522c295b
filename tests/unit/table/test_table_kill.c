/* An agent that dies after any step of a table write leaves the old or the new table to every
 * reader, and the next agent goes on from there (row 1.9; design.md 6, writing order).
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/table/table_reader.h"
#include "agent/table/table_scope.h"
#include "common/base/plant.h"
#include "tests/lib/scratch.h"
#include "tests/lib/sketch.h"

#define N_BACKENDS 5

struct countdown {
    unsigned n_left;
};

static void die_at_zero(void *user)
{
    struct countdown *countdown = user;

    if (--countdown->n_left == 0) {
        _exit(3);
    }
}

/* Each revision marks all backends of the group with one class of its own. */
static unsigned class_of(uint64_t revision)
{
    static const unsigned classes[] = {ROW_HEALTHY, ROW_UNREACHABLE, ROW_FAIL_OPEN};

    return classes[revision % 3];
}

static void describe(struct sketch *sketch, uint64_t revision, unsigned n_groups)
{
    char at[32];

    sketch_clear(sketch);
    for (unsigned group = 0; group < n_groups; group++) {
        char name[16];

        snprintf(name, sizeof name, "group%u", group);
        sketch_group(sketch, name, JURY_SCHEDULER_5_TUPLE);
        for (unsigned i = 0; i < N_BACKENDS; i++) {
            snprintf(at, sizeof at, "10.0.%u.%u:80", group, i + 1);
            sketch_backend(sketch, at, 100);
            sketch_word(sketch, name, at)->row_class = (uint8_t)class_of(revision);
        }
    }
}

/* The whole life of one agent: start over an old table, publish, words, a larger layout, growth. */
static int live(const char *dir, struct countdown *countdown)
{
    struct errmsg err;
    struct table_writer *writer;
    struct sketch *sketch = sketch_new();
    struct row_word far = {.scope_row = 3000, .row = 3001, .birth = 1, .row_class = ROW_HEALTHY};
    int result = sketch_writer(dir, 2, &writer, &err);

    if (result != 0) {
        return 1;
    }
    table_writer_set_step_hook(writer, die_at_zero, countdown);
    describe(sketch, 11, 2);
    result = sketch_publish(sketch, writer, dir, 11, &err);
    describe(sketch, 12, 3);
    sketch_word(sketch, "group1", "10.0.1.1:80")->flow_policy = FLOW_CLOSE_AT;
    sketch_word(sketch, "group1", "10.0.1.1:80")->deadline_boot_ns = 1;
    result = result != 0 ? result : sketch_publish(sketch, writer, dir, 12, &err);
    result = result != 0 ? result : table_writer_apply(writer, &far, 1, 13, &err);
    describe(sketch, 13, 3);
    result = result != 0 ? result : sketch_publish(sketch, writer, dir, 13, &err);
    table_writer_close(writer);
    sketch_free(sketch);
    return result != 0;
}

/* What any reader may see: whole scopes only, each of one revision between 10 and 13. Returns the
 * generation, 0 when there is no table. `wrong` is set to a sentence. */
static uint64_t observe(struct table_reader *reader, struct table_snapshot **held,
                        const char **wrong)
{
    struct table_snapshot *snapshot = NULL;
    struct errmsg err = {{0}};
    bool is_current;
    enum table_look look = table_reader_look(reader, true, &snapshot, &err);

    if (look == TABLE_NEW) {
        table_snapshot_unref(*held);
        *held = snapshot;
    } else if (look != TABLE_SAME) {
        *wrong = "a reader found no table";
        return 0;
    }
    struct table_scopes *scopes = table_scopes_new(*held);
    for (uint32_t i = 0; i < table_snapshot_layout(*held)->header->n_scopes; i++) {
        struct select_set set = table_scopes_take(scopes, i);
        for (uint32_t k = 0; k < set.n_members; k++) {
            if (set.ranks[k] == 0) {
                *wrong = "the usable set shrank";
            }
        }
    }
    table_scopes_free(scopes);
    return table_snapshot_generation(*held, &is_current);
}

/* One round: the agent dies after step `n_steps`. Returns false when it lived through all. */
static bool round_with_death_at(unsigned n_steps, const char **wrong)
{
    char dir[SCRATCH_BYTES];
    struct errmsg err;
    struct sketch *sketch = sketch_new();
    struct table_writer *writer = NULL;
    struct table_snapshot *held = NULL;
    struct table_snapshot *late_held = NULL;
    int status = 0;

    scratch_make(dir);
    describe(sketch, 10, 1);
    assert_int_equal(sketch_writer(dir, 1, &writer, &err), 0);
    assert_int_equal(sketch_publish(sketch, writer, dir, 10, &err), 0);
    table_writer_close(writer);
    struct table_reader *reader = table_reader_new(dir);
    uint64_t before = observe(reader, &held, wrong);

    pid_t pid = fork();
    if (pid == 0) {
        struct countdown countdown = {.n_left = n_steps};
        _exit(live(dir, &countdown));
    }
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);

    struct table_reader *late = table_reader_new(dir); /* one that starts only now */
    uint64_t between = observe(reader, &held, wrong);
    uint64_t late_between = observe(late, &late_held, wrong);
    if (*wrong == NULL && (between < before || late_between != between)) {
        *wrong = "the generation went back";
    }
    describe(sketch, 14, 3);
    assert_int_equal(sketch_writer(dir, 2, &writer, &err), 0); /* its epoch could not be raised */
    assert_int_equal(sketch_publish(sketch, writer, dir, 14, &err), 0);
    uint64_t after = observe(reader, &held, wrong);
    if (*wrong == NULL && after <= between) {
        *wrong = "the generation went back";
    }
    if (*wrong == NULL && table_snapshot_layout(held)->header->revision != 14) {
        *wrong = "the next agent's table was not found";
    }
    table_writer_close(writer);
    table_reader_free(reader);
    table_reader_free(late);
    table_snapshot_unref(held);
    table_snapshot_unref(late_held);
    sketch_free(sketch);
    scratch_remove(dir);
    return WEXITSTATUS(status) == 3;
}

static unsigned die_at_each_step(const char **wrong)
{
    unsigned n_steps = 1;

    while (round_with_death_at(n_steps, wrong) && *wrong == NULL) {
        n_steps++;
    }
    return n_steps - 1;
}

static void an_agent_that_dies_at_any_step_leaves_the_old_or_the_new_table(void **state)
{
    (void)state;
    const char *wrong = NULL;
    unsigned n_steps = die_at_each_step(&wrong);

    if (wrong != NULL) {
        fail_msg("death after step %u: %s", n_steps, wrong);
    }
    print_message("%u steps\n", n_steps);
    assert_true(n_steps > 40);
}

#ifdef JURY_PLANTS
static void twin_a_writer_that_unlinks_early_or_goes_back_is_caught(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"table-unlink-early", "a reader found no table"},
        {"table-generation-back", "the generation went back"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *wrong = NULL;

        plant_set(rows[i][0]);
        die_at_each_step(&wrong);
        plant_set(NULL);
        assert_non_null(wrong);
        assert_string_equal(wrong, rows[i][1]);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_that_dies_at_any_step_leaves_the_old_or_the_new_table),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_a_writer_that_unlinks_early_or_goes_back_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
