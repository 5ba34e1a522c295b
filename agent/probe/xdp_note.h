/* What the XDP program (xdp_answer.bpf.c) and the agent (packet_xdp.c) tell each other. Compiled
 * for both machines: types of the kernel, no padding that is not named. */
#ifndef JURY_PROBE_XDP_NOTE_H
#define JURY_PROBE_XDP_NOTE_H

#include <linux/types.h>

#define XDP_PORTS 32
#define XDP_ADDRESSES 64
#define XDP_NOTES_BYTES (256 * 1024) /* a power of two, whole pages: 4,096 notes */

/* To the program, before it is loaded: ports that it answers for, as they are on the wire. */
struct xdp_ports {
    __u16 ports[XDP_PORTS];
};

/* An address of this node, as the key of a map: an IPv4 one as in RFC 4291 2.5.5.2. */
struct xdp_address {
    __u32 words[4];
};

/* From the program: a SYN-ACK that it has answered with RST. */
struct xdp_note {
    __u64 came_ns; /* monotonic */
    struct xdp_address from;
    struct xdp_address to;
    __u32 ack; /* these three as on the wire */
    __u16 from_port;
    __u16 to_port;
    __u8 is_ipv6;
    __u8 unused[7];
};

#endif
