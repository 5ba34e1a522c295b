#include "nodectl/change_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/object.h"
#include "nodectl/connect.h"
#include "nodectl/flags.h"
#include "nodectl/load.h"

#define REQUEST_ARENA_BYTES ((size_t)512 * 1024 * 1024) /* every document that a file may hold */

static int fill_documents(struct ctl *ctl, struct change_set *changes, size_t n_documents)
{
    Jury__V1__ApplyRequest *request = &changes->request;

    request->documents = wire_alloc_array(&changes->arena, n_documents, sizeof *request->documents);
    for (size_t i = 0; i < n_documents && request->documents != NULL; i++) {
        Jury__V1__Document *document =
            WIRE_NEW(&changes->arena, Jury__V1__Document, jury__v1__document);

        if (document == NULL) {
            break;
        }
        if (ctl_has(ctl, FLAG_EXPECTED_REVISION)) {
            document->precondition_case = JURY__V1__DOCUMENT__PRECONDITION_EXPECTED_REVISION;
            document->expected_revision = ctl_number(ctl, FLAG_EXPECTED_REVISION);
        }
        request->documents[request->n_documents++] = document;
    }
    if (changes->arena.failed) {
        return ctl_fail(ctl, ERR_LIMIT, "the documents are too large for one request: split them");
    }
    return 0;
}

int change_set_init(struct ctl *ctl, struct change_set *changes, size_t n_documents)
{
    Jury__V1__ApplyRequest *request = &changes->request;

    jury__v1__apply_request__init(request);
    wire_arena_init(&changes->arena, REQUEST_ARENA_BYTES);
    if (ctl_has(ctl, FLAG_EXPECTED_REVISION) && n_documents != 1) {
        return ctl_fail(ctl, ERR_USAGE,
                        "--expected-revision is about one object, and there are %zu documents",
                        n_documents);
    }
    request->dry_run = ctl_has(ctl, FLAG_DRY_RUN);
    if (ctl_has(ctl, FLAG_FORCE)) {
        request->force = WIRE_NEW(&changes->arena, Jury__V1__Force, jury__v1__force);
        if (request->force == NULL) {
            return ctl_fail(ctl, ERR_NOMEM, "out of memory");
        }
        request->force->count = (uint32_t)ctl_number(ctl, FLAG_FORCE);
    }
    return fill_documents(ctl, changes, n_documents);
}

void change_put_object(struct wire_arena *arena, const struct spec_document *from,
                       Jury__V1__Document *to)
{
    switch ((enum spec_kind)from->kind) {
    case SPEC_GROUP:
        to->object_case = JURY__V1__DOCUMENT__OBJECT_GROUP;
        to->group = wire_group_new(arena, from->u.group);
        return;
    case SPEC_LISTENER:
        to->object_case = JURY__V1__DOCUMENT__OBJECT_LISTENER;
        to->listener = wire_listener_new(arena, from->u.listener);
        return;
    case SPEC_CLUSTER_SETTINGS:
        to->object_case = JURY__V1__DOCUMENT__OBJECT_SETTINGS;
        to->settings = wire_settings_new(arena, from->u.settings);
        return;
    case SPEC_NODE:
        to->object_case = JURY__V1__DOCUMENT__OBJECT_NODE;
        to->node = wire_node_new(arena, from->u.node);
        return;
    case SPEC_KEY:
        to->object_case = JURY__V1__DOCUMENT__OBJECT_KEY;
        to->key = wire_key_new(arena, from->u.key);
        return;
    case SPEC_KIND_NONE:
        return;
    }
}

