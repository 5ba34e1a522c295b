/* Messages to JSON. */
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/wire/json.h"
#include "common/wire/json_part.h"

#define NAME_BYTES 128

char *wire_json_name(const char *proto_name, char *to, size_t to_bytes)
{
    size_t used = 0;
    bool is_upper = false;

    for (; *proto_name != '\0' && used + 1 < to_bytes; proto_name++) {
        if (*proto_name == '_') {
            is_upper = true;
            continue;
        }
        bool is_lower = *proto_name >= 'a' && *proto_name <= 'z';
        to[used++] = (char)(is_upper && is_lower ? *proto_name - 'a' + 'A' : *proto_name);
        is_upper = false;
    }
    to[used] = '\0';
    return to;
}

static json_t *write_base64(const ProtobufCBinaryData *data)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((data->len + 2) / 3 * 4 + 1);
    size_t used = 0;

    if (text == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < data->len; i += 3) {
        size_t n = data->len - i < 3 ? data->len - i : 3;
        uint32_t bits = (uint32_t)data->data[i] << 16;

        bits |= n > 1 ? (uint32_t)data->data[i + 1] << 8 : 0;
        bits |= n > 2 ? data->data[i + 2] : 0;
        text[used++] = digits[bits >> 18 & 63];
        text[used++] = digits[bits >> 12 & 63];
        text[used++] = n > 1 ? digits[bits >> 6 & 63] : '=';
        text[used++] = n > 2 ? digits[bits & 63] : '=';
    }
    text[used] = '\0';
    json_t *json = json_string(text);
    free(text);
    return json;
}

/* null when it is out of range: foreign messages may hold anything. */
static json_t *write_duration(const Google__Protobuf__Duration *duration)
{
    char text[JSON_TIME_BYTES];

    return json_duration_write(duration, text) ? json_string(text) : json_null();
}

static json_t *write_timestamp(const Google__Protobuf__Timestamp *timestamp)
{
    char text[JSON_TIME_BYTES];

    return json_timestamp_write(timestamp, text) ? json_string(text) : json_null();
}

static json_t *write_enum(const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);

    return value != NULL ? json_string(value->name) : json_integer(number);
}

/* value: where the struct has the field, or an element of its array. */
static json_t *write_value(const ProtobufCFieldDescriptor *field, const void *value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer(*(const int32_t *)value);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer(*(const uint32_t *)value);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return json_sprintf("%" PRId64, *(const int64_t *)value);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return json_sprintf("%" PRIu64, *(const uint64_t *)value);
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)value);
    case PROTOBUF_C_TYPE_ENUM:
        return write_enum(field->descriptor, *(const int *)value);
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(char *const *)value;
        return json_string(text != NULL ? text : "");
    }
    case PROTOBUF_C_TYPE_BYTES:
        return write_base64(value);
    case PROTOBUF_C_TYPE_MESSAGE:
        return wire_json_new(*(ProtobufCMessage *const *)value);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        break;
    }
    /* No message of ours has a floating-point field. */
    assert(field->type != PROTOBUF_C_TYPE_FLOAT && field->type != PROTOBUF_C_TYPE_DOUBLE);
    return NULL;
}

static json_t *write_repeated(const ProtobufCFieldDescriptor *field, const uint8_t *base)
{
    size_t n = *(const size_t *)(const void *)(base + field->quantifier_offset);
    const uint8_t *values = *(uint8_t *const *)(const void *)(base + field->offset);
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < n; i++) {
        if (json_array_append_new(
                array, write_value(field, values + i * json_value_bytes(field->type))) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

/* A sub-message or a member of a oneof that is not set is left out. */
static bool is_absent(const ProtobufCFieldDescriptor *field, const uint8_t *base)
{
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
        *(const uint32_t *)(const void *)(base + field->quantifier_offset) != field->id) {
        return true;
    }
    return field->type == PROTOBUF_C_TYPE_MESSAGE && field->label != PROTOBUF_C_LABEL_REPEATED &&
           *(void *const *)(const void *)(base + field->offset) == NULL;
}

json_t *wire_json_new(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    const uint8_t *base = (const uint8_t *)message;
    char name[NAME_BYTES];

    if (type == &google__protobuf__duration__descriptor) {
        return write_duration((const Google__Protobuf__Duration *)message);
    }
    if (type == &google__protobuf__timestamp__descriptor) {
        return write_timestamp((const Google__Protobuf__Timestamp *)message);
    }
    json_t *object = json_object();
    for (unsigned i = 0; object != NULL && i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];

        if (is_absent(field, base)) {
            continue;
        }
        json_t *value = field->label == PROTOBUF_C_LABEL_REPEATED
                            ? write_repeated(field, base)
                            : write_value(field, base + field->offset);
        wire_json_name(field->name, name, sizeof name);
        if (json_object_set_new(object, name, value) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

char *wire_json_text(const ProtobufCMessage *message)
{
    json_t *json = wire_json_new(message);
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(2)) : NULL;

    json_decref(json);
    return text;
}
