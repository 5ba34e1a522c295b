/* Who a data directory is: cluster, node, incarnation and key in one small text file, and the start
 * counter beside it.
 *
 * The incarnation is a random number that is made with the directory and never again. It is the
 * tail of the node's Raft address ("node-3-<16 hex digits>"), so Raft's own committed membership
 * binds id and incarnation: a node whose directory was lost has no incarnation or another one, and
 * its messages are dropped by everybody who knows the binding. It can only come back under a new id
 * (R-BOOT-1: its vote of the present term is forgotten). */
#ifndef JURY_STORE_IDENTITY_H
#define JURY_STORE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/model/cluster.h"

struct identity {
    struct cluster_id cluster_id;
    uint64_t node_id;
    uint64_t incarnation; /* > 0 */
    struct public_key key;
};

#define IDENTITY_TEXT_BYTES 512
#define RAFT_ADDRESS_BYTES 48

/* A random one from the system; never 0. */
uint64_t identity_new_incarnation(void);

/* The text of the file. Returns its length. */
size_t identity_format(const struct identity *identity, char text[IDENTITY_TEXT_BYTES]);
/* text: n_bytes, need not end in NUL. Errors: ERR_CORRUPT (checksum, shape), ERR_VERSION. */
int identity_parse(const char *text, size_t n_bytes, struct identity *ret_identity,
                   struct errmsg *err);

/* "node-3-00c0ffee00c0ffee". Returns text. */
char *raft_address_format(uint64_t node_id, uint64_t incarnation, char text[RAFT_ADDRESS_BYTES]);
/* False for anything that raft_address_format did not write. */
bool raft_address_parse(const char *text, uint64_t *ret_node_id, uint64_t *ret_incarnation);

/* The start counter: two slots of one block each in a file of fixed size that is overwritten in
 * place, so that a full disk does not stop it and a torn write leaves the other slot. */
#define EPOCH_SLOT_BYTES 512
#define EPOCH_FILE_BYTES (2 * EPOCH_SLOT_BYTES)

/* A file with the counter at 0: the directory has never spoken. */
void epoch_format_new(uint8_t file[EPOCH_FILE_BYTES]);
struct epoch_found {
    uint64_t newest; /* of the whole slots */
    /* The other slot is neither whole nor blank: newest + 1 may have been used. */
    bool is_incomplete;
};
/* Errors: ERR_CORRUPT (no slot is whole). */
int epoch_parse(const uint8_t file[EPOCH_FILE_BYTES], struct epoch_found *ret_found,
                struct errmsg *err);
/* The epoch to go on with: above all that may have been used and above `above`, and in the slot
 * that does not hold the newest. */
uint64_t epoch_after(const struct epoch_found *found, uint64_t above);
/* The slot to write for `epoch` and where it goes in the file. Returns the offset in bytes. */
size_t epoch_format_slot(uint64_t epoch, uint8_t slot[EPOCH_SLOT_BYTES]);

#endif
