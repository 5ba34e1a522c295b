/* explain: the field tables of documents, profiles, reasons and rules, as text. Offline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/str.h"
#include "common/model/advice.h"
#include "common/model/profile.h"
#include "common/model/reason.h"
#include "common/spec/example.h"
#include "common/spec/field.h"
#include "common/spec/value.h"
#include "nodectl/commands.h"
#include "nodectl/explain.h"
#include "nodectl/render.h"

/* --- fields --- */

static const char *type_word(const struct spec_field *field)
{
    switch ((enum spec_type)field->type) {
    case SPEC_TYPE_TEXT:
        return "text";
    case SPEC_TYPE_BOOL:
        return "true or false";
    case SPEC_TYPE_UINT:
        return "number";
    case SPEC_TYPE_DURATION:
        return "time with a unit";
    case SPEC_TYPE_WORD:
        return "word";
    case SPEC_TYPE_ADDRESS:
        return "IP address";
    case SPEC_TYPE_ENDPOINT:
        return "address and port";
    case SPEC_TYPE_CIDR:
        return "prefix";
    case SPEC_TYPE_CODES:
        return "HTTP status codes";
    case SPEC_TYPE_RULE:
        return "rule";
    case SPEC_TYPE_PASS:
        return "rule of checks";
    case SPEC_TYPE_DATA:
        return "text or hex";
    case SPEC_TYPE_PUBLIC_KEY:
        return "public key";
    case SPEC_TYPE_TIME:
        return "date and time";
    case SPEC_TYPE_LABELS:
        return "mapping of words";
    case SPEC_TYPE_OBJECT:
        return "mapping";
    case SPEC_TYPE_LIST:
        return "list";
    case SPEC_TYPE_NONE:
        break;
    }
    return "(not available yet)";
}

static void put_advice(FILE *out, const char *path)
{
    bool is_first = true;

    for (size_t i = 0; i < N_ADVICE; i++) {
        size_t n = strlen(path);
        bool is_here = strncmp(advice_rows[i].path, path, n) == 0 &&
                       (advice_rows[i].path[n] == '\0' || advice_rows[i].path[n] == '.');

        if (is_here) {
            fputs(is_first ? "\nadvice\n" : "", out);
            is_first = false;
            fputs("  -", out);
            render_wrapped(out, 4, 3, advice_rows[i].text);
        }
    }
}

static void put_field(FILE *out, const struct explain_subject *subject, const char *path)
{
    const struct spec_field *field = subject->field;
    char text[VALUE_TEXT_BYTES];

    fprintf(out, "%s\n\n", path);
    render_wrapped(out, 0, 0, field->help);
    fputc('\n', out);
    if ((field->flags & SPEC_LATER) != 0) {
        fputs("Not available yet: a document with it is refused.\n", out);
        return;
    }
    fprintf(out, "  type      %s%s\n", type_word(field),
            (field->flags & SPEC_REQUIRED) != 0 ? ", required" : "");
    explain_allowed(subject, field, text, sizeof text);
    if (text[0] != '\0') {
        fprintf(out, "  allowed   %s\n", text);
    }
    explain_default(subject, field, text, sizeof text);
    if (text[0] != '\0') {
        fprintf(out, "  default   %s\n", text);
    }
    if (field->when_text != NULL) {
        fprintf(out, "  only with %s\n", field->when_text);
    }
    if (field->example != NULL) {
        fprintf(out, "  example   %s: %s\n", field->name, field->example);
    }
}

static void put_table(struct ctl *ctl, const struct explain_subject *subject)
{
    static const struct render_column columns[] = {
        {"FIELD", false}, {"TYPE", false}, {"DEFAULT", false}, {"ALLOWED", false}};
    struct render_table *rows = render_table_new(columns, 4);
    char text[VALUE_TEXT_BYTES];

    for (size_t i = 0; i < subject->table->n_fields; i++) {
        const struct spec_field *field = &subject->table->fields[i];

        render_row(rows);
        render_cell(rows, "%s%s", field->name, (field->flags & SPEC_REQUIRED) != 0 ? " *" : "");
        render_cell(rows, "%s", type_word(field));
        render_cell(rows, "%s", explain_default(subject, field, text, sizeof text));
        render_cell(rows, "%s", explain_allowed(subject, field, text, sizeof text));
    }
    render_table_print(ctl, rows);
}

static json_t *field_json(const struct explain_subject *subject, const struct spec_field *field)
{
    char allowed[VALUE_TEXT_BYTES];
    char defaults[VALUE_TEXT_BYTES];

    return json_pack("{s:s, s:s, s:b, s:b, s:s, s:s, s:s}", "name", field->name, "type",
                     type_word(field), "required", (field->flags & SPEC_REQUIRED) != 0, "available",
                     (field->flags & SPEC_LATER) == 0, "allowed",
                     explain_allowed(subject, field, allowed, sizeof allowed), "default",
                     explain_default(subject, field, defaults, sizeof defaults), "help",
                     field->help);
}

static int explain_json(struct ctl *ctl, struct explain_subject *subject, const char *path)
{
    json_t *fields = json_array();

    if (subject->field != NULL && !explain_descend(subject)) {
        json_array_append_new(fields, field_json(subject, subject->field));
    } else {
        for (size_t i = 0; i < subject->table->n_fields; i++) {
            json_array_append_new(fields, field_json(subject, &subject->table->fields[i]));
        }
    }
    return ctl_print_json(ctl, json_pack("{s:s, s:o}", "path", path, "fields", fields));
}

