#include "agent/probe/link_hops.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/plant.h"
#include "common/base/spare.h"
#include "common/base/units.h"

#define NO_NEIGHBOUR UINT32_MAX
#define WATCH_BYTES (1024 * 1024) /* many neighbours may be asked for at once */

#define MAC_BYTES sizeof(((struct link_hop *)NULL)->mac)
#define USABLE (NUD_REACHABLE | NUD_PERMANENT)

static uint8_t family_of(const struct addr *addr)
{
    return addr->family == ADDR_IPV6 ? AF_INET6 : AF_INET;
}

static uint16_t bytes_of(const struct addr *addr)
{
    return addr->family == ADDR_IPV6 ? 16 : 4;
}

/* attribute: an address of that family, or NULL. */
static struct addr read_addr(uint8_t family, const struct nlattr *attribute)
{
    struct addr addr = {.family = family == AF_INET6 ? ADDR_IPV6 : ADDR_IPV4};

    if (attribute == NULL || mnl_attr_get_payload_len(attribute) != bytes_of(&addr)) {
        return (struct addr){.family = ADDR_NONE};
    }
    memcpy(addr.bytes, mnl_attr_get_payload(attribute), bytes_of(&addr));
    return addr;
}

/* --- the watch over neighbours --- */

static void close_watch(struct link_hops *hops)
{
    if (hops->watch_fd >= 0) {
        close(hops->watch_fd);
    }
    hops->watch_fd = -1;
}

static void open_watch(struct link_hops *hops)
{
    const struct sockaddr_nl self = {.nl_family = AF_NETLINK,
                                     .nl_groups = 1 << (RTNLGRP_NEIGH - 1)};
    const int n_bytes = WATCH_BYTES;

    hops->watch_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (hops->watch_fd < 0 ||
        bind(hops->watch_fd, (const struct sockaddr *)&self, sizeof self) != 0) {
        close_watch(hops);
        return;
    }
    /* As much as this process may have. */
    (void)setsockopt(hops->watch_fd, SOL_SOCKET, SO_RCVBUF, &n_bytes, sizeof n_bytes);
}

/* --- neighbours --- */

static uint64_t hash_of(const struct link_hops *hops, int ifindex, const struct addr *addr)
{
    uint8_t bytes[sizeof ifindex + sizeof addr->bytes];

    memcpy(bytes, &ifindex, sizeof ifindex);
    memcpy(bytes + sizeof ifindex, addr->bytes, sizeof addr->bytes);
    return hash_64(&hops->key, bytes, sizeof bytes);
}

static struct link_neighbour *find_neighbour(const struct link_hops *hops, int ifindex,
                                             const struct addr *addr)
{
    uint64_t hash = hash_of(hops, ifindex, addr);
    size_t cursor = 0;

    for (uint64_t id = idmap_next(&hops->index, hash, &cursor); id != IDMAP_NONE;
         id = idmap_next(&hops->index, hash, &cursor)) {
        struct link_neighbour *neighbour = &hops->neighbours[id];

        if (neighbour->hop.ifindex == ifindex && addr_compare(&neighbour->addr, addr) == 0) {
            return neighbour;
        }
    }
    return NULL;
}

/* Its place; NO_NEIGHBOUR: there is no room. */
static uint32_t keep_neighbour(struct link_hops *hops, int ifindex, const struct addr *addr)
{
    struct link_neighbour *known = find_neighbour(hops, ifindex, addr);

    if (known != NULL) {
        return (uint32_t)(known - hops->neighbours);
    }
    if (hops->n_neighbours == hops->n_reserved) {
        uint32_t n_reserved = hops->n_reserved == 0 ? 16 : hops->n_reserved * 2;
        struct link_neighbour *neighbours =
            n_reserved > LINK_NEIGHBOURS_MAX
                ? NULL
                : realloc(hops->neighbours, n_reserved * sizeof *neighbours);

        if (neighbours == NULL) {
            return NO_NEIGHBOUR;
        }
        hops->neighbours = neighbours;
        hops->n_reserved = n_reserved;
    }
    if (idmap_add(&hops->index, hash_of(hops, ifindex, addr), hops->n_neighbours) != 0) {
        return NO_NEIGHBOUR;
    }
    hops->neighbours[hops->n_neighbours] =
        (struct link_neighbour){.hop = {.ifindex = ifindex}, .addr = *addr};
    return hops->n_neighbours++;
}

static void forget_all(struct link_hops *hops)
{
    hops->n_neighbours = 0;
    idmap_close(&hops->index);
    hops->index = (struct idmap){0};
    for (uint32_t i = 0; i < hops->n_slots; i++) {
        hops->by_slot[i].generation = 0;
    }
}

