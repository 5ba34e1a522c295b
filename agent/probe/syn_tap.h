/* The sequence numbers of the SYNs that this machine's kernel sends, for a RST after a timeout.
 *
 * Closing a socket that is still connecting sends nothing, and the RST that a check may want then
 * (S94) is only heeded with the connection's sequence number, which the kernel tells nobody. So a
 * packet socket sees the SYNs that leave, and the newest of each pair of ends is kept for a while:
 * in a table of fixed size, where another may take its place. Needs CAP_NET_RAW. One thread. */
#ifndef JURY_PROBE_SYN_TAP_H
#define JURY_PROBE_SYN_TAP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/packet.h"
#include "common/base/err.h"

struct syn_tap;

/* ret_tap: given, syn_tap_free. Errors, with a sentence: those of packet_socket_open. */
int syn_tap_new(struct syn_tap **ret_tap, struct errmsg *err);
void syn_tap_free(struct syn_tap *tap); /* NULL is allowed */

/* Whether SYNs that leave are looked at from now on; not at the beginning. What a machine sends is
 * copied for whoever looks, which is as much as a tenth of a probe that is answered costs. */
void syn_tap_listen(struct syn_tap *tap, bool is_on);
/* Take what was seen since the last call; often enough for its ring (packet_socket.h). */
void syn_tap_drain(struct syn_tap *tap);
/* Send the RST that follows the SYN which left between these two; that SYN was taken. False: it is
 * not known, or the kernel does not take the RST. */
bool syn_tap_reset(struct syn_tap *tap, const struct endpoint *from, const struct endpoint *to);

#endif
