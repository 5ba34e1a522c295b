/* JSON to messages. Recursive; the types do not contain themselves, so their nesting bounds it. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/wire/json.h"
#include "common/wire/json_part.h"

#define NAME_BYTES 128
#define PATH_BYTES 256

struct reader {
    struct wire_arena *arena;
    struct errmsg *err;
    char path[PATH_BYTES]; /* "group.check.port" */
};

static int refuse(struct reader *reader, const char *what)
{
    return errmsg_set(reader->err, ERR_INVALID, "%s%s%s", reader->path,
                      reader->path[0] != '\0' ? ": " : "", what);
}

static int refuse_memory(struct reader *reader)
{
    return errmsg_set(reader->err, ERR_LIMIT, "the document needs more memory than allowed");
}

/* Returns the length to go back to. */
static size_t enter(struct reader *reader, const char *name)
{
    size_t used = strlen(reader->path);

    if (used > 0 && used + 1 < PATH_BYTES) {
        reader->path[used] = '.';
        reader->path[used + 1] = '\0';
    }
    strncat(reader->path, name, PATH_BYTES - strlen(reader->path) - 1);
    return used;
}

/* --- numbers --- */

/* A number, an integral real, or a string of digits, as ProtoJSON allows. */
static bool to_signed(const json_t *json, int64_t min, int64_t max, int64_t *ret_value)
{
    int64_t value;

    if (json_is_integer(json)) {
        value = json_integer_value(json);
    } else if (json_is_real(json)) {
        double real = json_real_value(json);

        if (!(real >= -9007199254740992.0 && real <= 9007199254740992.0) || real != trunc(real)) {
            return false;
        }
        value = (int64_t)real;
    } else if (json_is_string(json)) {
        const char *text = json_string_value(json);
        bool is_negative = text[0] == '-';
        uint64_t digits;

        if (!str_parse_u64(text + is_negative, (uint64_t)INT64_MAX, &digits)) {
            return false;
        }
        value = is_negative ? -(int64_t)digits : (int64_t)digits;
    } else {
        return false;
    }
    *ret_value = value;
    return value >= min && value <= max;
}

static bool to_unsigned(const json_t *json, uint64_t max, uint64_t *ret_value)
{
    int64_t value;

    if (json_is_string(json)) {
        return str_parse_u64(json_string_value(json), max, ret_value);
    }
    if (!to_signed(json, 0, INT64_MAX, &value)) {
        return false;
    }
    *ret_value = (uint64_t)value;
    return *ret_value <= max;
}

static int read_signed(struct reader *reader, const json_t *json, int64_t min, int64_t max,
                       int64_t *ret_value)
{
    return to_signed(json, min, max, ret_value) ? 0
                                                : refuse(reader, "must be a whole number in range");
}

static int read_unsigned(struct reader *reader, const json_t *json, uint64_t max,
                         uint64_t *ret_value)
{
    return to_unsigned(json, max, ret_value)
               ? 0
               : refuse(reader, "must be a whole number of 0 or more in range");
}

/* --- other scalars --- */

static int read_enum(struct reader *reader, const ProtobufCEnumDescriptor *type, const json_t *json,
                     int *ret_value)
{
    int64_t number;

    if (json_is_string(json)) {
        const ProtobufCEnumValue *value =
            protobuf_c_enum_descriptor_get_value_by_name(type, json_string_value(json));

        if (value == NULL) {
            return errmsg_set(reader->err, ERR_INVALID, "%s: \"%.64s\" is no value of %s",
                              reader->path, json_string_value(json), type->name);
        }
        *ret_value = value->value;
        return 0;
    }
    int rc = read_signed(reader, json, INT32_MIN, INT32_MAX, &number);
    if (rc == 0) {
        *ret_value = (int)number;
    }
    return rc;
}

static int read_text(struct reader *reader, const json_t *json, char **ret_text)
{
    if (!json_is_string(json)) {
        return refuse(reader, "must be a string");
    }
    if (strlen(json_string_value(json)) != json_string_length(json)) {
        return refuse(reader, "must not hold a NUL");
    }
    *ret_text = wire_text(reader->arena, json_string_value(json));
    return *ret_text != NULL ? 0 : refuse_memory(reader);
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    /* The URL-safe alphabet is read as well. */
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static int read_base64(struct reader *reader, const json_t *json, ProtobufCBinaryData *ret_data)
{
    if (!json_is_string(json)) {
        return refuse(reader, "must be a string of base64");
    }
    const char *text = json_string_value(json);
    size_t n_digits = strlen(text);
    while (n_digits > 0 && text[n_digits - 1] == '=') {
        n_digits--;
    }
    uint8_t *data = wire_alloc(reader->arena, n_digits / 4 * 3 + 3);
    uint32_t bits = 0;
    size_t n_bytes = 0;
    if (data == NULL) {
        return refuse_memory(reader);
    }
    for (size_t i = 0; i < n_digits; i++) {
        int digit = base64_digit(text[i]);

        if (digit < 0) {
            return refuse(reader, "must be base64");
        }
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 0) {
            data[n_bytes++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
        }
    }
    if (n_digits % 4 == 1 || strlen(text) - n_digits > 2) {
        return refuse(reader, "must be base64");
    }
    ret_data->data = data;
    ret_data->len = n_bytes;
    return 0;
}

/* --- messages --- */

static int read_message(struct reader *reader, const ProtobufCMessageDescriptor *type,
                        const json_t *json, ProtobufCMessage **ret_message);

static int read_value(struct reader *reader, const ProtobufCFieldDescriptor *field,
                      const json_t *json, void *value)
{
    int64_t number = 0;
    uint64_t natural = 0;
    int rc = 0;

    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        rc = read_signed(reader, json, INT32_MIN, INT32_MAX, &number);
        *(int32_t *)value = (int32_t)number;
        return rc;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        rc = read_unsigned(reader, json, UINT32_MAX, &natural);
        *(uint32_t *)value = (uint32_t)natural;
        return rc;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_signed(reader, json, INT64_MIN, INT64_MAX, value);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_unsigned(reader, json, UINT64_MAX, value);
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)value = json_is_true(json);
        return json_is_boolean(json) ? 0 : refuse(reader, "must be true or false");
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(reader, field->descriptor, json, value);
    case PROTOBUF_C_TYPE_STRING:
        return read_text(reader, json, value);
    case PROTOBUF_C_TYPE_BYTES:
        return read_base64(reader, json, value);
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_message(reader, field->descriptor, json, value);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        break;
    }
    /* No message of ours has a floating-point field. */
    assert(field->type != PROTOBUF_C_TYPE_FLOAT && field->type != PROTOBUF_C_TYPE_DOUBLE);
    return ERR_INTERNAL;
}

