#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/err.h"
#include "common/base/idmap.h"
#include "common/base/prng.h"

static bool has(const struct idmap *map, uint64_t hash, uint64_t id)
{
    size_t cursor = 0;
    uint64_t found;

    while ((found = idmap_next(map, hash, &cursor)) != IDMAP_NONE) {
        if (found == id) {
            return true;
        }
    }
    return false;
}

static unsigned count(const struct idmap *map, uint64_t hash)
{
    size_t cursor = 0;
    unsigned n = 0;

    while (idmap_next(map, hash, &cursor) != IDMAP_NONE) {
        n++;
    }
    return n;
}

static void an_empty_map_knows_nothing(void **unused)
{
    struct idmap map = {0};

    (void)unused;
    assert_int_equal(count(&map, 1), 0);
    assert_false(idmap_remove(&map, 1, 1));
    idmap_close(&map);
}

static void several_ids_live_under_one_hash(void **unused)
{
    struct idmap map = {0};

    (void)unused;
    for (uint64_t id = 0; id < 100; id++) {
        assert_int_equal(idmap_add(&map, 42, id), 0);
    }
    assert_int_equal(count(&map, 42), 100);
    assert_int_equal(count(&map, 43), 0);
    assert_true(idmap_remove(&map, 42, 50));
    assert_false(idmap_remove(&map, 42, 50));
    assert_int_equal(count(&map, 42), 99);
    assert_false(has(&map, 42, 50));
    assert_true(has(&map, 42, 99));
    idmap_close(&map);
}

/* A small space of hashes, so that runs of cells meet and holes have to be closed. */
static void random_adds_and_removes_agree_with_a_plain_table(void **unused)
{
    static bool expected[32][64];
    struct idmap map = {0};
    struct prng prng;
    size_t n = 0;

    (void)unused;
    prng_init(&prng, 11);
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t hash = prng_below(&prng, 32);
        uint64_t id = prng_below(&prng, 64);

        if (expected[hash][id]) {
            assert_true(idmap_remove(&map, hash, id));
            n--;
        } else if (prng_below(&prng, 3) == 0) {
            assert_int_equal(idmap_add(&map, hash, id), 0);
            n++;
        } else {
            assert_false(idmap_remove(&map, hash, id));
            continue;
        }
        expected[hash][id] = !expected[hash][id];
        assert_int_equal(map.n_ids, n);
        assert_int_equal(has(&map, hash, id), expected[hash][id]);
    }
    for (uint64_t hash = 0; hash < 32; hash++) {
        for (uint64_t id = 0; id < 64; id++) {
            assert_int_equal(has(&map, hash, id), expected[hash][id]);
        }
    }
    idmap_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_knows_nothing),
        cmocka_unit_test(several_ids_live_under_one_hash),
        cmocka_unit_test(random_adds_and_removes_agree_with_a_plain_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
