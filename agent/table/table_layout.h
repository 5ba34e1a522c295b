/* Checked view of a layout's bytes, and of the headers of root and state files: everything a reader
 * relies on afterwards is checked here once. The bytes are foreign (another program, another
 * version, a damaged file). */
#ifndef JURY_TABLE_LAYOUT_H
#define JURY_TABLE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "agent/table/jury_table.h"
#include "common/base/err.h"

/* Valid as long as the bytes. Step through records with the accessors: a newer minor version has
 * longer ones. */
struct table_layout {
    const uint8_t *bytes;
    const struct jury_layout *header;
};

/* After success every record lies in the file, names are terminated, every index and row is in
 * range, members of scopes are disjoint, and slots name members of their scope.
 * name: of the file, for the sentence. Errors: ERR_CORRUPT, ERR_VERSION (unknown major). */
int table_layout_check(const uint8_t *bytes, size_t n_bytes, const char *name,
                       struct table_layout *ret_layout, struct errmsg *err);

const struct jury_listener *table_layout_listener(const struct table_layout *layout,
                                                  uint32_t index);
const struct jury_scope *table_layout_scope(const struct table_layout *layout, uint32_t index);
const struct jury_member *table_layout_member(const struct table_layout *layout, uint32_t index);
/* The scope's selection array, n_slots long; NULL without one. */
const uint16_t *table_layout_slots(const struct table_layout *layout,
                                   const struct jury_scope *scope);

int table_root_check(const uint8_t *bytes, size_t n_bytes, struct errmsg *err);
/* n_rows: the layout's; the state file must have room for them. */
int table_state_check(const uint8_t *bytes, size_t n_bytes, uint32_t n_rows, const char *name,
                      struct errmsg *err);

#endif