static void note_neighbour(struct link_hops *hops, const struct nlmsghdr *message)
{
    const struct ndmsg *about = mnl_nlmsg_get_payload(message);

    if (mnl_nlmsg_get_payload_len(message) < sizeof *about ||
        (about->ndm_family != AF_INET && about->ndm_family != AF_INET6)) {
        return;
    }
    struct addr addr =
        read_addr(about->ndm_family, netlink_find(message, sizeof *about, NDA_DST, 0));
    const struct nlattr *mac = netlink_find(message, sizeof *about, NDA_LLADDR, MAC_BYTES);
    struct link_neighbour *neighbour = find_neighbour(hops, about->ndm_ifindex, &addr);
    if (neighbour == NULL) {
        return;
    }
    neighbour->is_known = true;
    neighbour->is_usable =
        message->nlmsg_type == RTM_NEWNEIGH && mac != NULL && (about->ndm_state & USABLE) != 0;
    if (neighbour->is_usable) {
        memcpy(neighbour->hop.mac, mnl_attr_get_payload(mac), MAC_BYTES);
    }
}

/* The only answer. */
static int take_answer(const struct nlmsghdr *message, void *hops)
{
    note_neighbour(hops, message);
    return MNL_CB_STOP;
}

/* One of several. */
static int take_news(const struct nlmsghdr *message, void *hops)
{
    note_neighbour(hops, message);
    return MNL_CB_OK;
}

static void ask_neighbour(struct link_hops *hops, struct link_neighbour *neighbour)
{
    _Alignas(struct nlmsghdr) uint8_t room[128];
    struct nlmsghdr *request = mnl_nlmsg_put_header(room);

    neighbour->is_known = true;
    neighbour->is_usable = false;
    request->nlmsg_type = RTM_GETNEIGH;
    struct ndmsg *about = mnl_nlmsg_put_extra_header(request, sizeof *about);
    about->ndm_family = family_of(&neighbour->addr);
    about->ndm_ifindex = neighbour->hop.ifindex;
    mnl_attr_put(request, NDA_DST, bytes_of(&neighbour->addr), neighbour->addr.bytes);
    /* Refused: it is not known, and the kernel will tell when it is. */
    (void)netlink_ask(&hops->ask, request, take_answer, hops);
}

/* --- routes --- */

struct route {
    int ifindex;
    struct addr next; /* NONE: what is probed is on the link itself */
    bool is_plain;
};

static int take_route(const struct nlmsghdr *message, void *user)
{
    static const uint16_t others[] = {RTA_VIA, RTA_ENCAP, RTA_MULTIPATH};
    struct route *route = user;
    const struct rtmsg *about = mnl_nlmsg_get_payload(message);
    uint32_t ifindex = 0;

    if (message->nlmsg_type != RTM_NEWROUTE || mnl_nlmsg_get_payload_len(message) < sizeof *about) {
        return MNL_CB_STOP;
    }
    const struct nlattr *link = netlink_find(message, sizeof *about, RTA_OIF, sizeof ifindex);
    const struct nlattr *gateway = netlink_find(message, sizeof *about, RTA_GATEWAY, 0);
    if (link != NULL) {
        memcpy(&ifindex, mnl_attr_get_payload(link), sizeof ifindex);
    }
    route->ifindex = (int)ifindex;
    route->next = read_addr(about->rtm_family, gateway);
    route->is_plain = about->rtm_type == RTN_UNICAST && ifindex != 0 &&
                      (gateway == NULL || route->next.family != ADDR_NONE);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        route->is_plain =
            route->is_plain && netlink_find(message, sizeof *about, others[i], 0) == NULL;
    }
    return MNL_CB_STOP;
}

static bool ask_route(struct link_hops *hops, const struct addr *source, const struct addr *to,
                      struct route *ret_route)
{
    _Alignas(struct nlmsghdr) uint8_t room[128];
    struct nlmsghdr *request = mnl_nlmsg_put_header(room);
    struct route route = {.is_plain = false};

    request->nlmsg_type = RTM_GETROUTE;
    struct rtmsg *about = mnl_nlmsg_put_extra_header(request, sizeof *about);
    about->rtm_family = family_of(to);
    about->rtm_dst_len = (uint8_t)(bytes_of(to) * 8);
    about->rtm_src_len = (uint8_t)(bytes_of(source) * 8);
    mnl_attr_put(request, RTA_DST, bytes_of(to), to->bytes);
    mnl_attr_put(request, RTA_SRC, bytes_of(source), source->bytes);
    if (netlink_ask(&hops->ask, request, take_route, &route) != 0 || !route.is_plain) {
        return false;
    }
    *ret_route = route;
    return true;
}

