/* One call of the gRPC health service: bytes in, bytes out, HTTP/2 by libnghttp2 over memory. No
 * socket, no waiting: who owns it moves the bytes, in the clear (connect_grpc.c) or within TLS
 * (connect_tls.c), keeps the deadline and bounds the bytes (LIMIT_TLS_BYTES of one connection).
 *
 * What a backend can send beyond an answer costs what those bytes cost: the library refuses floods
 * of settings, pings and CONTINUATION frames; pushes and other streams are forbidden, and its
 * field table is of 4 KiB.
 *
 * An optional part (JURY_GRPC of CMake); without it there is connect_grpc_absent.c. */
#ifndef JURY_PROBE_GRPC_CALL_H
#define JURY_PROBE_GRPC_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/check.h"
#include "common/model/reason.h"

struct grpc_call;

/* definition: of a valid grpc check, borrowed. NULL: no memory. */
struct grpc_call *grpc_call_new(const struct target_definition *definition);
/* NULL is allowed. */
void grpc_call_free(struct grpc_call *call);

/* Bytes that came. False: no memory. */
bool grpc_call_take(struct grpc_call *call, const void *bytes, size_t n_bytes);
/* Bytes that wait to be sent, 0 = none; they stay until they are dropped. */
size_t grpc_call_output(struct grpc_call *call, const void **ret_bytes);
void grpc_call_drop(struct grpc_call *call, size_t n_bytes);

/* When all output is sent. REASON_NONE: the answer is not complete yet. Else what it is;
 * ret_number: as grpc_reply_judge. */
enum probe_reason grpc_call_judge(const struct grpc_call *call, uint16_t *ret_number);
/* Say that no more comes: a frame to send. */
void grpc_call_finish(struct grpc_call *call);

#endif
