/* Times need a unit (case A19). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/units.h"

static void times_with_units_are_read(void **unused)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } rows[] = {
        {"5s", 5000},      {"250ms", 250}, {"1.5s", 1500},  {"5m", 300000},   {"1h", 3600000},
        {"0s", 0},         {"0ms", 0},     {"0.2s", 200},   {"0.001s", 1},    {"0.25m", 15000},
        {"0.5h", 1800000}, {"100ms", 100}, {"1.50s", 1500}, {"00005s", 5000}, {"3600s", 3600000},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t ms = 77;
        struct errmsg err;

        assert_int_equal(units_parse_duration_ms(rows[i].text, &ms, &err), 0);
        assert_int_equal(ms, rows[i].ms);
    }
}

static void everything_else_is_refused_and_named(void **unused)
{
    static const char *const texts[] = {
        "5",
        "",
        "s",
        "-1s",
        "+1s",
        "1e3s",
        "1e3",
        " 5s",
        "5 s",
        "5s ",
        "5S",
        "5sec",
        "5M",
        "5d",
        ".5s",
        "5.s",
        "0x5s",
        "5,5s",
        "5us",
        "1.5.5s",
        "inf",
        "nans",
        "99999999999999999999h",
        "18446744073709551616ms",
        "0.0001s",
        "1.5ms",
        "10 years",
    };

    (void)unused;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t ms = 77;
        struct errmsg err = {{0}};

        assert_int_equal(units_parse_duration_ms(texts[i], &ms, &err), ERR_INVALID);
        assert_int_equal(ms, 77);
        assert_non_null(strstr(err.text, texts[i]));
    }
}

static void a_bare_number_is_told_about_units(void **unused)
{
    uint64_t ms;
    struct errmsg err;

    (void)unused;
    assert_int_equal(units_parse_duration_ms("5", &ms, &err), ERR_INVALID);
    assert_string_equal(err.text,
                        "\"5\" is not a time: write a number and a unit such as 5s, 250ms or 5m");
    assert_int_equal(units_parse_duration_ms("0.0001s", &ms, &err), ERR_INVALID);
    assert_string_equal(err.text, "\"0.0001s\" is finer than a millisecond");
}

static void what_is_printed_reads_back_the_same(void **unused)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        {0, "0s"},       {1, "1ms"},       {250, "250ms"},     {999, "999ms"},   {1000, "1s"},
        {1500, "1.5s"},  {1050, "1.05s"},  {60000, "1m"},      {61000, "61s"},   {300000, "5m"},
        {3600000, "1h"}, {5400000, "90m"}, {19001, "19.001s"}, {350000, "350s"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        uint64_t ms;

        assert_string_equal(units_format_duration_ms(rows[i].ms, text, sizeof text), rows[i].text);
        assert_int_equal(units_parse_duration_ms(text, &ms, NULL), 0);
        assert_int_equal(ms, rows[i].ms);
    }
}

/* A rest of "296.676s" was told. */
static void a_measured_time_is_told_in_two_units_at_most(void **unused)
{
    static const struct {
        uint64_t us;
        const char *text;
    } rows[] = {
        {0, "0s"},
        {999, "999us"},
        {12999, "12ms"},
        {1000000, "1s"},
        {1009999, "1s"},
        {4570000, "4.57s"},
        {59999999, "59.99s"},
        {60000000, "1m0s"},
        {296676000, "4m56s"},
        {3599999999, "59m59s"},
        {UINT64_C(10920000000), "3h2m"},
        {UINT64_C(190800000000), "2d5h"},
        {UINT64_MAX, "213503982d8h"},
    };
    char text[32];

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(units_format_span_us(rows[i].us, text, sizeof text), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_with_units_are_read),
        cmocka_unit_test(everything_else_is_refused_and_named),
        cmocka_unit_test(a_bare_number_is_told_about_units),
        cmocka_unit_test(what_is_printed_reads_back_the_same),
        cmocka_unit_test(a_measured_time_is_told_in_two_units_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
