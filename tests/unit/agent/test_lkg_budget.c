/* Case A43: how much of last-known-good is written while verdicts change all the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/lkg_budget.h"
#include "common/base/units.h"

#define MS 1000000u

/* Writes whenever it may, for so long; something has always changed. Returns the bytes. */
static uint64_t write_for(struct lkg_budget *budget, uint64_t from_s, uint64_t seconds,
                          size_t file_bytes)
{
    uint64_t n_bytes = 0;

    for (uint64_t ms = from_s * 1000; ms < (from_s + seconds) * 1000; ms += 100) {
        if (lkg_budget_allows(budget, ms * MS, false)) {
            lkg_budget_start(budget, ms * MS);
            lkg_budget_spend(budget, file_bytes);
            n_bytes += file_bytes;
        }
    }
    return n_bytes;
}

static void flapping_writes_a_mebibyte_in_ten_minutes(void **state)
{
    static const size_t files[] = {500, 5000, 24000, 50000};

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct lkg_budget budget = {0};
        uint64_t first = write_for(&budget, 1, 600, files[i]);

        assert_in_range(first, 0, (1u << 20) + files[i]);
        assert_in_range(write_for(&budget, 601, 600, files[i]), 0, (512u << 10) + files[i]);
    }
}

/* Ten seconds of an incident are in it, however large it is; then it is written once a minute. */
static void a_large_file_is_written_ten_times_and_then_once_a_minute(void **state)
{
    struct lkg_budget budget = {0};
    const size_t file_bytes = 20u << 20;

    (void)state;
    assert_in_range(write_for(&budget, 1, 11, file_bytes), 10 * (uint64_t)file_bytes,
                    11 * (uint64_t)file_bytes);
    assert_in_range(write_for(&budget, 12, 600, file_bytes), 9 * (uint64_t)file_bytes,
                    13 * (uint64_t)file_bytes);
}

static void a_change_after_a_quiet_time_and_a_new_catalog_are_written_at_once(void **state)
{
    struct lkg_budget budget = {0};
    uint64_t now_ns = 1000 * (uint64_t)NS_PER_SECOND;

    (void)state;
    assert_true(lkg_budget_allows(&budget, now_ns, false));
    lkg_budget_start(&budget, now_ns);
    for (int i = 0; i < 20; i++) {
        lkg_budget_spend(&budget, 1u << 20);
    }
    assert_false(lkg_budget_allows(&budget, now_ns + NS_PER_SECOND / 2, true)); /* one a second */
    assert_false(lkg_budget_allows(&budget, now_ns + NS_PER_SECOND, false));
    assert_true(lkg_budget_allows(&budget, now_ns + NS_PER_SECOND, true));
    assert_true(lkg_budget_allows(&budget, now_ns + 60 * (uint64_t)NS_PER_SECOND, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flapping_writes_a_mebibyte_in_ten_minutes),
        cmocka_unit_test(a_large_file_is_written_ten_times_and_then_once_a_minute),
        cmocka_unit_test(a_change_after_a_quiet_time_and_a_new_catalog_are_written_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
