/* What happens to a simulated cluster: the catalog's changes and the faults, drawn by a seed. */
#ifndef JURY_TESTS_SIM_STORY_H
#define JURY_TESTS_SIM_STORY_H

#include "tests/sim/checker.h"

#define SIM_GROUPS 3
#define SIM_BACKENDS 4 /* a group, at most */
struct sim {
    uint64_t seed;
    bool trace;
    struct prng prng; /* of the story; the world has its own for the network */
    struct world world;
    struct checker checker;
    struct sometimes *sometimes;
    char groups[SIM_GROUPS][8];
    uint64_t story_ns;                       /* length of the stormy part */
    uint64_t not_before_ns[WORLD_NODES + 1]; /* a node whose machine is not there yet */
};

uint64_t story_below(struct sim *sim, uint64_t n);
void story_put_group(struct sim *sim, const char *name);
void story_change_interval(struct sim *sim);
struct endpoint story_backend(struct sim *sim);
struct truth story_truth(struct sim *sim);
void story_start_node(struct sim *sim, uint64_t id);
/* One thing, whatever it is. */
void story_go_on(struct sim *sim);

#endif
