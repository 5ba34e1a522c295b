#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/numbers.h"
#include "common/base/prng.h"

#define N 300

static void the_lowest_free_number_comes_first(void **unused)
{
    struct numbers numbers;
    struct prng prng;
    bool taken[N] = {false};
    uint32_t n_taken = 0;

    (void)unused;
    assert_int_equal(numbers_init(&numbers, N), 0);
    prng_init(&prng, 9);
    for (unsigned round = 0; round < 20000; round++) {
        uint32_t lowest = 0;
        uint32_t end = 0;

        while (lowest < N && taken[lowest]) {
            lowest++;
        }
        if (lowest < N && prng_below(&prng, 100) < 55) {
            assert_int_equal(numbers_take(&numbers), lowest);
            taken[lowest] = true;
            n_taken++;
        } else {
            uint32_t number = (uint32_t)prng_below(&prng, N);

            if (taken[number]) {
                assert_false(numbers_take_this(&numbers, number));
                numbers_give_back(&numbers, number);
                n_taken--;
            } else {
                assert_true(numbers_take_this(&numbers, number));
                n_taken++;
            }
            taken[number] = !taken[number];
        }
        for (uint32_t i = 0; i < N; i++) {
            end = taken[i] ? i + 1 : end;
        }
        assert_int_equal(numbers_end(&numbers), end);
        assert_int_equal(numbers.n_taken, n_taken);
    }
    assert_false(numbers_take_this(&numbers, N));
    numbers_close(&numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_free_number_comes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
