/* delete, group delete, listener delete, backend remove: what is no longer wanted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/spec/field.h"
#include "jury/v1/config.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "nodectl/backend_ref.h"
#include "nodectl/change_set.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/load.h"
#include "nodectl/render.h"
#include "nodectl/suggest.h"

#define REMOVE_TRIES 5 /* the group was changed by somebody else meanwhile */

/* --- documents --- */

static Jury__V1__ObjectKind object_kind(enum spec_kind kind)
{
    switch (kind) {
    case SPEC_GROUP:
        return JURY__V1__OBJECT_KIND__OBJECT_KIND_GROUP;
    case SPEC_LISTENER:
        return JURY__V1__OBJECT_KIND__OBJECT_KIND_LISTENER;
    case SPEC_NODE:
        return JURY__V1__OBJECT_KIND__OBJECT_KIND_NODE;
    case SPEC_KEY:
        return JURY__V1__OBJECT_KIND__OBJECT_KIND_KEY;
    case SPEC_CLUSTER_SETTINGS:
    case SPEC_KIND_NONE:
        break;
    }
    return JURY__V1__OBJECT_KIND__OBJECT_KIND_UNSPECIFIED;
}

static int fill_deletions(struct ctl *ctl, const struct spec_set *set, struct change_set *changes)
{
    int rc = change_set_init(ctl, changes, set->n_documents);

    for (uint32_t i = 0; rc == 0 && i < set->n_documents; i++) {
        const struct spec_document *document = &set->documents[i];
        Jury__V1__ObjectKind kind = object_kind((enum spec_kind)document->kind);
        char name[LIMIT_NAME_BYTES + 8];

        if (kind == JURY__V1__OBJECT_KIND__OBJECT_KIND_UNSPECIFIED) {
            return ctl_fail(ctl, ERR_USAGE, "%s:%u: the cluster settings cannot be deleted",
                            set->files[document->file], (unsigned)document->at.line);
        }
        rc = change_set_delete(ctl, changes, i, kind,
                               spec_document_name(document, name, sizeof name));
    }
    return rc;
}

static void put_deleted(struct ctl *ctl, const struct spec_set *set,
                        const Jury__V1__ApplyResponse *answer)
{
    bool is_dry_run = ctl_has(ctl, FLAG_DRY_RUN);
    char object[LOAD_OBJECT_BYTES];

    for (uint32_t i = 0; i < set->n_documents; i++) {
        if (is_dry_run) {
            fprintf(ctl->out, "%-8s %s\n", "delete", load_object(&set->documents[i], object));
        } else {
            load_put_name(ctl->out, &set->documents[i]);
            fputs(" deleted\n", ctl->out);
        }
    }
    if (is_dry_run) {
        fprintf(ctl->out, "checked against revision %" PRIu64 "; nothing was deleted\n",
                answer->revision);
    } else {
        fprintf(ctl->out, "deleted %" PRIu32 " object%s as revision %" PRIu64 "\n",
                set->n_documents, set->n_documents == 1 ? "" : "s", answer->revision);
    }
}

int cmd_delete(struct ctl *ctl)
{
    struct spec_set set = {0};
    struct change_set changes = {0};
    int rc = load_documents(ctl, &set);

    if (rc == 0) {
        rc = fill_deletions(ctl, &set, &changes);
    }
    if (rc == 0) {
        rc = change_set_send(ctl, &changes, &set);
    }
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, &change_set_answer(&changes)->base);
    } else if (rc == 0) {
        put_deleted(ctl, &set, change_set_answer(&changes));
    }
    change_set_close(&changes);
    spec_set_close(&set);
    return rc;
}

/* --- one object by its name --- */

static int delete_named(struct ctl *ctl, Jury__V1__ObjectKind kind, const char *path)
{
    struct change_set changes = {0};
    const char *name = ctl->args[0];
    int rc = change_set_init(ctl, &changes, 1);

    if (rc == 0) {
        rc = change_set_delete(ctl, &changes, 0, kind, name);
    }
    if (rc == 0) {
        rc = change_set_send(ctl, &changes, NULL);
        if (rc == ERR_NOTFOUND && kind == JURY__V1__OBJECT_KIND__OBJECT_KIND_GROUP) {
            suggest_group(ctl, name);
        } else if (rc == ERR_NOTFOUND) {
            ctl_hint(ctl, "see: nodectl %s list", path);
        }
    }
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, &change_set_answer(&changes)->base);
    } else if (rc == 0) {
        fprintf(ctl->out, "%s/%s %s revision %" PRIu64 "\n", path, name,
                ctl_has(ctl, FLAG_DRY_RUN) ? "could be deleted at" : "deleted as",
                change_set_answer(&changes)->revision);
    }
    change_set_close(&changes);
    return rc;
}

