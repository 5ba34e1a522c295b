#include "common/spec/example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/model/profile.h"
#include "common/spec/value.h"

#define EXAMPLE_LIMIT_BYTES (256 * 1024)
#define COMMENT_COLUMNS 96

struct example {
    struct bytes_writer writer;
};

static void put(struct example *example, const char *text)
{
    bytes_write_copy(&example->writer, text, strlen(text));
}

static void put_indent(struct example *example, unsigned indent)
{
    for (unsigned i = 0; i < indent; i++) {
        put(example, " ");
    }
}

/* A comment, broken between words. */
static void put_comment(struct example *example, unsigned indent, const char *text)
{
    while (*text != '\0') {
        size_t room = COMMENT_COLUMNS - indent - 2;
        size_t n = strlen(text);

        if (n > room) {
            n = room;
            while (n > 1 && text[n] != ' ') {
                n--;
            }
        }
        put_indent(example, indent);
        put(example, "# ");
        bytes_write_copy(&example->writer, text, n);
        put(example, "\n");
        text += n;
        text += strspn(text, " ");
    }
}

static void put_about(struct example *example, unsigned indent, const struct spec_field *field)
{
    char allowed[VALUE_TEXT_BYTES];
    char line[2 * VALUE_TEXT_BYTES];

    value_format_allowed(field, allowed, sizeof allowed);
    snprintf(line, sizeof line, "%s%s%s%s%s%s%s%s", field->help,
             allowed[0] == '\0' ? "" : " Allowed: ", allowed, allowed[0] == '\0' ? "" : ".",
             field->later == NULL ? "" : " Not available yet: ",
             field->later == NULL ? "" : field->later, field->later == NULL ? "" : ".",
             (field->flags & SPEC_REQUIRED) != 0 ? " Required." : "");
    put_comment(example, indent, line);
}

static void put_table(struct example *example, unsigned indent, const struct spec_table *table,
                      const void *defaults);

static void put_value(struct example *example, const struct spec_field *field, const void *from)
{
    char text[VALUE_TEXT_BYTES];
    const char *value = field->example;
    bool is_plain = field->type == SPEC_TYPE_BOOL || field->type == SPEC_TYPE_UINT ||
                    field->type == SPEC_TYPE_LABELS || field->type == SPEC_TYPE_LIST;

    if (value == NULL) {
        value = value_format(field, from, text, sizeof text);
    }
    put(example, is_plain ? "" : "\"");
    put(example, value);
    put(example, is_plain ? "\n" : "\"\n");
}

static void put_element(struct example *example, unsigned indent, const struct spec_list *list)
{
    uint64_t zeroed[64] = {0}; /* aligned room for one element's defaults */

    if (list->element_bytes > sizeof zeroed) {
        return;
    }
    spec_element_defaults(list, PROFILE_NLB, PROTOCOL_NONE, CHECK_TYPE_NONE, zeroed);
    put_indent(example, indent);
    put(example, "-\n");
    put_table(example, indent + 2, list->fields, zeroed);
}

static void put_field(struct example *example, unsigned indent, const struct spec_field *field,
                      const void *defaults)
{
    const void *from = (const uint8_t *)defaults + field->offset;
    /* Not set by itself and with nothing to show: the field stays in a comment. */
    bool is_hidden = field->example == NULL && (field->flags & SPEC_OMIT_ZERO) != 0 &&
                     value_is_zero(field, from);

    put_about(example, indent, field);
    if (!spec_field_applies(field, defaults)) {
        put_indent(example, indent);
        put(example, "# ");
        put(example, field->name);
        put(example, ": only with ");
        put(example, field->when_text);
        put(example, "\n");
        return;
    }
    put_indent(example, indent);
    put(example, is_hidden ? "# " : "");
    put(example, field->name);
    put(example, ":");
    if (is_hidden) {
        put(example, "\n");
    } else if (field->type == SPEC_TYPE_OBJECT) {
        put(example, "\n");
        put_table(example, indent + 2, field->fields, from);
    } else if (field->type == SPEC_TYPE_LIST && field->list->fields != NULL) {
        put(example, "\n");
        put_element(example, indent, field->list);
    } else {
        put(example, " ");
        put_value(example, field, from);
    }
}

static void put_table(struct example *example, unsigned indent, const struct spec_table *table,
                      const void *defaults)
{
    for (size_t i = 0; i < table->n_fields; i++) {
        if ((table->fields[i].flags & (SPEC_LATER | SPEC_ALTERNATE)) == 0) {
            put_field(example, indent, &table->fields[i], defaults);
        }
    }
}

/* What the example starts from: profile nlb with an http check, so that most fields show. */
static void *example_defaults(const struct spec_kind_info *kind)
{
    void *defaults = calloc(1, kind->bytes);

    if (defaults == NULL) {
        return NULL;
    }
    spec_defaults(kind->kind, PROFILE_NLB, PROTOCOL_NONE, defaults);
    if (kind->kind == SPEC_GROUP) {
        struct server_group *group = defaults;

        profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP, CHECK_TYPE_HTTP, &group->check);
        group->check.http.host = HTTP_HOST_DOMAIN; /* the example sets a domain */
    }
    return defaults;
}

int spec_example(const struct spec_kind_info *kind, char **ret_text)
{
    struct example example = {{0}};
    size_t n_bytes = 0;
    void *defaults = example_defaults(kind);

    if (defaults == NULL) {
        return ERR_NOMEM;
    }
    bytes_writer_init(&example.writer, EXAMPLE_LIMIT_BYTES);
    put_comment(&example, 0, kind->help);
    put(&example, "apiVersion: " SPEC_API_VERSION "\nkind: ");
    put(&example, kind->word);
    put(&example, "\n");
    if (kind->metadata != NULL) {
        put(&example, "metadata:\n");
        put_table(&example, 2, kind->metadata, defaults);
    }
    put(&example, "spec:\n");
    put_table(&example, 2, kind->spec, defaults);
    bytes_write_u8(&example.writer, 0);
    free(defaults);
    *ret_text = (char *)bytes_writer_take(&example.writer, &n_bytes);
    bytes_writer_close(&example.writer);
    return *ret_text == NULL ? ERR_NOMEM : 0;
}
