/* Paths of fields: which one is meant, and which one may be meant. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/limits.h"
#include "common/model/reason.h"
#include "nodectl/explain.h"

#define PATH_BYTES 160
#define DEPTH_MAX 8 /* of tables in tables */

const struct spec_kind_info *explain_kind(const char *word)
{
    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        if (strcasecmp(spec_kinds[i].path, word) == 0) {
            return &spec_kinds[i];
        }
    }
    return NULL;
}

bool explain_descend(struct explain_subject *subject)
{
    const struct spec_field *field = subject->field;

    if (field == NULL) {
        return true;
    }
    if (field->type == SPEC_TYPE_OBJECT) {
        subject->offset += field->offset;
        subject->table = field->fields;
    } else if (field->type == SPEC_TYPE_LIST && field->list->fields != NULL) {
        subject->table = field->list->fields;
        subject->list = field->list;
        subject->offset = 0;
    } else {
        return false;
    }
    subject->field = NULL;
    return true;
}

/* --- what may be meant --- */

/* The next part of a path, and where the one behind it begins. */
static const char *next_part(const char *at, char part[PATH_BYTES])
{
    size_t n = strcspn(at, ".");

    snprintf(part, PATH_BYTES, "%.*s", (int)(n < PATH_BYTES ? n : PATH_BYTES - 1), at);
    return at + n + (at[n] == '.');
}

static const struct spec_field *nearest_field(const struct spec_table *table, const char *part)
{
    const char *words[LIMIT_SPEC_KEYS];
    size_t n = 0;

    for (size_t i = 0; i < table->n_fields && n < LIMIT_SPEC_KEYS; i++) {
        words[n++] = table->fields[i].name;
    }
    const char *near = spec_nearest(part, words, n);
    return near == NULL ? NULL : spec_field_find(table, near);
}

static const struct spec_kind_info *nearest_kind(const char *part)
{
    const char *words[SPEC_N_KINDS];

    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        words[i] = spec_kinds[i].path;
    }
    const char *near = spec_nearest(part, words, SPEC_N_KINDS);
    return near == NULL ? NULL : explain_kind(near);
}

static void append(char meant[PATH_BYTES], const char *part)
{
    size_t used = strlen(meant);

    snprintf(meant + used, PATH_BYTES - used, "%s%s", used == 0 ? "" : ".", part);
}

/* Each part taken for the nearest word at its place. False: one is near to none. */
static bool correct_parts(const char *path, char meant[PATH_BYTES])
{
    struct explain_subject subject = {0};
    char part[PATH_BYTES];
    const char *at = next_part(path, part);

    meant[0] = '\0';
    subject.kind = nearest_kind(part);
    if (subject.kind == NULL) {
        return false;
    }
    append(meant, subject.kind->path);
    subject.table = subject.kind->spec;
    while (*at != '\0') {
        at = next_part(at, part);
        if (subject.table == subject.kind->spec && subject.field == NULL &&
            strcasecmp(part, "spec") == 0) {
            continue;
        }
        if (!explain_descend(&subject)) {
            return false;
        }
        subject.field = nearest_field(subject.table, part);
        if (subject.field == NULL) {
            return false;
        }
        append(meant, subject.field->name);
    }
    return true;
}

/* Whether `whole` ends with the path, as whole parts of it. */
static bool ends_with(const char *whole, const char *path)
{
    size_t n_whole = strlen(whole);
    size_t n = strlen(path);

    return n > 0 && n_whole > n && whole[n_whole - n - 1] == '.' &&
           strcasecmp(whole + n_whole - n, path) == 0;
}

/* A field below the table whose path ends with this one: the first, upper ones before lower ones.
 */
static bool find_end(const struct spec_table *table, const char *prefix, const char *path,
                     unsigned depth, char meant[PATH_BYTES])
{
    char whole[PATH_BYTES];

    for (size_t i = 0; i < table->n_fields; i++) {
        snprintf(whole, sizeof whole, "%.100s.%.50s", prefix, table->fields[i].name);
        if (ends_with(whole, path)) {
            snprintf(meant, PATH_BYTES, "%s", whole);
            return true;
        }
    }
    for (size_t i = 0; depth > 0 && i < table->n_fields; i++) {
        struct explain_subject subject = {.table = table, .field = &table->fields[i]};

        snprintf(whole, sizeof whole, "%.100s.%.50s", prefix, table->fields[i].name);
        if (explain_descend(&subject) && find_end(subject.table, whole, path, depth - 1, meant)) {
            return true;
        }
    }
    return false;
}

