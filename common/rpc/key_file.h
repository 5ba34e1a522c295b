/* Key pairs of nodes, people and programs, and the file that holds one.
 *
 * A text file, the same for all:
 *     jury-key 1
 *     public 64 hex digits
 *     secret 64 hex digits
 * Empty lines and lines that begin with # are skipped. The file must be a regular one and readable
 * by its owner alone (0600 or less); a file without the secret line holds a public key only and may
 * have any mode. Secrets live in guarded memory (sodium_malloc) and never in an error sentence. */
#ifndef JURY_RPC_KEY_FILE_H
#define JURY_RPC_KEY_FILE_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/model/cluster.h"

#define SECRET_KEY_BYTES 32
#define PUBLIC_KEY_TEXT_BYTES 65 /* 64 hex digits and NUL */

struct key_pair {
    struct public_key public_key;
    uint8_t *secret; /* SECRET_KEY_BYTES, owned */
};

/* Allowed on a zeroed one. */
void key_pair_close(struct key_pair *pair);
/* A new random pair. Errors: ERR_NOMEM (locked memory), ERR_INTERNAL (no randomness). */
int key_pair_generate(struct key_pair *ret_pair, struct errmsg *err);

/* Make the file, 0600; an existing one is never overwritten. Errors: ERR_EXISTS, ERR_IO, ... */
int key_file_write(const char *path, const struct key_pair *pair, struct errmsg *err);
/* ERR_CONFIG: not there, not readable, readable by others, not a key file, only a public key, or
 * the halves do not belong together. */
int key_file_read(const char *path, struct key_pair *ret_pair, struct errmsg *err);
/* The public key of either kind of file; the mode does not matter. */
int key_file_read_public(const char *path, struct public_key *ret_key, struct errmsg *err);

/* 64 lower-case hex digits. Returns text. */
char *public_key_format(const struct public_key *key, char text[PUBLIC_KEY_TEXT_BYTES]);
/* 64 hex digits, or the 40 characters of Z85 that ZeroMQ's own tools print. what: begins the
 * sentence. ERR_INVALID. */
int public_key_parse(const char *text, const char *what, struct public_key *ret_key,
                     struct errmsg *err);

#endif
