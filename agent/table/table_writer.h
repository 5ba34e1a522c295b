/* Agent side of the forwarding table: one writer a directory, on the health thread.
 *
 * Never decides: it writes the words of `struct row_word` and the layouts it is given, in the order
 * of design.md 6: words, then layout number, then generation. At start it makes fresh files and
 * never repairs old ones; nothing is visible before the first table_writer_publish. All calls are
 * for one thread; table_layout_store alone may run on a pool thread. A tmpfs is expected: these
 * calls touch no disk. */
#ifndef JURY_TABLE_WRITER_H
#define JURY_TABLE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/classes.h"
#include "agent/core/last_known_good.h"
#include "agent/table/boot_id.h"
#include "common/base/err.h"
#include "common/model/cluster.h"

/* Publish layouts at most this often; the newest wins (design.md 6). */
#define TABLE_LAYOUT_INTERVAL_MS 200

struct table_identity {
    struct cluster_id cluster_id;
    uint64_t node_id;
    uint64_t epoch; /* of this start, below 2^32; the generation begins at epoch << 32 | 1, or above
                       the old table's if that is not older */
    struct boot_id boot_id;
};

struct table_writer;

/* dir: must exist and be writable. Reads what an earlier agent left there, for the questions below.
 * Only one writer a directory at a time: a lock file is held until close. Errors: ERR_IO,
 * ERR_DENIED, ERR_FULL, ERR_BUSY (another agent writes there), ERR_NOMEM. */
int table_writer_open(const char *dir, const struct table_identity *identity,
                      struct table_writer **ret_writer, struct errmsg *err);
/* Leaves the table where it is: data planes go on with it. NULL is allowed. */
void table_writer_close(struct table_writer *writer);

/* The catalog revision of the table found at open; 0 = none, or of another cluster. Publish nothing
 * older (spec.md 5, Start). */
uint64_t table_writer_old_revision(const struct table_writer *writer);
/* Deadlines of the table found at open, if it is of this boot and cluster; is_exact is false,
 * drain_revision the table's revision. Returns the number there is; writes at most capacity. */
size_t table_writer_old_deadlines(const struct table_writer *writer,
                                  struct kept_deadline deadlines[], size_t capacity);

/* Write the words of one step. rows: those of one scope together, as engine_actions.rows. Raises
 * the generation if anything was published before; rows that the state file has no room for make a
 * new one. revision: the catalog's. Errors: ERR_LIMIT (row beyond LIMIT_ROWS), ERR_FULL, ERR_IO,
 * ERR_NOMEM: nothing was written, give the same rows again. */
int table_writer_apply(struct table_writer *writer, const struct row_word rows[], size_t n_rows,
                       uint64_t revision, struct errmsg *err);

/* A number for a layout file, never used before. */
uint64_t table_writer_next_layout(struct table_writer *writer);
/* Any thread: write the layout's file under that number. Errors: ERR_FULL, ERR_IO; nothing is left
 * behind then. */
int table_layout_store(const char *dir, uint64_t number, const uint8_t *bytes, size_t n_bytes,
                       struct errmsg *err);
/* Make a stored layout the current one; the words of its rows were applied before. Unlinks the one
 * before. If files were removed (table_writer_is_in_place), all are made anew, and the generation
 * goes on. n_rows: the layout's. Errors as table_writer_apply: the old layout stays
 * current then and the stored file is gone. */
int table_writer_publish(struct table_writer *writer, uint64_t number, uint32_t n_rows,
                         uint64_t revision, struct errmsg *err);

/* Each JURY_HEARTBEAT_MS. */
void table_writer_heartbeat(struct table_writer *writer, uint64_t boot_ns);

bool table_writer_is_published(const struct table_writer *writer);
/* False: somebody removed or replaced a current file. Data planes that have it mapped go on with
 * it, but one that starts now finds nothing, and no new layout reaches anybody. True before the
 * first publish. */
bool table_writer_is_in_place(const struct table_writer *writer);
/* True: somebody cut the root or the state file short, so that words are lost which are written but
 * when they change; err names it. A new writer is the cure. With table_rescue.h in place the calls
 * above still work meanwhile. */
bool table_writer_is_cut(const struct table_writer *writer, struct errmsg *err);
/* Before a publish that is to make the files anew: the folder and the lock in it are made again if
 * they were removed as well. Errors: ERR_DENIED, ERR_IO, ERR_FULL, ERR_BUSY; nothing changed. */
int table_writer_reopen(struct table_writer *writer, struct errmsg *err);
/* 0 before the first publish. */
uint64_t table_writer_generation(const struct table_writer *writer);
/* The generation with which the row's word last changed, for the drain barrier; 0 = never written.
 */
uint64_t table_writer_row_generation(const struct table_writer *writer, uint32_t row);

/* For the crash test: called after each step that a reader can see; the test ends the process
 * there. NULL (the default) = not called. */
void table_writer_set_step_hook(struct table_writer *writer, void (*step)(void *user), void *user);

#endif
