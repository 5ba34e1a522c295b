#include "common/spec/read.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/plant.h"
#include "common/base/str.h"
#include "common/model/names.h"
#include "common/model/profile.h"
#include "common/spec/alias.h"
#include "common/spec/value.h"

struct spec_error *read_error_new(struct spec_errors *errors, struct spec_error *spare)
{
    if (errors->n == SPEC_ERRORS) {
        errors->has_more = true;
        return spare;
    }
    return &errors->items[errors->n++];
}

int read_refuse(struct reading *reading, struct spec_position at, int code, const char *format, ...)
{
    char sentence[ERRMSG_BYTES];
    struct spec_error spare;
    struct spec_error *err = read_error_new(reading->errors, &spare);
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    err->at = at;
    return errmsg_set(&err->message, code, "%s: %s", reading->subject, sentence);
}

/* After a refusal the rest is read all the same, to find what else is wrong; not without memory,
 * and not once no more can be told. *first: the code to return at the end. */
static bool goes_on(const struct reading *reading, int rc, int *first)
{
    if (*first == 0) {
        *first = rc;
    }
    return rc == 0 || (rc != ERR_NOMEM && !reading->errors->has_more);
}

/* Where a misspelt field may be meant: in an object of this table. */
static const char *find_below(const struct spec_table *table, const char *name, char *path,
                              size_t path_bytes)
{
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];

        if (field->type == SPEC_TYPE_OBJECT && spec_field_find(field->fields, name) != NULL) {
            snprintf(path, path_bytes, "%s.%s", field->name, name);
            return path;
        }
    }
    return NULL;
}

/* Where a field may be meant that stands too deep: in the spec itself. */
static bool is_above(const struct reading *reading, const struct read_place *place,
                     const char *name)
{
    size_t n = strlen(place->prefix); /* "check."; not "backend 10.0.0.1:80: " */

    return reading->spec != NULL && n > 0 && place->prefix[n - 1] == '.' &&
           spec_field_find(reading->spec, name) != NULL;
}

static int refuse_unknown(struct reading *reading, const struct read_place *place,
                          const struct doc_node *child)
{
    const char *words[LIMIT_SPEC_KEYS];
    char path[READ_PATH_BYTES];
    size_t n_words = 0;

    for (size_t i = 0; i < place->table->n_fields; i++) {
        words[n_words++] = place->table->fields[i].name;
    }
    const char *alias = spec_alias(child->key);
    if (alias != NULL && spec_field_find(place->table, alias) == NULL) {
        alias = find_below(place->table, alias, path, sizeof path);
    }
    if (alias != NULL) {
        return read_refuse(reading, child->key_at, ERR_INVALID,
                           "unknown field \"%s%.60s\": it is called %s here", place->prefix,
                           child->key, alias);
    }
    const char *near = find_below(place->table, child->key, path, sizeof path);
    if (near == NULL) {
        near = spec_nearest(child->key, words, n_words);
    }
    if (near == NULL && is_above(reading, place, child->key)) {
        return read_refuse(reading, child->key_at, ERR_INVALID,
                           "unknown field \"%s%.60s\"; did you mean \"%s\" beside \"%.*s\"?",
                           place->prefix, child->key, child->key, (int)strcspn(place->prefix, "."),
                           place->prefix);
    }
    if (near == NULL) {
        return read_refuse(reading, child->key_at, ERR_INVALID, "unknown field \"%s%.60s\"",
                           place->prefix, child->key);
    }
    return read_refuse(reading, child->key_at, ERR_INVALID,
                       "unknown field \"%s%.60s\"; did you mean \"%s\"?", place->prefix, child->key,
                       near);
}

/* Join a field's name and the end of the sentence that value_parse wrote. */
static int refuse_value(struct reading *reading, const struct doc_node *node, int code,
                        const char *path, const struct errmsg *tail)
{
    static const char *const verbs[] = {"must ", "has ", "needs ", "knows "};

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strncmp(tail->text, verbs[i], strlen(verbs[i])) == 0) {
            return read_refuse(reading, node->at, code, "%s %s", path, tail->text);
        }
    }
    return read_refuse(reading, node->at, code, "%s: %s", path, tail->text);
}

static int refuse_kind(struct reading *reading, const struct doc_node *node, const char *path,
                       const char *wanted)
{
    if (doc_is_null(node)) {
        return read_refuse(reading, node->at, ERR_INVALID,
                           "%s has no value: write one or leave the field out", path);
    }
    return read_refuse(reading, node->at, ERR_INVALID, "%s must be %s, got %s", path, wanted,
                       doc_kind_word(node));
}

static int read_labels(struct reading *reading, const struct doc_node *node,
                       struct server_group *group)
{
    uint32_t n = 0;

