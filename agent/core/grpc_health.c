#include "agent/core/grpc_health.h"

#include <assert.h>
#include <string.h>

#include "common/base/plant.h"

#define NUMBER_MAX 999 /* what votes carry as a status */
#define SERVING 1
#define FIELD_SERVICE 0x0a /* field 1, bytes */
#define FIELD_STATUS 0x08  /* field 1, varint */
#define VARINT_BYTES_MAX 10

/* Wire types of protobuf. */
enum wire_type {
    WIRE_VARINT = 0,
    WIRE_64 = 1,
    WIRE_BYTES = 2,
    WIRE_32 = 5
};

enum reply_step {
    STEP_PREFIX, /* zero: where a message begins */
    STEP_TAG,
    STEP_VALUE,
    STEP_LENGTH,
    STEP_SKIP,
    STEP_END /* one message is all that may come */
};

size_t grpc_health_request(const char *service, uint8_t ret_bytes[GRPC_REQUEST_BYTES_MAX])
{
    const size_t n = strlen(service);
    uint8_t *at = ret_bytes + GRPC_PREFIX_BYTES;

    assert(n <= LIMIT_GRPC_SERVICE_BYTES && LIMIT_GRPC_SERVICE_BYTES < 128 - 2);
    memset(ret_bytes, 0, GRPC_PREFIX_BYTES);
    if (n == 0) {
        return GRPC_PREFIX_BYTES; /* a field that is empty is not sent */
    }
    ret_bytes[GRPC_PREFIX_BYTES - 1] = (uint8_t)(2 + n);
    *at++ = FIELD_SERVICE;
    *at++ = (uint8_t)n;
    memcpy(at, service, n);
    return GRPC_PREFIX_BYTES + 2 + n;
}

/* Digits alone. False: no number. */
static bool parse_number(const char *text, size_t n, uint16_t *ret_number)
{
    unsigned number = 0;

    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        number = 10 * number + (unsigned)(text[i] - '0');
        number = number > NUMBER_MAX ? NUMBER_MAX : number;
    }
    *ret_number = (uint16_t)number;
    return n > 0;
}

static bool is_name(const char *name, size_t n_name, const char *wanted)
{
    return n_name == strlen(wanted) && memcmp(name, wanted, n_name) == 0;
}

void grpc_reply_header(struct grpc_reply *reply, const char *name, size_t n_name, const char *value,
                       size_t n_value)
{
    if (is_name(name, n_name, ":status")) {
        reply->is_malformed |= !parse_number(value, n_value, &reply->http_status);
    } else if (is_name(name, n_name, "grpc-status")) {
        reply->is_malformed |= !parse_number(value, n_value, &reply->grpc_status);
        reply->has_grpc_status = true;
    }
}

static void begin(struct grpc_reply *reply, enum reply_step step)
{
    reply->step = (uint8_t)step;
    reply->n_shift = 0;
    reply->value = 0;
}

/* One more byte of a varint. True: it is complete. */
static bool take_varint(struct grpc_reply *reply, uint8_t byte)
{
    if (reply->n_shift == VARINT_BYTES_MAX) {
        reply->is_malformed = true;
        return false;
    }
    if (reply->n_shift < VARINT_BYTES_MAX - 1) {
        reply->value |= (uint64_t)(byte & 0x7f) << (7 * reply->n_shift);
    }
    reply->n_shift++;
    return (byte & 0x80) == 0;
}

static void take_prefix(struct grpc_reply *reply, uint8_t byte)
{
    if (reply->n_prefix == 0) {
        reply->is_malformed |= byte != 0; /* compressed, which nobody offered */
    } else {
        reply->left = reply->left << 8 | byte;
    }
    if (++reply->n_prefix == GRPC_PREFIX_BYTES) {
        reply->is_malformed |= reply->left > GRPC_REPLY_BYTES_MAX;
        begin(reply, reply->left == 0 ? STEP_END : STEP_TAG);
    }
}

static void skip(struct grpc_reply *reply, uint64_t n_bytes)
{
    if (n_bytes > reply->left) {
        reply->is_malformed = true;
        return;
    }
    reply->n_to_skip = (uint32_t)n_bytes;
    begin(reply, n_bytes == 0 ? STEP_TAG : STEP_SKIP);
}

/* The tag is complete. Fields have numbers from 1 on; groups are long gone. */
static void take_tag(struct grpc_reply *reply)
{
    reply->tag = reply->value == FIELD_STATUS ? FIELD_STATUS : 0;
    reply->is_malformed |= reply->value >> 3 == 0 || reply->value > UINT32_MAX;
    switch (reply->value & 7) {
    case WIRE_VARINT:
        begin(reply, STEP_VALUE);
        break;
    case WIRE_64:
        skip(reply, 8);
        break;
    case WIRE_BYTES:
        begin(reply, STEP_LENGTH);
        break;
    case WIRE_32:
        skip(reply, 4);
        break;
    default:
        reply->is_malformed = true;
        break;
    }
}

static void take_value(struct grpc_reply *reply)
{
    if (reply->tag == FIELD_STATUS) {
        reply->serving = reply->value > UINT8_MAX ? UINT8_MAX : (uint8_t)reply->value;
    }
    begin(reply, STEP_TAG);
}

static void take_byte(struct grpc_reply *reply, uint8_t byte)
{
    switch ((enum reply_step)reply->step) {
    case STEP_PREFIX:
        take_prefix(reply, byte);
        return;
    case STEP_END:
        reply->is_malformed = true; /* a second message */
        return;
    case STEP_TAG:
    case STEP_VALUE:
    case STEP_LENGTH:
    case STEP_SKIP:
        break;
    }
    reply->left--;
    if (reply->step == STEP_SKIP) {
        reply->n_to_skip--;
        if (reply->n_to_skip == 0) {
            begin(reply, STEP_TAG);
        }
    } else if (take_varint(reply, byte)) {
        if (reply->step == STEP_TAG) {
            take_tag(reply);
        } else if (reply->step == STEP_VALUE) {
            take_value(reply);
        } else {
            skip(reply, reply->value);
        }
    }
    if (reply->left == 0) {
        /* It must end where a field does. */
        reply->is_malformed |= reply->step != STEP_TAG || reply->n_shift != 0;
        begin(reply, STEP_END);
    }
}

void grpc_reply_data(struct grpc_reply *reply, const uint8_t *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes && !reply->is_malformed; i++) {
        take_byte(reply, bytes[i]);
    }
}

enum probe_reason grpc_reply_judge(const struct grpc_reply *reply, uint16_t *ret_number)
{
    *ret_number = 0;
    if (reply->http_status != 0 && reply->http_status != 200) {
        *ret_number = reply->http_status;
        return REASON_HTTP_CODE_NOT_MATCH;
    }
    if (reply->is_malformed || reply->http_status == 0 || !reply->has_grpc_status) {
        return REASON_GRPC_INVALID;
    }
    if (reply->grpc_status != 0) {
        *ret_number = reply->grpc_status;
        return REASON_GRPC_STATUS;
    }
    if (reply->step != STEP_END) {
        return REASON_GRPC_INVALID; /* no message, or half a one */
    }
    if (reply->serving != SERVING && !plant_is("grpc-serving")) {
        *ret_number = reply->serving;
        return REASON_GRPC_NOT_SERVING;
    }
    return REASON_OK;
}
