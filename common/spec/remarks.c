/* Advice on a document and its place: the model knows no lines, but names the field. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/spec/read.h"

/* The field, or where it is not written what it would stand in, or the profile that it comes from.
 */
static struct spec_position place_of(const struct spec_kind_info *kind, const struct doc_node *root,
                                     const struct advice_due *due)
{
    const struct spec_position nowhere = {0, 0};
    const struct doc_node *spec = doc_find(root, "spec");
    const struct doc_node *profile = doc_find(spec, "profile");
    char field[ADVICE_FIELD_BYTES];

    advice_field(due, field);
    for (;;) {
        struct errmsg name;

        snprintf(name.text, sizeof name.text, "%s", field);
        struct spec_position at = read_blame(kind, root, nowhere, &name);
        char *last = strrchr(field, '.');
        if (at.line != 0) {
            return at;
        }
        if (last == NULL) {
            return profile != NULL ? profile->at : spec->key_at;
        }
        *last = '\0';
    }
}

static size_t advise(const struct spec_document *document, struct advice_due due[])
{
    switch ((enum spec_kind)document->kind) {
    case SPEC_GROUP:
        return advice_of_group(document->u.group, due);
    case SPEC_CLUSTER_SETTINGS:
        return advice_of_settings(document->u.settings, due);
    case SPEC_NODE:
        return advice_of_node(document->u.node, due);
    case SPEC_LISTENER:
    case SPEC_KEY:
    case SPEC_KIND_NONE:
        break;
    }
    return 0;
}

int read_remarks(const struct spec_kind_info *kind, const struct doc_node *root,
                 struct spec_document *document)
{
    struct advice_due due[N_ADVICE];
    size_t n = advise(document, due);

    if (n == 0) {
        return 0;
    }
    document->remarks = calloc(n, sizeof document->remarks[0]);
    if (document->remarks == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        document->remarks[i] = (struct spec_remark){due[i], place_of(kind, root, &due[i])};
    }
    document->n_remarks = (uint32_t)n;
    return 0;
}
