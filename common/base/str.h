/* Small helpers for C strings with a bound. */
#ifndef JURY_BASE_STR_H
#define JURY_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copy with a terminator. Returns false, and writes nothing, when it does not fit. */
bool str_copy(char *to, size_t to_bytes, const char *from);

/* Decimal digits only, at most `max`. Returns false on anything else. */
bool str_parse_u64(const char *text, uint64_t max, uint64_t *ret_value);

/* Lower-case hex. to: 2 * n_bytes + 1 bytes. */
void str_hex(const uint8_t *data, size_t n_bytes, char *to);
/* Exactly 2 * n_bytes hex digits of either case; false otherwise. */
bool str_unhex(const char *text, uint8_t *to, size_t n_bytes);

/* Valid UTF-8 (RFC 3629) without control characters: what may be shown on a terminal, put in JSON
 * and in a log line as it is. */
bool str_is_text(const char *text);
/* Each byte that is not of such text becomes a '?', lines stay lines. NUL-terminated, in place. */
void str_make_text(char *text);

/* Edit distance for "did you mean"; both at most 64 characters, longer counts as 64. */
unsigned str_distance(const char *a, const char *b);

#endif
