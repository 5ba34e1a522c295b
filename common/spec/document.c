#include "common/spec/read.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/plant.h"
#include "common/model/names.h"
#include "common/model/profile.h"
#include "common/model/validate.h"

/* Looking ahead: what is not there, or not of the wanted kind, is NULL or "". Faults are found
 * later and in the order of the document. */
static const struct doc_node *peek_node(const struct doc_node *map, const char *key,
                                        enum doc_kind kind)
{
    if (map == NULL || map->kind != DOC_MAP) {
        return NULL;
    }
    const struct doc_node *node = doc_find(map, key);
    return node != NULL && node->kind == kind ? node : NULL;
}

static const char *peek(const struct doc_node *map, const char *key)
{
    const struct doc_node *node = peek_node(map, key, DOC_SCALAR);

    return node == NULL ? "" : node->text;
}

static const struct doc_node *peek_map(const struct doc_node *map, const char *key)
{
    return peek_node(map, key, DOC_MAP);
}

static void set_subject(struct reading *reading, const struct spec_kind_info *kind,
                        const struct doc_node *root)
{
    const char *name = kind->kind == SPEC_NODE ? peek(peek_map(root, "spec"), "id")
                                               : peek(peek_map(root, "metadata"), "name");

    if (name[0] == '\0' || kind->kind == SPEC_CLUSTER_SETTINGS) {
        snprintf(reading->subject, sizeof reading->subject, "%s", kind->object);
    } else {
        snprintf(reading->subject, sizeof reading->subject, "%s \"%.*s\"", kind->object,
                 LIMIT_NAME_BYTES, name);
    }
}

static int check_api_version(struct reading *reading, const struct doc_node *root)
{
    const struct doc_node *node = doc_find(root, "apiVersion");

    if (node == NULL) {
        return read_refuse(reading, root->at, ERR_INVALID,
                           "apiVersion is missing: write apiVersion: " SPEC_API_VERSION);
    }
    if (node->kind != DOC_SCALAR || strcmp(node->text, SPEC_API_VERSION) != 0) {
        return read_refuse(reading, node->at, ERR_INVALID,
                           "apiVersion must be " SPEC_API_VERSION ", which is all that this "
                           "version understands, got \"%.40s\"",
                           peek(root, "apiVersion"));
    }
    return 0;
}

static int check_envelope_keys(struct reading *reading, const struct doc_node *root)
{
    static const char *const words[] = {"apiVersion", "kind", "metadata", "spec"};
    const size_t n_words = sizeof words / sizeof words[0];

    for (const struct doc_node *child = root->first; child != NULL; child = child->next) {
        bool is_known = false;

        for (size_t i = 0; i < n_words; i++) {
            is_known = is_known || strcmp(child->key, words[i]) == 0;
        }
        if (is_known) {
            continue;
        }
        const char *near = spec_nearest(child->key, words, n_words);
        if (near != NULL) {
            return read_refuse(reading, child->key_at, ERR_INVALID,
                               "unknown field \"%.60s\"; did you mean \"%s\"?", child->key, near);
        }
        return read_refuse(reading, child->key_at, ERR_INVALID,
                           "unknown field \"%.60s\": a document has apiVersion, kind, metadata "
                           "and spec",
                           child->key);
    }
    return 0;
}

static int find_kind(struct reading *reading, const struct doc_node *root,
                     const struct spec_kind_info **ret_kind)
{
    const struct doc_node *node = doc_find(root, "kind");
    const char *words[SPEC_N_KINDS];

    if (node == NULL) {
        return read_refuse(reading, root->at, ERR_INVALID,
                           "kind is missing: write Group, Listener, ClusterSettings, Node or Key");
    }
    const char *word = peek(root, "kind");
    const struct spec_kind_info *kind = spec_kind_find(word);
    if (kind != NULL) {
        *ret_kind = kind;
        return 0;
    }
    if (spec_kind_is_later(word)) {
        return read_refuse(reading, node->at, ERR_UNAVAILABLE_YET, "kind %s is not available yet",
                           word);
    }
    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        words[i] = spec_kinds[i].word;
    }
    const char *near = spec_nearest(word, words, SPEC_N_KINDS);
    return read_refuse(reading, node->at, ERR_INVALID,
                       "kind must be Group, Listener, ClusterSettings, Node or Key, got \"%.40s\""
                       "%s%s%s",
                       word, near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                       near == NULL ? "" : "\"?");
}

