/* Documents to commands. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/handlers_part.h"
#include "agent/rpc/rpc_internal.h"
#include "common/base/str.h"
#include "common/model/advice.h"
#include "common/wire/object.h"
#include "jury/v1/config.pb-c.h"

/* --- apply --- */

static int read_name(const char *name, char **ret_name, struct errmsg *err)
{
    if (name[0] == '\0' || strlen(name) > LIMIT_NAME_BYTES) {
        return errmsg_set(err, ERR_INVALID, "deletion.name must be 1..%d bytes, got %zu",
                          LIMIT_NAME_BYTES, strlen(name));
    }
    *ret_name = strdup(name);
    return *ret_name != NULL ? 0 : errmsg_set(err, ERR_NOMEM, "out of memory");
}

static int read_deletion(const Jury__V1__Deletion *deletion, struct change *change,
                         struct errmsg *err)
{
    switch ((int)deletion->kind) {
    case JURY__V1__OBJECT_KIND__OBJECT_KIND_GROUP:
        change->kind = CHANGE_DELETE_GROUP;
        return read_name(deletion->name, &change->u.name, err);
    case JURY__V1__OBJECT_KIND__OBJECT_KIND_LISTENER:
        change->kind = CHANGE_DELETE_LISTENER;
        return read_name(deletion->name, &change->u.name, err);
    case JURY__V1__OBJECT_KIND__OBJECT_KIND_KEY:
        change->kind = CHANGE_DELETE_KEY;
        return read_name(deletion->name, &change->u.name, err);
    case JURY__V1__OBJECT_KIND__OBJECT_KIND_NODE:
        change->kind = CHANGE_DELETE_NODE;
        if (str_parse_u64(deletion->name, UINT64_MAX, &change->u.node_id)) {
            return 0;
        }
        return errmsg_set(err, ERR_INVALID, "deletion.name of a node must be its id, got \"%.64s\"",
                          deletion->name);
    default:
        return errmsg_set(err, ERR_INVALID,
                          "deletion.kind must be group, listener, node or key, got the number %d",
                          (int)deletion->kind);
    }
}

/* The object of a document into memory of the change. */
static int read_group(const Jury__V1__ServerGroup *message, struct change *change,
                      struct errmsg *err)
{
    change->kind = CHANGE_PUT_GROUP;
    change->u.group = calloc(1, sizeof *change->u.group);
    return change->u.group != NULL ? wire_group_read(message, change->u.group, err)
                                   : errmsg_set(err, ERR_NOMEM, "out of memory");
}

static int read_listener(const Jury__V1__Listener *message, struct change *change,
                         struct errmsg *err)
{
    change->kind = CHANGE_PUT_LISTENER;
    change->u.listener = calloc(1, sizeof *change->u.listener);
    return change->u.listener != NULL ? wire_listener_read(message, change->u.listener, err)
                                      : errmsg_set(err, ERR_NOMEM, "out of memory");
}

static int read_settings(const Jury__V1__ClusterSettings *message, struct change *change,
                         struct errmsg *err)
{
    change->kind = CHANGE_PUT_SETTINGS;
    change->u.settings = calloc(1, sizeof *change->u.settings);
    return change->u.settings != NULL ? wire_settings_read(message, change->u.settings, err)
                                      : errmsg_set(err, ERR_NOMEM, "out of memory");
}

static int read_node(const Jury__V1__MemberNode *message, struct change *change, struct errmsg *err)
{
    change->kind = CHANGE_PUT_NODE;
    change->u.node = calloc(1, sizeof *change->u.node);
    return change->u.node != NULL ? wire_node_read(message, change->u.node, err)
                                  : errmsg_set(err, ERR_NOMEM, "out of memory");
}

