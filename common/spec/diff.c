#include "common/spec/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/spec/value.h"

#define PATH_BYTES 160
#define FLAT_LIMIT_BYTES (8 * 1024 * 1024) /* a full group has about 1 MiB of fields */

/* One field of a struct, as offsets into the texts of its `flat`. */
struct entry {
    size_t path;
    size_t text;
    uint32_t order;
    bool is_element; /* of a list: its own fields follow */
    bool may_lack;   /* a document that does not say it leaves it as it is */
};

/* A struct as a list of (path, text). */
struct flat {
    struct entry *entries;
    uint32_t n_entries;
    uint32_t capacity;
    struct bytes_writer texts;
    bool failed;
};

static void flat_close(struct flat *flat)
{
    free(flat->entries);
    bytes_writer_close(&flat->texts);
}

static size_t put_text(struct flat *flat, const char *text)
{
    size_t at = flat->texts.n_bytes;

    bytes_write_copy(&flat->texts, text, strlen(text) + 1);
    flat->failed = flat->failed || flat->texts.failed;
    return at;
}

enum entry_flag {
    ENTRY_PLAIN = 0,
    ENTRY_ELEMENT = 1,
    ENTRY_MAY_LACK = 2
};

static void put(struct flat *flat, const char *path, const char *text, enum entry_flag flag)
{
    if (flat->n_entries == flat->capacity) {
        uint32_t capacity = flat->capacity == 0 ? 64 : flat->capacity * 2;
        struct entry *grown = realloc(flat->entries, capacity * sizeof *grown);

        if (grown == NULL) {
            flat->failed = true;
            return;
        }
        flat->entries = grown;
        flat->capacity = capacity;
    }
    flat->entries[flat->n_entries] = (struct entry){.path = put_text(flat, path),
                                                    .text = put_text(flat, text),
                                                    .order = flat->n_entries,
                                                    .is_element = flag == ENTRY_ELEMENT,
                                                    .may_lack = flag == ENTRY_MAY_LACK};
    flat->n_entries++;
}

static void flatten(struct flat *flat, const struct spec_table *table, const void *base,
                    const char *prefix);

static void flatten_labels(struct flat *flat, const struct server_group *group)
{
    char path[PATH_BYTES];

    for (uint32_t i = 0; i < group->n_labels; i++) {
        snprintf(path, sizeof path, "labels.%s", group->labels[i].key);
        put(flat, path, group->labels[i].value, ENTRY_PLAIN);
    }
}

/* How an element is told from the others: its value, its endpoint, or its number. */
static void element_path(const struct spec_list *list, const void *element, uint32_t index,
                         char path[PATH_BYTES])
{
    char text[VALUE_TEXT_BYTES];

    snprintf(path, PATH_BYTES, "%s %u", list->element_word, (unsigned)index + 1);
    if (list->scalar != NULL) {
        value_format(list->scalar, element, text, sizeof text);
        snprintf(path, PATH_BYTES, "%s %.100s", list->element_word, text);
    } else if (list->fields->fields[0].type == SPEC_TYPE_ENDPOINT ||
               strcmp(list->element_word, "check") == 0) {
        value_format(&list->fields->fields[0],
                     (const uint8_t *)element + list->fields->fields[0].offset, text, sizeof text);
        snprintf(path, PATH_BYTES, "%s %.100s", list->element_word, text);
    }
}

static void flatten_list(struct flat *flat, const struct spec_field *field, const void *base)
{
    const struct spec_list *list = field->list;
    const uint8_t *elements = (const uint8_t *)base + field->offset;
    const uint32_t n =
        *(const uint32_t *)(const void *)((const uint8_t *)base + list->count_offset);

    if (list->is_allocated) {
        elements = *(const uint8_t *const *)(const void *)elements;
    }
    for (uint32_t i = 0; i < n; i++) {
        const void *element = elements + i * list->element_bytes;
        char path[PATH_BYTES];

        element_path(list, element, i, path);
        put(flat, path, "", ENTRY_ELEMENT);
        if (list->fields != NULL) {
            strncat(path, ": ", sizeof path - strlen(path) - 1);
            flatten(flat, list->fields, element, path);
        }
    }
}

