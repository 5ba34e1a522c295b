/* What a field is when a document leaves it out, and what it may be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/profile.h"
#include "common/spec/value.h"
#include "nodectl/explain.h"

const enum profile explain_profiles[EXPLAIN_N_PROFILES] = {PROFILE_GWLB, PROFILE_NLB, PROFILE_CLB};

void explain_defaults(const struct spec_kind_info *kind, enum profile profile, enum check_type type,
                      void *base)
{
    spec_defaults(kind->kind, profile, PROTOCOL_NONE, base);
    if (kind->kind == SPEC_GROUP) {
        struct server_group *group = base;

        profile_check_defaults(profile, (enum protocol)group->protocol, type, &group->check);
    }
}

static bool has_default(const struct spec_field *field)
{
    return field->type != SPEC_TYPE_NONE && field->type != SPEC_TYPE_OBJECT &&
           field->type != SPEC_TYPE_LIST && field->type != SPEC_TYPE_LABELS &&
           (field->flags & (SPEC_LATER | SPEC_REQUIRED | SPEC_ALTERNATE)) == 0 &&
           field->type != SPEC_TYPE_ENDPOINT;
}

char *explain_default_text(const struct spec_field *field, const void *base, char *text,
                           size_t text_bytes)
{
    const void *from = (const uint8_t *)base + field->offset;

    text[0] = '\0';
    bool has_none = (field->flags & SPEC_OMIT_ZERO) != 0 ||
                    (field->type == SPEC_TYPE_WORD && field->zero_word == NULL);
    if (!has_default(field) || (has_none && value_is_zero(field, from))) {
        return text;
    }
    return value_format(field, from, text, text_bytes);
}

/* --- defaults that a struct does not show --- */

/* The word that stands for the whole mapping, if it is what the mapping holds: `guard: off`. */
static void put_word_of_object(const struct spec_field *field, const void *from, char *text,
                               size_t text_bytes)
{
    uint64_t filled[16];

    if (field->bytes > sizeof filled) {
        return;
    }
    for (size_t i = 0; i < field->names->n_rows; i++) {
        memset(filled, 0, sizeof filled);
        field->fill(field->names->rows[i].value, filled);
        if (memcmp(filled, from, field->bytes) == 0) {
            snprintf(text, text_bytes, "%s", field->names->rows[i].word);
            return;
        }
    }
}

static void put_list(const struct spec_field *field, const uint8_t *base, char *text,
                     size_t text_bytes)
{
    const struct spec_list *list = field->list;
    uint32_t n = *(const uint32_t *)(const void *)(base + list->count_offset);
    size_t used = 0;

    for (uint32_t i = 0; i < n && used < text_bytes; i++) {
        char value[VALUE_TEXT_BYTES];
        const uint8_t *element = base + field->offset + i * list->element_bytes;
        int length = snprintf(text + used, text_bytes - used, "%s%s", i == 0 ? "" : ", ",
                              value_format(list->scalar, element, value, sizeof value));

        used += length > 0 ? (size_t)length : 0;
    }
}

/* base: of the table's struct. */
static void put_default(const struct spec_field *field, const uint8_t *base, char *text,
                        size_t text_bytes)
{
    text[0] = '\0';
    if ((field->flags & (SPEC_LATER | SPEC_REQUIRED | SPEC_ALTERNATE)) != 0) {
        return;
    }
    if ((field->flags & SPEC_ZERO_KEEPS) != 0) {
        snprintf(text, text_bytes, "as it is; %s for a new one", field->names->rows[0].word);
    } else if (field->type == SPEC_TYPE_PASS) {
        snprintf(text, text_bytes, "all");
    } else if (field->type == SPEC_TYPE_OBJECT && field->fill != NULL) {
        put_word_of_object(field, base + field->offset, text, text_bytes);
    } else if (field->type == SPEC_TYPE_LIST && field->list->scalar != NULL) {
        put_list(field, base, text, text_bytes);
    } else {
        explain_default_text(field, base, text, text_bytes);
    }
}

/* --- defaults by profile, and by what they follow from --- */

static bool is_table(const struct explain_subject *subject, const char *name)
{
    return subject->table->name != NULL && strcmp(subject->table->name, name) == 0;
}

/* The type of check that the fields of the table exist with; CHECK_TYPE_NONE: any, and tcp's are
 * those of every group's default. */
static enum check_type type_of_table(const struct explain_subject *subject)
{
    return subject->table->name == NULL || is_table(subject, "tcp")
               ? CHECK_TYPE_NONE
               : (enum check_type)names_value(&names_check_type, subject->table->name);
}

