#include "nodectl/apply_changes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/spec/diff.h"
#include "common/wire/json.h"
#include "common/wire/object.h"
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/listener.pb-c.h"
#include "nodectl/connect.h"

#define NAMES_MAX 3
#define FIELDS_MAX 12 /* told of one object that was applied */

/* --- as it was --- */

/* The group as it is. */
static int ask_group(struct ctl *ctl, const char *name, void **ret_group)
{
    char copy[LIMIT_NAME_BYTES + 1];
    Jury__V1__GetGroupRequest request;
    struct rpc_result result = {0};
    struct server_group *group = calloc(1, sizeof *group);

    jury__v1__get_group_request__init(&request);
    snprintf(copy, sizeof copy, "%s", name);
    request.name = copy;
    int rc = group == NULL ? ERR_NOMEM
                           : ctl_try(ctl, "jury.v1.GroupService/GetGroup", &request.base, &result);
    if (rc == 0) {
        const Jury__V1__GetGroupResponse *answer =
            (const Jury__V1__GetGroupResponse *)(const void *)result.response;

        rc = answer->group == NULL ? ERR_INVALID : wire_group_read(answer->group, group, NULL);
    }
    rpc_result_close(&result);
    if (rc != 0) {
        free(group);
        return rc;
    }
    *ret_group = group;
    return 0;
}

static int ask_settings(struct ctl *ctl, void **ret_settings)
{
    Jury__V1__GetSettingsRequest request;
    struct rpc_result result = {0};
    struct cluster_settings *settings = calloc(1, sizeof *settings);

    jury__v1__get_settings_request__init(&request);
    int rc = settings == NULL
                 ? ERR_NOMEM
                 : ctl_try(ctl, "jury.v1.ClusterService/GetSettings", &request.base, &result);
    if (rc == 0) {
        const Jury__V1__GetSettingsResponse *answer =
            (const Jury__V1__GetSettingsResponse *)(const void *)result.response;

        rc = answer->settings == NULL ? ERR_INVALID
                                      : wire_settings_read(answer->settings, settings, NULL);
    }
    rpc_result_close(&result);
    if (rc != 0) {
        free(settings);
        return rc;
    }
    *ret_settings = settings;
    return 0;
}

/* There is no question for one listener: each of a page, to the document that is of it. */
static int keep_listener(struct befores *befores, const Jury__V1__Listener *message)
{
    for (uint32_t i = 0; i < befores->set->n_documents && i < BEFORES_MAX; i++) {
        const struct spec_document *document = &befores->set->documents[i];

        if (document->kind != SPEC_LISTENER || befores->objects[i] != NULL ||
            strcmp(document->u.listener->name, message->name) != 0) {
            continue;
        }
        struct listener *listener = calloc(1, sizeof *listener);
        int rc = listener == NULL ? ERR_NOMEM : wire_listener_read(message, listener, NULL);
        if (rc != 0) {
            free(listener);
            return rc;
        }
        befores->objects[i] = listener;
    }
    return 0;
}

static int ask_listeners(struct ctl *ctl, struct befores *befores)
{
    char *token = NULL;
    int rc = 0;

    do {
        Jury__V1__ListListenersRequest request;
        struct rpc_result result = {0};

        jury__v1__list_listeners_request__init(&request);
        request.page_token = token != NULL ? token : request.page_token;
        rc = ctl_try(ctl, "jury.v1.ListenerService/ListListeners", &request.base, &result);
        free(token);
        token = NULL;
        if (rc == 0) {
            const Jury__V1__ListListenersResponse *page =
                (const Jury__V1__ListListenersResponse *)(const void *)result.response;

            for (size_t i = 0; rc == 0 && i < page->n_listeners; i++) {
                const Jury__V1__Listener *listener = page->listeners[i]->listener;

                rc = listener == NULL ? ERR_INVALID : keep_listener(befores, listener);
            }
            token = page->next_page_token[0] != '\0' ? strdup(page->next_page_token) : NULL;
        }
        rpc_result_close(&result);
    } while (rc == 0 && token != NULL);
    free(token);
    return rc;
}

int befores_ask(struct ctl *ctl, const struct spec_set *set, struct befores *befores)
{
    bool has_listeners = false;
    int rc = 0;

    befores->set = set;
    for (uint32_t i = 0; i < set->n_documents && i < BEFORES_MAX; i++) {
        const struct spec_document *document = &set->documents[i];

        if (document->kind == SPEC_GROUP) {
            rc = ask_group(ctl, document->u.group->name, &befores->objects[i]);
        } else if (document->kind == SPEC_CLUSTER_SETTINGS) {
            rc = ask_settings(ctl, &befores->objects[i]);
        }
        has_listeners = has_listeners || document->kind == SPEC_LISTENER;
        if (rc != 0 && rc != ERR_NOTFOUND) {
            break;
        }
        rc = 0;
    }
    if (rc == 0 && has_listeners) {
        rc = ask_listeners(ctl, befores);
    }
    if (rc == ERR_NOLEADER) {
        return ctl_fail_unchanged(ctl);
    }
    return rc == ERR_UNREACHABLE || rc == ERR_TIMEOUT ? rc : 0;
}

void befores_close(struct befores *befores)
{
    for (size_t i = 0; i < BEFORES_MAX; i++) {
        if (befores->objects[i] != NULL && befores->set->documents[i].kind == SPEC_GROUP) {
            server_group_close(befores->objects[i]);
        }
        free(befores->objects[i]);
    }
}

