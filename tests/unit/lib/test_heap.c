#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/prng.h"
#include "tests/lib/heap.h"

static void an_empty_heap_gives_nothing(void **unused)
{
    struct heap heap;
    struct heap_item item = {.key = 9};

    (void)unused;
    heap_init(&heap);
    assert_false(heap_peek(&heap, &item));
    assert_false(heap_pop(&heap, &item));
    assert_int_equal(item.key, 9);
    heap_close(&heap);
}

static void keys_come_out_sorted(void **unused)
{
    struct heap heap;
    struct prng prng;
    struct heap_item item;
    uint64_t last = 0;

    (void)unused;
    heap_init(&heap);
    prng_init(&prng, 7);
    for (unsigned i = 0; i < 5000; i++) {
        assert_int_equal(heap_push(&heap, prng_below(&prng, 1000), 0, i), 0);
        if (prng_below(&prng, 3) == 0) {
            assert_true(heap_pop(&heap, &item));
        }
    }
    while (heap_peek(&heap, &item)) {
        uint64_t key = item.key;

        assert_true(key >= last);
        last = key;
        assert_true(heap_pop(&heap, &item));
        assert_int_equal(item.key, key);
    }
    heap_close(&heap);
}

static void equal_keys_come_out_in_the_order_they_went_in(void **unused)
{
    struct heap heap;
    struct heap_item item;

    (void)unused;
    heap_init(&heap);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(heap_push(&heap, i % 3, 0, i), 0);
    }
    for (uint64_t key = 0; key < 3; key++) {
        for (uint64_t i = key; i < 100; i += 3) {
            assert_true(heap_pop(&heap, &item));
            assert_int_equal(item.key, key);
            assert_int_equal(item.value, i);
        }
    }
    assert_false(heap_pop(&heap, &item));
    heap_close(&heap);
}

static void of_equal_keys_the_lowest_rank_comes_first(void **unused)
{
    struct heap heap;
    struct heap_item item;

    (void)unused;
    heap_init(&heap);
    for (uint8_t i = 0; i < 9; i++) {
        assert_int_equal(heap_push(&heap, 5, 2 - i % 3, i), 0);
    }
    assert_int_equal(heap_push(&heap, 4, 9, 9), 0);
    for (size_t i = 0; i < 10; i++) {
        static const uint64_t values[10] = {9, 2, 5, 8, 1, 4, 7, 0, 3, 6};

        assert_true(heap_pop(&heap, &item));
        assert_int_equal(item.value, values[i]);
    }
    heap_close(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_gives_nothing),
        cmocka_unit_test(keys_come_out_sorted),
        cmocka_unit_test(equal_keys_come_out_in_the_order_they_went_in),
        cmocka_unit_test(of_equal_keys_the_lowest_rank_comes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
