/* apply and validate: documents, offline and to the cluster. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/spec/advice.h"
#include "common/spec/diff.h"
#include "common/spec/field.h"
#include "common/wire/object.h"
#include "jury/v1/config.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/load.h"
#include "nodectl/render.h"

#define REQUEST_ARENA_BYTES ((size_t)512 * 1024 * 1024) /* every document that a file may hold */

/* --- advice --- */

static void put_advice(struct ctl *ctl, const struct spec_document *document, bool only_warnings)
{
    const struct spec_advice *rows[SPEC_N_ADVICE];
    char object[LOAD_OBJECT_BYTES];
    size_t n = spec_advise(document, rows);

    load_object(document, object);
    for (size_t i = 0; i < n; i++) {
        if (rows[i]->is_warning) {
            ctl_warn(ctl, "%s: %s", object, rows[i]->text);
        } else if (!only_warnings) {
            ctl_note(ctl, "advice: %s: %s", object, rows[i]->text);
        }
    }
}

/* What a shared check comes to, as far as the document tells: of the nodes it says nothing. */
static void put_load(struct ctl *ctl, const struct spec_document *document)
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
                 "%s: each backend sees %.3g probes a second from %u nodes; when one fails, at "
                 "most %.3g of each node in the cluster",
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
    const struct spec_advice *rows[SPEC_N_ADVICE];
    json_t *list = json_array();

    for (uint32_t d = 0; d < set->n_documents; d++) {
        char object[LOAD_OBJECT_BYTES];
        size_t n = spec_advise(&set->documents[d], rows);

        load_object(&set->documents[d], object);
        for (size_t i = 0; i < n; i++) {
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:s, s:b, s:s}", "object", object, "id",
                                            rows[i]->id, "field", rows[i]->path, "warning",
                                            rows[i]->is_warning, "text", rows[i]->text));
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
            put_load(ctl, document);
            put_advice(ctl, document, false);
        }
    }
    spec_set_close(&set);
    return rc;
}

/* --- the request --- */

