/* The header block of an HTTP/1 reply, read byte by byte as it comes from a backend that nobody
 * trusts. Pure; keeps no copy of the bytes, so its memory is this struct whatever is sent.
 *
 * What it decides is the final status and whether the header block is complete and well formed; no
 * field is interpreted, so no length, encoding or redirect can keep a probe waiting (cases A03,
 * A04, A06, A08). Because each byte is looked at once and in order, the outcome cannot depend on
 * how the bytes were split over reads.
 *
 * The grammar (RFC 9112 sections 2.2, 4 and 5; where it leaves a choice, this is ours):
 *  - status line: "HTTP/1." digit, one space, three digits 100..599, then the end of the line or a
 *    space and any text (A01). Other major versions, 0.9 too, are malformed: we asked for HTTP/1.
 *  - field line: a token, ":", any text. A blank before the colon or an empty name is malformed.
 *  - a line that begins with a blank continues the field before it (obs-fold); directly after the
 *    status line it is malformed.
 *  - a line ends with CR LF or with LF alone. A CR that no LF follows, and a NUL, are malformed
 *    anywhere; other control bytes pass inside text.
 *  - 1xx replies other than 101 are skipped with their header block, and count to the bound;
 *    101 is final (no probe asks for an upgrade, so it is never expected). */
#ifndef JURY_CORE_HTTP_REPLY_H
#define JURY_CORE_HTTP_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "common/model/check.h"
#include "common/model/reason.h"

enum http_reply_state {
    HTTP_REPLY_NONE = 0,
    HTTP_REPLY_MORE,     /* the header block is not complete yet */
    HTTP_REPLY_COMPLETE, /* the empty line of the final reply was read; what follows is body */
    HTTP_REPLY_MALFORMED /* or longer than LIMIT_HTTP_HEADER_BYTES */
};

/* Zero is not a valid value: use http_reply_init. */
struct http_reply {
    uint8_t state;           /* enum http_reply_state */
    uint8_t step;            /* what the next byte may be; private */
    uint8_t version_at;      /* bytes of "HTTP/1." that were matched; private */
    uint8_t n_status_digits; /* private */
    uint16_t line_status;    /* of the status line that is being read; private */
    uint16_t status;         /* of the final reply, known once its line has ended; else 0 */
    uint32_t n_header_bytes; /* looked at so far, all replies; at most the limit + 1 */
};

void http_reply_init(struct http_reply *reply);

/* Account for the next bytes of the connection. Once the state is COMPLETE or MALFORMED it stays
 * so and further bytes change nothing. Returns the state. */
enum http_reply_state http_reply_feed(struct http_reply *reply, const void *data, size_t n_bytes);

/* What a finished reply says: REASON_OK when the status is among the expected ones,
 * REASON_HTTP_CODE_NOT_MATCH, or REASON_HTTP_INVALID_HEADER. Only for COMPLETE and MALFORMED. */
enum probe_reason http_reply_judge(const struct http_reply *reply, const struct http_codes *expect);

#endif
