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
        return node == NULL
                   ? 0
                   : read_refuse(reading, node->key_at, ERR_INVALID,
                                 "a document of kind %s takes no metadata: remove it", kind->word);
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
    enum profile profile = (enum profile)names_value(&names_profile, peek(spec, "profile"));
    enum protocol protocol = (enum protocol)names_value(&names_protocol, peek(spec, "protocol"));

    reading->profile = profile == PROFILE_NONE ? PROFILE_NLB : profile;
    spec_defaults(SPEC_GROUP, reading->profile, protocol, group);
    reading->protocol = (enum protocol)group->protocol;
    read_start_check(reading, peek_map(spec, "check"), &group->check);
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

/* Whether an element of the list says where the backend is. */
static bool is_read(const struct endpoint *at)
{
    return at->port != 0 && at->addr.family != ADDR_NONE;
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
    uint32_t index = 0;
    for (const struct doc_node *child = list->first; child != NULL; child = child->next, index++) {
        const struct endpoint *at = &group->backends[index].at;

        if (is_read(at)) {
            sorted[n++] = (struct numbered_backend){*at, child, index};
        }
    }
    assert(index == group->n_backends);
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

/* Without those whose address or port was not read, and those that are there already: the others
 * are judged. Sorted. */
static void drop_unfit(struct server_group *group, bool has_duplicates)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct backend *backend = &group->backends[i];
        bool is_again = has_duplicates && n > 0 &&
                        endpoint_compare(&group->backends[n - 1].at, &backend->at) == 0;

        if (is_read(&backend->at) && !is_again) {
            group->backends[n++] = *backend;
        }
    }
    group->n_backends = n;
}

/* The first of two of one name is the one to keep; the others are dropped, so that what is wrong
 * with them is not told of it. */
static int drop_namesakes(struct reading *reading, const struct doc_node *list,
                          struct server_group *group)
{
    uint32_t n = 0, index = 0;
    int first = 0;

    for (const struct doc_node *child = list->first; child != NULL; child = child->next, index++) {
        const struct named_check *check = &group->checks[index];
        bool is_again = false;

        for (uint32_t i = 0; i < n && check->name[0] != '\0'; i++) {
            is_again = is_again || strcmp(group->checks[i].name, check->name) == 0;
        }
        if (is_again) {
            int rc =
                read_refuse(reading, child->at, ERR_INVALID,
                            "check %s is listed twice: names are the checks' own", check->name);
            first = first != 0 ? first : rc;
        } else {
            group->checks[n++] = *check;
        }
    }
    group->n_checks = n;
    return first;
}

static int check_excluded(struct reading *reading, const struct doc_node *spec)
{
    const struct doc_node *checks = doc_find(spec, "checks");

    return checks == NULL || doc_find(spec, "check") == NULL
               ? 0
               : read_refuse(reading, checks->key_at, ERR_INVALID,
                             "check and checks exclude each other: write one of them");
}

static int finish_group(struct reading *reading, const struct doc_node *spec,
                        struct server_group *group, struct validate_faults *ret_faults)
{
    const struct doc_node *list = doc_find(spec, "backends");
    int rc = 0;

    if (list != NULL && list->kind == DOC_LIST && group->n_backends == list->n_children) {
        rc = plant_is("spec-twice") ? 0 : check_duplicates(reading, group, list);
        if (rc == ERR_NOMEM) {
            return rc;
        }
        server_group_sort_backends(group);
        drop_unfit(group, rc != 0);
    }
    int excluded = check_excluded(reading, spec);
    rc = rc != 0 ? rc : excluded;
    const struct doc_node *checks = doc_find(spec, "checks");
    if (checks != NULL && checks->kind == DOC_LIST && group->n_checks == checks->n_children) {
        int twice = drop_namesakes(reading, checks, group);
        rc = rc != 0 ? rc : twice;
    }
    if (group->n_checks != 0 && group->pass.kind == RULE_NONE) {
        group->pass.kind = RULE_ALL;
    }
    server_group_settle(group);
    validate_group_all(group, ret_faults);
    return rc;
}

/* The checks of the whole object, also of one that was read in part. The faults that the model
 * finds have no place yet. */
