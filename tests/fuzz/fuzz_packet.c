/* Foreign bytes: whatever an interface receives. Oracle: no input crashes; what is read is of two
 * addresses of one family, a checksum that is not checked only lets more through, and what this
 * node makes of the same fields is read as they are.
 *
 * parses: agent/core/packet.c
 * plant: packet-length
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check_made(struct packet_tcp tcp)
{
    uint8_t bytes[PACKET_TCP_BYTES_MAX];

    tcp.flags &= PACKET_FIN | PACKET_SYN | PACKET_RST | PACKET_ACK;
    tcp.ack = (tcp.flags & PACKET_ACK) != 0 ? tcp.ack : 0;
    size_t n_bytes = packet_build_tcp(&tcp, bytes);
    struct packet_seen seen = packet_read(bytes, n_bytes, false);
    if (seen.kind != PACKET_SEGMENT || endpoint_compare(&seen.tcp.from, &tcp.from) != 0 ||
        endpoint_compare(&seen.tcp.to, &tcp.to) != 0 || seen.tcp.seq != tcp.seq ||
        seen.tcp.ack != tcp.ack || seen.tcp.flags != tcp.flags) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct packet_seen strict = packet_read(data, n_bytes, false);
    struct packet_seen seen = packet_read(data, n_bytes, true);

    if (strict.kind != PACKET_NONE && strict.kind != seen.kind) {
        abort();
    }
    if (seen.kind == PACKET_NONE) {
        return 0;
    }
    if (seen.tcp.from.addr.family != seen.tcp.to.addr.family ||
        seen.tcp.from.addr.family == ADDR_NONE ||
        (seen.kind == PACKET_UNREACHABLE && (seen.tcp.flags != 0 || seen.tcp.ack != 0))) {
        abort();
    }
    check_made(seen.tcp);
    return 0;
}
