#include "common/wire/read_field.h"

#include <string.h>

#include "common/base/str.h"
#include "common/wire/object.h"

int read_text(const char *field, const char *text, char *to, size_t to_bytes, struct errmsg *err)
{
    if (!str_copy(to, to_bytes, text)) {
        return errmsg_set(err, ERR_INVALID, "%s must be at most %zu bytes, got %zu", field,
                          to_bytes - 1, strlen(text));
    }
    return 0;
}

int read_number(const char *field, uint32_t value, uint32_t min, uint32_t max, uint32_t *ret_value,
                struct errmsg *err)
{
    if (value < min || value > max) {
        return errmsg_set(err, ERR_INVALID, "%s must be %u..%u, got %u", field, min, max, value);
    }
    *ret_value = value;
    return 0;
}

int read_u8(const char *field, uint32_t value, uint8_t min, uint8_t max, uint8_t *ret_value,
            struct errmsg *err)
{
    uint32_t number = 0;
    int rc = read_number(field, value, min, max, &number, err);

    if (rc == 0) {
        *ret_value = (uint8_t)number;
    }
    return rc;
}

int read_u16(const char *field, uint32_t value, uint16_t max, uint16_t *ret_value,
             struct errmsg *err)
{
    uint32_t number = 0;
    int rc = read_number(field, value, 0, max, &number, err);

    if (rc == 0) {
        *ret_value = (uint16_t)number;
    }
    return rc;
}

int read_port(const char *field, uint32_t value, uint16_t min, uint16_t *ret_port,
              struct errmsg *err)
{
    uint32_t number = 0;
    int rc = read_number(field, value, min, UINT16_MAX, &number, err);

    if (rc == 0) {
        *ret_port = (uint16_t)number;
    }
    return rc;
}

int read_enum(const char *field, const struct name_table *table, int number, uint8_t *value,
              struct errmsg *err)
{
    char list[256];

    if (number == 0) {
        return 0;
    }
    for (size_t i = 0; i < table->n_rows; i++) {
        if ((int)table->rows[i].value == number) {
            *value = (uint8_t)number;
            return 0;
        }
    }
    return errmsg_set(err, ERR_INVALID, "%s must be %s, got the number %d", field,
                      names_list(table, list, sizeof list), number);
}

int read_addr(const char *field, const char *text, struct addr *ret_addr, struct errmsg *err)
{
    int rc = addr_parse(text, ret_addr, err);

    if (rc != 0) {
        errmsg_prefix(err, "%s", field);
    }
    return rc;
}

int read_duration(const char *field, const Google__Protobuf__Duration *duration, uint32_t *ms,
                  struct errmsg *err)
{
    if (duration == NULL) {
        return 0;
    }
    return wire_duration_read(duration, field, UINT32_MAX, ms, err);
}

int read_hex(const char *field, const char *text, uint8_t *to, size_t n_bytes, struct errmsg *err)
{
    if (!str_unhex(text, to, n_bytes)) {
        return errmsg_set(err, ERR_INVALID, "%s must be %zu hex digits, got %zu characters", field,
                          2 * n_bytes, strlen(text));
    }
    return 0;
}