static void flatten(struct flat *flat, const struct spec_table *table, const void *base,
                    const char *prefix)
{
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];
        const void *from = (const uint8_t *)base + field->offset;
        char path[PATH_BYTES];
        char text[VALUE_TEXT_BYTES];

        if ((field->flags & (SPEC_LATER | SPEC_ALTERNATE)) != 0 ||
            !spec_field_applies(field, base) ||
            ((field->flags & SPEC_OMIT_ZERO) != 0 && value_is_zero(field, from))) {
            continue;
        }
        snprintf(path, sizeof path, "%s%s", prefix, field->name);
        if (field->type == SPEC_TYPE_OBJECT) {
            strncat(path, ".", sizeof path - strlen(path) - 1);
            flatten(flat, field->fields, from, path);
        } else if (field->type == SPEC_TYPE_LIST) {
            flatten_list(flat, field, base);
        } else if (field->type == SPEC_TYPE_LABELS) {
            flatten_labels(flat, base);
        } else {
            put(flat, path, value_show(field, from, text, sizeof text),
                (field->flags & SPEC_ZERO_KEEPS) != 0 ? ENTRY_MAY_LACK : ENTRY_PLAIN);
        }
    }
}

static void flatten_object(struct flat *flat, enum spec_kind kind, const void *base)
{
    const struct spec_kind_info *info = spec_kind_info(kind);

    bytes_writer_init(&flat->texts, FLAT_LIMIT_BYTES);
    if (base == NULL) {
        return;
    }
    if (info->metadata != NULL) {
        flatten(flat, info->metadata, base, "");
    }
    flatten(flat, info->spec, base, "");
}

static const char *text_at(const struct flat *flat, size_t at)
{
    return (const char *)flat->texts.data + at;
}

static int compare_paths(const void *a, const void *b, void *texts)
{
    const struct entry *left = a;
    const struct entry *right = b;
    const char *base = texts;
    int order = strcmp(base + left->path, base + right->path);

    return order != 0 ? order : (left->order > right->order) - (left->order < right->order);
}

/* Entries of two structs with the same path, or one of them NULL. */
struct pair {
    const struct entry *before;
    const struct entry *after;
    uint64_t order;
};

/* Both sorted by path -> pairs. Returns their number. */
static uint32_t merge(const struct flat *before, const struct flat *after, struct pair *pairs)
{
    uint32_t b = 0;
    uint32_t a = 0;
    uint32_t n = 0;

    while (b < before->n_entries || a < after->n_entries) {
        const struct entry *left = b < before->n_entries ? &before->entries[b] : NULL;
        const struct entry *right = a < after->n_entries ? &after->entries[a] : NULL;
        int order = 0;

        if (left == NULL || right == NULL) {
            order = left == NULL ? 1 : -1;
        } else {
            order = strcmp(text_at(before, left->path), text_at(after, right->path));
        }
        struct pair *pair = &pairs[n++];
        *pair =
            (struct pair){.before = order <= 0 ? left : NULL, .after = order >= 0 ? right : NULL};
        b += order <= 0;
        a += order >= 0;
    }
    return n;
}

/* In the order of `after`; what is gone stands behind what it followed in `before`.
 * by_before: room for one pointer for each entry of `before`. */
static void put_in_order(struct pair pairs[], uint32_t n_pairs, struct pair *by_before[])
{
    uint32_t n_before = 0;
    uint64_t anchor = 0;

    for (uint32_t i = 0; i < n_pairs; i++) {
        if (pairs[i].after != NULL) {
            pairs[i].order = ((uint64_t)pairs[i].after->order + 1) << 32;
        }
        if (pairs[i].before != NULL) {
            by_before[pairs[i].before->order] = &pairs[i];
            n_before++;
        }
    }
    for (uint32_t i = 0; i < n_before; i++) {
        if (by_before[i]->after != NULL) {
            anchor = by_before[i]->order;
        } else {
            by_before[i]->order = anchor + 1 + i;
        }
    }
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *left = a;
    const struct pair *right = b;

    return (left->order > right->order) - (left->order < right->order);
}

