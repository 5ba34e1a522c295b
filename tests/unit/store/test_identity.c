/* Identity, Raft addresses and the epoch file.
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/store/identity.h"
#include "common/base/plant.h"

static struct identity sample(void)
{
    struct identity identity = {.node_id = 3, .incarnation = UINT64_C(0x00c0ffee00c0ffee)};

    memset(identity.cluster_id.bytes, 0xab, sizeof identity.cluster_id.bytes);
    memset(identity.key.bytes, 0x5c, sizeof identity.key.bytes);
    return identity;
}

static void identity_is_read_as_it_was_written(void **state)
{
    struct identity identity = sample(), again;
    char text[IDENTITY_TEXT_BYTES];
    struct errmsg err;

    (void)state;
    memset(&again, 0, sizeof again);
    size_t n = identity_format(&identity, text);
    assert_int_equal(identity_parse(text, n, &again, &err), 0);
    assert_memory_equal(&identity, &again, sizeof again);
}

static void identity_with_any_byte_changed_or_missing_is_refused(void **state)
{
    struct identity identity = sample(), again = {.node_id = 99};
    char text[IDENTITY_TEXT_BYTES];
    struct errmsg err;
    size_t n = identity_format(&identity, text);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        text[i] ^= 1;
        assert_int_not_equal(identity_parse(text, n, &again, &err), 0);
        text[i] ^= 1;
        assert_int_not_equal(identity_parse(text, i, &again, &err), 0);
    }
    assert_int_equal(again.node_id, 99);
}

static void identity_of_a_later_version_is_named(void **state)
{
    const char *text = "jury-identity 2\ncluster x\n";
    struct identity identity;
    struct errmsg err;

    (void)state;
    assert_int_equal(identity_parse(text, strlen(text), &identity, &err), ERR_VERSION);
    assert_non_null(strstr(err.text, "version 2 is not understood"));
}

static void raft_address_holds_id_and_incarnation(void **state)
{
    char text[RAFT_ADDRESS_BYTES];
    uint64_t id = 0, incarnation = 0;
    const char *bad[] = {"",
                         "node-",
                         "node-3",
                         "node-3-00c0ffee",
                         "node-03-00c0ffee00c0ffee",
                         "node-3-00C0FFEE00C0FFEE",
                         "node-3-00c0ffee00c0ffee0",
                         "127.0.0.1:9000"};

    (void)state;
    raft_address_format(UINT64_MAX, UINT64_MAX, text);
    assert_true(raft_address_parse(text, &id, &incarnation));
    assert_true(id == UINT64_MAX && incarnation == UINT64_MAX);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(raft_address_parse(bad[i], &id, &incarnation));
    }
}

static void epoch_survives_a_torn_write_of_the_next_one(void **state)
{
    uint8_t file[EPOCH_FILE_BYTES], slot[EPOCH_SLOT_BYTES];
    struct epoch_found found = {.newest = 99};
    struct errmsg err;

    (void)state;
    epoch_format_new(file);
    assert_int_equal(epoch_parse(file, &found, &err), 0);
    assert_int_equal(found.newest, 0);
    assert_int_equal(epoch_after(&found, 0), 1);
    for (uint64_t next = 1; next <= 5; next++) {
        size_t offset = epoch_format_slot(next, slot);

        memset(file + offset, 0xee, EPOCH_SLOT_BYTES / 2); /* the power went in the middle of it */
        assert_int_equal(epoch_parse(file, &found, &err), 0);
        assert_int_equal(found.newest, next - 1);
        memcpy(file + offset, slot, sizeof slot);
        assert_int_equal(epoch_parse(file, &found, &err), 0);
        assert_int_equal(found.newest, next);
        assert_int_equal(epoch_after(&found, 0), next + 1);
    }
    memset(file, 0xee, sizeof file);
    assert_int_equal(epoch_parse(file, &found, &err), ERR_CORRUPT);
}

/* A flipped bit in the newest slot made the next start use its epoch again:
 * peers dropped all its messages as old, and nobody said why. */
static void epoch_whose_newest_slot_was_damaged_is_never_used_again(void **state)
{
    uint8_t file[EPOCH_FILE_BYTES];
    struct epoch_found found;
    struct errmsg err;

    (void)state;
    for (uint64_t newest = 1; newest <= 6; newest++) {
        epoch_format_new(file);
        for (uint64_t epoch = newest - 1; epoch <= newest; epoch++) {
            size_t offset = epoch % 2 * EPOCH_SLOT_BYTES;

            assert_int_equal(epoch_format_slot(epoch, file + offset), offset);
        }
        file[newest % 2 * EPOCH_SLOT_BYTES + 9] ^= 4;
        assert_int_equal(epoch_parse(file, &found, &err), 0);
        assert_true(found.is_incomplete);
        uint64_t next = epoch_after(&found, 0);
        assert_true(next > newest);
        /* The slot that is whole stays until the new one is. */
        assert_int_equal(next % 2, newest % 2);
        /* The older slot damaged: the newest is known, and is kept as well. */
        file[newest % 2 * EPOCH_SLOT_BYTES + 9] ^= 4;
        file[(newest + 1) % 2 * EPOCH_SLOT_BYTES + 9] ^= 4;
        assert_int_equal(epoch_parse(file, &found, &err), 0);
        assert_int_equal(found.newest, newest);
        assert_true(epoch_after(&found, 0) > newest);
    }
    found = (struct epoch_found){.newest = 5};
    assert_int_equal(epoch_after(&found, 7), 8);
    assert_int_equal(epoch_after(&found, 8), 10);
}

#ifdef JURY_PLANTS
static void twin_an_epoch_that_follows_the_older_slot_is_caught(void **state)
{
    const struct epoch_found found = {.newest = 5, .is_incomplete = true};

    (void)state;
    assert_true(epoch_after(&found, 0) > 6);
    plant_set("epoch-slot-lost");
    assert_int_equal(epoch_after(&found, 0), 6);
    plant_set(NULL);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_is_read_as_it_was_written),
        cmocka_unit_test(identity_with_any_byte_changed_or_missing_is_refused),
        cmocka_unit_test(identity_of_a_later_version_is_named),
        cmocka_unit_test(raft_address_holds_id_and_incarnation),
        cmocka_unit_test(epoch_survives_a_torn_write_of_the_next_one),
        cmocka_unit_test(epoch_whose_newest_slot_was_damaged_is_never_used_again),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_an_epoch_that_follows_the_older_slot_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
