/* What a step of the engine costs at 1,000, 10,000 and 100,000 targets: one of three nodes, groups
 * of 100.
 *
 * usage: bench_engine [--rounds N] [SIZE...]: default 9 rounds of 1000 10000 100000
 *
 * Steps go round a few targets that lie far from each other, so that the caches hold them at every
 * size and the time is that of the work; sizes alternate within a round. Goal: the largest takes at
 * most 20 % more than the smallest. It fails beyond FLAT_BOUND in the median of the rounds. What is
 * done for every target each V is shown a target, and not judged: memory is part of it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine.h"
#include "agent/core/engine_view.h"
#include "common/base/clock.h"
#include "common/base/units.h"
#include "tests/lib/big_catalog.h"

#define N_ENGINES 3
#define GROUP 100
#define V_MS 1000
#define I_MS 10000
#define SIZES_MAX 8
#define ROUNDS_MAX 64
#define FLAT_GOAL 1.2
#define FLAT_BOUND 1.5
#define HOT_TARGETS 32
#define STEPS 4096
#define STEP_NS (2 * NS_PER_US) /* timers move, and nothing ages within a round */

struct world {
    struct engine *engines[N_ENGINES];
    struct engine_actions *actions[N_ENGINES];
    struct catalog_state *state;
    uint32_t n_targets;
    uint64_t now_ns;
    uint64_t sequence; /* of made-up change messages of node 2 */
    uint32_t next;
};

static void step(struct world *world, uint32_t index, struct engine_event *event)
{
    event->now_ns = world->now_ns;
    event->boot_ns = world->now_ns;
    if (engine_step(world->engines[index], event, world->actions[index]) != 0) {
        abort();
    }
}

static void give_result(struct world *world, uint32_t index, uint32_t slot,
                        enum probe_reason reason)
{
    struct probe_result result = {
        .id = catalog_target_at(engine_catalog(world->engines[index]), slot)->id,
        .probe_class = (uint8_t)probe_reason_class(reason),
        .reason = (uint8_t)reason,
        .start_ns = world->now_ns - 1000,
        .end_ns = world->now_ns};

    step(world, index, &(struct engine_event){.kind = ENGINE_PROBE_RESULT, .u.result = &result});
}

/* All nodes probe every target once within I, spread evenly; then the vectors go round. */
static void probe_all(struct world *world)
{
    for (uint32_t slot = 0; slot < world->n_targets; slot++) {
        world->now_ns += I_MS * NS_PER_MS / world->n_targets;
        for (uint32_t i = 0; i < N_ENGINES; i++) {
            give_result(world, i, slot, REASON_OK);
        }
    }
}

static void hear_vector(struct world *world, uint32_t from)
{
    for (uint16_t i = 0; i < world->actions[from]->n_chunks; i++) {
        step(world, 0,
             &(struct engine_event){.kind = ENGINE_VOTE_CHUNK,
                                    .peer = from + 1,
                                    .u.chunk = &world->actions[from]->chunks[i]});
    }
}

static void exchange(struct world *world)
{
    world->now_ns += V_MS * NS_PER_MS;
    for (uint32_t i = 1; i < N_ENGINES; i++) {
        step(world, i, &(struct engine_event){.kind = ENGINE_TICK});
        hear_vector(world, i);
    }
}

static void open_world(struct world *world, uint32_t n_targets)
{
    const struct big_catalog size = {.n_nodes = N_ENGINES,
                                     .n_targets = n_targets,
                                     .n_each = GROUP,
                                     .vote_interval_ms = V_MS,
                                     .interval_ms = I_MS};

    *world = (struct world){.n_targets = n_targets, .now_ns = UINT64_C(1000000000000)};
    world->state = big_catalog_state(&size);
    struct catalog *catalog = catalog_state_catalog(world->state);
    for (uint32_t i = 0; i < N_ENGINES; i++) {
        struct engine_config config = {.node_id = i + 1, .epoch = 1, .seed = i};

        world->engines[i] = engine_new(&config, world->now_ns);
        world->actions[i] = malloc(sizeof *world->actions[i]);
        if (world->engines[i] == NULL || world->actions[i] == NULL) {
            abort();
        }
        engine_actions_init(world->actions[i]);
        step(world, i, &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog});
    }
    catalog_unref(catalog);
    exchange(world); /* observers are heard */
    probe_all(world);
    probe_all(world);
    exchange(world);
    step(world, 0, &(struct engine_event){.kind = ENGINE_TICK});
    world->sequence = 1000000; /* above all of the real ones */
}

