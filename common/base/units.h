/* Times and sizes as people write them.
 *
 * A time always has a unit: "5s", "250ms", "1.5s", "5m", "1h". A bare number, a sign, an exponent
 * or an unknown unit is refused (case A19): a unit guessed wrong once flapped every server of a
 * site. */
#ifndef JURY_BASE_UNITS_H
#define JURY_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)

/* Parse a time into milliseconds. Finer than 1 ms is refused, so that no digit is dropped.
 * Errors: ERR_INVALID with a sentence that quotes the text. */
int units_parse_duration_ms(const char *text, uint64_t *ret_ms, struct errmsg *err);

/* Print as the shortest exact form: 5000 -> "5s", 1500 -> "1.5s", 300000 -> "5m" , 250 -> "250ms".
 * text: at least 32 bytes. Returns text. */
char *units_format_duration_ms(uint64_t ms, char *text, size_t text_bytes);

/* Print a time that was measured, for people; it cannot be read back: "296us", "12ms", "4.57s",
 * "4m57s", "3h2m", "2d5h". What is left out is cut off, not rounded.
 * text: at least 32 bytes. Returns text. */
char *units_format_span_us(uint64_t us, char *text, size_t text_bytes);

#endif
