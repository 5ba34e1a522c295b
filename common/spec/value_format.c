#include "common/spec/value.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "common/base/units.h"
#include "common/spec/rfc3339.h"

static uint64_t load_uint(const void *from, uint32_t bytes)
{
    switch (bytes) {
    case 1:
        return *(const uint8_t *)from;
    case 2:
        return *(const uint16_t *)from;
    case 4:
        return *(const uint32_t *)from;
    default:
        assert(bytes == 8);
        return *(const uint64_t *)from;
    }
}

static char *format_codes(const struct http_codes *codes, char *text, size_t text_bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned code = HTTP_CODE_MIN; code <= HTTP_CODE_MAX && used < text_bytes; code++) {
        unsigned last = code;

        if (!http_codes_has(codes, code)) {
            continue;
        }
        while (last < HTTP_CODE_MAX && http_codes_has(codes, last + 1) &&
               !(last % 100 == 99 && code % 100 == 0)) {
            last++;
        }
        const char *comma = used == 0 ? "" : ",";
        int n = 0;
        if (code % 100 == 0 && last == code + 99) {
            n = snprintf(text + used, text_bytes - used, "%s%uxx", comma, code / 100);
        } else if (last == code) {
            n = snprintf(text + used, text_bytes - used, "%s%u", comma, code);
        } else {
            n = snprintf(text + used, text_bytes - used, "%s%u-%u", comma, code, last);
        }
        used += n > 0 ? (size_t)n : 0;
        code = last;
    }
    return text;
}

/* Bytes that a person can read are text, all others hex. A check_line is read as a check_data: they
 * have the same beginning. */
static char *format_data(const struct spec_field *field, const void *from, char *text,
                         size_t text_bytes)
{
    struct check_data data = {0};
    bool is_text = true;

    memcpy(&data, from, field->bytes < sizeof data ? field->bytes : sizeof data);
    assert(data.n_bytes <= field->max && text_bytes > 2 * field->max + strlen(VALUE_HEX_PREFIX));
    for (uint16_t i = 0; i < data.n_bytes; i++) {
        bool is_visible = data.bytes[i] >= ' ' && data.bytes[i] < 0x7f;

        is_text = is_text && (is_visible ||
                              (data.bytes[i] != '\0' && strchr("\r\n\t", data.bytes[i]) != NULL));
    }
    if (is_text && memcmp(data.bytes, VALUE_HEX_PREFIX, strlen(VALUE_HEX_PREFIX)) != 0) {
        memcpy(text, data.bytes, data.n_bytes);
        text[data.n_bytes] = '\0';
        return text;
    }
    strcpy(text, VALUE_HEX_PREFIX);
    str_hex(data.bytes, data.n_bytes, text + strlen(VALUE_HEX_PREFIX));
    return text;
}

static char *format_rule(const struct verdict_rule *rule, char *text, size_t text_bytes)
{
    char down[RULE_TEXT_BYTES];
    char up[RULE_TEXT_BYTES];

    if (rule->is_split) {
        snprintf(text, text_bytes, "down: %s, up: %s", rule_column_format(&rule->down, down),
                 rule_column_format(&rule->up, up));
    } else {
        snprintf(text, text_bytes, "%s", rule_column_format(&rule->down, down));
    }
    return text;
}

