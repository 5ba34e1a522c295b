/* Server groups, backends and listeners: message -> model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/names.h"
#include "common/model/profile.h"
#include "common/wire/object.h"
#include "common/wire/read_check.h"
#include "common/wire/read_field.h"

static int read_rule(const char *field, const Jury__V1__Rule *message, struct rule_column *column,
                     struct errmsg *err)
{
    struct rule_column read = {0};
    char name[64];

    if (message->kind == JURY__V1__RULE__KIND__KIND_UNSPECIFIED) {
        char list[128];

        return errmsg_set(err, ERR_INVALID, "%s.kind must be %s", field,
                          names_list(&names_rule, list, sizeof list));
    }
    int rc = read_enum(field, &names_rule, (int)message->kind, &read.kind, err);
    if (rc == 0 && (read.kind == RULE_AT_LEAST || read.kind == RULE_PERCENT)) {
        snprintf(name, sizeof name, "%s.value", field);
        rc = read_u8(name, message->value, 1, read.kind == RULE_PERCENT ? 100 : LIMIT_NODES,
                     &read.value, err);
    } else if (rc == 0 && message->value != 0) {
        rc = errmsg_set(err, ERR_INVALID, "%s.value is allowed only with at-least and percent",
                        field);
    }
    if (rc == 0) {
        *column = read;
    }
    return rc;
}

static int read_checks(const Jury__V1__ServerGroup *message, struct server_group *group,
                       struct errmsg *err)
{
    if (message->n_checks == 0 && message->pass == NULL) {
        return 0;
    }
    if (message->n_checks == 0) {
        return errmsg_set(err, ERR_INVALID, "pass is allowed only with checks");
    }
    if (message->check != NULL) {
        return errmsg_set(err, ERR_INVALID, "check and checks exclude each other");
    }
    if (message->n_checks > LIMIT_CHECKS) {
        return errmsg_set(err, ERR_LIMIT, ERR_SAY_TOO_MANY, "checks",
                          (unsigned long)message->n_checks, (unsigned long)LIMIT_CHECKS);
    }
    group->checks = calloc(message->n_checks, sizeof *group->checks);
    if (group->checks == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for %zu checks", message->n_checks);
    }
    group->n_checks = (uint32_t)message->n_checks;
    group->pass.kind = RULE_ALL;
    int rc = message->pass != NULL ? read_rule("pass", message->pass, &group->pass, err) : 0;
    for (uint32_t i = 0; i < group->n_checks && rc == 0; i++) {
        rc = read_named_check(message->checks[i], group, &group->checks[i], err);
    }
    return rc;
}

static int read_verdict(const Jury__V1__VerdictRule *message, struct verdict_rule *rule,
                        struct errmsg *err)
{
    int rc = 0;

    if (message->down != NULL) {
        rc = read_rule("verdict.down", message->down, &rule->down, err);
        rule->up = rule->down;
    }
    if (rc == 0 && message->up != NULL) {
        rc = read_rule("verdict.up", message->up, &rule->up, err);
        rule->is_split = true;
    }
    if (rc == 0) {
        rc = read_enum("verdict.below_quorum", &names_below_quorum, (int)message->below_quorum,
                       &rule->below_quorum, err);
    }
    return rc;
}

static int read_labels(const Jury__V1__ServerGroup *message, struct server_group *group,
                       struct errmsg *err)
{
    int rc = 0;

    if (message->n_labels > LIMIT_LABELS) {
        return errmsg_set(err, ERR_LIMIT, ERR_SAY_TOO_MANY, "labels",
                          (unsigned long)message->n_labels, (unsigned long)LIMIT_LABELS);
    }
    for (size_t i = 0; rc == 0 && i < message->n_labels; i++) {
        struct label *label = &group->labels[i];

        rc = read_text("labels.key", message->labels[i]->key, label->key, sizeof label->key, err);
        if (rc == 0) {
            rc = read_text("labels.value", message->labels[i]->value, label->value,
                           sizeof label->value, err);
        }
    }
    group->n_labels = (uint32_t)message->n_labels;
    return rc;
}

static int read_backend(const Jury__V1__Backend *message, enum profile profile,
                        struct backend *backend, struct errmsg *err)
{
    profile_backend_defaults(profile, backend);
    int rc = read_addr("address", message->address, &backend->at.addr, err);
    if (rc == 0) {
        rc = read_port("port", message->port, 1, &backend->at.port, err);
    }
    if (rc == 0 && message->weight_choice_case == JURY__V1__BACKEND__WEIGHT_CHOICE_WEIGHT) {
        rc = read_u8("weight", message->weight, 0, 100, &backend->weight, err);
    }
    if (rc == 0) {
        rc = read_text("zone", message->zone, backend->zone, sizeof backend->zone, err);
    }
    if (rc == 0) {
        rc = read_text("description", message->description, backend->description,
                       sizeof backend->description, err);
    }
    if (rc == 0) {
        rc = read_enum("admin_state", &names_admin_state, (int)message->admin_state,
                       &backend->admin_state, err);
    }
    if (rc != 0) {
        errmsg_prefix(err, "backend \"%s\" port %u", message->address, message->port);
    }
    return rc;
}

static int refuse_duplicates(const struct server_group *group, struct errmsg *err)
{
    for (uint32_t i = 1; i < group->n_backends; i++) {
        if (endpoint_compare(&group->backends[i - 1].at, &group->backends[i].at) == 0) {
            char text[ENDPOINT_TEXT_BYTES];

            return errmsg_set(err, ERR_INVALID, "backend %s is there twice",
                              endpoint_format(&group->backends[i].at, text));
        }
    }
    return 0;
}

static int read_backends(const Jury__V1__ServerGroup *message, struct server_group *group,
                         struct errmsg *err)
{
    if (message->n_backends > LIMIT_BACKENDS_PER_GROUP) {
        return errmsg_set(err, ERR_LIMIT, ERR_SAY_TOO_MANY, "backends",
                          (unsigned long)message->n_backends,
                          (unsigned long)LIMIT_BACKENDS_PER_GROUP);
    }
    if (message->n_backends == 0) {
        return 0;
    }
    group->backends = calloc(message->n_backends, sizeof *group->backends);
    if (group->backends == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for %zu backends", message->n_backends);
    }
    group->n_backends = (uint32_t)message->n_backends;
    for (uint32_t i = 0; i < group->n_backends; i++) {
        int rc = read_backend(message->backends[i], (enum profile)group->profile,
                              &group->backends[i], err);
        if (rc != 0) {
            return rc;
        }
    }
    server_group_sort_backends(group);
    return refuse_duplicates(group, err);
}

/* Name, profile and protocol: what the other defaults hang on. */
static int read_head(const Jury__V1__ServerGroup *message, struct server_group *group,
                     struct errmsg *err)
{
    char list[64];
    uint8_t profile = PROFILE_NONE;
    uint8_t protocol = PROTOCOL_NONE;
    int rc = read_enum("profile", &names_profile, (int)message->profile, &profile, err);

