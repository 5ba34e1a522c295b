/* A probe on demand in a world: what a backend's truth makes of one, step by step. */
#ifndef JURY_TESTS_WORLD_PROBE_H
#define JURY_TESTS_WORLD_PROBE_H

#include "agent/core/probe_trace.h"
#include "tests/lib/world.h"

/* Times are the node's own; the probe begins now, and its result may be of a time to come. */
void world_probe(struct world *world, const struct world_node *node,
                 const struct probe_target *target, struct probe_report *ret_report);

#endif
