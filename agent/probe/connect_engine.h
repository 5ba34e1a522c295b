/* The probe engine that needs no rights: ordinary TCP sockets, non-blocking, one epoll instance.
 *
 * Makes tcp full, http, tls and grpc. How a probe goes (spec.md 4):
 *  - tcp: SYN, SYN-ACK, ACK; passed; RST at once (TCP_CLOSE_FIN: FIN). A reset that follows the
 *    SYN-ACK changes nothing, whether it is seen before or after.
 *  - http: connect, send, read until the header block is complete; the result is known there. Then
 *    up to PROBE_LINGER_NS for the server's FIN, answered by ours, so that TIME_WAIT is the
 *    server's (A13); if it does not come, or if 16 KiB came in all, RST. Never more than
 *    LIMIT_HTTP_HEADER_BYTES + 1 bytes are read of one connection (A06).
 *  - tls, if it was enabled: connect, handshake, passed; with an http part the request inside, as
 *    above. Then close_notify and the same wait for the server's FIN. At most LIMIT_TLS_BYTES are
 *    read.
 *  - grpc, likewise: connect, or the handshake; the call and its answer; GOAWAY and that wait.
 *  - after the timeout of a connection attempt: nothing, since closing a connecting socket sends
 *    nothing; or the RST that the check wants, by the raw sender (syn_tap.h).
 *  - Sockets are kept for later probes (connect_pool.h).
 *  - SYN repeats are the kernel's: at 1 s and 3 s, with later kernels each second at first.
 *
 * See probe_engine.h for the contract of its functions. */
#ifndef JURY_PROBE_CONNECT_ENGINE_H
#define JURY_PROBE_CONNECT_ENGINE_H

#include "agent/probe/probe_engine.h"
#include "agent/probe/probe_lateness.h"
#include "common/base/err.h"

#define PROBE_LINGER_NS (100 * NS_PER_MS)

/* capacity: probes in flight, 1..LIMIT_PROBES_IN_FLIGHT; closing connections use what is free of
 * them and are reset when it is needed.
 * lateness: the thread's, kept.
 * ret_engine: given, freed by ops->free. Errors: ERR_NOMEM, ERR_LIMIT (no descriptor). */
int connect_engine_new(uint32_t capacity, const struct probe_lateness *lateness,
                       struct probe_engine **ret_engine, struct errmsg *err);

/* From now on a RST by raw packets follows the timeout of a tcp check that wants one, if this
 * process has CAP_NET_RAW; else none does. */
void connect_engine_enable_rst(struct probe_engine *engine);
/* From now on it makes tls probes, too; reads the system's certificates, which takes some
 * milliseconds. False: this agent was built without them, or there is no memory. */
bool connect_engine_enable_tls(struct probe_engine *engine);
/* And grpc probes, after the former those within TLS as well. False: built without them. */
bool connect_engine_enable_grpc(struct probe_engine *engine);

#endif
