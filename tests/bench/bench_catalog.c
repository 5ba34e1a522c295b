/* What the catalog costs at the planned size: 10,000 groups of 10 backends, 10,000 listeners.
 *
 * usage: bench_catalog [GROUPS [BACKENDS_PER_GROUP]]
 * Goal: a small write below 1 ms, so that it costs about its group and not the catalog. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_diff.h"
#include "common/base/clock.h"
#include "common/base/prng.h"
#include "common/base/units.h"
#include "tests/lib/catalog_builder.h"

#define N_WRITES 2000

static unsigned n_groups = 10000;
static unsigned n_each = 10;

static void group_name(char *name, unsigned group)
{
    sprintf(name, "group%05u", group);
}

static void backend_at(char *at, unsigned group, unsigned i)
{
    sprintf(at, "10.%u.%u.%u:%u", group / 250, group % 250, 1 + i % 250, 80 + i / 250);
}

static void put_group(struct command *command, unsigned group, unsigned n)
{
    char name[16];
    char *endpoints = calloc(n + 1, 32);
    size_t used = 0;

    for (unsigned i = 0; i < n; i++) {
        backend_at(endpoints + used, group, i);
        used += strlen(endpoints + used);
        endpoints[used++] = ' ';
    }
    endpoints[used] = '\0';
    group_name(name, group);
    build_put(command, name, endpoints);
    free(endpoints);
}

static long resident_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

static void fill(struct catalog_state *state)
{
    uint64_t start = clock_monotonic_ns();

    for (unsigned group = 0; group < n_groups; group += 200) {
        struct command command = {0};

        for (unsigned i = group; i < group + 200 && i < n_groups; i++) {
            char name[16];
            char front[32];
            char at[32];

            put_group(&command, i, n_each);
            group_name(name, i);
            sprintf(front, "front%05u", i);
            sprintf(at, "192.168.%u.%u:%u", i / 250, 1 + i % 250, 443);
            build_listener(&command, front, at, name);
        }
        build_commit(state, &command);
    }
    printf("fill: %u groups, %u backends in %.0f ms, %ld MiB resident\n", n_groups,
           n_groups * n_each, (double)(clock_monotonic_ns() - start) / 1e6, resident_kib() / 1024);
}

static int compare(const void *a, const void *b)
{
    const uint64_t *value_a = a;
    const uint64_t *value_b = b;

    return (*value_a > *value_b) - (*value_a < *value_b);
}

static void print_times(const char *what, uint64_t *times_ns, size_t n)
{
    qsort(times_ns, n, sizeof *times_ns, compare);
    printf("%-34s p50 %7.1f us   p99 %7.1f us   max %7.1f us\n", what,
           (double)times_ns[n / 2] / 1e3, (double)times_ns[n * 99 / 100] / 1e3,
           (double)times_ns[n - 1] / 1e3);
}

enum write {
    WRITE_WEIGHT,
    WRITE_DRAIN,
    WRITE_READY,
    WRITE_CHECK,
    WRITE_FEWER,
    WRITE_SETTINGS
};

static void make_write(enum write write, unsigned group, unsigned round, struct command *command)
{
    char name[16];
    char at[32];
    struct cluster_settings settings;

    group_name(name, group);
    backend_at(at, group, 0);
    switch (write) {
    case WRITE_WEIGHT:
        build_weight(command, name, at, (uint8_t)(round % 100));
        break;
    case WRITE_DRAIN:
        build_admin(command, name, at, ADMIN_DRAINING);
        break;
    case WRITE_READY:
        build_admin(command, name, at, ADMIN_ENABLED);
        break;
    case WRITE_CHECK:
        put_group(command, group, n_each);
        command->changes[0].u.group->check.interval_ms = 1000 + round;
        break;
    case WRITE_FEWER:
        put_group(command, group, n_each - 1);
        break;
    case WRITE_SETTINGS:
        cluster_settings_default(&settings);
        settings.vote_interval_ms = 500 + round;
        build_settings(command, &settings);
        break;
    }
}

static void measure(struct catalog_state *state, const char *what, enum write write)
{
    static uint64_t times_ns[N_WRITES];
    struct prng prng;
    unsigned n = write == WRITE_SETTINGS ? 20 : N_WRITES;

    prng_init(&prng, 1);
    for (unsigned i = 0; i < n; i++) {
        struct command command = {0};
        struct apply_answer answer;

        make_write(write, (unsigned)prng_below(&prng, n_groups), i, &command);
        uint64_t start = clock_monotonic_ns();
        catalog_apply(state, &command, &answer);
        times_ns[i] = clock_monotonic_ns() - start;
        if (answer.err != 0) {
            printf("%s: %s\n", what, answer.message.text);
            exit(1);
        }
        command_close(&command);
    }
    print_times(what, times_ns, n);
}

static void count_group(void *user, const struct catalog_group *before,
                        const struct catalog_group *after)
{
    (void)before;
    (void)after;
    (*(unsigned *)user)++;
}

static void measure_reading(struct catalog_state *state)
{
    struct catalog *before = catalog_state_catalog(state);
    struct command command = {0};
    struct target_id births[LIMIT_BIRTHS_PER_CHUNK];
    uint64_t floor;
    unsigned n_changed = 0;
    uint64_t sum = 0;

    make_write(WRITE_WEIGHT, 1, 77, &command);
    build_commit(state, &command);
    struct catalog *after = catalog_state_catalog(state);
    const struct catalog_diff_hooks hooks = {.user = &n_changed, .group = count_group};
    uint64_t start = clock_monotonic_ns();
    catalog_diff(before, after, &hooks);
    printf("diff of two revisions: %.1f us, %u group changed\n",
           (double)(clock_monotonic_ns() - start) / 1e3, n_changed);
    start = clock_monotonic_ns();
    for (uint16_t chunk = 0; chunk < LIMIT_VOTE_CHUNKS; chunk++) {
        sum += catalog_chunk_births(after, chunk, births, &floor);
        sum += catalog_chunk_digest(after, chunk).low;
    }
    printf("births and digests of all chunks: %.1f us (%" PRIx64 ")\n",
           (double)(clock_monotonic_ns() - start) / 1e3, sum);
    start = clock_monotonic_ns();
    for (size_t i = 0; i < catalog_n_groups(after); i++) {
        sum += catalog_group_at(after, i)->n_backends;
    }
    printf("walk over all groups: %.1f us\n", (double)(clock_monotonic_ns() - start) / 1e3);
    catalog_unref(before);
    catalog_unref(after);
}

static void measure_snapshot(struct catalog_state *state)
{
    uint64_t start = clock_monotonic_ns();
    struct catalog_snapshot *snapshot = catalog_state_snapshot(state);
    size_t n = catalog_snapshot_n_chunks(snapshot);
    struct catalog_chunk_view *views = calloc(n, sizeof *views);
    size_t n_bytes = 0;
    struct errmsg err;

    for (size_t i = 0; i < n; i++) {
        views[i].data = catalog_snapshot_chunk_at(snapshot, i, &views[i].n_bytes);
        n_bytes += views[i].n_bytes;
    }
    printf("snapshot: %.2f ms, %zu chunks, %.1f MiB\n",
           (double)(clock_monotonic_ns() - start) / 1e6, n, (double)n_bytes / 1048576);
    struct catalog_state *copy = catalog_state_new();
    start = clock_monotonic_ns();
    if (catalog_state_restore(copy, views, n, &err) != 0) {
        printf("%s\n", err.text);
        exit(1);
    }
    printf("restore: %.0f ms\n", (double)(clock_monotonic_ns() - start) / 1e6);
    catalog_state_free(copy);
    free(views);
    catalog_snapshot_free(snapshot);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        n_groups = (unsigned)strtoul(argv[1], NULL, 10);
    }
    if (argc > 2) {
        n_each = (unsigned)strtoul(argv[2], NULL, 10);
    }
    struct catalog_state *state = build_state(3);
    fill(state);
    measure(state, "write: weight of one backend", WRITE_WEIGHT);
    measure(state, "write: drain of one backend", WRITE_DRAIN);
    measure(state, "write: end of the drain", WRITE_READY);
    measure(state, "write: check of one group", WRITE_CHECK);
    measure(state, "write: one backend fewer", WRITE_FEWER);
    measure(state, "write: cluster settings", WRITE_SETTINGS);
    measure_reading(state);
    measure_snapshot(state);
    printf("%ld MiB resident at the end\n", resident_kib() / 1024);
    catalog_state_free(state);
    return 0;
}
