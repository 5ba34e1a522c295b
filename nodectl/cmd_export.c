/* export: what the cluster has, as documents that apply takes and that change nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/spec/emit.h"
#include "common/spec/field.h"
#include "common/wire/object.h"
#include "nodectl/change_set.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/suggest.h"

#define ARENA_BYTES ((size_t)512 * 1024 * 1024) /* as for what apply sends */

/* In an order in which they can be applied: prefixes before backends, groups before listeners. */
static const enum spec_kind kinds[] = {SPEC_CLUSTER_SETTINGS, SPEC_NODE, SPEC_KEY, SPEC_GROUP,
                                       SPEC_LISTENER};

/* One argument, "group" or "group/web". */
struct selection {
    const char *name; /* NULL: all of the kind */
    uint8_t kind;     /* enum spec_kind */
    bool is_found;
};

/* The run: what is asked for, and what was found. */
struct export
{
    struct ctl *ctl;
    struct selection selections[CTL_ARGS_MAX];
    size_t n_selections; /* 0: everything */
    struct spec_set set;
    uint32_t capacity;
};

/* --- what is asked for --- */

static int parse_selection(struct ctl *ctl, const char *text, struct selection *ret_selection)
{
    const char *words[SPEC_N_KINDS];
    char kind[32];
    size_t n = strcspn(text, "/");

    snprintf(kind, sizeof kind, "%.*s", (int)n, text);
    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        words[i] = spec_kinds[i].path;
    }
    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        if (strcasecmp(kind, words[i]) != 0) {
            continue;
        }
        bool has_name = text[n] == '/' && text[n + 1] != '\0';
        if ((text[n] == '/' && !has_name) ||
            (has_name && spec_kinds[i].kind == SPEC_CLUSTER_SETTINGS)) {
            break;
        }
        *ret_selection = (struct selection){.kind = (uint8_t)spec_kinds[i].kind,
                                            .name = has_name ? text + n + 1 : NULL};
        return 0;
    }
    const char *near = spec_nearest(kind, words, SPEC_N_KINDS);
    ctl_hint(ctl,
             "%s%s%swrite group, group/NAME, listener/NAME, node/ID, key/NAME or "
             "clustersettings; without any everything is exported",
             near == NULL ? "" : "did you mean \"", near == NULL ? "" : near,
             near == NULL ? "" : "\"? ");
    return ctl_fail(ctl, ERR_USAGE, "what to export is KIND or KIND/NAME, got \"%.160s\"", text);
}

static bool is_kind_wanted(const struct export *run, enum spec_kind kind)
{
    bool is_wanted = run->n_selections == 0;

    for (size_t i = 0; i < run->n_selections; i++) {
        is_wanted = is_wanted || run->selections[i].kind == kind;
    }
    return is_wanted;
}

/* Marks what is found. name NULL: whether all of the kind are wanted. */
static bool is_wanted(struct export *run, enum spec_kind kind, const char *name)
{
    bool is_wanted = run->n_selections == 0;

    for (size_t i = 0; i < run->n_selections; i++) {
        struct selection *selection = &run->selections[i];

        if (selection->kind == kind &&
            (selection->name == NULL || (name != NULL && strcmp(selection->name, name) == 0))) {
            selection->is_found = true;
            is_wanted = true;
        }
    }
    return is_wanted;
}

/* --- what is there --- */

/* Room for one more document, whose object is then owned by the set. NULL: no memory. */
static void *add_document(struct export *run, enum spec_kind kind)
{
    struct spec_set *set = &run->set;

    if (set->n_documents == run->capacity) {
        uint32_t capacity = run->capacity == 0 ? 64 : run->capacity * 2;
        struct spec_document *grown = realloc(set->documents, capacity * sizeof *grown);

        if (grown == NULL) {
            return NULL;
        }
        set->documents = grown;
        run->capacity = capacity;
    }
    void *object = calloc(1, spec_kind_info(kind)->bytes);
    if (object != NULL) {
        set->documents[set->n_documents] = (struct spec_document){.kind = (uint8_t)kind};
        set->documents[set->n_documents++].u.group = object;
    }
    return object;
}

static int read_message(const ProtobufCMessage *message, enum spec_kind kind, void *object,
                        struct errmsg *err)
{
    const void *from = message;

    switch (kind) {
    case SPEC_GROUP:
        return wire_group_read(from, object, err);
    case SPEC_LISTENER:
        return wire_listener_read(from, object, err);
    case SPEC_CLUSTER_SETTINGS:
        return wire_settings_read(from, object, err);
    case SPEC_NODE:
        return wire_node_read(from, object, err);
    case SPEC_KEY:
        return wire_key_read(from, object, err);
    case SPEC_KIND_NONE:
        break;
    }
    return ERR_INTERNAL;
}

