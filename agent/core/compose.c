#include "agent/core/compose.h"

#include <assert.h>

#include "common/base/plant.h"

static enum opinion decide(unsigned n, unsigned k, unsigned n_pass, unsigned n_fail)
{
    if (plant_is("compose-any-fails") && n_fail > 0) {
        return OPINION_FAIL;
    }
    if (n - n_fail < k) {
        return OPINION_FAIL;
    }
    if (n_pass >= k) {
        return OPINION_PASS;
    }
    if (plant_is("compose-silence-fails")) {
        return OPINION_FAIL;
    }
    return OPINION_NONE;
}

struct composed compose(const uint8_t opinions[], unsigned n, unsigned k,
                        const struct composed *before)
{
    struct composed composed = {.part = COMPOSE_NO_PART};
    unsigned n_by_opinion[OPINION_FAIL + 1] = {0};

    assert(n >= 1 && n <= LIMIT_CHECKS);
    assert(k >= 1 && k <= n);
    for (unsigned i = 0; i < n; i++) {
        assert(opinions[i] <= OPINION_FAIL);
        n_by_opinion[opinions[i]]++;
    }
    composed.opinion =
        (uint8_t)decide(n, k, n_by_opinion[OPINION_PASS], n_by_opinion[OPINION_FAIL]);
    if (composed.opinion == OPINION_NONE) {
        return composed;
    }
    if (before->opinion == composed.opinion && before->part != COMPOSE_NO_PART &&
        opinions[before->part - 1] == composed.opinion) {
        composed.part = before->part;
        return composed;
    }
    for (unsigned i = n; i-- > 0;) {
        if (opinions[i] == composed.opinion) {
            composed.part = (uint8_t)(i + 1);
        }
    }
    return composed;
}
