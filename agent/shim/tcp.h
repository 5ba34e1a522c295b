/* TCP flows of a worker: accept, choose and connect, relay, end.
 *
 * A backend that can not be connected to is passed over before any byte was sent: the next choice
 * among the usable members is tried, at most SELECT_TRIES members in all and within one connect
 * timeout; an attempt that hears nothing gives way after its third of it, if there is another
 * member. A flow that reached nobody ends with RST. */
#ifndef JURY_SHIM_TCP_H
#define JURY_SHIM_TCP_H

#include "agent/shim/worker.h"

/* Take what waits in the listener's queue, within a bound. */
void tcp_accept(struct worker *worker, const struct shim_entry *entry);
/* events: of epoll. */
void tcp_on_event(struct worker *worker, struct flow *flow, enum relay_side side, uint32_t events);
/* The connect attempt's time is over, or the flow was idle. */
void tcp_on_timer(struct worker *worker, struct flow *flow);
/* Move bytes; ends the flow when it is over. */
enum relay_outcome tcp_pump(struct worker *worker, struct flow *flow);

#endif
