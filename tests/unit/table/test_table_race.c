/* One writer and several readers at full speed: a scope is never seen half written, a generation
 * never goes back, and what a reader adopted holds for all it does afterwards (I-15).
 * ctest labels: threads twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/table/table_reader.h"
#include "agent/table/table_scope.h"
#include "common/base/plant.h"
#include "tests/lib/scratch.h"
#include "tests/lib/sketch.h"

#define N_READERS 2
#define N_BACKENDS 64
#define N_BATCHES 4000

struct race {
    char dir[SCRATCH_BYTES];
    struct sketch *sketch;
    struct table_writer *writer;
    uint32_t scope_row;
    uint64_t scope_birth;
    atomic_bool is_over;
    atomic_uint n_mixed;   /* scopes with ranks of two batches, taken under the sequence */
    atomic_uint n_back;    /* generations that went back */
    atomic_uint n_too_old; /* ranks older than the adopted generation */
    atomic_uint n_missing; /* looks without a table */
    atomic_ulong n_taken;
    atomic_ulong n_exceptions;           /* last copies and words one by one */
    atomic_ulong batches[2 * N_BATCHES]; /* by the low half of the generation that carried it */
};

/* Batch number b gives all members of the scope the class b % 3 + 1, and its own row's deadline b:
 * so a reader knows which batch it looks at. */
static void set_batch(struct sketch *sketch, uint64_t batch)
{
    static const uint8_t classes[] = {ROW_HEALTHY, ROW_UNREACHABLE, ROW_FAIL_OPEN};

    for (uint32_t i = 0; i < sketch->n_rows; i++) {
        struct row_word *word = &sketch->rows[i].word;

        if (word->row != word->scope_row) {
            word->row_class = classes[batch % 3];
        } else {
            word->deadline_boot_ns = batch;
        }
    }
}

static void describe(struct sketch *sketch, unsigned n_groups)
{
    char text[32];

    sketch_clear(sketch);
    for (unsigned group = 0; group < n_groups; group++) {
        snprintf(text, sizeof text, "group%u", group);
        sketch_group(sketch, text, JURY_SCHEDULER_5_TUPLE);
        for (unsigned i = 0; i < (group == 0 ? N_BACKENDS : 1); i++) {
            snprintf(text, sizeof text, "10.0.%u.%u:80", group, i + 1);
            sketch_backend(sketch, text, 100);
        }
    }
}

static void will_raise(struct race *race, unsigned n_generations, uint64_t batch)
{
    uint64_t generation = table_writer_generation(race->writer) & UINT32_MAX;

    for (unsigned i = 1; i <= n_generations; i++) {
        atomic_store(&race->batches[generation + i], batch);
    }
}

static void *write_batches(void *user)
{
    struct race *race = user;
    struct row_word *words = calloc(SKETCH_ROWS, sizeof *words);
    struct errmsg err;

    for (uint64_t batch = 2; batch < N_BATCHES; batch++) {
        /* Never run ahead of the readers: a batch is looked at a few times. */
        while (batch % 50 == 0 && atomic_load(&race->n_taken) < batch * N_READERS * 4) {
            sched_yield();
        }
        if (batch % 100 == 0) {
            describe(race->sketch, 2 + (unsigned)(batch / 100 % 2));
            set_batch(race->sketch, batch);
            assert_int_equal(sketch_publish(race->sketch, race->writer, race->dir, batch, &err), 0);
            continue;
        }
        set_batch(race->sketch, batch);
        size_t n_words = sketch_words(race->sketch, words);
        will_raise(race, 1, batch);
        assert_int_equal(table_writer_apply(race->writer, words, n_words, batch, &err), 0);
    }
    atomic_store(&race->is_over, true);
    free(words);
    return NULL;
}

/* One reader's own view. */
struct view {
    struct table_reader *reader;
    struct table_snapshot *snapshot;
    struct table_scopes *scopes;
    uint64_t generation;
};

static void follow(struct race *race, struct view *view)
{
    struct table_snapshot *snapshot;
    struct errmsg err;
    bool is_current;
    enum table_look look = table_reader_look(view->reader, true, &snapshot, &err);

    if (look == TABLE_NEW) {
        table_scopes_free(view->scopes);
        table_snapshot_unref(view->snapshot);
        view->snapshot = snapshot;
        view->scopes = table_scopes_new(snapshot);
    } else if (look != TABLE_SAME) {
        atomic_fetch_add(&race->n_missing, 1);
    }
    uint64_t generation = table_snapshot_generation(view->snapshot, &is_current);
    if (generation < view->generation) {
        atomic_fetch_add(&race->n_back, 1);
    }
    if (is_current) {
        view->generation = generation;
        table_scopes_adopt(view->scopes, generation);
    }
}

