/* Foreign bytes: the reply to an http probe. Oracle: the outcome does not depend on how the bytes
 * are split over reads, never more than the bound is looked at, and no input crashes.
 *
 * parses: agent/core/http_reply.c
 */
#include <stdlib.h>
#include <string.h>

#include "agent/core/http_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct http_reply whole;
    struct http_reply split;
    size_t piece = n_bytes > 0 ? (size_t)data[n_bytes - 1] + 1 : 1;

    http_reply_init(&whole);
    http_reply_init(&split);
    http_reply_feed(&whole, data, n_bytes);
    for (size_t at = 0; at < n_bytes; at += piece) {
        http_reply_feed(&split, data + at, n_bytes - at < piece ? n_bytes - at : piece);
    }
    if (memcmp(&whole, &split, sizeof whole) != 0 ||
        whole.n_header_bytes > LIMIT_HTTP_HEADER_BYTES + 1 ||
        (whole.state == HTTP_REPLY_COMPLETE && (whole.status < 101 || whole.status > 599))) {
        abort();
    }
    return 0;
}
