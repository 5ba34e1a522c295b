#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/flow_key.h"
#include "agent/core/select.h"
#include "common/model/group.h"

#define N_KEYS 100000
#define MEMBERS_MAX 1000

static const struct hash_key key = {1, 2};

struct members {
    uint64_t ids[MEMBERS_MAX];
    uint8_t weights[MEMBERS_MAX];
    uint8_t ranks[MEMBERS_MAX];
    uint32_t n_members;
};

static struct select_set set_of(const struct members *members)
{
    return (struct select_set){.ids = members->ids,
                               .weights = members->weights,
                               .ranks = members->ranks,
                               .n_members = members->n_members};
}

static struct endpoint backend_at(uint32_t number)
{
    struct endpoint at = {.addr = {.family = ADDR_IPV4, .bytes = {10, 0, 0, 0}}, .port = 80};

    at.addr.bytes[2] = (uint8_t)(number >> 8);
    at.addr.bytes[3] = (uint8_t)number;
    return at;
}

static void members_init(struct members *members, uint32_t n_members)
{
    members->n_members = n_members;
    for (uint32_t i = 0; i < n_members; i++) {
        struct endpoint at = backend_at(i + 1);

        members->ids[i] = select_member_id(&at, &key);
        members->weights[i] = 100;
        members->ranks[i] = 1;
    }
}

/* The hash of client number i, a 5-tuple as a listener sees it. */
static uint64_t flow_hash(uint32_t number)
{
    struct flow_key flow = {
        .source = {.addr = {.family = ADDR_IPV4, .bytes = {192, 168, 0, 0}}, .port = 0},
        .destination = {.addr = {.family = ADDR_IPV4, .bytes = {10, 9, 9, 9}}, .port = 443},
        .ip_protocol = 6,
    };

    flow.source.addr.bytes[3] = (uint8_t)(number >> 14);
    flow.source.port = (uint16_t)(1024 + (number & 0x3fff));
    return flow_key_hash(&flow, SCHEDULER_5_TUPLE, &key);
}

static uint32_t choose(const struct select_set *set, uint32_t number)
{
    return select_by_hash(set, select_rank(set, NULL), flow_hash(number), NULL);
}

static void A36_with_two_of_four_down_no_flow_goes_to_a_down_one(void **state)
{
    (void)state;
    struct members members;

    members_init(&members, 4);
    members.ranks[0] = 0;
    members.ranks[2] = 0;
    struct select_set set = set_of(&members);
    uint32_t n_flows[4] = {0};

    for (uint32_t i = 0; i < 10000; i++) {
        n_flows[choose(&set, i)]++;
    }

    assert_int_equal(n_flows[0] + n_flows[2], 0);
    assert_in_range(n_flows[1], 4800, 5200);
}

static void A36_removing_one_of_ten_moves_its_flows_and_no_others(void **state)
{
    (void)state;
    struct members before;
    struct members ejected;
    struct members removed;
    uint32_t n_moved = 0;
    uint32_t n_survivors_moved = 0;

    members_init(&before, 10);
    ejected = before;
    ejected.ranks[4] = 0; /* ejected: out of the usable set */
    removed = before;     /* removed: out of the group */
    memmove(removed.ids + 4, removed.ids + 5, 5 * sizeof removed.ids[0]);
    removed.n_members = 9;
    struct select_set set = set_of(&before);
    struct select_set set_ejected = set_of(&ejected);
    struct select_set set_removed = set_of(&removed);

    for (uint32_t i = 0; i < N_KEYS; i++) {
        uint64_t was = before.ids[choose(&set, i)];
        uint64_t now = ejected.ids[choose(&set_ejected, i)];

        assert_int_equal(now, removed.ids[choose(&set_removed, i)]);
        n_moved += was != now;
        n_survivors_moved += was != now && was != before.ids[4];
    }

    print_message("1 of 10 removed: %.2f %% of all keys moved, %u of the survivors'\n",
                  100.0 * n_moved / N_KEYS, n_survivors_moved);
    assert_in_range(n_moved, N_KEYS * 9 / 100, N_KEYS * 11 / 100);
    assert_int_equal(n_survivors_moved, 0);
}

