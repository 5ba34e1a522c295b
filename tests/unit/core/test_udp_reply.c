/* The answers of udp and tcp checks, and ICMP echo: S50, S98, S99, R-PROBE-5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/icmp_echo.h"
#include "agent/core/udp_reply.h"

static void an_answer_must_begin_with_what_is_expected(void **state)
{
    static const struct {
        const char *expect;
        const char *answer;
        bool is_match;
    } rows[] = {{"hello", "hello", true},  {"hello", "hello world", true}, {"hello", "hell", false},
                {"hello", "hell0", false}, {"hello", "", false},           {"", "", true}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct udp_check udp = {.method = UDP_EXCHANGE};

        udp.expect.n_bytes = (uint16_t)strlen(rows[i].expect);
        memcpy(udp.expect.bytes, rows[i].expect, udp.expect.n_bytes);
        assert_int_equal(
            udp_reply_matches(&udp, (const uint8_t *)rows[i].answer, strlen(rows[i].answer)),
            rows[i].is_match);
    }
}

/* A DNS answer: the id as it was, the bit "response", and no error; the rest of the flags is free.
 */
static void a_mask_says_which_bits_count(void **state)
{
    struct udp_check dns = {.method = UDP_EXCHANGE,
                            .expect = {.n_bytes = 4, .bytes = {0x12, 0x34, 0x80, 0x00}},
                            .mask = {.n_bytes = 4, .bytes = {0xff, 0xff, 0x80, 0x0f}}};
    static const struct {
        uint8_t bytes[4];
        bool is_match;
    } rows[] = {{{0x12, 0x34, 0x81, 0x80}, true},
                {{0x12, 0x34, 0x85, 0x00}, true},
                {{0x12, 0x34, 0x81, 0x82}, false}, /* SERVFAIL */
                {{0x12, 0x35, 0x81, 0x80}, false},
                {{0x12, 0x34, 0x01, 0x00}, false}}; /* the question itself */

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(udp_reply_matches(&dns, rows[i].bytes, 4), rows[i].is_match);
    }
    dns.mask.n_bytes = 3; /* behind the mask all bits count */
    assert_false(udp_reply_matches(&dns, rows[0].bytes, 4));
    assert_true(udp_reply_matches(&dns, rows[1].bytes, 4));
}

static void the_beginning_of_a_stream_is_right_wrong_or_incomplete(void **state)
{
    const struct check_line expect = {.n_bytes = 3, .bytes = "220"};
    const struct check_line nothing = {.n_bytes = 0};

    (void)state;
    assert_int_equal(line_matches(&expect, 0, (const uint8_t *)"22", 2), LINE_MORE);
    assert_int_equal(line_matches(&expect, 0, (const uint8_t *)"220 mail", 8), LINE_YES);
    assert_int_equal(line_matches(&expect, 0, (const uint8_t *)"5", 1), LINE_NO);
    assert_int_equal(line_matches(&expect, 0, NULL, 0), LINE_MORE);
    assert_int_equal(line_matches(&expect, 2, (const uint8_t *)"0-", 2), LINE_YES);
    assert_int_equal(line_matches(&expect, 2, (const uint8_t *)"1", 1), LINE_NO);
    assert_int_equal(line_matches(&nothing, 0, NULL, 0), LINE_YES);
}

/* Hand-made from RFC 792 and RFC 4443: type, code, checksum, id, sequence. */
static void an_echo_request_has_the_bytes_of_its_rfc(void **state)
{
    const struct icmp_echo echo = {.id = 0x1234, .index = 0, .token = {0, 0}};
    uint8_t bytes[ICMP_ECHO_BYTES];
    static const uint8_t ipv4[8] = {8, 0, 0xe5, 0xcb, 0x12, 0x34, 0, 0};
    static const uint8_t ipv6[8] = {128, 0, 0, 0, 0x12, 0x34, 0, 0};

    (void)state;
    icmp_echo_build(&echo, ADDR_IPV4, bytes);
    assert_memory_equal(bytes, ipv4, 8);
    icmp_echo_build(&echo, ADDR_IPV6, bytes);
    assert_memory_equal(bytes, ipv6, 8);
}

static void only_a_whole_reply_is_read(void **state)
{
    const struct icmp_echo echo = {.id = 0x1234, .index = 7, .token = {1, 2}};
    struct icmp_echo seen = {.id = 0};
    uint8_t bytes[20 + ICMP_ECHO_BYTES + 1] = {0x45};
    uint8_t *icmp = bytes + 20;

    (void)state;
    icmp_echo_build(&echo, ADDR_IPV4, icmp);
    assert_false(icmp_echo_read(ADDR_IPV4, bytes, 20 + ICMP_ECHO_BYTES, &seen)); /* a request */
    icmp[0] = 0;
    assert_false(icmp_echo_read(ADDR_IPV4, bytes, 20 + ICMP_ECHO_BYTES, &seen)); /* wrong sum */
    icmp[2] = (uint8_t)(icmp[2] + 8); /* 8 less to sum up */
    assert_true(icmp_echo_read(ADDR_IPV4, bytes, 20 + ICMP_ECHO_BYTES, &seen));
    assert_int_equal(seen.id, echo.id);
    assert_int_equal(seen.index, echo.index);
    assert_memory_equal(&seen.token, &echo.token, sizeof echo.token);
    assert_false(icmp_echo_read(ADDR_IPV4, bytes, 20 + ICMP_ECHO_BYTES - 1, &seen));
    assert_false(icmp_echo_read(ADDR_IPV4, bytes, 20 + ICMP_ECHO_BYTES + 1, &seen));
    bytes[0] = 0x44; /* an IP header of 16 bytes */
    assert_false(icmp_echo_read(ADDR_IPV4, bytes, 20 + ICMP_ECHO_BYTES, &seen));
    assert_false(icmp_echo_read(ADDR_IPV4, bytes, 0, &seen));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_must_begin_with_what_is_expected),
        cmocka_unit_test(a_mask_says_which_bits_count),
        cmocka_unit_test(the_beginning_of_a_stream_is_right_wrong_or_incomplete),
        cmocka_unit_test(an_echo_request_has_the_bytes_of_its_rfc),
        cmocka_unit_test(only_a_whole_reply_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
