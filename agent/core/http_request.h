/* The request of an http probe, as bytes. Pure: no socket, no clock, no allocation.
 *
 * The form is fixed, so that an operator can find probes in the logs of the backend: request line,
 * at most one Host, `User-Agent: jury-probe/VERSION`, `Connection: close`, one empty line. Path and
 * domain go out byte for byte as configured: a "?" stays a "?" (case A10). */
#ifndef JURY_CORE_HTTP_REQUEST_H
#define JURY_CORE_HTTP_REQUEST_H

#include <stddef.h>

#include "common/model/check.h"

#define HTTP_USER_AGENT "jury-probe/" JURY_VERSION

/* Longest request: path and domain of 80 bytes each and the fixed lines. */
#define HTTP_REQUEST_BYTES_MAX 384

/* Write the request for a target whose check asks one (check_asks_http) and is valid (validate.h).
 *
 * Host (S25, S61, S107; case A09 with the modes of spec.md 3): `domain` as given, `address`
 * without a port, `address:port` always with the port, 80 too; IPv6 in brackets; `omitted`
 * sends none.
 * Returns the number of bytes written, without a terminator. */
size_t http_request_build(const struct target_definition *definition,
                          char ret_request[HTTP_REQUEST_BYTES_MAX]);

#endif
