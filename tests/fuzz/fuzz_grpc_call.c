/* Foreign bytes: what a backend sends over HTTP/2 to a grpc probe. Oracle: no input crashes, the
 * judgement does not depend on how the bytes are cut, and only an answer that says SERVING passes.
 *
 * parses: agent/probe/grpc_call.c agent/core/grpc_health.c
 * part: JURY_GRPC */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/probe/grpc_call.h"

/* Pings and settings that one read may carry before the library calls it a flood: only of so many
 * bytes does the judgement depend on how many came at a time. */
#define FLOOD_BYTES (32 * 9)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* As connect_grpc.c does: send all, judge, take what has come. */
static enum probe_reason talk(const uint8_t *bytes, size_t n_bytes, size_t piece,
                              uint16_t *ret_number)
{
    static const struct health_check check = {.type = CHECK_TYPE_GRPC, .timeout_ms = 500};
    struct target_definition definition = {.check = (struct health_check *)(uintptr_t)&check};
    const void *output;
    size_t n_output;

    definition.to.addr.family = ADDR_IPV4;
    definition.to.port = 80;
    struct grpc_call *call = grpc_call_new(&definition);
    for (size_t at = 0;;) {
        while ((n_output = grpc_call_output(call, &output)) > 0) {
            grpc_call_drop(call, n_output > 7 ? n_output - 7 : n_output);
        }
        enum probe_reason reason = grpc_call_judge(call, ret_number);
        if (reason != REASON_NONE || at == n_bytes) {
            grpc_call_finish(call);
            (void)grpc_call_output(call, &output);
            grpc_call_free(call);
            return reason;
        }
        size_t n = piece < n_bytes - at ? piece : n_bytes - at;
        if (!grpc_call_take(call, bytes + at, n)) {
            abort();
        }
        at += n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    uint16_t numbers[2] = {0, 0};

    if (n_bytes < 2) {
        return 0;
    }
    enum probe_reason cut = talk(data + 1, n_bytes - 1, data[0] + 1U, &numbers[0]);
    enum probe_reason whole = talk(data + 1, n_bytes - 1, n_bytes, &numbers[1]);
    if ((cut != whole || numbers[0] != numbers[1]) && n_bytes < FLOOD_BYTES) {
        abort();
    }
    if (numbers[0] > 999 || (cut == REASON_OK && numbers[0] != 0)) {
        abort();
    }
    return 0;
}
