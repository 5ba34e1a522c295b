/* What a group's health check may be. */
#include <stdio.h>
#include <string.h>

#include "common/model/names.h"
#include "common/model/profile.h"
#include "common/model/validate.h"
#include "common/model/validate_field.h"

static const struct range probe_time = {100, 300000, "0.1s..300s", "ms"};
static const struct range threshold = {1, 10, "1..10", ""};

/* Under `local` each node needs votes of its own; and a rule that asks for more votes than there
 * are probers could not be met by them. */
static int check_probers(const struct object *object, const struct server_group *group,
                         struct errmsg *err)
{
    static const struct range probers = {1, LIMIT_NODES, "1..64 or all", ""};
    const struct rule_column *columns[] = {&group->rule.down, &group->rule.up};
    int rc = validate_range(object, "check.probers", group->check.probers, &probers, err);

    for (size_t i = 0; rc == 0 && i < sizeof columns / sizeof columns[0]; i++) {
        if (columns[i]->kind == RULE_LOCAL) {
            bool is_default = profile_rule((enum profile)group->profile) == RULE_LOCAL;

            return object_refuse(
                object, err, ERR_INVALID,
                "check.probers must be all with rule local%s%s, where each node judges "
                "by its own probes, got %u: write another rule, such as majority, or leave "
                "probers out",
                is_default ? ", the default of profile " : "",
                is_default ? names_word(&names_profile, group->profile) : "", group->check.probers);
        }
        if (columns[i]->kind == RULE_AT_LEAST && columns[i]->value > group->check.probers) {
            return object_refuse(
                object, err, ERR_INVALID,
                "check.probers must be %u..64 or all with rule at-least %u, got %u",
                columns[i]->value, columns[i]->value, group->check.probers);
        }
    }
    return rc;
}

static int check_one(const struct object *object, const struct server_group *group,
                     const struct health_check *check, struct errmsg *err)
{
    int rc = validate_choice(object, "check.type", &names_check_type, check->type, err);

    if (rc == 0) {
        rc = validate_range(object, "check.timeout", check->timeout_ms, &probe_time, err);
    }
    if (rc == 0) {
        rc = validate_range(object, "check.interval", check->interval_ms, &probe_time, err);
    }
    if (rc == 0) {
        rc = validate_range(object, "check.healthyThreshold", check->healthy_threshold, &threshold,
                            err);
    }
    if (rc == 0) {
        rc = validate_range(object, "check.unhealthyThreshold", check->unhealthy_threshold,
                            &threshold, err);
    }
    if (rc == 0) {
        rc = validate_choice(object, "check.pacing", &names_pacing, check->pacing, err);
    }
    if (rc == 0) {
        rc = validate_choice(object, "check.source", &names_check_source, check->source, err);
    }
    if (rc == 0) {
        rc = validate_check_type(object, group, check, err);
    }
    return rc;
}

/* --- several --- */

