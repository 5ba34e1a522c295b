/* The catalog's own codec: model objects as bytes, for commands (catalog_command.c) and for chunks
 * (catalog_chunks.c). Private to agent/core/catalog*.c.
 *
 * Little-endian, fixed width, strings and blocks with their length in front. An object is a block;
 * a later minor version, which is a feature level (feature_level.h), appends fields to blocks. From
 * minor 3 on such a field is written only when it is not what it was before there was one, and the
 * bytes carry the lowest minor that loses nothing: an object without new fields is the same bytes
 * to every version, and so are the hashes over them. A reader that is older than the bytes refuses
 * them; what is left of a block is damage. One value has one encoding, so encode(decode(x)) = x and
 * equal objects have equal bytes. Reading checks form only; validate.h checks meaning.
 *
 * Writing: a writer that fails stays failed (bytes.h). Reading: likewise, ask codec_done at the
 * end. What was read before a failure may be incomplete and must be dropped. */
#ifndef JURY_CORE_CATALOG_CODEC_H
#define JURY_CORE_CATALOG_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/bytes.h"
#include "common/model/cluster.h"
#include "common/model/group.h"
#include "common/model/listener.h"

#define CODEC_MAJOR 1
/* Minors: 1: hold, guard; 2: damping, slow return, shadow, alarm, whose change a revision is; then
 * as in feature_level.h. */

/* May this program read bytes of that version? */
bool codec_is_understood(uint8_t major, uint8_t minor);

/* --- framing --- */

/* Returns what codec_end wants. */
size_t codec_begin(struct bytes_writer *writer);
void codec_end(struct bytes_writer *writer, size_t begin);

struct codec_in {
    struct bytes_reader bytes;
    uint8_t minor; /* that it was written by: what came later is not in it */
};

/* The next block; an empty failed one when there is none. */
struct codec_in codec_open(struct codec_in *in);
/* Fails `in` when the block failed or has bytes left. */
void codec_shut(struct codec_in *in, const struct codec_in *block);
/* Nothing failed and nothing is left. */
bool codec_done(const struct codec_in *in);
/* The block has more: what level 3 brought, which is written only if it is used. */
bool codec_has_more(const struct codec_in *in);
/* 0 or 1; anything else fails. */
bool codec_read_bool(struct codec_in *in);
/* A count of at most `max`; more fails and reads as 0. */
uint32_t codec_read_count(struct codec_in *in, uint32_t max);

/* --- values --- */

void codec_write_endpoint(struct bytes_writer *writer, const struct endpoint *endpoint);
void codec_read_endpoint(struct codec_in *in, struct endpoint *ret_endpoint);
/* catalog_codec_check.c */
void codec_write_check(struct bytes_writer *writer, const struct health_check *check);
void codec_read_check(struct codec_in *in, struct health_check *ret_check);
/* One backend without what the catalog adds. */
void codec_write_backend(struct bytes_writer *writer, const struct backend *backend);
void codec_read_backend(struct codec_in *in, struct backend *ret_backend);
/* A group without its backends. What is read is given, also after a failure: server_group_close. */
void codec_write_group(struct bytes_writer *writer, const struct server_group *group);
void codec_read_group(struct codec_in *in, struct server_group *ret_group);

/* The last of a block: the committed level, written only above FEATURE_LEVEL_BASE. */
void codec_read_level(struct codec_in *in, uint8_t *ret_level);

void codec_write_listener(struct bytes_writer *writer, const struct listener *listener);
void codec_read_listener(struct codec_in *in, struct listener *ret_listener);
void codec_write_settings(struct bytes_writer *writer, const struct cluster_settings *settings);
void codec_read_settings(struct codec_in *in, struct cluster_settings *ret_settings);
void codec_write_node(struct bytes_writer *writer, const struct member_node *node);
void codec_read_node(struct codec_in *in, struct member_node *ret_node);
void codec_write_key(struct bytes_writer *writer, const struct access_key *key);
void codec_read_key(struct codec_in *in, struct access_key *ret_key);

#endif
