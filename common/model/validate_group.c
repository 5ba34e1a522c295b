#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "common/base/units.h"
#include "common/model/names.h"
#include "common/model/validate.h"
#include "common/model/validate_field.h"

static const struct range percent = {0, 100, "0..100", ""};
static const struct range weight_range = {0, 100, "0..100", ""};
static const struct range drain_time = {0, DRAIN_TIMEOUT_MS_MAX, "0s..3600s", "ms"};

static int check_column(const struct object *object, const char *field,
                        const struct rule_column *column, struct errmsg *err)
{
    static const struct range k_range = {1, LIMIT_NODES, "1..64", ""};
    static const struct range x_range = {1, 100, "1..100", ""};
    char what[40];
    int rc = validate_choice(object, field, &names_rule, column->kind, err);

    if (rc != 0) {
        return rc;
    }
    snprintf(what, sizeof what, "%s: the figure of %s", field,
             names_word(&names_rule, column->kind));
    if (column->kind == RULE_AT_LEAST) {
        return validate_range(object, what, column->value, &k_range, err);
    }
    if (column->kind == RULE_PERCENT) {
        return validate_range(object, what, column->value, &x_range, err);
    }
    if (column->value != 0) {
        return object_refuse(object, err, ERR_INVALID, "%s: %s takes no figure, got %u", field,
                             names_word(&names_rule, column->kind), column->value);
    }
    return 0;
}

static int check_rule(const struct object *object, const struct verdict_rule *rule,
                      struct errmsg *err)
{
    int rc = check_column(object, rule->is_split ? "rule.down" : "rule", &rule->down, err);

    if (rc == 0) {
        rc = check_column(object, rule->is_split ? "rule.up" : "rule", &rule->up, err);
    }
    if (rc == 0 && !rule->is_split &&
        (rule->up.kind != rule->down.kind || rule->up.value != rule->down.value)) {
        rc = object_refuse(object, err, ERR_INVALID,
                           "rule: down and up differ, so both must be written");
    }
    if (rc == 0) {
        rc = validate_choice(object, "belowQuorum", &names_below_quorum, rule->below_quorum, err);
    }
    return rc;
}

static int check_place(const struct object *object, const struct server_group *group,
                       struct errmsg *err)
{
    int rc = validate_choice(object, "profile", &names_profile, group->profile, err);

    if (rc == 0) {
        rc = validate_choice(object, "type", &names_group_type, group->type, err);
    }
    if (rc == 0) {
        rc = validate_choice(object, "protocol", &names_protocol, group->protocol, err);
    }
    if (rc == 0 && group->type == GROUP_TYPE_INSTANCE) {
        rc = object_refuse_yet(object, "type", "instance", "ip", err);
    }
    if (rc == 0 && group->vpc[0] != '\0') {
        rc = object_refuse(object, err, ERR_INVALID, "vpc is allowed only with type instance");
    }
    if (rc == 0 && group->address_family != ADDR_NONE && group->address_family != ADDR_IPV4 &&
        group->address_family != ADDR_IPV6) {
        rc = object_refuse(object, err, ERR_INVALID, "addressFamily must be ipv4 or ipv6");
    }
    return rc;
}

static int check_guard(const struct object *object, const struct guard_policy *guard,
                       struct errmsg *err)
{
    static const struct range window = {GUARD_WINDOW_MS_MIN, GUARD_WINDOW_MS_MAX, "1s..3600s",
                                        "ms"};
    static const struct range members = {0, LIMIT_BACKENDS_PER_GROUP, "0..1000", ""};
    static const struct range hold = {GUARD_FLAP_HOLD_MS_MIN, GUARD_FLAP_HOLD_MS_MAX,
                                      "0s or 1s..300s", "ms"};
    static const struct range cycles = {0, GUARD_SHADOW_CYCLES_MAX, "0..1000", ""};
    int rc =
        validate_range(object, "guard.velocityPercent", guard->velocity_percent, &percent, err);