static bool is_name(const char *name)
{
    bool begins = (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z');

    return begins && validate_holds_only(name, "._-", false);
}

/* Two of one name, or two that are one probe: it would have two voices. */
static int check_unlike(const struct object *object, const struct server_group *group,
                        unsigned index, struct errmsg *err)
{
    const struct named_check *check = &group->checks[index];

    for (unsigned i = 0; i < index; i++) {
        const struct named_check *other = &group->checks[i];

        if (strcmp(other->name, check->name) == 0) {
            return object_refuse(object, err, ERR_INVALID, "name is there twice");
        }
        if (other->check_class == check->check_class &&
            memcmp(&other->check, &check->check, sizeof check->check) == 0) {
            return object_refuse(object, err, ERR_INVALID,
                                 "it is the same probe as check %s: one of them is enough",
                                 other->name);
        }
    }
    return 0;
}

/* Who probes, and when, is of a target; of one whose vote is made of several the others could not
 * tell when all have to probe. */
static int check_unshared(const struct object *object, const struct health_check *check,
                          struct errmsg *err)
{
    if (check->probers != 0) {
        return object_refuse(object, err, ERR_UNAVAILABLE_YET,
                             "probers is not available yet in a list of checks: leave it out, and "
                             "all nodes probe");
    }
    if (check->recheck) {
        return object_refuse(object, err, ERR_UNAVAILABLE_YET,
                             "recheck is not available yet in a list of checks: leave it out");
    }
    if (!check->is_enabled) {
        return object_refuse(object, err, ERR_INVALID,
                             "enabled must be true in a list of checks: leave the check out, or "
                             "write `check: {enabled: false}` in place of the list");
    }
    return 0;
}

static int check_named(const struct object *object, const struct server_group *group,
                       unsigned index, struct errmsg *err)
{
    const struct named_check *check = &group->checks[index];

    if (!is_name(check->name)) {
        return object_refuse(object, err, ERR_INVALID,
                             "name must be 1..%d letters, digits, \".\", \"_\" or \"-\", a letter "
                             "first",
                             LIMIT_CHECK_NAME_BYTES);
    }
    int rc = validate_choice(object, "class", &names_check_class, check->check_class, err);
    if (rc == 0) {
        rc = check_one(object, group, &check->check, err);
    }
    if (rc == 0) {
        rc = check_unshared(object, &check->check, err);
    }
    return rc == 0 ? check_unlike(object, group, index, err) : rc;
}

static int check_pass(const struct object *object, const struct server_group *group,
                      struct errmsg *err)
{
    unsigned n_local = group_n_local(group);
    unsigned value = group->pass.value;

    if (n_local == 0) {
        return object_refuse(object, err, ERR_INVALID,
                             "checks: at least one must be of class local, or nothing would say "
                             "whether a backend is well");
    }
    switch ((enum rule_kind)group->pass.kind) {
    case RULE_ALL:
    case RULE_ANY:
        if (value == 0) {
            return 0;
        }
        break;
    case RULE_AT_LEAST:
        if (value >= 1 && value <= n_local) {
            return 0;
        }
        return object_refuse(object, err, ERR_INVALID,
                             "pass: the figure of at-least must be 1..%u, the number of local "
                             "checks, got %u",
                             n_local, value);
    case RULE_NONE:
    case RULE_LOCAL:
    case RULE_MAJORITY:
    case RULE_PERCENT:
    case RULE_ZONE_MAJORITY:
        break;
    }
    return object_refuse(object, err, ERR_INVALID, "pass must be all, any or at-least N");
}

static int check_list(const struct object *object, const struct server_group *group,
                      struct errmsg *err)
{
    bool is_cut = object->faults != NULL && object->faults->has_checks_left_out;
    int rc = 0;

    if ((group->n_checks < 2 && !is_cut) || group->n_checks > LIMIT_CHECKS) {
        return object_refuse(object, err, ERR_INVALID,
                             "checks must be 2..%d; one alone is written `check`, got %u",
                             LIMIT_CHECKS, (unsigned)group->n_checks);
    }
    for (unsigned i = 0; i < group->n_checks && rc == 0; i++) {
        const char *name = group->checks[i].name;
        struct object one = *object;
        char number[12];

        snprintf(number, sizeof number, "%u", i + 1);
        one.check = is_name(name) ? name : number;
        rc = check_named(&one, group, i, err);
    }
    return rc == 0 && !is_cut ? check_pass(object, group, err) : rc;
}

/* `check` beside a list says nothing of its own. */
static int check_settled(const struct object *object, const struct server_group *group,
                         struct errmsg *err)
{
    struct server_group settled = *group;

    group_settle_checks(&settled);
    return memcmp(&settled.check, &group->check, sizeof settled.check) == 0
               ? 0
               : object_refuse(object, err, ERR_INVALID, "check and checks exclude each other");
}

int validate_check(const struct object *object, const struct server_group *group,
                   struct errmsg *err)
{
    if (group->n_checks != 0) {
        int rc = check_list(object, group, err);

        return rc == 0 && object->faults == NULL ? check_settled(object, group, err) : rc;
    }
    if (group->pass.kind != RULE_NONE || group->pass.value != 0) {
        return object_refuse(object, err, ERR_INVALID, "pass is allowed only with checks");
    }
    int rc = check_one(object, group, &group->check, err);
    return rc == 0 && group->check.probers != 0 ? check_probers(object, group, err) : rc;
}
