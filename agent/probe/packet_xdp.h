/* Receiving by an XDP program (xdp_answer.bpf.c): in the driver, before the kernel makes a packet
 * of what came, each SYN-ACK for a probe is noted for the agent and answered with RST. So neither
 * the ring of packet_socket.h nor the kernel's TCP has work with it; both see everything else.
 *
 * An optional part of the build (JURY_XDP, libbpf and clang); packet_xdp_absent.c stands in its
 * place. It needs CAP_BPF and CAP_NET_ADMIN, or root. The program is attached to those links alone
 * that probes leave by, and goes with the process, however that ends. The engine's thread only. */
#ifndef JURY_PROBE_PACKET_XDP_H
#define JURY_PROBE_PACKET_XDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/packet.h"
#include "agent/probe/packet_way.h"

struct packet_xdp;

/* ports: of the engine, at most XDP_PORTS. is_driver_only: never the kernel's generic hook, which
 * is used else for drivers without XDP, and for veth: its driver drops what is sent back when the
 * far end has neither XDP nor GRO. On success RECEIVE_WAITING, and ret_xdp is given, else why not:
 * RECEIVE_NOT_BUILT, RECEIVE_REFUSED. */
enum packet_receive_why packet_xdp_open(const uint16_t ports[], size_t n_ports, bool is_driver_only,
                                        struct packet_xdp **ret_xdp);
/* Detaches. NULL is allowed. */
void packet_xdp_close(struct packet_xdp *xdp);

/* A probe leaves by that link from that address: answers are to be taken there from now on. Cheap
 * when it was said before. Returns RECEIVE_CHOSEN, or why the ring sees those of that link, or of
 * another one: RECEIVE_NO_ATTACH, RECEIVE_UNDER_VLAN, RECEIVE_NO_ROOM. */
enum packet_receive_why packet_xdp_watch(struct packet_xdp *xdp, int ifindex,
                                         const struct addr *source);
/* Whether any link has it. */
bool packet_xdp_is_attached(const struct packet_xdp *xdp);
/* Addresses or links changed: forget the addresses, and try links that refused once more. */
void packet_xdp_renew(struct packet_xdp *xdp);
/* Detach everywhere until the next watch. */
void packet_xdp_pause(struct packet_xdp *xdp);

/* Hand over what was noted: seen as packet_read would have, came_ns monotonic. Returns how many. */
uint32_t packet_xdp_take(struct packet_xdp *xdp,
                         void (*take)(void *user, const struct packet_seen *seen, uint64_t came_ns),
                         void *user);

#endif
