#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/prng.h"

static void the_generator_gives_the_published_numbers(void **unused)
{
    struct prng prng = {.s = {1, 2, 3, 4}};

    (void)unused;
    /* xoshiro256** from state 1, 2, 3, 4; splitmix64 from seed 0. */
    assert_true(prng_next(&prng) == UINT64_C(11520));
    assert_true(prng_next(&prng) == UINT64_C(0));
    assert_true(prng_next(&prng) == UINT64_C(1509978240));
    assert_true(prng_next(&prng) == UINT64_C(1215971899390074240));
    prng_init(&prng, 0);
    assert_true(prng.s[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(prng.s[1] == UINT64_C(0x6e789e6aa1b965f4));
}

static void one_seed_gives_one_sequence(void **unused)
{
    struct prng a;
    struct prng b;

    (void)unused;
    prng_init(&a, 12345);
    prng_init(&b, 12345);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(prng_next(&a) == prng_next(&b));
    }
    prng_init(&b, 12346);
    assert_true(prng_next(&a) != prng_next(&b));
}

static void numbers_below_a_bound_are_even(void **unused)
{
    struct prng prng;
    unsigned counts[7] = {0};

    (void)unused;
    prng_init(&prng, 3);
    for (unsigned i = 0; i < 70000; i++) {
        uint64_t value = prng_below(&prng, 7);

        assert_true(value < 7);
        counts[value]++;
    }
    for (unsigned i = 0; i < 7; i++) {
        assert_in_range(counts[i], 9600, 10400);
    }
    assert_int_equal(prng_below(&prng, 1), 0);
}

static void a_chance_is_in_millionths(void **unused)
{
    struct prng prng;
    unsigned n = 0;

    (void)unused;
    prng_init(&prng, 4);
    for (unsigned i = 0; i < 100000; i++) {
        n += prng_chance(&prng, 250000) != 0;
        assert_false(prng_chance(&prng, 0));
        assert_true(prng_chance(&prng, 1000000));
    }
    assert_in_range(n, 24000, 26000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_gives_the_published_numbers),
        cmocka_unit_test(one_seed_gives_one_sequence),
        cmocka_unit_test(numbers_below_a_bound_are_even),
        cmocka_unit_test(a_chance_is_in_millionths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
