/* Catalogs pass between threads: one applies, others read and drop what they hold.
 * ctest labels: threads */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/catalog_builder.h"

#define N_READERS 3
#define N_WRITES 400

/* One place for the newest catalog, under a lock as in the agent's mailboxes. */
struct place {
    pthread_mutex_t lock;
    struct catalog *newest;
    bool is_over;
};

static struct catalog *take(struct place *place, bool *ret_is_over)
{
    pthread_mutex_lock(&place->lock);
    struct catalog *catalog = catalog_ref(place->newest);
    *ret_is_over = place->is_over;
    pthread_mutex_unlock(&place->lock);
    return catalog;
}

static void publish(struct place *place, struct catalog *catalog, bool is_over)
{
    pthread_mutex_lock(&place->lock);
    struct catalog *old = place->newest;
    place->newest = catalog;
    place->is_over = is_over;
    pthread_mutex_unlock(&place->lock);
    catalog_unref(old);
}

static uint64_t read_all(const struct catalog *catalog)
{
    uint64_t sum = catalog_revision(catalog) + catalog_chunk_digest(catalog, 0).low;

    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        const struct catalog_group *group = catalog_group_at(catalog, i);

        for (uint32_t j = 0; j < group->n_backends; j++) {
            sum += group->backends[j].row.row;
        }
    }
    for (uint32_t slot = 0; slot < catalog_n_slots(catalog); slot++) {
        const struct catalog_target *target = catalog_target_at(catalog, slot);

        sum += target != NULL ? target->check->interval_ms : 0;
    }
    for (size_t i = 0; i < catalog_n_chunks(catalog); i++) {
        size_t n_bytes;

        sum += catalog_chunk_at(catalog, i, &n_bytes)[4];
    }
    return sum;
}

static void *reader(void *user)
{
    struct place *place = user;
    struct catalog *held = NULL;
    uint64_t sum = 0;
    bool is_over = false;

    while (!is_over) {
        struct catalog *catalog = take(place, &is_over);

        sum += read_all(catalog);
        catalog_unref(held); /* the one before, possibly the last reference to it */
        held = catalog;
    }
    catalog_unref(held);
    return (void *)(uintptr_t)(sum | 1);
}

static void readers_and_a_writer_share_catalogs(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct place place = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .newest = catalog_state_catalog(state)};
    pthread_t threads[N_READERS];

    (void)unused;
    for (size_t i = 0; i < N_READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, reader, &place), 0);
    }
    for (unsigned i = 0; i < N_WRITES; i++) {
        struct command command = {0};
        char name[16];

        sprintf(name, "group%u", i % 40);
        build_put(&command, name, i % 3 == 0 ? "10.0.0.1:80" : "10.0.0.1:80 10.0.0.2:80");
        command.changes[0].u.group->check.interval_ms = 1000 + i;
        build_commit(state, &command);
        publish(&place, catalog_state_catalog(state), i == N_WRITES - 1);
    }
    catalog_state_free(state);
    for (size_t i = 0; i < N_READERS; i++) {
        void *sum;

        assert_int_equal(pthread_join(threads[i], &sum), 0);
        assert_non_null(sum);
    }
    catalog_unref(place.newest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_and_a_writer_share_catalogs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