static int read_repeated(struct reader *reader, const ProtobufCFieldDescriptor *field,
                         const json_t *json, uint8_t *base)
{
    if (!json_is_array(json)) {
        return refuse(reader, "must be a list");
    }
    size_t n = json_array_size(json);
    size_t n_bytes = json_value_bytes(field->type);
    uint8_t *values = wire_alloc_array(reader->arena, n, n_bytes);
    if (values == NULL) {
        return refuse_memory(reader);
    }
    for (size_t i = 0; i < n; i++) {
        int rc = read_value(reader, field, json_array_get(json, i), values + i * n_bytes);

        if (rc != 0) {
            return rc;
        }
    }
    *(size_t *)(void *)(base + field->quantifier_offset) = n;
    *(uint8_t **)(void *)(base + field->offset) = values;
    return 0;
}

static int read_field(struct reader *reader, const ProtobufCFieldDescriptor *field,
                      const json_t *json, uint8_t *base)
{
    if (json_is_null(json)) {
        return 0;
    }
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return read_repeated(reader, field, json, base);
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        uint32_t *which = (uint32_t *)(void *)(base + field->quantifier_offset);

        if (*which != 0) {
            return refuse(reader, "excludes another field that is set");
        }
        *which = field->id;
    }
    return read_value(reader, field, json, base + field->offset);
}

/* By either spelling; NULL: unknown. */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
                                                  const char *name)
{
    char json_name[NAME_BYTES];

    for (unsigned i = 0; i < type->n_fields; i++) {
        if (strcmp(type->fields[i].name, name) == 0 ||
            strcmp(wire_json_name(type->fields[i].name, json_name, sizeof json_name), name) == 0) {
            return &type->fields[i];
        }
    }
    return NULL;
}

/* Both spellings of one field in one object. */
static bool is_twice(const ProtobufCFieldDescriptor *field, const json_t *json, const char *name)
{
    char json_name[NAME_BYTES];

    wire_json_name(field->name, json_name, sizeof json_name);
    return strcmp(name, field->name) == 0 && strcmp(json_name, field->name) != 0 &&
           json_object_get(json, json_name) != NULL;
}

static int read_fields(struct reader *reader, const ProtobufCMessageDescriptor *type, json_t *json,
                       uint8_t *base)
{
    const char *name;
    json_t *value;

    json_object_foreach(json, name, value)
    {
        const ProtobufCFieldDescriptor *field = find_field(type, name);
        size_t used = enter(reader, name);
        int rc = 0;

        if (field == NULL) {
            rc = refuse(reader, "is an unknown field");
        } else if (is_twice(field, json, name)) {
            rc = refuse(reader, "is there twice, in two spellings");
        } else {
            rc = read_field(reader, field, value, base);
        }
        if (rc != 0) {
            return rc;
        }
        reader->path[used] = '\0';
    }
    return 0;
}

/* Duration and Timestamp are strings; everything else is an object. */
static int read_message(struct reader *reader, const ProtobufCMessageDescriptor *type,
                        const json_t *json, ProtobufCMessage **ret_message)
{
    bool is_duration = type == &google__protobuf__duration__descriptor;
    bool is_timestamp = type == &google__protobuf__timestamp__descriptor;
    ProtobufCMessage *message = wire_message_new(reader->arena, type);
    int rc = 0;

    if (message == NULL) {
        return refuse_memory(reader);
    }
    if (is_duration || is_timestamp) {
        const char *text = json_is_string(json) ? json_string_value(json) : "";

        if (is_duration && !json_duration_read(text, (Google__Protobuf__Duration *)message)) {
            return refuse(reader, "must be a time such as \"5s\" or \"0.25s\"");
        }
        if (is_timestamp && !json_timestamp_read(text, (Google__Protobuf__Timestamp *)message)) {
            return refuse(reader, "must be a time such as \"2026-01-31T12:00:00Z\"");
        }
    } else if (!json_is_object(json)) {
        return refuse(reader, "must be an object");
    } else {
        /* The iteration needs a json_t that is not const, and changes nothing. */
        rc = read_fields(reader, type, (json_t *)(uintptr_t)json, (uint8_t *)message);
    }
    if (rc == 0) {
        *ret_message = message;
    }
    return rc;
}

int wire_json_read(const ProtobufCMessageDescriptor *type, const json_t *json,
                   struct wire_arena *arena, ProtobufCMessage **ret_message, struct errmsg *err)
{
    struct reader reader = {.arena = arena, .err = err};

    return read_message(&reader, type, json, ret_message);
}
