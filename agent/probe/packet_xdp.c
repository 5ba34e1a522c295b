#include "agent/probe/packet_xdp.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "agent/probe/netlink_ask.h"
#include "agent/probe/xdp_note.h"
#include "common/base/plant.h"

#define LINKS_MAX 8

/* The compiled program, made of xdp_answer.bpf.c by the build. */
extern const unsigned char xdp_answer_object[];
extern const size_t xdp_answer_object_bytes;

struct watched_link {
    int ifindex;
    int lower;     /* the link that it is on, as a VLAN is; 0 = none */
    int fd;        /* of the BPF link: closing it detaches; -1 = refused */
    bool is_under; /* another one that is watched: it has no program for that */
};

struct packet_xdp {
    struct bpf_object *object;
    struct ring_buffer *notes;
    int program_fd;
    int addresses_fd;
    bool is_driver_only;
    bool is_full; /* a link or an address had no room */
    uint32_t n_links;
    struct watched_link links[LINKS_MAX];
    uint32_t n_addresses;
    struct addr addresses[XDP_ADDRESSES];
    /* of packet_xdp_take, while it runs */
    void (*take)(void *user, const struct packet_seen *seen, uint64_t came_ns);
    void *user;
    uint32_t n_taken;
};

/* --- what it notes --- */

static struct endpoint endpoint_of(const struct xdp_address *address, uint16_t port, bool is_ipv6)
{
    struct endpoint endpoint = {.addr.family = is_ipv6 ? ADDR_IPV6 : ADDR_IPV4,
                                .port = ntohs(port)};

    if (is_ipv6) {
        memcpy(endpoint.addr.bytes, address->words, 16);
    } else {
        memcpy(endpoint.addr.bytes, &address->words[3], 4);
    }
    return endpoint;
}

static int take_note(void *user, void *data, size_t n_bytes)
{
    struct packet_xdp *xdp = user;
    const struct xdp_note *note = data;

    assert(n_bytes >= sizeof *note);
    const struct packet_seen seen = {
        .kind = PACKET_SEGMENT,
        .tcp = {.from = endpoint_of(&note->from, note->from_port, note->is_ipv6 != 0),
                .to = endpoint_of(&note->to, note->to_port, note->is_ipv6 != 0),
                .ack = ntohl(note->ack),
                .flags = PACKET_SYN | PACKET_ACK},
    };
    xdp->take(xdp->user, &seen, note->came_ns);
    xdp->n_taken++;
    return 0;
}

uint32_t packet_xdp_take(struct packet_xdp *xdp,
                         void (*take)(void *user, const struct packet_seen *seen, uint64_t came_ns),
                         void *user)
{
    xdp->take = take;
    xdp->user = user;
    xdp->n_taken = 0;
    (void)ring_buffer__consume(xdp->notes);
    return xdp->n_taken;
}

/* --- loading --- */

/* Others than libbpf say what is wrong. */
static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level;
    (void)format;
    (void)arguments;
    return 0;
}

/* Its one constant: the ports. */
static bool set_ports(struct bpf_object *object, const uint16_t ports[], size_t n_ports)
{
    struct xdp_ports all = {.ports = {0}};
    struct bpf_map *map;

    for (size_t i = 0; i < n_ports; i++) {
        all.ports[i] = htons(ports[i]);
    }
    bpf_object__for_each_map(map, object)
    {
        if (strstr(bpf_map__name(map), ".rodata") != NULL) {
            return bpf_map__set_initial_value(map, &all, sizeof all) == 0;
        }
    }
    return false;
}

static bool load(struct packet_xdp *xdp, const uint16_t ports[], size_t n_ports)
{
    const struct bpf_object_open_opts options = {.sz = sizeof options, .object_name = "jury"};

    libbpf_set_print(print_nothing);
    xdp->object = bpf_object__open_mem(xdp_answer_object, xdp_answer_object_bytes, &options);
    if (xdp->object == NULL || !set_ports(xdp->object, ports, n_ports) ||
        bpf_object__load(xdp->object) != 0) {
        return false;
    }
    struct bpf_program *program = bpf_object__find_program_by_name(xdp->object, "answer");
    xdp->program_fd = program != NULL ? bpf_program__fd(program) : -1;
    xdp->addresses_fd = bpf_object__find_map_fd_by_name(xdp->object, "addresses");
    xdp->notes = ring_buffer__new(bpf_object__find_map_fd_by_name(xdp->object, "notes"), take_note,
                                  xdp, NULL);
    return xdp->program_fd >= 0 && xdp->addresses_fd >= 0 && xdp->notes != NULL;
}

