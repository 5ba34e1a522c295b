/* The state machine behind the store, as a small table of functions: the catalog in the product
 * (fsm_catalog.h), a toy in tests. Everything runs on the store thread, and nothing here reads a
 * clock, an option or a random number, so that all nodes come to the same bytes (I-4). */
#ifndef JURY_STORE_FSM_H
#define JURY_STORE_FSM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/limits.h"
#include "common/model/cluster.h"

struct store_chunk {
    const uint8_t *data;
    size_t n_bytes;
};

/* The members that the state names; Raft's own membership follows it (store.h). */
struct store_members {
    struct member_node nodes[LIMIT_NODES];
    uint32_t n_nodes;
};

struct store_fsm {
    void *user;

    /* Can every member of this version apply the command at all? Asked before anything else, so
     * that a command of a newer program never gets into the log. Errors: with a sentence. */
    int (*understands)(void *user, const uint8_t *command, size_t n_bytes, struct errmsg *err);
    /* What apply would answer now, with nothing changed. Runs on the leader before a command goes
     * into the log. Returns true when the command is refused (or known already): *ret_answer is
     * then the final answer and nothing is proposed. false: propose it, *ret_answer is untouched.
     */
    bool (*check)(void *user, const uint8_t *command, size_t n_bytes, uint8_t **ret_answer,
                  size_t *ret_n_bytes);
    /* Apply one committed command. *ret_answer: given, free(); may be NULL with 0 bytes.
     * Errors: only for a command that this program cannot understand at all (an unknown major
     * version): the node stops with exit code 11, since skipping it would make it differ for ever.
     */
    int (*apply)(void *user, const uint8_t *command, size_t n_bytes, uint8_t **ret_answer,
                 size_t *ret_n_bytes, struct errmsg *err);

    /* Back to the empty state, revision 0: before the log is read (again). */
    void (*reset)(void *user);
    /* The state as encoded chunks, each at most LIMIT_CHUNK_BYTES: n_chunks fixes them, a view
     * is valid until the next call of any function here. They are kept encoded by the state
     * itself (raft-022.md rule 17), so this copies and does not encode. */
    size_t (*n_chunks)(void *user);
    struct store_chunk (*chunk_at)(void *user, size_t index);
    /* Replace the state. On failure it is unchanged. */
    int (*restore)(void *user, const struct store_chunk chunks[], size_t n_chunks,
                   struct errmsg *err);

    uint64_t (*revision)(void *user); /* 0 before the first command */
    struct hash128 (*state_hash)(void *user);
    void (*members)(void *user, struct store_members *ret_members);

    /* The newest state for other threads: one reference of an immutable value is given. unpublish
     * releases one, on any thread. publish NULL: nothing is handed over. */
    void *(*publish)(void *user);
    void (*unpublish)(void *value);
};

#endif