    if (rc == 0) {
        rc =
            validate_range(object, "guard.velocityWindow", guard->velocity_window_ms, &window, err);
    }
    if (rc == 0) {
        rc = validate_range(object, "guard.exemptBelow", guard->exempt_below, &members, err);
    }
    if (rc == 0 && guard->flap_hold_ms != 0) {
        rc = validate_range(object, "guard.flapHold", guard->flap_hold_ms, &hold, err);
    }
    if (rc == 0) {
        rc = validate_range(object, "guard.returnPercent", guard->return_percent, &percent, err);
    }
    if (rc == 0) {
        rc = validate_range(object, "guard.returnWindow", guard->return_window_ms, &window, err);
    }
    return rc == 0
               ? validate_range(object, "guard.shadowCycles", guard->shadow_cycles, &cycles, err)
               : rc;
}

/* A part of a weight is each node's own (when it saw the backend return, which votes it holds, how
 * far away it is), so nodes that hash alike would choose differently (N11); and weights of gwlb are
 * all or nothing. off: how to write that there is none. */
static int check_parts(const struct object *object, const struct server_group *group,
                       const char *field, const char *off, struct errmsg *err)
{
    if (group->profile == PROFILE_GWLB) {
        return object_refuse(object, err, ERR_INVALID,
                             "%s is not allowed with profile gwlb: its weights are 0 or 100; leave "
                             "it out, or set %s",
                             field, off);
    }
    if (!scheduler_takes_turns(group->scheduler)) {
        return object_refuse(object, err, ERR_INVALID,
                             "%s is not allowed with scheduler %s, by which all nodes choose "
                             "alike; use wrr, or set %s",
                             field, names_word(&names_scheduler, group->scheduler), off);
    }
    return 0;
}

static int check_graded(const struct object *object, const struct server_group *group,
                        struct errmsg *err)
{
    static const char field[] = "gradedWeight";
    const struct health_check *check = &group->check;
    int rc = validate_choice(object, field, &names_graded_weight, group->graded_weight, err);

    if (rc == 0) {
        rc = check_parts(object, group, field, "off", err);
    }
    if (rc == 0 && !check->is_enabled) {
        rc =
            object_refuse(object, err, ERR_INVALID,
                          "gradedWeight needs check.enabled true: without checks there are neither "
                          "votes nor response times");
    }
    if (rc == 0 && group->graded_weight == GRADED_BY_LATENCY && group->n_checks != 0) {
        rc =
            object_refuse(object, err, ERR_INVALID,
                          "gradedWeight latency is not allowed with checks: several probes have no "
                          "one response time; use check, or gradedWeight votes");
    }
    if (rc == 0 && group->graded_weight == GRADED_BY_LATENCY && check->type == CHECK_TYPE_UDP &&
        check->udp.method != UDP_EXCHANGE) {
        rc =
            object_refuse(object, err, ERR_INVALID,
                          "gradedWeight latency needs answers that have a time: with "
                          "check.udp.method %s silence passes; use exchange, or gradedWeight votes",
                          names_word(&names_udp_method, check->udp.method));
    }
    return rc;
}

static int check_weighing(const struct object *object, const struct server_group *group,
                          struct errmsg *err)
{
    static const struct range slow = {GUARD_SLOW_START_MS_MIN, GUARD_SLOW_START_MS_MAX,
                                      "0s or 1s..900s", "ms"};
    int rc = 0;

    if (group->guard.slow_start_ms != 0) {
        rc = check_parts(object, group, "guard.slowStart", "0s", err);
        if (rc == 0) {
            rc = validate_range(object, "guard.slowStart", group->guard.slow_start_ms, &slow, err);
        }
    }
    return rc == 0 && group->graded_weight != GRADED_OFF ? check_graded(object, group, err) : rc;
}

static int check_forwarding(const struct object *object, const struct server_group *group,
                            struct errmsg *err)
{
    int rc = validate_choice(object, "scheduler", &names_scheduler, group->scheduler, err);