    if (rc == 0 && profile == PROFILE_NONE) {
        rc = errmsg_set(err, ERR_INVALID, "profile must be %s",
                        names_list(&names_profile, list, sizeof list));
    }
    if (rc == 0) {
        rc = read_enum("protocol", &names_protocol, (int)message->protocol, &protocol, err);
    }
    if (rc == 0) {
        profile_group_defaults((enum profile)profile, (enum protocol)protocol, group);
        rc = read_text("name", message->name, group->name, sizeof group->name, err);
    }
    return rc;
}

static int read_choices(const Jury__V1__ServerGroup *message, struct server_group *group,
                        struct errmsg *err)
{
    int rc = read_enum("type", &names_group_type, (int)message->type, &group->type, err);

    if (rc == 0 && message->address_family != JURY__V1__ADDRESS_FAMILY__ADDRESS_FAMILY_IPV4 &&
        message->address_family != JURY__V1__ADDRESS_FAMILY__ADDRESS_FAMILY_IPV6 &&
        message->address_family != JURY__V1__ADDRESS_FAMILY__ADDRESS_FAMILY_UNSPECIFIED) {
        rc = errmsg_set(err, ERR_INVALID, "address_family must be ipv4 or ipv6, got the number %d",
                        (int)message->address_family);
    }
    if (rc == 0) {
        group->address_family = (uint8_t)message->address_family;
        rc = read_text("vpc", message->vpc, group->vpc, sizeof group->vpc, err);
    }
    if (rc == 0) {
        rc = read_enum("scheduler", &names_scheduler, (int)message->scheduler, &group->scheduler,
                       err);
    }
    if (rc == 0) {
        rc = read_enum("all_bad", &names_all_bad, (int)message->all_bad, &group->all_bad, err);
    }
    if (rc == 0 && message->fail_open_threshold_case ==
                       JURY__V1__SERVER_GROUP__FAIL_OPEN_THRESHOLD_FAIL_OPEN_PERCENT) {
        rc = read_u8("fail_open_percent", message->fail_open_percent, 0, 100,
                     &group->fail_open_percent, err);
    }
    if (rc == 0) {
        rc = read_enum("failover", &names_failover, (int)message->failover, &group->failover, err);
    }
    if (rc == 0) {
        rc = read_enum("graded_weight", &names_graded_weight, (int)message->graded_weight,
                       &group->graded_weight, err);
    }
    if (rc == 0) {
        rc = read_enum("hold", &names_hold, (int)message->hold, &group->hold, err);
    }
    return rc;
}