static void put_object(struct wire_arena *arena, const struct spec_document *from,
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

static int build_request(struct ctl *ctl, const struct spec_set *set, struct wire_arena *arena,
                         Jury__V1__ApplyRequest *request)
{
    Jury__V1__Document **documents =
        wire_alloc_array(arena, set->n_documents, sizeof(Jury__V1__Document *));

    for (uint32_t i = 0; i < set->n_documents && documents != NULL; i++) {
        documents[i] = WIRE_NEW(arena, Jury__V1__Document, jury__v1__document);
        if (documents[i] == NULL) {
            break;
        }
        put_object(arena, &set->documents[i], documents[i]);
        if (ctl_has(ctl, FLAG_EXPECTED_REVISION)) {
            documents[i]->precondition_case = JURY__V1__DOCUMENT__PRECONDITION_EXPECTED_REVISION;
            documents[i]->expected_revision = ctl_number(ctl, FLAG_EXPECTED_REVISION);
        }
    }
    if (arena->failed) {
        return ctl_fail(ctl, ERR_LIMIT, "the documents are too large for one request: split them");
    }
    request->documents = documents;
    request->n_documents = set->n_documents;
    request->dry_run = ctl_has(ctl, FLAG_DRY_RUN);
    if (ctl_has(ctl, FLAG_FORCE)) {
        request->force = WIRE_NEW(arena, Jury__V1__Force, jury__v1__force);
        if (request->force == NULL) {
            return ctl_fail(ctl, ERR_NOMEM, "out of memory");
        }
        request->force->count = (uint32_t)ctl_number(ctl, FLAG_FORCE);
    }
    return 0;
}

/* The server's refusal names a document by its index; a person wants its file and line. */
static void name_document(struct ctl *ctl, const struct spec_set *set)
{
    const json_t *index = ctl->failure.metadata == NULL
                              ? NULL
                              : json_object_get(ctl->failure.metadata, "document_index");
    char line[16];

    if (index == NULL || !json_is_string(index)) {
        return;
    }
    unsigned long at = strtoul(json_string_value(index), NULL, 10);
    if (at >= set->n_documents) {
        return;
    }
    const struct spec_document *document = &set->documents[at];
    snprintf(line, sizeof line, "%u", (unsigned)document->at.line);
    snprintf(ctl->failure.lines, sizeof ctl->failure.lines, "  in the document at %.512s:%s",
             set->files[document->file], line);
    ctl_detail(ctl, "file", set->files[document->file]);
    ctl_detail(ctl, "line", line);
}

/* --- what a dry run would do --- */

static const char *action_word(Jury__V1__ApplyAction action)
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

static void put_changes(struct ctl *ctl, enum spec_kind kind, const void *before, const void *after)
{
    struct spec_changes changes = {0};

    if (spec_diff(kind, before, after, &changes) != 0) {
        return;
    }
    for (uint32_t i = 0; i < changes.n_items; i++) {
        const struct spec_change *change = &changes.items[i];

        if (change->before == NULL) {
            fprintf(ctl->out, "    + %s %s\n", change->path, change->after);
        } else if (change->after == NULL) {
            fprintf(ctl->out, "    - %s %s\n", change->path, change->before);
        } else {
            fprintf(ctl->out, "    ~ %s %s -> %s\n", change->path, change->before, change->after);
        }
    }
    spec_changes_close(&changes);
}

/* The fields of a group that would change; asks for the group as it is. */
static void put_group_changes(struct ctl *ctl, const struct server_group *after)
{
    char name[LIMIT_NAME_BYTES + 1];
    Jury__V1__GetGroupRequest request;
    struct rpc_result result = {0};
    struct server_group before = {0};

    jury__v1__get_group_request__init(&request);
    snprintf(name, sizeof name, "%s", after->name);
    request.name = name;
    if (ctl_call(ctl, "jury.v1.GroupService/GetGroup", &request.base, &result) == 0) {
        const Jury__V1__GetGroupResponse *answer =
            (const Jury__V1__GetGroupResponse *)(const void *)result.response;

        if (answer->group != NULL && wire_group_read(answer->group, &before, NULL) == 0) {
            put_changes(ctl, SPEC_GROUP, &before, after);
            server_group_close(&before);
        }
    }
    rpc_result_close(&result);
}

static void put_settings_changes(struct ctl *ctl, const struct cluster_settings *after)
{
    Jury__V1__GetSettingsRequest request;
    struct rpc_result result = {0};
    struct cluster_settings before = {0};

    jury__v1__get_settings_request__init(&request);
    if (ctl_call(ctl, "jury.v1.ClusterService/GetSettings", &request.base, &result) == 0) {
        const Jury__V1__GetSettingsResponse *answer =
            (const Jury__V1__GetSettingsResponse *)(const void *)result.response;

        if (answer->settings != NULL && wire_settings_read(answer->settings, &before, NULL) == 0) {
            put_changes(ctl, SPEC_CLUSTER_SETTINGS, &before, after);
        }
    }
    rpc_result_close(&result);
}

static void put_dry_run(struct ctl *ctl, const struct spec_set *set,
                        const Jury__V1__ApplyResponse *answer)
{
    for (size_t i = 0; i < answer->n_results && i < set->n_documents; i++) {
        const struct spec_document *document = &set->documents[i];
        Jury__V1__ApplyAction action = answer->results[i]->action;
        char object[LOAD_OBJECT_BYTES];

        fprintf(ctl->out, "%-8s %s\n", action_word(action), load_object(document, object));
        if (action != JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE) {
            continue;
        }
        if (document->kind == SPEC_GROUP) {
            put_group_changes(ctl, document->u.group);
        } else if (document->kind == SPEC_CLUSTER_SETTINGS) {
            put_settings_changes(ctl, document->u.settings);
        }
    }
    fprintf(ctl->out, "checked against revision %" PRIu64 "; nothing was applied\n",
            answer->revision);
}

/* --- apply --- */

/* "group/web"; of the settings there is one. */
static void put_name(FILE *out, const struct spec_document *document)
{
    char name[LIMIT_NAME_BYTES + 8];

    spec_document_name(document, name, sizeof name);
    fprintf(out, "%s%s%s", spec_kind_info((enum spec_kind)document->kind)->path,
            name[0] == '\0' ? "" : "/", name);
}

static const char *done_word(Jury__V1__ApplyAction action)
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

static void put_applied(struct ctl *ctl, const struct spec_set *set,
                        const Jury__V1__ApplyResponse *answer)
{
    size_t n_unchanged = 0;

    for (size_t i = 0; i < answer->n_results && i < set->n_documents; i++) {
        Jury__V1__ApplyAction action = answer->results[i]->action;

        put_name(ctl->out, &set->documents[i]);
        fprintf(ctl->out, " %s\n", done_word(action));
        n_unchanged += action == JURY__V1__APPLY_ACTION__APPLY_ACTION_NOTHING;
    }
    if (n_unchanged == set->n_documents) {
        fprintf(ctl->out, "nothing changed at revision %" PRIu64 "\n", answer->revision);
    } else {
        fprintf(ctl->out, "applied %u document%s as revision %" PRIu64 "\n",
                (unsigned)set->n_documents, set->n_documents == 1 ? "" : "s", answer->revision);
    }
}

static int apply_set(struct ctl *ctl, const struct spec_set *set)
{
    Jury__V1__ApplyRequest request;
    struct wire_arena arena;
    struct rpc_result result = {0};

    jury__v1__apply_request__init(&request);
    wire_arena_init(&arena, REQUEST_ARENA_BYTES);
    int rc = build_request(ctl, set, &arena, &request);
    if (rc == 0) {
        rc = ctl_call(ctl, "jury.v1.ConfigService/Apply", &request.base, &result);
        if (rc != 0) {
            name_document(ctl, set);
        }
    }
    if (rc == 0) {
        const Jury__V1__ApplyResponse *answer =
            (const Jury__V1__ApplyResponse *)(const void *)result.response;

        if (ctl_is_json(ctl)) {
            rc = ctl_print_message(ctl, result.response);
        } else if (ctl_has(ctl, FLAG_DRY_RUN)) {
            put_dry_run(ctl, set, answer);
        } else {
            put_applied(ctl, set, answer);
        }
    }
    rpc_result_close(&result);
    wire_arena_close(&arena);
    return rc;
}

int cmd_apply(struct ctl *ctl)
{
    struct spec_set set = {0};
    int rc = load_documents(ctl, &set);

    if (rc == 0 && ctl_has(ctl, FLAG_EXPECTED_REVISION) && set.n_documents != 1) {
        rc = ctl_fail(ctl, ERR_USAGE,
                      "--expected-revision is about one object, and there are %u documents",
                      (unsigned)set.n_documents);
    }
    for (uint32_t i = 0; rc == 0 && i < set.n_documents; i++) {
        put_load(ctl, &set.documents[i]);
        put_advice(ctl, &set.documents[i], true);
    }
    if (rc == 0) {
        rc = apply_set(ctl, &set);
    }
    spec_set_close(&set);
    return rc;
}
