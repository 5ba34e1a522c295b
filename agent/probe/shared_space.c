#include "agent/probe/shared_space.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "common/base/err.h"
#include "common/model/check.h"

static struct addr ipv4_of(const struct ifaddrs *each)
{
    struct addr addr = {.family = ADDR_NONE};
    struct sockaddr_in in;

    if (each->ifa_addr != NULL && each->ifa_addr->sa_family == AF_INET &&
        (each->ifa_flags & IFF_UP) != 0) {
        memcpy(&in, each->ifa_addr, sizeof in);
        addr.family = ADDR_IPV4;
        memcpy(addr.bytes, &in.sin_addr, sizeof in.sin_addr);
    }
    return addr;
}

int shared_space_find(struct addr *ret_addr)
{
    struct addr lowest = {.family = ADDR_NONE};
    struct ifaddrs *all;

    if (getifaddrs(&all) != 0) {
        return err_from_errno(errno);
    }
    for (const struct ifaddrs *each = all; each != NULL; each = each->ifa_next) {
        struct addr addr = ipv4_of(each);

        if (addr_is_shared_space(&addr) &&
            (lowest.family == ADDR_NONE || addr_compare(&addr, &lowest) < 0)) {
            lowest = addr;
        }
    }
    freeifaddrs(all);
    *ret_addr = lowest;
    return 0;
}
