#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/str.h"

static void a_copy_fits_or_nothing_is_written(void **unused)
{
    char to[4] = "xyz";

    (void)unused;
    assert_false(str_copy(to, sizeof to, "four"));
    assert_string_equal(to, "xyz");
    assert_true(str_copy(to, sizeof to, "abc"));
    assert_string_equal(to, "abc");
    assert_true(str_copy(to, sizeof to, ""));
    assert_false(str_copy(to, 0, ""));
}

static void decimal_numbers_are_strict(void **unused)
{
    static const char *const wrong[] = {
        "", "-1", "+1", " 1", "1 ", "0x1", "1e3", "1.0", "18446744073709551616", "101"};
    uint64_t value = 7;

    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(str_parse_u64(wrong[i], 100, &value));
        assert_int_equal(value, 7);
    }
    assert_true(str_parse_u64("100", 100, &value));
    assert_int_equal(value, 100);
    assert_true(str_parse_u64("18446744073709551615", UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
}

static void hex_goes_there_and_back(void **unused)
{
    const uint8_t data[4] = {0x00, 0x7f, 0xab, 0xff};
    uint8_t back[4];
    char text[9];

    (void)unused;
    str_hex(data, sizeof data, text);
    assert_string_equal(text, "007fabff");
    assert_true(str_unhex("007FaBfF", back, sizeof back));
    assert_memory_equal(back, data, sizeof data);
    assert_false(str_unhex("007fabf", back, sizeof back));
    assert_false(str_unhex("007fabff0", back, sizeof back));
    assert_false(str_unhex("007fabfg", back, sizeof back));
}

static void text_is_utf8_without_control_characters(void **unused)
{
    static const struct {
        const char *text;
        bool is_text;
    } rows[] = {
        {"", true},
        {"plain text, with #!~ signs", true},
        {"gr\xc3\xbc\xc3\x9f", true},
        {"\xe4\xb8\xad\xe6\x96\x87", true},
        {"\xf0\x9f\x98\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"tab\t", false},
        {"line\n", false},
        {"\x1b[31m", false},
        {"\x7f", false},
        {"\xc2\x85", false},         /* C1: next line */
        {"\x80", false},             /* lone continuation */
        {"\xc3", false},             /* cut */
        {"\xc0\xaf", false},         /* overlong */
        {"\xe0\x80\xaf", false},     /* overlong */
        {"\xf0\x80\x80\xaf", false}, /* overlong */
        {"\xed\xa0\x80", false},     /* surrogate */
        {"\xf4\x90\x80\x80", false}, /* above U+10FFFF */
        {"\xff", false},
        {"\xe4\xb8", false},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(str_is_text(rows[i].text), rows[i].is_text);
    }
}

static void what_is_no_text_is_made_text_line_by_line(void **unused)
{
    char text[] = "gr\xc3\xbc\xc3\x9f\n\x1b[31m \xc2\x9b \xff\xe4\xb8";

    (void)unused;
    str_make_text(text);
    assert_string_equal(text, "gr\xc3\xbc\xc3\x9f\n?[31m ?? ???");
}

static void edit_distance_finds_near_words(void **unused)
{
    (void)unused;
    assert_int_equal(str_distance("web", "web"), 0);
    assert_int_equal(str_distance("wbe", "web"), 2);
    assert_int_equal(str_distance("conect_port", "connect_port"), 1);
    assert_int_equal(str_distance("", "abc"), 3);
    assert_int_equal(str_distance("abc", ""), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_fits_or_nothing_is_written),
        cmocka_unit_test(decimal_numbers_are_strict),
        cmocka_unit_test(hex_goes_there_and_back),
        cmocka_unit_test(text_is_utf8_without_control_characters),
        cmocka_unit_test(what_is_no_text_is_made_text_line_by_line),
        cmocka_unit_test(edit_distance_finds_near_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