static void I14_a_new_member_takes_its_share_and_moves_nothing_else(void **state)
{
    (void)state;
    struct members after;
    struct members before;
    uint32_t n_taken = 0;

    members_init(&after, 11);
    before = after;
    before.n_members = 10;
    struct select_set set_before = set_of(&before);
    struct select_set set_after = set_of(&after);

    for (uint32_t i = 0; i < N_KEYS; i++) {
        uint32_t was = choose(&set_before, i);
        uint32_t now = choose(&set_after, i);

        assert_true(now == was || now == 10);
        n_taken += now == 10;
    }

    assert_in_range(n_taken, N_KEYS / 11 - 500, N_KEYS / 11 + 500);
}

static void another_share_of_one_weight_moves_no_flow_between_the_others(void **state)
{
    (void)state;
    static const uint8_t shares[] = {100, 82, 55, 10, 1, 10, 55, 82, 100};
    struct members members;
    uint8_t after[10];
    uint8_t before[10];
    uint32_t n_of_it = 0;

    members_init(&members, 10);
    memset(before, 100, sizeof before);
    memcpy(after, before, sizeof before);
    for (size_t step = 1; step < sizeof shares; step++) {
        struct select_set was_set = set_of(&members);
        struct select_set set = set_of(&members);
        bool falls = shares[step] < shares[step - 1];

        before[4] = shares[step - 1];
        after[4] = shares[step];
        was_set.shares = before;
        set.shares = after;
        n_of_it = 0;
        for (uint32_t i = 0; i < N_KEYS; i++) {
            uint32_t was = choose(&was_set, i);
            uint32_t now = choose(&set, i);

            assert_true(now == was || (falls ? was : now) == 4);
            n_of_it += now == 4;
        }
        double wanted = N_KEYS * shares[step] / (900.0 + shares[step]);
        assert_true(n_of_it > wanted - 500 && n_of_it < wanted + 500);
    }
}

static void shares_follow_the_weights(void **state)
{
    (void)state;
    static const struct {
        uint32_t n_members;
        uint8_t weights[5];
        double tolerance; /* percent of all flows */
    } rows[] = {
        {2, {1, 2}, 2.0},
        {2, {0, 1}, 0.0},
        {2, {5, 1}, 3.0},
        {3, {100, 100, 100}, 1.0},
        {5, {1, 7, 13, 50, 99}, 1.0},
        {2, {1, 100}, 0.5},
    };

    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        struct members members;
        uint32_t n_flows[5] = {0};
        double total = 0;

        members_init(&members, rows[row].n_members);
        memcpy(members.weights, rows[row].weights, rows[row].n_members);
        struct select_set set = set_of(&members);
        for (uint32_t i = 0; i < rows[row].n_members; i++) {
            total += rows[row].weights[i];
        }
        for (uint32_t i = 0; i < N_KEYS; i++) {
            n_flows[choose(&set, i)]++;
        }
        for (uint32_t i = 0; i < rows[row].n_members; i++) {
            double wanted = 100.0 * rows[row].weights[i] / total;
            double seen = 100.0 * n_flows[i] / N_KEYS;

            print_message("weight %3u of %.0f: wanted %.2f %%, saw %.2f %%\n", rows[row].weights[i],
                          total, wanted, seen);
            assert_true(seen - wanted <= rows[row].tolerance);
            assert_true(wanted - seen <= rows[row].tolerance);
        }
    }
}

