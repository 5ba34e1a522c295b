/* Bytes to messages and back, with every bound checked before protobuf-c sees the bytes.
 *
 * A first pass walks the wire format by the type's descriptor and refuses: more bytes than allowed,
 * more elements than allowed, broken lengths and tags, group tags, text that is not UTF-8 or holds
 * a NUL (protobuf-c would cut it there), and, where asked, fields that this version does not know.
 * Depth is bounded by the types themselves (gen_methods.c). Ranges of numbers and enums are the
 * business of the conversions in object.h (S-PB-1..3). */
#ifndef JURY_WIRE_UNPACK_H
#define JURY_WIRE_UNPACK_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/wire/arena.h"

struct wire_limits {
    size_t bytes_max;
    size_t elements_max;  /* fields with a value, of all messages together */
    bool refuses_unknown; /* a field that this version does not know is ERR_VERSION: for writes,
                             where skipping it would change what the user asked for */
};

/* Budget of an arena that holds any message within the limits. */
size_t wire_budget(const struct wire_limits *limits);

/* The message lives in the arena. Errors: ERR_LIMIT (bytes, elements, memory), ERR_INVALID (not a
 * message of that type), ERR_VERSION (unknown field). The sentence names the type and the field. */
int wire_unpack(const ProtobufCMessageDescriptor *type, const struct wire_limits *limits,
                const uint8_t *data, size_t n_bytes, struct wire_arena *arena,
                ProtobufCMessage **ret_message, struct errmsg *err);

/* Packed into the arena. NULL: the arena is used up. */
uint8_t *wire_pack(const ProtobufCMessage *message, struct wire_arena *arena, size_t *ret_n_bytes);

#endif