/* --- what changes --- */

static bool has_backend(const struct server_group *group, const struct endpoint *at)
{
    for (uint32_t i = 0; i < group->n_backends; i++) {
        if (endpoint_compare(&group->backends[i].at, at) == 0) {
            return true;
        }
    }
    return false;
}

/* "removes 10.0.0.3:80, 10.0.0.4:80", "..., 10.0.0.5:80 and 4 more": those that the other has not.
 * Returns their number. */
static uint32_t put_missing(FILE *out, const char *verb, const struct server_group *group,
                            const struct server_group *other)
{
    char text[ENDPOINT_TEXT_BYTES];
    uint32_t n = 0;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct endpoint *at = &group->backends[i].at;

        if (!has_backend(other, at) && ++n <= NAMES_MAX) {
            fprintf(out, "%s%s", n == 1 ? verb : ", ", endpoint_format(at, text));
        }
    }
    if (n > NAMES_MAX) {
        fprintf(out, " and %" PRIu32 " more", n - NAMES_MAX);
    }
    return n;
}

void befores_put_backends(FILE *out, const struct befores *befores, size_t index)
{
    if (index >= BEFORES_MAX || befores->objects[index] == NULL ||
        befores->set->documents[index].kind != SPEC_GROUP) {
        return;
    }
    const struct server_group *before = befores->objects[index];
    const struct server_group *after = befores->set->documents[index].u.group;
    uint32_t n_added = put_missing(out, ": adds ", after, before);
    uint32_t n_removed = put_missing(out, n_added > 0 ? "; removes " : ": removes ", before, after);

    if (n_added + n_removed > 0) {
        fprintf(out, " (%" PRIu32 " -> %" PRIu32 " backends)", before->n_backends,
                after->n_backends);
    }
}

/* False: it is not known, or nothing was there. ret_changes: spec_changes_close when true. */
static bool find_changes(const struct befores *befores, size_t index,
                         struct spec_changes *ret_changes)
{
    if (index >= BEFORES_MAX || befores->objects[index] == NULL) {
        return false;
    }
    const struct spec_document *document = &befores->set->documents[index];
    const void *after = document->u.group;

    if (document->kind == SPEC_LISTENER) {
        after = document->u.listener;
    } else if (document->kind == SPEC_CLUSTER_SETTINGS) {
        after = document->u.settings;
    }
    return spec_diff((enum spec_kind)document->kind, befores->objects[index], after, ret_changes) ==
           0;
}

static void put_change(FILE *out, const struct spec_change *change)
{
    const char *one = change->before == NULL ? change->after : change->before;

    if (change->before != NULL && change->after != NULL) {
        fprintf(out, "    ~ %s %s -> %s\n", change->path, change->before, change->after);
    } else { /* an element of a list has no text beside its path */
        fprintf(out, "    %c %s%s%s\n", change->before == NULL ? '+' : '-', change->path,
                one[0] != '\0' ? " " : "", one);
    }
}

/* A backend as a whole: the line of its group names it. */
static bool is_backend(const struct spec_change *change)
{
    return (change->before == NULL || change->after == NULL) &&
           strncmp(change->path, "backend ", strlen("backend ")) == 0 &&
           strstr(change->path, ": ") == NULL;
}

void befores_put_fields(FILE *out, const struct befores *befores, size_t index)
{
    struct spec_changes changes = {0};
    uint32_t n = 0;

    if (!find_changes(befores, index, &changes)) {
        return;
    }
    for (uint32_t i = 0; i < changes.n_items; i++) {
        if (!is_backend(&changes.items[i]) && ++n <= FIELDS_MAX) {
            put_change(out, &changes.items[i]);
        }
    }
    if (n > FIELDS_MAX) {
        fprintf(out, "    and %" PRIu32 " more fields\n", n - FIELDS_MAX);
    }
    spec_changes_close(&changes);
}

void befores_put_all(FILE *out, const struct befores *befores, size_t index)
{
    struct spec_changes changes = {0};

    if (!find_changes(befores, index, &changes)) {
        return;
    }
    for (uint32_t i = 0; i < changes.n_items; i++) {
        put_change(out, &changes.items[i]);
    }
    spec_changes_close(&changes);
}

static json_t *changes_json_new(const struct befores *befores, size_t index)
{
    struct spec_changes changes = {0};

    if (!find_changes(befores, index, &changes)) {
        return NULL;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < changes.n_items; i++) {
        const struct spec_change *change = &changes.items[i];

        json_array_append_new(list, json_pack("{s:s, s:s?, s:s?}", "path", change->path, "before",
                                              change->before, "after", change->after));
    }
    spec_changes_close(&changes);
    return list;
}

json_t *befores_json_new(const struct befores *befores, const Jury__V1__ApplyResponse *answer)
{
    json_t *json = wire_json_new(&answer->base);
    json_t *results = json_object_get(json, "results");

    for (size_t i = 0; i < answer->n_results && i < json_array_size(results); i++) {
        if (answer->results[i]->action != JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE) {
            continue;
        }
        json_t *list = changes_json_new(befores, i);
        if (list != NULL) {
            json_object_set_new(json_array_get(results, i), "changes", list);
        }
    }
    return json;
}