/* message: of the kind; NULL is no answer. */
static int add(struct export *run, enum spec_kind kind, const ProtobufCMessage *message)
{
    struct errmsg err = {{0}};
    void *object = add_document(run, kind);

    if (object == NULL) {
        return ctl_fail(run->ctl, ERR_NOMEM, "out of memory");
    }
    if (message == NULL || read_message(message, kind, object, &err) != 0) {
        return ctl_fail(run->ctl, ERR_INTERNAL, "the answer cannot be understood: %s", err.text);
    }
    return 0;
}

static int add_settings(struct export *run)
{
    Jury__V1__GetSettingsRequest request;
    struct rpc_result result = {0};

    jury__v1__get_settings_request__init(&request);
    int rc = ctl_call(run->ctl, "jury.v1.ClusterService/GetSettings", &request.base, &result);
    if (rc == 0) {
        const Jury__V1__GetSettingsResponse *answer =
            (const Jury__V1__GetSettingsResponse *)(const void *)result.response;

        is_wanted(run, SPEC_CLUSTER_SETTINGS, NULL);
        rc = add(run, SPEC_CLUSTER_SETTINGS,
                 answer->settings == NULL ? NULL : &answer->settings->base);
    }
    if (rc == 0 && !ctl_has(run->ctl, FLAG_FULL)) { /* as of a group (emit.h) */
        struct cluster_settings *settings = run->set.documents[0].u.settings;

        settings->hold = settings->hold == HOLD_OFF ? HOLD_KEEP : settings->hold;
    }
    rpc_result_close(&result);
    return rc;
}

static int add_nodes(struct export *run)
{
    Jury__V1__ListMembersRequest request;
    struct rpc_result result = {0};
    char id[24];

    jury__v1__list_members_request__init(&request);
    int rc = ctl_call(run->ctl, "jury.v1.ClusterService/ListMembers", &request.base, &result);
    const Jury__V1__ListMembersResponse *answer =
        (const Jury__V1__ListMembersResponse *)(const void *)result.response;
    for (size_t i = 0; rc == 0 && i < answer->n_members; i++) {
        const Jury__V1__MemberNode *node = answer->members[i]->node;

        snprintf(id, sizeof id, "%" PRIu64, node == NULL ? 0 : node->node_id);
        if (is_wanted(run, SPEC_NODE, id)) {
            rc = add(run, SPEC_NODE, node == NULL ? NULL : &node->base);
        }
    }
    rpc_result_close(&result);
    return rc;
}

static int add_keys(struct export *run)
{
    Jury__V1__ListKeysRequest request;
    struct rpc_result result = {0};

    jury__v1__list_keys_request__init(&request);
    int rc = ctl_call(run->ctl, "jury.v1.KeyService/ListKeys", &request.base, &result);
    const Jury__V1__ListKeysResponse *answer =
        (const Jury__V1__ListKeysResponse *)(const void *)result.response;
    for (size_t i = 0; rc == 0 && i < answer->n_keys; i++) {
        const Jury__V1__AccessKey *key = answer->keys[i]->key;

        if (is_wanted(run, SPEC_KEY, key == NULL ? "" : key->name)) {
            rc = add(run, SPEC_KEY, key == NULL ? NULL : &key->base);
        }
    }
    rpc_result_close(&result);
    return rc;
}

static int add_listeners(struct export *run)
{
    Jury__V1__ListListenersRequest request;
    struct ctl_list list = {0};

    jury__v1__list_listeners_request__init(&request);
    int rc = ctl_call_list(run->ctl, "jury.v1.ListenerService/ListListeners", &request.base, &list);
    const Jury__V1__ListListenersResponse *answer =
        (const Jury__V1__ListListenersResponse *)(const void *)list.whole;
    for (size_t i = 0; rc == 0 && i < answer->n_listeners; i++) {
        const Jury__V1__Listener *listener = answer->listeners[i]->listener;

        if (is_wanted(run, SPEC_LISTENER, listener == NULL ? "" : listener->name)) {
            rc = add(run, SPEC_LISTENER, listener == NULL ? NULL : &listener->base);
        }
    }
    ctl_list_close(&list);
    return rc;
}

static int add_group(struct export *run, char *name)
{
    Jury__V1__GetGroupRequest request;
    struct rpc_result result = {0};

    jury__v1__get_group_request__init(&request);
    request.name = name;
    int rc = ctl_call(run->ctl, "jury.v1.GroupService/GetGroup", &request.base, &result);
    if (rc == 0) {
        const Jury__V1__GetGroupResponse *answer =
            (const Jury__V1__GetGroupResponse *)(const void *)result.response;

        rc = add(run, SPEC_GROUP, answer->group == NULL ? NULL : &answer->group->base);
    }
    rpc_result_close(&result);
    return rc;
}

