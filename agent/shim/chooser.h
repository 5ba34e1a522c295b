/* One worker's choice of a backend: its copies of the scopes' classes and its turns (wrr, rr). One
 * thread owns it. */
#ifndef JURY_SHIM_CHOOSER_H
#define JURY_SHIM_CHOOSER_H

#include <stdint.h>

#include "agent/core/select.h"
#include "agent/table/table_scope.h"
#include "common/base/prng.h"

/* Where a scope stands in its cycle. */
struct scope_turn {
    int32_t *credits; /* NULL: not used yet */
    uint32_t n_members;
    uint64_t signature;
    uint32_t version; /* of the scope's copy that the signature was made of */
};

struct chooser {
    struct table_snapshot *snapshot; /* NULL: none yet */
    struct table_scopes *scopes;
    struct scope_turn *turns; /* one a scope */
    struct prng prng;
};

/* seed: where this worker's cycles begin, so that workers do not go in step. */
void chooser_init(struct chooser *chooser, uint64_t seed);
void chooser_close(struct chooser *chooser);

/* Go over to another table (a reference is taken). Turns of scopes that did not change go on.
 * Errors: ERR_NOMEM, and everything stays as it was. */
int chooser_follow(struct chooser *chooser, struct table_snapshot *snapshot);
/* Before the worker publishes that it has adopted that generation. */
void chooser_adopt(struct chooser *chooser, uint64_t generation);

/* Index (in the layout) of the member for a new flow, or SELECT_NONE. tried_ids: select_ids that
 * failed for this flow; with any, every scheduler goes by the hash. */
uint32_t chooser_pick(struct chooser *chooser, uint32_t scope_index, uint64_t flow_hash,
                      const uint64_t tried_ids[], uint32_t n_tried);

#endif