int cmd_group_delete(struct ctl *ctl)
{
    return delete_named(ctl, JURY__V1__OBJECT_KIND__OBJECT_KIND_GROUP, "group");
}

int cmd_listener_delete(struct ctl *ctl)
{
    return delete_named(ctl, JURY__V1__OBJECT_KIND__OBJECT_KIND_LISTENER, "listener");
}

/* --- one backend of a group --- */

/* The group without the backend: false if it has no such one. */
static bool take_out(Jury__V1__ServerGroup *group, const struct backend_ref *ref)
{
    for (size_t i = 0; i < group->n_backends; i++) {
        if (group->backends[i]->port == ref->ref.port &&
            strcmp(group->backends[i]->address, ref->address) == 0) {
            group->backends[i] = group->backends[--group->n_backends];
            return true;
        }
    }
    return false;
}

/* The group as it was read, without the backend, unless somebody changed it since: so no change of
 * anybody is undone. */
static int send_without(struct ctl *ctl, const struct backend_ref *ref,
                        const Jury__V1__GetGroupResponse *was, struct change_set *changes)
{
    int rc = change_set_init(ctl, changes, 1);

    if (rc != 0) {
        return rc;
    }
    if (was->group == NULL || !take_out(was->group, ref)) {
        char endpoint[RENDER_TEXT_BYTES];

        ctl_hint(ctl, "see: nodectl backend list %s", ref->group);
        return ctl_fail(ctl, ERR_NOTFOUND, ERR_SAY_NO_BACKEND,
                        render_endpoint(ref->address, ref->ref.port, endpoint), ref->group);
    }
    Jury__V1__Document *document = changes->request.documents[0];
    document->object_case = JURY__V1__DOCUMENT__OBJECT_GROUP;
    document->group = was->group;
    if (document->precondition_case == JURY__V1__DOCUMENT__PRECONDITION__NOT_SET) {
        document->precondition_case = JURY__V1__DOCUMENT__PRECONDITION_EXPECTED_REVISION;
        document->expected_revision = was->changed_revision;
    }
    return change_set_send(ctl, changes, NULL);
}

static int try_remove(struct ctl *ctl, struct backend_ref *ref, struct change_set *changes)
{
    Jury__V1__GetGroupRequest request;
    struct rpc_result result = {0};

    jury__v1__get_group_request__init(&request);
    request.name = ref->group;
    int rc = ctl_call(ctl, "jury.v1.GroupService/GetGroup", &request.base, &result);
    if (rc == 0) {
        rc = send_without(ctl, ref, (Jury__V1__GetGroupResponse *)(void *)result.response, changes);
    } else if (rc == ERR_NOLEADER) {
        rc = ctl_fail_unchanged(ctl);
    }
    rpc_result_close(&result);
    return rc;
}

int cmd_backend_remove(struct ctl *ctl)
{
    struct backend_ref ref;
    struct change_set changes = {0};
    char endpoint[RENDER_TEXT_BYTES];
    int rc = backend_ref_parse(ctl, ctl->args[0], &ref);

    if (rc != 0) {
        return rc;
    }
    rc = try_remove(ctl, &ref, &changes);
    for (unsigned i = 1;
         rc == ERR_CONFLICT && i < REMOVE_TRIES && !ctl_has(ctl, FLAG_EXPECTED_REVISION); i++) {
        change_set_close(&changes);
        changes = (struct change_set){0};
        rc = try_remove(ctl, &ref, &changes);
    }
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, &change_set_answer(&changes)->base);
    } else if (rc == 0) {
        fprintf(ctl->out, "%s/%s %s revision %" PRIu64 "\n", ref.group,
                render_endpoint(ref.address, ref.ref.port, endpoint),
                ctl_has(ctl, FLAG_DRY_RUN) ? "could be removed at" : "is removed since",
                change_set_answer(&changes)->revision);
    }
    change_set_close(&changes);
    return rc;
}
