/* SipHash-2-4 with 64 and 128 bit results (Aumasson, Bernstein, "SipHash: a fast short-input PRF",
 * INDOCRYPT 2012). Keyed, so that a client cannot choose 5-tuples that collide; and the base of the
 * catalog's state hash, where core may not call a library. Not a signature: everything between
 * nodes is authenticated by CURVE. */
#ifndef JURY_BASE_HASH_H
#define JURY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
    uint64_t k0;
    uint64_t k1;
};

struct hash128 {
    uint64_t low;
    uint64_t high;
};

uint64_t hash_64(const struct hash_key *key, const void *data, size_t n_bytes);
struct hash128 hash_128(const struct hash_key *key, const void *data, size_t n_bytes);

/* CRC-32C (Castagnoli), for damage and not for attackers. crc: 0 at the start, the last result to
 * go on. */
uint32_t hash_crc32c(uint32_t crc, const void *data, size_t n_bytes);

#endif
