/* What a gRPC health check (grpc.health.v1.Health/Check) asks, and what is made of its answer.
 * Pure: HTTP/2 itself is agent/probe/grpc_call.c's; here are the message that goes out, and the
 * fields and bytes that come back from a backend that nobody trusts, read as they come and never
 * kept.
 *
 * The answer passes with HTTP status 200, grpc-status 0 and one message whose `status` is SERVING.
 * A message is five bytes, of which the first says that it is not compressed and the others how
 * long it is, and then a HealthCheckResponse {1: varint}. Unknown fields are skipped, as protobuf
 * wants; of `status` the last one counts. */
#ifndef JURY_CORE_GRPC_HEALTH_H
#define JURY_CORE_GRPC_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/check.h"
#include "common/model/reason.h"

#define GRPC_HEALTH_PATH "/grpc.health.v1.Health/Check"
#define GRPC_PREFIX_BYTES 5
/* Prefix, tag and length of the field, and the name: below 128 bytes, so each takes one byte. */
#define GRPC_REQUEST_BYTES_MAX (GRPC_PREFIX_BYTES + 2 + LIMIT_GRPC_SERVICE_BYTES)
/* An answer of a server that is well has 2 bytes. */
#define GRPC_REPLY_BYTES_MAX 1024

/* The message for a service, "" = the server as a whole. Returns the number of bytes. */
size_t grpc_health_request(const char *service, uint8_t ret_bytes[GRPC_REQUEST_BYTES_MAX]);

/* Zero-initialise. */
struct grpc_reply {
    uint16_t http_status; /* 0 = none yet */
    uint16_t grpc_status; /* with has_grpc_status; above 999 it is 999 */
    uint8_t serving;      /* the `status` of the message; above 255 it is 255 */
    bool has_grpc_status;
    bool is_malformed;
    uint8_t step;       /* what the next byte of the message is; private */
    uint8_t n_prefix;   /* private */
    uint8_t n_shift;    /* private */
    uint8_t tag;        /* private */
    uint32_t left;      /* bytes of the message that have not come; private */
    uint64_t value;     /* the varint that is being read; private */
    uint32_t n_to_skip; /* private */
};

/* A field of the answer's header or trailer; what is of no interest is ignored. */
void grpc_reply_header(struct grpc_reply *reply, const char *name, size_t n_name, const char *value,
                       size_t n_value);
/* The next bytes of the answer's body. */
void grpc_reply_data(struct grpc_reply *reply, const uint8_t *bytes, size_t n_bytes);
/* When the stream has ended. Returns REASON_OK, REASON_HTTP_CODE_NOT_MATCH, REASON_GRPC_STATUS,
 * REASON_GRPC_NOT_SERVING or REASON_GRPC_INVALID. ret_number: what is shown with it: the HTTP or
 * gRPC status, or `status`; 0 = nothing. */
enum probe_reason grpc_reply_judge(const struct grpc_reply *reply, uint16_t *ret_number);

#endif
