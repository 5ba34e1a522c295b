#include "agent/store/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/bytes.h"
#include "common/base/hash.h"
#include "common/base/plant.h"
#include "common/base/str.h"

#define IDENTITY_MAJOR 1
#define EPOCH_MAGIC UINT32_C(0x4f50454a) /* "JEPO" */
#define EPOCH_VERSION 1

uint64_t identity_new_incarnation(void)
{
    uint64_t value = 0;

    while (value == 0) {
        randombytes_buf(&value, sizeof value);
    }
    return value;
}

size_t identity_format(const struct identity *identity, char text[IDENTITY_TEXT_BYTES])
{
    char cluster[2 * CLUSTER_ID_BYTES + 1];
    char key[2 * PUBLIC_KEY_BYTES + 1];

    str_hex(identity->cluster_id.bytes, CLUSTER_ID_BYTES, cluster);
    str_hex(identity->key.bytes, PUBLIC_KEY_BYTES, key);
    int n = snprintf(text, IDENTITY_TEXT_BYTES,
                     "jury-identity %d\ncluster %s\nnode %" PRIu64 "\nincarnation %016" PRIx64
                     "\nkey %s\n",
                     IDENTITY_MAJOR, cluster, identity->node_id, identity->incarnation, key);
    uint32_t crc = hash_crc32c(0, text, (size_t)n);
    n += snprintf(text + n, IDENTITY_TEXT_BYTES - (size_t)n, "crc32c %08" PRIx32 "\n", crc);
    return (size_t)n;
}

/* The value after "word " on the next line, into value; advances *at behind the line. */
static bool next_value(char **at, const char *word, const char **ret_value)
{
    char *end = strchr(*at, '\n');
    size_t n_word = strlen(word);

    if (end == NULL || strncmp(*at, word, n_word) != 0 || (*at)[n_word] != ' ') {
        return false;
    }
    *end = '\0';
    *ret_value = *at + n_word + 1;
    *at = end + 1;
    return true;
}

static bool parse_hex_u64(const char *text, uint64_t *ret_value)
{
    uint8_t bytes[8];

    if (!str_unhex(text, bytes, sizeof bytes)) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        value = value << 8 | bytes[i];
    }
    *ret_value = value;
    return true;
}

static bool check_crc(char *text, size_t n_bytes)
{
    char *line = strstr(text, "\ncrc32c ");
    char expected[2 * 4 + 1];

    if (line == NULL || (size_t)(line + 1 - text) + sizeof "crc32c 00000000\n" - 1 != n_bytes ||
        text[n_bytes - 1] != '\n') {
        return false;
    }
    line++;
    snprintf(expected, sizeof expected, "%08" PRIx32, hash_crc32c(0, text, (size_t)(line - text)));
    return strncmp(line + strlen("crc32c "), expected, 8) == 0;
}

int identity_parse(const char *text, size_t n_bytes, struct identity *ret_identity,
                   struct errmsg *err)
{
    char copy[IDENTITY_TEXT_BYTES + 1];
    struct identity identity;
    const char *version, *cluster, *node, *incarnation, *key;
    char *at = copy;

    if (n_bytes > IDENTITY_TEXT_BYTES || memchr(text, '\0', n_bytes) != NULL) {
        return errmsg_set(err, ERR_CORRUPT, "identity file: it is not one of this program's");
    }
    memcpy(copy, text, n_bytes);
    copy[n_bytes] = '\0';
    bool is_whole = check_crc(copy, n_bytes);
    if (!next_value(&at, "jury-identity", &version)) {
        return errmsg_set(err, ERR_CORRUPT, "identity file: it is not one of this program's");
    }
    if (strcmp(version, "1") != 0) {
        return errmsg_set(err, ERR_VERSION,
                          "identity file: version %.16s is not understood, this program reads 1",
                          version);
    }
    if (!is_whole || !next_value(&at, "cluster", &cluster) || !next_value(&at, "node", &node) ||
        !next_value(&at, "incarnation", &incarnation) || !next_value(&at, "key", &key) ||
        !str_unhex(cluster, identity.cluster_id.bytes, CLUSTER_ID_BYTES) ||
        !str_parse_u64(node, UINT64_MAX, &identity.node_id) || identity.node_id == 0 ||
        !parse_hex_u64(incarnation, &identity.incarnation) || identity.incarnation == 0 ||
        !str_unhex(key, identity.key.bytes, PUBLIC_KEY_BYTES)) {
        return errmsg_set(err, ERR_CORRUPT, "identity file: damaged (checksum or shape)");
    }
    *ret_identity = identity;
    return 0;
}

