#include "common/spec/emit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <yaml.h>

#include "common/base/bytes.h"
#include "common/spec/read.h"
#include "common/spec/value.h"

struct emission {
    yaml_emitter_t emitter;
    struct bytes_writer writer;
    bool failed;   /* the emitter refused an event: memory, or the writer is full */
    bool is_brief; /* of groups without what is a default */
    const struct server_group *group; /* brief: whose fields these are, else NULL */
};

static int write_text(void *user, unsigned char *data, size_t n_bytes)
{
    struct emission *emission = user;

    bytes_write_copy(&emission->writer, data, n_bytes);
    return !emission->writer.failed;
}

bool spec_must_quote(const char *text)
{
    static const char *const words[] = {"",     "~",  "null", "y",     "n",     "yes",
                                        "no",   "on", "off",  "true",  "false", ".inf",
                                        ".nan", "=",  "<<",   "-.inf", "+.inf"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    /* Numbers in any base, with _ between, sexagesimal ones (12:30), dates and times. */
    const char *digits = text + (text[0] == '+' || text[0] == '-');
    bool begins = *digits == '.' || (*digits >= '0' && *digits <= '9');
    bool has_base = digits[0] == '0' && strchr("xXoObB", digits[1]) != NULL && digits[1] != '\0';
    const char *others = has_base ? "0123456789abcdefABCDEFxXoO_" : "0123456789_.:+-eETZ";

    return begins && strspn(digits, others) == strlen(digits);
}

static void emit_event(struct emission *emission, yaml_event_t *event, int is_ready)
{
    if (!is_ready) {
        emission->failed = true;
    } else if (emission->failed) {
        yaml_event_delete(event);
    } else if (!yaml_emitter_emit(&emission->emitter, event)) {
        emission->failed = true;
    }
}

static void emit_scalar(struct emission *emission, const char *text, bool is_quoted)
{
    yaml_event_t event;
    yaml_scalar_style_t style =
        is_quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
    int ready = yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                             (int)strlen(text), 1, 1, style);

    emit_event(emission, &event, ready);
}

static void begin_map(struct emission *emission, bool is_flow)
{
    yaml_event_t event;
    int ready = yaml_mapping_start_event_initialize(
        &event, NULL, NULL, 1, is_flow ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE);

    emit_event(emission, &event, ready);
}

static void end_map(struct emission *emission)
{
    yaml_event_t event;

    emit_event(emission, &event, yaml_mapping_end_event_initialize(&event));
}

static void begin_list(struct emission *emission, bool is_flow)
{
    yaml_event_t event;
    int ready = yaml_sequence_start_event_initialize(
        &event, NULL, NULL, 1, is_flow ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);

    emit_event(emission, &event, ready);
}

static void end_list(struct emission *emission)
{
    yaml_event_t event;

    emit_event(emission, &event, yaml_sequence_end_event_initialize(&event));
}

static void emit_value(struct emission *emission, const struct spec_field *field, const void *from)
{
    char text[VALUE_TEXT_BYTES];
    bool is_typed = field->type == SPEC_TYPE_BOOL || field->type == SPEC_TYPE_UINT;
    /* An IPv4 endpoint has too many dots for a number, a time has its unit. */
    bool is_word = field->zero_word != NULL && value_is_zero(field, from);
    bool is_safe = field->type == SPEC_TYPE_DURATION && !is_word;

    value_format(field, from, text, sizeof text);
    if (field->type == SPEC_TYPE_ENDPOINT || field->type == SPEC_TYPE_CIDR) {
        is_safe = text[0] != '[' && strchr(text, '.') != NULL;
    }
    /* Quotes keep blanks and the ends of lines of data as they are. */
    emit_scalar(emission, text,
                field->type == SPEC_TYPE_DATA || (!is_typed && !is_safe && spec_must_quote(text)));
}

static void emit_rule(struct emission *emission, const struct verdict_rule *rule)
{
    char text[RULE_TEXT_BYTES];

    if (!rule->is_split) {
        emit_scalar(emission, rule_column_format(&rule->down, text), false);
        return;
    }
    begin_map(emission, true);
    emit_scalar(emission, "down", false);
    emit_scalar(emission, rule_column_format(&rule->down, text), false);
    emit_scalar(emission, "up", false);
    emit_scalar(emission, rule_column_format(&rule->up, text), false);
    end_map(emission);
}

static void emit_labels(struct emission *emission, const struct server_group *group)
{
    begin_map(emission, true);
    for (uint32_t i = 0; i < group->n_labels; i++) {
        emit_scalar(emission, group->labels[i].key, spec_must_quote(group->labels[i].key));
        emit_scalar(emission, group->labels[i].value, spec_must_quote(group->labels[i].value));
    }
    end_map(emission);
}

