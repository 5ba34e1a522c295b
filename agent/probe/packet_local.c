#include "agent/probe/packet_local.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/connect_socket.h"
#include "agent/probe/probe_errno.h"

/* A socket for both families, or for IPv4 alone where the kernel has no IPv6; -1 and errno. */
static int open_for_all(struct sockaddr_storage *ret_any, socklen_t *ret_n_bytes)
{
    const int no = 0;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memset(ret_any, 0, sizeof *ret_any);
    if (fd >= 0) {
        *ret_n_bytes = sizeof(struct sockaddr_in6);
        ret_any->ss_family = AF_INET6;
        if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0) {
            int errnum = errno;
            close(fd);
            errno = errnum;
            return -1;
        }
        return fd;
    }
    *ret_n_bytes = sizeof(struct sockaddr_in);
    ret_any->ss_family = AF_INET;
    return errno == EAFNOSUPPORT ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    struct sockaddr_in in;

    memcpy(&in, address, sizeof in); /* the port stands at the same place in both families */
    return ntohs(in.sin_port);
}

void packet_ports_close(struct packet_ports *ports)
{
    for (unsigned i = 0; i < PACKET_PORTS; i++) {
        if (ports->fds[i] >= 0) {
            close(ports->fds[i]);
        }
        ports->fds[i] = -1;
    }
}

int packet_ports_open(struct packet_ports *ports, struct errmsg *err)
{
    struct sockaddr_storage address;
    socklen_t n_bytes;

    for (unsigned i = 0; i < PACKET_PORTS; i++) {
        ports->fds[i] = -1;
    }
    for (unsigned i = 0; i < PACKET_PORTS; i++) {
        int fd = open_for_all(&address, &n_bytes);
        ports->fds[i] = fd;
        if (fd < 0 || bind(fd, (struct sockaddr *)&address, n_bytes) != 0 ||
            getsockname(fd, (struct sockaddr *)&address, &n_bytes) != 0) {
            int errnum = errno;
            packet_ports_close(ports);
            return errmsg_set(err, err_from_errno(errnum),
                              "probe engine \"packet\": cannot take %d ports for itself: %s",
                              PACKET_PORTS, strerror(errnum));
        }
        ports->ports[i] = port_of(&address);
    }
    return 0;
}

/* A UDP socket that is connected knows its source, and has sent nothing. */
static enum probe_reason ask_kernel(int fd, const struct probe_target *target,
                                    struct addr *ret_source)
{
    struct sockaddr_storage address;
    socklen_t n_bytes;

    if (target->source.family != ADDR_NONE) {
        n_bytes = connect_socket_address(&target->source, 0, &address);
        if (bind(fd, (struct sockaddr *)&address, n_bytes) != 0) {
            return probe_reason_of_errno(PROBE_CALL_BIND, errno);
        }
    }
    n_bytes =
        connect_socket_address(&target->definition.to.addr, target->definition.to.port, &address);
    if (connect(fd, (struct sockaddr *)&address, n_bytes) != 0) {
        return probe_reason_of_errno(PROBE_CALL_CONNECT, errno);
    }
    n_bytes = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &n_bytes) != 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    connect_socket_read_address(&address, ret_source);
    return REASON_NONE;
}

enum probe_reason packet_source_find(const struct probe_target *target, struct addr *ret_source)
{
    uint8_t family = target->definition.to.addr.family;

    if (target->source.family != ADDR_NONE && target->source.family != family) {
        return REASON_LOCAL_SOURCE_MISSING;
    }
    int fd = socket(family == ADDR_IPV6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return probe_reason_of_errno(PROBE_CALL_SOCKET, errno);
    }
    enum probe_reason reason = ask_kernel(fd, target, ret_source);
    close(fd);
    return reason;
}
