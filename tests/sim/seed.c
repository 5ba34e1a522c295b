#include "tests/sim/seed.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/story.h"

/* One seed in so many waits for all that damping does, up to 5 min, and for 10 min after that. */
#define PATIENT_SEEDS 250
#define FORGOTTEN_NS (605 * WORLD_SECOND)

#define YEAR_NS (UINT64_C(31557600) * WORLD_SECOND)

/* In some seeds V changes while votes are tied in `initial`: by chance alone that is rare. */
#define TORN_SEEDS 16
#define TORN_NS (12 * WORLD_SECOND)

static bool is_torn(const struct sim *sim)
{
    return sim->seed % TORN_SEEDS == 7;
}

/* Half of the nodes see some backend otherwise from the start: votes can be tied in `initial`. */
static void disagree(struct sim *sim)
{
    for (unsigned i = 0; i < 4; i++) {
        struct endpoint at = story_backend(sim);
        struct world_backend *backend = world_backend(&sim->world, &at);

        for (uint32_t id = 2; id <= sim->checker.n_nodes_max; id += 2) {
            backend->truth[id] =
                (struct truth){.reason = REASON_CONNECT_FAILED, .response_ns = WORLD_MS};
        }
    }
}

/* Nearly all clusters are small; what only a large one shows, a few show. */
static uint32_t draw_size(struct sim *sim)
{
    uint64_t kind = story_below(sim, 1000);

    if (kind == 0) {
        return 25 + (uint32_t)story_below(sim, WORLD_NODES - 24);
    }
    if (kind < 5) {
        return SIM_SMALL + 1 + (uint32_t)story_below(sim, 17);
    }
    return 1 + (uint32_t)story_below(sim, SIM_SMALL);
}

static void begin_cluster(struct sim *sim, const struct seed_options *options)
{
    uint32_t n_nodes = draw_size(sim);
    uint32_t most = n_nodes <= SIM_SMALL ? SIM_SMALL : n_nodes + 2;

    most = most > WORLD_NODES ? WORLD_NODES : most;
    world_init(&sim->world, sim->seed, n_nodes);
    checker_init(&sim->checker, &sim->world, most, sim->sometimes);
    sim->checker.history = options->history;
    if (sim->seed % 3 == 0) { /* so short a past that most replays begin in between */
        sim->world.history_entries = 100 + (uint32_t)(sim->seed % 400);
    }
    sim->sometimes->more_than_seven_nodes += n_nodes > SIM_SMALL;
    if (options->with_noise) {
        sim->world.n_replays_max = 3;
        prng_init(&sim->world.noise, sim->seed);
        for (uint32_t id = 1; id <= n_nodes; id++) {
            sim->world.nodes[id].clock_offset_ns += prng_below(&sim->world.noise, YEAR_NS);
        }
    }
}

static void begin(struct sim *sim, const struct seed_options *options)
{
    prng_init(&sim->prng, sim->seed * UINT64_C(0x9e3779b97f4a7c15) + 1);
    bool is_zoned = story_below(sim, 2) == 0;
    begin_cluster(sim, options);
    faults_set_network(sim, false);
    faults_set_clocks(sim);
    if (story_below(sim, 2) == 0) {
        story_change_interval(sim);
    }
    for (uint32_t id = 1; id <= sim->world.n_nodes && is_zoned; id++) {
        story_change_zone(sim, id);
    }
    for (unsigned i = 0; i < SIM_GROUPS; i++) {
        snprintf(sim->groups[i], sizeof sim->groups[i], "group%u", i);
        if (i == 0 || story_below(sim, 2) == 0) {
            story_put_group(sim, sim->groups[i]);
        }
    }
    if (story_below(sim, 3) == 0 || is_torn(sim)) {
        disagree(sim);
    }
    for (uint32_t id = 1; id <= sim->world.n_nodes; id++) {
        if (story_below(sim, 10) != 0) {
            story_start_node(sim, id);
        }
    }
    sim->story_ns = (15 + story_below(sim, story_below(sim, 5) == 0 ? 150 : 35)) * WORLD_SECOND;
    if (sim->world.n_nodes > SIM_SMALL) {
        sim->story_ns = (5 + story_below(sim, 15)) * WORLD_SECOND;
    }
}

static void storm(struct sim *sim)
{
    while (sim->world.now_ns < sim->story_ns && !sim->checker.failed) {
        world_run(&sim->world, sim->world.now_ns + story_below(sim, 3 * WORLD_SECOND));
        if (is_torn(sim) && sim->world.now_ns < TORN_NS) {
            story_change_interval(sim);
        }
        story_go_on(sim);
    }
}

/* Whoever stands still goes on: what it is late for is still to come until then. */
static void end_stalls(struct sim *sim)
{
    for (uint32_t id = 1; id <= sim->world.n_nodes; id++) {
        if (sim->world.nodes[id].stalled_until_ns > sim->world.now_ns) {
            world_run(&sim->world, sim->world.nodes[id].stalled_until_ns);
        }
    }
}

/* Everything is well again, for as long as the longest bound says and a little more. */
static void calm(struct sim *sim)
{
    end_stalls(sim);
    faults_set_network(sim, true);
    story_end_holds(sim);
    story_end_wavering(sim);
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
    story_accept_checks(sim);
    if (story_has_long_windows(sim)) {
        world_run(&sim->world, sim->world.now_ns + 5 * WORLD_SECOND); /* some wait by now */
        story_shorten_windows(sim);
    }
    sim->checker.calm_ns = sim->world.now_ns;
    uint64_t more_ns = sim->is_patient ? FORGOTTEN_NS : 3 * WORLD_SECOND;
    while (!sim->checker.failed && sim->world.now_ns < sim->checker.calm_ns +
                                                           checker_longest_bound_ns(&sim->checker) +
                                                           more_ns) {
        world_run(&sim->world, sim->world.now_ns + 200 * WORLD_MS);
        checker_check_truth(&sim->checker);
    }
    if (!sim->checker.failed) {
        checker_check_end(&sim->checker);
    }
}

static void add_up(const struct sim *sim, struct seed_sums *sums)
{
    const struct world *world = &sim->world;

    sums->n_steps += world->n_steps;
    sums->simulated_ns += world->now_ns;
    sums->node_ns += world->now_ns * world->n_nodes;
    sums->n_messages += world->n_messages;
    sums->n_lost += world->n_lost;
    sums->n_replayed += world->n_replayed;
    sums->n_overtaken += world->n_overtaken;
    if (sim->checker.slowest_pm > sums->slowest_pm) {
        sums->slowest_pm = sim->checker.slowest_pm;
    }
}

bool seed_run(uint64_t seed, const struct seed_options *options, struct seed_sums *sums,
              char failure[SEED_FAILURE_BYTES])
{
    static struct sim sim; /* too big for a stack */

    memset(&sim, 0, sizeof sim);
    sim.seed = seed;
    sim.trace = options->trace;
    sim.is_patient = seed % PATIENT_SEEDS == 0;
    sim.sometimes = &sums->sometimes;
    begin(&sim, options);
    storm(&sim);
    if (!sim.checker.failed) {
        calm(&sim);
    }
    snprintf(failure, SEED_FAILURE_BYTES, "%s", sim.checker.failure);
    add_up(&sim, sums);
    world_close(&sim.world);
    checker_close(&sim.checker);
    return !sim.checker.failed;
}
