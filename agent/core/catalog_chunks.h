/* Parts of the catalog as chunks and back: the format of snapshots and of the last-known-good file.
 * Private to agent/core/catalog*.c.
 *
 * A chunk is magic, version, kind and the object. A group of more than 500 backends takes several.
 * The header chunk counts the others, carries the sum of their hashes and ends in its own hash, so
 * damage anywhere is seen. */
#ifndef JURY_CORE_CATALOG_CHUNKS_H
#define JURY_CORE_CATALOG_CHUNKS_H

#include "agent/core/catalog_codec.h"
#include "agent/core/catalog_parts.h"
#include "common/base/err.h"

/* Fill chunks and content of a part from its object; on a part without chunks. */
void part_encode(struct part *part);
/* Make the header chunk anew from the catalog's fields and parts. */
void catalog_encode_header(struct catalog *catalog);
/* chain(N) from the fields of the catalog (chain_before is chain(N-1)). */
struct hash128 catalog_chain(const struct catalog *catalog);

/* One chunk, opened. */
struct chunk_in {
    uint8_t kind; /* enum part_kind, known to this version */
    struct codec_in body;
};
/* The head every chunk begins with. level: that of what follows (feature_level.h). */
void chunk_begin(struct bytes_writer *writer, enum part_kind kind, uint8_t level);
/* The bytes of a finished chunk, or the end of the process for want of memory. */
struct part_chunk chunk_take(struct bytes_writer *writer);
/* Put the hash of all bytes so far at the end; and check and cut it off. */
void chunk_seal(struct bytes_writer *writer);
bool chunk_unseal(struct catalog_chunk_view *view);
/* Errors: ERR_CORRUPT, ERR_VERSION. */
int chunk_open(const struct catalog_chunk_view *view, struct chunk_in *ret_chunk,
               struct errmsg *err);

/* What the header says, without the parts. */
struct chunk_header {
    struct catalog fields; /* revision, ids, hashes and counters only */
    uint32_t n_chunks;     /* besides the header */
};
/* view: with its seal. False = damaged. */
bool chunk_read_header(struct codec_in *in, struct chunk_header *ret_header);

/* Each gives a part with one reference and no chunks, or NULL = damaged. */
struct part *chunk_read_settings(struct codec_in *in);
struct part *chunk_read_nodes(struct codec_in *in);
struct part *chunk_read_keys(struct codec_in *in);
struct part *chunk_read_listener(struct codec_in *in);

/* A group comes in pieces: `piece` 0 of n_pieces carries the group, each some of the backends. */
struct group_piece {
    char name[LIMIT_NAME_BYTES + 1];
    uint32_t piece;
    uint32_t n_pieces;
    struct codec_in body;           /* behind these fields */
    struct catalog_chunk_view view; /* the whole chunk */
};
bool chunk_read_piece(struct codec_in *in, struct group_piece *ret_piece);
/* pieces: all n_pieces of one group in order; read to their ends. */
struct part *chunk_read_group(struct group_piece pieces[], uint32_t n_pieces);

#endif
