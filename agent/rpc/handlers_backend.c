/* Writes about one backend: drain, ready, weight and maintenance. */
#include <stdlib.h>

#include "agent/rpc/handlers_part.h"
#include "agent/rpc/rpc_internal.h"
#include "common/wire/object.h"
#include "jury/v1/group.pb-c.h"

/* A command with one change of one backend, which is to be filled in. */
static int empty_command(struct command *command, struct errmsg *err)
{
    command->changes = calloc(1, sizeof *command->changes);
    struct backend_update *update = calloc(1, sizeof *update);

    if (command->changes == NULL || update == NULL) {
        free(command->changes);
        free(update);
        command->changes = NULL;
        return errmsg_set(err, ERR_NOMEM, "out of memory");
    }
    command->n_changes = 1;
    command->changes[0].kind = CHANGE_SET_BACKEND;
    command->changes[0].u.backend = update;
    return 0;
}

static int backend_command(const Jury__V1__BackendRef *ref, enum admin_state admin_state,
                           struct command *command, struct errmsg *err)
{
    int rc = empty_command(command, err);

    if (rc != 0) {
        return rc;
    }
    struct backend_update *update = command->changes[0].u.backend;
    update->admin_state = (uint8_t)admin_state;
    return wire_backend_ref_read(ref, update->group, &update->at, err);
}

int handle_drain_command(const ProtobufCMessage *request, struct command *ret_command,
                         uint32_t *ret_index, struct errmsg *err)
{
    const Jury__V1__DrainBackendRequest *drain = (const Jury__V1__DrainBackendRequest *)request;
    struct command command = {0};
    int rc = backend_command(drain->backend, ADMIN_DRAINING, &command, err);

    *ret_index = UINT32_MAX;
    if (rc == 0 && drain->timeout != NULL) {
        struct backend_update *update = command.changes[0].u.backend;

        update->has_drain_timeout = true;
        rc = wire_duration_read(drain->timeout, "timeout", 3600000, &update->drain_timeout_ms, err);
    }
    if (rc != 0) {
        command_close(&command);
        return rc;
    }
    if (drain->precondition_case ==
        JURY__V1__DRAIN_BACKEND_REQUEST__PRECONDITION_EXPECTED_REVISION) {
        command.changes[0].has_expected_revision = true;
        command.changes[0].expected_revision = drain->expected_revision;
    }
    part_force_read(drain->force, &command);
    *ret_command = command;
    return 0;
}

int handle_ready_command(const ProtobufCMessage *request, struct command *ret_command,
                         uint32_t *ret_index, struct errmsg *err)
{
    const Jury__V1__ReadyBackendRequest *ready = (const Jury__V1__ReadyBackendRequest *)request;
    struct command command = {0};
    int rc = backend_command(ready->backend, ADMIN_ENABLED, &command, err);

    *ret_index = UINT32_MAX;
    if (rc != 0) {
        command_close(&command);
        return rc;
    }
    if (ready->precondition_case ==
        JURY__V1__READY_BACKEND_REQUEST__PRECONDITION_EXPECTED_REVISION) {
        command.changes[0].has_expected_revision = true;
        command.changes[0].expected_revision = ready->expected_revision;
    }
    *ret_command = command;
    return 0;
}

ProtobufCMessage *handle_drain_answer_new(struct wire_arena *arena, const ProtobufCMessage *request,
                                          const struct apply_answer *answer)
{
    Jury__V1__DrainBackendResponse *response =
        WIRE_NEW(arena, Jury__V1__DrainBackendResponse, jury__v1__drain_backend_response);

    (void)request;
    if (response == NULL) {
        return NULL;
    }
    response->revision = answer->revision;
    response->is_unchanged = apply_outcome(answer, 0) == OUTCOME_UNCHANGED;
    return &response->base;
}

ProtobufCMessage *handle_ready_answer_new(struct wire_arena *arena, const ProtobufCMessage *request,
                                          const struct apply_answer *answer)
{
    Jury__V1__ReadyBackendResponse *response =
        WIRE_NEW(arena, Jury__V1__ReadyBackendResponse, jury__v1__ready_backend_response);

    (void)request;
    if (response == NULL) {
        return NULL;
    }
    response->revision = answer->revision;
    response->is_unchanged = apply_outcome(answer, 0) == OUTCOME_UNCHANGED;
    return &response->base;
}

int handle_set_backend_command(const ProtobufCMessage *request, struct command *ret_command,
                               uint32_t *ret_index, struct errmsg *err)
{
    const Jury__V1__SetBackendRequest *set = (const Jury__V1__SetBackendRequest *)request;
    struct command command = {0};
    int rc = empty_command(&command, err);

    *ret_index = UINT32_MAX;
    if (rc == 0) {
        rc = wire_backend_set_read(set, command.changes[0].u.backend, err);
    }
    if (rc != 0) {
        command_close(&command);
        return rc;
    }
    if (set->precondition_case == JURY__V1__SET_BACKEND_REQUEST__PRECONDITION_EXPECTED_REVISION) {
        command.changes[0].has_expected_revision = true;
        command.changes[0].expected_revision = set->expected_revision;
    }
    part_force_read(set->force, &command);
    *ret_command = command;
    return 0;
}

ProtobufCMessage *handle_set_backend_answer_new(struct wire_arena *arena,
                                                const ProtobufCMessage *request,
                                                const struct apply_answer *answer)
{
    Jury__V1__SetBackendResponse *response =
        WIRE_NEW(arena, Jury__V1__SetBackendResponse, jury__v1__set_backend_response);

    (void)request;
    if (response == NULL) {
        return NULL;
    }
    response->revision = answer->revision;
    response->is_unchanged = apply_outcome(answer, 0) == OUTCOME_UNCHANGED;
    return &response->base;
}
