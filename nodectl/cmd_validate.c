/* validate: documents without a cluster; and what apply says of them before it asks one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/spec/field.h"
#include "nodectl/commands.h"
#include "nodectl/load.h"
#include "nodectl/remark.h"

void remark_advice(struct ctl *ctl, const struct spec_set *set,
                   const struct spec_document *document)
{
    const char *file = set->files[document->file];
    char object[LOAD_OBJECT_BYTES];
    char field[ADVICE_FIELD_BYTES];

    load_object(document, object);
    for (uint32_t i = 0; i < document->n_remarks; i++) {
        const struct spec_remark *remark = &document->remarks[i];
        const struct advice *row = remark->due.row;

        advice_field(&remark->due, field);
        ctl_warn(ctl, "%s:%u: %s: %s: %s (%s)", file, (unsigned)remark->at.line, object, field,
                 row->warning, row->id);
    }
}

void remark_load(struct ctl *ctl, const struct spec_document *document)
{
    char object[LOAD_OBJECT_BYTES];

    if (document->kind != SPEC_GROUP || !document->u.group->check.is_enabled ||
        !check_is_shared(&document->u.group->check)) {
        return;
    }
    const struct health_check *check = &document->u.group->check;
    struct check_load one = check_load_of(check, 1);
    struct check_load all = check_load_of(check, LIMIT_NODES);
    double each = (double)one.steady_per_1000s / 1000;
    load_object(document, object);
    if (check->probers != 0) {
        ctl_note(ctl,
                 "%s: each backend sees %.3g probes a second from %u nodes (where there are no "
                 "more than that: from all); when one fails, at most %.3g of each node in the "
                 "cluster",
                 object, (double)all.steady_per_1000s / 1000, all.n_probers, 2 * each);
    } else {
        ctl_note(ctl,
                 "%s: each backend sees %.3g probes a second of each node in the cluster; when "
                 "one fails, at most %.3g",
                 object, each, 2 * each);
    }
}

static json_t *advice_json(const struct spec_set *set)
{
    json_t *list = json_array();

    for (uint32_t d = 0; d < set->n_documents; d++) {
        const struct spec_document *document = &set->documents[d];
        char object[LOAD_OBJECT_BYTES];

        load_object(document, object);
        for (uint32_t i = 0; i < document->n_remarks; i++) {
            const struct spec_remark *remark = &document->remarks[i];
            const struct advice *row = remark->due.row;

            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:i}", "object", object, "id",
                                row->id, "field", row->path, "warning", true, "text", row->warning,
                                "file", set->files[document->file], "line", (int)remark->at.line));
        }
    }
    return list;
}

static json_t *documents_json(const struct spec_set *set)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < set->n_documents; i++) {
        const struct spec_document *document = &set->documents[i];
        char name[LIMIT_NAME_BYTES + 8];

        spec_document_name(document, name, sizeof name);
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:s, s:s}", "file", set->files[document->file], "line",
                            (int)document->at.line, "kind",
                            spec_kind_word((enum spec_kind)document->kind), "name", name));
    }
    return list;
}

int cmd_validate(struct ctl *ctl)
{
    struct spec_set set = {0};
    int rc = load_documents(ctl, &set);

    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_json(ctl, json_pack("{s:o, s:o}", "documents", documents_json(&set),
                                           "advice", advice_json(&set)));
    } else if (rc == 0) {
        for (uint32_t i = 0; i < set.n_documents; i++) {
            const struct spec_document *document = &set.documents[i];
            char object[LOAD_OBJECT_BYTES];

            fprintf(ctl->out, "%s:%u: %s is valid\n", set.files[document->file],
                    (unsigned)document->at.line, load_object(document, object));
            remark_checks(ctl, document);
            remark_load(ctl, document);
            remark_advice(ctl, &set, document);
        }
        struct remark_probing probing;
        remark_default_probing(&probing);
        remark_demand(ctl, &set, &probing);
        remark_sources(ctl, &set, &probing);
    }
    spec_set_close(&set);
    return rc;
}
