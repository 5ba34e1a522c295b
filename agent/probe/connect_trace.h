/* What the connect engine can tell of its one probe when somebody looks: the kernel makes the
 * packets, so some of them are known by asking it. Private to the files connect_*.c. Each call is
 * nothing for an engine without a trace. */
#ifndef JURY_PROBE_CONNECT_TRACE_H
#define JURY_PROBE_CONNECT_TRACE_H

#include "agent/probe/connect_attempt.h"

/* The SYN was asked for. */
void connect_trace_opened(struct connect_engine *engine, const struct attempt *attempt);
/* Of a probe that waits for its SYN-ACK: SYNs that the kernel repeated since the last look. */
void connect_trace_look(struct connect_engine *engine);
/* The connection attempt has come to its end. reason: connect_socket_error's. */
void connect_trace_connecting(struct connect_engine *engine, const struct attempt *attempt,
                              enum probe_reason reason);
/* Before its descriptor is closed. */
void connect_trace_closing(struct connect_engine *engine, const struct attempt *attempt,
                           enum ending ending);

#endif
