/* One worker's copy of the classes of a snapshot's scopes, and of how much of each weight counts,
 * each taken under its sequence, so that a choice never sees half an update of its scope (I-15).
 * One thread owns it. */
#ifndef JURY_TABLE_SCOPE_H
#define JURY_TABLE_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/select.h"
#include "agent/table/table_reader.h"

struct table_scopes;

/* snapshot: a reference is taken. NULL: no memory. */
struct table_scopes *table_scopes_new(struct table_snapshot *snapshot);
void table_scopes_free(struct table_scopes *scopes);

/* From now on no copy from before this generation is used: call it before publishing that the
 * generation is adopted. */
void table_scopes_adopt(struct table_scopes *scopes, uint64_t generation);

/* The scope's members with their ranks and shares as they are now. Costs one load when nothing has
 * changed; else the words are taken under the sequence, at most JURY_SCOPE_TRIES times. After that
 * the last copy is used, but not one older than the adopted generation (a drain that was reported
 * as adopted would not hold): then, and without a copy, the words are taken one by one. Valid until
 * the next call. */
struct select_set table_scopes_take(struct table_scopes *scopes, uint32_t scope_index);
/* Rises when ranks or shares of that scope have changed since the start. */
uint32_t table_scopes_version(const struct table_scopes *scopes, uint32_t scope_index);
/* Copies that were used although their sequence had moved, and words taken one by one. */
uint64_t table_scopes_n_stale(const struct table_scopes *scopes);
uint64_t table_scopes_n_unguarded(const struct table_scopes *scopes);

#endif
