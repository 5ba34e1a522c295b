/* The HTTP/1 reply parser: spec.md 4 (http), cases A01-A04, A08. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/http_reply.h"
#include "common/base/limits.h"
#include "common/base/prng.h"

#define MORE HTTP_REPLY_MORE
#define COMPLETE HTTP_REPLY_COMPLETE
#define MALFORMED HTTP_REPLY_MALFORMED

struct reply_row {
    const char *name;
    const char *bytes;
    size_t n_bytes;
    enum http_reply_state state;
    unsigned status;         /* 0 = none yet */
    unsigned n_header_bytes; /* looked at; 0 = all of them */
};

#define ROW(name, bytes, ...)                       \
    {                                               \
        name, bytes, sizeof(bytes) - 1, __VA_ARGS__ \
    }

static const struct reply_row rows[] = {
    /* whole replies */
    ROW("plain", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", COMPLETE, 200, 0),
    ROW("A01: no reason text", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", COMPLETE, 200, 0),
    ROW("no reason, no blank", "HTTP/1.1 204\r\n\r\n", COMPLETE, 204, 0),
    ROW("http/1.0", "HTTP/1.0 301 Moved\r\nLocation: http://198.51.100.9/up\r\n\r\n", COMPLETE, 301,
        0),
    ROW("later minor version", "HTTP/1.2 200 OK\r\n\r\n", COMPLETE, 200, 0),
    ROW("bare LF", "HTTP/1.1 200 OK\nServer: x\n\n", COMPLETE, 200, 0),
    ROW("bare LF, no reason", "HTTP/1.1 200\n\n", COMPLETE, 200, 0),
    ROW("mixed line ends", "HTTP/1.1 200 OK\nA: b\r\nC: d\n\r\n", COMPLETE, 200, 0),
    ROW("empty value", "HTTP/1.1 200 OK\r\nA:\r\nB: \r\n\r\n", COMPLETE, 200, 0),
    ROW("no field", "HTTP/1.1 404 Not Found\r\n\r\n", COMPLETE, 404, 0),
    ROW("obs-fold", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\td\r\n\r\n", COMPLETE, 200, 0),
    ROW("obs-fold of blanks", "HTTP/1.1 200 OK\r\nA: b\r\n \r\n\r\n", COMPLETE, 200, 0),
    ROW("8-bit reason and value", "HTTP/1.1 200 \xc3\xa4\r\nA: \xff\x01\r\n\r\n", COMPLETE, 200, 0),
    ROW("lowest status", "HTTP/1.1 200 \r\n\r\n", COMPLETE, 200, 0),
    ROW("highest status", "HTTP/1.1 599 x\r\n\r\n", COMPLETE, 599, 0),
    ROW("A04: HEAD with a length", "HTTP/1.1 200 OK\r\nContent-Length: 1192\r\n\r\n", COMPLETE, 200,
        0),
    ROW("A04: 304 with a length", "HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", COMPLETE, 304, 0),
    ROW("A08a: body is not looked at", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\0\0\r\rx",
        COMPLETE, 200, 38),
    ROW("A08b: chunked, never ended", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n",
        COMPLETE, 200, 47),
    ROW("huge chunk size", "HTTP/1.1 200 OK\r\n\r\nffffffffffffffffff\r\n", COMPLETE, 200, 19),
    ROW("token characters", "HTTP/1.1 200 OK\r\n!#$%&'*+-.^_`|~09azAZ: x\r\n\r\n", COMPLETE, 200,
        0),

    /* interim replies */
    ROW("100 is skipped", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", COMPLETE, 200, 0),
    ROW("103 with fields is skipped",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 503 x\r\n\r\n", COMPLETE, 503, 0),
    ROW("several 1xx", "HTTP/1.1 100\r\n\r\nHTTP/1.1 102 x\n\nHTTP/1.0 200 OK\r\n\r\n", COMPLETE,
        200, 0),
    ROW("199 is interim", "HTTP/1.1 199 x\r\n\r\n", MORE, 0, 0),
    ROW("101 is final", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nabc", COMPLETE, 101,
        48),
    ROW("interim alone", "HTTP/1.1 100 Continue\r\n\r\n", MORE, 0, 0),
    ROW("rubbish behind an interim", "HTTP/1.1 100 Continue\r\n\r\nhello", MALFORMED, 0, 26),
    ROW("blank line behind an interim", "HTTP/1.1 100 x\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        MALFORMED, 0, 19),

    /* not complete yet */
    ROW("nothing", "", MORE, 0, 0),
    ROW("inside the version", "HTTP/", MORE, 0, 0),
    ROW("inside the status", "HTTP/1.1 20", MORE, 0, 0),
    ROW("status line not ended", "HTTP/1.1 200 OK", MORE, 0, 0),
    ROW("CR of the status line", "HTTP/1.1 200 OK\r", MORE, 0, 0),
    ROW("status line", "HTTP/1.1 200 OK\r\n", MORE, 200, 0),
    ROW("inside a field", "HTTP/1.1 404 x\r\nServer: ngi", MORE, 404, 0),
    ROW("last LF missing", "HTTP/1.1 200 OK\r\nA: b\r\n\r", MORE, 200, 0),

    /* malformed: the byte at which it shows is the last one counted */
    ROW("TLS alert", "\x15\x03\x01\x00\x02\x02\x46", MALFORMED, 0, 1),
    ROW("SSH", "SSH-2.0-x\r\n", MALFORMED, 0, 1),
    ROW("HTML", "<html>", MALFORMED, 0, 1),
    ROW("HTTP/0.9", "HTTP/0.9 200 OK\r\n\r\n", MALFORMED, 0, 6),
    ROW("HTTP/2", "HTTP/2 200\r\n\r\n", MALFORMED, 0, 6),
    ROW("lower case", "http/1.1 200 OK\r\n\r\n", MALFORMED, 0, 1),
    ROW("no minor version", "HTTP/1. 200 OK\r\n\r\n", MALFORMED, 0, 8),
    ROW("two-digit minor version", "HTTP/1.10 200 OK\r\n\r\n", MALFORMED, 0, 9),
    ROW("two blanks", "HTTP/1.1  200 OK\r\n\r\n", MALFORMED, 0, 10),
    ROW("tab", "HTTP/1.1\t200 OK\r\n\r\n", MALFORMED, 0, 9),
    ROW("no status", "HTTP/1.1 \r\n\r\n", MALFORMED, 0, 10),
    ROW("two digits", "HTTP/1.1 20 OK\r\n\r\n", MALFORMED, 0, 12),
    ROW("four digits", "HTTP/1.1 2000 OK\r\n\r\n", MALFORMED, 0, 13),
    ROW("letters", "HTTP/1.1 2x0 OK\r\n\r\n", MALFORMED, 0, 11),
    ROW("status 099", "HTTP/1.1 099 x\r\n\r\n", MALFORMED, 0, 12),
    ROW("status 000", "HTTP/1.1 000 x\r\n\r\n", MALFORMED, 0, 12),
    ROW("status 600", "HTTP/1.1 600 x\r\n\r\n", MALFORMED, 0, 12),
    ROW("status 999", "HTTP/1.1 999 x\r\n\r\n", MALFORMED, 0, 12),
    ROW("minus", "HTTP/1.1 -20 x\r\n\r\n", MALFORMED, 0, 10),
    ROW("text glued to the status", "HTTP/1.1 200OK\r\n\r\n", MALFORMED, 0, 13),
    ROW("NUL in the status line", "HTTP/1.1 200 O\0K\r\n\r\n", MALFORMED, 0, 15),
    ROW("NUL in a name", "HTTP/1.1 200 OK\r\nA\0: b\r\n\r\n", MALFORMED, 200, 19),
    ROW("NUL in a value", "HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", MALFORMED, 200, 21),
    ROW("bare CR in the status line", "HTTP/1.1 200 O\rK\r\n\r\n", MALFORMED, 0, 16),
    ROW("bare CR in a value", "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", MALFORMED, 200, 23),
    ROW("CR CR LF", "HTTP/1.1 200 OK\r\r\n\r\n", MALFORMED, 0, 17),
    ROW("bare CR for the empty line", "HTTP/1.1 200 OK\r\n\rA: b\r\n\r\n", MALFORMED, 200, 19),
    ROW("fold before any field", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", MALFORMED, 200, 18),
    ROW("blank before the colon", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", MALFORMED, 200, 19),
    ROW("line without a colon", "HTTP/1.1 200 OK\r\nhello\r\n\r\n", MALFORMED, 200, 23),
    ROW("empty name", "HTTP/1.1 200 OK\r\n: b\r\n\r\n", MALFORMED, 200, 18),
    ROW("8-bit name", "HTTP/1.1 200 OK\r\n\xc3\xa4: b\r\n\r\n", MALFORMED, 200, 18),
    ROW("empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n", MALFORMED, 0, 1),
};

#define N_ROWS (sizeof rows / sizeof rows[0])

static void assert_row(const struct reply_row *row, const struct http_reply *reply)
{
    size_t n_looked_at = row->n_header_bytes != 0 ? row->n_header_bytes : row->n_bytes;

    if (reply->state != row->state || reply->status != row->status ||
        reply->n_header_bytes != n_looked_at) {
        fail_msg("%s: state %u status %u bytes %u, expected %u %u %zu", row->name, reply->state,
                 reply->status, (unsigned)reply->n_header_bytes, row->state, row->status,
                 n_looked_at);
    }
}

static void each_reply_has_the_expected_outcome(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        struct http_reply reply;

        http_reply_init(&reply);
        http_reply_feed(&reply, rows[i].bytes, rows[i].n_bytes);

        assert_row(&rows[i], &reply);
    }
}

static void the_outcome_is_the_same_at_every_split_point(void **state)
{
    size_t n_splits = 0;

    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        for (size_t first = 0; first <= rows[i].n_bytes; first++) {
            for (size_t second = first; second <= rows[i].n_bytes; second++) {
                struct http_reply reply;

                http_reply_init(&reply);
                http_reply_feed(&reply, rows[i].bytes, first);
                http_reply_feed(&reply, rows[i].bytes + first, second - first);
                http_reply_feed(&reply, rows[i].bytes + second, rows[i].n_bytes - second);

                assert_row(&rows[i], &reply);
                n_splits++;
            }
        }
    }
    print_message("%zu replies, %zu splits in two and three parts\n", N_ROWS, n_splits);
}

static void the_outcome_is_the_same_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        struct http_reply reply;

        http_reply_init(&reply);
        for (size_t at = 0; at < rows[i].n_bytes; at++) {
            http_reply_feed(&reply, rows[i].bytes + at, 1);
        }

        assert_row(&rows[i], &reply);
    }
}

/* A header block of exactly n_bytes, "HTTP/1.1 200 OK", fields of at most 1,000 bytes, empty line.
 */
static char *build_block(size_t n_bytes)
{
    static const char status_line[] = "HTTP/1.1 200 OK\r\n";
    char *block = malloc(n_bytes + 1);
    size_t at = sizeof status_line - 1;

    assert_non_null(block);
    memcpy(block, status_line, at);
    while (at < n_bytes - 2) {
        size_t left = n_bytes - 2 - at;
        size_t line = left > 1010 ? 1000 : left;

        assert_true(line >= 5);
        memset(block + at, 'x', line);
        memcpy(block + at, "A:", 2);
        memcpy(block + at + line - 2, "\r\n", 2);
        at += line;
    }
    memcpy(block + at, "\r\n", 2);
    return block;
}

static void sixteen_kib_of_header_pass_and_one_more_byte_fails(void **state)
{
    struct http_reply reply;

    (void)state;
    for (size_t piece = 1; piece <= LIMIT_HTTP_HEADER_BYTES + 1; piece = piece * 3 + 1) {
        char *block = build_block(LIMIT_HTTP_HEADER_BYTES);

        http_reply_init(&reply);
        for (size_t at = 0; at < LIMIT_HTTP_HEADER_BYTES; at += piece) {
            size_t left = LIMIT_HTTP_HEADER_BYTES - at;
            http_reply_feed(&reply, block + at, left < piece ? left : piece);
        }
        assert_int_equal(reply.state, HTTP_REPLY_COMPLETE);
        assert_int_equal(reply.n_header_bytes, 16384);
        free(block);

        block = build_block(LIMIT_HTTP_HEADER_BYTES + 1);
        http_reply_init(&reply);
        for (size_t at = 0; at < LIMIT_HTTP_HEADER_BYTES + 1; at += piece) {
            size_t left = LIMIT_HTTP_HEADER_BYTES + 1 - at;
            http_reply_feed(&reply, block + at, left < piece ? left : piece);
        }
        assert_int_equal(reply.state, HTTP_REPLY_MALFORMED);
        assert_int_equal(reply.n_header_bytes, 16385);
        free(block);
    }
}

static void a_status_line_without_end_is_bounded(void **state)
{
    struct http_reply reply;
    size_t n_fed = 0;

    (void)state;
    http_reply_init(&reply);
    http_reply_feed(&reply, "HTTP/1.1 200 ", 13);
    while (http_reply_feed(&reply, "xxxxxxxxxx", 10) == HTTP_REPLY_MORE) {
        n_fed += 10;
        assert_true(n_fed < 20000);
    }

    assert_int_equal(reply.state, HTTP_REPLY_MALFORMED);
    assert_int_equal(reply.n_header_bytes, 16385);
    assert_int_equal(reply.status, 0);
}

static void a_hundred_continue_for_ever_is_bounded(void **state)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct http_reply reply;
    size_t n_replies = 0;

    (void)state;
    http_reply_init(&reply);
    while (http_reply_feed(&reply, interim, sizeof interim - 1) == HTTP_REPLY_MORE) {
        n_replies++;
        assert_true(n_replies < 1000);
    }

    assert_int_equal(reply.state, HTTP_REPLY_MALFORMED);
    assert_int_equal(n_replies, 16384 / (sizeof interim - 1));
}

static void random_splits_of_random_damage_agree(void **state)
{
    struct prng prng;

    (void)state;
    prng_init(&prng, 7);
    for (int round = 0; round < 20000; round++) {
        const struct reply_row *row = &rows[prng_below(&prng, N_ROWS)];
        struct http_reply whole;
        struct http_reply split;
        char bytes[128];

        assert_true(row->n_bytes <= sizeof bytes);
        memcpy(bytes, row->bytes, row->n_bytes);
        if (row->n_bytes > 0) {
            bytes[prng_below(&prng, row->n_bytes)] = (char)prng_below(&prng, 256);
        }
        http_reply_init(&whole);
        http_reply_init(&split);
        http_reply_feed(&whole, bytes, row->n_bytes);
        for (size_t at = 0; at < row->n_bytes;) {
            size_t piece = 1 + prng_below(&prng, row->n_bytes - at);
            http_reply_feed(&split, bytes + at, piece);
            at += piece;
        }

        assert_memory_equal(&whole, &split, sizeof whole);
    }
}

/* Case A02: expected set 200-299,302. */
static void only_expected_codes_pass_and_others_name_the_code(void **state)
{
    static const struct {
        const char *bytes;
        enum probe_reason reason;
        unsigned status;
    } table[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", REASON_OK, 200},
        {"HTTP/1.1 204 x\r\n\r\n", REASON_OK, 204},
        {"HTTP/1.1 302 x\r\n\r\n", REASON_OK, 302},
        {"HTTP/1.1 303 x\r\n\r\n", REASON_HTTP_CODE_NOT_MATCH, 303},
        {"HTTP/1.1 206 x\r\n\r\n", REASON_OK, 206},
        {"HTTP/1.1 404 x\r\n\r\n", REASON_HTTP_CODE_NOT_MATCH, 404},
        {"HTTP/1.1 101 x\r\n\r\n", REASON_HTTP_CODE_NOT_MATCH, 101},
        {"HTTP/1.1 600 x\r\n\r\n", REASON_HTTP_INVALID_HEADER, 0},
    };
    struct http_codes expect = {0};

    (void)state;
    http_codes_add(&expect, 200, 299);
    http_codes_add(&expect, 302, 302);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct http_reply reply;

        http_reply_init(&reply);
        http_reply_feed(&reply, table[i].bytes, strlen(table[i].bytes));

        assert_int_equal(http_reply_judge(&reply, &expect), table[i].reason);
        assert_int_equal(reply.status, table[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reply_has_the_expected_outcome),
        cmocka_unit_test(the_outcome_is_the_same_at_every_split_point),
        cmocka_unit_test(the_outcome_is_the_same_byte_by_byte),
        cmocka_unit_test(sixteen_kib_of_header_pass_and_one_more_byte_fails),
        cmocka_unit_test(a_status_line_without_end_is_bounded),
        cmocka_unit_test(a_hundred_continue_for_ever_is_bounded),
        cmocka_unit_test(random_splits_of_random_damage_agree),
        cmocka_unit_test(only_expected_codes_pass_and_others_name_the_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
