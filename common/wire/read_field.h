/* Parts that the readers of objects share: one field of a message into one field of the model.
 * Private to common/wire/object*.c.
 *
 * `field` begins the sentence; the object's name is put before it by the caller. Errors:
 * ERR_INVALID with the value and the allowed range. */
#ifndef JURY_WIRE_READ_FIELD_H
#define JURY_WIRE_READ_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/model/names.h"
#include "google/protobuf/duration.pb-c.h"

/* Copies; "FIELD must be at most N bytes". */
int read_text(const char *field, const char *text, char *to, size_t to_bytes, struct errmsg *err);
/* min..max, which fits. */
int read_number(const char *field, uint32_t value, uint32_t min, uint32_t max, uint32_t *ret_value,
                struct errmsg *err);
int read_u8(const char *field, uint32_t value, uint8_t min, uint8_t max, uint8_t *ret_value,
            struct errmsg *err);
/* 0..max */
int read_u16(const char *field, uint32_t value, uint16_t max, uint16_t *ret_value,
             struct errmsg *err);
int read_port(const char *field, uint32_t value, uint16_t min, uint16_t *ret_port,
              struct errmsg *err);
/* 0 (unspecified) leaves *value, which holds the default; what the table does not have is
 * refused with the list of words. */
int read_enum(const char *field, const struct name_table *table, int number, uint8_t *value,
              struct errmsg *err);
int read_addr(const char *field, const char *text, struct addr *ret_addr, struct errmsg *err);
/* NULL leaves *ms. */
int read_duration(const char *field, const Google__Protobuf__Duration *duration, uint32_t *ms,
                  struct errmsg *err);
/* Exactly 2 * n_bytes hex digits. */
int read_hex(const char *field, const char *text, uint8_t *to, size_t n_bytes, struct errmsg *err);

#endif
