/* What changed between two revisions: cheap where parts are shared. */
#ifndef JURY_CORE_CATALOG_DIFF_H
#define JURY_CORE_CATALOG_DIFF_H

#include "agent/core/catalog.h"

struct catalog_diff_hooks {
    void *user;
    /* Each group that was added (before NULL), removed (after NULL) or is another value. */
    void (*group)(void *user, const struct catalog_group *before,
                  const struct catalog_group *after);
    /* Each slot whose (slot, birth) was added, removed or replaced. */
    void (*target)(void *user, const struct catalog_target *before,
                   const struct catalog_target *after);
};

/* before may be NULL (everything is new). A hook that is NULL is not called; groups come in order
 * of their names, targets of their slots. */
void catalog_diff(const struct catalog *before, const struct catalog *after,
                  const struct catalog_diff_hooks *hooks);

#endif
