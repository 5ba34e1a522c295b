/* Finding the place of a fault that the validation of the model found: it knows no lines, but its
 * sentences name the field. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/spec/fields.h"
#include "common/spec/read.h"

struct blame {
    const char *sentence; /* without the object's name at its beginning */
    size_t best;          /* where the best match begins; SIZE_MAX = none yet */
    struct spec_position at;
};

/* A match of the last part of a field's name counts less than one of the whole path. */
#define WEAK_MATCH 10000

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Where `name` stands as a word of its own and not as a part of a longer path; SIZE_MAX: nowhere.
 */
static size_t find_word(const char *sentence, const char *name)
{
    size_t n = strlen(name);
    const char *at = sentence;

    while ((at = strstr(at, name)) != NULL) {
        bool begins = at == sentence || (!is_word(at[-1]) && at[-1] != '.');

        bool is_longer = is_word(at[n]) || (at[n] == '.' && is_word(at[n + 1]));
        if (begins && !is_longer) {
            return (size_t)(at - sentence);
        }
        at++;
    }
    return SIZE_MAX;
}

static size_t find_weak(const char *sentence, const char *name)
{
    size_t found = find_word(sentence, name);

    return found == SIZE_MAX ? SIZE_MAX : found + WEAK_MATCH;
}

static void offer(struct blame *blame, size_t found, struct spec_position at)
{
    if (found < blame->best) {
        blame->best = found;
        blame->at = at;
    }
}

static void walk(struct blame *blame, const struct spec_table *table, const struct doc_node *map,
                 const char *prefix);

/* A field and its value as the sentence quotes them: `host "x y"`. */
static void offer_quoted(struct blame *blame, const struct doc_node *element)
{
    if (element->kind != DOC_MAP) {
        return;
    }
    for (const struct doc_node *child = element->first; child != NULL; child = child->next) {
        char quoted[READ_PATH_BYTES];

        if (child->kind == DOC_SCALAR) {
            snprintf(quoted, sizeof quoted, "%.40s \"%.60s\"", child->key, child->text);
            const char *at = strstr(blame->sentence, quoted);
            offer(blame, at == NULL ? SIZE_MAX : (size_t)(at - blame->sentence), child->at);
        }
    }
}

/* Only the element that the sentence names: its fields come right behind its name. */
static void walk_list(struct blame *blame, const struct spec_list *list,
                      const struct doc_node *node)
{
    uint32_t index = 0;

    for (const struct doc_node *child = node->first; child != NULL; child = child->next, index++) {
        char name[READ_PATH_BYTES];

        read_element_name(list, child, index, name, sizeof name);
        size_t found = find_word(blame->sentence, name);
        if (found == SIZE_MAX) {
            continue;
        }
        struct blame inner = {
            .sentence = blame->sentence + found + strlen(name), .best = SIZE_MAX, .at = child->at};
        if (child->kind == DOC_MAP && list->fields != NULL) {
            walk(&inner, list->fields, child, "");
        }
        offer(blame, found, inner.at);
        return;
    }
    for (const struct doc_node *child = node->first; child != NULL; child = child->next) {
        offer_quoted(blame, child);
    }
    offer(blame, find_weak(blame->sentence, list->element_word), node->at);
}

/* Sentences name address and port also where the document writes both as one. */
static void offer_parts(struct blame *blame, const struct spec_table *table,
                        const struct doc_node *endpoint)
{
    for (size_t i = 0; i < table->n_fields; i++) {
        if ((table->fields[i].flags & SPEC_ALTERNATE) != 0) {
            offer(blame, find_word(blame->sentence, table->fields[i].name), endpoint->at);
        }
    }
}

static void walk(struct blame *blame, const struct spec_table *table, const struct doc_node *map,
                 const char *prefix)
{
    for (const struct doc_node *child = map->first; child != NULL; child = child->next) {
        const struct spec_field *field = spec_field_find(table, child->key);
        char path[READ_PATH_BYTES];

        if (field == NULL) {
            continue;
        }
        snprintf(path, sizeof path, "%s%s", prefix, field->name);
        /* A whole object begins at its key. */
        offer(blame, find_word(blame->sentence, path),
              field->type == SPEC_TYPE_OBJECT ? child->key_at : child->at);
        offer(blame, find_weak(blame->sentence, field->name), child->at);
        if (field->type == SPEC_TYPE_ENDPOINT) {
            offer_parts(blame, table, child);
        } else if (field->type == SPEC_TYPE_OBJECT && child->kind == DOC_MAP) {
            char inner[READ_PATH_BYTES];

            snprintf(inner, sizeof inner, "%.*s.", (int)sizeof inner - 2, path);
            walk(blame, field->fields, child, inner);
        } else if (field->type == SPEC_TYPE_LIST && child->kind == DOC_LIST) {
            walk_list(blame, field->list, child);
        }
    }
}

/* The model's sentences spell fields as C does. Only words that are fields of documents are
 * changed: `tcp_udp` stays. */
static bool is_field_of(const struct spec_table *table, const char *name)
{
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];

        if (strcmp(field->name, name) == 0 ||
            (field->type == SPEC_TYPE_OBJECT && is_field_of(field->fields, name)) ||
            (field->type == SPEC_TYPE_LIST && field->list->fields != NULL &&
             is_field_of(field->list->fields, name))) {
            return true;
        }
    }
    return false;
}