    if (rc == 0 && group->scheduler != SCHEDULER_5_TUPLE && group->scheduler != SCHEDULER_WRR) {
        rc = object_refuse_yet(object, "scheduler", names_word(&names_scheduler, group->scheduler),
                               "5-tuple` or `wrr", err);
    }
    if (rc == 0) {
        rc = validate_choice(object, "allBad", &names_all_bad, group->all_bad, err);
    }
    if (rc == 0) {
        rc = validate_range(object, "failOpenPercent", group->fail_open_percent, &percent, err);
    }
    if (rc == 0 && group->profile != PROFILE_GWLB && group->failover != FAILOVER_NONE) {
        rc = object_refuse(object, err, ERR_INVALID, "failover is allowed only with profile gwlb");
    }
    if (rc == 0 && group->profile == PROFILE_GWLB) {
        rc = validate_choice(object, "failover", &names_failover, group->failover, err);
    }
    if (rc == 0 && group->failover == FAILOVER_REBALANCE) {
        rc = object_refuse_yet(object, "failover", "rebalance", "no-rebalance", err);
    }
    if (rc == 0) {
        rc = validate_range(object, "drain.timeout", group->drain.timeout_ms, &drain_time, err);
    }
    if (rc == 0) {
        rc = validate_range(object, "idleTimeout", group->idle_timeout_ms, &validate_idle_timeout,
                            err);
    }
    if (rc == 0) {
        rc = check_guard(object, &group->guard, err);
    }
    if (rc == 0) {
        rc = check_weighing(object, group, err);
    }
    return rc == 0 ? validate_hold(object, group->hold, err) : rc;
}

