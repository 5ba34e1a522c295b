/* A counted read-only view of a whole file: mapped, where words change, or copied, where they do
 * not, so that nobody can change or cut what was checked. Internal to agent/table, and for the
 * agent to read its own files. */
#ifndef JURY_TABLE_MAP_H
#define JURY_TABLE_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"

struct table_map {
    atomic_uint n_refs;
    const uint8_t *bytes;
    size_t n_bytes;
    bool is_copy;
    dev_t device;
    ino_t inode;
};

struct table_file {
    const char *dir;
    const char *name;   /* in it */
    size_t n_bytes_max; /* a larger file is refused */
};

/* Errors of both: ERR_NOTFOUND (no such file), ERR_CORRUPT (empty, too large, no file), ERR_DENIED,
 * ERR_IO, ERR_NOMEM. */
int table_map_open(const struct table_file *file, struct table_map **ret_map, struct errmsg *err);
int table_map_copy(const struct table_file *file, struct table_map **ret_map, struct errmsg *err);
struct table_map *table_map_ref(struct table_map *map);
/* NULL is allowed. */
void table_map_unref(struct table_map *map);

/* Is the file of that name the one that is mapped, but shorter than it was? */
bool table_map_is_cut(const struct table_map *map, const char *dir, const char *name);
/* Is the file of that name still the one that is mapped? */
bool table_map_is_current(const struct table_map *map, const char *dir, const char *name);

/* File names of the table. Each returns text. */
#define TABLE_NAME_BYTES 40
#define TABLE_ROOT_NAME "root"
char *table_layout_name(uint64_t number, char text[TABLE_NAME_BYTES]);
char *table_state_name(uint64_t number, char text[TABLE_NAME_BYTES]);

#endif
