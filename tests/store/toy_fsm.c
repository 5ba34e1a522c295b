#include "tests/store/toy_fsm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/bytes.h"

#define CHUNK_ENTRIES 10000
static const struct hash_key toy_key = {1, 2};

void toy_keys(uint64_t node_id, uint8_t public_key[32], uint8_t secret_key[32])
{
    uint8_t seed[16] = "test node";

    memcpy(seed + 8, &node_id, 8);
    crypto_generichash(secret_key, 32, seed, sizeof seed, NULL, 0);
    crypto_scalarmult_base(public_key, secret_key);
}

size_t toy_command(const uint64_t words[], size_t n_words, size_t padding_bytes, uint8_t *command)
{
    memcpy(command, words, n_words * 8);
    memset(command + n_words * 8, 0, padding_bytes);
    return n_words * 8 + padding_bytes;
}

static uint64_t word(const uint8_t *command, size_t n_bytes, size_t index)
{
    uint64_t value = 0;

    if ((index + 1) * 8 <= n_bytes) {
        memcpy(&value, command + index * 8, 8);
    }
    return value;
}

static void del_member(struct toy_fsm *toy, uint64_t node_id)
{
    for (uint32_t i = 0; i < toy->members.n_nodes; i++) {
        if (toy->members.nodes[i].node_id == node_id) {
            toy->members.n_nodes--;
            memmove(&toy->members.nodes[i], &toy->members.nodes[i + 1],
                    (toy->members.n_nodes - i) * sizeof toy->members.nodes[0]);
            return;
        }
    }
}

static void put_member(struct toy_fsm *toy, uint64_t node_id, uint64_t role, uint64_t port)
{
    uint8_t secret[32];
    struct member_node node;

    memset(&node, 0, sizeof node);
    node.node_id = node_id;
    node.role = (uint8_t)role;
    node.n_endpoints = 1;
    snprintf(node.endpoints[0].host, sizeof node.endpoints[0].host, "127.0.0.1");
    node.endpoints[0].raft_port = (uint16_t)port;
    toy_keys(node_id, node.key.bytes, secret);
    del_member(toy, node_id);
    toy->members.nodes[toy->members.n_nodes++] = node;
}

static int toy_understands(void *user, const uint8_t *command, size_t n_bytes, struct errmsg *err)
{
    (void)user;
    return word(command, n_bytes, 0) <= TOY_REFUSED
               ? 0
               : errmsg_set(err, ERR_VERSION, "no such toy command");
}

static bool toy_check(void *user, const uint8_t *command, size_t n_bytes, uint8_t **ret_answer,
                      size_t *ret_n_bytes)
{
    struct toy_fsm *toy = user;

    if (word(command, n_bytes, 0) != TOY_REFUSED) {
        return false;
    }
    *ret_answer = malloc(8);
    memcpy(*ret_answer, &toy->n_entries, 8);
    *ret_n_bytes = 8;
    return true;
}

static void push(struct toy_fsm *toy, uint64_t id)
{
    if (toy->n_entries == toy->capacity) {
        toy->capacity = toy->capacity == 0 ? 1024 : toy->capacity * 2;
        toy->entries = realloc(toy->entries, toy->capacity * sizeof *toy->entries);
        assert(toy->entries != NULL);
    }
    toy->entries[toy->n_entries++] = (struct toy_entry){.id = id, .hash = toy->hash.low};
}

static int toy_apply(void *user, const uint8_t *command, size_t n_bytes, uint8_t **ret_answer,
                     size_t *ret_n_bytes, struct errmsg *err)
{
    struct toy_fsm *toy = user;
    struct hash128 parts[2] = {toy->hash, hash_128(&toy_key, command, n_bytes)};

    (void)err;
    toy->hash = hash_128(&toy_key, parts, sizeof parts);
    push(toy, word(command, n_bytes, 0) == TOY_APPEND ? word(command, n_bytes, 1) : 0);
    switch (word(command, n_bytes, 0)) {
    case TOY_PUT_MEMBER:
        put_member(toy, word(command, n_bytes, 1), word(command, n_bytes, 2),
                   word(command, n_bytes, 3));
        break;
    case TOY_DEL_MEMBER:
        del_member(toy, word(command, n_bytes, 1));
        break;
    case TOY_INIT:
        for (size_t i = 0; i < word(command, n_bytes, 1); i++) {
            put_member(toy, word(command, n_bytes, 2 + 3 * i), word(command, n_bytes, 3 + 3 * i),
                       word(command, n_bytes, 4 + 3 * i));
        }
        break;
    default:
        break;
    }
    *ret_answer = malloc(8);
    memcpy(*ret_answer, &toy->n_entries, 8);
    *ret_n_bytes = 8;
    return 0;
}