static int read_drain(const Jury__V1__Drain *message, struct drain_policy *drain,
                      struct errmsg *err)
{
    if (message->enabled_choice_case == JURY__V1__DRAIN__ENABLED_CHOICE_ENABLED) {
        drain->is_on = message->enabled;
    }
    return read_duration("drain.timeout", message->timeout, &drain->timeout_ms, err);
}

static int read_velocity(const Jury__V1__GuardPolicy *message, struct guard_policy *guard,
                         struct errmsg *err)
{
    int rc = 0;

    if (message->velocity_choice_case == JURY__V1__GUARD_POLICY__VELOCITY_CHOICE_VELOCITY_PERCENT) {
        rc = read_u8("guard.velocity_percent", message->velocity_percent, 0, 100,
                     &guard->velocity_percent, err);
    }
    if (rc == 0 &&
        message->exempt_choice_case == JURY__V1__GUARD_POLICY__EXEMPT_CHOICE_EXEMPT_BELOW) {
        rc = read_u16("guard.exempt_below", message->exempt_below, LIMIT_BACKENDS_PER_GROUP,
                      &guard->exempt_below, err);
    }
    return rc == 0 ? read_duration("guard.velocity_window", message->velocity_window,
                                   &guard->velocity_window_ms, err)
                   : rc;
}

static int read_return(const Jury__V1__GuardPolicy *message, struct guard_policy *guard,
                       struct errmsg *err)
{
    int rc = read_duration("guard.flap_hold", message->flap_hold, &guard->flap_hold_ms, err);

    if (rc == 0 &&
        message->return_choice_case == JURY__V1__GUARD_POLICY__RETURN_CHOICE_RETURN_PERCENT) {
        rc = read_u8("guard.return_percent", message->return_percent, 0, 100,
                     &guard->return_percent, err);
    }
    if (rc == 0) {
        rc = read_duration("guard.return_window", message->return_window, &guard->return_window_ms,
                           err);
    }
    return rc == 0
               ? read_duration("guard.slow_start", message->slow_start, &guard->slow_start_ms, err)
               : rc;
}

/* The word fills all, and fields that are set stand beside it. */
static int read_guard(const Jury__V1__GuardPolicy *message, struct guard_policy *guard,
                      struct errmsg *err)
{
    uint8_t preset = GUARD_PRESET_NONE;
    int rc = read_enum("guard.preset", &names_guard_preset, (int)message->preset, &preset, err);

