/* What an errno says about a probe: a fault of the backend, of the way to it, or of this node
 * (spec.md 4, R-PROBE-4, R-SELF-3). Pure. */
#ifndef JURY_PROBE_ERRNO_H
#define JURY_PROBE_ERRNO_H

#include "common/model/reason.h"

/* Where the errno came from. The same number means different things: ENETUNREACH that connect(2)
 * returns is this node's own routing table, ENETUNREACH of a connection under way is an ICMP
 * message of a router. */
enum probe_call {
    PROBE_CALL_SOCKET,     /* socket, setsockopt, epoll_ctl */
    PROBE_CALL_BIND,       /* bind to the probe source */
    PROBE_CALL_CONNECT,    /* returned by connect itself */
    PROBE_CALL_CONNECTING, /* SO_ERROR of a connection that is being made */
    PROBE_CALL_TRANSFER,   /* send and recv on an established connection */
    PROBE_CALL_RAW_SEND    /* of a whole packet: nothing has left */
};

/* errnum: not 0, EINTR, EAGAIN (but see CONNECT) or EINPROGRESS. A number that is not known for the
 * call is this node's fault: it must never count against a backend. */
enum probe_reason probe_reason_of_errno(enum probe_call call, int errnum);

#endif
