/* Does the kept history tell what happened? The replay of each group with its unchanged document
 * must give the very events that are in the node's log: same times, same changes. */
#ifndef JURY_TESTS_REPLAY_JUDGE_H
#define JURY_TESTS_REPLAY_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/engine.h"

#define REPLAY_JUDGE_BYTES 1024

struct replay_judgement {
    uint32_t n_groups;
    uint32_t n_whole;                    /* replayed from their beginning */
    uint32_t n_events;                   /* compared */
    uint32_t n_verdicts;                 /* of them */
    char difference[REPLAY_JUDGE_BYTES]; /* empty: none */
};

/* All groups of the node's catalog. Memory shortage aborts. */
void replay_judge(const struct engine *engine, struct replay_judgement *ret_judgement);

#endif