    if (node->kind != DOC_MAP) {
        return refuse_kind(reading, node, "labels", "a mapping such as {tier: front}");
    }
    if (node->n_children > LIMIT_LABELS) {
        return read_refuse(reading, node->at, ERR_LIMIT, ERR_SAY_TOO_MANY, "labels",
                           (unsigned long)node->n_children, (unsigned long)LIMIT_LABELS);
    }
    for (const struct doc_node *child = node->first; child != NULL; child = child->next) {
        struct label *label = &group->labels[n];

        if (child->kind != DOC_SCALAR || doc_is_null(child)) {
            return read_refuse(reading, child->at, ERR_INVALID,
                               "labels: the value of \"%.63s\" must be text, got %s", child->key,
                               doc_kind_word(child));
        }
        if (!str_copy(label->key, sizeof label->key, child->key)) {
            return read_refuse(reading, child->key_at, ERR_INVALID,
                               "labels: a key must have 1..%d bytes, got %zu",
                               LIMIT_LABEL_KEY_BYTES, strlen(child->key));
        }
        if (!str_copy(label->value, sizeof label->value, child->text)) {
            return read_refuse(reading, child->at, ERR_INVALID,
                               "labels: the value of \"%.63s\" must have 0..%d bytes, got %zu",
                               child->key, LIMIT_LABEL_VALUE_BYTES, strlen(child->text));
        }
        n++;
    }
    group->n_labels = n;
    return 0;
}

static const char *written(const struct doc_node *element, const char *key)
{
    const struct doc_node *node = doc_find(element, key);

    return node != NULL && node->kind == DOC_SCALAR ? node->text : NULL;
}

/* What tells an element from its neighbours: `at`, or address and port, in their canonical
 * spelling, or `host`; of a check its name. "" if it says none of them. */
static void write_identity(const struct spec_list *list, const struct doc_node *element, char *text,
                           size_t text_bytes)
{
    struct endpoint at = {0};
    uint64_t port = 0;

    text[0] = '\0';
    if (element->kind != DOC_MAP) {
        return;
    }
    if (strcmp(list->element_word, "check") == 0) {
        const char *name = written(element, "name");

        snprintf(text, text_bytes, "%.40s", name == NULL ? "" : name);
        return;
    }
    const char *both = written(element, "at");
    const char *address = written(element, "address");
    const char *port_text = written(element, "port");
    const char *host = written(element, "host");
    if (both != NULL) {
        if (endpoint_parse(both, &at, NULL) == 0) {
            endpoint_format(&at, text);
        }
    } else if (address != NULL && port_text != NULL) {
        if (addr_parse(address, &at.addr, NULL) == 0 && str_parse_u64(port_text, 65535, &port)) {
            at.port = (uint16_t)port;
            endpoint_format(&at, text);
        }
    } else if (host != NULL) {
        snprintf(text, text_bytes, "%.60s", host);
    }
}

void read_element_name(const struct spec_list *list, const struct doc_node *element, uint32_t index,
                       char *text, size_t text_bytes)
{
    char identity[READ_PATH_BYTES / 2];

    write_identity(list, element, identity, sizeof identity);
    if (identity[0] != '\0') {
        snprintf(text, text_bytes, "%s %s", list->element_word, identity);
    } else {
        snprintf(text, text_bytes, "%s %u", list->element_word, (unsigned)index + 1);
    }
}

static const struct doc_node *find_map(const struct doc_node *map, const char *key)
{
    const struct doc_node *node = map == NULL ? NULL : doc_find(map, key);

    return node != NULL && node->kind == DOC_MAP ? node : NULL;
}

void read_check_defaults(const struct read_check_start *start, struct health_check *ret_check)
{
    struct health_check *check = ret_check;

    profile_check_defaults(start->profile, start->protocol, start->type, check);
    if (check->type == CHECK_TYPE_TLS && start->has_http) {
        profile_http_defaults(start->profile, &check->http);
    }
    if (check->type != CHECK_TYPE_TLS && start->has_tls) {
        profile_tls_defaults(&check->tls); /* where there may be none, it is refused */
    }
    if (check_asks_http(check) && start->has_domain) {
        check->http.host = HTTP_HOST_DOMAIN;
    }
}

void read_start_check(const struct reading *reading, const struct doc_node *map,
                      struct health_check *ret_check)
{
    const char *type = map == NULL ? NULL : written(map, "type");
    const struct doc_node *http = find_map(map, "http");
    const char *domain = http == NULL ? NULL : written(http, "domain");
    struct read_check_start start = {
        .profile = reading->profile,
        .protocol = reading->protocol,
        .type = (enum check_type)(type == NULL ? 0 : names_value(&names_check_type, type)),
        .has_http = http != NULL,
        .has_tls = find_map(map, "tls") != NULL,
        .has_domain = domain != NULL && domain[0] != '\0',
    };

    read_check_defaults(&start, ret_check);
}