static const uint8_t *fill_base(const struct explain_subject *subject, enum profile profile,
                                enum protocol protocol, enum check_type type, void *base)
{
    memset(base, 0, subject->kind->bytes);
    if (subject->list == NULL) {
        explain_defaults(subject->kind, profile, type, base);
        if (subject->kind->kind == SPEC_GROUP && protocol != PROTOCOL_NONE) {
            profile_check_defaults(profile, protocol, type, &((struct server_group *)base)->check);
        }
    } else {
        spec_element_defaults(subject->list, profile, protocol, type, base);
    }
    return (const uint8_t *)base + subject->offset;
}

/* Append what is different with another check or protocol: "; clb with type udp: 10s". */
static void put_other(const struct explain_subject *subject, const struct spec_field *field,
                      const char *const texts[], void *base, char *text, size_t text_bytes)
{
    bool is_type = strcmp(field->name, "type") == 0;
    enum protocol protocol = is_type ? PROTOCOL_UDP : PROTOCOL_NONE;
    enum check_type type = is_type ? CHECK_TYPE_NONE : CHECK_TYPE_UDP;

    if (!is_table(subject, "check") && !is_table(subject, "checks")) {
        return;
    }
    for (size_t i = 0; i < EXPLAIN_N_PROFILES; i++) {
        char other[VALUE_TEXT_BYTES];
        size_t used = strlen(text);

        put_default(field, fill_base(subject, explain_profiles[i], protocol, type, base), other,
                    sizeof other);
        /* The type itself is not its own default. */
        if (strcmp(other, texts[i]) != 0) {
            snprintf(text + used, text_bytes - used, "; %s with %s udp: %.40s",
                     names_word(&names_profile, explain_profiles[i]), is_type ? "protocol" : "type",
                     other);
        }
    }
}

static bool is_refused(enum profile profile, enum check_type type)
{
    return profile == PROFILE_GWLB && type != CHECK_TYPE_NONE && type != CHECK_TYPE_HTTP;
}

char *explain_default(const struct explain_subject *subject, const struct spec_field *field,
                      char *text, size_t text_bytes)
{
    char texts[EXPLAIN_N_PROFILES][VALUE_TEXT_BYTES];
    const char *const all[] = {texts[0], texts[1], texts[2]};
    enum check_type type = type_of_table(subject);
    void *base = calloc(1, subject->kind->bytes);

    text[0] = '\0';
    if (base == NULL) {
        return text;
    }
    for (size_t i = 0; i < EXPLAIN_N_PROFILES; i++) {
        put_default(field, fill_base(subject, explain_profiles[i], PROTOCOL_NONE, type, base),
                    texts[i], sizeof texts[i]);
        if (is_refused(explain_profiles[i], type) && subject->kind->kind == SPEC_GROUP) {
            texts[i][0] = '\0';
        }
    }
    if (strcmp(texts[0], texts[1]) == 0 && strcmp(texts[1], texts[2]) == 0) {
        snprintf(text, text_bytes, "%s", texts[0]);
    } else {
        snprintf(text, text_bytes, "gwlb %.60s, nlb %.60s, clb %.60s",
                 texts[0][0] == '\0' ? "-" : texts[0], texts[1][0] == '\0' ? "-" : texts[1],
                 texts[2][0] == '\0' ? "-" : texts[2]);
    }
    put_other(subject, field, all, base, text, text_bytes);
    free(base);
    return text;
}

/* --- what is allowed --- */

/* In a list of checks these have one value so far. */
static const char *only_value(const struct explain_subject *subject, const struct spec_field *field)
{
    static const char *const rows[][2] = {
        {"enabled", "true"}, {"probers", "all"}, {"recheck", "false"}};

    for (size_t i = 0; is_table(subject, "checks") && i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(field->name, rows[i][0]) == 0) {
            return rows[i][1];
        }
    }
    return NULL;
}

char *explain_allowed(const struct explain_subject *subject, const struct spec_field *field,
                      char *text, size_t text_bytes)
{
    const char *only = only_value(subject, field);

    if (only != NULL) {
        snprintf(text, text_bytes, "%s in a list of checks", only);
        return text;
    }
    value_format_allowed(field, text, text_bytes);
    size_t used = strlen(text);
    if (field->later != NULL) {
        snprintf(text + used, text_bytes - used, "; not yet: %s", field->later);
    }
    return text;
}
