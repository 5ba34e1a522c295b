/* The TLS of one probe: bytes in, bytes out, by OpenSSL over memory. No socket, no waiting: who
 * owns it moves the bytes (connect_tls.c) and keeps the deadline.
 *
 * An optional part (JURY_TLS of CMake); without it there is connect_tls_absent.c.
 *
 * What a backend can cost, whatever it sends: it is the owner who bounds the bytes (LIMIT_TLS_BYTES
 * of one connection), so that no certificate chain or flood of records is longer. Renegotiation is
 * refused, nothing is resumed or kept, and finite-field Diffie-Hellman is not offered: there the
 * backend would choose a modulus that takes this thread a second. */
#ifndef JURY_PROBE_TLS_SESSION_H
#define JURY_PROBE_TLS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/probe.h"
#include "common/model/check.h"
#include "common/model/reason.h"

/* What all sessions of an engine share: settings, and the certificates of the system. */
struct tls_contexts;
struct tls_session;

/* Reads the system's certificates: some milliseconds. NULL: there is no memory. */
struct tls_contexts *tls_contexts_new(void);
/* After all its sessions. NULL is allowed. */
void tls_contexts_free(struct tls_contexts *contexts);

/* check: borrowed. Returns REASON_NONE and a session (given), or why there is none:
 * REASON_LOCAL_NO_TRUST, REASON_LOCAL_NO_BUFFER. */
enum probe_reason tls_session_new(struct tls_contexts *contexts, const struct tls_check *check,
                                  struct tls_session **ret_session);
/* NULL is allowed. */
void tls_session_free(struct tls_session *session);

/* Bytes that came. False: no memory. */
bool tls_session_take(struct tls_session *session, const void *bytes, size_t n_bytes);
/* Bytes that wait to be sent, 0 = none; they stay until they are dropped. */
size_t tls_session_output(struct tls_session *session, const void **ret_bytes);
void tls_session_drop(struct tls_session *session, size_t n_bytes);

enum tls_progress {
    TLS_MORE, /* it goes on when more bytes have come */
    TLS_DONE,
    TLS_CLOSED, /* the backend said that it sends no more */
    TLS_FAILED  /* an alert may wait to be sent */
};
/* Go on with the handshake as far as the bytes allow. */
enum tls_progress tls_session_shake(struct tls_session *session);
/* After TLS_DONE: REASON_OK, or what of the certificate, or of the protocol that was chosen, is not
 * what the check wants. */
enum probe_reason tls_session_judge(struct tls_session *session, const struct tls_check *check);
/* After TLS_DONE: when the certificate ends, and whether a warning is due now. */
struct cert_end tls_session_cert_end(struct tls_session *session, const struct tls_check *check);

/* Inside, after TLS_DONE. False: it failed. */
bool tls_session_write(struct tls_session *session, const void *bytes, size_t n_bytes);
/* TLS_DONE with 1..n_max bytes, or what else there is. */
enum tls_progress tls_session_read(struct tls_session *session, void *bytes, size_t n_max,
                                   size_t *ret_n_bytes);
/* Say that no more comes. */
void tls_session_finish(struct tls_session *session);

#endif
