/* Several checks of a backend (N20), by the trace: what a node's own opinions of them come to, and
 * which dependencies are down. Private to tests/sim. */
#ifndef JURY_TESTS_SIM_SEVERAL_H
#define JURY_TESTS_SIM_SEVERAL_H

#include "tests/sim/checker.h"

/* The witness has another catalog. */
void several_follow(struct witness *witness);
/* The slot is one that nobody probes. */
bool several_is_composed(const struct witness *witness, uint32_t slot);
/* A part of what is in the other slot. */
bool several_has_part(const struct witness *witness, uint32_t slot, uint32_t part);
/* What the own opinions of its parts give now. */
uint8_t several_opinion(struct checker *checker, struct witness *witness, uint32_t slot,
                        uint64_t now_ns);
/* Of its parts each is of a kind in the mask. */
bool several_is_doubted(const struct witness *witness, uint32_t slot, uint32_t suspect_mask);
/* T + I of the slowest local check, and the longest time from the first probe of a streak to an
 * opinion, of any check. */
uint64_t several_cycle_ms(const struct catalog_group *group);
uint64_t several_window_ms(const struct catalog_group *group);
/* What the backend is at a node, all else being well: HEALTH_HEALTHY or HEALTH_UNHEALTHY, and
 * whether it is degraded. */
uint8_t several_truth(struct checker *checker, const struct catalog_group *group,
                      const struct catalog_backend *backend, uint32_t node_id);
bool several_degraded_truth(struct checker *checker, const struct catalog_group *group,
                            const struct catalog_backend *backend, uint32_t node_id);
/* By the votes, as judged. */
bool several_is_degraded(const struct witness *witness, uint32_t row);

#endif
