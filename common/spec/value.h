/* Single values: text of a document <-> field of a struct. */
#ifndef JURY_SPEC_VALUE_H
#define JURY_SPEC_VALUE_H

#include <stddef.h>

#include "common/spec/doc.h"
#include "common/spec/field.h"

/* Longest text of a value: the bytes of a udp payload in hex. */
#define VALUE_TEXT_BYTES 1088
#define VALUE_HEX_PREFIX "hex:"

/* Read one value. to: the field itself, not its struct; untouched on failure.
 * err: the end of a sentence whose beginning is the field's name: `must be 1..10, got "0"`.
 * Errors: ERR_INVALID. Not for SPEC_TYPE_OBJECT, _LIST, _LABELS, _NONE. */
int value_parse(const struct spec_field *field, const struct doc_node *node, void *to,
                struct errmsg *err);

/* Write one value so that value_parse reads it back. A split rule is not one value: it is written
 * as `down: RULE, up: RULE`, for people. Returns text. */
char *value_format(const struct spec_field *field, const void *from, char *text, size_t text_bytes);

/* As value_format, on one line: "\r", "\n", "\t" and "\\" of data as in a quoted string of YAML. */
char *value_show(const struct spec_field *field, const void *from, char *text, size_t text_bytes);

/* "1..10", "100ms..5m", "local, any or majority" ... or "" if there is nothing to say. */
char *value_format_allowed(const struct spec_field *field, char *text, size_t text_bytes);

/* Whether all bytes of the field are zero. */
bool value_is_zero(const struct spec_field *field, const void *from);

#endif
