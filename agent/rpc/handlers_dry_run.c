/* What each document of an apply would do, after the catalog has found nothing against it. */
#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "common/base/str.h"
#include "common/wire/object.h"
#include "common/wire/unpack.h"
#include "jury/v1/config.pb-c.h"

/* Two messages with the same bytes; NULL (out of memory) equals nothing. */
static bool is_same(const struct view *view, const void *a, const void *b)
{
    size_t n_a, n_b;

    if (a == NULL || b == NULL) {
        return false;
    }
    const uint8_t *bytes_a = wire_pack(a, view->arena, &n_a);
    const uint8_t *bytes_b = wire_pack(b, view->arena, &n_b);
    return bytes_a != NULL && bytes_b != NULL && n_a == n_b && memcmp(bytes_a, bytes_b, n_a) == 0;
}

static Jury__V1__ApplyAction action(bool exists, bool same)
{
    return !exists ? JURY__V1__APPLY_ACTION__APPLY_ACTION_CREATE
           : same  ? JURY__V1__APPLY_ACTION__APPLY_ACTION_NOTHING
                   : JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE;
}

/* A document that is silent on an admin state or on hold keeps what is there. */
static void keep_the_unsaid(struct server_group *group, const struct catalog_group *present)
{
    if (group->hold == HOLD_KEEP) {
        group->hold = present->spec.hold;
    }
    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct catalog_backend *backend =
            catalog_backend_find(present, &group->backends[i].at);

        if (group->backends[i].admin_state == ADMIN_NONE) {
            group->backends[i].admin_state =
                backend != NULL ? backend->spec.admin_state : ADMIN_ENABLED;
        }
    }
}

static void result_group(const struct view *view, const Jury__V1__ServerGroup *message,
                         Jury__V1__DocumentResult *result)
{
    const struct catalog_group *present = catalog_group_find(view->catalog, message->name);
    struct server_group group = {0};
    bool same = false;

    result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_GROUP;
    result->name = wire_text(view->arena, message->name);
    if (present != NULL && !present->is_deleted && wire_group_read(message, &group, NULL) == 0) {
        keep_the_unsaid(&group, present);
        same = is_same(view, handle_group_document(view, present),
                       wire_group_new(view->arena, &group));
    }
    result->action = action(present != NULL && !present->is_deleted, same);
    server_group_close(&group);
}

static void result_listener(const struct view *view, const Jury__V1__Listener *message,
                            Jury__V1__DocumentResult *result)
{
    const struct catalog_listener *present = catalog_listener_find(view->catalog, message->name);
    struct listener listener;

    result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_LISTENER;
    result->name = wire_text(view->arena, message->name);
    bool same = present != NULL && wire_listener_read(message, &listener, NULL) == 0 &&
                is_same(view, wire_listener_new(view->arena, &present->spec),
                        wire_listener_new(view->arena, &listener));
    result->action = action(present != NULL, same);
}

static void result_settings(const struct view *view, const Jury__V1__ClusterSettings *message,
                            Jury__V1__DocumentResult *result)
{
    struct cluster_settings settings;

    result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_SETTINGS;
    bool same = wire_settings_read(message, &settings, NULL) == 0;
    if (same) {
        const struct cluster_settings *present = catalog_settings(view->catalog);

        settings.hold = settings.hold == HOLD_KEEP ? present->hold : settings.hold;
        same = is_same(view, wire_settings_new(view->arena, present),
                       wire_settings_new(view->arena, &settings));
    }
    result->action = action(true, same);
}

static void result_node(const struct view *view, const Jury__V1__MemberNode *message,
                        Jury__V1__DocumentResult *result)
{
    const struct catalog_node *present = catalog_node_find(view->catalog, message->node_id);
    struct member_node node;

    result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_NODE;
    result->name = wire_format(view->arena, "%llu", (unsigned long long)message->node_id);
    bool same = present != NULL && wire_node_read(message, &node, NULL) == 0 &&
                is_same(view, wire_node_new(view->arena, &present->spec),
                        wire_node_new(view->arena, &node));
    result->action = action(present != NULL, same);
}

static void result_key(const struct view *view, const Jury__V1__AccessKey *message,
                       Jury__V1__DocumentResult *result)
{
    const struct catalog_key *present = catalog_key_find(view->catalog, message->name);
    struct access_key key;

    result->kind = JURY__V1__OBJECT_KIND__OBJECT_KIND_KEY;
    result->name = wire_text(view->arena, message->name);
    bool same =
        present != NULL && wire_key_read(message, &key, NULL) == 0 &&
        is_same(view, wire_key_new(view->arena, &present->spec), wire_key_new(view->arena, &key));
    result->action = action(present != NULL, same);
}

static Jury__V1__DocumentResult *result_new(const struct view *view,
                                            const Jury__V1__Document *document)
{
    Jury__V1__DocumentResult *result =
        WIRE_NEW(view->arena, Jury__V1__DocumentResult, jury__v1__document_result);

    if (result == NULL) {
        return NULL;
    }
    switch ((int)document->object_case) {
    case JURY__V1__DOCUMENT__OBJECT_GROUP:
        result_group(view, document->group, result);
        break;
    case JURY__V1__DOCUMENT__OBJECT_LISTENER:
        result_listener(view, document->listener, result);
        break;
    case JURY__V1__DOCUMENT__OBJECT_SETTINGS:
        result_settings(view, document->settings, result);
        break;
    case JURY__V1__DOCUMENT__OBJECT_NODE:
        result_node(view, document->node, result);
        break;
    case JURY__V1__DOCUMENT__OBJECT_KEY:
        result_key(view, document->key, result);
        break;
    case JURY__V1__DOCUMENT__OBJECT_DELETION:
        result->kind = document->deletion->kind;
        result->name = wire_text(view->arena, document->deletion->name);
        result->action = JURY__V1__APPLY_ACTION__APPLY_ACTION_DELETE;
        break;
    default:
        break;
    }
    return result;
}

ProtobufCMessage *handle_dry_run_new(const struct view *view, const ProtobufCMessage *request)
{
    const Jury__V1__ApplyRequest *apply = (const Jury__V1__ApplyRequest *)request;
    Jury__V1__ApplyResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ApplyResponse, jury__v1__apply_response);

    if (response == NULL) {
        return NULL;
    }
    response->revision = catalog_revision(view->catalog);
    response->results =
        wire_alloc_array(view->arena, apply->n_documents, sizeof *response->results);
    for (size_t i = 0; response->results != NULL && i < apply->n_documents; i++) {
        Jury__V1__DocumentResult *result = result_new(view, apply->documents[i]);

        if (result == NULL) {
            break;
        }
        response->results[response->n_results++] = result;
    }
    return &response->base;
}