static void close_world(struct world *world)
{
    for (uint32_t i = 0; i < N_ENGINES; i++) {
        engine_free(world->engines[i]);
        engine_actions_close(world->actions[i]);
        free(world->actions[i]);
    }
    catalog_state_free(world->state);
}

/* --- kinds of steps; each returns how many it did --- */

static uint32_t next_slot(struct world *world)
{
    return (uint32_t)((uint64_t)(world->next++ % HOT_TARGETS) * world->n_targets / HOT_TARGETS);
}

static uint32_t results_without_news(struct world *world)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        world->now_ns += STEP_NS;
        give_result(world, 0, next_slot(world), REASON_OK);
    }
    return STEPS;
}

static uint32_t results_that_change_the_opinion(struct world *world)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        bool fails = i / HOT_TARGETS % 2 == 0;

        world->now_ns += STEP_NS;
        give_result(world, 0, next_slot(world), fails ? REASON_CONNECT_FAILED : REASON_OK);
    }
    return STEPS;
}

static void hear_change(struct world *world, uint32_t slot, uint64_t peer, enum opinion opinion)
{
    const struct catalog *catalog = engine_catalog(world->engines[0]);
    struct vote_change change = {.epoch = 1,
                                 .sequence = world->sequence++,
                                 .target = catalog_target_at(catalog, slot)->id,
                                 .opinion = (uint8_t)opinion,
                                 .reason =
                                     opinion == OPINION_FAIL ? REASON_CONNECT_FAILED : REASON_OK,
                                 .streak = 1};

    step(world, 0,
         &(struct engine_event){.kind = ENGINE_VOTE_CHANGE, .peer = peer, .u.change = &change});
}

/* Two of three say so: the second one decides. */
static uint32_t votes_that_decide(struct world *world)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        enum opinion opinion = i / HOT_TARGETS % 2 == 0 ? OPINION_FAIL : OPINION_PASS;
        uint32_t slot = next_slot(world);

        world->now_ns += STEP_NS;
        hear_change(world, slot, 2, opinion);
        bool was_first = world->actions[0]->n_rows > 0;
        hear_change(world, slot, 3, opinion);
        if (!was_first && world->actions[0]->n_rows == 0) {
            abort(); /* no word: nothing was decided */
        }
    }
    return STEPS;
}

static uint32_t ticks_without_work(struct world *world)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        step(world, 0, &(struct engine_event){.kind = ENGINE_TICK});
    }
    return STEPS;
}

/* A full chunk or, of a small catalog, its one; counted a target. */
static uint32_t chunks_without_news(struct world *world)
{
    struct vote_chunk *chunk = &world->actions[1]->chunks[0];
    uint32_t n = world->n_targets < LIMIT_VOTE_SLOTS_PER_CHUNK ? world->n_targets
                                                               : LIMIT_VOTE_SLOTS_PER_CHUNK;

    for (uint32_t i = 0; i < 16; i++) {
        chunk->sequence = world->sequence++;
        step(world, 0,
             &(struct engine_event){.kind = ENGINE_VOTE_CHUNK, .peer = 2, .u.chunk = chunk});
    }
    return 16 * n;
}

static uint32_t vectors_made(struct world *world)
{
    exchange(world); /* no vote may age meanwhile */
    step(world, 0, &(struct engine_event){.kind = ENGINE_TICK});
    return world->n_targets * 5;
}

struct kind {
    const char *what;
    uint32_t (*run)(struct world *world);
    bool is_judged;
};

