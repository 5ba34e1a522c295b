#include "agent/probe/sentinel_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/connect_socket.h"
#include "common/base/plant.h"

static int refuse(struct sentinel_port *port, struct errmsg *err)
{
    int errnum = errno;

    sentinel_port_close(port);
    return errmsg_set(err, errnum == EMFILE || errnum == ENFILE ? ERR_LIMIT : ERR_IO,
                      "cannot open the sentinel port: %s", strerror(errnum));
}

int sentinel_port_open(struct sentinel_port *port, const struct addr *addr, struct errmsg *err)
{
    struct sockaddr_storage address;
    socklen_t n_bytes = connect_socket_address(addr, 0, &address);
    int family = addr->family == ADDR_IPV4 ? AF_INET : AF_INET6;

    *port = (struct sentinel_port){
        .fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)};
    if (port->fd < 0 || bind(port->fd, (struct sockaddr *)&address, n_bytes) != 0 ||
        (plant_is("sentinel-listens") && listen(port->fd, 128) != 0) ||
        getsockname(port->fd, (struct sockaddr *)&address, &n_bytes) != 0) {
        return refuse(port, err);
    }
    if (family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, &address, sizeof in);
        port->port = ntohs(in.sin_port);
    } else {
        struct sockaddr_in6 in6;

        memcpy(&in6, &address, sizeof in6);
        port->port = ntohs(in6.sin6_port);
    }
    return 0;
}

void sentinel_port_close(struct sentinel_port *port)
{
    if (port->fd >= 0) {
        close(port->fd);
    }
    *port = (struct sentinel_port){.fd = -1};
}
