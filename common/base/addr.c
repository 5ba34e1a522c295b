#include "common/base/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static unsigned family_bits(const struct addr *addr)
{
    return addr->family == ADDR_IPV4 ? 32 : 128;
}

static bool is_mapped(const uint8_t bytes[16])
{
    static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

    return memcmp(bytes, prefix, sizeof prefix) == 0;
}

bool addr_is_valid(const struct addr *addr)
{
    static const uint8_t zero[12];

    if (addr->family == ADDR_IPV4) {
        return memcmp(addr->bytes + 4, zero, sizeof zero) == 0;
    }
    return addr->family == ADDR_IPV6 && !is_mapped(addr->bytes) && !addr_is_link_local(addr);
}

int addr_parse(const char *text, struct addr *ret_addr, struct errmsg *err)
{
    struct addr addr = {0};

    if (strchr(text, '%') != NULL) {
        return errmsg_set(err, ERR_INVALID, "\"%.60s\": an address with a zone is not supported",
                          text);
    }
    if (inet_pton(AF_INET, text, addr.bytes) == 1) {
        addr.family = ADDR_IPV4;
    } else if (inet_pton(AF_INET6, text, addr.bytes) == 1) {
        addr.family = ADDR_IPV6;
        if (is_mapped(addr.bytes)) {
            return errmsg_set(err, ERR_INVALID,
                              "\"%.60s\" is an IPv4-mapped address: write the IPv4 address", text);
        }
        if (addr_is_link_local(&addr)) {
            return errmsg_set(err, ERR_INVALID,
                              "\"%.60s\" is link-local: it needs a zone, which is not supported",
                              text);
        }
    } else {
        return errmsg_set(err, ERR_INVALID,
                          "\"%.60s\" is not an IP address (names are not resolved)", text);
    }
    *ret_addr = addr;
    return 0;
}