static int read_metadata(struct reading *reading, const struct spec_kind_info *kind,
                         const struct doc_node *root, void *base)
{
    const struct doc_node *node = doc_find(root, "metadata");

    if (kind->metadata == NULL) {
        return node == NULL ? 0
                            : read_refuse(reading, node->key_at, ERR_INVALID,
                                          "a document of kind %s has no metadata", kind->word);
    }
    if (node == NULL) {
        return read_refuse(reading, root->at, ERR_INVALID, "metadata.name is missing");
    }
    if (node->kind != DOC_MAP) {
        return read_refuse(reading, node->at, ERR_INVALID,
                           "metadata must be a mapping such as {name: web}, got %s",
                           doc_kind_word(node));
    }
    struct read_place place = {
        .table = kind->metadata, .map = node, .prefix = "metadata.", .base = base};
    return read_table(reading, &place);
}

/* Everything that the group's other fields depend on is looked up first. What is wrong here is
 * found again by read_table, in the order of the document. */
static void start_group(struct reading *reading, const struct doc_node *spec,
                        struct server_group *group)
{
    const struct doc_node *check = peek_map(spec, "check");
    const struct doc_node *http = peek_map(check, "http");
    enum profile profile = (enum profile)names_value(&names_profile, peek(spec, "profile"));
    enum protocol protocol = (enum protocol)names_value(&names_protocol, peek(spec, "protocol"));
    enum check_type type = (enum check_type)names_value(&names_check_type, peek(check, "type"));

    reading->profile = profile == PROFILE_NONE ? PROFILE_NLB : profile;
    spec_defaults(SPEC_GROUP, reading->profile, protocol, group);
    profile_check_defaults(reading->profile, (enum protocol)group->protocol, type, &group->check);
    if (group->check.type == CHECK_TYPE_HTTP && peek(http, "domain")[0] != '\0') {
        group->check.http.host = HTTP_HOST_DOMAIN;
    }
}

struct numbered_backend {
    struct endpoint at;
    const struct doc_node *node;
    uint32_t index;
};

