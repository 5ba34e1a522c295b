/* The statements that write the catalog. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/names.h"
#include "common/model/profile.h"
#include "tests/lib/catalog_builder.h"
#include "tests/scenario/statement.h"

static void commit(struct scenario *scenario, struct command *command)
{
    struct errmsg err = {{0}};

    if (world_commit(&scenario->world, command, &err) != 0) {
        script_fail(scenario, "%s", err.text);
    }
}

void statement_vote_interval(struct scenario *scenario, const char *text)
{
    struct command command = {0};
    struct cluster_settings settings;

    cluster_settings_default(&settings);
    settings.vote_interval_ms = (uint32_t)(script_time_ns(scenario, text) / WORLD_MS);
    build_settings(&command, &settings);
    commit(scenario, &command);
}

void statement_zones(struct scenario *scenario)
{
    struct command command = {0};

    for (uint32_t i = 1; i < scenario->line.n; i++) {
        const char *word = script_word(scenario, i);
        const char *zone = strchr(word, '=');
        char id[16];

        if (zone == NULL) {
            script_fail(scenario, "zones: \"%s\": write NODE=ZONE", word);
        }
        snprintf(id, sizeof id, "%.*s", (int)(zone - word), word);
        struct change *change =
            build_node(&command, script_number(scenario, id, scenario->world.n_nodes), ROLE_VOTER);
        snprintf(change->u.node->zone, sizeof change->u.node->zone, "%s", zone + 1);
    }
    commit(scenario, &command);
}

static void put_group(struct scenario *scenario, const struct named_group *group)
{
    struct command command = {.is_forced = false};
    struct server_group spec = group->spec;

    if (server_group_copy_checks(&spec, &group->spec) != 0) {
        abort();
    }
    spec.n_backends = group->n_backends;
    spec.backends = calloc(group->n_backends + 1, sizeof *spec.backends);
    for (uint32_t i = 0; i < group->n_backends; i++) {
        profile_backend_defaults((enum profile)spec.profile, &spec.backends[i]);
        spec.backends[i].at = group->backends[i].at;
        spec.backends[i].weight = group->backends[i].weight;
    }
    server_group_sort_backends(&spec);
    build_put_group(&command, &spec);
    server_group_close(&spec);
    commit(scenario, &command);
}

static struct named_group *make_group(struct scenario *scenario, const char *name)
{
    for (uint32_t i = 0; i < scenario->n_groups; i++) {
        if (strcmp(scenario->groups[i].spec.name, name) == 0) {
            return &scenario->groups[i];
        }
    }
    if (scenario->n_groups == SCRIPT_GROUPS) {
        script_fail(scenario, "more than %d groups", SCRIPT_GROUPS);
    }
    struct named_group *group = &scenario->groups[scenario->n_groups++];
    profile_group_defaults(PROFILE_NLB, PROTOCOL_TCP, &group->spec);
    snprintf(group->spec.name, sizeof group->spec.name, "%s", name);
    return group;
}

static void parse_column(struct scenario *scenario, const char *text, struct rule_column *column)
{
    struct errmsg err;
    char spaced[32];

    snprintf(spaced, sizeof spaced, "%s", text); /* at-least:2, percent:82 */
    if (strchr(spaced, ':') != NULL) {
        *strchr(spaced, ':') = ' ';
    }
    if (rule_column_parse(spaced, column, &err) != 0) {
        script_fail(scenario, "%s", err.text);
    }
}

static void set_rule(struct scenario *scenario, struct verdict_rule *rule, const char *key,
                     const char *value)
{
    if (strcmp(key, "rule") == 0) {
        parse_column(scenario, value, &rule->down);
        rule->up = rule->down;
        rule->is_split = false;
    } else if (strcmp(key, "down") == 0) {
        parse_column(scenario, value, &rule->down);
        rule->is_split = true;
    } else {
        parse_column(scenario, value, &rule->up);
        rule->is_split = true;
    }
}

static uint32_t milliseconds(struct scenario *scenario, const char *value)
{
    return (uint32_t)(script_time_ns(scenario, value) / WORLD_MS);
}

/* False: it is no field of the guard. */
static bool set_guard(struct scenario *scenario, struct guard_policy *guard, const char *key,
                      const char *value)
{
    if (strcmp(key, "guard") == 0) {
        *guard = guard_policy_of((enum guard_preset)names_value(&names_guard_preset, value));
    } else if (strcmp(key, "velocity") == 0) {
        guard->velocity_percent = (uint8_t)script_number(scenario, value, 100);
    } else if (strcmp(key, "velocity-window") == 0) {
        guard->velocity_window_ms = milliseconds(scenario, value);
    } else if (strcmp(key, "exempt-below") == 0) {
        guard->exempt_below = (uint16_t)script_number(scenario, value, 1000);
    } else if (strcmp(key, "flap-hold") == 0) {
        guard->flap_hold_ms = milliseconds(scenario, value);
    } else if (strcmp(key, "return") == 0) {
        guard->return_percent = (uint8_t)script_number(scenario, value, 100);
    } else if (strcmp(key, "return-window") == 0) {
        guard->return_window_ms = milliseconds(scenario, value);
    } else if (strcmp(key, "shadow") == 0) {
        guard->shadow_cycles = (uint16_t)script_number(scenario, value, GUARD_SHADOW_CYCLES_MAX);
    } else if (strcmp(key, "shadow-stop") == 0) {
        guard->shadow_stop = strcmp(value, "on") == 0;
    } else if (strcmp(key, "slow-start") == 0) {
        guard->slow_start_ms = milliseconds(scenario, value);
    } else if (strcmp(key, "alarm") == 0) {
        guard->correlated_alarm = strcmp(value, "on") == 0;
    } else {
        return false;
    }
    return true;
}

