/* One connection of the connect engine, and the engine's bookkeeping of them. Private to
 * the files connect_*.c. */
#ifndef JURY_PROBE_CONNECT_ATTEMPT_H
#define JURY_PROBE_CONNECT_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/http_reply.h"
#include "agent/probe/connect_pool.h"
#include "agent/probe/probe_attempt.h"
#include "agent/probe/probe_engine.h"
#include "agent/probe/probe_places.h"

enum attempt_step {
    STEP_FREE,
    STEP_REFUSED, /* could not begin; the result waits for run */
    STEP_CONNECTING,
    STEP_SENDING,
    STEP_RECEIVING,
    STEP_TALKING,  /* within TLS, or HTTP/2: both ways */
    STEP_LINGERING /* the result is out, the connection is being closed */
};

struct syn_tap;
struct tls_contexts;
struct tls_session;
struct grpc_call;

struct attempt {
    struct probe_attempt probe; /* target NULL when lingering: nothing of it is needed any more */
    struct http_reply reply;
    struct tls_session *tls; /* NULL = none; owned */
    struct grpc_call *call;  /* likewise */
    struct cert_end cert;
    uint32_t n_received;
    int fd;
    uint16_t n_sent;
    bool is_inside;   /* the handshake is done, its request is out */
    bool is_readable; /* an edge said so and nothing has been read since */
    bool is_established;
    bool is_tapped;   /* its SYN is listened for */
    bool has_fin;     /* an edge said so: all that the server has to say has come */
    uint8_t step;     /* enum attempt_step */
    uint32_t younger; /* lingering list; NO_PLACE = none */
    uint32_t older;   /* likewise */
};

struct connect_engine {
    struct probe_engine base; /* first */
    const struct probe_lateness *lateness;
    struct silent_ways ways;
    const struct probe_sink *sink; /* inside run */
    struct probe_places places;    /* timers: deadline, or end of lingering */
    struct connect_pool pool;
    struct attempt *attempts; /* by place */
    struct tls_contexts *tls; /* NULL = it makes no tls probes */
    struct syn_tap *tap;      /* NULL = no RST follows a timeout */
    bool may_tap;             /* it may be opened when it is needed */
    uint32_t n_tapped;        /* attempts that it listens for */
    uint32_t linger_oldest;
    uint32_t linger_youngest;
};

enum ending {
    END_BY_RST,
    END_BY_FIN,
    END_BY_OUR_FIN /* the server's came before */
};

uint32_t attempt_index(const struct connect_engine *engine, const struct attempt *attempt);
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

/* What both parts do with the connection (connect_transfer.c).
 *
 * Send what is left of these bytes, of which n_sent are out. True: there is no more to do, which a
 * connection that is closed already can mean too; the step is STEP_RECEIVING. False: the socket
 * takes no more for now, or the probe has ended. */
bool attempt_send(struct connect_engine *engine, struct attempt *attempt, const void *bytes,
                  size_t n_bytes);
/* Read at most n_bytes, of which n_received counts. Returns how many; 0: nothing more is there for
 * now, or the probe has ended. */
size_t attempt_read(struct connect_engine *engine, struct attempt *attempt, void *bytes,
                    size_t n_bytes);

/* Send some of these bytes. Returns how many; 0: the socket takes no more for now, or is closed
 * already, which reading will tell, or with ret_errnum above 0 that failed. */
size_t attempt_send_some(struct attempt *attempt, const void *bytes, size_t n_bytes,
                         int *ret_errnum);
/* As attempt_read, but not more than LIMIT_TLS_BYTES of the connection: beyond, the probe ends with
 * that reason. */
size_t attempt_read_bounded(struct connect_engine *engine, struct attempt *attempt, void *bytes,
                            size_t n_bytes, enum probe_reason beyond);
/* The result is out and so is our goodbye: drop what was inside, wait for the backend's FIN. */
void attempt_part_politely(struct connect_engine *engine, struct attempt *attempt);

/* The http part (connect_http.c): each goes on as far as the socket allows. */
void attempt_send_request(struct connect_engine *engine, struct attempt *attempt);
void attempt_receive(struct connect_engine *engine, struct attempt *attempt);
void attempt_linger(struct connect_engine *engine, struct attempt *attempt);
/* The RST after a timeout (connect_rst.c). Before the SYN leaves; in each run; when to look at an
 * attempt that is connecting, and that look: false, its time is over; when it does not connect any
 * more; while the attempt still has its socket. */
void connect_rst_prepare(struct connect_engine *engine, struct attempt *attempt,
                         const struct probe_target *target);
void connect_rst_drain(struct connect_engine *engine);
uint64_t connect_rst_look_ns(const struct connect_engine *engine, const struct attempt *attempt);
bool connect_rst_look(struct connect_engine *engine, struct attempt *attempt);
void connect_rst_end(struct connect_engine *engine, struct attempt *attempt);
void connect_rst_send(struct connect_engine *engine, const struct attempt *attempt);
void connect_rst_close(struct connect_engine *engine);
/* The TLS part (connect_tls.c; in its place connect_tls_absent.c in a build without it). */
void attempt_begin_tls(struct connect_engine *engine, struct attempt *attempt);
void attempt_run_tls(struct connect_engine *engine, struct attempt *attempt);
void attempt_drop_tls(struct attempt *attempt);
void connect_engine_drop_tls(struct connect_engine *engine);
/* The gRPC part (connect_grpc.c; in its place connect_grpc_absent.c): in the clear, */
void attempt_begin_grpc(struct connect_engine *engine, struct attempt *attempt);
void attempt_run_grpc(struct connect_engine *engine, struct attempt *attempt);
/* and what it says and hears, for who carries it. False: no memory. */
bool attempt_begin_call(struct attempt *attempt);
size_t attempt_call_output(struct attempt *attempt, const void **ret_bytes);
void attempt_call_sent(struct attempt *attempt, size_t n_bytes);
bool attempt_take_call(struct attempt *attempt, const void *bytes, size_t n_bytes);
/* When its output is sent. REASON_NONE: there is more to come. Else the result; its number is in
 * reply.status. */
enum probe_reason attempt_judge_call(struct attempt *attempt);
void attempt_finish_call(struct attempt *attempt);
void attempt_drop_call(struct attempt *attempt);
/* The line part (connect_line.c), likewise. */
void attempt_send_line(struct connect_engine *engine, struct attempt *attempt);
void attempt_receive_line(struct connect_engine *engine, struct attempt *attempt);

#endif