/* Take the large scope and check it against what was adopted. */
static void inspect(struct race *race, struct view *view)
{
    uint64_t n_before = table_scopes_n_stale(view->scopes) + table_scopes_n_unguarded(view->scopes);
    struct select_set set = table_scopes_take(view->scopes, 0);
    uint64_t n_after = table_scopes_n_stale(view->scopes) + table_scopes_n_unguarded(view->scopes);
    bool is_guarded = n_after == n_before;
    uint64_t oldest = atomic_load(&race->batches[view->generation & UINT32_MAX]);
    uint64_t newest =
        table_snapshot_row(view->snapshot, race->scope_row, race->scope_birth).deadline_boot_ns;
    bool is_mixed = false;
    bool fits = false;

    for (uint32_t i = 1; i < set.n_members; i++) {
        is_mixed |= set.ranks[i] != set.ranks[0];
    }
    /* The scope's own row is written last in a batch, so the ranks are of a batch from the adopted
     * one to the one after `newest`. */
    for (uint64_t batch = oldest; batch <= newest + 1; batch++) {
        fits |= set.ranks[0] == batch % 3 + 1;
    }
    atomic_fetch_add(&race->n_mixed, is_mixed && is_guarded);
    atomic_fetch_add(&race->n_too_old, !fits && !is_mixed);
    atomic_fetch_add(&race->n_exceptions, !is_guarded);
    atomic_fetch_add(&race->n_taken, 1);
}

static void view_close(struct view *view)
{
    table_scopes_free(view->scopes);
    table_snapshot_unref(view->snapshot);
    table_reader_free(view->reader);
}

static void *read_scopes(void *user)
{
    struct race *race = user;
    struct view view = {.reader = table_reader_new(race->dir)};

    while (!atomic_load(&race->is_over)) {
        follow(race, &view);
        inspect(race, &view);
    }
    view_close(&view);
    return NULL;
}

static void race_init(struct race *race)
{
    struct errmsg err;

    memset(race, 0, sizeof *race);
    scratch_make(race->dir);
    race->sketch = sketch_new();
    describe(race->sketch, 2);
    set_batch(race->sketch, 1);
    race->batches[1] = 1;
    race->scope_row = race->sketch->scopes[0].row;
    race->scope_birth = race->sketch->scopes[0].birth;
    assert_int_equal(sketch_writer(race->dir, 1, &race->writer, &err), 0);
    assert_int_equal(sketch_publish(race->sketch, race->writer, race->dir, 1, &err), 0);
}

static void race_close(struct race *race)
{
    table_writer_close(race->writer);
    sketch_free(race->sketch);
    scratch_remove(race->dir);
}

static void run_race(struct race *race)
{
    pthread_t readers[N_READERS];
    pthread_t writer;

    race_init(race);
    for (int i = 0; i < N_READERS; i++) {
        pthread_create(&readers[i], NULL, read_scopes, race);
    }
    pthread_create(&writer, NULL, write_batches, race);
    pthread_join(writer, NULL);
    for (int i = 0; i < N_READERS; i++) {
        pthread_join(readers[i], NULL);
    }
    race_close(race);
}

/* The same without chance: one reader that looks after every single store of the writer. */
struct looker {
    struct race *race;
    struct view view;
};

static void look_now(void *user)
{
    struct looker *looker = user;

    follow(looker->race, &looker->view);
    inspect(looker->race, &looker->view);
}

static void run_steps(struct race *race, uint64_t n_batches)
{
    struct looker looker = {.race = race};
    struct row_word *words = calloc(SKETCH_ROWS, sizeof *words);
    struct errmsg err;

    race_init(race);
    looker.view.reader = table_reader_new(race->dir);
    look_now(&looker);
    table_writer_set_step_hook(race->writer, look_now, &looker);
    for (uint64_t batch = 2; batch < n_batches; batch++) {
        set_batch(race->sketch, batch);
        will_raise(race, 1, batch);
        size_t n_words = sketch_words(race->sketch, words);
        assert_int_equal(table_writer_apply(race->writer, words, n_words, batch, &err), 0);
    }
    view_close(&looker.view);
    free(words);
    race_close(race);
}

static void a_reader_that_looks_after_each_store_sees_whole_scopes_only(void **state)
{
    (void)state;
    struct race race;

    run_steps(&race, 20);

    print_message("%lu looks, %lu of them not under the sequence\n", (unsigned long)race.n_taken,
                  (unsigned long)race.n_exceptions);
    assert_int_equal(race.n_mixed, 0);
    assert_int_equal(race.n_too_old, 0);
    assert_int_equal(race.n_back, 0);
}

static void readers_see_whole_scopes_and_rising_generations_only(void **state)
{
    (void)state;
    struct race race;

    run_race(&race);

    print_message("%d batches, %lu scopes taken, %lu of them not under the sequence\n", N_BATCHES,
                  (unsigned long)race.n_taken, (unsigned long)race.n_exceptions);
    assert_int_equal(race.n_mixed, 0);
    assert_int_equal(race.n_back, 0);
    assert_int_equal(race.n_too_old, 0);
    assert_int_equal(race.n_missing, 0);
    assert_true(race.n_taken > N_BATCHES);
}

#ifdef JURY_PLANTS
static void twin_scopes_taken_or_written_without_the_sequence_are_caught(void **state)
{
    (void)state;
    static const char *const plants[] = {"table-torn-scope", "table-no-sequence"};

    for (size_t i = 0; i < 2; i++) {
        struct race race;

        plant_set(plants[i]);
        run_steps(&race, 20);
        plant_set(NULL);
        print_message("%s: %u mixed, %u too old\n", plants[i], race.n_mixed, race.n_too_old);
        assert_true(race.n_mixed + race.n_too_old > 0);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_that_looks_after_each_store_sees_whole_scopes_only),
        cmocka_unit_test(readers_see_whole_scopes_and_rising_generations_only),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_scopes_taken_or_written_without_the_sequence_are_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