static int read_key(const Jury__V1__AccessKey *message, struct change *change, struct errmsg *err)
{
    change->kind = CHANGE_PUT_KEY;
    change->u.key = calloc(1, sizeof *change->u.key);
    return change->u.key != NULL ? wire_key_read(message, change->u.key, err)
                                 : errmsg_set(err, ERR_NOMEM, "out of memory");
}

static int read_document(const Jury__V1__Document *document, struct change *change,
                         struct errmsg *err)
{
    if (document->precondition_case == JURY__V1__DOCUMENT__PRECONDITION_EXPECTED_REVISION) {
        change->has_expected_revision = true;
        change->expected_revision = document->expected_revision;
    }
    switch ((int)document->object_case) {
    case JURY__V1__DOCUMENT__OBJECT_GROUP:
        return read_group(document->group, change, err);
    case JURY__V1__DOCUMENT__OBJECT_LISTENER:
        return read_listener(document->listener, change, err);
    case JURY__V1__DOCUMENT__OBJECT_SETTINGS:
        return read_settings(document->settings, change, err);
    case JURY__V1__DOCUMENT__OBJECT_NODE:
        return read_node(document->node, change, err);
    case JURY__V1__DOCUMENT__OBJECT_KEY:
        return read_key(document->key, change, err);
    case JURY__V1__DOCUMENT__OBJECT_DELETION:
        return read_deletion(document->deletion, change, err);
    default:
        return errmsg_set(err, ERR_INVALID, "a document holds no object");
    }
}

void part_force_read(const Jury__V1__Force *force, struct command *command)
{
    if (force != NULL) {
        command->is_forced = true;
        command->forced_count = force->count;
    }
}

int handle_apply_command(const ProtobufCMessage *request, struct command *ret_command,
                         uint32_t *ret_index, struct errmsg *err)
{
    const Jury__V1__ApplyRequest *apply = (const Jury__V1__ApplyRequest *)request;
    struct command command = {0};

    *ret_index = UINT32_MAX;
    if (apply->n_documents == 0 || apply->n_documents > LIMIT_CHANGES_PER_COMMAND) {
        return errmsg_set(err, apply->n_documents == 0 ? ERR_INVALID : ERR_LIMIT,
                          "documents must be 1..%d, got %zu", LIMIT_CHANGES_PER_COMMAND,
                          apply->n_documents);
    }
    part_force_read(apply->force, &command);
    command.changes = calloc(apply->n_documents, sizeof *command.changes);
    if (command.changes == NULL) {
        return errmsg_set(err, ERR_NOMEM, "out of memory");
    }
    command.n_changes = (uint32_t)apply->n_documents;
    for (uint32_t i = 0; i < command.n_changes; i++) {
        int rc = read_document(apply->documents[i], &command.changes[i], err);

        if (rc != 0) {
            *ret_index = i;
            command_close(&command);
            return rc;
        }
    }
    *ret_command = command;
    return 0;
}

static Jury__V1__ApplyAction action_of(const Jury__V1__Document *document,
                                       enum apply_outcome outcome)
{
    if (document->object_case == JURY__V1__DOCUMENT__OBJECT_DELETION) {
        return JURY__V1__APPLY_ACTION__APPLY_ACTION_DELETE;
    }
    switch (outcome) {
    case OUTCOME_CREATED:
        return JURY__V1__APPLY_ACTION__APPLY_ACTION_CREATE;
    case OUTCOME_CHANGED:
        return JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE;
    case OUTCOME_UNCHANGED:
        return JURY__V1__APPLY_ACTION__APPLY_ACTION_NOTHING;
    case OUTCOME_NONE:
        break;
    }
    return JURY__V1__APPLY_ACTION__APPLY_ACTION_UNSPECIFIED;
}

