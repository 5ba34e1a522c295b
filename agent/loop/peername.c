#include "agent/loop/peername.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

struct endpoint peername_of(int fd)
{
    struct endpoint peer = {.port = 0};
    struct sockaddr_storage name;
    socklen_t n_bytes = sizeof name;

    if (getpeername(fd, (struct sockaddr *)&name, &n_bytes) != 0) {
        return peer;
    }
    if (name.ss_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, &name, sizeof in);
        peer.addr.family = ADDR_IPV4;
        memcpy(peer.addr.bytes, &in.sin_addr, 4);
        peer.port = ntohs(in.sin_port);
    } else if (name.ss_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, &name, sizeof in6);
        peer.port = ntohs(in6.sin6_port);
        if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
            peer.addr.family = ADDR_IPV4;
            memcpy(peer.addr.bytes, &in6.sin6_addr.s6_addr[12], 4);
        } else {
            peer.addr.family = ADDR_IPV6;
            memcpy(peer.addr.bytes, &in6.sin6_addr, 16);
        }
    }
    return peer;
}
