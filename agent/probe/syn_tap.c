#include "agent/probe/syn_tap.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent/probe/packet_socket.h"
#include "common/base/clock.h"
#include "common/base/hash.h"

/* Four times what may be in flight, so that few lose their place; a power of two. */
#define TAP_PLACES (4 * 4096)

struct seen_syn {
    uint64_t ends; /* a hash of both; 0 = free */
    uint32_t isn;
};

struct syn_tap {
    struct packet_socket sock;
    struct hash_key key; /* secret: who chooses a backend cannot choose its place */
    struct seen_syn seen[TAP_PLACES];
};

int syn_tap_new(struct syn_tap **ret_tap, struct errmsg *err)
{
    struct syn_tap *tap = calloc(1, sizeof *tap);

    if (tap == NULL) {
        return errmsg_set(err, ERR_NOMEM, "out of memory for the SYNs that leave");
    }
    randombytes_buf(&tap->key, sizeof tap->key);
    int rc = packet_socket_open_tap(&tap->sock, err);
    if (rc != 0) {
        free(tap);
        return rc;
    }
    *ret_tap = tap;
    return 0;
}

void syn_tap_free(struct syn_tap *tap)
{
    if (tap != NULL) {
        packet_socket_close(&tap->sock);
        sodium_memzero(&tap->key, sizeof tap->key);
        free(tap);
    }
}

void syn_tap_listen(struct syn_tap *tap, bool is_on)
{
    packet_socket_see_outgoing(&tap->sock, is_on);
}

static uint64_t hash_ends(const struct syn_tap *tap, const struct endpoint *from,
                          const struct endpoint *to)
{
    struct {
        struct addr from, to;
        uint16_t from_port, to_port;
    } ends;

    memset(&ends, 0, sizeof ends);
    ends.from = from->addr;
    ends.to = to->addr;
    ends.from_port = from->port;
    ends.to_port = to->port;
    return hash_64(&tap->key, &ends, sizeof ends) | 1;
}

void syn_tap_drain(struct syn_tap *tap)
{
    struct packet_seen seen;
    uint64_t came_ns;

    packet_socket_look(&tap->sock, clock_monotonic_ns());
    for (uint32_t n = 0; n < PACKET_FRAMES && packet_socket_next(&tap->sock, &seen, &came_ns);
         n++) {
        if (seen.kind == PACKET_SEGMENT) {
            uint64_t ends = hash_ends(tap, &seen.tcp.from, &seen.tcp.to);

            tap->seen[ends / 2 % TAP_PLACES] = (struct seen_syn){.ends = ends, .isn = seen.tcp.seq};
        }
    }
}

bool syn_tap_reset(struct syn_tap *tap, const struct endpoint *from, const struct endpoint *to)
{
    uint64_t ends = hash_ends(tap, from, to);
    const struct seen_syn *seen = &tap->seen[ends / 2 % TAP_PLACES];
    const struct packet_tcp tcp = {
        .from = *from, .to = *to, .seq = seen->isn + 1, .flags = PACKET_RST};

    return seen->ends == ends && packet_socket_send(&tap->sock, &tcp) == REASON_NONE;
}
