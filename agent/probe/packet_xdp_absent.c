/* In the place of packet_xdp.c, in an agent that is built without libbpf. */
#include "agent/probe/packet_xdp.h"

enum packet_receive_why packet_xdp_open(const uint16_t ports[], size_t n_ports, bool is_driver_only,
                                        struct packet_xdp **ret_xdp)
{
    (void)ports;
    (void)n_ports;
    (void)is_driver_only;
    (void)ret_xdp;
    return RECEIVE_NOT_BUILT;
}

void packet_xdp_close(struct packet_xdp *xdp)
{
    (void)xdp;
}

/* The rest is never called: there is none. */
enum packet_receive_why packet_xdp_watch(struct packet_xdp *xdp, int ifindex,
                                         const struct addr *source)
{
    (void)xdp;
    (void)ifindex;
    (void)source;
    return RECEIVE_NOT_BUILT;
}

bool packet_xdp_is_attached(const struct packet_xdp *xdp)
{
    (void)xdp;
    return false;
}

void packet_xdp_renew(struct packet_xdp *xdp)
{
    (void)xdp;
}

void packet_xdp_pause(struct packet_xdp *xdp)
{
    (void)xdp;
}

uint32_t packet_xdp_take(struct packet_xdp *xdp,
                         void (*take)(void *user, const struct packet_seen *seen, uint64_t came_ns),
                         void *user)
{
    (void)xdp;
    (void)take;
    (void)user;
    return 0;
}