int change_set_delete(struct ctl *ctl, struct change_set *changes, size_t index,
                      Jury__V1__ObjectKind kind, const char *name)
{
    Jury__V1__Document *document = changes->request.documents[index];
    Jury__V1__Deletion *deletion =
        WIRE_NEW(&changes->arena, Jury__V1__Deletion, jury__v1__deletion);
    char *copy = wire_text(&changes->arena, name);

    if (deletion == NULL || copy == NULL) {
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    deletion->kind = kind;
    deletion->name = copy;
    document->object_case = JURY__V1__DOCUMENT__OBJECT_DELETION;
    document->deletion = deletion;
    return 0;
}

/* The server's refusal names a document by its index; a person wants its file and line. rc:
 * ERR_* of the refusal. Returns false: it names none. */
static bool name_document(struct ctl *ctl, int rc, const struct spec_set *set)
{
    const json_t *index = ctl->failure.metadata == NULL
                              ? NULL
                              : json_object_get(ctl->failure.metadata, "document_index");
    struct spec_error error = {.message = ctl->failure.message};
    char line[16];

    if (index == NULL || !json_is_string(index)) {
        return false;
    }
    unsigned long at = strtoul(json_string_value(index), NULL, 10);
    if (at >= set->n_documents) {
        return false;
    }
    const struct spec_document *document = &set->documents[at];
    error.at = document->at;
    if (rc != ERR_FORCE) { /* that is of the whole set */
        spec_locate(set, (uint32_t)at, &error);
    }
    snprintf(line, sizeof line, "%u", (unsigned)error.at.line);
    snprintf(ctl->failure.lines, sizeof ctl->failure.lines, "  in the document at %.512s:%s",
             set->files[document->file], line);
    ctl_detail(ctl, "file", set->files[document->file]);
    ctl_detail(ctl, "line", line);
    return true;
}

/* A refusal is of one thing. A dry run of the same tells all. result: rpc_result_close in every
 * case. */
static const Jury__V1__Status *ask_all(struct ctl *ctl, struct change_set *changes,
                                       struct rpc_result *result)
{
    struct ctl_failure kept = ctl->failure;

    if (changes->request.dry_run) {
        return changes->result.header->status;
    }
    changes->request.dry_run = true;
    ctl->failure = (struct ctl_failure){0};
    (void)ctl_call(ctl, "jury.v1.ConfigService/Apply", &changes->request.base, result);
    json_decref(ctl->failure.metadata); /* the first refusal is the failure */
    ctl->failure = kept;
    changes->request.dry_run = false;
    return result->header == NULL ? NULL : result->header->status;
}

/* Where backends may be is no field of a group: who meets the limit has not seen it yet. */
static void advise_prefixes(struct ctl *ctl, const char *refusal)
{
    if (strstr(refusal, "(allowedCidrs)") != NULL) {
        ctl_hint(ctl, "the prefixes are those of the document of kind ClusterSettings (nodectl "
                      "export clustersettings). Apply it with one more; its list replaces the one "
                      "that is there, so keep the others. See: nodectl explain "
                      "clustersettings.allowedCidrs");
    }
}

/* Where there is more than one refusal: all of them, each with its place. */
static void tell_all(struct ctl *ctl, const Jury__V1__Status *status, const struct spec_set *set)
{
    if (status == NULL || status->n_refusals < 2) {
        return;
    }
    for (size_t i = 0; i < status->n_refusals; i++) {
        const Jury__V1__Refusal *refusal = status->refusals[i];
        struct spec_error error = {.at = {0, 0}};

        if (refusal->document_index >= set->n_documents) {
            continue;
        }
        snprintf(error.message.text, sizeof error.message.text, "%s", refusal->message);
        advise_prefixes(ctl, refusal->message);
        spec_locate(set, refusal->document_index, &error);
        load_put_error(ctl, err_from_reason(refusal->reason),
                       set->files[set->documents[refusal->document_index].file], &error);
    }
    bool has_more = status->n_refusals >= SPEC_ERRORS; /* an agent tells as many */
    json_object_set_new(ctl->failure.metadata, "hasMoreErrors", json_boolean(has_more));
    if (has_more) {
        ctl_hint(ctl,
                 "the cluster refuses this, and nothing was changed; there may be more, these are "
                 "the first %d",
                 SPEC_ERRORS);
    } else {
        ctl_hint(ctl, "the cluster refuses this, and nothing was changed");
    }
}

int change_set_send(struct ctl *ctl, struct change_set *changes, const struct spec_set *documents)
{
    int rc = ctl_call(ctl, "jury.v1.ConfigService/Apply", &changes->request.base, &changes->result);

    if (rc != 0) {
        advise_prefixes(ctl, ctl->failure.message.text);
    }
    if (rc != 0 && documents != NULL && name_document(ctl, rc, documents) && rc != ERR_FORCE) {
        struct rpc_result all = {0};

        tell_all(ctl, ask_all(ctl, changes, &all), documents);
        rpc_result_close(&all);
    }
    return rc;
}

const Jury__V1__ApplyResponse *change_set_answer(const struct change_set *changes)
{
    return (const Jury__V1__ApplyResponse *)(const void *)changes->result.response;
}

void change_set_close(struct change_set *changes)
{
    rpc_result_close(&changes->result);
    wire_arena_close(&changes->arena);
}

const char *change_plan_word(Jury__V1__ApplyAction action)
{
    switch (action) {
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_CREATE:
        return "create";
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE:
        return "change";
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_NOTHING:
        return "nothing";
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_DELETE:
        return "delete";
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_UNSPECIFIED:
    case _JURY__V1__APPLY_ACTION_IS_INT_SIZE:
        break;
    }
    return "unknown";
}

const char *change_done_word(Jury__V1__ApplyAction action)
{
    switch (action) {
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_CREATE:
        return "created";
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE:
        return "configured";
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_NOTHING:
        return "unchanged";
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_DELETE:
        return "deleted";
    case JURY__V1__APPLY_ACTION__APPLY_ACTION_UNSPECIFIED:
    case _JURY__V1__APPLY_ACTION_IS_INT_SIZE:
        break;
    }
    return "applied";
}
