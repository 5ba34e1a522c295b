/* Files of the forwarding table as the writer makes them: whole, allocated, mapped. Internal to
 * agent/table. All names are relative to an open folder. */
#ifndef JURY_TABLE_FILES_H
#define JURY_TABLE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Make a file of n_bytes zeros with its room allocated (a full tmpfs is ERR_FULL here and not a
 * signal later) and map it shared and writable. A file of that name is replaced. On failure nothing
 * stays. Errors: ERR_FULL, ERR_DENIED, ERR_IO, ERR_NOMEM. */
int table_file_make(int dir_fd, const char *name, size_t n_bytes, uint8_t **ret_bytes,
                    struct errmsg *err);

/* Unmap what table_file_make has mapped; the file stays. */
void table_file_unmap(void *bytes, size_t n_bytes);

/* Open the folder. Errors: ERR_NOTFOUND, ERR_DENIED, ERR_IO. */
int table_dir_open(const char *dir, int *ret_fd, struct errmsg *err);

/* Take the lock file `name` without waiting; the lock goes with the descriptor. Errors: ERR_BUSY
 * with what the holder wrote there, else as above. */
int table_lock_take(int dir_fd, const char *name, const char *what, int *ret_fd,
                    struct errmsg *err);

/* Remove layout and state files (and left-over temporary ones) other than those two. Failures are
 * passed over: the next agent tries again. */
void table_dir_sweep(int dir_fd, const char *keep_layout, const char *keep_state);

#endif
