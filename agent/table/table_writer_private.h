/* The writer as its three files share it: table_writer.c (its life, layouts and state files),
 * table_writer_words.c (the words) and table_writer_place.c (whether the files are still there). */
#ifndef JURY_TABLE_WRITER_PRIVATE_H
#define JURY_TABLE_WRITER_PRIVATE_H

#include <sys/types.h>

#include "agent/table/jury_table.h"
#include "agent/table/table_reader.h"
#include "agent/table/table_state.h"
#include "agent/table/table_writer.h"

#define TABLE_LOCK_NAME "writer.lock"

struct table_writer {
    char *dir;
    int dir_fd;
    int lock_fd;
    struct table_identity identity;
    uint64_t generation; /* the last raised; before the first publish: one below the first */
    uint64_t next_number;
    struct jury_root *root; /* NULL before the first publish */
    ino_t root_inode;
    uint64_t layout_number;
    struct state_file state;
    uint64_t *row_generations;  /* state.n_rows of them */
    struct table_snapshot *old; /* found at open; NULL = none */
    bool old_is_ours;
    void (*step)(void *user);
    void *step_user;
};

/* A step that a reader can see was taken. */
void writer_step(struct table_writer *writer);
/* Store one word with release, as a step. */
void writer_store(struct table_writer *writer, uint64_t *word, uint64_t value);
/* The generation and the revision that it goes with: the end of a batch. After the first publish.
 */
void writer_raise(struct table_writer *writer, uint64_t revision);
/* A state file of at least n_rows in the place of the one that is there. Errors: ERR_LIMIT,
 * ERR_NOMEM, and those of table_file_make; nothing changed then. */
int writer_grow(struct table_writer *writer, uint32_t n_rows, struct errmsg *err);

#endif
