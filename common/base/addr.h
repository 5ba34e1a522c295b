/* IP addresses, endpoints and prefixes: one type for IPv4 and IPv6 everywhere.
 *
 * Numeric only; names are never resolved here. Every spelling of one address compares equal, an
 * IPv4-mapped IPv6 address is refused (write the IPv4 address), a zone ("%eth0") is refused. */
#ifndef JURY_BASE_ADDR_H
#define JURY_BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define ADDR_TEXT_BYTES 48     /* longest IPv6 text and NUL */
#define ENDPOINT_TEXT_BYTES 56 /* "[" IPv6 "]:65535" and NUL */
#define CIDR_TEXT_BYTES 52

enum addr_family {
    ADDR_NONE = 0,
    ADDR_IPV4 = 4,
    ADDR_IPV6 = 6
};

/* All bytes after the used ones are zero, so that memcmp and hashing are right. */
struct addr {
    uint8_t family; /* enum addr_family */
    uint8_t bytes[16];
};

struct endpoint {
    struct addr addr;
    uint16_t port;
};

struct cidr {
    struct addr addr; /* host bits are zero */
    uint8_t prefix_bits;
};

/* ERR_INVALID with a sentence that quotes the text. Brackets are not part of an address. */
int addr_parse(const char *text, struct addr *ret_addr, struct errmsg *err);
/* "192.0.2.1:80" or "[2001:db8::1]:80"; an IPv6 address without brackets is refused as ambiguous,
 * a missing port is refused (case A27). */
int endpoint_parse(const char *text, struct endpoint *ret_endpoint, struct errmsg *err);
/* "10.0.0.0/8"; host bits that are set are refused. */
int cidr_parse(const char *text, struct cidr *ret_cidr, struct errmsg *err);

/* Canonical text (RFC 5952 for IPv6). Each returns `text`. */
char *addr_format(const struct addr *addr, char text[ADDR_TEXT_BYTES]);
char *endpoint_format(const struct endpoint *endpoint, char text[ENDPOINT_TEXT_BYTES]);
char *cidr_format(const struct cidr *cidr, char text[CIDR_TEXT_BYTES]);

/* Total order: family, then bytes (then port). 0 = the same. */
int addr_compare(const struct addr *a, const struct addr *b);
int endpoint_compare(const struct endpoint *a, const struct endpoint *b);
bool cidr_contains(const struct cidr *cidr, const struct addr *addr);

/* What addr_parse could have made: a known family, zeros behind the used bytes, neither IPv4-mapped
 * nor IPv6 link-local. For values that came from bytes. */
bool addr_is_valid(const struct addr *addr);
/* Likewise for cidr_parse: length within the family, no bit set behind it. */
bool cidr_is_valid(const struct cidr *cidr);

bool addr_is_loopback(const struct addr *addr);
/* 169.254.0.0/16 and fe80::/10. */
bool addr_is_link_local(const struct addr *addr);
bool addr_is_multicast(const struct addr *addr);
/* 0.0.0.0 and ::. */
bool addr_is_unspecified(const struct addr *addr);

#endif
