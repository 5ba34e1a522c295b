/* A last-known-good file of any bytes: whole or refused. The checksum keeps a fuzzer out, so it is
 * made right first. */
#include <stdlib.h>
#include <string.h>

#include "agent/store/lkg.h"
#include "common/base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void decode(const uint8_t *data, size_t n_bytes)
{
    uint8_t *copy = malloc(n_bytes + 1);
    struct lkg lkg;
    struct errmsg err;

    if (copy == NULL) {
        return;
    }
    memcpy(copy, data, n_bytes);
    if (lkg_decode(copy, n_bytes, &lkg, &err) == 0) {
        lkg_close(&lkg);
    } else {
        free(copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    /* The same key as in lkg.c: only a test may know it. */
    static const struct hash_key sum_key = {UINT64_C(0x6c6b672d66696c65),
                                            UINT64_C(0x6a7572792d766f74)};
    uint8_t *whole = malloc(n_bytes + 16);

    decode(data, n_bytes);
    if (whole != NULL) {
        struct hash128 sum = hash_128(&sum_key, data, n_bytes);

        memcpy(whole, data, n_bytes);
        memcpy(whole + n_bytes, &sum, sizeof sum);
        decode(whole, n_bytes + 16);
    }
    free(whole);
    return 0;
}