/* Ethernet with neighbours, and up: what frames can be addressed on. */
static bool is_plain_link(int ifindex)
{
    struct ifreq about = {.ifr_ifindex = ifindex};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_plain = false;

    if (fd >= 0 && ioctl(fd, SIOCGIFNAME, &about) == 0 && ioctl(fd, SIOCGIFFLAGS, &about) == 0) {
        const unsigned flags = (unsigned)(unsigned short)about.ifr_flags;

        is_plain = (flags & IFF_UP) != 0 && (flags & (IFF_NOARP | IFF_LOOPBACK)) == 0 &&
                   ioctl(fd, SIOCGIFHWADDR, &about) == 0 &&
                   about.ifr_hwaddr.sa_family == ARPHRD_ETHER;
    }
    if (fd >= 0) {
        close(fd);
    }
    return is_plain;
}

static uint32_t find_way(struct link_hops *hops, const struct addr *source, const struct addr *to)
{
    struct route route;

    if (!ask_route(hops, source, to, &route) || !is_plain_link(route.ifindex)) {
        return NO_NEIGHBOUR;
    }
    return keep_neighbour(hops, route.ifindex, route.next.family != ADDR_NONE ? &route.next : to);
}

/* --- what is kept --- */

/* Where the slot's is kept; NULL: there is no memory for it. */
static struct link_way *room_of(struct link_hops *hops, uint32_t slot)
{
    uint32_t n_slots = spare_round_up(slot + 1);

    if (slot < hops->n_slots) {
        return &hops->by_slot[slot];
    }
    struct link_way *by_slot = realloc(hops->by_slot, n_slots * sizeof *by_slot);
    if (by_slot == NULL) {
        return NULL;
    }
    memset(by_slot + hops->n_slots, 0, (n_slots - hops->n_slots) * sizeof *by_slot);
    hops->by_slot = by_slot;
    hops->n_slots = n_slots;
    return &by_slot[slot];
}

void link_hops_open(struct link_hops *hops)
{
    *hops = (struct link_hops){.generation = 1, .watch_fd = -1};
    randombytes_buf(&hops->key, sizeof hops->key);
    if (netlink_ask_open(&hops->ask, NETLINK_ROUTE) == 0) {
        open_watch(hops);
    }
}

void link_hops_close(struct link_hops *hops)
{
    if (hops->generation != 0) {
        close_watch(hops);
    }
    netlink_ask_close(&hops->ask);
    idmap_close(&hops->index);
    free(hops->neighbours);
    free(hops->by_slot);
    *hops = (struct link_hops){.generation = 0};
}

/* Messages that were lost for want of room (ENOBUFS) may have been about anybody. */
void link_hops_refresh(struct link_hops *hops, uint32_t generation)
{
    _Alignas(struct nlmsghdr) uint8_t messages[8192];

    if (generation != hops->generation) {
        forget_all(hops);
        hops->generation = generation;
    }
    while (hops->watch_fd >= 0 && !plant_is("stale-neighbour")) {
        ssize_t n = recv(hops->watch_fd, messages, sizeof messages, MSG_DONTWAIT);

        if (n > 0) {
            (void)mnl_cb_run(messages, (size_t)n, 0, 0, take_news, hops);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == ENOBUFS) {
            forget_all(hops);
        } else {
            if (n == 0 || errno != EAGAIN) {
                close_watch(hops);
            }
            break;
        }
    }
}

bool link_hops_find(struct link_hops *hops, uint32_t slot, const struct addr *source,
                    const struct addr *to, uint64_t now_ns, struct link_hop *ret_hop)
{
    struct link_way *way = hops->watch_fd >= 0 ? room_of(hops, slot) : NULL;
    uint32_t now_s = (uint32_t)(now_ns / NS_PER_SECOND);

    if (way == NULL) {
        return false;
    }
    if (way->generation != hops->generation || now_s - way->found_s >= LINK_HOP_MAX_AGE_S) {
        *way = (struct link_way){.generation = hops->generation,
                                 .found_s = now_s,
                                 .neighbour = find_way(hops, source, to)};
    }
    if (way->neighbour == NO_NEIGHBOUR) {
        return false;
    }
    struct link_neighbour *neighbour = &hops->neighbours[way->neighbour];
    if (!neighbour->is_known) {
        ask_neighbour(hops, neighbour);
    }
    *ret_hop = neighbour->hop;
    return neighbour->is_usable;
}

void link_hops_forget(struct link_hops *hops, uint32_t slot)
{
    if (slot < hops->n_slots) {
        hops->by_slot[slot].generation = 0;
    }
}
