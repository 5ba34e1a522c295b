/* The answer of a gRPC health service from bytes: fields and body in any order and in any pieces
 * give the same judgement however the body is cut.
 *
 * parses: agent/core/grpc_health.c
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/core/grpc_health.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* First bytes: the size of the pieces, the length of grpc-status, and it. The rest is the body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct grpc_reply whole = {0};
    struct grpc_reply cut = {0};
    uint16_t numbers[2];

    if (n_bytes < 2) {
        return 0;
    }
    size_t piece = data[0] + 1U;
    size_t n_status = data[1] % 8U < n_bytes - 2 ? data[1] % 8U : n_bytes - 2;
    const uint8_t *body = data + 2 + n_status;
    size_t n_body = n_bytes - 2 - n_status;
    grpc_reply_header(&whole, ":status", 7, "200", 3);
    grpc_reply_header(&whole, "grpc-status", 11, (const char *)data + 2, n_status);
    cut = whole;
    grpc_reply_data(&whole, body, n_body);
    for (size_t at = 0; at < n_body; at += piece) {
        grpc_reply_data(&cut, body + at, piece < n_body - at ? piece : n_body - at);
    }
    enum probe_reason reason = grpc_reply_judge(&whole, &numbers[0]);
    if (grpc_reply_judge(&cut, &numbers[1]) != reason || numbers[0] != numbers[1] ||
        numbers[0] > 999 || (reason == REASON_OK && whole.serving != 1)) {
        abort();
    }
    return 0;
}
