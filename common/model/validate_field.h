/* Parts that the validators share: how a sentence begins, and the checks of one field. Private to
 * common/model/validate*.c. */
#ifndef JURY_MODEL_VALIDATE_FIELD_H
#define JURY_MODEL_VALIDATE_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/model/names.h"
#include "common/model/validate.h"

/* What a sentence is about: `server group "web": ...`, `cluster settings: ...` (name NULL). */
struct object {
    const char *kind;
    const char *name;
    const char *check; /* one of several checks: sentences begin with "check NAME: ", and their
                          fields without "check."; else NULL */
    struct validate_faults *faults; /* NULL: the first fault ends the validation */
};

/* Write "KIND "NAME": sentence" and return `code`; where faults are collected, note it there and
 * return 0, so that the validation goes on. */
int object_refuse(const struct object *object, struct errmsg *err, int code, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

/* `FIELD WORD is not available yet: write `FIELD: INSTEAD``. As object_refuse. */
int object_refuse_yet(const struct object *object, const char *field, const char *word,
                      const char *instead, struct errmsg *err);

/* An allowed range as a person reads it ("0.1s..300s") and the unit of the number that is compared
 * ("ms", or "" for a plain count). */
struct range {
    uint64_t min;
    uint64_t max;
    const char *text;
    const char *unit;
};

extern const struct range validate_idle_timeout; /* 1s..6000s */

/* Errors of all: ERR_INVALID with a sentence that names object, field, value and range. */
int validate_range(const struct object *object, const char *field, uint64_t value,
                   const struct range *range, struct errmsg *err);
int validate_choice(const struct object *object, const char *field, const struct name_table *table,
                    unsigned value, struct errmsg *err);
/* Letters, digits and `others`, or with any_visible every visible character of ASCII. */
bool validate_holds_only(const char *text, const char *others, bool any_visible);
/* HOLD_KEEP, off or on. */
int validate_hold(const struct object *object, unsigned hold, struct errmsg *err);
/* The group's check, and what the rest of the group makes of it. */
int validate_check(const struct object *object, const struct server_group *group,
                   struct errmsg *err);
/* The type of one check of it, and the parts that go with that type. */
int validate_check_type(const struct object *object, const struct server_group *group,
                        const struct health_check *check, struct errmsg *err);
int validate_text(const struct object *object, const char *field, const char *text,
                  struct errmsg *err);

#endif
