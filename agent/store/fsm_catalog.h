/* The catalog as the store's state machine: commands and chunks of agent/core/catalog_apply.h
 * behind fsm.h. Store thread; what it publishes is a `struct catalog *` with one reference. */
#ifndef JURY_STORE_FSM_CATALOG_H
#define JURY_STORE_FSM_CATALOG_H

#include "agent/core/catalog_apply.h"
#include "agent/store/fsm.h"
#include "agent/store/store.h"

struct fsm_catalog {
    struct store_fsm fsm; /* give this to store_options */
    struct catalog_state *state;
    struct catalog_snapshot *snapshot; /* of the newest n_chunks; NULL = none */
};

/* Errors: ERR_NOMEM. The struct must not move afterwards. */
int fsm_catalog_init(struct fsm_catalog *catalog);
/* After store_stop. */
void fsm_catalog_close(struct fsm_catalog *catalog);

/* The answer in a completion of a proposal with outcome STORE_DONE; false: it has none. */
bool fsm_catalog_answer(const struct store_completion *completion, struct apply_answer *ret_answer);

#endif
