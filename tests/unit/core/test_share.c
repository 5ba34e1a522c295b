/* Who probes a target that the observers share, and when (N7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/core/share.h"
#include "common/base/limits.h"

#define MS UINT64_C(1000000)
#define TARGETS 2000

/* Nodes 1..n; where each is filed differs from node to node. */
static struct observers observers_of(unsigned n, uint64_t self_id, unsigned shift)
{
    struct observers observers;

    observers_init(&observers, self_id);
    for (unsigned i = 0; i < n; i++) {
        unsigned index = (i * 7 + shift) % LIMIT_NODES;

        observers.members[index] =
            (struct observer){.node_id = i + 1, .is_observer = true, .counts = true};
        observers.counting |= UINT64_C(1) << index;
    }
    return observers;
}

/* Bit (node id - 1). */
static uint64_t ids_of(const struct observers *observers, uint64_t members)
{
    uint64_t ids = 0;

    for (; members != 0; members &= members - 1) {
        ids |= UINT64_C(1) << (observers->members[__builtin_ctzll(members)].node_id - 1);
    }
    return ids;
}

static struct target_id target_at(unsigned i)
{
    return (struct target_id){.slot = i, .birth = 2 + i / 100};
}

static void each_node_works_out_the_same_k(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= LIMIT_NODES; n++) {
        struct observers a = observers_of(n, 1, 0);
        struct observers b = observers_of(n, n, 31);

        for (unsigned i = 0; i < 50; i++) {
            for (unsigned k = 0; k <= 5; k++) {
                uint64_t assigned = ids_of(&a, share_assigned(&a, target_at(i), k));
                unsigned wanted = k == 0 || k > n ? n : k;

                assert_int_equal(__builtin_popcountll(assigned), wanted);
                assert_true(assigned == ids_of(&b, share_assigned(&b, target_at(i), k)));
            }
        }
    }
}

static void ranks_are_those_of_the_assignment(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t seen = 0;

        for (uint64_t id = 1; id <= 9; id++) {
            struct observers o = observers_of(9, id, (unsigned)id);
            unsigned rank = share_rank(&o, target_at(i));
            uint64_t own = observers_self_bit(&o);

            seen |= UINT64_C(1) << rank;
            assert_int_equal(rank < 3, (share_assigned(&o, target_at(i), 3) & own) != 0);
        }
        assert_true(seen == (UINT64_C(1) << 9) - 1);
    }
    struct observers o = observers_of(9, 10, 0);
    assert_int_equal(share_rank(&o, target_at(0)), 9); /* not in n */
}

static void many_targets_are_shared_evenly(void **state)
{
    (void)state;
    struct observers o = observers_of(16, 1, 0);
    unsigned n_of[LIMIT_NODES] = {0};

    for (unsigned i = 0; i < TARGETS; i++) {
        for (uint64_t left = ids_of(&o, share_assigned(&o, target_at(i), 3)); left != 0;
             left &= left - 1) {
            n_of[__builtin_ctzll(left)]++;
        }
    }
    for (unsigned id = 0; id < 16; id++) { /* 375 each; 5 standard deviations are 87 */
        assert_in_range(n_of[id], 375 - 87, 375 + 87);
    }
}

static void a_new_node_changes_few_assignments_each_by_one(void **state)
{
    (void)state;
    struct observers before = observers_of(15, 1, 0);
    struct observers after = observers_of(16, 1, 0);
    unsigned n_changed = 0;

    for (unsigned i = 0; i < TARGETS; i++) {
        uint64_t a = ids_of(&before, share_assigned(&before, target_at(i), 3));
        uint64_t b = ids_of(&after, share_assigned(&after, target_at(i), 3));

        n_changed += a != b;
        assert_true(a == b || (__builtin_popcountll(a & b) == 2 && (b >> 15 & 1) != 0));
    }
    assert_in_range(n_changed, TARGETS * 3 / 16 - 87, TARGETS * 3 / 16 + 87);
}

static void phases_are_an_interval_over_k_and_over_n_apart(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= LIMIT_NODES; n++) {
        for (unsigned k = 1; k <= n; k++) {
            uint64_t interval = 6000 * MS;
            uint64_t first = share_phase_ns(target_at(3), 0, k, n, interval);
            unsigned between = (n + k - 1) / k;
            uint64_t taken[LIMIT_NODES];

            for (unsigned rank = 0; rank < n; rank++) {
                uint64_t phase = share_phase_ns(target_at(3), rank, k, n, interval);
                uint64_t apart = (phase + interval - first) % interval;

                assert_true(phase < interval);
                assert_true(rank >= k || apart == interval * rank / k);
                for (unsigned i = 0; i < rank; i++) { /* no two nearer than two n-ths */
                    uint64_t gap = apart > taken[i] ? apart - taken[i] : taken[i] - apart;

                    assert_in_range(gap, interval / ((uint64_t)k * between), interval);
                }
                taken[rank] = apart;
            }
            assert_true(k * between < 2 * n);
        }
    }
}

static void windows_of_the_documents_figures(void **state)
{
    (void)state;
    struct health_check check = {
        .timeout_ms = 5000, .interval_ms = 2000, .healthy_threshold = 2, .unhealthy_threshold = 3};

    assert_int_equal(share_calm_ms(&check), 12000);
    assert_int_equal(share_grace_ms(&check), 2000 + 19000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_node_works_out_the_same_k),
        cmocka_unit_test(ranks_are_those_of_the_assignment),
        cmocka_unit_test(many_targets_are_shared_evenly),
        cmocka_unit_test(a_new_node_changes_few_assignments_each_by_one),
        cmocka_unit_test(phases_are_an_interval_over_k_and_over_n_apart),
        cmocka_unit_test(windows_of_the_documents_figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
