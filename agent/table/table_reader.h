/* Data plane side of the forwarding table: finds and maps the current files, gives them out as
 * counted immutable snapshots, and goes on with the last one whatever happens to the agent.
 *
 * One thread owns the reader; snapshots may pass between threads. Never waits, never writes. */
#ifndef JURY_TABLE_READER_H
#define JURY_TABLE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/select.h"
#include "agent/table/table_layout.h"
#include "common/base/err.h"

/* Look at the root's path this often; its words may be looked at any time. */
#define TABLE_LOOK_MS 200

struct table_snapshot;

struct table_snapshot *table_snapshot_ref(struct table_snapshot *snapshot);
/* NULL is allowed. Unmaps what nobody uses any more. */
void table_snapshot_unref(struct table_snapshot *snapshot);

/* All valid as long as the snapshot is held. */
const struct table_layout *table_snapshot_layout(const struct table_snapshot *snapshot);
uint64_t table_snapshot_layout_number(const struct table_snapshot *snapshot);
const struct jury_root *table_snapshot_root(const struct table_snapshot *snapshot);
/* The select_ids and weights of all members, in the layout's order. */
const uint64_t *table_snapshot_ids(const struct table_snapshot *snapshot);
const uint8_t *table_snapshot_weights(const struct table_snapshot *snapshot);
uint32_t table_snapshot_n_rows(const struct table_snapshot *snapshot);
/* Of the state file: what jury_word_share wants. */
uint64_t table_snapshot_state_version(const struct table_snapshot *snapshot);
/* Index of the scope with that row and birth, TABLE_NO_SCOPE if this layout has none. */
#define TABLE_NO_SCOPE UINT32_MAX
uint32_t table_snapshot_scope_of_row(const struct table_snapshot *snapshot, uint32_t row,
                                     uint64_t birth);
/* The sequence of the scope with that row, and the row's word itself (table_scope.h takes them). */
const uint64_t *table_snapshot_sequence(const struct table_snapshot *snapshot, uint32_t scope_row);
const uint64_t *table_snapshot_word(const struct table_snapshot *snapshot, uint32_t row);

/* The generation that is in force now: what it raised is visible to every later load of words, if
 * *ret_is_current says that this snapshot is the one it was raised with. Else a newer snapshot must
 * be adopted before that generation is. */
uint64_t table_snapshot_generation(const struct table_snapshot *snapshot, bool *ret_is_current);

/* One row's word and deadline as they are now; class JURY_CLASS_REMOVED and policy keep when the
 * row has another birth or lies beyond the table. */
struct table_row {
    uint8_t row_class;
    uint8_t flow_policy;
    uint8_t deadline_cause;
    uint8_t share; /* of its weight, 1..100 percent */
    uint32_t n_changes;
    uint64_t deadline_boot_ns;
};
struct table_row table_snapshot_row(const struct table_snapshot *snapshot, uint32_t row,
                                    uint64_t birth);

enum table_look {
    TABLE_SAME = 0,
    TABLE_NEW = 1,    /* *ret_snapshot is given */
    TABLE_ABSENT = 2, /* no root, or a file it names is missing: go on with the last snapshot */
    TABLE_REFUSED = 3 /* not understood or damaged: err says what; go on with the last snapshot */
};

struct table_reader;

/* dir: copied; need not exist yet. NULL: no memory. */
struct table_reader *table_reader_new(const char *dir);
void table_reader_free(struct table_reader *reader);
/* look_at_path: also look for a new root file (each TABLE_LOOK_MS); always done without a snapshot.
 * err: with TABLE_ABSENT and TABLE_REFUSED. */
enum table_look table_reader_look(struct table_reader *reader, bool look_at_path,
                                  struct table_snapshot **ret_snapshot, struct errmsg *err);

#endif