    if (rc == 0 && preset != GUARD_PRESET_NONE) {
        *guard = guard_policy_of((enum guard_preset)preset);
    }
    if (rc == 0) {
        rc = read_velocity(message, guard, err);
    }
    if (rc == 0) {
        rc = read_return(message, guard, err);
    }
    if (rc == 0 &&
        message->shadow_choice_case == JURY__V1__GUARD_POLICY__SHADOW_CHOICE_SHADOW_CYCLES) {
        rc = read_u16("guard.shadow_cycles", message->shadow_cycles, GUARD_SHADOW_CYCLES_MAX,
                      &guard->shadow_cycles, err);
    }
    if (message->shadow_stop_choice_case ==
        JURY__V1__GUARD_POLICY__SHADOW_STOP_CHOICE_SHADOW_STOP) {
        guard->shadow_stop = message->shadow_stop;
    }
    if (message->alarm_choice_case == JURY__V1__GUARD_POLICY__ALARM_CHOICE_CORRELATED_ALARM) {
        guard->correlated_alarm = message->correlated_alarm;
    }
    return rc;
}

static int read_parts(const Jury__V1__ServerGroup *message, struct server_group *group,
                      struct errmsg *err)
{
    int rc = read_choices(message, group, err);

    if (rc == 0 && message->check != NULL) {
        rc = read_check(message->check, group, &group->check, err);
    }
    if (rc == 0) {
        rc = read_checks(message, group, err);
    }
    if (rc == 0 && message->verdict != NULL) {
        rc = read_verdict(message->verdict, &group->rule, err);
    }
    if (rc == 0 && message->drain != NULL) {
        rc = read_drain(message->drain, &group->drain, err);
    }
    if (rc == 0 && message->guard != NULL) {
        rc = read_guard(message->guard, &group->guard, err);
    }
    if (rc == 0) {
        rc = read_duration("idle_timeout", message->idle_timeout, &group->idle_timeout_ms, err);
    }
    if (rc == 0) {
        rc = read_labels(message, group, err);
    }
    server_group_settle(group);
    return rc == 0 ? read_backends(message, group, err) : rc;
}

int wire_group_read(const Jury__V1__ServerGroup *message, struct server_group *ret_group,
                    struct errmsg *err)
{
    struct server_group group = {0};
    int rc = read_head(message, &group, err);

    if (rc == 0) {
        rc = read_parts(message, &group, err);
    }
    if (rc != 0) {
        errmsg_prefix(err, "server group \"%.128s\"", message->name);
        server_group_close(&group);
        return rc;
    }
    *ret_group = group;
    return 0;
}

static int read_listener(const Jury__V1__Listener *message, struct listener *listener,
                         struct errmsg *err)
{
    int rc = read_text("name", message->name, listener->name, sizeof listener->name, err);

    if (rc == 0) {
        rc = read_addr("address", message->address, &listener->at.addr, err);
    }
    if (rc == 0) {
        rc = read_port("port", message->port, 1, &listener->at.port, err);
    }
    if (rc == 0) {
        rc = read_port("port_last", message->port_last, 0, &listener->port_last, err);
    }
    if (rc == 0) {
        rc = read_enum("protocol", &names_protocol, (int)message->protocol, &listener->protocol,
                       err);
    }
    if (rc == 0) {
        rc = read_text("group", message->group, listener->group, sizeof listener->group, err);
    }
    return rc == 0 ? read_duration("idle_timeout", message->idle_timeout,
                                   &listener->idle_timeout_ms, err)
                   : rc;
}

int wire_listener_read(const Jury__V1__Listener *message, struct listener *ret_listener,
                       struct errmsg *err)
{
    struct listener listener = {0};
    int rc = read_listener(message, &listener, err);

    if (rc != 0) {
        errmsg_prefix(err, "listener \"%.128s\"", message->name);
        return rc;
    }
    if (listener.port_last == 0) {
        listener.port_last = listener.at.port;
    }
    *ret_listener = listener;
    return 0;
}
