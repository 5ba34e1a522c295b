#include "agent/core/share.h"

#include "common/base/plant.h"

/* Stafford's variant 13 of the finalizer of MurmurHash3, as in SplitMix64: every bit of the input
 * moves half of the output. It need not withstand anybody: node ids and births are the cluster's.
 */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t mix_target(struct target_id target)
{
    return mix(target.birth * UINT64_C(0x9e3779b97f4a7c15) + target.slot);
}

static uint64_t weight_of(uint64_t node_id, uint64_t target)
{
    return mix(target ^ mix(node_id * UINT64_C(0x9e3779b97f4a7c15)));
}

static bool ranks_above(const struct observers *observers, const uint64_t weights[], uint32_t a,
                        uint32_t b)
{
    return weights[a] != weights[b] ? weights[a] > weights[b]
                                    : observers->members[a].node_id < observers->members[b].node_id;
}

uint64_t share_assigned(const struct observers *observers, struct target_id target,
                        unsigned n_probers)
{
    uint64_t weights[LIMIT_NODES];
    uint64_t key = mix_target(target);
    uint64_t assigned = 0;

    if (n_probers == 0 || n_probers >= observers_n(observers)) {
        return observers->counting;
    }
    for (uint64_t left = observers->counting; left != 0; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);

        weights[i] = weight_of(observers->members[i].node_id, key);
    }
    for (unsigned n = 0; n < n_probers; n++) {
        uint64_t rest = observers->counting & ~assigned;
        uint32_t best = (uint32_t)__builtin_ctzll(rest);

        for (uint64_t left = rest & (rest - 1); left != 0; left &= left - 1) {
            uint32_t i = (uint32_t)__builtin_ctzll(left);

            best = ranks_above(observers, weights, i, best) ? i : best;
        }
        assigned |= UINT64_C(1) << best;
    }
    return assigned;
}

unsigned share_rank(const struct observers *observers, struct target_id target)
{
    uint64_t weights[LIMIT_NODES];
    uint64_t key = mix_target(target);
    uint64_t own_bit = observers_self_bit(observers);
    unsigned rank = 0;

    if (own_bit == 0) {
        return observers_n(observers);
    }
    uint32_t own = (uint32_t)__builtin_ctzll(own_bit);
    weights[own] = weight_of(observers->self_id, key);
    for (uint64_t left = observers->counting & ~own_bit; left != 0; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);

        weights[i] = weight_of(observers->members[i].node_id, key);
        rank += ranks_above(observers, weights, i, own);
    }
    return rank;
}

uint64_t share_phase_ns(struct target_id target, unsigned rank, unsigned n_probers,
                        unsigned n_observers, uint64_t interval_ns)
{
    unsigned k = n_probers == 0 || n_probers > n_observers ? n_observers : n_probers;
    uint64_t first_ns = mix_target(target) % interval_ns;

    if (k == 0 || plant_is("share-no-stagger")) {
        return first_ns;
    }
    unsigned n_between = (n_observers + k - 1) / k; /* places between two of the assigned */
    uint64_t place = (uint64_t)(rank % k) * n_between + rank / k;
    return (first_ns + interval_ns * place / ((uint64_t)k * n_between)) % interval_ns;
}

uint32_t share_calm_ms(const struct health_check *check)
{
    return (uint32_t)check_success_window_ms(check, check->timeout_ms);
}

uint32_t share_grace_ms(const struct health_check *check)
{
    uint64_t failure_ms = check_failure_window_ms(check);
    uint64_t success_ms = check_success_window_ms(check, check->timeout_ms);

    return (uint32_t)(check->interval_ms + (failure_ms > success_ms ? failure_ms : success_ms));
}