static int parse_port(const char *text, const char *whole, uint16_t *ret_port, struct errmsg *err)
{
    unsigned port = 0;
    size_t n = strlen(text);

    for (size_t i = 0; i < n && i < 6; i++) {
        if (text[i] < '0' || text[i] > '9') {
            port = 65536;
            break;
        }
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    if (n == 0 || n > 5 || port < 1 || port > 65535) {
        return errmsg_set(err, ERR_INVALID, "\"%.60s\": the port must be 1..65535", whole);
    }
    *ret_port = (uint16_t)port;
    return 0;
}

int endpoint_parse(const char *text, struct endpoint *ret_endpoint, struct errmsg *err)
{
    char host[ADDR_TEXT_BYTES];
    struct endpoint endpoint = {0};
    const char *begin = text;
    const char *end;
    const char *colon;

    if (text[0] == '[') {
        begin = text + 1;
        end = strchr(begin, ']');
        if (end == NULL) {
            return errmsg_set(err, ERR_INVALID, "\"%.60s\": the \"]\" is missing", text);
        }
        colon = end + 1;
    } else {
        end = strchr(text, ':');
        if (end != NULL && strchr(end + 1, ':') != NULL) {
            return errmsg_set(err, ERR_INVALID,
                              "\"%.60s\" is ambiguous: write an IPv6 address as [address]:port",
                              text);
        }
        colon = end;
    }
    if (colon == NULL || *colon != ':') {
        return errmsg_set(err, ERR_INVALID, "\"%.60s\" has no port: write address:port", text);
    }
    if ((size_t)(end - begin) >= sizeof host) {
        return errmsg_set(err, ERR_INVALID, "\"%.60s\" is not an address and port", text);
    }
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';

    int rc = addr_parse(host, &endpoint.addr, err);
    if (rc != 0) {
        return rc;
    }
    if ((text[0] == '[') != (endpoint.addr.family == ADDR_IPV6)) {
        return errmsg_set(err, ERR_INVALID, "\"%.60s\": brackets are for IPv6 addresses", text);
    }
    rc = parse_port(colon + 1, text, &endpoint.port, err);
    if (rc != 0) {
        return rc;
    }
    *ret_endpoint = endpoint;
    return 0;
}

static void mask_host_bits(struct addr *addr, unsigned prefix_bits)
{
    for (unsigned bit = prefix_bits; bit < 128; bit++) {
        addr->bytes[bit / 8] = (uint8_t)(addr->bytes[bit / 8] & ~(0x80u >> (bit % 8)));
    }
}

bool cidr_is_valid(const struct cidr *cidr)
{
    struct addr masked = cidr->addr;

    if (!addr_is_valid(&cidr->addr) || cidr->prefix_bits > family_bits(&cidr->addr)) {
        return false;
    }
    mask_host_bits(&masked, cidr->prefix_bits);
    return addr_compare(&masked, &cidr->addr) == 0;
}

int cidr_parse(const char *text, struct cidr *ret_cidr, struct errmsg *err)
{
    char host[ADDR_TEXT_BYTES];
    struct cidr cidr = {0};
    unsigned bits = 0;
    const char *slash = strchr(text, '/');

    if (slash == NULL || (size_t)(slash - text) >= sizeof host) {
        return errmsg_set(err, ERR_INVALID, "\"%.60s\" is not a prefix: write address/bits", text);
    }
    memcpy(host, text, (size_t)(slash - text));
    host[slash - text] = '\0';
    int rc = addr_parse(host, &cidr.addr, err);
    if (rc != 0) {
        errmsg_prefix(err, "\"%.60s\"", text);
        return rc;
    }
    size_t n = strlen(slash + 1);
    for (size_t i = 1; i <= n && i <= 4; i++) {
        if (slash[i] < '0' || slash[i] > '9') {
            bits = 999;
            break;
        }
        bits = bits * 10 + (unsigned)(slash[i] - '0');
    }
    if (n == 0 || n > 3 || bits > family_bits(&cidr.addr)) {
        return errmsg_set(err, ERR_INVALID, "\"%.60s\": the prefix length must be 0..%u", text,
                          family_bits(&cidr.addr));
    }
    struct addr masked = cidr.addr;
    mask_host_bits(&masked, bits);
    if (addr_compare(&masked, &cidr.addr) != 0) {
        return errmsg_set(err, ERR_INVALID, "\"%.60s\" has bits set behind the prefix", text);
    }
    cidr.prefix_bits = (uint8_t)bits;
    *ret_cidr = cidr;
    return 0;
}

char *addr_format(const struct addr *addr, char text[ADDR_TEXT_BYTES])
{
    if (addr->family == ADDR_NONE) {
        snprintf(text, ADDR_TEXT_BYTES, "none");
    } else {
        inet_ntop(addr->family == ADDR_IPV4 ? AF_INET : AF_INET6, addr->bytes, text,
                  ADDR_TEXT_BYTES);
    }
    return text;
}

char *endpoint_format(const struct endpoint *endpoint, char text[ENDPOINT_TEXT_BYTES])
{
    char host[ADDR_TEXT_BYTES];
    const char *format = endpoint->addr.family == ADDR_IPV6 ? "[%s]:%u" : "%s:%u";

    addr_format(&endpoint->addr, host);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* one of the two literals above */
    snprintf(text, ENDPOINT_TEXT_BYTES, format, host, (unsigned)endpoint->port);
#pragma GCC diagnostic pop
    return text;
}

char *cidr_format(const struct cidr *cidr, char text[CIDR_TEXT_BYTES])
{
    char host[ADDR_TEXT_BYTES];

    snprintf(text, CIDR_TEXT_BYTES, "%s/%u", addr_format(&cidr->addr, host),
             (unsigned)cidr->prefix_bits);
    return text;
}

int addr_compare(const struct addr *a, const struct addr *b)
{
    if (a->family != b->family) {
        return a->family < b->family ? -1 : 1;
    }
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

int endpoint_compare(const struct endpoint *a, const struct endpoint *b)
{
    int order = addr_compare(&a->addr, &b->addr);

    if (order != 0) {
        return order;
    }
    return (a->port > b->port) - (a->port < b->port);
}

bool cidr_contains(const struct cidr *cidr, const struct addr *addr)
{
    struct addr masked = *addr;

    if (cidr->addr.family != addr->family) {
        return false;
    }
    mask_host_bits(&masked, cidr->prefix_bits);
    return addr_compare(&masked, &cidr->addr) == 0;
}

bool addr_is_loopback(const struct addr *addr)
{
    static const uint8_t one[16] = {[15] = 1};

    if (addr->family == ADDR_IPV4) {
        return addr->bytes[0] == 127;
    }
    return memcmp(addr->bytes, one, sizeof one) == 0;
}

bool addr_is_link_local(const struct addr *addr)
{
    if (addr->family == ADDR_IPV4) {
        return addr->bytes[0] == 169 && addr->bytes[1] == 254;
    }
    return addr->bytes[0] == 0xfe && (addr->bytes[1] & 0xc0) == 0x80;
}

bool addr_is_multicast(const struct addr *addr)
{
    return addr->family == ADDR_IPV4 ? (addr->bytes[0] & 0xf0) == 0xe0 : addr->bytes[0] == 0xff;
}

bool addr_is_unspecified(const struct addr *addr)
{
    static const uint8_t zero[16];

    return memcmp(addr->bytes, zero, sizeof zero) == 0;
}