enum packet_receive_why packet_xdp_open(const uint16_t ports[], size_t n_ports, bool is_driver_only,
                                        struct packet_xdp **ret_xdp)
{
    struct packet_xdp *xdp = calloc(1, sizeof *xdp);

    assert(n_ports <= XDP_PORTS);
    if (xdp == NULL) {
        return RECEIVE_REFUSED;
    }
    xdp->is_driver_only = is_driver_only;
    if (!load(xdp, ports, n_ports)) {
        packet_xdp_close(xdp);
        return RECEIVE_REFUSED;
    }
    *ret_xdp = xdp;
    return RECEIVE_WAITING;
}

void packet_xdp_pause(struct packet_xdp *xdp)
{
    for (uint32_t i = 0; i < xdp->n_links; i++) {
        if (xdp->links[i].fd >= 0) {
            close(xdp->links[i].fd);
        }
    }
    xdp->n_links = 0;
}

void packet_xdp_close(struct packet_xdp *xdp)
{
    if (xdp == NULL) {
        return;
    }
    packet_xdp_pause(xdp);
    ring_buffer__free(xdp->notes);
    bpf_object__close(xdp->object);
    free(xdp);
}

/* --- links and addresses --- */

static bool is_veth(int ifindex)
{
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq about = {.ifr_ifindex = ifindex};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_found = fd >= 0 && ioctl(fd, SIOCGIFNAME, &about) == 0;

    about.ifr_data = (char *)&driver;
    is_found = is_found && ioctl(fd, SIOCETHTOOL, &about) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_found && strcmp(driver.driver, "veth") == 0;
}

static int attach(const struct packet_xdp *xdp, int ifindex)
{
    const struct bpf_link_create_opts options = {
        .sz = sizeof options,
        .flags = xdp->is_driver_only || plant_is("xdp-lost-rst") ? XDP_FLAGS_DRV_MODE
                 : is_veth(ifindex)                              ? XDP_FLAGS_SKB_MODE
                                                                 : 0,
    };

    return bpf_link_create(xdp->program_fd, ifindex, BPF_XDP, &options);
}

static uint32_t n_attached(const struct packet_xdp *xdp)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < xdp->n_links; i++) {
        n += xdp->links[i].fd >= 0 ? 1 : 0;
    }
    return n;
}

static int take_lower(const struct nlmsghdr *message, void *user)
{
    uint32_t *lower = user;
    const struct nlattr *link =
        netlink_find(message, sizeof(struct ifinfomsg), IFLA_LINK, sizeof *lower);

    /* Else that is another namespace's, as the far end of a veth is. */
    if (link != NULL &&
        netlink_find(message, sizeof(struct ifinfomsg), IFLA_LINK_NETNSID, 0) == NULL) {
        memcpy(lower, mnl_attr_get_payload(link), sizeof *lower);
    }
    return MNL_CB_STOP;
}

static int lower_of(int ifindex)
{
    _Alignas(struct nlmsghdr) uint8_t room[64];
    struct nlmsghdr *request = mnl_nlmsg_put_header(room);
    struct netlink_ask ask = {.socket = NULL};
    uint32_t lower = 0;

    request->nlmsg_type = RTM_GETLINK;
    struct ifinfomsg *about = mnl_nlmsg_put_extra_header(request, sizeof *about);
    about->ifi_index = ifindex;
    if (netlink_ask_open(&ask, NETLINK_ROUTE) == 0) {
        (void)netlink_ask(&ask, request, take_lower, &lower);
    }
    netlink_ask_close(&ask);
    return lower == (uint32_t)ifindex ? 0 : (int)lower;
}

/* A link shows its program what is for a VLAN on it as if it were its own, the tag taken off, and
 * an answer to that would leave without. So it has none where probes leave by the VLAN, too.
 * Returns whether one that is watched is on this one. */
