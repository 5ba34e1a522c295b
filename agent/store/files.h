/* Files that are either whole or not there: the few disk calls of the store's own files. Blocking;
 * store thread or libuv pool only. Every error names the path. */
#ifndef JURY_STORE_FILES_H
#define JURY_STORE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define FILES_PATH_BYTES 1024

/* "dir/name" into path. Errors: ERR_CONFIG (too long). */
int files_path(char path[FILES_PATH_BYTES], const char *dir, const char *name, struct errmsg *err);

/* A new file with exactly these bytes, synced. Errors: ERR_EXISTS, ERR_FULL, ERR_IO, ... */
int files_create(const char *path, const void *data, size_t n_bytes, struct errmsg *err);
/* open(2) with those flags and mode 0600, close-on-exec, of a regular file; never waits for
 * anybody. Returns the descriptor, or an error: ERR_NOTFOUND, ERR_CORRUPT for a FIFO, socket,
 * device or directory at that name, and those of open(2). */
int files_open(const char *path, int flags, struct errmsg *err);
/* Overwrite n_bytes at offset in a file that is long enough, and sync its data. */
int files_overwrite(const char *path, size_t offset, const void *data, size_t n_bytes,
                    struct errmsg *err);
/* ret_data: given, free(). A file longer than limit_bytes is ERR_CORRUPT, a missing one
 * ERR_NOTFOUND; else as files_open. */
int files_read(const char *path, size_t limit_bytes, uint8_t **ret_data, size_t *ret_n_bytes,
               struct errmsg *err);
/* Make the entries of a directory durable. */
int files_sync_dir(const char *path, struct errmsg *err);
/* rename(2) and sync of the directory `dir` that holds both. */
int files_rename(const char *from, const char *to, const char *dir, struct errmsg *err);
/* Remove a tree; what is not there is fine. Symbolic links are removed and not followed. */
int files_remove_tree(const char *path, struct errmsg *err);
bool files_exists(const char *path);

#endif
