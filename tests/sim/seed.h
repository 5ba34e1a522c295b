/* One seed: a cluster, its storm, and the calm after it. */
#ifndef JURY_TESTS_SIM_SEED_H
#define JURY_TESTS_SIM_SEED_H

#include "tests/sim/checker.h"

struct seed_options {
    bool trace;
    bool with_noise; /* replays, late messages, and clocks that are years off: see world.h */
    struct verdict_history *history; /* NULL = not wanted */
};

/* What a run adds up; all numbers. */
struct seed_sums {
    uint64_t n_steps;
    uint64_t simulated_ns; /* by the world's time */
    uint64_t node_ns;      /* times the nodes */
    uint64_t n_messages, n_lost, n_replayed, n_overtaken;
    uint64_t slowest_pm; /* the greatest, not the sum */
    struct sometimes sometimes;
};

/* False: `failure` (SEED_FAILURE_BYTES) says what broke. */
#define SEED_FAILURE_BYTES 512
bool seed_run(uint64_t seed, const struct seed_options *options, struct seed_sums *sums,
              char failure[SEED_FAILURE_BYTES]);

#endif
