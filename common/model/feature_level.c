#include "common/model/feature_level.h"

#include <stdbool.h>
#include <stddef.h>

#include "common/base/plant.h"

/* A field with a level of its own. */
struct leveled_field {
    const char *name; /* as in documents, below `spec.` */
    uint8_t level;
    bool (*is_used)(const struct server_group *group);
};

/* What an older program had a word for, and refused. */
static bool has_udp_check(const struct server_group *group)
{
    return group->check.type == CHECK_TYPE_UDP;
}

static bool has_tls_or_grpc_check(const struct server_group *group)
{
    return group->check.type == CHECK_TYPE_TLS || group->check.type == CHECK_TYPE_GRPC;
}

static bool has_other_protocol(const struct server_group *group)
{
    return group->protocol != PROTOCOL_TCP;
}

static bool uses_probers(const struct server_group *group)
{
    return group->check.probers != 0;
}

static bool uses_recheck(const struct server_group *group)
{
    return group->check.recheck;
}

static bool has_fixed_pacing(const struct server_group *group)
{
    for (unsigned i = 0; i < group->n_checks; i++) {
        if (group->checks[i].check.pacing == PACING_FIXED) {
            return true;
        }
    }
    return group->check.pacing == PACING_FIXED;
}

static bool has_checks(const struct server_group *group)
{
    return group->n_checks != 0;
}

static bool has_line(const struct server_group *group)
{
    return group->check.tcp.send.n_bytes > 0 || group->check.tcp.expect.n_bytes > 0;
}

static bool is_closed_by_fin(const struct server_group *group)
{
    for (unsigned i = 0; i < group_n_checks(group); i++) {
        if (group_check_at(group, i)->tcp.close == TCP_CLOSE_FIN) {
            return true;
        }
    }
    return false;
}

static bool comes_from_shared_space(const struct server_group *group)
{
    for (unsigned i = 0; i < group_n_checks(group); i++) {
        if (group_check_at(group, i)->source == CHECK_SOURCE_SHARED_SPACE) {
            return true;
        }
    }
    return false;
}

static bool uses_slow_start(const struct server_group *group)
{
    return group->guard.slow_start_ms != 0;
}

static bool is_graded(const struct server_group *group)
{
    return group->graded_weight != GRADED_OFF;
}

/* In the order of levels; ends with an empty one. */
static const struct leveled_field group_fields[] = {
    {"check.type", 3, has_udp_check},
    {"check.type", 3, has_tls_or_grpc_check},
    {"protocol", 3, has_other_protocol},
    {"check.probers", 3, uses_probers},
    {"check.recheck", 3, uses_recheck},
    {"check.pacing", 3, has_fixed_pacing},
    {"check.tcp.expect", 3, has_line},
    {"check.tcp.close", 3, is_closed_by_fin},
    {"guard.slowStart", 3, uses_slow_start},
    {"checks", 3, has_checks},
    {"gradedWeight", 3, is_graded},
    {"check.source", 3, comes_from_shared_space},
    {NULL, 0, NULL},
};

uint8_t feature_level(void)
{
    /* So that one build can play both sides of an upgrade. */
    bool is_old = plant_is("level-old") || plant_is("level-old-drops");

    return is_old ? FEATURE_LEVEL_BASE : FEATURE_LEVEL;
}

uint8_t feature_level_of_group(const struct server_group *group, const char **ret_field)
{
    uint8_t level = FEATURE_LEVEL_BASE;

    *ret_field = NULL;
    for (const struct leveled_field *field = group_fields; field->name != NULL; field++) {
        if (field->level > level && field->is_used(group)) {
            level = field->level;
            *ret_field = field->name;
        }
    }
    return level;
}

static uint8_t level_of_change(const struct change *change)
{
    const char *field;

    switch ((enum change_kind)change->kind) {
    case CHANGE_PUT_GROUP:
        return feature_level_of_group(change->u.group, &field);
    case CHANGE_INIT:
        return change->u.init->feature_level;
    case CHANGE_RAISE_LEVEL:
        return change->u.feature_level;
    case CHANGE_NONE:
    case CHANGE_PUT_SETTINGS:
    case CHANGE_DELETE_GROUP:
    case CHANGE_PUT_LISTENER:
    case CHANGE_DELETE_LISTENER:
    case CHANGE_PUT_NODE:
    case CHANGE_DELETE_NODE:
    case CHANGE_PUT_KEY:
    case CHANGE_DELETE_KEY:
    case CHANGE_SET_BACKEND:
    case CHANGE_PURGE_BACKEND:
    case CHANGE_SET_HOLD:
        break;
    }
    return FEATURE_LEVEL_BASE;
}

uint8_t feature_level_of_command(const struct command *command)
{
    uint8_t level = FEATURE_LEVEL_BASE;

    for (uint32_t i = 0; i < command->n_changes; i++) {
        uint8_t needed = level_of_change(&command->changes[i]);

        level = needed > level ? needed : level;
    }
    return level;
}
