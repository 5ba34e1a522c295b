/* One connection of the connect engine, and the engine's bookkeeping of them. Private to
 * connect_engine.c, connect_http.c, connect_line.c and connect_attempt.c. */
#ifndef JURY_PROBE_CONNECT_ATTEMPT_H
#define JURY_PROBE_CONNECT_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/http_reply.h"
#include "agent/core/timers.h"
#include "agent/probe/probe_engine.h"
#include "agent/probe/probe_lateness.h"

#define NO_ATTEMPT UINT32_MAX

enum attempt_step {
    STEP_FREE,
    STEP_REFUSED, /* could not begin; the result waits for run */
    STEP_CONNECTING,
    STEP_SENDING,
    STEP_RECEIVING,
    STEP_LINGERING /* the result is out, the connection is being closed */
};

struct attempt {
    const struct probe_target *target; /* NULL when lingering: nothing of it is needed any more */
    uint64_t start_ns;
    uint64_t deadline_ns;
    struct probe_mark mark;
    struct http_reply reply;
    uint32_t slot;       /* of the target */
    uint32_t generation; /* tells a late event of the descriptor's last user apart */
    uint32_t n_received;
    int fd;
    uint16_t n_sent;
    bool is_readable;       /* an edge said so and nothing has been read since */
    uint8_t step;           /* enum attempt_step */
    uint8_t refused_reason; /* enum probe_reason */
    uint32_t next;          /* free list, or lingering list (older to younger) */
    uint32_t previous;      /* lingering list */
};

struct connect_engine {
    struct probe_engine base; /* first */
    const struct probe_lateness *lateness;
    const struct probe_sink *sink; /* inside run */
    struct attempt *attempts;      /* base.capacity of them */
    uint32_t *by_slot;             /* target slot -> attempt + 1; 0 = none */
    struct timers timers;          /* by attempt: deadline, or end of lingering */
    uint32_t free_head;
    uint32_t linger_oldest;
    uint32_t linger_youngest;
};

enum ending {
    END_BY_RST,
    END_BY_FIN
};

uint32_t attempt_index(const struct connect_engine *engine, const struct attempt *attempt);
/* Take a free one for a target's slot; there must be one. fd is -1, step is STEP_FREE. */
struct attempt *attempt_take(struct connect_engine *engine, uint32_t slot);
/* It is over in every respect: its descriptor is closed and its place is free. */
void attempt_release(struct connect_engine *engine, struct attempt *attempt, enum ending ending);
/* What is left of it is its connection, to be closed politely (connect_http.c). */
void attempt_begin_linger(struct connect_engine *engine, struct attempt *attempt);

/* Say what came of it. Inside run only. */
void attempt_deliver(struct connect_engine *engine, const struct attempt *attempt,
                     enum probe_reason reason);
/* Deliver and reset. */
void attempt_end(struct connect_engine *engine, struct attempt *attempt, enum probe_reason reason);
/* The same for an answer that nobody may use, because it was found after the deadline.
 * timeout_reason: what it is as a failure. */
void attempt_end_too_late(struct connect_engine *engine, struct attempt *attempt,
                          enum probe_reason timeout_reason);
bool attempt_is_overdue(const struct attempt *attempt);

/* The http part (connect_http.c): each goes on as far as the socket allows. */
void attempt_send_request(struct connect_engine *engine, struct attempt *attempt);
void attempt_receive(struct connect_engine *engine, struct attempt *attempt);
void attempt_linger(struct connect_engine *engine, struct attempt *attempt);
/* The line part (connect_line.c), likewise. */
void attempt_send_line(struct connect_engine *engine, struct attempt *attempt);
void attempt_receive_line(struct connect_engine *engine, struct attempt *attempt);

#endif
