#include "common/wire/unpack.h"

#include <assert.h>
#include <string.h>

/* The 32-fold of the bytes holds what our densest message becomes (a list of backends: 10-fold,
 * tests/unit/wire/test_unpack.c); the floor is for small messages of many kinds. */
#define BUDGET_PER_BYTE 32
#define BUDGET_BYTES_MIN (64 * 1024)
#define FIELD_NUMBER_MAX ((1U << 29) - 1)

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5
};

struct scan {
    const struct wire_limits *limits;
    size_t n_elements;
    struct errmsg *err;
};

struct span {
    const uint8_t *at;
    const uint8_t *end;
};

static size_t span_left(const struct span *span)
{
    return (size_t)(span->end - span->at);
}

/* False when it is cut off or longer than ten bytes. */
static bool read_varint(struct span *span, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (span->at == span->end) {
            return false;
        }
        uint8_t byte = *span->at++;
        if (shift == 63 && byte > 1) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static int refuse(struct scan *scan, const ProtobufCMessageDescriptor *type,
                  const ProtobufCFieldDescriptor *field, const char *what)
{
    return errmsg_set(scan->err, ERR_INVALID, "message %s%s%s: %s", type->name,
                      field != NULL ? ", field " : "", field != NULL ? field->name : "", what);
}

static int count_elements(struct scan *scan, const ProtobufCMessageDescriptor *type, size_t n)
{
    if (n > scan->limits->elements_max - scan->n_elements) {
        return errmsg_set(scan->err, ERR_LIMIT, "message %s holds more than %zu values", type->name,
                          scan->limits->elements_max);
    }
    scan->n_elements += n;
    return 0;
}

/* Continuation bytes that follow a lead byte, and the least code point of that length; false for a
 * byte that leads nothing. */
static bool utf8_lead(uint8_t lead, unsigned *ret_n_more, uint32_t *ret_bits, uint32_t *ret_min)
{
    if (lead >= 0xc2 && lead <= 0xdf) {
        *ret_n_more = 1;
        *ret_bits = lead & 0x1f;
        *ret_min = 0x80;
    } else if ((lead & 0xf0) == 0xe0) {
        *ret_n_more = 2;
        *ret_bits = lead & 0x0f;
        *ret_min = 0x800;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        *ret_n_more = 3;
        *ret_bits = lead & 0x07;
        *ret_min = 0x10000;
    } else {
        return false;
    }
    return true;
}

/* RFC 3629, without NUL. */
static bool is_text(struct span span)
{
    while (span.at < span.end) {
        uint8_t lead = *span.at++;
        unsigned n_more = 0;
        uint32_t code = lead;
        uint32_t code_min = 1;

        if (lead >= 0x80 && !utf8_lead(lead, &n_more, &code, &code_min)) {
            return false;
        }
        for (; n_more > 0; n_more--) {
            if (span.at == span.end || (*span.at & 0xc0) != 0x80) {
                return false;
            }
            code = code << 6 | (*span.at++ & 0x3f);
        }
        if (code < code_min || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
            return false;
        }
    }
    return true;
}

static enum wire_type scalar_wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        break;
    }
    return WIRE_VARINT;
}

static int scan_message(struct scan *scan, const ProtobufCMessageDescriptor *type,
                        struct span span);

/* A packed field: values without tags. */
static int scan_packed(struct scan *scan, const ProtobufCMessageDescriptor *type,
                       const ProtobufCFieldDescriptor *field, struct span span)
{
    enum wire_type wire_type = scalar_wire_type(field->type);
    size_t n_bytes = span_left(&span);
    size_t n = 0;

    if (wire_type == WIRE_FIXED32 || wire_type == WIRE_FIXED64) {
        size_t width = wire_type == WIRE_FIXED32 ? 4 : 8;

        if (n_bytes % width != 0) {
            return refuse(scan, type, field, "has a broken length");
        }
        return count_elements(scan, type, n_bytes / width);
    }
    for (; span.at < span.end; n++) {
        uint64_t value;

        if (!read_varint(&span, &value)) {
            return refuse(scan, type, field, "holds a broken number");
        }
    }
    return count_elements(scan, type, n);
}

/* The bytes of a length-delimited field. */
static int scan_bytes(struct scan *scan, const ProtobufCMessageDescriptor *type,
                      const ProtobufCFieldDescriptor *field, struct span span)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return scan_message(scan, field->descriptor, span);
    }
    if (field->type == PROTOBUF_C_TYPE_STRING && !is_text(span)) {
        return refuse(scan, type, field, "is not text (UTF-8 without NUL)");
    }
    return 0;
}