/* part=NAME:TYPE[:PORT][:dependency]: one of several checks, with the times and thresholds of the
 * group as they are; what the same statement says of these later is of this one. */
static void add_part(struct scenario *scenario, struct server_group *spec, const char *value)
{
    struct named_check *check;
    char text[64];
    char *rest = NULL;

    snprintf(text, sizeof text, "%s", value);
    if (spec->checks == NULL) {
        spec->checks = calloc(LIMIT_CHECKS, sizeof *spec->checks);
        spec->pass = (struct rule_column){.kind = RULE_ALL};
    }
    if (spec->checks == NULL || spec->n_checks == LIMIT_CHECKS) {
        script_fail(scenario, "too many parts");
    }
    struct health_check times = spec->n_checks > 0 ? spec->checks[0].check : spec->check;
    check = &spec->checks[spec->n_checks++];
    *check = (struct named_check){.check_class = CHECK_LOCAL};
    snprintf(check->name, sizeof check->name, "%s", strtok_r(text, ":", &rest));
    const char *type = strtok_r(NULL, ":", &rest);
    profile_check_defaults(
        PROFILE_NLB, PROTOCOL_TCP,
        (enum check_type)names_value(&names_check_type, type == NULL ? "" : type), &check->check);
    check->check.timeout_ms = times.timeout_ms;
    check->check.interval_ms = times.interval_ms;
    check->check.healthy_threshold = times.healthy_threshold;
    check->check.unhealthy_threshold = times.unhealthy_threshold;
    for (char *word = strtok_r(NULL, ":", &rest); word != NULL; word = strtok_r(NULL, ":", &rest)) {
        if (strcmp(word, "dependency") == 0) {
            check->check_class = CHECK_DEPENDENCY;
        } else {
            check->check.port = (uint16_t)script_number(scenario, word, 65535);
        }
    }
}

/* One check again, as it would be by default. */
static void drop_parts(struct server_group *spec)
{
    if (spec->n_checks > 0) {
        spec->check = spec->checks[0].check;
    }
    free(spec->checks);
    spec->checks = NULL;
    spec->n_checks = 0;
    spec->pass = (struct rule_column){0};
}

/* What times and thresholds are said of: the last of several checks, or the one. */
static struct health_check *last_check(struct server_group *spec)
{
    return spec->n_checks > 0 ? &spec->checks[spec->n_checks - 1].check : &spec->check;
}

static void set_field(struct scenario *scenario, struct server_group *spec, const char *key,
                      const char *value)
{
    if (strcmp(key, "rule") == 0 || strcmp(key, "down") == 0 || strcmp(key, "up") == 0) {
        set_rule(scenario, &spec->rule, key, value);
    } else if (strcmp(key, "below-quorum") == 0) {
        spec->rule.below_quorum = (uint8_t)names_value(&names_below_quorum, value);
    } else if (strcmp(key, "timeout") == 0) {
        last_check(spec)->timeout_ms = milliseconds(scenario, value);
    } else if (strcmp(key, "interval") == 0) {
        last_check(spec)->interval_ms = milliseconds(scenario, value);
    } else if (strcmp(key, "healthy") == 0) {
        last_check(spec)->healthy_threshold = (uint8_t)script_number(scenario, value, 10);
    } else if (strcmp(key, "unhealthy") == 0) {
        last_check(spec)->unhealthy_threshold = (uint8_t)script_number(scenario, value, 10);
    } else if (strcmp(key, "probers") == 0) {
        last_check(spec)->probers = (uint8_t)script_number(scenario, value, LIMIT_NODES);
    } else if (strcmp(key, "recheck") == 0) {
        last_check(spec)->recheck = strcmp(value, "on") == 0;
    } else if (strcmp(key, "graded") == 0) {
        spec->graded_weight = (uint8_t)names_value(&names_graded_weight, value);
    } else if (strcmp(key, "all-bad") == 0) {
        spec->all_bad = (uint8_t)names_value(&names_all_bad, value);
    } else if (strcmp(key, "fail-open-threshold") == 0) {
        spec->fail_open_percent = (uint8_t)script_number(scenario, value, 100);
    } else if (strcmp(key, "part") == 0) {
        add_part(scenario, spec, value);
    } else if (strcmp(key, "pass") == 0) {
        parse_column(scenario, value, &spec->pass);
    } else if (strcmp(key, "parts") == 0) {
        drop_parts(spec);
    } else if (strcmp(key, "checks") == 0) {
        spec->check.is_enabled = strcmp(value, "on") == 0;
    } else if (strcmp(key, "check") == 0) {
        struct health_check old = spec->check;

        profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP,
                               (enum check_type)names_value(&names_check_type, value),
                               &spec->check);
        spec->check.timeout_ms = old.timeout_ms;
        spec->check.interval_ms = old.interval_ms;
        spec->check.healthy_threshold = old.healthy_threshold;
        spec->check.unhealthy_threshold = old.unhealthy_threshold;
    } else if (strcmp(key, "label") == 0) {
        spec->n_labels = 1;
        snprintf(spec->labels[0].key, sizeof spec->labels[0].key, "note");
        snprintf(spec->labels[0].value, sizeof spec->labels[0].value, "%s", value);
    } else if (!set_guard(scenario, &spec->guard, key, value)) {
        script_fail(scenario, "group: \"%s\"?", key);
    }
}