static int finish(struct reading *reading, enum spec_kind kind, const struct doc_node *spec,
                  void *base, struct validate_faults *ret_faults)
{
    struct errmsg *message = &ret_faults->messages[0];
    int code = 0;

    switch (kind) {
    case SPEC_GROUP:
        return finish_group(reading, spec, base, ret_faults);
    case SPEC_LISTENER:
        ((struct listener *)base)->port_last = ((struct listener *)base)->at.port;
        code = validate_listener(base, message);
        break;
    case SPEC_CLUSTER_SETTINGS:
        code = validate_settings(base, message);
        break;
    case SPEC_NODE:
        code = validate_node(base, message);
        break;
    case SPEC_KEY:
        code = validate_key(base, message);
        break;
    case SPEC_KIND_NONE:
        assert(false);
        return ERR_INTERNAL;
    }
    ret_faults->codes[0] = code;
    ret_faults->n = code != 0;
    return 0;
}

/* Find the place of the model's sentence. Where nothing that the document says is at fault, it is a
 * default of the profile. */
static struct spec_position place_fault(const struct spec_kind_info *kind,
                                        const struct doc_node *root, struct errmsg *sentence)
{
    const struct spec_position nowhere = {0, 0};
    const struct doc_node *spec = doc_find(root, "spec");
    const struct doc_node *profile = doc_find(spec, "profile");
    struct spec_position at = read_blame(kind, root, nowhere, sentence);

    if (at.line != 0) {
        return at;
    }
    if (profile == NULL || profile->kind != DOC_SCALAR) {
        return spec->key_at;
    }
    size_t used = strlen(sentence->text);
    snprintf(sentence->text + used, sizeof sentence->text - used, " (a default of profile %.8s)",
             profile->text);
    return profile->at;
}

static bool is_told(const struct spec_errors *errors, uint32_t first, struct spec_position at)
{
    for (uint32_t i = first; i < errors->n; i++) {
        if (errors->items[i].at.line == at.line && errors->items[i].at.column == at.column) {
            return true;
        }
    }
    return false;
}

/* Tell what the model found: one fault a place, since a second one follows from the first or can
 * wait for it, and none that may come from a field that was not read. Returns the first code. */
static int tell_faults(struct reading *reading, const struct spec_kind_info *kind,
                       const struct doc_node *root, uint32_t first, struct validate_faults *faults)
{
    bool is_whole = reading->errors->n == first;
    int rc = 0;

    for (uint32_t i = 0; i < faults->n; i++) {
        struct errmsg *sentence = &faults->messages[i];
        struct spec_position at = place_fault(kind, root, sentence);
        struct spec_error spare;

        if (is_told(reading->errors, first, at) ||
            (!is_whole && read_names_unread(reading, kind, root, sentence->text))) {
            continue;
        }
        struct spec_error *err = read_error_new(reading->errors, &spare);
        err->at = at;
        err->message = *sentence;
        rc = rc != 0 ? rc : faults->codes[i];
    }
    return rc;
}

static int compare_places(const void *a, const void *b)
{
    const struct spec_error *left = a;
    const struct spec_error *right = b;

    if (left->at.line != right->at.line) {
        return left->at.line < right->at.line ? -1 : 1;
    }
    return (left->at.column > right->at.column) - (left->at.column < right->at.column);
}

static int read_body(struct reading *reading, const struct spec_kind_info *kind,
                     const struct doc_node *root, void *base)
{
    const struct doc_node *spec = doc_find(root, "spec");
    uint32_t first = reading->errors->n;
    struct validate_faults faults;

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
    if (in_metadata == ERR_NOMEM || in_spec == ERR_NOMEM || reading->errors->has_more) {
        return rc;
    }
    int in_list = finish(reading, kind->kind, spec, base, &faults);
    rc = rc != 0 ? rc : in_list;
    if (in_list == ERR_NOMEM) {
        return rc;
    }
    int in_whole = tell_faults(reading, kind, root, first, &faults);
    qsort(&reading->errors->items[first], reading->errors->n - first,
          sizeof reading->errors->items[0], compare_places);
    return rc != 0 ? rc : in_whole;
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
    reading.spec = kind->spec;
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
    if (rc == 0 && read_remarks(kind, root, &document) != 0) {
        rc = read_refuse(&reading, root->at, ERR_NOMEM, "out of memory");
    }
    if (rc != 0) {
        read_document_close(&document);
        return rc;
    }
    *ret_document = document;
    return 0;
}
