/* Which target slots are at the same address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/address_index.h"

static struct addr host(uint32_t number)
{
    struct addr addr = {.family = ADDR_IPV4};

    memcpy(addr.bytes, &number, sizeof number);
    return addr;
}

static void put(struct address_index *index, uint32_t slot, uint32_t number)
{
    const struct addr addr = host(number);

    assert_int_equal(address_index_reserve(index, slot + 1), 0);
    address_index_put(index, slot, &addr);
}

static uint32_t find(const struct address_index *index, uint32_t number)
{
    const struct addr addr = host(number);

    return address_index_find(index, &addr);
}

static void an_empty_one_has_nobody(void **state)
{
    struct address_index index = {0};

    (void)state;
    assert_int_equal(find(&index, 1), ADDRESS_INDEX_NONE);
    assert_false(address_index_has(&index, 0));
    address_index_close(&index);
}

/* In whatever order they go: the first, the middle and the last of a chain. */
static void those_that_are_left_are_found(void **state)
{
    static const uint32_t orders[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        struct address_index index = {0};

        for (uint32_t slot = 0; slot < 3; slot++) {
            put(&index, slot, 7);
        }
        for (uint32_t at = 0; at < 3; at++) {
            assert_true(address_index_has(&index, orders[i][at]));
            address_index_drop(&index, orders[i][at]);
            assert_false(address_index_has(&index, orders[i][at]));
            uint32_t found = find(&index, 7);
            if (at < 2) {
                assert_true(found < 3 && address_index_has(&index, found));
            } else {
                assert_int_equal(found, ADDRESS_INDEX_NONE);
            }
        }
        address_index_close(&index);
    }
}

/* Chains are made anew while it grows; a free slot has no address to be chained by. */
static void each_address_is_found_while_it_grows(void **state)
{
    enum {
        MANY = 5000
    };
    struct address_index index = {0};

    (void)state;
    for (uint32_t slot = 0; slot < MANY; slot += 2) {
        put(&index, slot, slot);
        assert_int_equal(find(&index, slot), slot);
    }
    for (uint32_t slot = 0; slot < MANY; slot += 2) {
        assert_int_equal(find(&index, slot), slot);
        assert_int_equal(find(&index, slot + 1), ADDRESS_INDEX_NONE);
        assert_false(address_index_has(&index, slot + 1));
    }
    address_index_close(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_has_nobody),
        cmocka_unit_test(those_that_are_left_are_found),
        cmocka_unit_test(each_address_is_found_while_it_grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
