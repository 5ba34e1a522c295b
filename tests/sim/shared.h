/* Targets whose probes the observers share, for the judge: who must probe, and whose votes n is of,
 * told once more from the sentences of N7 and N24. The choice of the k alone is asked of
 * agent/core/share.h, whose properties have unit tests. Private to tests/sim. */
#ifndef JURY_TESTS_SIM_SHARED_H
#define JURY_TESTS_SIM_SHARED_H

#include "tests/sim/checker.h"

/* The check of the slot says probers or recheck. */
bool shared_is(const struct witness *witness, uint32_t slot);
/* A slot has another target, or none. */
void shared_begin(struct witness *witness, uint32_t slot, uint64_t now_ns);
/* This node probes it: else what comes of a probe that was under way is nothing. */
bool shared_probes(struct checker *checker, const struct witness *witness, uint32_t slot);
/* A conclusive result of a node that was called to a backend that is healthy: pass at once. */
bool shared_adopts(struct checker *checker, struct witness *witness, uint32_t slot, bool passed);
/* Its opinion is pass, and its last probe failed. */
bool shared_wavers(const struct witness *witness, uint32_t slot);

/* After each step, before verdicts are judged: who probes from now on, and that the engine ordered
 * just that, at once where it must be at once. */
void shared_follow(struct checker *checker, struct witness *witness, const struct world_node *node,
                   uint64_t now_ns);

#endif
