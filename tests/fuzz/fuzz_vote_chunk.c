/* Foreign bytes as a message of a peer (all kinds, vote chunks among them): refused, or a value
 * that encodes and decodes to the same again. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/mesh/peer_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static struct peer_message message, again;
    uint8_t *first, *second;
    size_t n_first, n_second;

    if (peer_decode(data, n_bytes, &message, NULL) != 0) {
        return 0;
    }
    assert(peer_encode(&message, &first, &n_first) == 0);
    assert(peer_decode(first, n_first, &again, NULL) == 0);
    assert(peer_encode(&again, &second, &n_second) == 0);
    assert(n_first == n_second && memcmp(first, second, n_first) == 0);
    free(first);
    free(second);
    return 0;
}
