/* apply: documents to the cluster, and what became of each. */
#include <inttypes.h>
#include <stdio.h>

#include "common/spec/field.h"
#include "common/wire/object.h"
#include "jury/v1/config.pb-c.h"
#include "nodectl/apply_changes.h"
#include "nodectl/change_set.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/load.h"
#include "nodectl/remark.h"
#include "nodectl/render.h"

/* --- the request --- */

/* Every document into the request. */
static int fill_request(struct ctl *ctl, const struct spec_set *set, struct change_set *changes)
{
    int rc = change_set_init(ctl, changes, set->n_documents);

    for (uint32_t i = 0; rc == 0 && i < set->n_documents; i++) {
        change_put_object(&changes->arena, &set->documents[i], changes->request.documents[i]);
    }
    if (rc == 0 && changes->arena.failed) {
        return ctl_fail(ctl, ERR_LIMIT, "the documents are too large for one request: split them");
    }
    return rc;
}

/* --- what it did, or would do --- */

static void put_dry_run(struct ctl *ctl, const struct spec_set *set, const struct befores *befores,
                        const Jury__V1__ApplyResponse *answer)
{
    for (size_t i = 0; i < answer->n_results && i < set->n_documents; i++) {
        const struct spec_document *document = &set->documents[i];
        Jury__V1__ApplyAction action = answer->results[i]->action;
        char object[LOAD_OBJECT_BYTES];

        fprintf(ctl->out, "%-8s %s\n", change_plan_word(action), load_object(document, object));
        if (action == JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE) {
            befores_put_all(ctl->out, befores, i);
        }
    }
    fprintf(ctl->out, "checked against revision %" PRIu64 "; nothing was applied\n",
            answer->revision);
}

static void put_applied(struct ctl *ctl, const struct spec_set *set, const struct befores *befores,
                        const Jury__V1__ApplyResponse *answer)
{
    size_t n_unchanged = 0;

    for (size_t i = 0; i < answer->n_results && i < set->n_documents; i++) {
        Jury__V1__ApplyAction action = answer->results[i]->action;

        load_put_name(ctl->out, &set->documents[i]);
        fprintf(ctl->out, " %s", change_done_word(action));
        if (action == JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE) {
            befores_put_backends(ctl->out, befores, i);
            fputc('\n', ctl->out);
            befores_put_fields(ctl->out, befores, i);
        } else {
            fputc('\n', ctl->out);
        }
        n_unchanged += action == JURY__V1__APPLY_ACTION__APPLY_ACTION_NOTHING;
    }
    if (n_unchanged == set->n_documents) {
        fprintf(ctl->out, "nothing changed at revision %" PRIu64 "\n", answer->revision);
    } else {
        fprintf(ctl->out, "applied %u document%s as revision %" PRIu64 "\n",
                (unsigned)set->n_documents, set->n_documents == 1 ? "" : "s", answer->revision);
    }
}

/* --- apply --- */

static int apply_set(struct ctl *ctl, const struct spec_set *set)
{
    struct change_set changes = {0};
    struct befores befores = {0};
    int rc = fill_request(ctl, set, &changes);

    if (rc == 0) {
        rc = befores_ask(ctl, set, &befores);
    }
    if (rc == 0) {
        rc = change_set_send(ctl, &changes, set);
    }
    if (rc == 0) {
        const Jury__V1__ApplyResponse *answer = change_set_answer(&changes);

        if (ctl_is_json(ctl)) {
            rc = ctl_print_json(ctl, befores_json_new(&befores, answer));
        } else if (ctl_has(ctl, FLAG_DRY_RUN)) {
            put_dry_run(ctl, set, &befores, answer);
        } else {
            put_applied(ctl, set, &befores, answer);
        }
    }
    befores_close(&befores);
    change_set_close(&changes);
    return rc;
}

int cmd_apply(struct ctl *ctl)
{
    struct spec_set set = {0};
    int rc = load_documents(ctl, &set);

    for (uint32_t i = 0; rc == 0 && i < set.n_documents; i++) {
        remark_checks(ctl, &set.documents[i]);
        remark_load(ctl, &set.documents[i]);
        remark_advice(ctl, &set, &set.documents[i]);
    }
    if (rc == 0) {
        rc = apply_set(ctl, &set);
    }
    if (rc == 0) { /* afterwards: by then it is known that the node answers */
        struct remark_probing probing;

        remark_ask_probing(ctl, &probing);
        remark_demand(ctl, &set, &probing);
        remark_sources(ctl, &set, &probing);
        remark_parts(ctl, &set, &probing);
    }
    spec_set_close(&set);
    return rc;
}
