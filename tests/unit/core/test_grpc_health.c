/* What a gRPC health check says and makes of answers; the wire around it: grpc_probes.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/grpc_health.h"

static void the_request_is_the_name_of_the_service(void **state)
{
    static const uint8_t wanted[] = {0, 0, 0, 0, 5, 0x0a, 3, 'a', '.', 'b'};
    uint8_t bytes[GRPC_REQUEST_BYTES_MAX];
    char longest[LIMIT_GRPC_SERVICE_BYTES + 1];

    (void)state;
    assert_int_equal(grpc_health_request("a.b", bytes), sizeof wanted);
    assert_memory_equal(bytes, wanted, sizeof wanted);
    assert_int_equal(grpc_health_request("", bytes), GRPC_PREFIX_BYTES);
    assert_memory_equal(bytes, "\0\0\0\0\0", GRPC_PREFIX_BYTES);
    memset(longest, 'x', sizeof longest);
    longest[LIMIT_GRPC_SERVICE_BYTES] = '\0';
    assert_int_equal(grpc_health_request(longest, bytes), sizeof bytes);
}

struct row {
    const char *http, *grpc; /* NULL = not there */
    const char *body;
    size_t n_body;
    enum probe_reason reason;
    uint16_t number;
};
#define BODY(text) (text), sizeof(text) - 1

static const struct row rows[] = {
    {"200", "0", BODY("\0\0\0\0\2\x08\1"), REASON_OK, 0},
    {"200", "0", BODY("\0\0\0\0\2\x08\2"), REASON_GRPC_NOT_SERVING, 2},
    {"200", "0", BODY("\0\0\0\0\0"), REASON_GRPC_NOT_SERVING, 0},
    {"200", "0", BODY("\0\0\0\0\4\x08\2\x08\1"), REASON_OK, 0},
    {"200", "0", BODY("\0\0\0\0\3\x08\xff\x7f"), REASON_GRPC_NOT_SERVING, 255},
    {"200", "0", BODY("\0\0\0\0\3\x08\x81\0"), REASON_OK, 0},
    {"200", "0", BODY("\0\0\0\0\7\x12\3abc\x08\1"), REASON_OK, 0},
    {"200", "0", BODY("\0\0\0\0\4\x12\0\x08\1"), REASON_OK, 0},
    {"200", "0", BODY("\0\0\0\0\7\x1d....\x08\1"), REASON_OK, 0},
    {"200", "0", BODY("\0\0\0\0\13\x19........\x08\1"), REASON_OK, 0},
    {"200", "0", BODY("\0\0\0\0\4\x10\1\x08\1"), REASON_OK, 0},
    {"200", "5", BODY(""), REASON_GRPC_STATUS, 5},
    {"200", "123456", BODY(""), REASON_GRPC_STATUS, 999},
    {"200", "5", BODY("\0\0\0\0\2\x08\1"), REASON_GRPC_STATUS, 5},
    {"503", NULL, BODY(""), REASON_HTTP_CODE_NOT_MATCH, 503},
    {"503", "0", BODY("\0\0\0\0\2\x08\1"), REASON_HTTP_CODE_NOT_MATCH, 503},
    {NULL, "0", BODY("\0\0\0\0\2\x08\1"), REASON_GRPC_INVALID, 0},
    {"200", NULL, BODY("\0\0\0\0\2\x08\1"), REASON_GRPC_INVALID, 0},
    {"200", "", BODY("\0\0\0\0\2\x08\1"), REASON_GRPC_INVALID, 0},
    {"200", "x", BODY("\0\0\0\0\2\x08\1"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY(""), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\0\0\0\0"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\0\0\0\0\2\x08"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\0\0\0\0\2\x08\1\0"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\1\0\0\0\2\x08\1"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\0\0\0\0\1\x08"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\0\0\0\0\2\x08\x80"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\0\0\0\0\2\x12\1"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\0\0\0\0\2\x0b\1"), REASON_GRPC_INVALID, 0}, /* a group */
    {"200", "0", BODY("\0\0\0\0\2\0\1"), REASON_GRPC_INVALID, 0},   /* field 0 */
    {"200", "0", BODY("\0\0\4\1\2\x08\1"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\0\xff\xff\xff\xff\x08\1"), REASON_GRPC_INVALID, 0},
    {"200", "0", BODY("\0\0\0\0\14\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
     REASON_GRPC_INVALID, 0},
};

static void answers_are_judged_however_they_are_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];

        for (size_t piece = 1; piece <= row->n_body + 1; piece++) {
            struct grpc_reply reply = {0};
            uint16_t number = 1;

            if (row->http != NULL) {
                grpc_reply_header(&reply, ":status", 7, row->http, strlen(row->http));
            }
            grpc_reply_header(&reply, "content-type", 12, "application/grpc", 16);
            for (size_t at = 0; at < row->n_body; at += piece) {
                size_t left = row->n_body - at;

                grpc_reply_data(&reply, (const uint8_t *)row->body + at,
                                left < piece ? left : piece);
            }
            if (row->grpc != NULL) {
                grpc_reply_header(&reply, "grpc-status", 11, row->grpc, strlen(row->grpc));
            }
            if (grpc_reply_judge(&reply, &number) != row->reason || number != row->number) {
                fail_msg("row %zu in pieces of %zu: %s (%u)", i, piece,
                         probe_reason_word(grpc_reply_judge(&reply, &number)), number);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_is_the_name_of_the_service),
        cmocka_unit_test(answers_are_judged_however_they_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