static void shares_among_a_thousand_members_are_even_to_what_chance_allows(void **state)
{
    (void)state;
    struct members members;
    static uint32_t n_flows[MEMBERS_MAX];
    double chi_square = 0;

    members_init(&members, MEMBERS_MAX);
    struct select_set set = set_of(&members);
    for (uint32_t i = 0; i < N_KEYS; i++) {
        n_flows[choose(&set, i)]++;
    }
    for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
        chi_square += ((double)n_flows[i] - 100) * ((double)n_flows[i] - 100) / 100;
    }

    /* 999 degrees of freedom: mean 999, standard deviation 45. */
    print_message("chi square %.0f\n", chi_square);
    assert_true(chi_square > 999 - 5 * 45 && chi_square < 999 + 5 * 45);
}

static void A25_a_member_of_weight_zero_gets_nothing_and_rank_passes_it_over(void **state)
{
    (void)state;
    struct members members;

    members_init(&members, 3);
    members.weights[0] = 0;
    members.ranks[1] = 2;
    members.ranks[2] = 3;
    struct select_set set = set_of(&members);

    assert_int_equal(select_rank(&set, NULL), 2);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(choose(&set, i), 1);
    }
    members.weights[1] = 0;
    members.ranks[2] = 0;
    assert_int_equal(select_rank(&set, NULL), 0);
}

static void a_retry_takes_another_member_and_then_the_next_rank(void **state)
{
    (void)state;
    struct members members;
    struct select_tried tried = {.n_members = 0};

    members_init(&members, 3);
    members.ranks[2] = 2;
    struct select_set set = set_of(&members);
    uint32_t first = select_by_hash(&set, select_rank(&set, &tried), 77, &tried);
    tried.members[tried.n_members++] = first;
    uint32_t second = select_by_hash(&set, select_rank(&set, &tried), 77, &tried);
    tried.members[tried.n_members++] = second;
    uint32_t third = select_by_hash(&set, select_rank(&set, &tried), 77, &tried);
    tried.members[tried.n_members++] = third;

    assert_true(first < 2 && second == 1 - first);
    assert_int_equal(third, 2);
    assert_int_equal(select_rank(&set, &tried), 0);
    assert_int_equal(select_by_hash(&set, 1, 77, &tried), SELECT_NONE);
}

static void wrr_is_exact_over_each_cycle_and_does_not_clump(void **state)
{
    (void)state;
    struct members members;
    int32_t credits[3] = {0};
    struct select_turn turn = {.credits = credits, .n_members = 3};

    members_init(&members, 3);
    members.weights[0] = 50;
    members.weights[1] = 30;
    members.weights[2] = 20; /* a cycle is 10 turns */
    struct select_set set = set_of(&members);

    for (int cycle = 0; cycle < 20; cycle++) {
        uint32_t n_turns[3] = {0};
        uint32_t longest_run = 0;
        uint32_t run = 0;
        uint32_t last = SELECT_NONE;

        for (int i = 0; i < 10; i++) {
            uint32_t member = select_by_turn(&set, 1, false, &turn);

            run = member == last ? run + 1 : 1;
            longest_run = run > longest_run ? run : longest_run;
            last = member;
            n_turns[member]++;
        }
        assert_int_equal(n_turns[0], 5);
        assert_int_equal(n_turns[1], 3);
        assert_int_equal(n_turns[2], 2);
        assert_true(longest_run <= 2);
    }
}

static void wrr_is_exact_over_a_window_that_begins_anywhere(void **state)
{
    (void)state;
    struct members members;
    int32_t credits[4] = {0};
    struct select_turn turn = {.credits = credits, .n_members = 4};

    members_init(&members, 4);
    members.weights[0] = 7;
    members.weights[1] = 1;
    members.weights[2] = 0;
    members.weights[3] = 3; /* 11 turns */
    struct select_set set = set_of(&members);
    for (int i = 0; i < 5; i++) {
        select_by_turn(&set, 1, false, &turn);
    }

    uint32_t n_turns[4] = {0};
    for (int i = 0; i < 11; i++) {
        n_turns[select_by_turn(&set, 1, false, &turn)]++;
    }

    assert_int_equal(n_turns[0], 7);
    assert_int_equal(n_turns[1], 1);
    assert_int_equal(n_turns[2], 0);
    assert_int_equal(n_turns[3], 3);
}

