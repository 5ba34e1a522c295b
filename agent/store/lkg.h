/* The last-known-good file: what this node last used, to serve from when the store cannot (R-SS-2).
 *
 * Opaque chunks (the catalog's, the verdicts, the drain deadlines) with a kind each, under one
 * checksum. Two generations lie beside each other, so that a kill or a full disk at any moment
 * leaves a whole one: `lkg` is the newest, `lkg.old` the one before. Format code is pure; the two
 * I/O functions run on the libuv pool, never on the health loop. */
#ifndef JURY_STORE_LKG_H
#define JURY_STORE_LKG_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/model/cluster.h"

enum lkg_kind {
    LKG_NONE = 0,
    LKG_CATALOG = 1,  /* one chunk of the catalog; any number of them */
    LKG_VERDICTS = 2, /* verdict list of the engine */
    LKG_DEADLINES = 3 /* drain deadlines with boot id */
};

struct lkg_chunk {
    uint16_t kind; /* enum lkg_kind; unknown ones are skipped by a reader */
    const uint8_t *data;
    size_t n_bytes;
};

/* What the file says about itself. */
struct lkg_head {
    struct cluster_id cluster_id;
    uint64_t node_id;
    uint64_t revision;
    int64_t wall_ms;     /* when it was written, for people */
    uint8_t boot_id[16]; /* of the writing kernel */
};

struct lkg {
    struct lkg_head head;
    struct lkg_chunk *chunks; /* views into data */
    size_t n_chunks;
    uint8_t *data; /* owned */
    size_t n_bytes;
};

void lkg_close(struct lkg *lkg);

/* Pure. Of lkg its head and chunks, both borrowed. ret_data: given, free(). Errors: ERR_LIMIT,
 * ERR_NOMEM. */
int lkg_encode(const struct lkg *lkg, uint8_t **ret_data, size_t *ret_n_bytes, struct errmsg *err);
/* Pure. data: taken on success (free()), left to the caller on failure. A file is whole or refused,
 * never partly used. Errors: ERR_CORRUPT, ERR_VERSION, ERR_NOMEM. */
int lkg_decode(uint8_t *data, size_t n_bytes, struct lkg *ret_lkg, struct errmsg *err);

/* Write a temporary file, sync it, keep the present one as `lkg.old`, rename, sync the directory.
 * Errors: ERR_FULL, ERR_IO, ...; the newest good generation is then still there. */
int lkg_write(const char *data_dir, const uint8_t *data, size_t n_bytes, struct errmsg *err);
/* The newest generation that is whole. Errors: ERR_NOTFOUND (none was ever written), ERR_CORRUPT
 * (there are files and none is whole). */
int lkg_read(const char *data_dir, struct lkg *ret_lkg, struct errmsg *err);

#endif
