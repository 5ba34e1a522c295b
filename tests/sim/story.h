/* What happens to a simulated cluster: the catalog's changes and the faults, drawn by a seed. */
#ifndef JURY_TESTS_SIM_STORY_H
#define JURY_TESTS_SIM_STORY_H

#include "tests/sim/checker.h"

#define SIM_GROUPS 3
#define SIM_BACKENDS 4 /* a group, at most */
#define SIM_SMALL 7    /* nodes of nearly all clusters, at most */

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
    struct world_link link;                  /* what all links began as */
    bool is_patient;    /* `guard: standard`, and time until all is forgotten */
    bool heals_in_turn; /* cut links come back one by one, in any order */
};

uint64_t story_below(struct sim *sim, uint64_t n);
void story_put_group(struct sim *sim, const char *name);
void story_change_interval(struct sim *sim);
void story_change_zone(struct sim *sim, uint64_t id);
/* Each node's own ones end, and mostly the replicated ones too. */
void story_end_holds(struct sim *sim);
/* Velocity windows that are too long for the calm: those who wait may go sooner, or
 * their group is checked no more. */
bool story_has_long_windows(struct sim *sim);
void story_shorten_windows(struct sim *sim);
/* Shadows of changed checks end, of some groups. */
void story_accept_checks(struct sim *sim);
/* Backends that come and go are what they are from now on. */
void story_end_wavering(struct sim *sim);
struct endpoint story_backend(struct sim *sim);
struct truth story_truth(struct sim *sim);
void story_start_node(struct sim *sim, uint64_t id);
/* faults.c: the network and the machines. */
void faults_set_network(struct sim *sim, bool is_calm);
void faults_set_clocks(struct sim *sim);
void faults_cut_something(struct sim *sim);
void faults_heal(struct sim *sim);
/* A link back, when they come back one by one. */
void faults_heal_next(struct sim *sim);
void faults_hit_machine(struct sim *sim);
void story_tell(const struct sim *sim, const char *what, uint64_t a, uint64_t b);
/* One thing, whatever it is. */
void story_go_on(struct sim *sim);

#endif
