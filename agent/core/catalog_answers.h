/* The answers of the last request ids: a retry across a leader change gets the answer that the
 * first try got (spec.md 2). Private to agent/core/catalog*.c.
 *
 * Refusals are kept like successes. All ids that ever came are in a running hash, which each
 * revision's state hash takes in: nodes that remember differently are found out. */
#ifndef JURY_CORE_CATALOG_ANSWERS_H
#define JURY_CORE_CATALOG_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/catalog_apply.h"
#include "agent/core/catalog_chunks.h"
#include "common/base/idmap.h"

struct answer {
    struct request_id id;
    int32_t err;
    uint64_t revision;
    uint32_t change_index;
    char *message;                       /* owned; NULL when err is 0 */
    uint8_t outcomes[KEPT_OUTCOMES / 4]; /* as in struct apply_answer, of the first changes */
};

struct answers {
    struct answer *ring; /* LIMIT_REQUEST_IDS places, allocated with the first answer */
    uint32_t n_answers;
    uint32_t next; /* place of the next one, the oldest's once the ring is full */
    struct idmap index;
    struct hash128 running;
};

void answers_close(struct answers *answers);
/* An all-zero id is none and never known. */
bool answers_find(const struct answers *answers, const struct request_id *id,
                  struct apply_answer *ret_answer);
void answers_remember(struct answers *answers, const struct request_id *id,
                      const struct apply_answer *answer);

/* As chunks; at least one. Each chunk is given, its bytes are the caller's. */
uint32_t answers_n_chunks(const struct answers *answers);
struct part_chunk answers_chunk(const struct answers *answers, uint32_t index);
/* From the chunks among others; on an empty `answers`. None at all = no answers.
 * Errors: ERR_CORRUPT, ERR_VERSION; then close it. */
int answers_restore(struct answers *answers, const struct catalog_chunk_view chunks[],
                    size_t n_chunks, struct errmsg *err);

#endif
