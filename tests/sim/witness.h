/* The trace: what each node was told, in order and by its own clock. Private to
 * tests/sim/checker.c, which judges by it. */
#ifndef JURY_TESTS_SIM_WITNESS_H
#define JURY_TESTS_SIM_WITNESS_H

#include "tests/sim/checker.h"

/* The record of a node's present life. */
struct witness *witness_of(struct checker *checker, const struct world_node *node);
/* Hook of the world, before each step; user: the checker. */
void witness_hear(void *user, struct world *world, struct world_node *node,
                  const struct engine_event *event);

/* V, the check of a slot, and n x (T + I) of it, by the node's catalog. */
uint64_t witness_interval_ns(const struct witness *witness);
const struct health_check *witness_check_at(const struct witness *witness, uint32_t slot);
uint64_t witness_cycles_ns(const struct witness *witness, uint32_t slot, uint64_t n);
/* What the node's own results give now; it does not outlive 3 x (T + I) without a conclusive one.
 */
uint8_t witness_own_opinion(struct checker *checker, struct witness *witness, uint32_t slot,
                            uint64_t now_ns);

/* Whether the node doubts its own probes of this slot's kind. */
bool witness_doubts(const struct witness *witness, uint32_t slot);
/* It says after a step which kinds it doubts: what failed while it doubted is nothing afterwards.
 */
void witness_follow_doubt(struct checker *checker, struct witness *witness, uint32_t mask,
                          uint64_t now_ns);

/* Observers whose 60 s have passed enter n. Returns true if one does. */
bool witness_enter_by_time(struct checker *checker, struct witness *witness, uint64_t now_ns);

#endif
