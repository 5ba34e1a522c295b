/* ProtoJSON: messages as JSON, by their descriptors alone.
 *
 * Out: lowerCamelCase names, enums by name, 64-bit integers as strings, bytes as base64, Duration
 * as "1.5s", Timestamp as RFC 3339; fields with their default value are written too, so that the
 * form is stable, except sub-messages and members of a oneof that are not set. In: both spellings
 * of a name, enums by name or number, integers as numbers or strings; unknown names are refused.
 * The judge is python3-protobuf's json_format (tests/unit/wire/json_format.py). */
#ifndef JURY_WIRE_JSON_H
#define JURY_WIRE_JSON_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "common/base/err.h"
#include "common/wire/arena.h"

/* A new reference, given (json_decref). NULL: no memory. Unknown enum numbers come as numbers. */
json_t *wire_json_new(const ProtobufCMessage *message);
/* With an indent of two, without a newline at the end. Given, free(). NULL: no memory. */
char *wire_json_text(const ProtobufCMessage *message);

/* The message lives in the arena. Errors: ERR_INVALID with the path of the field
 * ("group.check.port:
 * ..."), ERR_LIMIT (the arena is used up). */
int wire_json_read(const ProtobufCMessageDescriptor *type, const json_t *json,
                   struct wire_arena *arena, ProtobufCMessage **ret_message, struct errmsg *err);

/* "healthy_threshold" -> "healthyThreshold". Returns `to`. */
char *wire_json_name(const char *proto_name, char *to, size_t to_bytes);

#endif
