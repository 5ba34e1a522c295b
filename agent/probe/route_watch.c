#include "agent/probe/route_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Links that go down take routes with them without a word about each. */
static const int groups[] = {
    RTNLGRP_LINK,       RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
    RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE,   RTNLGRP_IPV6_RULE,
};

static int join_all(int fd)
{
    const struct sockaddr_nl self = {.nl_family = AF_NETLINK};
    const int nexthops = RTNLGRP_NEXTHOP;

    if (bind(fd, (const struct sockaddr *)&self, sizeof self) != 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof groups[i]) !=
            0) {
            return -1;
        }
    }
    /* An old kernel has no such objects. */
    (void)setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &nexthops, sizeof nexthops);
    return 0;
}

void route_watch_open(struct route_watch *watch)
{
    watch->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (watch->fd >= 0 && join_all(watch->fd) != 0) {
        route_watch_close(watch);
    }
}

void route_watch_close(struct route_watch *watch)
{
    if (watch->fd >= 0) {
        close(watch->fd);
    }
    watch->fd = -1;
}

/* What it says in particular is not read: that it says anything is enough, and so are messages that
 * were lost for want of room (ENOBUFS). */
bool route_watch_changed(struct route_watch *watch)
{
    bool has_changed = watch->fd < 0;
    char message[64];

    while (watch->fd >= 0) {
        ssize_t n = recv(watch->fd, message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        has_changed = true;
        if (n <= 0 && errno != ENOBUFS) {
            route_watch_close(watch);
        }
    }
    return has_changed;
}
