#include "agent/core/http_reply.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/plant.h"

#define STATUS_MIN 100
#define STATUS_MAX 599
#define STATUS_SWITCHING_PROTOCOLS 101
#define STATUS_DIGITS 3

static const char version_text[] = "HTTP/1.";

enum step {
    STEP_VERSION,      /* inside "HTTP/1." */
    STEP_MINOR,        /* its last digit */
    STEP_SPACE,        /* the blank before the status */
    STEP_STATUS,       /* three digits */
    STEP_STATUS_ENDED, /* blank or end of line */
    STEP_REASON,
    STEP_STATUS_LF,   /* after the CR that ends the status line */
    STEP_FIRST_FIELD, /* first byte of the line after the status line */
    STEP_FIELD,       /* first byte of a line after a field */
    STEP_NAME,
    STEP_VALUE,
    STEP_FIELD_LF, /* after the CR that ends a field line */
    STEP_BLOCK_LF  /* after the CR of the empty line */
};

/* What one byte leads to. */
enum move {
    MOVE_ON,
    MOVE_END_OF_BLOCK,
    MOVE_REFUSE
};

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* RFC 9110 section 5.6.2. */
static bool is_token(uint8_t byte)
{
    if (is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')) {
        return true;
    }
    return byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL;
}

static enum move go(struct http_reply *reply, enum step step)
{
    reply->step = (uint8_t)step;
    return MOVE_ON;
}

static enum move step_version(struct http_reply *reply, uint8_t byte)
{
    if (byte != (uint8_t)version_text[reply->version_at]) {
        return MOVE_REFUSE;
    }
    reply->version_at++;
    return go(reply, version_text[reply->version_at] == '\0' ? STEP_MINOR : STEP_VERSION);
}

static enum move step_status(struct http_reply *reply, uint8_t byte)
{
    if (!is_digit(byte)) {
        return MOVE_REFUSE;
    }
    reply->line_status = (uint16_t)(reply->line_status * 10 + (byte - '0'));
    reply->n_status_digits++;
    if (reply->n_status_digits < STATUS_DIGITS) {
        return MOVE_ON;
    }
    if (reply->line_status < STATUS_MIN || reply->line_status > STATUS_MAX) {
        return MOVE_REFUSE;
    }
    return go(reply, STEP_STATUS_ENDED);
}

static bool is_final(uint16_t status)
{
    return status >= 200 || status == STATUS_SWITCHING_PROTOCOLS;
}

static enum move end_status_line(struct http_reply *reply)
{
    reply->status = is_final(reply->line_status) ? reply->line_status : 0;
    return go(reply, STEP_FIRST_FIELD);
}

/* A byte of the text behind the status, or its end. */
static enum move step_reason(struct http_reply *reply, uint8_t byte)
{
    if (byte == '\0') {
        return MOVE_REFUSE;
    }
    if (byte == '\n') {
        return end_status_line(reply);
    }
    return go(reply, byte == '\r' ? STEP_STATUS_LF : STEP_REASON);
}

static enum move step_value(struct http_reply *reply, uint8_t byte)
{
    if (byte == '\0') {
        return MOVE_REFUSE;
    }
    if (byte == '\n') {
        return go(reply, STEP_FIELD);
    }
    return go(reply, byte == '\r' ? STEP_FIELD_LF : STEP_VALUE);
}

/* The first byte of a line: the empty line, a field name, or the continuation of a field. */
static enum move step_line(struct http_reply *reply, uint8_t byte, bool is_first)
{
    if (byte == '\r') {
        return go(reply, STEP_BLOCK_LF);
    }
    if (byte == '\n') {
        return MOVE_END_OF_BLOCK;
    }
    if (byte == ' ' || byte == '\t') {
        return is_first ? MOVE_REFUSE : go(reply, STEP_VALUE);
    }
    return is_token(byte) ? go(reply, STEP_NAME) : MOVE_REFUSE;
}

static enum move take_byte(struct http_reply *reply, uint8_t byte)
{
    switch ((enum step)reply->step) {
    case STEP_VERSION:
        return step_version(reply, byte);
    case STEP_MINOR:
        return is_digit(byte) ? go(reply, STEP_SPACE) : MOVE_REFUSE;
    case STEP_SPACE:
        return byte == ' ' ? go(reply, STEP_STATUS) : MOVE_REFUSE;
    case STEP_STATUS:
        return step_status(reply, byte);
    case STEP_STATUS_ENDED:
        if (byte != ' ' && byte != '\r' && byte != '\n') {
            return MOVE_REFUSE;
        }
        return step_reason(reply, byte);
    case STEP_REASON:
        return step_reason(reply, byte);
    case STEP_STATUS_LF:
        return byte == '\n' ? end_status_line(reply) : MOVE_REFUSE;
    case STEP_FIRST_FIELD:
        return step_line(reply, byte, true);
    case STEP_FIELD:
        return step_line(reply, byte, false);
    case STEP_NAME:
        if (byte == ':') {
            return go(reply, STEP_VALUE);
        }
        return is_token(byte) ? MOVE_ON : MOVE_REFUSE;
    case STEP_VALUE:
        return step_value(reply, byte);
    case STEP_FIELD_LF:
        return byte == '\n' ? go(reply, STEP_FIELD) : MOVE_REFUSE;
    case STEP_BLOCK_LF:
        return byte == '\n' ? MOVE_END_OF_BLOCK : MOVE_REFUSE;
    }
    return MOVE_REFUSE;
}

static void begin_status_line(struct http_reply *reply)
{
    reply->step = STEP_VERSION;
    reply->version_at = 0;
    reply->n_status_digits = 0;
    reply->line_status = 0;
}

void http_reply_init(struct http_reply *reply)
{
    *reply = (struct http_reply){.state = HTTP_REPLY_MORE};
    begin_status_line(reply);
}

enum http_reply_state http_reply_feed(struct http_reply *reply, const void *data, size_t n_bytes)
{
    const uint8_t *bytes = data;

    assert(reply->state != HTTP_REPLY_NONE);
    for (size_t i = 0; i < n_bytes && reply->state == HTTP_REPLY_MORE; i++) {
        reply->n_header_bytes++;
        if (reply->n_header_bytes > LIMIT_HTTP_HEADER_BYTES && !plant_is("http-header-bound")) {
            reply->state = HTTP_REPLY_MALFORMED;
            break;
        }
        switch (take_byte(reply, bytes[i])) {
        case MOVE_ON:
            break;
        case MOVE_REFUSE:
            reply->state = HTTP_REPLY_MALFORMED;
            break;
        case MOVE_END_OF_BLOCK:
            if (is_final(reply->line_status)) {
                reply->state = HTTP_REPLY_COMPLETE;
            } else {
                begin_status_line(reply);
            }
            break;
        }
    }
    return (enum http_reply_state)reply->state;
}

enum probe_reason http_reply_judge(const struct http_reply *reply, const struct http_codes *expect)
{
    assert(reply->state == HTTP_REPLY_COMPLETE || reply->state == HTTP_REPLY_MALFORMED);
    if (reply->state == HTTP_REPLY_MALFORMED) {
        return REASON_HTTP_INVALID_HEADER;
    }
    return http_codes_has(expect, reply->status) ? REASON_OK : REASON_HTTP_CODE_NOT_MATCH;
}
