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

/* Length of the UTF-8 sequence at `at`, 0 when it is none: overlong forms, surrogates and numbers
 * above U+10FFFF are refused by the range of the second byte. */
static size_t utf8_length(const unsigned char *at)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t n;

    if (at[0] < 0x80) {
        return 1;
    }
    if (at[0] >= 0xc2 && at[0] <= 0xdf) {
        n = 2;
    } else if ((at[0] & 0xf0) == 0xe0) {
        n = 3;
        low = at[0] == 0xe0 ? 0xa0 : 0x80;
        high = at[0] == 0xed ? 0x9f : 0xbf;
    } else if (at[0] >= 0xf0 && at[0] <= 0xf4) {
        n = 4;
        low = at[0] == 0xf0 ? 0x90 : 0x80;
        high = at[0] == 0xf4 ? 0x8f : 0xbf;
    } else {
        return 0;
    }
    if (at[1] < low || at[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return n;
}

/* Bytes of the character; 0: it is none, or a control character: C0, DEL and the C1 block, which is
 * C2 80 .. C2 9F. */
static size_t text_length(const unsigned char *at)
{
    bool is_control = *at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0);

    return is_control ? 0 : utf8_length(at);
}

bool str_is_text(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at != '\0') {
        size_t n = text_length(at);

        if (n == 0) {
            return false;
        }
        at += n;
    }
    return true;
}

void str_make_text(char *text)
{
    while (*text != '\0') {
        size_t n = *text == '\n' ? 1 : text_length((const unsigned char *)text);

        if (n == 0) {
            *text = '?';
            n = 1;
        }
        text += n;
    }
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
