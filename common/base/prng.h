/* A seeded generator (xoshiro256**, Blackman and Vigna 2018; seeded by splitmix64). The same seed
 * gives the same numbers everywhere: simulations and phases depend on it. Never for keys. */
#ifndef JURY_BASE_PRNG_H
#define JURY_BASE_PRNG_H

#include <stdint.h>

struct prng {
    uint64_t s[4];
};

void prng_init(struct prng *prng, uint64_t seed);
uint64_t prng_next(struct prng *prng);
/* Uniform in [0, n); n > 0. Without bias. */
uint64_t prng_below(struct prng *prng, uint64_t n);
/* True with the probability of per_million in a million. */
int prng_chance(struct prng *prng, uint32_t per_million);

#endif