static void rr_counts_every_weight_as_one(void **state)
{
    (void)state;
    struct members members;
    int32_t credits[3] = {0};
    struct select_turn turn = {.credits = credits, .n_members = 3};
    uint32_t n_turns[3] = {0};

    members_init(&members, 3);
    members.weights[1] = 1;
    members.ranks[2] = 0;
    struct select_set set = set_of(&members);
    for (int i = 0; i < 10; i++) {
        n_turns[select_by_turn(&set, 1, true, &turn)]++;
    }

    assert_int_equal(n_turns[0], 5);
    assert_int_equal(n_turns[1], 5);
    assert_int_equal(n_turns[2], 0);
}

static void a_share_counts_in_turns_to_the_hundredth_of_a_weight(void **state)
{
    (void)state;
    struct members members;
    uint8_t shares[3] = {100, 25, 100};
    int32_t credits[3] = {0};
    struct select_turn turn = {.credits = credits, .n_members = 3};
    uint32_t n_wrr[3] = {0};
    uint32_t n_rr[3] = {0};

    members_init(&members, 3);
    members.weights[0] = members.weights[1] = 1; /* a quarter of 1 is not nothing */
    members.ranks[2] = 0;
    struct select_set set = set_of(&members);
    uint64_t whole = select_signature(&set, 1);
    set.shares = shares;
    for (int i = 0; i < 10; i++) {
        n_wrr[select_by_turn(&set, 1, false, &turn)]++;
    }
    members.weights[1] = 100;
    memset(credits, 0, sizeof credits);
    for (int i = 0; i < 10; i++) {
        n_rr[select_by_turn(&set, 1, true, &turn)]++;
    }

    assert_int_equal(n_wrr[0], 8);
    assert_int_equal(n_wrr[1], 2);
    assert_int_equal(n_rr[0], 8);
    assert_int_equal(n_rr[1], 2);
    members.weights[1] = 1;
    assert_true(select_signature(&set, 1) != whole);
    shares[1] = 100;
    assert_true(select_signature(&set, 1) == whole);
}

static void signature_changes_with_the_usable_members_and_their_weights_only(void **state)
{
    (void)state;
    struct members members;

    members_init(&members, 3);
    members.ranks[2] = 0;
    struct select_set set = set_of(&members);
    uint64_t before = select_signature(&set, 1);

    members.weights[2] = 7; /* not usable */
    assert_true(select_signature(&set, 1) == before);
    members.weights[0] = 7;
    assert_true(select_signature(&set, 1) != before);
    members.weights[0] = 100;
    members.ranks[2] = 1;
    assert_true(select_signature(&set, 1) != before);
}

static void slots_of_a_scope_are_the_smallest_prime_of_a_hundred_for_each(void **state)
{
    (void)state;
    static const uint32_t rows[][2] = {{0, 0},     {1, 251},   {2, 251},      {3, 307},
                                       {10, 1009}, {20, 2003}, {1000, 100003}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(select_n_slots(rows[i][0]), rows[i][1]);
    }
}

static void selection_array_gives_each_member_its_share_to_two_slots(void **state)
{
    (void)state;
    struct members members;
    static uint16_t slots[100003];
    uint32_t n_owned[5] = {0};

    members_init(&members, 5);
    memcpy(members.weights, (uint8_t[]){100, 50, 0, 25, 3}, 5);
    uint32_t n_slots = select_n_slots(5);

    assert_int_equal(select_fill_slots(members.ids, members.weights, 5, slots, n_slots), 0);
    for (uint32_t i = 0; i < n_slots; i++) {
        assert_true(slots[i] < 5);
        n_owned[slots[i]]++;
    }
    for (uint32_t i = 0; i < 5; i++) {
        double wanted = (double)n_slots * members.weights[i] / 178;

        assert_true(n_owned[i] >= wanted - 2 && n_owned[i] <= wanted + 2);
    }

    memset(members.weights, 0, 5);
    assert_int_equal(select_fill_slots(members.ids, members.weights, 5, slots, n_slots), 0);
    for (uint32_t i = 0; i < n_slots; i++) {
        assert_int_equal(slots[i], SELECT_SLOT_NONE);
    }
}