static bool is_difference(const struct flat *before, const struct flat *after,
                          const struct pair *pair)
{
    if (pair->before == NULL) {
        return true;
    }
    if (pair->after == NULL) {
        return !pair->before->may_lack;
    }
    return strcmp(text_at(before, pair->before->text), text_at(after, pair->after->text)) != 0;
}

/* Whether `path` is a field of the element that was reported as a whole. */
static bool is_inside(const char *path, const char *element)
{
    size_t n = strlen(element);

    return n > 0 && strncmp(path, element, n) == 0 && path[n] == ':';
}

static void collect(const struct flat *before, const struct flat *after, struct pair pairs[],
                    uint32_t n_pairs, struct spec_changes *changes)
{
    /* The texts of both are copied one behind the other. */
    const size_t shift = before->texts.n_bytes;
    const char *texts = changes->texts;
    const char *added = "";
    const char *removed = "";

    qsort(pairs, n_pairs, sizeof *pairs, compare_pairs);
    for (uint32_t i = 0; i < n_pairs; i++) {
        const struct pair *pair = &pairs[i];

        if (!is_difference(before, after, pair)) {
            continue;
        }
        const char *path =
            pair->after != NULL ? texts + shift + pair->after->path : texts + pair->before->path;
        if (is_inside(path, pair->after != NULL ? added : removed)) {
            continue;
        }
        if (pair->before == NULL && pair->after->is_element) {
            added = path;
        } else if (pair->after == NULL && pair->before->is_element) {
            removed = path;
        }
        changes->items[changes->n_items++] = (struct spec_change){
            .path = path,
            .before = pair->before == NULL ? NULL : texts + pair->before->text,
            .after = pair->after == NULL ? NULL : texts + shift + pair->after->text,
        };
    }
}

static int compare(struct flat *before, struct flat *after, struct spec_changes *ret_changes)
{
    uint32_t n_max = before->n_entries + after->n_entries;
    size_t n_bytes = before->texts.n_bytes + after->texts.n_bytes;
    struct pair *pairs = calloc(n_max + 1, sizeof *pairs);
    struct pair **by_before = calloc(before->n_entries + 1, sizeof *by_before);
    struct spec_changes changes = {.items = calloc(n_max + 1, sizeof changes.items[0]),
                                   .texts = malloc(n_bytes + 1)};

    if (pairs == NULL || by_before == NULL || changes.items == NULL || changes.texts == NULL) {
        free(pairs);
        free(by_before);
        spec_changes_close(&changes);
        return ERR_NOMEM;
    }
    if (before->n_entries > 0) {
        qsort_r(before->entries, before->n_entries, sizeof(struct entry), compare_paths,
                before->texts.data);
        memcpy(changes.texts, before->texts.data, before->texts.n_bytes);
    }
    if (after->n_entries > 0) {
        qsort_r(after->entries, after->n_entries, sizeof(struct entry), compare_paths,
                after->texts.data);
        memcpy(changes.texts + before->texts.n_bytes, after->texts.data, after->texts.n_bytes);
    }
    uint32_t n_pairs = merge(before, after, pairs);
    put_in_order(pairs, n_pairs, by_before);
    collect(before, after, pairs, n_pairs, &changes);
    free(pairs);
    free(by_before);
    *ret_changes = changes;
    return 0;
}

int spec_diff(enum spec_kind kind, const void *before, const void *after,
              struct spec_changes *ret_changes)
{
    struct flat flat_before = {0};
    struct flat flat_after = {0};

    flatten_object(&flat_before, kind, before);
    flatten_object(&flat_after, kind, after);
    int rc = flat_before.failed || flat_after.failed
                 ? ERR_NOMEM
                 : compare(&flat_before, &flat_after, ret_changes);
    flat_close(&flat_before);
    flat_close(&flat_after);
    return rc;
}

void spec_changes_close(struct spec_changes *changes)
{
    free(changes->items);
    free(changes->texts);
    *changes = (struct spec_changes){0};
}