static int read_element(struct reading *reading, const struct spec_field *field,
                        const struct doc_node *element, uint32_t index, void *to)
{
    const struct spec_list *list = field->list;
    char name[READ_PATH_BYTES];
    char prefix[READ_PATH_BYTES];
    struct errmsg tail = {{0}};

    if (list->scalar != NULL) {
        int rc = value_parse(list->scalar, element, to, &tail);

        return rc == 0 ? 0 : refuse_value(reading, element, rc, field->name, &tail);
    }
    read_element_name(list, element, index, name, sizeof name);
    if (element->kind != DOC_MAP) {
        return refuse_kind(reading, element, name, "a mapping");
    }
    spec_element_defaults(list, reading->profile, reading->protocol, CHECK_TYPE_NONE, to);
    if (strcmp(list->element_word, "check") == 0) {
        read_start_check(reading, element, &((struct named_check *)to)->check);
    }
    snprintf(prefix, sizeof prefix, "%.*s: ", (int)sizeof prefix - 3, name);
    struct read_place place = {.table = list->fields, .map = element, .prefix = prefix, .base = to};
    return read_table(reading, &place);
}

/* A single value is in its list once, in any spelling. */
static int check_scalar_is_new(struct reading *reading, const struct spec_field *field,
                               const struct doc_node *node, const uint8_t *elements, uint32_t index)
{
    const size_t bytes = field->list->element_bytes;

    for (uint32_t i = 0; i < index; i++) {
        if (memcmp(elements + i * bytes, elements + index * bytes, bytes) == 0) {
            return read_refuse(reading, node->at, ERR_INVALID, "%s has \"%.60s\" twice",
                               field->name, node->text);
        }
    }
    return 0;
}

static int read_list(struct reading *reading, const struct spec_field *field,
                     const struct doc_node *node, const char *path, void *base)
{
    const struct spec_list *list = field->list;
    uint8_t *elements = (uint8_t *)base + field->offset;
    uint32_t *count = (uint32_t *)(void *)((uint8_t *)base + list->count_offset);
    uint32_t n = 0;
    int first = 0;

    if (node->kind != DOC_LIST) {
        return refuse_kind(reading, node, path, "a list");
    }
    if (node->n_children > list->n_max) {
        return read_refuse(reading, node->at, ERR_LIMIT, ERR_SAY_TOO_MANY, path,
                           (unsigned long)node->n_children, (unsigned long)list->n_max);
    }
    if (list->is_allocated) {
        void **owned = (void **)(void *)elements;

        assert(*owned == NULL);
        *owned = calloc(node->n_children + 1, list->element_bytes);
        if (*owned == NULL) {
            return read_refuse(reading, node->at, ERR_NOMEM, "out of memory");
        }
        elements = *owned;
    } else {
        memset(elements, 0, field->bytes);
    }
    for (const struct doc_node *child = node->first; child != NULL; child = child->next) {
        int rc = read_element(reading, field, child, n, elements + n * list->element_bytes);

        if (rc == 0 && list->scalar != NULL) {
            rc = check_scalar_is_new(reading, field, child, elements, n);
        }
        if (!goes_on(reading, rc, &first)) {
            return first;
        }
        n++;
    }
    *count = n;
    return first;
}

/* `guard: standard` */
static int read_word_of_object(struct reading *reading, const struct spec_field *field,
                               const struct doc_node *node, const char *path, void *to)
{
    char list[128];
    unsigned word = names_value(field->names, node->text);

    if (word == 0) {
        const char *words[LIMIT_SPEC_KEYS];
        size_t n = 0;

        for (; n < field->names->n_rows && n < LIMIT_SPEC_KEYS; n++) {
            words[n] = field->names->rows[n].word;
        }
        const char *near = spec_nearest(node->text, words, n);
        return read_refuse(reading, node->at, ERR_INVALID,
                           "%s must be %s, or a mapping, got \"%.60s\"%s%s%s", path,
                           names_list(field->names, list, sizeof list), node->text,
                           near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                           near == NULL ? "" : "\"?");
    }
    field->fill(word, to);
    return 0;
}

static int read_object(struct reading *reading, const struct spec_field *field,
                       const struct doc_node *node, const char *path, void *to)
{
    char prefix[READ_PATH_BYTES];

    if (field->fill != NULL && node->kind == DOC_SCALAR && !doc_is_null(node)) {
        return read_word_of_object(reading, field, node, path, to);
    }
    if (node->kind != DOC_MAP) {
        return refuse_kind(reading, node, path, "a mapping");
    }
    snprintf(prefix, sizeof prefix, "%.*s.", (int)sizeof prefix - 2, path);
    struct read_place place = {.table = field->fields, .map = node, .prefix = prefix, .base = to};
    return read_table(reading, &place);
}

