#include "agent/core/udp_reply.h"

#include <string.h>

#include "common/base/plant.h"

bool udp_reply_matches(const struct udp_check *udp, const uint8_t bytes[], size_t n_bytes)
{
    const struct check_data *expect = &udp->expect;

    if (plant_is("reply-any")) {
        return true;
    }
    if (n_bytes < expect->n_bytes && !plant_is("udp-length")) {
        return false;
    }
    for (uint16_t i = 0; i < expect->n_bytes; i++) {
        unsigned mask = i < udp->mask.n_bytes ? udp->mask.bytes[i] : UINT8_MAX;

        if (((unsigned)(bytes[i] ^ expect->bytes[i]) & mask) != 0) {
            return false;
        }
    }
    return true;
}

enum line_match line_matches(const struct check_line *expect, size_t n_before,
                             const uint8_t bytes[], size_t n_bytes)
{
    size_t n_left = n_before < expect->n_bytes ? expect->n_bytes - n_before : 0;
    size_t n = n_bytes < n_left ? n_bytes : n_left;

    if (n > 0 && memcmp(bytes, expect->bytes + n_before, n) != 0 && !plant_is("reply-any")) {
        return LINE_NO;
    }
    return n == n_left ? LINE_YES : LINE_MORE;
}
