/* Catalogs of the planned size, for benches. */
#ifndef JURY_TESTS_BIG_CATALOG_H
#define JURY_TESTS_BIG_CATALOG_H

#include "agent/core/catalog_apply.h"

struct big_catalog {
    uint32_t n_nodes; /* 1..LIMIT_NODES, all of them observers */
    uint32_t n_targets;
    uint32_t n_each; /* backends a group; the last group may be smaller */
    uint32_t vote_interval_ms;
    uint32_t interval_ms; /* I, and T; thresholds are 1, so that one result makes an opinion */
};

/* Groups "group0", "group1" and so on, rule majority. Aborts on a mistake. catalog_state_free. */
struct catalog_state *big_catalog_state(const struct big_catalog *size);
struct catalog *big_catalog(const struct big_catalog *size); /* catalog_unref */
uint32_t big_catalog_n_groups(const struct big_catalog *size);

#endif
