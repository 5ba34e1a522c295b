/* A state machine for tests of the store: a list of numbers with a hash chained over it, and the
 * members of the cluster. Commands are 8-byte words. */
#ifndef JURY_TESTS_STORE_TOY_FSM_H
#define JURY_TESTS_STORE_TOY_FSM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/store/fsm.h"
#include "common/base/hash.h"

enum toy_kind {
    TOY_APPEND = 1,     /* id, then padding of any length */
    TOY_PUT_MEMBER = 2, /* node id, role, port */
    TOY_DEL_MEMBER = 3, /* node id */
    TOY_INIT = 4,       /* n, then n times node id, role, port */
    TOY_REFUSED = 5     /* check refuses it */
};

struct toy_entry {
    uint64_t id; /* 0 for commands without one */
    uint64_t hash;
};

struct toy_fsm {
    struct store_fsm fsm;
    struct hash128 hash;
    struct toy_entry *entries; /* revision 1 first */
    size_t n_entries;
    size_t capacity;
    struct store_members members;
    uint8_t *chunk;         /* the newest one handed out */
    uint32_t padding_bytes; /* makes snapshots large */
    uint64_t n_published;
};

void toy_fsm_init(struct toy_fsm *toy);
void toy_fsm_close(struct toy_fsm *toy);

/* Keys of test nodes follow from their ids, so nobody has to exchange them. */
void toy_keys(uint64_t node_id, uint8_t public_key[32], uint8_t secret_key[32]);

/* words: copied into a command of n_words * 8 bytes plus padding_bytes (a multiple of 8). */
size_t toy_command(const uint64_t words[], size_t n_words, size_t padding_bytes, uint8_t *command);

#endif