static int check_labels(const struct object *object, const struct server_group *group,
                        struct errmsg *err)
{
    if (group->n_labels > LIMIT_LABELS) {
        return object_refuse(object, err, ERR_LIMIT, ERR_SAY_TOO_MANY, "labels",
                             (unsigned long)group->n_labels, (unsigned long)LIMIT_LABELS);
    }
    for (uint32_t i = 0; i < group->n_labels; i++) {
        const struct label *label = &group->labels[i];

        if (label->key[0] == '\0' || !validate_holds_only(label->key, "._-/", false)) {
            return object_refuse(object, err, ERR_INVALID,
                                 "labels: a key must be 1..%d letters, digits, \".\", \"_\", "
                                 "\"-\" or \"/\", got \"%.40s\"",
                                 LIMIT_LABEL_KEY_BYTES,
                                 str_is_text(label->key) ? label->key : "(not text)");
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(group->labels[j].key, label->key) == 0) {
                return object_refuse(object, err, ERR_INVALID, "labels: \"%s\" is there twice",
                                     label->key);
            }
        }
        int rc = validate_text(object, "labels: a value", label->value, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int check_weight(const struct object *object, const struct server_group *group,
                        const struct endpoint *at, unsigned weight, struct errmsg *err)
{
    char text[ENDPOINT_TEXT_BYTES];
    char field[ENDPOINT_TEXT_BYTES + 32];

    snprintf(field, sizeof field, "backend %s: weight", endpoint_format(at, text));
    if (group->profile == PROFILE_GWLB && weight != 0 && weight != 100) {
        return object_refuse(object, err, ERR_INVALID,
                             "%s must be 0 or 100 with profile gwlb, got %u", field, weight);
    }
    return validate_range(object, field, weight, &weight_range, err);
}

int validate_backend_weight(const struct server_group *group, const struct endpoint *at,
                            unsigned weight, struct errmsg *err)
{
    struct object object = {.kind = "server group", .name = group->name};

    return check_weight(&object, group, at, weight, err);
}

/* "" or what makes the address unfit for a backend wherever it is allowed. */
static const char *address_fault(const struct server_group *group, const struct addr *addr)
{
    static const uint8_t broadcast[4] = {255, 255, 255, 255};

    if (!addr_is_valid(addr)) {
        return "is not an address that can be probed";
    }
    if (addr_is_unspecified(addr)) {
        return "is the unspecified address";
    }
    if (addr_is_multicast(addr)) {
        return "is a multicast address";
    }
    if (addr->family == ADDR_IPV4 && memcmp(addr->bytes, broadcast, sizeof broadcast) == 0) {
        return "is the broadcast address";
    }
    if (group->address_family != ADDR_NONE && group->address_family != addr->family) {
        return group->address_family == ADDR_IPV4 ? "must be an IPv4 address (addressFamily ipv4)"
                                                  : "must be an IPv6 address (addressFamily ipv6)";
    }
    return "";
}

static int check_backend(const struct object *object, const struct server_group *group,
                         const struct backend *backend, struct errmsg *err)
{
    char text[ENDPOINT_TEXT_BYTES];
    char field[ENDPOINT_TEXT_BYTES + 32];
    const char *fault = address_fault(group, &backend->at.addr);

    endpoint_format(&backend->at, text);
    if (fault[0] != '\0') {
        return object_refuse(object, err, ERR_INVALID, "backend %s: the address %s", text, fault);
    }
    if (backend->at.port == 0) {
        return object_refuse(object, err, ERR_INVALID, "backend %s: port must be 1..65535", text);
    }
    int rc = check_weight(object, group, &backend->at, backend->weight, err);
    if (rc == 0 && backend->admin_state != ADMIN_NONE) {
        snprintf(field, sizeof field, "backend %s: adminState", text);
        rc = validate_choice(object, field, &names_admin_state, backend->admin_state, err);
    }
    if (rc == 0) {
        snprintf(field, sizeof field, "backend %s: zone", text);
        rc = validate_text(object, field, backend->zone, err);
    }
    if (rc == 0) {
        snprintf(field, sizeof field, "backend %s: description", text);
        rc = validate_text(object, field, backend->description, err);
    }
    return rc;
}

static int check_backends(const struct object *object, const struct server_group *group,
                          struct errmsg *err)
{
    char text[ENDPOINT_TEXT_BYTES];

    if (group->n_backends > LIMIT_BACKENDS_PER_GROUP) {
        return object_refuse(object, err, ERR_LIMIT, ERR_SAY_TOO_MANY, "backends",
                             (unsigned long)group->n_backends,
                             (unsigned long)LIMIT_BACKENDS_PER_GROUP);
    }
    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct backend *backend = &group->backends[i];
        int rc = check_backend(object, group, backend, err);

        if (rc != 0) {
            return rc;
        }
        int order = i == 0 ? -1 : endpoint_compare(&group->backends[i - 1].at, &backend->at);
        if (order == 0) {
            return object_refuse(object, err, ERR_INVALID,
                                 "backend %s is there twice: once with weight %u, once with "
                                 "weight %u",
                                 endpoint_format(&backend->at, text), group->backends[i - 1].weight,
                                 backend->weight);
        }
        if (order > 0) {
            return object_refuse(object, err, ERR_INVALID,
                                 "backends must be sorted by address and port, %s is not",
                                 endpoint_format(&backend->at, text));
        }
    }
    return 0;
}

static int check_group(const struct object *object, const struct server_group *group,
                       struct errmsg *err)
{
    int rc = check_place(object, group, err);

    if (rc == 0) {
        rc = validate_check(object, group, err);
    }
    if (rc == 0) {
        rc = check_rule(object, &group->rule, err);
    }
    if (rc == 0) {
        rc = check_forwarding(object, group, err);
    }
    if (rc == 0) {
        rc = check_labels(object, group, err);
    }
    return rc != 0 ? rc : check_backends(object, group, err);
}

int validate_group(const struct server_group *group, struct errmsg *err)
{
    struct object object = {.kind = "server group", .name = group->name};
    int rc = validate_name("server group", group->name, err);

    return rc != 0 ? rc : check_group(&object, group, err);
}

void validate_group_all(const struct server_group *group, struct validate_faults *ret_faults)
{
    struct object object = {.kind = "server group", .name = group->name, .faults = ret_faults};

    ret_faults->n = 0;
    ret_faults->codes[0] = validate_name("server group", group->name, &ret_faults->messages[0]);
    ret_faults->n = ret_faults->codes[0] != 0;
    check_group(&object, group, NULL);
}