static int compare_numbered(const void *a, const void *b)
{
    const struct numbered_backend *left = a;
    const struct numbered_backend *right = b;
    int order = endpoint_compare(&left->at, &right->at);

    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

/* Case A24. The first of a pair that is in the document twice is the one to keep. */
static int check_duplicates(struct reading *reading, const struct server_group *group,
                            const struct doc_node *list)
{
    char text[ENDPOINT_TEXT_BYTES];
    uint32_t n = 0;
    int rc = 0;
    struct numbered_backend *sorted = calloc(group->n_backends + 1, sizeof *sorted);

    if (sorted == NULL) {
        return read_refuse(reading, list->at, ERR_NOMEM, "out of memory");
    }
    for (const struct doc_node *child = list->first; child != NULL; child = child->next, n++) {
        sorted[n] = (struct numbered_backend){group->backends[n].at, child, n};
    }
    assert(n == group->n_backends);
    qsort(sorted, n, sizeof *sorted, compare_numbered);
    const struct numbered_backend *worst = NULL;
    const struct numbered_backend *first = NULL;
    for (uint32_t i = 1; i < n; i++) {
        if (endpoint_compare(&sorted[i - 1].at, &sorted[i].at) == 0 &&
            (worst == NULL || sorted[i].index < worst->index)) {
            worst = &sorted[i];
            first = &sorted[i - 1];
        }
    }
    if (worst != NULL) {
        rc = read_refuse(reading, worst->node->at, ERR_INVALID,
                         "backend %s is listed twice: first on line %u",
                         endpoint_format(&worst->at, text), (unsigned)first->node->at.line);
    }
    free(sorted);
    return rc;
}

static int finish_group(struct reading *reading, const struct doc_node *spec,
                        struct server_group *group, struct errmsg *ret_invalid)
{
    const struct doc_node *list = doc_find(spec, "backends");

    if (list != NULL) {
        int rc = plant_is("spec-twice") ? 0 : check_duplicates(reading, group, list);

        if (rc != 0) {
            return rc;
        }
        server_group_sort_backends(group);
    }
    return validate_group(group, ret_invalid);
}

/* The checks of the whole object. A fault without a place is in *ret_invalid. */
static int finish(struct reading *reading, enum spec_kind kind, const struct doc_node *spec,
                  void *base, struct errmsg *ret_invalid)
{
    switch (kind) {
    case SPEC_GROUP:
        return finish_group(reading, spec, base, ret_invalid);
    case SPEC_LISTENER:
        ((struct listener *)base)->port_last = ((struct listener *)base)->at.port;
        return validate_listener(base, ret_invalid);
    case SPEC_CLUSTER_SETTINGS:
        return validate_settings(base, ret_invalid);
    case SPEC_NODE:
        return validate_node(base, ret_invalid);
    case SPEC_KEY:
        return validate_key(base, ret_invalid);
    case SPEC_KIND_NONE:
        break;
    }
    assert(false);
    return ERR_INTERNAL;
}

/* Put the model's sentence and its place into the error. Where nothing that the document says is
 * at fault, it is a default of the profile. */
static void place_invalid(struct reading *reading, const struct spec_kind_info *kind,
                          const struct doc_node *root, struct errmsg *invalid)
{
    const struct spec_position nowhere = {0, 0};
    const struct doc_node *spec = doc_find(root, "spec");
    const struct doc_node *profile = doc_find(spec, "profile");
    struct spec_error spare;
    struct spec_error *err = read_error_new(reading->errors, &spare);

    err->at = read_blame(kind, root, nowhere, invalid);
    err->message = *invalid;
    if (err->at.line != 0) {
        return;
    }
    err->at = spec->key_at;
    if (profile != NULL) {
        err->at = profile->at;
        size_t used = strlen(err->message.text);

        snprintf(err->message.text + used, sizeof err->message.text - used,
                 " (a default of profile %.8s)", profile->text);
    }
}

static int read_body(struct reading *reading, const struct spec_kind_info *kind,
                     const struct doc_node *root, void *base)
{
    const struct doc_node *spec = doc_find(root, "spec");
    struct errmsg invalid = {{0}};

    if (spec == NULL || spec->kind != DOC_MAP) {
        return read_refuse(reading, spec == NULL ? root->at : spec->at, ERR_INVALID,
                           spec == NULL ? "spec is missing" : "spec must be a mapping, got %s",
                           spec == NULL ? "" : doc_kind_word(spec));
    }
    if (kind->kind == SPEC_GROUP) {
        start_group(reading, spec, base);
    } else {
        spec_defaults(kind->kind, PROFILE_NONE, PROTOCOL_NONE, base);
    }
    struct read_place place = {.table = kind->spec, .map = spec, .prefix = "", .base = base};
    int in_metadata = read_metadata(reading, kind, root, base);
    int in_spec = read_table(reading, &place);
    int rc = in_metadata != 0 ? in_metadata : in_spec;
    if (rc == 0) {
        rc = finish(reading, kind->kind, spec, base, &invalid);
    }
    if (rc != 0 && invalid.text[0] != '\0') {
        place_invalid(reading, kind, root, &invalid);
    }
    return rc;
}

int read_document(const struct doc_node *root, struct spec_document *ret_document,
                  struct spec_errors *errors)
{
    struct reading reading = {.errors = errors, .subject = "document"};
    const struct spec_kind_info *kind = NULL;

    if (root->kind != DOC_MAP) {
        return read_refuse(&reading, root->at, ERR_INVALID,
                           "must be a mapping with apiVersion, kind, metadata and spec, got %s",
                           doc_kind_word(root));
    }
    int rc = check_api_version(&reading, root);
    if (rc == 0) {
        rc = find_kind(&reading, root, &kind);
    }
    if (rc != 0) {
        return rc;
    }
    assert(kind != NULL);
    set_subject(&reading, kind, root);
    rc = check_envelope_keys(&reading, root);
    if (rc != 0) {
        return rc;
    }
    struct spec_document document = {.kind = (uint8_t)kind->kind, .at = root->at};
    void *base = calloc(1, kind->bytes);
    if (base == NULL) {
        return read_refuse(&reading, root->at, ERR_NOMEM, "out of memory");
    }
    document.u.group = base;
    rc = read_body(&reading, kind, root, base);
    if (rc != 0) {
        read_document_close(&document);
        return rc;
    }
    *ret_document = document;
    return 0;
}