/* The whole path that may be meant. False: none is near. */
static bool find_meant(const char *path, char meant[PATH_BYTES])
{
    if (strlen(path) >= PATH_BYTES) {
        return false;
    }
    if (correct_parts(path, meant)) {
        return true;
    }
    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        if (find_end(spec_kinds[i].spec, spec_kinds[i].path, path, DEPTH_MAX, meant)) {
            return true;
        }
    }
    /* The beginning is right and stands too high: "http.expcet". */
    char part[PATH_BYTES];
    char whole[2 * PATH_BYTES];
    const char *rest = next_part(path, part);
    for (size_t i = 0; *rest != '\0' && i < SPEC_N_KINDS; i++) {
        if (find_end(spec_kinds[i].spec, spec_kinds[i].path, part, DEPTH_MAX, meant)) {
            snprintf(whole, sizeof whole, "%s.%s", meant, rest);
            if (correct_parts(whole, meant)) {
                return true;
            }
        }
    }
    /* The end is right and stands too low: "group.interval". */
    const char *last = strrchr(path, '.');
    return last != NULL && find_meant(last + 1, meant);
}

/* Words that answers show and that are no field: what says what they mean. NULL: none. */
const char *explain_topic(const char *word)
{
    static const char *const rows[][2] = {
        {"initial", "verdict"},        {"healthy", "verdict"},      {"unhealthy", "verdict"},
        {"unavailable", "verdict"},    {"unused", "verdict"},       {"held", "verdict"},
        {"gray", "verdict"},           {"suspect", "self-doubt"},   {"pending", "guards"},
        {"flapping", "guards"},        {"warming", "flows"},        {"unreachable", "flows"},
        {"fail-open", "flows"},        {"closed", "flows"},         {"degraded", "checks"},
        {"dependency", "checks"},      {"velocity", "guards"},      {"damping", "guards"},
        {"return", "guards"},          {"shadow", "guards"},        {"correlated", "guards"},
        {"slow start", "guards"},      {"loop-late", "self-doubt"}, {"local-faults", "self-doubt"},
        {"loopback", "self-doubt"},    {"lossy", "self-doubt"},     {"isolated", "self-doubt"},
        {"contradicted", "self-doubt"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcasecmp(rows[i][0], word) == 0) {
            return rows[i][1];
        }
    }
    return NULL;
}

/* A path is none. The first word, "NONE", is that there is no reason. */
static const char *nearest_reason(const char *word)
{
#define REASON_WORD(name, number, class, text, sentence) text,
    static const char *const words[] = {PROBE_REASONS(REASON_WORD)};
#undef REASON_WORD

    return strchr(word, '.') != NULL
               ? NULL
               : spec_nearest(word, words + 1, sizeof words / sizeof words[0] - 1);
}

int explain_refuse(struct ctl *ctl, const char *path)
{
    const char *topic = explain_topic(path);
    const char *reason = nearest_reason(path);
    char meant[PATH_BYTES];

    if (topic != NULL) {
        ctl_hint(ctl, "see: nodectl explain %s", topic);
    } else if (reason != NULL) {
        ctl_hint(ctl, "did you mean \"%s\"? All of them: nodectl explain reason", reason);
    } else if (find_meant(path, meant)) {
        ctl_hint(ctl, "did you mean \"%s\"?", meant);
    } else {
        ctl_hint(ctl, "see: nodectl explain");
    }
    return ctl_fail(ctl, ERR_NOTFOUND, "nothing to explain is called \"%.80s\"", path);
}

/* --- what is meant --- */

/* The field, or the kind's metadata, that a part names. False: none. */
static bool step(struct explain_subject *subject, const char *part, size_t at_part)
{
    if (at_part == 0) {
        subject->kind = explain_kind(part);
        subject->table = subject->kind == NULL ? NULL : subject->kind->spec;
        return subject->kind != NULL;
    }
    if (at_part == 1 && strcmp(part, "spec") == 0) {
        return true;
    }
    if (at_part == 1 && strcmp(part, "metadata") == 0 && subject->kind->metadata != NULL) {
        subject->table = subject->kind->metadata;
        return true;
    }
    if (!explain_descend(subject)) {
        return false;
    }
    subject->field = spec_field_find(subject->table, part);
    return subject->field != NULL;
}

int explain_find(struct ctl *ctl, const char *path, struct explain_subject *ret_subject)
{
    struct explain_subject subject = {0};
    char part[PATH_BYTES];
    const char *at = path;
    size_t n_parts = 0;

    for (; *at != '\0'; n_parts++) {
        at = next_part(at, part);
        if (!step(&subject, part, n_parts)) {
            return explain_refuse(ctl, path);
        }
    }
    if (n_parts == 0) {
        return explain_refuse(ctl, path);
    }
    *ret_subject = subject;
    return 0;
}
