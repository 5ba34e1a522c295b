/* What the two files of a world of RPC servers share: rpc_world.c has time, stores and the mesh,
 * rpc_world_hooks.c what a server asks of its node. */
#ifndef JURY_TESTS_RPC_WORLD_PRIVATE_H
#define JURY_TESTS_RPC_WORLD_PRIVATE_H

#include "tests/lib/rpc_world.h"

enum event_of_world {
    EVENT_FREE = 0,
    EVENT_PROPOSAL,
    EVENT_BARRIER,
    EVENT_CHECK,
    EVENT_SIMULATION,
    EVENT_FORWARD,
    EVENT_ANSWER,
    EVENT_JUDGED /* by the check before the log: refused, or known already */
};

/* Random, both ends included. */
uint64_t world_between(struct rpc_world *world, uint64_t min, uint64_t max);
/* A copy on the heap; the test fails without memory. */
void *world_bytes(const void *data, size_t n_bytes);
/* Something to come after delay_ns; the test fails when the queue is full. */
struct rpc_world_event *world_event_new(struct rpc_world *world, enum event_of_world kind,
                                        uint64_t from, uint64_t to, uint64_t delay_ns);
bool rpc_world_leads(const struct rpc_world_node *node);
struct rpc_hooks rpc_world_hooks(struct rpc_world_node *node);

#endif
