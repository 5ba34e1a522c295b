/* Random clusters under random faults, judged after every step: sim [--first N] [--seeds N]
 * [--trace].
 *
 * Each seed is a cluster of 1 to 7 nodes with groups of random rules and checks on a network that
 * delays, loses, doubles, overtakes and cuts (also one way), with restarts, frozen stores and
 * catalog changes that reach the nodes at different times; then a calm, at whose end every verdict
 * must be what the backends really are. A seed that fails prints the command that repeats it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "tests/sim/story.h"

/* Fewer seeds than this need not show everything. */
#define SEEDS_THAT_SHOW_ALL 1000

static void set_network(struct sim *sim, bool is_calm)
{
    static const uint64_t delays_ms[] = {0, 20, 300, 1500};
    static const uint32_t losses[] = {0, 20000, 200000};
    struct world_link link = {.delay_max_ns = 10 * WORLD_MS};

    if (!is_calm) {
        link.delay_max_ns = delays_ms[story_below(sim, 4)] * WORLD_MS;
        link.loss_ppm = losses[story_below(sim, 3)];
        link.duplicate_ppm = story_below(sim, 2) == 0 ? 0 : 100000;
        link.late_ppm = story_below(sim, 3) == 0 ? 20000 : 0;
    }
    for (uint32_t x = 1; x <= WORLD_NODES; x++) {
        for (uint32_t y = 1; y <= WORLD_NODES; y++) {
            sim->world.links[x][y] = link;
        }
    }
    sim->world.store_delay_max_ns = is_calm ? 0 : story_below(sim, 5 * WORLD_SECOND);
}

/* Half of the nodes see some backend otherwise from the start: votes can be tied in `initial`. */
static void disagree(struct sim *sim)
{
    for (unsigned i = 0; i < 4; i++) {
        struct endpoint at = story_backend(sim);
        struct world_backend *backend = world_backend(&sim->world, &at);

        for (uint32_t id = 2; id <= WORLD_NODES; id += 2) {
            backend->truth[id] =
                (struct truth){.reason = REASON_CONNECT_FAILED, .response_ns = WORLD_MS};
        }
    }
}

static void begin(struct sim *sim)
{
    prng_init(&sim->prng, sim->seed * UINT64_C(0x9e3779b97f4a7c15) + 1);
    world_init(&sim->world, sim->seed, 1 + (uint32_t)story_below(sim, WORLD_NODES));
    checker_init(&sim->checker, &sim->world, sim->sometimes);
    set_network(sim, false);
    if (story_below(sim, 2) == 0) {
        story_change_interval(sim);
    }
    for (unsigned i = 0; i < SIM_GROUPS; i++) {
        snprintf(sim->groups[i], sizeof sim->groups[i], "group%u", i);
        if (i == 0 || story_below(sim, 2) == 0) {
            story_put_group(sim, sim->groups[i]);
        }
    }
    if (story_below(sim, 3) == 0) {
        disagree(sim);
    }
    for (uint32_t id = 1; id <= sim->world.n_nodes; id++) {
        if (story_below(sim, 10) != 0) {
            story_start_node(sim, id);
        }
    }
    sim->story_ns = (20 + story_below(sim, story_below(sim, 4) == 0 ? 150 : 40)) * WORLD_SECOND;
}

static void storm(struct sim *sim)
{
    while (sim->world.now_ns < sim->story_ns && !sim->checker.failed) {
        world_run(&sim->world, sim->world.now_ns + story_below(sim, 3 * WORLD_SECOND));
        story_go_on(sim);
    }
}

/* Everything is well again and stays so: time enough for the longest window and memory. */
static void calm(struct sim *sim)
{
    set_network(sim, true);
    for (uint32_t id = 1; id <= sim->world.n_nodes; id++) {
        world_freeze_store(&sim->world, id, false);
        if (!sim->world.nodes[id].is_up && !sim->world.nodes[id].is_gone) {
            story_start_node(sim, id);
        }
    }
    for (uint32_t i = 0; i < sim->world.n_backends; i++) {
        struct truth truth = story_truth(sim);

        world_set_truth(&sim->world, &sim->world.backends[i].at, &truth);
    }
    for (unsigned i = 0; i < 60 && !sim->checker.failed; i++) {
        world_run(&sim->world, sim->world.now_ns + WORLD_SECOND);
    }
}

static bool run_seed(uint64_t seed, bool trace, struct sometimes *sometimes, uint64_t *n_steps)
{
    static struct sim sim; /* too big for a stack */
    bool failed;

    memset(&sim, 0, sizeof sim);
    sim.seed = seed;
    sim.trace = trace;
    sim.sometimes = sometimes;
    begin(&sim);
    storm(&sim);
    if (!sim.checker.failed) {
        calm(&sim);
    }
    if (!sim.checker.failed) {
        checker_check_truth(&sim.checker);
    }
    failed = sim.checker.failed;
    if (failed) {
        printf("seed %llu: %s\nrepeat with: sim --first %llu --seeds 1 --trace\n",
               (unsigned long long)seed, sim.checker.failure, (unsigned long long)seed);
    }
    *n_steps += sim.world.n_steps;
    world_close(&sim.world);
    return !failed;
}

static bool report_sometimes(const struct sometimes *sometimes, bool all_required)
{
    bool complete = true;

#define REPORT(name)                                                                \
    printf("  sometimes %-20s %llu\n", #name, (unsigned long long)sometimes->name); \
    complete = complete && sometimes->name > 0;
    SOMETIMES(REPORT)
#undef REPORT
    if (!complete && all_required) {
        printf("something never happened: the run proves less than it seems to\n");
    }
    return complete || !all_required;
}

static bool read_number(int argc, char **argv, int *i, const char *name, uint64_t *value)
{
    if (strcmp(argv[*i], name) != 0) {
        return false;
    }
    if (*i + 1 == argc || !str_parse_u64(argv[++*i], UINT64_MAX, value)) {
        fprintf(stderr, "sim: %s needs a number\n", name);
        exit(2);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct sometimes sometimes = {0};
    uint64_t first = 1;
    uint64_t n_seeds = 1000;
    uint64_t n_steps = 0;
    bool trace = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            trace = true;
        } else if (!read_number(argc, argv, &i, "--first", &first) &&
                   !read_number(argc, argv, &i, "--seeds", &n_seeds)) {
            fprintf(stderr, "usage: sim [--first N] [--seeds N] [--trace]\n");
            return 2;
        }
    }
    for (uint64_t seed = first; seed < first + n_seeds; seed++) {
        if (!run_seed(seed, trace, &sometimes, &n_steps)) {
            printf("failed at the %lluth seed\n", (unsigned long long)(seed - first + 1));
            return 1;
        }
    }
    printf("sim: %llu seeds from %llu, %llu steps, none failed\n", (unsigned long long)n_seeds,
           (unsigned long long)first, (unsigned long long)n_steps);
    return report_sometimes(&sometimes, n_seeds >= SEEDS_THAT_SHOW_ALL) ? 0 : 1;
}
