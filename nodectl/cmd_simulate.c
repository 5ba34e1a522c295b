/* simulate: the kept history of a group with a changed document. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/wire/object.h"
#include "jury/v1/simulation.pb-c.h"
#include "nodectl/apply_changes.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/load.h"
#include "nodectl/render.h"

#define REQUEST_ARENA_BYTES ((size_t)32 * 1024 * 1024)

static int ask(struct ctl *ctl, const struct server_group *group)
{
    Jury__V1__SimulateGroupRequest request;
    struct wire_arena arena;
    struct rpc_result result = {0};
    int rc = 0;

    jury__v1__simulate_group_request__init(&request);
    wire_arena_init(&arena, REQUEST_ARENA_BYTES);
    request.group = wire_group_new(&arena, group);
    if (ctl_has(ctl, FLAG_SINCE)) {
        request.since = wire_duration_new(&arena, ctl_number(ctl, FLAG_SINCE) * NS_PER_MS);
    }
    if (arena.failed) {
        rc = ctl_fail(ctl, ERR_LIMIT, "the document is too large for a request");
    } else {
        rc = ctl_call(ctl, "jury.v1.SimulationService/SimulateGroup", &request.base, &result);
    }
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        render_simulation(ctl,
                          (const Jury__V1__SimulateGroupResponse *)(const void *)result.response);
    }
    rpc_result_close(&result);
    wire_arena_close(&arena);
    return rc;
}

/* Which to choose from, as far as they fit. */
static void advise_groups(struct ctl *ctl, const struct spec_set *set)
{
    char names[280] = "";

    for (size_t i = 0; i < set->n_documents; i++) {
        size_t used = strlen(names);

        if (set->documents[i].kind == SPEC_GROUP) {
            snprintf(names + used, sizeof names - used, "%s--group %s", used == 0 ? "" : " or ",
                     set->documents[i].u.group->name);
        }
    }
    if (names[0] != '\0') {
        ctl_hint(ctl, "choose one: %s", names);
    }
}

/* A file for apply may hold a listener beside its group: a replay is of one group alone, and says
 * so. NULL: refused. */
static struct spec_document *one_group(struct ctl *ctl, const struct spec_set *set)
{
    const char *wanted = ctl_text(ctl, FLAG_GROUP);
    struct spec_document *found = NULL;
    size_t n_groups = 0;

    for (size_t i = 0; i < set->n_documents; i++) {
        struct spec_document *document = &set->documents[i];

        if (document->kind == SPEC_GROUP &&
            (wanted == NULL || strcmp(document->u.group->name, wanted) == 0)) {
            found = document;
            n_groups++;
        }
    }
    if (n_groups != 1) {
        if (wanted != NULL) {
            (void)ctl_fail(ctl, ERR_USAGE, "there is no document of kind Group called \"%.128s\"",
                           wanted);
        } else {
            (void)ctl_fail(ctl, ERR_USAGE,
                           "simulate takes exactly one document of kind Group; there are %zu",
                           n_groups);
        }
        advise_groups(ctl, set);
        return NULL;
    }
    if (set->n_documents > 1 && wanted == NULL) {
        ctl_warn(ctl, "only Group %s is replayed; the other documents are left out",
                 found->u.group->name);
    }
    return found;
}

/* What is played: the fields in which the document differs from the asked node's group. */
static int put_changes(struct ctl *ctl, struct spec_document *document)
{
    const struct spec_set set = {.documents = document, .n_documents = 1};
    struct befores befores = {0};
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *lines = open_memstream(&text, &n_bytes);

    if (lines == NULL) {
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    bool was_stale = ctl->is_stale;
    ctl->is_stale = true; /* its own copy, as its own votes */
    int rc = befores_ask(ctl, &set, &befores);
    ctl->is_stale = was_stale;
    if (rc == 0) {
        befores_put_fields(lines, &befores, 0);
    }
    befores_close(&befores);
    fclose(lines);
    if (rc == 0 && n_bytes > 0) {
        fprintf(ctl->out, "what the document changes\n%s", text);
    }
    free(text);
    return rc;
}

int cmd_simulate(struct ctl *ctl)
{
    struct spec_set set = {0};
    int rc = load_documents(ctl, &set);

    if (rc == 0) {
        struct spec_document *document = one_group(ctl, &set);

        rc = document == NULL ? ERR_USAGE : 0;
        if (rc == 0 && !ctl_is_json(ctl)) {
            rc = put_changes(ctl, document);
        }
        rc = rc == 0 ? ask(ctl, document->u.group) : rc;
    }
    spec_set_close(&set);
    return rc;
}
