/* A snapshot in the two forms it has outside the state machine.
 *
 * Image: what raft stores and sends, the state's chunks one after the other, each under a checksum
 * (raft_uv keeps none of the data). Blob: what travels, the configuration and the image of one
 * InstallSnapshot as one run of bytes, cut into parts (raft_frame.h). */
#ifndef JURY_STORE_SNAPSHOT_BLOB_H
#define JURY_STORE_SNAPSHOT_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include <raft.h>

#include "agent/store/fsm.h"
#include "common/base/err.h"

/* ret_image: raft_malloc, as raft wants it. Errors: ERR_LIMIT (LIMIT_SNAPSHOT_BYTES), ERR_NOMEM. */
int snapshot_image_make(const struct store_fsm *fsm, struct raft_buffer *ret_image,
                        struct errmsg *err);
/* Check everything, then give the chunks to fsm->restore. Errors: ERR_CORRUPT, ERR_VERSION,
 * ERR_NOMEM and those of restore; the state is then unchanged. */
int snapshot_image_restore(const struct store_fsm *fsm, const void *image, size_t n_bytes,
                           struct errmsg *err);

/* ret_blob: given, free(). Errors: ERR_LIMIT, ERR_NOMEM. */
int snapshot_blob_make(const struct raft_install_snapshot *args, uint8_t **ret_blob,
                       size_t *ret_n_bytes);
/* Fills args->conf and args->data (raft_malloc). Errors: ERR_CORRUPT, ERR_NOMEM. */
int snapshot_blob_parse(const uint8_t *blob, size_t n_bytes, struct raft_install_snapshot *args);

#endif
