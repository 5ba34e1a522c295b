/* Verdicts and deadlines of the last-known-good file from any bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/lkg_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct kept_verdict *verdicts = NULL;
    struct kept_deadline *deadlines = NULL;
    size_t n;

    lkg_decode_verdicts(data, n_bytes, &verdicts, &n);
    lkg_decode_deadlines(data, n_bytes, &deadlines, &n);
    free(verdicts);
    free(deadlines);
    return 0;
}
