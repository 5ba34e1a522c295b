/* The hold switch: replicated, or of this node alone. */
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine_view.h"
#include "agent/rpc/handlers_part.h"
#include "common/base/str.h"
#include "common/wire/object.h"
#include "jury/v1/hold.pb-c.h"

/* --- replicated --- */

static int check_name(const char *group, struct errmsg *err)
{
    if (strlen(group) > LIMIT_NAME_BYTES) {
        return errmsg_set(err, ERR_INVALID, "group must be a name of at most %d bytes",
                          LIMIT_NAME_BYTES);
    }
    return 0;
}

static int hold_command(const char *group, bool is_on, struct command *ret_command,
                        uint32_t *ret_index, struct errmsg *err)
{
    struct change *change;
    struct hold_update *update;
    int rc = check_name(group, err);

    *ret_index = UINT32_MAX;
    if (rc != 0) {
        return rc;
    }
    change = calloc(1, sizeof *change);
    update = calloc(1, sizeof *update);
    if (change == NULL || update == NULL) {
        free(change);
        free(update);
        return errmsg_set(err, ERR_NOMEM, "out of memory");
    }
    str_copy(update->group, sizeof update->group, group);
    update->is_on = is_on;
    change->kind = CHANGE_SET_HOLD;
    change->u.hold = update;
    ret_command->changes = change;
    ret_command->n_changes = 1;
    return 0;
}

int handle_set_hold_command(const ProtobufCMessage *request, struct command *ret_command,
                            uint32_t *ret_index, struct errmsg *err)
{
    return hold_command(((const Jury__V1__SetHoldRequest *)request)->group, true, ret_command,
                        ret_index, err);
}

int handle_clear_hold_command(const ProtobufCMessage *request, struct command *ret_command,
                              uint32_t *ret_index, struct errmsg *err)
{
    return hold_command(((const Jury__V1__ClearHoldRequest *)request)->group, false, ret_command,
                        ret_index, err);
}

ProtobufCMessage *handle_set_hold_answer_new(struct wire_arena *arena,
                                             const ProtobufCMessage *request,
                                             const struct apply_answer *answer)
{
    Jury__V1__SetHoldResponse *response =
        WIRE_NEW(arena, Jury__V1__SetHoldResponse, jury__v1__set_hold_response);

    (void)request;
    if (response == NULL) {
        return NULL;
    }
    response->revision = answer->revision;
    response->is_unchanged = apply_outcome(answer, 0) == OUTCOME_UNCHANGED;
    return &response->base;
}

ProtobufCMessage *handle_clear_hold_answer_new(struct wire_arena *arena,
                                               const ProtobufCMessage *request,
                                               const struct apply_answer *answer)
{
    Jury__V1__ClearHoldResponse *response =
        WIRE_NEW(arena, Jury__V1__ClearHoldResponse, jury__v1__clear_hold_response);

    (void)request;
    if (response == NULL) {
        return NULL;
    }
    response->revision = answer->revision;
    response->is_unchanged = apply_outcome(answer, 0) == OUTCOME_UNCHANGED;
    return &response->base;
}

/* --- this node alone --- */

/* Whether this node's own hold of the group, or of all, is on. */
static bool is_overridden(const struct view *view, const char *group)
{
    struct hold_view holds[2];
    size_t n = view->engine == NULL ? 0 : engine_view_holds(view->engine, group, holds);

    return n > 0 && (holds[n - 1].source & (HOLD_BY_NODE | HOLD_BY_NODE_GROUP)) != 0;
}

int handle_override_hold(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err)
{
    const Jury__V1__OverrideHoldRequest *override = (const Jury__V1__OverrideHoldRequest *)request;
    struct rpc_server *server = view->server;
    const struct hold_override hold = {.group = override->group,
                                       .is_on = override->on,
                                       .actor = view->actor,
                                       .wall_ms = server->hooks.wall_ms(server->hooks.user)};

    if (view->catalog == NULL) {
        return errmsg_set(err, ERR_NOTREADY, "this node has no catalog yet");
    }
    if (override->group[0] != '\0' && catalog_group_find(view->catalog, override->group) == NULL) {
        return errmsg_set(err, ERR_NOTFOUND, ERR_SAY_MISSING, "server group", override->group);
    }
    bool was_on = is_overridden(view, override->group);
    int rc = server->hooks.override_hold(server->hooks.user, &hold);
    if (rc != 0) {
        return errmsg_set(err, rc, "this node has no catalog yet");
    }
    Jury__V1__OverrideHoldResponse *response =
        WIRE_NEW(view->arena, Jury__V1__OverrideHoldResponse, jury__v1__override_hold_response);
    if (response != NULL) {
        response->node_id = part_node_of(view).node_id;
        response->is_unchanged = was_on == hold.is_on;
        *ret_response = &response->base;
    }
    return 0;
}

/* --- what is on --- */

int handle_list_holds(const struct view *view, const ProtobufCMessage *request,
                      ProtobufCMessage **ret_response, struct errmsg *err)
{
    Jury__V1__ListHoldsResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListHoldsResponse, jury__v1__list_holds_response);

    (void)request;
    if (view->catalog == NULL || view->engine == NULL) {
        return errmsg_set(err, ERR_NOTREADY, "this node has no catalog yet");
    }
    if (response == NULL) {
        return 0;
    }
    response->node_id = part_node_of(view).node_id;
    response->n_holds =
        part_holds_new(view, 2 * (catalog_n_groups(view->catalog) + 1), &response->holds);
    response->n_backends = engine_n_held_by_hold(view->engine);
    response->revision = catalog_revision(view->catalog);
    *ret_response = &response->base;
    return 0;
}