/* A length and that many bytes. */
static int scan_delimited(struct scan *scan, const ProtobufCMessageDescriptor *type,
                          const ProtobufCFieldDescriptor *field, struct span *span)
{
    uint64_t n_bytes;

    if (!read_varint(span, &n_bytes) || n_bytes > span_left(span)) {
        return refuse(scan, type, field, "is cut off");
    }
    struct span inner = {span->at, span->at + n_bytes};
    span->at = inner.end;
    if (field == NULL) {
        return 0;
    }
    if (scalar_wire_type(field->type) != WIRE_BYTES) {
        return scan_packed(scan, type, field, inner);
    }
    return scan_bytes(scan, type, field, inner);
}

/* The value behind a tag; known fields only have to be of their own wire type. */
static int scan_value(struct scan *scan, const ProtobufCMessageDescriptor *type,
                      const ProtobufCFieldDescriptor *field, unsigned wire_type, struct span *span)
{
    uint64_t value;
    size_t width = wire_type == WIRE_FIXED32 ? 4 : 8;

    switch (wire_type) {
    case WIRE_VARINT:
        return read_varint(span, &value) ? 0 : refuse(scan, type, field, "holds a broken number");
    case WIRE_FIXED32:
    case WIRE_FIXED64:
        if (span_left(span) < width) {
            return refuse(scan, type, field, "is cut off");
        }
        span->at += width;
        return 0;
    case WIRE_BYTES:
        return scan_delimited(scan, type, field, span);
    default:
        return refuse(scan, type, field, "has an unknown wire type");
    }
}

static int scan_field(struct scan *scan, const ProtobufCMessageDescriptor *type, uint64_t tag,
                      struct span *span)
{
    unsigned wire_type = (unsigned)(tag & 7);
    uint64_t number = tag >> 3;

    if (number == 0 || number > FIELD_NUMBER_MAX) {
        return refuse(scan, type, NULL, "holds a field number out of range");
    }
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(type, (unsigned)number);
    if (field == NULL && scan->limits->refuses_unknown) {
        return errmsg_set(scan->err, ERR_VERSION,
                          "message %s holds field %u, which this node does not know: nothing was "
                          "changed; ask a node of a newer version",
                          type->name, (unsigned)number);
    }
    if (field != NULL && scalar_wire_type(field->type) != wire_type &&
        !(wire_type == WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED)) {
        return refuse(scan, type, field, "is of another type");
    }
    int rc = count_elements(scan, type, 1);
    return rc != 0 ? rc : scan_value(scan, type, field, wire_type, span);
}

/* Recursive; the types do not contain themselves, so their nesting bounds it. */
static int scan_message(struct scan *scan, const ProtobufCMessageDescriptor *type, struct span span)
{
    while (span.at < span.end) {
        uint64_t tag;

        if (!read_varint(&span, &tag)) {
            return refuse(scan, type, NULL, "is cut off");
        }
        int rc = scan_field(scan, type, tag, &span);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

size_t wire_budget(const struct wire_limits *limits)
{
    size_t bytes = limits->bytes_max * BUDGET_PER_BYTE;

    return bytes < BUDGET_BYTES_MIN ? BUDGET_BYTES_MIN : bytes;
}

int wire_unpack(const ProtobufCMessageDescriptor *type, const struct wire_limits *limits,
                const uint8_t *data, size_t n_bytes, struct wire_arena *arena,
                ProtobufCMessage **ret_message, struct errmsg *err)
{
    struct scan scan = {.limits = limits, .err = err};

    if (n_bytes > limits->bytes_max) {
        return errmsg_set(err, ERR_LIMIT, "message %s has %zu bytes, allowed are %zu", type->name,
                          n_bytes, limits->bytes_max);
    }
    /* An empty message may come without a buffer. */
    static const uint8_t nothing[1];
    data = n_bytes > 0 ? data : nothing;
    int rc = scan_message(&scan, type, (struct span){data, data + n_bytes});
    if (rc != 0) {
        return rc;
    }
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &arena->allocator, n_bytes, data);
    if (message == NULL && arena->failed) {
        return errmsg_set(err, ERR_LIMIT, "message %s needs more memory than allowed (%zu bytes)",
                          type->name, arena->budget_bytes);
    }
    if (message == NULL) {
        return errmsg_set(err, ERR_INVALID, "message %s cannot be read", type->name);
    }
    *ret_message = message;
    return 0;
}

uint8_t *wire_pack(const ProtobufCMessage *message, struct wire_arena *arena, size_t *ret_n_bytes)
{
    if (arena->failed) {
        return NULL;
    }
    size_t n_bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *data = wire_alloc(arena, n_bytes);
    if (data != NULL) {
        size_t n_packed = protobuf_c_message_pack(message, data);

        assert(n_packed == n_bytes);
        *ret_n_bytes = n_packed;
    }
    return data;
}