/* --- what may be left out --- */

static void start_check(const struct server_group *group, const struct health_check *check,
                        struct health_check *ret_defaults)
{
    struct read_check_start start = {
        .profile = (enum profile)group->profile,
        .protocol = (enum protocol)group->protocol,
    };
    struct health_check bare;

    read_check_defaults(&start, &bare);
    start.type = (enum check_type)check->type;
    start.has_http = check_asks_http(check);
    start.has_tls = check_is_secured(check);
    start.has_domain = check->http.domain[0] != '\0';
    read_check_defaults(&start, ret_defaults);
    ret_defaults->type = bare.type;
}

/* What a document of the group's profile means without any other field. */
static void start_group(const struct server_group *group, struct server_group *ret_defaults)
{
    enum profile profile = (enum profile)group->profile;

    spec_defaults(SPEC_GROUP, profile, PROTOCOL_NONE, ret_defaults);
    uint8_t protocol = ret_defaults->protocol;
    spec_defaults(SPEC_GROUP, profile, (enum protocol)group->protocol, ret_defaults);
    ret_defaults->protocol = protocol;
    ret_defaults->hold = HOLD_OFF;
    start_check(group, &group->check, &ret_defaults->check);
}

/* One element of a list of a group, of which there are two. */
union element {
    struct backend backend;
    struct named_check check;
};

static void start_element(const struct server_group *group, const struct spec_list *list,
                          const void *element, union element *ret_defaults)
{
    *ret_defaults = (union element){0};
    spec_element_defaults(list, (enum profile)group->profile, (enum protocol)group->protocol,
                          CHECK_TYPE_NONE, ret_defaults);
    if (list->element_bytes == sizeof(struct named_check)) {
        start_check(group, &((const struct named_check *)element)->check,
                    &ret_defaults->check.check);
    } else {
        assert(list->element_bytes == sizeof(struct backend));
        ret_defaults->backend.admin_state = ADMIN_ENABLED;
    }
}

static bool is_written(const struct spec_field *field, const void *base, const void *defaults);

/* defaults: a struct as base; NULL: everything differs. */
static bool differs(const struct spec_field *field, const void *base, const void *defaults)
{
    char text[VALUE_TEXT_BYTES];
    char by_default[VALUE_TEXT_BYTES];
    const uint8_t *from = (const uint8_t *)base + field->offset;

    if (defaults == NULL || (field->flags & SPEC_REQUIRED) != 0 ||
        field->type == SPEC_TYPE_LABELS) {
        return true;
    }
    const uint8_t *other = (const uint8_t *)defaults + field->offset;
    if (field->type == SPEC_TYPE_OBJECT) {
        /* Of http and tls it says something that they are there. */
        bool does = field->when != NULL;

        for (size_t i = 0; i < field->fields->n_fields && !does; i++) {
            does = is_written(&field->fields->fields[i], from, other);
        }
        return does;
    }
    if (field->type == SPEC_TYPE_LIST) {
        const uint8_t *n = (const uint8_t *)base + field->list->count_offset;

        return *(const uint32_t *)(const void *)n != 0;
    }
    return strcmp(value_format(field, from, text, sizeof text),
                  value_format(field, other, by_default, sizeof by_default)) != 0;
}

static bool is_written(const struct spec_field *field, const void *base, const void *defaults)
{
    const uint8_t *from = (const uint8_t *)base + field->offset;

    if ((field->flags & (SPEC_LATER | SPEC_ALTERNATE)) != 0 || !spec_field_applies(field, base)) {
        return false;
    }
    if ((field->flags & SPEC_OMIT_ZERO) != 0 && value_is_zero(field, from)) {
        return false;
    }
    return differs(field, base, defaults);
}

/* --- structs --- */

/* A struct and what its fields are by default; NULL: all of them are written. */
struct pair {
    const void *base;
    const void *defaults;
};

static void emit_table(struct emission *emission, const struct spec_table *table, struct pair pair,
                       bool is_flow);

static void emit_list(struct emission *emission, const struct spec_field *field, const void *base)
{
    const struct spec_list *list = field->list;
    const uint8_t *elements = (const uint8_t *)base + field->offset;
    const uint32_t n =
        *(const uint32_t *)(const void *)((const uint8_t *)base + list->count_offset);

    if (list->is_allocated) {
        elements = *(const uint8_t *const *)(const void *)elements;
    }
    begin_list(emission, list->scalar != NULL || n == 0);
    for (uint32_t i = 0; i < n; i++) {
        const void *element = elements + i * list->element_bytes;

        if (list->scalar != NULL) {
            emit_value(emission, list->scalar, element);
        } else {
            union element defaults;

            if (emission->group != NULL) {
                start_element(emission->group, list, element, &defaults);
            }
            emit_table(emission, list->fields,
                       (struct pair){element, emission->group == NULL ? NULL : &defaults}, true);
        }
    }
    end_list(emission);
}

