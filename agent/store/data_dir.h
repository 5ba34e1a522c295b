/* The data directory and how it comes to be.
 *
 *   LOCK            held by the running agent
 *   lkg, lkg.old    last-known-good (lkg.h)
 *   store/          everything that was made together, by one `cluster init` or admission:
 *     identity      who this is (identity.h)
 *     epoch         start counter
 *     members       the newest list of members, a hint: whom to dial before anything is committed
 *     init          the first command; only on the node that was asked to make the cluster, until
 *                   more than half of the first members hold it
 *     restored      only if peers knew more of this directory than it does: why (store_restored.c)
 *     raft/         raft_uv's own
 *     complete      marker, written last
 *
 * `store` is built as `store.new`, synced, renamed and then marked (R-RAFT-7). What a kill leaves
 * behind is removed at the next start: `store.new` always, an unmarked `store` if its epoch is
 * still 0, since such a directory has never voted. An unmarked one that has spoken is not touched:
 * that is damage and needs an operator. */
#ifndef JURY_STORE_DATA_DIR_H
#define JURY_STORE_DATA_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/store/files.h"
#include "agent/store/identity.h"
#include "common/base/err.h"

struct data_dir {
    char path[FILES_PATH_BYTES];
    char store[FILES_PATH_BYTES];
    char raft[FILES_PATH_BYTES];
    int lock_fd; /* -1 = not held */
};

/* What the agent's own configuration says about itself. */
struct data_dir_owner {
    uint64_t node_id; /* 0 = any */
    struct public_key key;
    bool allow_tmpfs;
};

enum data_dir_state {
    DATA_DIR_NONE = 0,
    DATA_DIR_EMPTY,
    DATA_DIR_READY
};

/* Errors: ERR_CONFIG (path too long). No disk access. */
int data_dir_init(struct data_dir *dir, const char *path, struct errmsg *err);
void data_dir_close(struct data_dir *dir); /* gives the lock back */

/* Read only: is this a directory that this agent could use? Errors: ERR_CONFIG with a sentence
 * (not there, not a directory, not writable and never used, in memory, of another key or node, in
 * use by another agent), ERR_CORRUPT, ERR_VERSION; ERR_IO, ERR_DENIED: one that was used is not
 * writable now. */
int data_dir_check(const struct data_dir *dir, const struct data_dir_owner *owner,
                   struct errmsg *err);

/* Take the lock, check, remove leftovers. ret_identity: only when READY. Errors: as
 * data_dir_check, and those of the disk. */
int data_dir_open(struct data_dir *dir, const struct data_dir_owner *owner,
                  enum data_dir_state *ret_state, struct identity *ret_identity,
                  struct errmsg *err);

/* Make `store`. command: of the `init` file, NULL = this node is admitted and gets its log from
 * the leader. bootstrap: fills raft/ of a first member, called when there is a command. The
 * directory must be open and EMPTY. A failure leaves it EMPTY (a kill: see above). */
struct data_dir_first {
    const uint8_t *command;
    size_t n_command_bytes;
    int (*bootstrap)(void *user, const char *raft_dir, const struct identity *identity,
                     struct errmsg *err);
    void *user;
};
int data_dir_make(struct data_dir *dir, const struct identity *identity,
                  const struct data_dir_first *first, struct errmsg *err);

/* Raise the start counter above itself and above `above`, and make it durable. ret_was_damaged: a
 * slot of its file was not whole, and what it may have held was skipped. */
int data_dir_raise_epoch(const struct data_dir *dir, uint64_t above, uint64_t *ret_epoch,
                         bool *ret_was_damaged, struct errmsg *err);

/* The `restored` file: once it is there, Raft never opens this directory again (store_restored.c).
 * Marking: durable when it returns 0; again is fine. Reading: ERR_NOTFOUND; ret_reason: the
 * sentence that it was marked with. */
int data_dir_mark_restored(const struct data_dir *dir, const char *reason, struct errmsg *err);
int data_dir_read_restored(const struct data_dir *dir, struct errmsg *ret_reason);

/* The `init` file: ERR_NOTFOUND when the cluster is made, or was made by another node. ret_command:
 * given, free(). */
int data_dir_read_init(const struct data_dir *dir, uint8_t **ret_command, size_t *ret_n_bytes,
                       struct errmsg *err);
int data_dir_drop_init(const struct data_dir *dir, struct errmsg *err);

/* The `members` file: replaced whole. Errors: ERR_FULL, ERR_IO; the old one is then still there.
 * Reading: ERR_NOTFOUND, ERR_CORRUPT. ret_data: given, free(). */
int data_dir_write_members(const struct data_dir *dir, const uint8_t *data, size_t n_bytes,
                           struct errmsg *err);
int data_dir_read_members(const struct data_dir *dir, uint8_t **ret_data, size_t *ret_n_bytes,
                          struct errmsg *err);

/* Of an open one: what lies at its path now is not what was opened, or nothing lies there. What
 * cannot be seen (a broken disk) is not gone. */
bool data_dir_is_gone(const struct data_dir *dir);

/* Bytes that this user may still write. Errors: ERR_IO. */
int data_dir_free_bytes(const struct data_dir *dir, uint64_t *ret_bytes);

#endif
