#include "common/base/hash.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate_left(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

static uint64_t load_little(const uint8_t *at, size_t n_bytes)
{
    uint64_t value = 0;

    for (size_t i = n_bytes; i > 0; i--) {
        value = value << 8 | at[i - 1];
    }
    return value;
}

static void absorb(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    sip_round(s);
    s->v0 ^= word;
}

static uint64_t squeeze(struct sip *s, uint64_t tag)
{
    s->v2 ^= tag;
    for (int i = 0; i < 4; i++) {
        sip_round(s);
    }
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static void sip_start(struct sip *s, const struct hash_key *key, const uint8_t *at, size_t n_bytes)
{
    size_t left = n_bytes;

    s->v0 = UINT64_C(0x736f6d6570736575) ^ key->k0;
    s->v2 = UINT64_C(0x6c7967656e657261) ^ key->k0;
    s->v3 = UINT64_C(0x7465646279746573) ^ key->k1;
    for (; left >= 8; left -= 8, at += 8) {
        absorb(s, load_little(at, 8));
    }
    absorb(s, (uint64_t)n_bytes << 56 | load_little(at, left));
}

uint64_t hash_64(const struct hash_key *key, const void *data, size_t n_bytes)
{
    struct sip s = {.v1 = UINT64_C(0x646f72616e646f6d) ^ key->k1};

    sip_start(&s, key, data, n_bytes);
    return squeeze(&s, 0xff);
}

struct hash128 hash_128(const struct hash_key *key, const void *data, size_t n_bytes)
{
    struct sip s = {.v1 = UINT64_C(0x646f72616e646f6d) ^ key->k1 ^ 0xee};
    struct hash128 result;

    sip_start(&s, key, data, n_bytes);
    result.low = squeeze(&s, 0xee);
    s.v1 ^= 0xdd;
    result.high = squeeze(&s, 0);
    return result;
}

uint32_t hash_crc32c(uint32_t crc, const void *data, size_t n_bytes)
{
    /* What four bits do to the remainder; a layout of 27 MB at the planned size is checked by every
     * data plane, and bit by bit that takes half a second. */
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const uint8_t *at = data;

    crc = ~crc;
    for (size_t i = 0; i < n_bytes; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}
