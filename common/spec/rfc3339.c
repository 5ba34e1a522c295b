#include "common/spec/rfc3339.h"

#include <stdio.h>
#include <string.h>

/* Days from 1970-01-01 to the first of March of a year; March begins the count, so that the leap
 * day is the last one. */
static int64_t days_of_march(int64_t year)
{
    return 365 * year + year / 4 - year / 100 + year / 400 - 719468;
}

static int64_t days_from_date(int64_t year, unsigned month, unsigned day)
{
    unsigned from_march = (month + 9) % 12;

    if (month <= 2) {
        year--;
    }
    return days_of_march(year) + (153 * (int64_t)from_march + 2) / 5 + (int64_t)day - 1;
}

static void date_from_days(int64_t days, int64_t *ret_year, unsigned *ret_month, unsigned *ret_day)
{
    int64_t year = 1970 + days / 366;
    unsigned month = 1;

    while (days_from_date(year + 1, 1, 1) <= days) {
        year++;
    }
    while (month < 12 && days_from_date(year, month + 1, 1) <= days) {
        month++;
    }
    *ret_year = year;
    *ret_month = month;
    *ret_day = (unsigned)(days - days_from_date(year, month, 1)) + 1;
}

static bool digits(const char **at, unsigned n, unsigned *ret_value)
{
    unsigned value = 0;

    for (unsigned i = 0; i < n; i++, (*at)++) {
        if (**at < '0' || **at > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(**at - '0');
    }
    *ret_value = value;
    return true;
}

static bool literal(const char **at, char expected)
{
    if (**at != expected) {
        return false;
    }
    (*at)++;
    return true;
}

bool rfc3339_parse_ms(const char *text, int64_t *ret_wall_ms)
{
    unsigned year, month, day, hour, minute, second;
    unsigned ms = 0;
    const char *at = text;

    if (!digits(&at, 4, &year) || !literal(&at, '-') || !digits(&at, 2, &month) ||
        !literal(&at, '-') || !digits(&at, 2, &day) || !literal(&at, 'T') ||
        !digits(&at, 2, &hour) || !literal(&at, ':') || !digits(&at, 2, &minute) ||
        !literal(&at, ':') || !digits(&at, 2, &second)) {
        return false;
    }
    if (*at == '.' && (!literal(&at, '.') || !digits(&at, 3, &ms))) {
        return false;
    }
    if (strcmp(at, "Z") != 0 || year < 1970 || month < 1 || month > 12 || day < 1 || hour > 23 ||
        minute > 59 || second > 59) {
        return false;
    }
    int64_t next_month =
        month == 12 ? days_from_date(year + 1, 1, 1) : days_from_date(year, month + 1, 1);
    int64_t days = days_from_date(year, month, day);
    if (days >= next_month) {
        return false;
    }
    *ret_wall_ms = ((days * 24 + hour) * 60 + minute) * 60000 + (int64_t)second * 1000 + ms;
    return true;
}

char *rfc3339_format_ms(int64_t wall_ms, char *text, size_t text_bytes)
{
    int64_t year;
    unsigned month, day;
    int64_t seconds = wall_ms / 1000;
    unsigned in_day = (unsigned)(seconds % 86400);
    unsigned ms = (unsigned)(wall_ms % 1000);
    char fraction[16] = "";

    date_from_days(seconds / 86400, &year, &month, &day);
    if (ms != 0) {
        snprintf(fraction, sizeof fraction, ".%03u", ms);
    }
    snprintf(text, text_bytes, "%04u-%02u-%02uT%02u:%02u:%02u%sZ", (unsigned)year, month, day,
             in_day / 3600, in_day / 60 % 60, in_day % 60, fraction);
    return text;
}
