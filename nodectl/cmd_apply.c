/* apply: documents to the cluster, and what became of each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/spec/diff.h"
#include "common/spec/field.h"
#include "common/wire/object.h"
#include "jury/v1/config.pb-c.h"
#include "nodectl/change_set.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/load.h"
#include "nodectl/remark.h"
#include "nodectl/render.h"

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

/* Every document into the request. */
static int fill_request(struct ctl *ctl, const struct spec_set *set, struct change_set *changes)
{
    int rc = change_set_init(ctl, changes, set->n_documents);

    for (uint32_t i = 0; rc == 0 && i < set->n_documents; i++) {
        put_object(&changes->arena, &set->documents[i], changes->request.documents[i]);
    }
    if (rc == 0 && changes->arena.failed) {
        return ctl_fail(ctl, ERR_LIMIT, "the documents are too large for one request: split them");
    }
    return rc;
}

/* --- what a dry run would do --- */

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

/* The group as it is. *ret_group: given, server_group_close and free; NULL on failure. */
static int ask_before(struct ctl *ctl, const char *name, struct server_group **ret_group)
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

/* The fields of a group that would change. */
static void put_group_changes(struct ctl *ctl, const struct server_group *after)
{
    struct server_group *before = NULL;

    if (ask_before(ctl, after->name, &before) == 0) {
        put_changes(ctl, SPEC_GROUP, before, after);
        server_group_close(before);
        free(before);
    }
}

static void put_settings_changes(struct ctl *ctl, const struct cluster_settings *after)
{
    Jury__V1__GetSettingsRequest request;
    struct rpc_result result = {0};
    struct cluster_settings before = {0};

    jury__v1__get_settings_request__init(&request);
    if (ctl_try(ctl, "jury.v1.ClusterService/GetSettings", &request.base, &result) == 0) {
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

        fprintf(ctl->out, "%-8s %s\n", change_plan_word(action), load_object(document, object));
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

/* The groups of a set as they were before it, for what a change adds and removes; of more documents
 * those of the rest are not asked for. */
#define BEFORES_MAX 64

struct befores {
    struct server_group *groups[BEFORES_MAX]; /* by document; NULL: no group, new, or not known */
    size_t n;
};

/* What cannot be known is not told: the change itself says what is wrong. But where nobody answers
 * or nobody leads, it would only wait once more. Errors: ERR_UNREACHABLE, ERR_TIMEOUT,
 * ERR_NOLEADER. */
static int befores_ask(struct ctl *ctl, const struct spec_set *set, struct befores *befores)
{
    int rc = 0;

    for (; befores->n < set->n_documents && befores->n < BEFORES_MAX; befores->n++) {
        const struct spec_document *document = &set->documents[befores->n];

        if (document->kind != SPEC_GROUP) {
            continue;
        }
        rc = ask_before(ctl, document->u.group->name, &befores->groups[befores->n]);
        if (rc != 0 && rc != ERR_NOTFOUND) {
            break;
        }
    }
    if (rc == ERR_NOLEADER) {
        return ctl_fail_unchanged(ctl);
    }
    return rc == ERR_UNREACHABLE || rc == ERR_TIMEOUT ? rc : 0;
}

static void befores_close(struct befores *befores)
{
    for (size_t i = 0; i < befores->n; i++) {
        if (befores->groups[i] != NULL) {
            server_group_close(befores->groups[i]);
            free(befores->groups[i]);
        }
    }
}

static bool has_backend(const struct server_group *group, const struct endpoint *at)
{
    for (uint32_t i = 0; i < group->n_backends; i++) {
        if (endpoint_compare(&group->backends[i].at, at) == 0) {
            return true;
        }
    }
    return false;
}

#define NAMES_MAX 3

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

/* ": adds 10.0.0.4:80; removes 10.0.0.3:80 (3 -> 3 backends)"; nothing if they are the same ones.
 */
static void put_backends(FILE *out, const struct server_group *before,
                         const struct server_group *after)
{
    uint32_t n_added = put_missing(out, ": adds ", after, before);
    uint32_t n_removed = put_missing(out, n_added > 0 ? "; removes " : ": removes ", before, after);

    if (n_added + n_removed > 0) {
        fprintf(out, " (%" PRIu32 " -> %" PRIu32 " backends)", before->n_backends,
                after->n_backends);
    }
}

static void put_applied(struct ctl *ctl, const struct spec_set *set, const struct befores *befores,
                        const Jury__V1__ApplyResponse *answer)
{
    size_t n_unchanged = 0;

    for (size_t i = 0; i < answer->n_results && i < set->n_documents; i++) {
        Jury__V1__ApplyAction action = answer->results[i]->action;

        load_put_name(ctl->out, &set->documents[i]);
        fprintf(ctl->out, " %s", change_done_word(action));
        if (action == JURY__V1__APPLY_ACTION__APPLY_ACTION_CHANGE && i < befores->n &&
            befores->groups[i] != NULL) {
            put_backends(ctl->out, befores->groups[i], set->documents[i].u.group);
        }
        fputc('\n', ctl->out);
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
    struct change_set changes = {0};
    struct befores befores = {0};
    int rc = fill_request(ctl, set, &changes);

    if (rc == 0 && !ctl_is_json(ctl) && !ctl_has(ctl, FLAG_DRY_RUN)) {
        rc = befores_ask(ctl, set, &befores);
    }
    if (rc == 0) {
        rc = change_set_send(ctl, &changes, set);
    }
    if (rc == 0) {
        const Jury__V1__ApplyResponse *answer = change_set_answer(&changes);

        if (ctl_is_json(ctl)) {
            rc = ctl_print_message(ctl, &answer->base);
        } else if (ctl_has(ctl, FLAG_DRY_RUN)) {
            put_dry_run(ctl, set, answer);
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
