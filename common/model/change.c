#include "common/model/change.h"

#include <stdlib.h>

static void change_close(struct change *change)
{
    switch ((enum change_kind)change->kind) {
    case CHANGE_NONE:
    case CHANGE_DELETE_NODE:
    case CHANGE_RAISE_LEVEL:
        break;
    case CHANGE_PUT_SETTINGS:
        free(change->u.settings);
        break;
    case CHANGE_PUT_GROUP:
        if (change->u.group != NULL) {
            server_group_close(change->u.group);
        }
        free(change->u.group);
        break;
    case CHANGE_PUT_LISTENER:
        free(change->u.listener);
        break;
    case CHANGE_PUT_NODE:
        free(change->u.node);
        break;
    case CHANGE_PUT_KEY:
        free(change->u.key);
        break;
    case CHANGE_SET_BACKEND:
        free(change->u.backend);
        break;
    case CHANGE_PURGE_BACKEND:
        free(change->u.purge);
        break;
    case CHANGE_INIT:
        free(change->u.init);
        break;
    case CHANGE_SET_HOLD:
        free(change->u.hold);
        break;
    case CHANGE_DELETE_GROUP:
    case CHANGE_DELETE_LISTENER:
    case CHANGE_DELETE_KEY:
        free(change->u.name);
        break;
    }
    *change = (struct change){0};
}

void command_close(struct command *command)
{
    for (uint32_t i = 0; i < command->n_changes; i++) {
        change_close(&command->changes[i]);
    }
    free(command->changes);
    *command = (struct command){0};
}