char *raft_address_format(uint64_t node_id, uint64_t incarnation, char text[RAFT_ADDRESS_BYTES])
{
    snprintf(text, RAFT_ADDRESS_BYTES, "node-%" PRIu64 "-%016" PRIx64, node_id, incarnation);
    return text;
}

bool raft_address_parse(const char *text, uint64_t *ret_node_id, uint64_t *ret_incarnation)
{
    char again[RAFT_ADDRESS_BYTES];
    char id[24];
    uint64_t node_id, incarnation;

    if (strncmp(text, "node-", 5) != 0) {
        return false;
    }
    const char *dash = strchr(text + 5, '-');
    if (dash == NULL || (size_t)(dash - text - 5) >= sizeof id) {
        return false;
    }
    memcpy(id, text + 5, (size_t)(dash - text - 5));
    id[dash - text - 5] = '\0';
    if (!str_parse_u64(id, UINT64_MAX, &node_id) || !parse_hex_u64(dash + 1, &incarnation) ||
        strcmp(raft_address_format(node_id, incarnation, again), text) != 0) {
        return false;
    }
    *ret_node_id = node_id;
    *ret_incarnation = incarnation;
    return true;
}

static void store_little(uint8_t *at, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

size_t epoch_format_slot(uint64_t epoch, uint8_t slot[EPOCH_SLOT_BYTES])
{
    memset(slot, 0, EPOCH_SLOT_BYTES);
    store_little(slot, EPOCH_MAGIC, 4);
    store_little(slot + 4, EPOCH_VERSION, 4);
    store_little(slot + 8, epoch, 8);
    store_little(slot + 16, hash_crc32c(0, slot, 16), 4);
    return (size_t)(epoch % 2) * EPOCH_SLOT_BYTES;
}

void epoch_format_new(uint8_t file[EPOCH_FILE_BYTES])
{
    /* The second slot holds no epoch yet; it is whole when epoch 1 has been written. */
    memset(file, 0, EPOCH_FILE_BYTES);
    epoch_format_slot(0, file);
}

static bool read_slot(const uint8_t slot[EPOCH_SLOT_BYTES], size_t index, uint64_t *ret_epoch)
{
    struct bytes_reader reader;

    bytes_reader_init(&reader, slot, EPOCH_SLOT_BYTES);
    uint32_t magic = bytes_read_u32(&reader);
    uint32_t version = bytes_read_u32(&reader);
    *ret_epoch = bytes_read_u64(&reader);
    uint32_t crc = bytes_read_u32(&reader);
    return magic == EPOCH_MAGIC && version == EPOCH_VERSION && *ret_epoch % 2 == index &&
           crc == hash_crc32c(0, slot, 16);
}

static bool is_blank(const uint8_t slot[EPOCH_SLOT_BYTES])
{
    static const uint8_t blank[EPOCH_SLOT_BYTES];

    return memcmp(slot, blank, sizeof blank) == 0;
}

int epoch_parse(const uint8_t file[EPOCH_FILE_BYTES], struct epoch_found *ret_found,
                struct errmsg *err)
{
    uint64_t epochs[2];
    bool are_whole[2];

    for (size_t i = 0; i < 2; i++) {
        are_whole[i] = read_slot(file + i * EPOCH_SLOT_BYTES, i, &epochs[i]);
    }
    if (!are_whole[0] && !are_whole[1]) {
        return errmsg_set(err, ERR_CORRUPT, "epoch file: no slot of it is whole");
    }
    size_t newest = !are_whole[0] || (are_whole[1] && epochs[1] > epochs[0]) ? 1 : 0;
    size_t other = 1 - newest;
    /* Only the file of a directory that never spoke has a slot that was never written. */
    bool is_fresh = epochs[newest] == 0 && is_blank(file + other * EPOCH_SLOT_BYTES);
    *ret_found = (struct epoch_found){.newest = epochs[newest],
                                      .is_incomplete = !are_whole[other] && !is_fresh};
    return 0;
}

uint64_t epoch_after(const struct epoch_found *found, uint64_t above)
{
    uint64_t epoch = found->newest + 1;

    /* The slot that is lost may have held newest + 1, in use or just being written. */
    if (found->is_incomplete && !plant_is("epoch-slot-lost")) {
        epoch += 2;
    }
    if (epoch <= above) {
        epoch = above + 1;
    }
    return epoch % 2 == found->newest % 2 ? epoch + 1 : epoch;
}
