#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lkg_codec.h"
#include "common/base/limits.h"
#include "common/model/reason.h"

static const struct kept_verdict verdicts[] = {
    {.row = 7,
     .birth = 1,
     .definition_hash = {.low = 0x1122334455667788u, .high = 0x99aabbccddeeff00u},
     .health_state = HEALTH_UNHEALTHY,
     .reason = REASON_HTTP_CODE_NOT_MATCH,
     .http_status = 503,
     .since_ms = 123456789,
     .ejected_ms = 0x01020304,
     .n_flaps = 7,
     .shadow_ms = 0x05060708,
     .bad_ms = 0x090a0b0c,
     .alarm_ms = 0x0d0e0f10},
    {.row = LIMIT_ROWS - 1, .birth = UINT64_MAX, .health_state = HEALTH_HEALTHY},
};
static const struct kept_deadline deadlines[] = {
    {.row = 3, .birth = 9, .drain_revision = 12, .is_exact = true, .deadline_boot_ns = 1},
    {.row = 0, .birth = 1, .deadline_boot_ns = UINT64_MAX},
};

static void verdicts_and_deadlines_come_back_as_they_were(void **state)
{
    uint8_t *data;
    size_t n_bytes, n;
    struct kept_verdict *read_verdicts;
    struct kept_deadline *read_deadlines;

    (void)state;
    assert_int_equal(lkg_encode_verdicts(verdicts, 2, &data, &n_bytes), 0);
    assert_int_equal(lkg_decode_verdicts(data, n_bytes, &read_verdicts, &n), 0);
    assert_int_equal(n, 2);
    assert_memory_equal(read_verdicts, verdicts, sizeof verdicts);
    free(read_verdicts);
    free(data);
    assert_int_equal(lkg_encode_deadlines(deadlines, 2, &data, &n_bytes), 0);
    assert_int_equal(lkg_decode_deadlines(data, n_bytes, &read_deadlines, &n), 0);
    assert_int_equal(n, 2);
    assert_memory_equal(read_deadlines, deadlines, sizeof deadlines);
    free(read_deadlines);
    free(data);
}

static void an_empty_list_is_a_list(void **state)
{
    uint8_t *data;
    size_t n_bytes, n = 9;
    struct kept_verdict *read_verdicts;

    (void)state;
    assert_int_equal(lkg_encode_verdicts(NULL, 0, &data, &n_bytes), 0);
    assert_int_equal(lkg_decode_verdicts(data, n_bytes, &read_verdicts, &n), 0);
    assert_int_equal(n, 0);
    assert_non_null(read_verdicts);
    free(read_verdicts);
    free(data);
}

static void a_chunk_cut_short_or_too_long_is_refused_whole(void **state)
{
    uint8_t *data, *longer;
    size_t n_bytes, n;
    struct kept_verdict *read_verdicts;

    (void)state;
    assert_int_equal(lkg_encode_verdicts(verdicts, 2, &data, &n_bytes), 0);
    for (size_t length = 0; length < n_bytes; length++) {
        assert_int_equal(lkg_decode_verdicts(data, length, &read_verdicts, &n), ERR_CORRUPT);
    }
    longer = calloc(1, n_bytes + 1);
    memcpy(longer, data, n_bytes);
    assert_int_equal(lkg_decode_verdicts(longer, n_bytes + 1, &read_verdicts, &n), ERR_CORRUPT);
    free(longer);
    free(data);
}

static void values_out_of_range_and_an_unknown_major_are_refused(void **state)
{
    uint8_t *data;
    size_t n_bytes, n;
    struct kept_verdict *read_verdicts;

    (void)state;
    assert_int_equal(lkg_encode_verdicts(verdicts, 1, &data, &n_bytes), 0);
    data[0] = 2; /* major */
    assert_int_equal(lkg_decode_verdicts(data, n_bytes, &read_verdicts, &n), ERR_VERSION);
    data[0] = 1;
    data[2] = 9; /* a newer minor is read */
    assert_int_equal(lkg_decode_verdicts(data, n_bytes, &read_verdicts, &n), 0);
    free(read_verdicts);
    data[12 + 28] = HEALTH_INITIAL; /* not a verdict to keep */
    assert_int_equal(lkg_decode_verdicts(data, n_bytes, &read_verdicts, &n), ERR_CORRUPT);
    data[12 + 28] = HEALTH_HEALTHY;
    data[12 + 3] = 0x7f; /* row */
    assert_int_equal(lkg_decode_verdicts(data, n_bytes, &read_verdicts, &n), ERR_CORRUPT);
    free(data);
}

static void longer_records_of_a_newer_minor_are_read_in_part(void **state)
{
    /* One deadline with three bytes more than this program knows. */
    uint8_t data[12 + 32] = {1, 0, 5, 0, 32, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 6};
    size_t n;
    struct kept_deadline *read_deadlines;

    (void)state;
    assert_int_equal(lkg_decode_deadlines(data, sizeof data, &read_deadlines, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(read_deadlines[0].row, 4);
    assert_int_equal(read_deadlines[0].birth, 6);
    free(read_deadlines);
}

static void records_of_minor_0_remember_no_guards(void **state)
{
    uint8_t data[12 + 40] = {1, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 6};
    size_t n;
    struct kept_verdict *read_verdicts;

    (void)state;
    data[12 + 28] = HEALTH_HEALTHY;
    data[12 + 32] = 9; /* since */
    assert_int_equal(lkg_decode_verdicts(data, sizeof data, &read_verdicts, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(read_verdicts[0].row, 4);
    assert_int_equal(read_verdicts[0].since_ms, 9);
    assert_int_equal(read_verdicts[0].ejected_ms, 0);
    assert_int_equal(read_verdicts[0].shadow_ms, 0);
    free(read_verdicts);
}

static void records_of_minor_1_remember_no_alarm(void **state)
{
    uint8_t data[12 + 49] = {1, 0, 1, 0, 49, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 6};
    size_t n;
    struct kept_verdict *read_verdicts;

    (void)state;
    data[12 + 28] = HEALTH_HEALTHY;
    data[12 + 40] = 3; /* ejected */
    data[12 + 45] = 7; /* shadow */
    assert_int_equal(lkg_decode_verdicts(data, sizeof data, &read_verdicts, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(read_verdicts[0].ejected_ms, 3);
    assert_int_equal(read_verdicts[0].shadow_ms, 7);
    assert_int_equal(read_verdicts[0].bad_ms, 0);
    assert_int_equal(read_verdicts[0].alarm_ms, 0);
    free(read_verdicts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_and_deadlines_come_back_as_they_were),
        cmocka_unit_test(an_empty_list_is_a_list),
        cmocka_unit_test(a_chunk_cut_short_or_too_long_is_refused_whole),
        cmocka_unit_test(values_out_of_range_and_an_unknown_major_are_refused),
        cmocka_unit_test(longer_records_of_a_newer_minor_are_read_in_part),
        cmocka_unit_test(records_of_minor_0_remember_no_guards),
        cmocka_unit_test(records_of_minor_1_remember_no_alarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