static const struct kind kinds[] = {
    {"a result without news", results_without_news, true},
    {"a result that changes the opinion", results_that_change_the_opinion, true},
    {"two votes, the second decides", votes_that_decide, true},
    {"a tick without work", ticks_without_work, true},
    {"a target of a chunk without news", chunks_without_news, false},
    {"a target of V: 3 vectors made, 2 heard", vectors_made, false},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* --- the table --- */

static int compare(const void *a, const void *b)
{
    double value_a = *(const double *)a, value_b = *(const double *)b;

    return (value_a > value_b) - (value_a < value_b);
}

static double median(double values[], uint32_t n)
{
    qsort(values, n, sizeof *values, compare);
    return values[n / 2];
}

struct bench {
    struct world worlds[SIZES_MAX];
    uint32_t sizes[SIZES_MAX];
    uint32_t n_sizes, n_rounds;
    double ns[KINDS][SIZES_MAX][ROUNDS_MAX];
};

static void measure(struct bench *bench, uint32_t round)
{
    for (size_t k = 0; k < KINDS; k++) {
        for (uint32_t i = 0; i < bench->n_sizes; i++) {
            uint64_t began_ns = clock_process_cpu_ns();
            uint32_t n = kinds[k].run(&bench->worlds[i]);

            bench->ns[k][i][round] = (double)(clock_process_cpu_ns() - began_ns) / n;
        }
    }
}

static unsigned print_table(struct bench *bench)
{
    unsigned n_steep = 0;

    for (size_t k = 0; k < KINDS; k++) {
        double ratios[ROUNDS_MAX];

        for (uint32_t round = 0; round < bench->n_rounds; round++) {
            ratios[round] = bench->ns[k][bench->n_sizes - 1][round] / bench->ns[k][0][round];
        }
        double ratio = median(ratios, bench->n_rounds);
        bool is_steep = kinds[k].is_judged && ratio > FLAT_BOUND;

        printf("%-40s", kinds[k].what);
        for (uint32_t i = 0; i < bench->n_sizes; i++) {
            printf(" | %8.1f ns at %u", median(bench->ns[k][i], bench->n_rounds), bench->sizes[i]);
        }
        printf(" | x %.2f%s%s\n", ratio, kinds[k].is_judged ? "" : " (not judged)",
               is_steep ? " TOO STEEP" : "");
        n_steep += is_steep;
    }
    return n_steep;
}

static void read_options(int argc, char **argv, struct bench *bench)
{
    static const struct option names[] = {{"rounds", 1, NULL, 'r'}, {NULL, 0, NULL, 0}};
    static const uint32_t sizes[] = {1000, 10000, 100000};
    int name;

    bench->n_rounds = 9;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (name != 'r') {
            exit(2);
        }
        bench->n_rounds = (uint32_t)strtoul(optarg, NULL, 10);
    }
    for (; optind < argc && bench->n_sizes < SIZES_MAX; optind++) {
        bench->sizes[bench->n_sizes++] = (uint32_t)strtoul(argv[optind], NULL, 10);
    }
    if (bench->n_sizes == 0) {
        memcpy(bench->sizes, sizes, sizeof sizes);
        bench->n_sizes = 3;
    }
    if (bench->n_rounds == 0 || bench->n_rounds > ROUNDS_MAX) {
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;

    read_options(argc, argv, &bench);
    for (uint32_t i = 0; i < bench.n_sizes; i++) {
        open_world(&bench.worlds[i], bench.sizes[i]);
    }
    for (uint32_t round = 0; round < bench.n_rounds; round++) {
        measure(&bench, round);
    }
    unsigned n_steep = print_table(&bench);
    for (uint32_t i = 0; i < bench.n_sizes; i++) {
        close_world(&bench.worlds[i]);
    }
    if (n_steep > 0) {
        printf("FAILED: %u kinds of steps cost more with more targets (bound x %.1f)\n", n_steep,
               FLAT_BOUND);
        return 1;
    }
    printf("no step costs more with more targets (goal x %.1f, bound x %.1f)\n", FLAT_GOAL,
           FLAT_BOUND);
    return 0;
}
