/* Times in UTC as RFC 3339 writes them: 2027-01-31T00:00:00Z, milliseconds if there are any. */
#ifndef JURY_SPEC_RFC3339_H
#define JURY_SPEC_RFC3339_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Milliseconds since 1970, years 1970..9999. Only "Z", no other offset, no leap second. */
bool rfc3339_parse_ms(const char *text, int64_t *ret_wall_ms);
/* wall_ms: 0..253402300799999. Returns text; at least 25 bytes. */
char *rfc3339_format_ms(int64_t wall_ms, char *text, size_t text_bytes);

#endif
