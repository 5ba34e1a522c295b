#include "agent/core/icmp_echo.h"

#include <string.h>

#define ECHO_REQUEST_IPV4 8
#define ECHO_REPLY_IPV4 0
#define ECHO_REQUEST_IPV6 128
#define ECHO_REPLY_IPV6 129
#define IPV4_HEADER_BYTES_MIN 20

static uint16_t checksum(const uint8_t bytes[], size_t n_bytes)
{
    uint32_t sum = 0;

    for (size_t i = 0; i + 1 < n_bytes; i += 2) {
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum += sum >> 16;
    return (uint16_t)~sum;
}

void icmp_echo_build(const struct icmp_echo *echo, enum addr_family family,
                     uint8_t bytes[ICMP_ECHO_BYTES])
{
    memset(bytes, 0, ICMP_ECHO_BYTES);
    bytes[0] = family == ADDR_IPV4 ? ECHO_REQUEST_IPV4 : ECHO_REQUEST_IPV6;
    bytes[4] = (uint8_t)(echo->id >> 8);
    bytes[5] = (uint8_t)echo->id;
    memcpy(bytes + 8, &echo->index, sizeof echo->index);
    memcpy(bytes + 12, &echo->token, sizeof echo->token);
    if (family == ADDR_IPV4) {
        uint16_t sum = checksum(bytes, ICMP_ECHO_BYTES);

        bytes[2] = (uint8_t)(sum >> 8);
        bytes[3] = (uint8_t)sum;
    }
}

bool icmp_echo_read(enum addr_family family, const uint8_t bytes[], size_t n_bytes,
                    struct icmp_echo *ret_echo)
{
    size_t at = 0;

    if (family == ADDR_IPV4) {
        at = n_bytes > 0 ? (size_t)(bytes[0] & 0xf) * 4 : 0;
        if (at < IPV4_HEADER_BYTES_MIN) {
            return false;
        }
    }
    if (n_bytes < at || n_bytes - at != ICMP_ECHO_BYTES ||
        bytes[at] != (family == ADDR_IPV4 ? ECHO_REPLY_IPV4 : ECHO_REPLY_IPV6) ||
        bytes[at + 1] != 0 || (family == ADDR_IPV4 && checksum(bytes + at, ICMP_ECHO_BYTES) != 0)) {
        return false;
    }
    ret_echo->id = (uint16_t)(bytes[at + 4] << 8 | bytes[at + 5]);
    memcpy(&ret_echo->index, bytes + at + 8, sizeof ret_echo->index);
    memcpy(&ret_echo->token, bytes + at + 12, sizeof ret_echo->token);
    return true;
}
