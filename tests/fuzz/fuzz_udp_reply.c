/* Foreign bytes: datagrams of a backend, the beginning of a TCP answer, and whatever ICMP a raw
 * socket gets. Oracle: no input crashes; a match is one by a second, plainer look; an answer that
 * comes in parts is judged as the whole; what this node asks is read back from its reply and from
 * nothing shorter.
 *
 * parses: agent/core/udp_reply.c agent/core/icmp_echo.c
 * plant: udp-length
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/icmp_echo.h"
#include "agent/core/udp_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check_match(const struct udp_check *udp, const uint8_t *data, size_t n_bytes)
{
    bool is_match = n_bytes >= udp->expect.n_bytes;

    for (size_t i = 0; is_match && i < udp->expect.n_bytes; i++) {
        uint8_t mask = i < udp->mask.n_bytes ? udp->mask.bytes[i] : 0xff;

        is_match = (data[i] & mask) == (udp->expect.bytes[i] & mask);
    }
    if (udp_reply_matches(udp, data, n_bytes) != is_match) {
        abort();
    }
}

static void check_line(const struct check_line *expect, const uint8_t *data, size_t n_bytes)
{
    enum line_match whole = line_matches(expect, 0, data, n_bytes);

    for (size_t n = 0; n < n_bytes; n++) {
        enum line_match part = line_matches(expect, 0, data, n);

        if ((part != LINE_MORE && part != whole) ||
            (part == LINE_MORE && line_matches(expect, n, data + n, n_bytes - n) != whole)) {
            abort();
        }
    }
}

static void check_echo(const uint8_t *data, size_t n_bytes)
{
    struct icmp_echo echo;
    struct icmp_echo again;
    uint8_t bytes[20 + ICMP_ECHO_BYTES] = {0x45};

    if (!icmp_echo_read(ADDR_IPV6, data, n_bytes, &echo)) {
        (void)icmp_echo_read(ADDR_IPV4, data, n_bytes, &echo);
        return;
    }
    icmp_echo_build(&echo, ADDR_IPV6, bytes + 20);
    bytes[20] = 129; /* as the backend answers it */
    if (!icmp_echo_read(ADDR_IPV6, bytes + 20, ICMP_ECHO_BYTES, &again) || again.id != echo.id ||
        again.index != echo.index || memcmp(&again.token, &echo.token, sizeof echo.token) != 0 ||
        icmp_echo_read(ADDR_IPV6, bytes + 20, ICMP_ECHO_BYTES - 1, &again)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct udp_check udp = {.method = UDP_EXCHANGE};
    struct check_line line = {.n_bytes = 0};

    check_echo(data, n_bytes);
    if (n_bytes < 2) {
        return 0;
    }
    /* The first two bytes say how much of the rest is expected, and masked. */
    size_t n_expect = data[0] < n_bytes - 2 ? data[0] : n_bytes - 2;
    size_t n_mask = data[1] < n_expect ? data[1] % (LIMIT_CHECK_LINE_BYTES + 1U) : 0;
    udp.expect.n_bytes = (uint16_t)n_expect;
    memcpy(udp.expect.bytes, data + 2, n_expect);
    udp.mask.n_bytes = (uint16_t)n_mask;
    memcpy(udp.mask.bytes, data + 2, n_mask);
    check_match(&udp, data + 2 + n_expect, n_bytes - 2 - n_expect);
    check_match(&udp, data + 2, n_bytes - 2);
    line.n_bytes = (uint16_t)(n_expect < sizeof line.bytes ? n_expect : sizeof line.bytes);
    memcpy(line.bytes, data + 2, line.n_bytes);
    check_line(&line, data + 2 + n_expect, n_bytes - 2 - n_expect);
    check_line(&line, data + 2, n_bytes - 2);
    return 0;
}
