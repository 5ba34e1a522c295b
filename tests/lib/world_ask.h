/* nodectl asked of a node of a world: the command itself, its client over a unix socket, the RPC
 * server and its handlers, and the node's engine. Only the store is simulated: the lowest node that
 * reaches a majority both ways leads, and what is proposed to it is applied at once.
 *
 * World time stands still but for what an answer waits for (`why` asks the peers). */
#ifndef JURY_TESTS_WORLD_ASK_H
#define JURY_TESTS_WORLD_ASK_H

#include <stddef.h>
#include <stdint.h>

#include "tests/lib/world.h"

#define WORLD_ASK_WORDS 32
/* Wall time at the beginning of a world: 2027-01-15T08:00:00Z. */
#define WORLD_WALL_MS INT64_C(1800000000000)

struct world_answer {
    int status; /* exit status */
    char *out;  /* given: world_answer_close */
    char *err;
};

/* words: of the command line behind "nodectl". The node must be up. */
void world_ask(struct world *world, uint64_t node_id, char *const words[], size_t n_words,
               struct world_answer *ret_answer);
void world_answer_close(struct world_answer *answer);

/* The node that leads as this node knows it; 0 = none. */
uint64_t world_leader(const struct world *world, uint64_t node_id);

#endif