static int explain_path(struct ctl *ctl, const char *path)
{
    struct explain_subject subject = {0};
    int rc = explain_find(ctl, path, &subject);

    if (rc != 0) {
        return rc;
    }
    if (ctl_is_json(ctl)) {
        return explain_json(ctl, &subject, path);
    }
    if (subject.field != NULL) {
        put_field(ctl->out, &subject, path);
        if (!explain_descend(&subject)) {
            put_advice(ctl->out, path);
            return 0;
        }
        fputc('\n', ctl->out);
    } else {
        fprintf(ctl->out, "%s (kind %s)\n\n%s\n\n", path, subject.kind->word,
                subject.table == subject.kind->spec ? subject.kind->help : subject.table->help);
    }
    put_table(ctl, &subject);
    fputs("\n* = required\n", ctl->out);
    put_advice(ctl->out, path);
    return 0;
}

static int explain_topics(struct ctl *ctl)
{
    fputs("Kinds of documents\n", ctl->out);
    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        fprintf(ctl->out, "  %-16s %s\n", spec_kinds[i].path, spec_kinds[i].help);
    }
    fputs("\nOther topics\n"
          "  profile [NAME]   what a profile fills in\n"
          "  reason [WORD]    outcomes of probes\n"
          "  verdict          all of it on one page: windows, votes, rules, marks, guards, flows\n"
          "  rules [WORD]     how votes become a verdict\n"
          "  flows            which backends get new flows\n"
          "  guards           what limits how the votes take backends out of service\n"
          "  self-doubt       when a node does not trust its own probes\n"
          "  probers          who probes a backend, how often, and when all do\n"
          "  checks           several checks of a backend: k of n, and dependencies\n"
          "  loss             round trip and loss of probes: what counts as lost\n"
          "  budget           how many probes a node begins in a second, and what waits then\n"
          "\nA field: nodectl explain group.check.http.expect\n"
          "A reason, rule or profile by its name: nodectl explain CONNECT_TIMEOUT\n"
          "A whole document to start from: nodectl explain group --example\n",
          ctl->out);
    return 0;
}

static int explain_verdict(struct ctl *ctl)
{
    for (size_t i = 0; verdict_page[i] != NULL; i++) {
        fprintf(ctl->out, "%s\n", verdict_page[i]);
    }
    return 0;
}

static int explain_example(struct ctl *ctl)
{
    const struct spec_kind_info *kind = ctl->n_args == 1 ? explain_kind(ctl->args[0]) : NULL;
    char *text = NULL;

    if (ctl->n_args == 0) {
        return ctl_fail(ctl, ERR_USAGE, "--example needs a kind: nodectl explain group --example");
    }
    if (kind == NULL) {
        return explain_refuse(ctl, ctl->args[0]);
    }
    if (spec_example(kind, &text) != 0) {
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    fputs(text, ctl->out);
    free(text);
    return 0;
}

/* A reason, a rule or a profile by its name alone, as answers show it. */
static int explain_word(struct ctl *ctl, const char *word)
{
    if (probe_reason_find(word) != REASON_NONE) {
        return explain_reason(ctl, word);
    }
    if (names_value(&names_rule, word) != RULE_NONE) {
        return explain_rules(ctl, word);
    }
    if (names_value(&names_profile, word) != PROFILE_NONE) {
        return explain_profile(ctl, word);
    }
    if (!ctl_is_json(ctl) && explain_shown_word(ctl, word)) {
        return 0;
    }
    return explain_path(ctl, word);
}

int cmd_explain(struct ctl *ctl)
{
    const char *topic = ctl->n_args > 0 ? ctl->args[0] : "";
    const char *word = ctl->n_args > 1 ? ctl->args[1] : NULL;

    if (ctl_has(ctl, FLAG_EXAMPLE)) {
        return explain_example(ctl);
    }
    if (topic[0] == '\0') {
        return explain_topics(ctl);
    }
    if (strcmp(topic, "profile") == 0 || strcmp(topic, "profiles") == 0) {
        return explain_profile(ctl, word);
    }
    if (strcmp(topic, "reason") == 0 || strcmp(topic, "reasons") == 0) {
        return explain_reason(ctl, word);
    }
    if (strcmp(topic, "rule") == 0 || strcmp(topic, "rules") == 0) {
        return explain_rules(ctl, word);
    }
    if (word != NULL && strcasecmp(topic, "state") == 0 && strcasecmp(word, "hash") == 0) {
        return explain_word(ctl, "state hash");
    }
    if (word != NULL) {
        return ctl_fail(ctl, ERR_USAGE, "nodectl explain %.40s does not take \"%.40s\"", topic,
                        word);
    }
    if (strcmp(topic, "verdict") == 0) {
        return explain_verdict(ctl);
    }
    if (strcmp(topic, "flows") == 0) {
        return explain_flows(ctl);
    }
    if (strcmp(topic, "guards") == 0 || strcmp(topic, "guard") == 0) {
        return explain_guards(ctl);
    }
    if (strcmp(topic, "self-doubt") == 0) {
        return explain_self_doubt(ctl);
    }
    if (strcmp(topic, "budget") == 0) {
        return explain_budget(ctl);
    }
    if (strcmp(topic, "probers") == 0) {
        return explain_probers(ctl);
    }
    if (strcmp(topic, "checks") == 0) {
        return explain_checks(ctl);
    }
    if (strcmp(topic, "loss") == 0) {
        return explain_loss(ctl);
    }
    return explain_word(ctl, topic);
}
