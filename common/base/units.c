#include "common/base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t ms;
};

static const struct unit duration_units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 60 * 60 * 1000}};

static int refuse(const char *text, struct errmsg *err)
{
    return errmsg_set(err, ERR_INVALID,
                      "\"%.40s\" is not a time: write a number and a unit such as 5s, 250ms or 5m",
                      text);
}

int units_parse_duration_ms(const char *text, uint64_t *ret_ms, struct errmsg *err)
{
    const char *at = text;
    uint64_t whole = 0;
    uint64_t fraction = 0;
    uint64_t scale = 1;

    if (*at < '0' || *at > '9') {
        return refuse(text, err);
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        if (whole > UINT64_C(1000000000000)) {
            return refuse(text, err);
        }
        whole = whole * 10 + (uint64_t)(*at - '0');
    }
    if (*at == '.') {
        at++;
        if (*at < '0' || *at > '9') {
            return refuse(text, err);
        }
        for (; *at >= '0' && *at <= '9'; at++) {
            if (scale >= UINT64_C(1000000000)) {
                return refuse(text, err);
            }
            fraction = fraction * 10 + (uint64_t)(*at - '0');
            scale *= 10;
        }
    }
    for (size_t i = 0; i < sizeof duration_units / sizeof duration_units[0]; i++) {
        const struct unit *unit = &duration_units[i];

        if (strcmp(at, unit->name) != 0) {
            continue;
        }
        if (fraction * unit->ms % scale != 0) {
            return errmsg_set(err, ERR_INVALID, "\"%.40s\" is finer than a millisecond", text);
        }
        if (whole > UINT64_MAX / 2 / unit->ms) {
            return refuse(text, err);
        }
        *ret_ms = whole * unit->ms + fraction * unit->ms / scale;
        return 0;
    }
    return refuse(text, err);
}

char *units_format_duration_ms(uint64_t ms, char *text, size_t text_bytes)
{
    if (ms != 0 && ms % 3600000 == 0) {
        snprintf(text, text_bytes, "%" PRIu64 "h", ms / 3600000);
    } else if (ms != 0 && ms % 60000 == 0) {
        snprintf(text, text_bytes, "%" PRIu64 "m", ms / 60000);
    } else if (ms % 1000 == 0) {
        snprintf(text, text_bytes, "%" PRIu64 "s", ms / 1000);
    } else if (ms < 1000) {
        snprintf(text, text_bytes, "%" PRIu64 "ms", ms);
    } else {
        char digits[8];

        snprintf(digits, sizeof digits, "%03u", (unsigned)(ms % 1000));
        size_t n = strlen(digits);
        while (n > 1 && digits[n - 1] == '0') {
            digits[--n] = '\0';
        }
        snprintf(text, text_bytes, "%" PRIu64 ".%ss", ms / 1000, digits);
    }
    return text;
}

char *units_format_span_us(uint64_t us, char *text, size_t text_bytes)
{
    uint64_t ms = us / 1000;
    uint64_t seconds = ms / 1000;

    if (us == 0) {
        snprintf(text, text_bytes, "0s");
    } else if (ms == 0) {
        snprintf(text, text_bytes, "%" PRIu64 "us", us);
    } else if (seconds == 0) {
        snprintf(text, text_bytes, "%" PRIu64 "ms", ms);
    } else if (seconds < 60 && ms % 1000 >= 10) {
        snprintf(text, text_bytes, "%" PRIu64 ".%02" PRIu64 "s", seconds, ms % 1000 / 10);
    } else if (seconds < 60) {
        snprintf(text, text_bytes, "%" PRIu64 "s", seconds);
    } else if (seconds < 3600) {
        snprintf(text, text_bytes, "%" PRIu64 "m%" PRIu64 "s", seconds / 60, seconds % 60);
    } else if (seconds < 86400) {
        snprintf(text, text_bytes, "%" PRIu64 "h%" PRIu64 "m", seconds / 3600, seconds / 60 % 60);
    } else {
        snprintf(text, text_bytes, "%" PRIu64 "d%" PRIu64 "h", seconds / 86400,
                 seconds / 3600 % 24);
    }
    return text;
}