static bool settle_levels(struct packet_xdp *xdp, const struct watched_link *link)
{
    bool is_under = false;

    for (uint32_t i = 0; i < xdp->n_links && !plant_is("xdp-under-vlan"); i++) {
        struct watched_link *other = &xdp->links[i];

        is_under = is_under || other->lower == link->ifindex;
        if (other->ifindex == link->lower && other->fd >= 0) {
            close(other->fd);
            other->fd = -1;
        }
        other->is_under = other->is_under || other->ifindex == link->lower;
    }
    return is_under;
}

/* Beyond LINKS_MAX the ring does it. */
static void watch_link(struct packet_xdp *xdp, int ifindex)
{
    for (uint32_t i = 0; i < xdp->n_links; i++) {
        if (xdp->links[i].ifindex == ifindex) {
            return;
        }
    }
    if (xdp->n_links == LINKS_MAX) {
        xdp->is_full = true;
        return;
    }
    struct watched_link *link = &xdp->links[xdp->n_links];
    *link = (struct watched_link){.ifindex = ifindex, .lower = lower_of(ifindex), .fd = -1};
    link->is_under = settle_levels(xdp, link);
    if (!link->is_under) {
        int fd = attach(xdp, ifindex);
        link->fd = fd < 0 ? -1 : fd;
    }
    xdp->n_links++;
}

static struct xdp_address key_of(const struct addr *addr)
{
    struct xdp_address key = {.words = {0, 0, htonl(0xffff), 0}};

    if (addr->family == ADDR_IPV6) {
        memcpy(key.words, addr->bytes, 16);
    } else {
        memcpy(&key.words[3], addr->bytes, 4);
    }
    return key;
}

static void watch_address(struct packet_xdp *xdp, const struct addr *source)
{
    const struct xdp_address key = key_of(source);
    const uint32_t one = 1;

    if (plant_is("xdp-unwatched")) {
        return;
    }
    for (uint32_t i = 0; i < xdp->n_addresses; i++) {
        if (addr_compare(&xdp->addresses[i], source) == 0) {
            return;
        }
    }
    if (xdp->n_addresses < XDP_ADDRESSES &&
        bpf_map_update_elem(xdp->addresses_fd, &key, &one, BPF_ANY) == 0) {
        xdp->addresses[xdp->n_addresses++] = *source;
    } else {
        xdp->is_full = true;
    }
}

/* Of the first link of which the ring sees answers. */
static enum packet_receive_why why_not_all(const struct packet_xdp *xdp)
{
    for (uint32_t i = 0; i < xdp->n_links; i++) {
        if (xdp->links[i].fd < 0) {
            return xdp->links[i].is_under ? RECEIVE_UNDER_VLAN : RECEIVE_NO_ATTACH;
        }
    }
    return xdp->is_full ? RECEIVE_NO_ROOM : RECEIVE_CHOSEN;
}

enum packet_receive_why packet_xdp_watch(struct packet_xdp *xdp, int ifindex,
                                         const struct addr *source)
{
    watch_link(xdp, ifindex);
    watch_address(xdp, source);
    return why_not_all(xdp);
}

bool packet_xdp_is_attached(const struct packet_xdp *xdp)
{
    return n_attached(xdp) > 0;
}

/* A program stays where it is: some drivers reset the link when one comes or goes. */
void packet_xdp_renew(struct packet_xdp *xdp)
{
    uint32_t n_links = 0;
    char name[IF_NAMESIZE];

    for (uint32_t i = 0; i < xdp->n_addresses; i++) {
        const struct xdp_address key = key_of(&xdp->addresses[i]);
        (void)bpf_map_delete_elem(xdp->addresses_fd, &key);
    }
    xdp->n_addresses = 0;
    xdp->is_full = false;
    for (uint32_t i = 0; i < xdp->n_links; i++) {
        const struct watched_link link = xdp->links[i];

        if (link.fd >= 0 && if_indextoname((unsigned)link.ifindex, name) != NULL) {
            xdp->links[n_links++] = link;
        } else if (link.fd >= 0) {
            close(link.fd);
        }
    }
    xdp->n_links = n_links;
}