static void toy_reset(void *user)
{
    struct toy_fsm *toy = user;

    toy->hash = (struct hash128){0};
    toy->n_entries = 0;
    toy->members.n_nodes = 0;
}

static size_t toy_n_chunks(void *user)
{
    struct toy_fsm *toy = user;

    return 2 + toy->n_entries / CHUNK_ENTRIES + 1;
}

/* Chunk 0: hash and members; 1: padding; the rest: entries. */
static struct store_chunk toy_chunk_at(void *user, size_t index)
{
    struct toy_fsm *toy = user;
    struct bytes_writer writer;
    struct store_chunk chunk;

    bytes_writer_init(&writer, 64u << 20);
    if (index == 0) {
        bytes_write_u64(&writer, toy->hash.low);
        bytes_write_u64(&writer, toy->hash.high);
        bytes_write_u64(&writer, toy->n_entries);
        bytes_write_u64(&writer, toy->members.n_nodes);
        bytes_write_copy(&writer, toy->members.nodes,
                         toy->members.n_nodes * sizeof toy->members.nodes[0]);
    } else if (index == 1) {
        for (uint32_t i = 0; i < toy->padding_bytes / 8; i++) {
            bytes_write_u64(&writer, i);
        }
    } else {
        size_t first = (index - 2) * CHUNK_ENTRIES;
        size_t left = toy->n_entries - first;

        bytes_write_copy(&writer, toy->entries + first,
                         (left < CHUNK_ENTRIES ? left : CHUNK_ENTRIES) * sizeof *toy->entries);
    }
    free(toy->chunk);
    toy->chunk = bytes_writer_take(&writer, &chunk.n_bytes);
    chunk.data = toy->chunk;
    return chunk;
}

static int toy_restore(void *user, const struct store_chunk chunks[], size_t n_chunks,
                       struct errmsg *err)
{
    struct toy_fsm *toy = user;
    struct bytes_reader reader;
    struct hash128 hash;

    if (n_chunks < 2) {
        return errmsg_set(err, ERR_CORRUPT, "toy snapshot has %zu chunks", n_chunks);
    }
    bytes_reader_init(&reader, chunks[0].data, chunks[0].n_bytes);
    hash.low = bytes_read_u64(&reader);
    hash.high = bytes_read_u64(&reader);
    uint64_t n_entries = bytes_read_u64(&reader);
    uint64_t n_nodes = bytes_read_u64(&reader);
    if (n_nodes > LIMIT_NODES) {
        return errmsg_set(err, ERR_CORRUPT, "toy snapshot is damaged");
    }
    toy_reset(toy);
    toy->members.n_nodes = (uint32_t)n_nodes;
    bytes_read_copy(&reader, toy->members.nodes, n_nodes * sizeof toy->members.nodes[0]);
    for (size_t i = 2; i < n_chunks; i++) {
        for (size_t k = 0; k < chunks[i].n_bytes / sizeof(struct toy_entry); k++) {
            struct toy_entry entry;

            memcpy(&entry, chunks[i].data + k * sizeof entry, sizeof entry);
            toy->hash.low = entry.hash;
            push(toy, entry.id);
        }
    }
    toy->hash = hash;
    return toy->n_entries == n_entries ? 0 : errmsg_set(err, ERR_CORRUPT, "toy snapshot is cut");
}

static uint64_t toy_revision(void *user)
{
    return ((struct toy_fsm *)user)->n_entries;
}

static struct hash128 toy_hash(void *user)
{
    return ((struct toy_fsm *)user)->hash;
}

static void toy_members(void *user, struct store_members *ret_members)
{
    const struct toy_fsm *toy = user;

    ret_members->n_nodes = toy->members.n_nodes;
    memcpy(ret_members->nodes, toy->members.nodes,
           toy->members.n_nodes * sizeof toy->members.nodes[0]);
}

struct toy_view {
    uint64_t n_entries;
};

static void *toy_publish(void *user)
{
    struct toy_fsm *toy = user;
    uint64_t *view = malloc(sizeof *view);

    *view = toy->n_entries;
    toy->n_published++;
    return view;
}

void toy_fsm_init(struct toy_fsm *toy)
{
    memset(toy, 0, sizeof *toy);
    toy->fsm = (struct store_fsm){.user = toy,
                                  .understands = toy_understands,
                                  .check = toy_check,
                                  .apply = toy_apply,
                                  .reset = toy_reset,
                                  .n_chunks = toy_n_chunks,
                                  .chunk_at = toy_chunk_at,
                                  .restore = toy_restore,
                                  .revision = toy_revision,
                                  .state_hash = toy_hash,
                                  .members = toy_members,
                                  .publish = toy_publish,
                                  .unpublish = free};
}

void toy_fsm_close(struct toy_fsm *toy)
{
    free(toy->entries);
    free(toy->chunk);
}
