#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/bytes.h"

static void what_is_written_is_read_back(void **unused)
{
    struct bytes_writer writer;
    struct bytes_reader reader;
    char text[8];
    uint8_t copy[3];

    (void)unused;
    bytes_writer_init(&writer, 1000);
    bytes_write_u8(&writer, 0xab);
    bytes_write_u16(&writer, 0x1234);
    bytes_write_u32(&writer, 0x89abcdef);
    bytes_write_u64(&writer, UINT64_C(0x0123456789abcdef));
    bytes_write_string(&writer, "hello");
    bytes_write_copy(&writer, "xyz", 3);
    assert_false(writer.failed);
    assert_int_equal(writer.n_bytes, 1 + 2 + 4 + 8 + 2 + 5 + 3);
    assert_int_equal(writer.data[1], 0x34); /* little-endian */

    bytes_reader_init(&reader, writer.data, writer.n_bytes);
    assert_int_equal(bytes_read_u8(&reader), 0xab);
    assert_int_equal(bytes_read_u16(&reader), 0x1234);
    assert_int_equal(bytes_read_u32(&reader), 0x89abcdef);
    assert_true(bytes_read_u64(&reader) == UINT64_C(0x0123456789abcdef));
    bytes_read_string(&reader, text, sizeof text);
    assert_string_equal(text, "hello");
    assert_false(bytes_reader_done(&reader));
    bytes_read_copy(&reader, copy, sizeof copy);
    assert_memory_equal(copy, "xyz", 3);
    assert_true(bytes_reader_done(&reader));
    bytes_writer_close(&writer);
}

static void a_reader_never_passes_the_end_and_stays_failed(void **unused)
{
    static const uint8_t data[3] = {1, 2, 3};

    (void)unused;
    for (size_t n = 0; n < 4; n++) {
        struct bytes_reader reader;

        bytes_reader_init(&reader, data, n < 4 ? n : 3);
        assert_int_equal(bytes_read_u32(&reader), 0);
        assert_true(reader.failed);
        assert_int_equal(bytes_read_u8(&reader), 0);
        assert_null(bytes_read_view(&reader, 0));
        assert_false(bytes_reader_done(&reader));
    }
}

static void an_empty_view_is_not_null(void **unused)
{
    struct bytes_reader reader;

    (void)unused;
    bytes_reader_init(&reader, NULL, 0);
    assert_non_null(bytes_read_view(&reader, 0));
    assert_true(bytes_reader_done(&reader));
}

static void strings_that_do_not_fit_or_hold_a_nul_fail(void **unused)
{
    static const uint8_t long_one[] = {4, 0, 'a', 'b', 'c', 'd'};
    static const uint8_t with_nul[] = {3, 0, 'a', 0, 'c'};
    static const uint8_t cut[] = {3, 0, 'a'};
    struct bytes_reader reader;
    char text[4];

    (void)unused;
    bytes_reader_init(&reader, long_one, sizeof long_one);
    bytes_read_string(&reader, text, sizeof text);
    assert_true(reader.failed);
    bytes_reader_init(&reader, with_nul, sizeof with_nul);
    bytes_read_string(&reader, text, sizeof text);
    assert_true(reader.failed);
    bytes_reader_init(&reader, cut, sizeof cut);
    bytes_read_string(&reader, text, sizeof text);
    assert_true(reader.failed);
}

static void a_writer_stops_at_its_limit_and_stays_failed(void **unused)
{
    struct bytes_writer writer;
    size_t n_bytes = 5;

    (void)unused;
    bytes_writer_init(&writer, 4);
    bytes_write_u32(&writer, 1);
    assert_false(writer.failed);
    bytes_write_u8(&writer, 1);
    assert_true(writer.failed);
    assert_int_equal(writer.n_bytes, 4);
    assert_null(bytes_writer_take(&writer, &n_bytes));
    assert_int_equal(n_bytes, 5);
    bytes_writer_close(&writer);
}

static void a_taken_buffer_is_the_callers(void **unused)
{
    struct bytes_writer writer;
    size_t n_bytes;

    (void)unused;
    bytes_writer_init(&writer, 100);
    bytes_write_copy(&writer, "abc", 3);
    uint8_t *data = bytes_writer_take(&writer, &n_bytes);
    assert_int_equal(n_bytes, 3);
    assert_memory_equal(data, "abc", 3);
    assert_null(writer.data);
    free(data);
    data = bytes_writer_take(&writer, &n_bytes);
    assert_non_null(data);
    assert_int_equal(n_bytes, 0);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_reader_never_passes_the_end_and_stays_failed),
        cmocka_unit_test(an_empty_view_is_not_null),
        cmocka_unit_test(strings_that_do_not_fit_or_hold_a_nul_fail),
        cmocka_unit_test(a_writer_stops_at_its_limit_and_stays_failed),
        cmocka_unit_test(a_taken_buffer_is_the_callers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
