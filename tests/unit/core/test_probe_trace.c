/* The steps of a probe on demand: bounded, and as text that steers no terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/probe_trace.h"

static void steps_that_find_no_room_are_counted(void **state)
{
    struct probe_trace trace = {0};

    (void)state;
    for (unsigned n = 0; n < PROBE_TRACE_STEPS; n++) {
        assert_non_null(probe_trace_add(&trace, n, PROBE_STEP_IGNORED));
    }
    assert_null(probe_trace_add(&trace, 99, PROBE_STEP_DEADLINE));
    assert_null(probe_trace_add(NULL, 99, PROBE_STEP_DEADLINE));
    assert_int_equal(trace.n_steps, PROBE_TRACE_STEPS);
    assert_int_equal(trace.n_left_out, 1);
    probe_step_set_bytes(NULL, "x", 1);
    probe_step_set_icmp(NULL, false, 3, 3);
}

static void of_bytes_the_first_line_is_told_as_printable_text(void **state)
{
    struct row {
        const char *bytes;
        size_t n_bytes;
        const char *text;
    };
    static const struct row rows[] = {
        {"GET / HTTP/1.0\r\nHost: x\r\n", 25, "GET / HTTP/1.0"},
        {"PING\n", 5, "PING"},
        {"\r\n", 2, ""},
        {"", 0, ""},
        {"\033[2J\0\177\\", 7, "\\x1b[2J\\x00\\x7f\\\\"},
        {"\303\244", 2, "\\xc3\\xa4"},
        {"a\rb", 3, "a\\x0db"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct probe_trace trace = {0};
        struct probe_step *step = probe_trace_add(&trace, 1, PROBE_STEP_DATA_SENT);

        probe_step_set_bytes(step, rows[i].bytes, rows[i].n_bytes);
        assert_string_equal(step->text, rows[i].text);
        assert_int_equal(step->n_bytes, rows[i].n_bytes);
    }
}

/* At each length around the room for it. */
static void a_long_line_is_cut_and_says_so(void **state)
{
    uint8_t bytes[2 * PROBE_TRACE_TEXT_BYTES];

    (void)state;
    for (unsigned fill = 0; fill < 2; fill++) {
        memset(bytes, fill == 0 ? 'x' : 1, sizeof bytes);
        for (size_t n = 1; n <= sizeof bytes; n++) {
            struct probe_trace trace = {0};
            struct probe_step *step = probe_trace_add(&trace, 1, PROBE_STEP_DATA_SENT);

            probe_step_set_bytes(step, bytes, n);
            size_t n_text = strlen(step->text);
            bool is_cut = n_text >= 3 && strcmp(step->text + n_text - 3, "...") == 0;
            assert_in_range(n_text, 0, PROBE_TRACE_TEXT_BYTES - 1);
            assert_int_equal(is_cut, n_text != (fill == 0 ? n : 4 * n));
            assert_int_equal(step->n_bytes, n);
        }
    }
}

static void icmp_errors_have_a_name(void **state)
{
    struct probe_trace trace = {0};
    struct probe_step *step = probe_trace_add(&trace, 1, PROBE_STEP_ICMP_ERROR);

    (void)state;
    probe_step_set_icmp(step, false, 3, 3);
    assert_string_equal(step->text, "port unreachable (type 3, code 3)");
    probe_step_set_icmp(step, true, 1, 4);
    assert_string_equal(step->text, "port unreachable (type 1, code 4)");
    probe_step_set_icmp(step, false, 3, 99);
    assert_string_equal(step->text, "error (type 3, code 99)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_find_no_room_are_counted),
        cmocka_unit_test(of_bytes_the_first_line_is_told_as_printable_text),
        cmocka_unit_test(a_long_line_is_cut_and_says_so),
        cmocka_unit_test(icmp_errors_have_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