/* The list has the names, the answer on each has the group. */
static int add_groups(struct export *run)
{
    Jury__V1__ListGroupsRequest request;
    struct ctl_list list = {0};

    jury__v1__list_groups_request__init(&request);
    int rc = ctl_call_list(run->ctl, "jury.v1.GroupService/ListGroups", &request.base, &list);
    const Jury__V1__ListGroupsResponse *answer =
        (const Jury__V1__ListGroupsResponse *)(const void *)list.whole;
    for (size_t i = 0; rc == 0 && i < answer->n_groups; i++) {
        const Jury__V1__GroupSummary *group = answer->groups[i];

        if (!group->is_deleted && is_wanted(run, SPEC_GROUP, group->name)) {
            rc = add_group(run, group->name);
        }
    }
    ctl_list_close(&list);
    return rc;
}

static int add_kind(struct export *run, enum spec_kind kind)
{
    switch (kind) {
    case SPEC_CLUSTER_SETTINGS:
        return add_settings(run);
    case SPEC_NODE:
        return add_nodes(run);
    case SPEC_KEY:
        return add_keys(run);
    case SPEC_GROUP:
        return add_groups(run);
    case SPEC_LISTENER:
        return add_listeners(run);
    case SPEC_KIND_NONE:
        break;
    }
    return ERR_INTERNAL;
}

static int check_found(const struct export *run)
{
    for (size_t i = 0; i < run->n_selections; i++) {
        const struct selection *selection = &run->selections[i];
        const struct spec_kind_info *info = spec_kind_info((enum spec_kind)selection->kind);

        if (selection->is_found || selection->name == NULL) {
            continue;
        }
        int rc = ctl_fail(run->ctl, ERR_NOTFOUND, "there is no %s \"%.128s\"", info->object,
                          selection->name);
        if (info->kind == SPEC_GROUP) {
            suggest_group(run->ctl, selection->name);
        } else {
            ctl_hint(run->ctl, "see: nodectl export %s", info->path);
        }
        return rc;
    }
    return 0;
}

/* --- how it is written --- */

static int put_documents(struct export *run)
{
    struct ctl *ctl = run->ctl;
    struct errmsg err = {{0}};
    size_t n_bytes = 0;
    char *text = NULL;
    int rc = (ctl_has(ctl, FLAG_FULL) ? spec_emit : spec_emit_brief)(
        run->set.documents, run->set.n_documents, &text, &n_bytes, &err);

    if (rc == ERR_LIMIT) {
        ctl_hint(ctl, "export some objects at a time: nodectl export group/NAME ...");
    }
    if (rc != 0) {
        return ctl_fail(ctl, rc, "%s", err.text);
    }
    fwrite(text, 1, n_bytes, ctl->out);
    free(text);
    return 0;
}

/* What a program would send to ConfigService/Apply. */
static int put_request(struct export *run)
{
    Jury__V1__ApplyRequest request;
    struct wire_arena arena;
    const size_t n = run->set.n_documents;

    jury__v1__apply_request__init(&request);
    wire_arena_init(&arena, ARENA_BYTES);
    request.documents = wire_alloc_array(&arena, n + 1, sizeof *request.documents);
    for (size_t i = 0; i < n && !arena.failed; i++) {
        request.documents[i] = WIRE_NEW(&arena, Jury__V1__Document, jury__v1__document);
        if (request.documents[i] != NULL) {
            change_put_object(&arena, &run->set.documents[i], request.documents[i]);
        }
    }
    request.n_documents = n;
    int rc = arena.failed ? ctl_fail(run->ctl, ERR_NOMEM, "out of memory")
                          : ctl_print_message(run->ctl, &request.base);
    wire_arena_close(&arena);
    return rc;
}

int cmd_export(struct ctl *ctl)
{
    struct export run = {.ctl = ctl};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < ctl->n_args; i++) {
        rc = parse_selection(ctl, ctl->args[i], &run.selections[run.n_selections++]);
    }
    for (size_t i = 0; rc == 0 && i < sizeof kinds / sizeof kinds[0]; i++) {
        rc = is_kind_wanted(&run, kinds[i]) ? add_kind(&run, kinds[i]) : 0;
    }
    if (rc == 0) {
        rc = check_found(&run);
    }
    if (rc == 0) {
        rc = ctl_is_json(ctl) ? put_request(&run) : put_documents(&run);
    }
    spec_set_close(&run.set);
    return rc;
}
