#include "agent/shim/sockaddr.h"

#include <string.h>

socklen_t sockaddr_put(const struct endpoint *from, struct sockaddr_storage *ret_address)
{
    memset(ret_address, 0, sizeof *ret_address);
    if (from->addr.family == ADDR_IPV4) {
        struct sockaddr_in *in = (void *)ret_address;

        in->sin_family = AF_INET;
        in->sin_port = htons(from->port);
        memcpy(&in->sin_addr, from->addr.bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in6 = (void *)ret_address;

    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(from->port);
    memcpy(&in6->sin6_addr, from->addr.bytes, 16);
    return sizeof *in6;
}

void sockaddr_get(const struct sockaddr_storage *from, struct endpoint *ret_endpoint)
{
    memset(ret_endpoint, 0, sizeof *ret_endpoint);
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)from;

        ret_endpoint->addr.family = ADDR_IPV4;
        ret_endpoint->port = ntohs(in->sin_port);
        memcpy(ret_endpoint->addr.bytes, &in->sin_addr, 4);
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)from;

        ret_endpoint->addr.family = ADDR_IPV6;
        ret_endpoint->port = ntohs(in6->sin6_port);
        memcpy(ret_endpoint->addr.bytes, &in6->sin6_addr, 16);
    }
}
