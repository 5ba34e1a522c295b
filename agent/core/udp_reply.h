/* Whether a datagram, or the beginning of a TCP answer, is the expected one. Pure. */
#ifndef JURY_CORE_UDP_REPLY_H
#define JURY_CORE_UDP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/check.h"

/* Whether `bytes` begin with what is expected: the bits of the mask of the bytes that it has, all
 * bits of those behind it. Nothing expected is what everything begins with. */
bool udp_reply_matches(const struct udp_check *udp, const uint8_t bytes[], size_t n_bytes);

/* The same of a stream that goes on. n_before: how many bytes came earlier, all of them right. */
enum line_match {
    LINE_MORE, /* right so far, not complete yet */
    LINE_YES,
    LINE_NO
};
enum line_match line_matches(const struct check_line *expect, size_t n_before,
                             const uint8_t bytes[], size_t n_bytes);

#endif