/* group NAME key=value ... b1=10.0.0.1:80 b2=... ; backends that are not named are removed when any
 * is named. */
void statement_group(struct scenario *scenario)
{
    struct named_group *group = make_group(scenario, script_word(scenario, 1));
    bool has_backends = false;

    for (uint32_t i = 2; i < scenario->line.n; i++) {
        char *key = scenario->line.words[i];
        char *value = strchr(key, '=');

        if (value == NULL) {
            script_fail(scenario, "group: \"%s\" is no key=value", key);
        }
        *value++ = '\0';
        if (key[0] != 'b' || key[1] < '0' || key[1] > '9') {
            set_field(scenario, &group->spec, key, value);
            continue;
        }
        if (!has_backends) {
            group->n_backends = 0;
            has_backends = true;
        }
        if (group->n_backends == SCRIPT_BACKENDS) {
            script_fail(scenario, "more than %d backends", SCRIPT_BACKENDS);
        }
        struct named_backend *backend = &group->backends[group->n_backends++];
        snprintf(backend->name, sizeof backend->name, "%s", key);
        backend->at = build_endpoint(value);
        backend->weight = 100;
    }
    server_group_settle(&group->spec);
    put_group(scenario, group);
}

void statement_weight(struct scenario *scenario)
{
    struct named_backend *backend;
    struct named_group *group = script_find(scenario, script_word(scenario, 1), &backend);

    if (backend == NULL) {
        script_fail(scenario, "weight of which backend?");
    }
    backend->weight = (uint8_t)script_number(scenario, script_word(scenario, 2), 100);
    put_group(scenario, group);
}

void statement_hold(struct scenario *scenario)
{
    struct command command = {0};
    const char *group = script_word(scenario, 2);
    bool is_on = script_is(scenario, 1, "on");

    if (!is_on && !script_is(scenario, 1, "off")) {
        script_fail(scenario, "hold on or off?");
    }
    group = strcmp(group, "all") == 0 ? "" : group;
    if (!script_is(scenario, 3, "node")) {
        build_hold(&command, group, is_on);
        commit(scenario, &command);
        return;
    }
    uint64_t id = script_number(scenario, script_word(scenario, 4), scenario->world.n_nodes);
    const struct hold_override hold = {.group = group, .is_on = is_on, .actor = "somebody"};
    struct engine_event event = {.kind = ENGINE_HOLD, .u.hold = &hold};
    world_step(&scenario->world, &scenario->world.nodes[id], &event);
}

void statement_admin(struct scenario *scenario)
{
    struct command command = {0};
    struct named_backend *backend;
    struct named_group *group = script_find(scenario, script_word(scenario, 1), &backend);
    char text[ENDPOINT_TEXT_BYTES];

    if (backend == NULL) {
        script_fail(scenario, "admin state of which backend?");
    }
    build_admin(&command, group->spec.name, endpoint_format(&backend->at, text),
                (enum admin_state)names_value(&names_admin_state, script_word(scenario, 2)));
    commit(scenario, &command);
}

/* churn each TIME for TIME: a group of its own gets and loses one backend in turn, so that each
 * revision makes or frees a target; the world runs meanwhile. */
void statement_churn(struct scenario *scenario)
{
    uint64_t each_ns = script_time_ns(scenario, script_word(scenario, 2));
    uint64_t end_ns = scenario->world.now_ns + script_time_ns(scenario, script_word(scenario, 4));
    unsigned n = 0;

    while (scenario->world.now_ns < end_ns) {
        struct command command = {0};

        if (n++ % 2 == 0) {
            build_put(&command, "churn", "10.99.0.1:80");
        } else {
            build_delete_group(&command, "churn");
        }
        commit(scenario, &command);
        if (n % 2 == 0) {
            struct catalog *catalog = catalog_state_catalog(scenario->world.state);

            command = (struct command){0};
            build_purge(&command, catalog, "churn", "10.99.0.1:80");
            catalog_unref(catalog);
            commit(scenario, &command);
        }
        world_run(&scenario->world, scenario->world.now_ns + each_ns);
    }
}