/* Whether a refusal is of something inside the value, and not of the field: backends that were read
 * are judged without the others (document.c), short lists are not judged in part. */
static bool is_inside(const struct spec_field *field, const struct doc_node *child)
{
    return (field->type == SPEC_TYPE_OBJECT && child->kind == DOC_MAP) ||
           (field->type == SPEC_TYPE_LIST && child->kind == DOC_LIST && field->list->is_allocated);
}

static void note_unread(struct reading *reading, const struct doc_node *child)
{
    if (reading->n_unread < SPEC_ERRORS) {
        reading->unread[reading->n_unread++] = child;
    }
}

static int read_field(struct reading *reading, const struct read_place *place,
                      const struct spec_field *field, const struct doc_node *child)
{
    char path[READ_PATH_BYTES];
    struct errmsg tail = {{0}};
    void *to = (uint8_t *)place->base + field->offset;

    snprintf(path, sizeof path, "%s%s", place->prefix, field->name);
    if ((field->flags & SPEC_LATER) != 0) {
        return read_refuse(reading, child->key_at, ERR_UNAVAILABLE_YET, "%s is not available yet",
                           path);
    }
    switch ((enum spec_type)field->type) {
    case SPEC_TYPE_OBJECT:
        return read_object(reading, field, child, path, to);
    case SPEC_TYPE_LIST:
        return read_list(reading, field, child, path, place->base);
    case SPEC_TYPE_LABELS:
        return read_labels(reading, child, place->base);
    case SPEC_TYPE_NONE:
    case SPEC_TYPE_TEXT:
    case SPEC_TYPE_BOOL:
    case SPEC_TYPE_UINT:
    case SPEC_TYPE_DURATION:
    case SPEC_TYPE_WORD:
    case SPEC_TYPE_ADDRESS:
    case SPEC_TYPE_ENDPOINT:
    case SPEC_TYPE_CIDR:
    case SPEC_TYPE_CODES:
    case SPEC_TYPE_RULE:
    case SPEC_TYPE_PASS:
    case SPEC_TYPE_PUBLIC_KEY:
    case SPEC_TYPE_DATA:
    case SPEC_TYPE_TIME:
        break;
    }
    int rc = value_parse(field, child, to, &tail);
    return rc == 0 ? 0 : refuse_value(reading, child, rc, path, &tail);
}

/* Case A27: `at: ADDRESS:PORT`, or address and port apart; one of the two, and wholly. */
static int check_endpoint(struct reading *reading, const struct read_place *place)
{
    const struct doc_node *at = doc_find(place->map, "at");
    const struct doc_node *address = doc_find(place->map, "address");
    const struct doc_node *port = doc_find(place->map, "port");
    const struct doc_node *apart = address != NULL ? address : port;

    if (at != NULL && apart != NULL) {
        return read_refuse(reading, apart->key_at, ERR_INVALID,
                           "%swrite at, or address and port, not both", place->prefix);
    }
    if (at == NULL && apart == NULL) {
        return read_refuse(reading, place->map->at, ERR_INVALID,
                           "%sat is missing: write at: ADDRESS:PORT, or address and port",
                           place->prefix);
    }
    if (at == NULL && (address == NULL || port == NULL)) {
        return read_refuse(reading, apart->key_at, ERR_INVALID, "%s%s is missing beside %s",
                           place->prefix, address == NULL ? "address" : "port", apart->key);
    }
    return 0;
}

static int check_missing(struct reading *reading, const struct read_place *place)
{
    int first = 0;

    for (size_t i = 0; i < place->table->n_fields; i++) {
        const struct spec_field *field = &place->table->fields[i];
        int rc = 0;

        if ((field->flags & SPEC_REQUIRED) != 0 && doc_find(place->map, field->name) == NULL) {
            rc = read_refuse(reading, place->map->at, ERR_INVALID, "%s%s is missing", place->prefix,
                             field->name);
        } else if (field->type == SPEC_TYPE_ENDPOINT) {
            rc = check_endpoint(reading, place);
        }
        if (!goes_on(reading, rc, &first)) {
            break;
        }
    }
    return first;
}

int read_table(struct reading *reading, const struct read_place *place)
{
    int first = 0;

    for (const struct doc_node *child = place->map->first; child != NULL; child = child->next) {
        const struct spec_field *field = spec_field_find(place->table, child->key);
        int rc = 0;

        if (field != NULL) {
            rc = read_field(reading, place, field, child);
            if (rc != 0 && !is_inside(field, child)) {
                note_unread(reading, child);
            }
        } else if (!plant_is("spec-unknown")) {
            rc = refuse_unknown(reading, place, child);
        }
        if (!goes_on(reading, rc, &first)) {
            return first;
        }
    }
    /* What is missing may be what was misspelt. */
    return first != 0 ? first : check_missing(reading, place);
}