bool value_is_zero(const struct spec_field *field, const void *from)
{
    const uint8_t *bytes = from;

    for (uint32_t i = 0; i < field->bytes; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

char *value_format(const struct spec_field *field, const void *from, char *text, size_t text_bytes)
{
    char small[CIDR_TEXT_BYTES + ENDPOINT_TEXT_BYTES + 2 * PUBLIC_KEY_BYTES];

    if (field->zero_word != NULL && value_is_zero(field, from)) {
        snprintf(text, text_bytes, "%s", field->zero_word);
        return text;
    }
    small[0] = '\0';
    switch ((enum spec_type)field->type) {
    case SPEC_TYPE_TEXT:
        snprintf(text, text_bytes, "%s", (const char *)from);
        return text;
    case SPEC_TYPE_CODES:
        return format_codes(from, text, text_bytes);
    case SPEC_TYPE_DATA:
        return format_data(field, from, text, text_bytes);
    case SPEC_TYPE_RULE:
        return format_rule(from, text, text_bytes);
    case SPEC_TYPE_DURATION:
        return units_format_duration_ms(load_uint(from, field->bytes), text, text_bytes);
    case SPEC_TYPE_PASS:
        rule_column_format(from, small);
        break;
    case SPEC_TYPE_BOOL:
        snprintf(small, sizeof small, "%s", *(const bool *)from ? "true" : "false");
        break;
    case SPEC_TYPE_UINT:
        snprintf(small, sizeof small, "%" PRIu64, load_uint(from, field->bytes));
        break;
    case SPEC_TYPE_WORD:
        snprintf(small, sizeof small, "%s", names_word(field->names, *(const uint8_t *)from));
        break;
    case SPEC_TYPE_ADDRESS:
        addr_format(from, small);
        break;
    case SPEC_TYPE_ENDPOINT:
        endpoint_format(from, small);
        break;
    case SPEC_TYPE_CIDR:
        cidr_format(from, small);
        break;
    case SPEC_TYPE_PUBLIC_KEY:
        str_hex(((const struct public_key *)from)->bytes, PUBLIC_KEY_BYTES, small);
        break;
    case SPEC_TYPE_TIME:
        rfc3339_format_ms(*(const int64_t *)from, small, sizeof small);
        break;
    case SPEC_TYPE_NONE:
    case SPEC_TYPE_LABELS:
    case SPEC_TYPE_OBJECT:
    case SPEC_TYPE_LIST:
        assert(false);
        break;
    }
    snprintf(text, text_bytes, "%s", small);
    return text;
}

char *value_show(const struct spec_field *field, const void *from, char *text, size_t text_bytes)
{
    static const char plain[] = "\r\n\t\\";
    static const char letters[] = "rnt\\";
    char value[VALUE_TEXT_BYTES];
    size_t n = 0;

    value_format(field, from, value, sizeof value);
    if (field->type != SPEC_TYPE_DATA) {
        snprintf(text, text_bytes, "%s", value);
        return text;
    }
    for (const char *c = value; *c != '\0' && n + 3 < text_bytes; c++) {
        const char *found = strchr(plain, *c);

        if (found != NULL) {
            text[n++] = '\\';
        }
        text[n++] = found != NULL ? letters[found - plain] : *c;
    }
    text[n] = '\0';
    return text;
}

static const char *family_word(uint64_t family)
{
    return family == ADDR_IPV4 ? "IPv4" : family == ADDR_IPV6 ? "IPv6" : "IP";
}

static void put_list_allowed(const struct spec_list *list, char *text, size_t text_bytes)
{
    if (list->n_min == 0) {
        snprintf(text, text_bytes, "a list of at most %u", list->n_max);
    } else {
        snprintf(text, text_bytes, "a list of %u..%u", list->n_min, list->n_max);
    }
}

char *value_format_allowed(const struct spec_field *field, char *text, size_t text_bytes)
{
    char low[32];
    char high[32];
    char words[256];
    const char *also = field->zero_word == NULL ? "" : field->zero_word;
    const char * or = field->zero_word == NULL ? "" : " or ";

    text[0] = '\0';
    switch ((enum spec_type)field->type) {
    case SPEC_TYPE_BOOL:
        snprintf(text, text_bytes, "true or false");
        break;
    case SPEC_TYPE_UINT:
        snprintf(text, text_bytes, "%s%s%" PRIu64 "..%" PRIu64, also, or, field->min, field->max);
        break;
    case SPEC_TYPE_DURATION:
        snprintf(text, text_bytes, "%s%s%s..%s", also, or,
                 units_format_duration_ms(field->min, low, sizeof low),
                 units_format_duration_ms(field->max, high, sizeof high));
        break;
    case SPEC_TYPE_WORD:
        snprintf(text, text_bytes, "%s%s%s", also, field->zero_word == NULL ? "" : ", ",
                 names_list(field->names, words, sizeof words));
        break;
    case SPEC_TYPE_TEXT:
        snprintf(text, text_bytes, "%" PRIu64 "..%" PRIu64 " bytes", field->min, field->max);
        break;
    case SPEC_TYPE_CODES:
        snprintf(text, text_bytes, "codes, ranges and classes within 200..599");
        break;
    case SPEC_TYPE_ADDRESS:
        snprintf(text, text_bytes, "an %s address", family_word(field->max));
        break;
    case SPEC_TYPE_ENDPOINT:
        snprintf(text, text_bytes, "ADDRESS:PORT");
        break;
    case SPEC_TYPE_CIDR:
        snprintf(text, text_bytes, "ADDRESS/LENGTH");
        break;
    case SPEC_TYPE_RULE:
        snprintf(text, text_bytes, "RULE or {down: RULE, up: RULE}");
        break;
    case SPEC_TYPE_PASS:
        snprintf(text, text_bytes, "all, any or at-least N");
        break;
    case SPEC_TYPE_PUBLIC_KEY:
        snprintf(text, text_bytes, "64 hex digits");
        break;
    case SPEC_TYPE_DATA:
        snprintf(text, text_bytes, "%" PRIu64 "..%" PRIu64 " bytes: text, or hex: and digits",
                 field->min, field->max);
        break;
    case SPEC_TYPE_TIME:
        snprintf(text, text_bytes, "%s%sa time in UTC", also, or);
        break;
    case SPEC_TYPE_LABELS:
        snprintf(text, text_bytes, "at most 20 pairs");
        break;
    case SPEC_TYPE_LIST:
        put_list_allowed(field->list, text, text_bytes);
        break;
    case SPEC_TYPE_NONE:
    case SPEC_TYPE_OBJECT:
        break;
    }
    return text;
}
