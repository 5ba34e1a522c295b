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

/* The checks of the whole object, also of one that was read in part. The faults that the model
 * finds have no place yet. */
static int finish(struct reading *reading, enum spec_kind kind, const struct doc_node *spec,
                  void *base, struct validate_faults *ret_faults)
{
    switch (kind) {
    case SPEC_GROUP:
        return read_finish_group(reading, spec, base, ret_faults);
    case SPEC_LISTENER:
        ((struct listener *)base)->port_last = ((struct listener *)base)->at.port;
        validate_listener_all(base, ret_faults);
        return 0;
    case SPEC_CLUSTER_SETTINGS:
        validate_settings_all(base, ret_faults);
        return 0;
    case SPEC_NODE:
        validate_node_all(base, ret_faults);
        return 0;
    case SPEC_KEY:
        validate_key_all(base, ret_faults);
        return 0;
    case SPEC_KIND_NONE:
        break;
    }
    assert(false);
    return ERR_INTERNAL;
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

/* The model does not know the name that was refused: `server group "":` is called as it is
 * written. */
static void name_subject(const struct reading *reading, const struct spec_kind_info *kind,
                         struct errmsg *sentence)
{
    char nameless[READ_SUBJECT_BYTES];
    struct errmsg named;

    snprintf(nameless, sizeof nameless, "%s \"\": ", kind->object);
    if (strncmp(sentence->text, nameless, strlen(nameless)) == 0) {
        snprintf(named.text, sizeof named.text, "%s: %.350s", reading->subject,
                 sentence->text + strlen(nameless));
        *sentence = named;
    }
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

        name_subject(reading, kind, sentence);
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
    return rc != 0 ? rc : in_whole;
}

/* Envelope, fields, checks of the whole object. */
static int read_parts(struct reading *reading, const struct doc_node *root,
                      struct spec_document *ret_document)
{
    const struct spec_kind_info *kind = NULL;

    if (root->kind != DOC_MAP) {
        return read_refuse(reading, root->at, ERR_INVALID,
                           "must be a mapping with apiVersion, kind, metadata and spec, got %s",
                           doc_kind_word(root));
    }
    int version = check_api_version(reading, root);
    int rc = find_kind(reading, root, &kind); /* a version that is missing hides no misspelt kind */
    if (version != 0 || rc != 0) {
        return version != 0 ? version : rc;
    }
    assert(kind != NULL);
    set_subject(reading, kind, root);
    reading->spec = kind->spec;
    rc = check_envelope_keys(reading, root);
    if (rc != 0) {
        return rc;
    }
    struct spec_document document = {.kind = (uint8_t)kind->kind, .at = root->at};
    void *base = calloc(1, kind->bytes);
    if (base == NULL) {
        return read_refuse(reading, root->at, ERR_NOMEM, "out of memory");
    }
    document.u.group = base;
    rc = read_body(reading, kind, root, base);
    if (rc == 0 && read_remarks(kind, root, &document) != 0) {
        rc = read_refuse(reading, root->at, ERR_NOMEM, "out of memory");
    }
    if (rc != 0) {
        read_document_close(&document);
        return rc;
    }
    *ret_document = document;
    return 0;
}

/* Keys that stand twice in a mapping: the first one is judged with the rest. */
static int note_twice(struct reading *reading, const struct doc_reader *reader)
{
    uint32_t n = 0;
    const struct doc_twice *twice = doc_reader_twice(reader, &n);

    for (uint32_t i = 0; i < n; i++) {
        read_refuse(reading, twice[i].at, ERR_INVALID, "\"%.80s\" is set twice: first on line %u",
                    twice[i].key, (unsigned)twice[i].first_line);
    }
    return n == 0 ? 0 : ERR_INVALID;
}

int read_document(const struct doc_reader *reader, const struct doc_node *root,
                  struct spec_document *ret_document, struct spec_errors *errors)
{
    struct reading reading = {.errors = errors, .subject = "document"};
    struct spec_document document = {0};
    uint32_t first = errors->n;
    int rc = read_parts(&reading, root, &document);
    int twice = note_twice(&reading, reader);

    qsort(&errors->items[first], errors->n - first, sizeof errors->items[0], compare_places);
    if (rc == 0 && twice == 0) {
        *ret_document = document;
    } else if (rc == 0) {
        read_document_close(&document);
    }
    return rc != 0 ? rc : twice;
}