static void name_object(struct wire_arena *arena, const Jury__V1__Document *document,
                        Jury__V1__DocumentResult *result)
{
    switch ((int)document->object_case) {
    case JURY__V1__DOCUMENT__OBJECT_GROUP:
        result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_GROUP;
        result->name = wire_text(arena, document->group->name);
        break;
    case JURY__V1__DOCUMENT__OBJECT_LISTENER:
        result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_LISTENER;
        result->name = wire_text(arena, document->listener->name);
        break;
    case JURY__V1__DOCUMENT__OBJECT_SETTINGS:
        result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_SETTINGS;
        break;
    case JURY__V1__DOCUMENT__OBJECT_NODE:
        result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_NODE;
        result->name = wire_format(arena, "%" PRIu64, document->node->node_id);
        break;
    case JURY__V1__DOCUMENT__OBJECT_KEY:
        result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_KEY;
        result->name = wire_text(arena, document->key->name);
        break;
    case JURY__V1__DOCUMENT__OBJECT_DELETION:
        result->kind = document->deletion->kind;
        result->name = wire_text(arena, document->deletion->name);
        break;
    default:
        break;
    }
}

static void put_warnings(struct wire_arena *arena, const struct advice_due due[], size_t n,
                         Jury__V1__DocumentResult *result)
{
    result->warnings = wire_alloc_array(arena, n, sizeof *result->warnings);
    for (size_t i = 0; result->warnings != NULL && i < n; i++) {
        char field[ADVICE_FIELD_BYTES];
        Jury__V1__Warning *warning = WIRE_NEW(arena, Jury__V1__Warning, jury__v1__warning);

        if (warning != NULL) {
            warning->id = wire_text(arena, due[i].row->id);
            warning->field = wire_text(arena, advice_field(&due[i], field));
            warning->text = wire_text(arena, due[i].row->warning);
            result->warnings[result->n_warnings++] = warning;
        }
    }
}

/* The same as nodectl prints of a document, for clients that have no other. It was applied, so it
 * can be read. */
static void warn(struct wire_arena *arena, const Jury__V1__Document *document,
                 Jury__V1__DocumentResult *result)
{
    struct advice_due due[N_ADVICE];
    struct server_group group = {0};
    struct cluster_settings settings = {0};
    struct member_node node = {0};

    if (document->object_case == JURY__V1__DOCUMENT__OBJECT_GROUP) {
        if (wire_group_read(document->group, &group, NULL) == 0) {
            put_warnings(arena, due, advice_of_group(&group, due), result);
        }
        server_group_close(&group);
    } else if (document->object_case == JURY__V1__DOCUMENT__OBJECT_SETTINGS &&
               wire_settings_read(document->settings, &settings, NULL) == 0) {
        put_warnings(arena, due, advice_of_settings(&settings, due), result);
    } else if (document->object_case == JURY__V1__DOCUMENT__OBJECT_NODE &&
               wire_node_read(document->node, &node, NULL) == 0) {
        put_warnings(arena, due, advice_of_node(&node, due), result);
    }
}

ProtobufCMessage *handle_apply_answer_new(struct wire_arena *arena, const ProtobufCMessage *request,
                                          const struct apply_answer *answer)
{
    const Jury__V1__ApplyRequest *apply = (const Jury__V1__ApplyRequest *)request;
    Jury__V1__ApplyResponse *response =
        WIRE_NEW(arena, Jury__V1__ApplyResponse, jury__v1__apply_response);

    if (response == NULL) {
        return NULL;
    }
    response->revision = answer->revision;
    response->results = wire_alloc_array(arena, apply->n_documents, sizeof *response->results);
    for (uint32_t i = 0; response->results != NULL && i < apply->n_documents; i++) {
        Jury__V1__DocumentResult *result =
            WIRE_NEW(arena, Jury__V1__DocumentResult, jury__v1__document_result);

        if (result == NULL) {
            break;
        }
        name_object(arena, apply->documents[i], result);
        result->action = action_of(apply->documents[i], apply_outcome(answer, i));
        warn(arena, apply->documents[i], result);
        response->results[response->n_results++] = result;
    }
    return &response->base;
}
