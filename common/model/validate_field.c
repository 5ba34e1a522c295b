#include "common/model/validate_field.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "common/model/guard.h"

const struct range validate_idle_timeout = {1000, 6000000, "1s..6000s", "ms"};

/* "check web: tcp.expect ..." for "check.tcp.expect ..." */
static void name_check(const char *name, char sentence[ERRMSG_BYTES])
{
    static const char word[] = "check.";
    char *at = sentence;

    while ((at = strstr(at, word)) != NULL) {
        memmove(at, at + sizeof word - 1, strlen(at + sizeof word - 1) + 1);
    }
    char plain[ERRMSG_BYTES];
    str_copy(plain, sizeof plain, sentence);
    snprintf(sentence, ERRMSG_BYTES, "check %.40s: %.400s", name, plain);
}

int object_refuse(const struct object *object, struct errmsg *err, int code, const char *format,
                  ...)
{
    char sentence[ERRMSG_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (object->check != NULL) {
        name_check(object->check, sentence);
    }
    struct validate_faults *faults = object->faults;
    struct errmsg spare;
    if (faults != NULL) {
        err = faults->n < VALIDATE_FAULTS ? &faults->messages[faults->n] : &spare;
    }
    if (object->name == NULL) {
        errmsg_set(err, code, "%s: %s", object->kind, sentence);
    } else {
        errmsg_set(err, code, "%s \"%s\": %s", object->kind, object->name, sentence);
    }
    if (faults == NULL) {
        return code;
    }
    if (faults->n < VALIDATE_FAULTS) {
        faults->codes[faults->n++] = code;
    }
    return 0;
}

int validate_text(const struct object *object, const char *field, const char *text,
                  struct errmsg *err)
{
    if (!str_is_text(text)) {
        return object_refuse(object, err, ERR_INVALID,
                             "%s must be UTF-8 text without control characters", field);
    }
    return 0;
}

int object_refuse_yet(const struct object *object, const char *field, const char *word,
                      const char *instead, struct errmsg *err)
{
    return object_refuse(object, err, ERR_UNAVAILABLE_YET,
                         "%s %s is not available yet: write `%s: %s`", field, word, field, instead);
}

bool validate_holds_only(const char *text, const char *others, bool any_visible)
{
    for (; *text != '\0'; text++) {
        bool is_plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                        (*text >= '0' && *text <= '9');
        bool is_visible = *text > ' ' && *text < 0x7f;

        if (!is_plain && !(any_visible && is_visible) && strchr(others, *text) == NULL) {
            return false;
        }
    }
    return true;
}

int validate_range(const struct object *object, const char *field, uint64_t value,
                   const struct range *range, struct errmsg *err)
{
    if (value < range->min || value > range->max) {
        return object_refuse(object, err, ERR_INVALID, "%s must be %s, got %" PRIu64 "%s", field,
                             range->text, value, range->unit);
    }
    return 0;
}

int validate_hold(const struct object *object, unsigned hold, struct errmsg *err)
{
    return hold == HOLD_KEEP ? 0 : validate_choice(object, "hold", &names_hold, hold, err);
}

int validate_choice(const struct object *object, const char *field, const struct name_table *table,
                    unsigned value, struct errmsg *err)
{
    char list[200];

    if (strcmp(names_word(table, value), "?") == 0) {
        return object_refuse(object, err, ERR_INVALID, "%s must be %s", field,
                             names_list(table, list, sizeof list));
    }
    return 0;
}