/* Copy the word of n bytes as a document spells it; returns the bytes written. */
static size_t respell_word(const struct spec_table *table, const char *word, size_t n, char *to)
{
    char camel[64];
    size_t used = 0;

    if (n < sizeof camel) {
        for (size_t i = 0; i < n; i++) {
            if (word[i] == '_' && i + 1 < n) {
                i++;
                camel[used++] = (char)toupper((unsigned char)word[i]);
            } else {
                camel[used++] = word[i];
            }
        }
        camel[used] = '\0';
        if (is_field_of(table, camel)) {
            memcpy(to, camel, used);
            return used;
        }
    }
    memcpy(to, word, n);
    return n;
}

/* from: behind the object's name, which may look like a field. */
static void respell(const struct spec_table *table, char *from)
{
    char spelt[ERRMSG_BYTES];
    size_t used = 0;
    const char *at = from;

    while (*at != '\0') {
        size_t n = 0;

        while (is_word(at[n])) {
            n++;
        }
        if (n == 0) {
            spelt[used++] = *at++;
            continue;
        }
        used += respell_word(table, at, n, spelt + used);
        at += n;
    }
    spelt[used] = '\0';
    memcpy(from, spelt, used + 1); /* never longer than before */
}

struct spec_position read_blame(const struct spec_kind_info *kind, const struct doc_node *root,
                                struct spec_position otherwise, struct errmsg *sentence)
{
    const struct doc_node *metadata = doc_find(root, "metadata");
    const struct doc_node *spec = doc_find(root, "spec");
    char *begin = strstr(sentence->text, "\": ");
    struct blame blame = {.best = SIZE_MAX, .at = otherwise};

    begin = begin == NULL ? sentence->text : begin + 3;
    respell(kind->spec, begin);
    blame.sentence = begin;
    if (spec != NULL && spec->kind == DOC_MAP) {
        walk(&blame, kind->spec, spec, "");
    }
    if (kind->metadata != NULL && metadata != NULL && metadata->kind == DOC_MAP) {
        walk(&blame, kind->metadata, metadata, "");
    }
    return blame.at;
}

/* --- what was not read --- */

/* Whether the sentence names the field, or one of those in it. */
static bool names_below(const char *sentence, const char *path)
{
    size_t n = strlen(path);

    for (const char *at = sentence; (at = strstr(at, path)) != NULL; at++) {
        bool begins = at == sentence || (!is_word(at[-1]) && at[-1] != '.');

        if (begins && !is_word(at[n])) {
            return true;
        }
    }
    return false;
}

/* "backend 10.0.0.1:80", but not "check.type" for a list of checks. */
static bool names_element(const char *sentence, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = sentence; (at = strstr(at, word)) != NULL; at++) {
        if ((at == sentence || !is_word(at[-1])) && at[n] == ' ') {
            return true;
        }
    }
    return false;
}

static bool has_unknown(const struct spec_table *table, const struct doc_node *map)
{
    for (const struct doc_node *child = map->first; child != NULL; child = child->next) {
        if (spec_field_find(table, child->key) == NULL) {
            return true;
        }
    }
    return false;
}

static bool was_refused(const struct reading *reading, const struct doc_node *node)
{
    for (uint32_t i = 0; i < reading->n_unread; i++) {
        if (reading->unread[i] == node) {
            return true;
        }
    }
    return false;
}

/* address and port are read from `at` where they are not there themselves. */
static const struct doc_node *find_written(const struct spec_field *field,
                                           const struct doc_node *map)
{
    const struct doc_node *node = doc_find(map, field->name);

    return node == NULL && (field->flags & SPEC_ALTERNATE) != 0 ? doc_find(map, "at") : node;
}

static bool names_unread_in(const struct reading *reading, const struct spec_table *table,
                            const struct doc_node *map, const char *prefix, const char *sentence)
{
    bool is_misspelt = has_unknown(table, map);

    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];
        const struct doc_node *node = find_written(field, map);
        char path[READ_PATH_BYTES];

        snprintf(path, sizeof path, "%s%s", prefix, field->name);
        if (node != NULL && field->type == SPEC_TYPE_OBJECT && node->kind == DOC_MAP) {
            snprintf(path, sizeof path, "%s%s.", prefix, field->name);
            if (names_unread_in(reading, field->fields, node, path, sentence)) {
                return true;
            }
            continue;
        }
        bool is_wanted = is_misspelt || (field->flags & (SPEC_REQUIRED | SPEC_ALTERNATE)) != 0;
        bool is_unread = node == NULL ? is_wanted : was_refused(reading, node);
        if (is_unread &&
            (names_below(sentence, path) || (field->type == SPEC_TYPE_LIST &&
                                             names_element(sentence, field->list->element_word)))) {
            return true;
        }
    }
    return false;
}

bool read_names_unread(const struct reading *reading, const struct spec_kind_info *kind,
                       const struct doc_node *root, const char *sentence)
{
    const struct doc_node *metadata = doc_find(root, "metadata");
    const struct doc_node *spec = doc_find(root, "spec");
    size_t n = strlen(reading->subject);
    const char *begin = strncmp(sentence, reading->subject, n) == 0 ? sentence + n : sentence;

    return (spec != NULL && spec->kind == DOC_MAP &&
            names_unread_in(reading, kind->spec, spec, "", begin)) ||
           (kind->metadata != NULL && metadata != NULL && metadata->kind == DOC_MAP &&
            names_unread_in(reading, kind->metadata, metadata, "", begin));
}
