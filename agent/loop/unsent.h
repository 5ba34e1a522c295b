/* What a ROUTER keeps for callers that do not read: counted in bytes and bounded.
 *
 * libzmq's high-water mark counts messages, and an answer may be large. So each frame is handed
 * over with a block of its own, and libzmq gives the block back when the frame has gone to the
 * kernel, or with the connection. The sum of the blocks out is what is unsent, of each connection
 * and in all. A connection with nothing unsent may always have one message, so that those that do
 * not read take nothing from those that do. */
#ifndef JURY_LOOP_UNSENT_H
#define JURY_LOOP_UNSENT_H

#include "agent/loop/zmq_hub.h"

struct unsent;

struct unsent_limits {
    size_t connection_bytes;
    size_t bytes; /* in all; and then one message for each connection that has none */
};

/* NULL: no memory. */
struct unsent *unsent_new(const struct unsent_limits *limits);
/* Its memory lasts until the last frame has come back. NULL is allowed. */
void unsent_close(struct unsent *unsent);

/* As zmq_watch_send on a ROUTER: parts[0] is the routing id. One thread only.
 * Errors besides: ERR_LIMIT (the caller has left too much unread), ERR_NOMEM. */
int unsent_send(struct unsent *unsent, struct zmq_watch *watch, const struct zmq_part parts[],
                size_t n_parts);
/* Now, with what each frame costs to keep. Any thread. */
size_t unsent_bytes(const struct unsent *unsent);

#endif