static void keys_differ_by_what_the_scheduler_counts(void **state)
{
    (void)state;
    struct flow_key base = {
        .source = {.addr = {.family = ADDR_IPV4, .bytes = {10, 0, 0, 1}}, .port = 1000},
        .destination = {.addr = {.family = ADDR_IPV4, .bytes = {10, 0, 0, 2}}, .port = 80},
        .ip_protocol = 6,
    };
    struct flow_key other_protocol = base;
    struct flow_key other_port = base;
    struct flow_key other_destination = base;
    struct flow_key other_source = base;
    other_protocol.ip_protocol = 17;
    other_port.source.port = 1001;
    other_destination.destination.addr.bytes[3] = 9;
    other_source.source.addr.bytes[3] = 9;
    const struct {
        unsigned scheduler;
        bool port, protocol, destination;
    } rows[] = {
        {SCHEDULER_5_TUPLE, true, true, true},   {SCHEDULER_4_TUPLE, true, false, true},
        {SCHEDULER_3_TUPLE, false, true, true},  {SCHEDULER_2_TUPLE, false, false, true},
        {SCHEDULER_SOURCE, false, false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t hash = flow_key_hash(&base, rows[i].scheduler, &key);

        assert_true(flow_key_is_hashed(rows[i].scheduler));
        assert_int_equal(flow_key_hash(&other_port, rows[i].scheduler, &key) != hash, rows[i].port);
        assert_int_equal(flow_key_hash(&other_protocol, rows[i].scheduler, &key) != hash,
                         rows[i].protocol);
        assert_int_equal(flow_key_hash(&other_destination, rows[i].scheduler, &key) != hash,
                         rows[i].destination);
        assert_true(flow_key_hash(&other_source, rows[i].scheduler, &key) != hash);
    }
    assert_false(flow_key_is_hashed(SCHEDULER_WRR));
    assert_false(flow_key_is_hashed(SCHEDULER_RR));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(A36_with_two_of_four_down_no_flow_goes_to_a_down_one),
        cmocka_unit_test(A36_removing_one_of_ten_moves_its_flows_and_no_others),
        cmocka_unit_test(I14_a_new_member_takes_its_share_and_moves_nothing_else),
        cmocka_unit_test(another_share_of_one_weight_moves_no_flow_between_the_others),
        cmocka_unit_test(shares_follow_the_weights),
        cmocka_unit_test(shares_among_a_thousand_members_are_even_to_what_chance_allows),
        cmocka_unit_test(A25_a_member_of_weight_zero_gets_nothing_and_rank_passes_it_over),
        cmocka_unit_test(a_retry_takes_another_member_and_then_the_next_rank),
        cmocka_unit_test(wrr_is_exact_over_each_cycle_and_does_not_clump),
        cmocka_unit_test(wrr_is_exact_over_a_window_that_begins_anywhere),
        cmocka_unit_test(rr_counts_every_weight_as_one),
        cmocka_unit_test(a_share_counts_in_turns_to_the_hundredth_of_a_weight),
        cmocka_unit_test(signature_changes_with_the_usable_members_and_their_weights_only),
        cmocka_unit_test(slots_of_a_scope_are_the_smallest_prime_of_a_hundred_for_each),
        cmocka_unit_test(selection_array_gives_each_member_its_share_to_two_slots),
        cmocka_unit_test(keys_differ_by_what_the_scheduler_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