static void emit_table(struct emission *emission, const struct spec_table *table, struct pair pair,
                       bool is_flow)
{
    begin_map(emission, is_flow);
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];
        const void *from = (const uint8_t *)pair.base + field->offset;

        if (!is_written(field, pair.base, pair.defaults)) {
            continue;
        }
        emit_scalar(emission, field->name, false);
        if (field->type == SPEC_TYPE_OBJECT) {
            const void *other =
                pair.defaults == NULL ? NULL : (const uint8_t *)pair.defaults + field->offset;

            emit_table(emission, field->fields, (struct pair){from, other}, is_flow);
        } else if (field->type == SPEC_TYPE_LIST) {
            emit_list(emission, field, pair.base);
        } else if (field->type == SPEC_TYPE_LABELS) {
            emit_labels(emission, pair.base);
        } else if (field->type == SPEC_TYPE_RULE) {
            emit_rule(emission, from);
        } else {
            emit_value(emission, field, from);
        }
    }
    end_map(emission);
}

static void emit_document(struct emission *emission, const struct spec_document *document)
{
    const struct spec_kind_info *kind = spec_kind_info((enum spec_kind)document->kind);
    const void *base = document->u.group;
    struct server_group defaults;
    struct pair pair = {base, NULL};
    yaml_event_t event;

    emission->group = emission->is_brief && kind->kind == SPEC_GROUP ? base : NULL;
    if (emission->group != NULL) {
        start_group(emission->group, &defaults);
        pair.defaults = &defaults;
    }
    emit_event(emission, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 0));
    begin_map(emission, false);
    emit_scalar(emission, "apiVersion", false);
    emit_scalar(emission, SPEC_API_VERSION, false);
    emit_scalar(emission, "kind", false);
    emit_scalar(emission, kind->word, false);
    if (kind->metadata != NULL) {
        emit_scalar(emission, "metadata", false);
        emit_table(emission, kind->metadata, pair, false);
    }
    emit_scalar(emission, "spec", false);
    emit_table(emission, kind->spec, pair, false);
    end_map(emission);
    emit_event(emission, &event, yaml_document_end_event_initialize(&event, 1));
}

static void emit_all(struct emission *emission, const struct spec_document documents[],
                     size_t n_documents)
{
    yaml_event_t event;

    emit_event(emission, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    for (size_t i = 0; i < n_documents; i++) {
        emit_document(emission, &documents[i]);
    }
    emit_event(emission, &event, yaml_stream_end_event_initialize(&event));
}

static int emit_text(bool is_brief, const struct spec_document documents[], size_t n_documents,
                     struct spec_text *ret_text, struct errmsg *err)
{
    struct emission emission = {.is_brief = is_brief};
    size_t n_bytes = 0;

    if (!yaml_emitter_initialize(&emission.emitter)) {
        return errmsg_set(err, ERR_NOMEM, "out of memory");
    }
    bytes_writer_init(&emission.writer, LIMIT_SPEC_FILE_BYTES);
    yaml_emitter_set_output(&emission.emitter, write_text, &emission);
    yaml_emitter_set_unicode(&emission.emitter, 1);
    yaml_emitter_set_width(&emission.emitter, -1);
    emit_all(&emission, documents, n_documents);
    yaml_emitter_delete(&emission.emitter);
    bytes_write_u8(&emission.writer, 0);
    char *text = (char *)bytes_writer_take(&emission.writer, &n_bytes);
    bytes_writer_close(&emission.writer);
    if (emission.failed || text == NULL) {
        free(text);
        return errmsg_set(err, ERR_LIMIT, "the documents need more than %d bytes, or memory is out",
                          LIMIT_SPEC_FILE_BYTES);
    }
    *ret_text = (struct spec_text){.bytes = text, .n_bytes = n_bytes - 1};
    return 0;
}

int spec_emit(const struct spec_document documents[], size_t n_documents, char **ret_text,
              size_t *ret_n_bytes, struct errmsg *err)
{
    struct spec_text text = {0};
    int rc = emit_text(false, documents, n_documents, &text, err);

    if (rc == 0) {
        *ret_text = text.bytes;
        *ret_n_bytes = text.n_bytes;
    }
    return rc;
}

int spec_emit_brief(const struct spec_document documents[], size_t n_documents, char **ret_text,
                    size_t *ret_n_bytes, struct errmsg *err)
{
    struct spec_text text = {0};
    int rc = emit_text(true, documents, n_documents, &text, err);

    if (rc == 0) {
        *ret_text = text.bytes;
        *ret_n_bytes = text.n_bytes;
    }
    return rc;
}
