#include "common/base/str.h"

#include <string.h>

bool str_copy(char *to, size_t to_bytes, const char *from)
{
    size_t n_bytes = strlen(from);

    if (n_bytes >= to_bytes) {
        return false;
    }
    memcpy(to, from, n_bytes + 1);
    return true;
}

bool str_parse_u64(const char *text, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (value > max) {
        return false;
    }
    *ret_value = value;
    return true;
}

void str_hex(const uint8_t *data, size_t n_bytes, char *to)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n_bytes; i++) {
        to[2 * i] = digits[data[i] >> 4];
        to[2 * i + 1] = digits[data[i] & 15];
    }
    to[2 * n_bytes] = '\0';
}

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    if (digit >= 'A' && digit <= 'F') {
        return digit - 'A' + 10;
    }
    return -1;
}

bool str_unhex(const char *text, uint8_t *to, size_t n_bytes)
{
    if (strlen(text) != 2 * n_bytes) {
        return false;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        int high = digit_value(text[2 * i]);
        int low = digit_value(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

unsigned str_distance(const char *a, const char *b)
{
    unsigned row[65];
    size_t n_a = strnlen(a, 64);
    size_t n_b = strnlen(b, 64);

    for (size_t j = 0; j <= n_b; j++) {
        row[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= n_a; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n_b; j++) {
            unsigned above = row[j];
            unsigned best = diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u);

            if (above + 1 < best) {
                best = above + 1;
            }
            if (row[j - 1] + 1 < best) {
                best = row[j - 1] + 1;
            }
            diagonal = above;
            row[j] = best;
        }
    }
    return row[n_b];
}
