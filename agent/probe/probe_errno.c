#include "agent/probe/probe_errno.h"

#include <errno.h>

#include "common/base/plant.h"

/* Numbers that mean the same in every call. */
static enum probe_reason local_reason(int errnum)
{
    switch (errnum) {
    case EMFILE:
    case ENFILE:
    case ENOSPC: /* epoll_ctl: too many watches of this user */
        return REASON_LOCAL_NO_DESCRIPTOR;
    case ENOBUFS:
    case ENOMEM:
        return REASON_LOCAL_NO_BUFFER;
    case EPERM:
    case EACCES:
        return REASON_LOCAL_NO_PERMISSION;
    case ENETUNREACH:
    case ENETDOWN:
        return REASON_LOCAL_NO_ROUTE;
    default:
        return REASON_LOCAL_UNSUPPORTED;
    }
}

static enum probe_reason bind_reason(int errnum)
{
    switch (errnum) {
    case EADDRNOTAVAIL:
    case ENODEV:
        return REASON_LOCAL_SOURCE_MISSING;
    case EADDRINUSE:
        return REASON_LOCAL_NO_PORT;
    default:
        return local_reason(errnum);
    }
}

static enum probe_reason connect_reason(int errnum)
{
    switch (errnum) {
    case ECONNREFUSED:
    case EHOSTUNREACH: /* also a route of type unreachable (A15) */
    case EHOSTDOWN:
        return REASON_CONNECT_FAILED;
    case EADDRNOTAVAIL: /* the source was bound before: no port is left for this destination */
    case EADDRINUSE:
    case EAGAIN:
        return REASON_LOCAL_NO_PORT;
    case EINVAL: /* a route of type blackhole */
        return REASON_LOCAL_NO_ROUTE;
    default:
        return local_reason(errnum);
    }
}

/* The packet has left: what comes now was said by the backend or by a router (RFC 1122 4.2.3.9,
 * RFC 4443 3.1), apart from the faults that no ICMP message can cause. */
static enum probe_reason connecting_reason(int errnum)
{
    switch (errnum) {
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENONET:
    case ENOPROTOOPT: /* protocol unreachable */
    case EOPNOTSUPP:  /* source route failed */
    case EACCES:      /* IPv6: administratively prohibited */
    case EPROTO:
        return REASON_CONNECT_FAILED;
    case ECONNRESET: /* reset after the SYN-ACK: a reset before it is ECONNREFUSED */
    case EPIPE:
        return REASON_CONNECT_INTERRUPT;
    case ETIMEDOUT: /* the kernel gave up first */
        return REASON_CONNECT_TIMEOUT;
    case EADDRNOTAVAIL:
        return REASON_LOCAL_SOURCE_MISSING; /* the address was taken from this node meanwhile */
    default:
        return local_reason(errnum);
    }
}

static enum probe_reason transfer_reason(int errnum)
{
    switch (errnum) {
    case ECONNRESET:
    case EPIPE:
    case ENOTCONN:
    case ECONNREFUSED:
        return REASON_CONNECT_INTERRUPT;
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
        return REASON_CONNECT_FAILED;
    case ETIMEDOUT:
        return REASON_RECV_RESPONSE_TIMEOUT;
    default:
        return local_reason(errnum);
    }
}

static enum probe_reason reason_of(enum probe_call call, int errnum)
{
    switch (call) {
    case PROBE_CALL_SOCKET:
        return local_reason(errnum);
    case PROBE_CALL_BIND:
        return bind_reason(errnum);
    case PROBE_CALL_CONNECT:
        return connect_reason(errnum);
    case PROBE_CALL_CONNECTING:
        return connecting_reason(errnum);
    case PROBE_CALL_TRANSFER:
        return transfer_reason(errnum);
    case PROBE_CALL_RAW_SEND:
        /* No port is chosen here: EAGAIN is a full buffer of the socket. */
        return errnum == EAGAIN ? REASON_LOCAL_NO_BUFFER : connect_reason(errnum);
    }
    return REASON_LOCAL_UNSUPPORTED;
}

enum probe_reason probe_reason_of_errno(enum probe_call call, int errnum)
{
    enum probe_reason reason = reason_of(call, errnum);

    if (plant_is("probe-local-fault") && probe_reason_class(reason) == PROBE_INCONCLUSIVE) {
        return REASON_CONNECT_FAILED;
    }
    return reason;
}
