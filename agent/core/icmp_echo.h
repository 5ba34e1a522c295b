/* ICMP echo requests and their replies, IPv4 and IPv6 (RFC 792, RFC 4443 4). Pure; what is read
 * comes from anybody who can reach this node.
 *
 * A request carries 16 secret bytes: who does not see it cannot answer it. */
#ifndef JURY_CORE_ICMP_ECHO_H
#define JURY_CORE_ICMP_ECHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/hash.h"

struct icmp_echo {
    uint16_t id;    /* of the socket: what a filter looks at */
    uint32_t index; /* which probe */
    struct hash128 token;
};

#define ICMP_ECHO_BYTES (8 + 4 + 16)

/* The message without an IP header. The checksum of IPv6 is left to the kernel, which knows the
 * source. */
void icmp_echo_build(const struct icmp_echo *echo, enum addr_family family,
                     uint8_t bytes[ICMP_ECHO_BYTES]);

/* bytes: as a raw socket gives them: IPv4 with its IP header, IPv6 without one. False: not a reply
 * to a request of this module. */
bool icmp_echo_read(enum addr_family family, const uint8_t bytes[], size_t n_bytes,
                    struct icmp_echo *ret_echo);

#endif
