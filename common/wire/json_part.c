#include "common/wire/json_part.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DURATION_SECONDS_MAX INT64_C(315576000000)
#define TIMESTAMP_SECONDS_MIN INT64_C(-62135596800) /* year 1 */
#define TIMESTAMP_SECONDS_MAX INT64_C(253402300799) /* end of year 9999 */
#define NANOS_MAX 999999999

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ".25" -> 250000000; nothing -> 0. Moves *at behind it. False: no or more than nine digits. */
static bool read_fraction(const char **at, int32_t *ret_nanos)
{
    int32_t nanos = 0;
    int n_digits = 0;

    if (**at == '.') {
        for ((*at)++; is_digit(**at) && n_digits < 9; (*at)++, n_digits++) {
            nanos = nanos * 10 + (**at - '0');
        }
        if (n_digits == 0) {
            return false;
        }
    }
    for (; n_digits < 9; n_digits++) {
        nanos *= 10;
    }
    *ret_nanos = nanos;
    return true;
}

bool json_duration_read(const char *text, Google__Protobuf__Duration *duration)
{
    bool is_negative = *text == '-';
    const char *at = text + is_negative;
    int64_t seconds = 0;
    int32_t nanos;

    if (!is_digit(*at)) {
        return false;
    }
    for (; is_digit(*at); at++) {
        seconds = seconds * 10 + (*at - '0');
        if (seconds > DURATION_SECONDS_MAX) {
            return false;
        }
    }
    if (!read_fraction(&at, &nanos) || strcmp(at, "s") != 0) {
        return false;
    }
    duration->seconds = is_negative ? -seconds : seconds;
    duration->nanos = is_negative ? -nanos : nanos;
    return true;
}

/* n digits, min..max. */
static bool read_part(const char **at, int n_digits, int min, int max, int *ret_value)
{
    int value = 0;

    for (int i = 0; i < n_digits; i++, (*at)++) {
        if (!is_digit(**at)) {
            return false;
        }
        value = value * 10 + (**at - '0');
    }
    *ret_value = value;
    return value >= min && value <= max;
}

static bool read_mark(const char **at, char lower, char upper)
{
    if (**at != lower && **at != upper) {
        return false;
    }
    (*at)++;
    return true;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days from 1970-01-01 in the proleptic Gregorian calendar. False: no such day. */
static bool days_of(int year, int month, int day, int64_t *ret_days)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int last = length[month - 1] + (month == 2 && is_leap(year));
    int64_t years = year - 1;

    if (day > last) {
        return false;
    }
    *ret_days = years * 365 + years / 4 - years / 100 + years / 400 + before[month - 1] +
                (month > 2 && is_leap(year)) + day - 1 - INT64_C(719162);
    return true;
}

/* "Z" or "+01:00", in seconds east of Greenwich, at the end of the text. */
static bool read_offset(const char *at, int *ret_seconds)
{
    int hours, minutes;
    int sign = *at == '-' ? -1 : 1;

    if (strcmp(at, "Z") == 0 || strcmp(at, "z") == 0) {
        *ret_seconds = 0;
        return true;
    }
    if (!read_mark(&at, '+', '-') || !read_part(&at, 2, 0, 23, &hours) ||
        !read_mark(&at, ':', ':') || !read_part(&at, 2, 0, 59, &minutes) || *at != '\0') {
        return false;
    }
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

bool json_timestamp_read(const char *text, Google__Protobuf__Timestamp *timestamp)
{
    int year, month, day, hour, minute, second, offset;
    int64_t days;
    int32_t nanos;
    const char *at = text;

    if (!read_part(&at, 4, 1, 9999, &year) || !read_mark(&at, '-', '-') ||
        !read_part(&at, 2, 1, 12, &month) || !read_mark(&at, '-', '-') ||
        !read_part(&at, 2, 1, 31, &day) || !read_mark(&at, 'T', 't') ||
        !read_part(&at, 2, 0, 23, &hour) || !read_mark(&at, ':', ':') ||
        !read_part(&at, 2, 0, 59, &minute) || !read_mark(&at, ':', ':') ||
        !read_part(&at, 2, 0, 59, &second) || !read_fraction(&at, &nanos) ||
        !read_offset(at, &offset) || !days_of(year, month, day, &days)) {
        return false;
    }
    timestamp->seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset;
    timestamp->nanos = nanos;
    return true;
}

/* ".5" as 3, 6 or 9 digits, or nothing. Returns text. */
static char *format_nanos(int32_t nanos, char text[16])
{
    if (nanos == 0) {
        text[0] = '\0';
    } else if (nanos % 1000000 == 0) {
        snprintf(text, 16, ".%03d", (int)(nanos / 1000000 % 1000));
    } else if (nanos % 1000 == 0) {
        snprintf(text, 16, ".%06d", (int)(nanos / 1000 % 1000000));
    } else {
        snprintf(text, 16, ".%09d", (int)(nanos % 1000000000));
    }
    return text;
}

bool json_duration_write(const Google__Protobuf__Duration *duration, char text[JSON_TIME_BYTES])
{
    char fraction[16];
    int64_t seconds = duration->seconds;
    int32_t nanos = duration->nanos;

    if (seconds < -DURATION_SECONDS_MAX || seconds > DURATION_SECONDS_MAX || nanos < -NANOS_MAX ||
        nanos > NANOS_MAX || (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0)) {
        return false;
    }
    snprintf(text, JSON_TIME_BYTES, "%s%" PRId64 "%ss", seconds < 0 || nanos < 0 ? "-" : "",
             seconds < 0 ? -seconds : seconds, format_nanos(abs(nanos), fraction));
    return true;
}

bool json_timestamp_write(const Google__Protobuf__Timestamp *timestamp, char text[JSON_TIME_BYTES])
{
    char fraction[16], date[96]; /* room for the widest ints: the compiler cannot see ranges */
    time_t seconds = (time_t)timestamp->seconds;
    struct tm tm;

    if (timestamp->seconds < TIMESTAMP_SECONDS_MIN || timestamp->seconds > TIMESTAMP_SECONDS_MAX ||
        timestamp->nanos < 0 || timestamp->nanos > NANOS_MAX || gmtime_r(&seconds, &tm) == NULL) {
        return false;
    }
    snprintf(date, sizeof date, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
    return snprintf(text, JSON_TIME_BYTES, "%s%sZ", date,
                    format_nanos(timestamp->nanos, fraction)) < JSON_TIME_BYTES;
}

size_t json_value_bytes(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(int);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        break;
    }
    return sizeof(ProtobufCBinaryData);
}
