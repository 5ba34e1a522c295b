#include "common/base/prng.h"

#include <assert.h>

static uint64_t rotate_left(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

void prng_init(struct prng *prng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = seed;
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        prng->s[i] = z ^ z >> 31;
    }
}

uint64_t prng_next(struct prng *prng)
{
    uint64_t *s = prng->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t prng_below(struct prng *prng, uint64_t n)
{
    assert(n > 0);

    /* Numbers above the last whole multiple of n are thrown away. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t value;
    do {
        value = prng_next(prng);
    } while (value >= limit);
    return value % n;
}

int prng_chance(struct prng *prng, uint32_t per_million)
{
    return prng_below(prng, 1000000) < per_million;
}
