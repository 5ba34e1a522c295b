#include "tests/sim/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/catalog_builder.h"

#define WINDOW_MS_MAX 4000 /* of velocity, in the calm */

uint64_t story_below(struct sim *sim, uint64_t n)
{
    return prng_below(&sim->prng, n);
}

void story_tell(const struct sim *sim, const char *what, uint64_t a, uint64_t b)
{
    if (sim->trace) {
        printf("%12.6f s  %s %llu %llu\n", (double)sim->world.now_ns / 1e9, what,
               (unsigned long long)a, (unsigned long long)b);
    }
}

/* --- what the catalog holds --- */

struct endpoint story_backend(struct sim *sim)
{
    char text[ENDPOINT_TEXT_BYTES];

    snprintf(text, sizeof text, "10.0.0.%u:80", 1 + (unsigned)story_below(sim, 8));
    return build_endpoint(text);
}

static struct rule_column random_column(struct sim *sim)
{
    uint8_t kind = (uint8_t)(RULE_LOCAL + story_below(sim, 6));
    uint64_t n = sim->world.n_nodes;

    /* The plain majority is what most people run. */
    if (story_below(sim, 3) == 0) {
        kind = RULE_MAJORITY;
    } else if (story_below(sim, 4) == 0) {
        kind = RULE_ZONE_MAJORITY;
    }
    return (struct rule_column){.kind = kind,
                                .value =
                                    (uint8_t)(kind == RULE_AT_LEAST  ? 1 + story_below(sim, n)
                                              : kind == RULE_PERCENT ? 1 + story_below(sim, 100)
                                                                     : 0)};
}

static void random_rule(struct sim *sim, struct verdict_rule *rule)
{
    rule->down = random_column(sim);
    rule->up = rule->down;
    rule->is_split = story_below(sim, 6) == 0;
    if (rule->is_split) {
        /* One that no vote of all could satisfy would never end as the truth is. */
        rule->up = random_column(sim);
    }
    rule->below_quorum =
        (uint8_t)(story_below(sim, 4) == 0 ? BELOW_QUORUM_LOCAL : BELOW_QUORUM_HOLD);
}

/* Few different checks, so that groups often share a target. */
static void random_check(struct sim *sim, struct health_check *check)
{
    check->timeout_ms = 300 + 400 * (uint32_t)story_below(sim, 3);
    check->interval_ms = 500 + 500 * (uint32_t)story_below(sim, 3);
    check->healthy_threshold = (uint8_t)(1 + story_below(sim, 3));
    check->unhealthy_threshold = (uint8_t)(1 + story_below(sim, 3));
    check->probers = story_below(sim, 2) == 0 ? (uint8_t)(1 + story_below(sim, 4)) : 0;
    check->recheck = story_below(sim, 4) == 0;
}

static void drop_list(struct server_group *group)
{
    free(group->checks);
    group->checks = NULL;
    group->n_checks = 0;
    group->pass = (struct rule_column){0};
}

/* In place of the one check, now and then: two or three, on ports of their own. Drawn apart, as
 * weights are. */
static void random_list(struct sim *sim, struct server_group *group)
{
    static const char *const names[] = {"a", "b", "c"};
    struct prng prng;

    drop_list(group);
    prng_init(&prng, sim->seed + (sim->world.revision << 32) + 2);
    if (prng_below(&prng, 3) != 0) {
        return;
    }
    unsigned n = 2 + (unsigned)prng_below(&prng, 2);
    for (unsigned i = 0; i < n; i++) {
        enum check_class check_class =
            i == 0 || prng_below(&prng, 3) != 0 ? CHECK_LOCAL : CHECK_DEPENDENCY;
        enum check_type type = prng_below(&prng, 2) == 0 ? CHECK_TYPE_TCP : CHECK_TYPE_HTTP;
        uint16_t port = (uint16_t)(i == 0 ? 0 : 80 + i);
        struct health_check *check = &build_check(group, names[i], type, port, check_class)->check;

        check->timeout_ms = 300 + 400 * (uint32_t)prng_below(&prng, 3);
        check->interval_ms = 500 + 500 * (uint32_t)prng_below(&prng, 3);
        check->healthy_threshold = (uint8_t)(1 + prng_below(&prng, 3));
        check->unhealthy_threshold = (uint8_t)(1 + prng_below(&prng, 3));
    }
    if (prng_below(&prng, 2) == 0) {
        group->pass = (struct rule_column){
            .kind = RULE_AT_LEAST, .value = (uint8_t)(1 + prng_below(&prng, group_n_local(group)))};
    }
    group_settle_checks(group);
}

/* Under `local` each node needs votes of its own, and at-least that many probers. */
static void fit_probers(struct server_group *spec)
{
    const struct rule_column *columns[] = {&spec->rule.down, &spec->rule.up};

    for (unsigned i = 0; i < 2 && spec->check.probers != 0; i++) {
        if (columns[i]->kind == RULE_LOCAL) {
            spec->check.probers = 0;
        } else if (columns[i]->kind == RULE_AT_LEAST && columns[i]->value > spec->check.probers) {
            spec->check.probers = columns[i]->value;
        }
    }
}

static uint32_t short_window_ms(struct sim *sim)
{
    return WINDOW_MS_MAX - 500 * (uint32_t)story_below(sim, 7);
}

/* Drawn apart, so that the rest of the story is what it was without: no verdict depends on it. */
static void random_weighing(struct sim *sim, struct server_group *group)
{
    struct prng prng;

    prng_init(&prng, sim->seed + (sim->world.revision << 32) + 1);
    group->guard.slow_start_ms = 0;
    if (prng_below(&prng, 2) == 0) {
        group->guard.slow_start_ms = 1000 + 500 * (uint32_t)prng_below(&prng, 9);
    }
    group->graded_weight = (uint8_t)(prng_below(&prng, 2) == 0 ? 1 + prng_below(&prng, 2) : 0);
}

/* Without checks there is nothing to grade by, and a list of them has no one response time. */
static void fit_weighing(struct server_group *spec)
{
    if (!spec->check.is_enabled) {
        spec->graded_weight = GRADED_OFF;
    } else if (spec->n_checks > 0 && spec->graded_weight == GRADED_BY_LATENCY) {
        spec->graded_weight = GRADED_BY_VOTES;
    }
}

/* Mostly so short that a story sees it, else long until story_shorten_windows. */
static uint32_t random_time_ms(struct sim *sim)
{
    uint32_t ms = 1000 + 500 * (uint32_t)story_below(sim, 3);

    return story_below(sim, 4) == 0 ? 15 * ms : ms;
}

static void random_returns(struct sim *sim, struct guard_policy *guard)
{
    if (story_below(sim, 3) == 0) {
        guard->flap_hold_ms = random_time_ms(sim);
    }
    if (story_below(sim, 3) == 0) {
        guard->return_percent = (uint8_t)(1 + story_below(sim, 60));
        guard->return_window_ms = random_time_ms(sim);
    }
}

static void random_velocity(struct sim *sim, struct guard_policy *guard)
{
    if (story_below(sim, 3) == 0) {
        guard->velocity_percent = (uint8_t)(1 + story_below(sim, 60));
        guard->velocity_window_ms = short_window_ms(sim);
        guard->exempt_below = (uint16_t)story_below(sim, 4);
        if (story_below(sim, 2) == 0) { /* until story_shorten_windows */
            guard->velocity_window_ms *= 20;
        }
    }
}

static void random_guard(struct sim *sim, struct server_group *group)
{
    bool is_standard = sim->is_patient || story_below(sim, 6) == 0;

    group->fail_open_percent = 0;
    if (story_below(sim, 3) == 0) {
        group->fail_open_percent = (uint8_t)(1 + story_below(sim, 100));
    }
    group->guard = guard_policy_of(is_standard ? GUARD_PRESET_STANDARD : GUARD_PRESET_OFF);
    group->guard.correlated_alarm = story_below(sim, 8) != 0;
    if (story_below(sim, 3) == 0) {
        group->guard.shadow_cycles = (uint16_t)(1 + story_below(sim, 6));
        group->guard.shadow_stop = story_below(sim, 4) != 0;
    }
    if (!is_standard) {
        random_velocity(sim, &group->guard);
        random_returns(sim, &group->guard);
    } else if (story_below(sim, 2) == 0) {
        group->guard.exempt_below = 2;
    }
    random_weighing(sim, group);
}

static void change_guard(struct sim *sim, struct server_group *group)
{
    if (story_below(sim, 2) == 0) {
        group->guard.correlated_alarm = !group->guard.correlated_alarm;
    } else {
        random_guard(sim, group);
    }
}

static const struct catalog_group *find_group(struct sim *sim, const char *name)
{
    return catalog_group_find(sim->world.history[sim->world.revision], name);
}

static bool commit(struct sim *sim, struct command *command)
{
    struct errmsg err = {{0}};

    if (world_commit(&sim->world, command, &err) != 0) {
        story_tell(sim, err.text, 0, 0);
        return false;
    }
    story_tell(sim, "revision", sim->world.revision, 0);
    return true;
}

void story_put_group(struct sim *sim, const char *name)
{
    struct command command = {0};
    struct server_group group;
    uint64_t n = story_below(sim, 3) == 0 ? 1 + story_below(sim, SIM_BACKENDS) : SIM_BACKENDS;

    build_group(&group, name, "");
    free(group.backends);
    group.backends = calloc(SIM_BACKENDS, sizeof *group.backends);
    if (group.backends == NULL) {
        abort();
    }
    for (uint64_t i = 0; i < n; i++) {
        struct endpoint at = story_backend(sim);
        bool is_there = false;

        for (uint32_t j = 0; j < group.n_backends; j++) {
            is_there |= endpoint_compare(&group.backends[j].at, &at) == 0;
        }
        if (!is_there) {
            group.backends[group.n_backends].at = at;
            group.backends[group.n_backends].weight = story_below(sim, 8) == 0 ? 0 : 100;
            group.backends[group.n_backends++].admin_state = ADMIN_ENABLED;
        }
    }
    server_group_sort_backends(&group);
    random_rule(sim, &group.rule);
    random_check(sim, &group.check);
    random_list(sim, &group);
    fit_probers(&group);
    group.drain = (struct drain_policy){.is_on = story_below(sim, 2) == 0,
                                        .timeout_ms = 1000 + 1000 * (uint32_t)story_below(sim, 9)};
    group.all_bad = (uint8_t)(story_below(sim, 4) == 0 ? ALL_BAD_FAIL_CLOSED : ALL_BAD_FAIL_OPEN);
    random_guard(sim, &group);
    fit_weighing(&group);
    build_put_group(&command, &group);
    server_group_close(&group);
    commit(sim, &command);
}

/* The group as it is, with its backends, to be changed in one place. */
static bool clone_group(struct sim *sim, const char *name, struct server_group *ret_spec)
{
    const struct catalog_group *group = find_group(sim, name);

    if (group == NULL || group->is_deleted) {
        return false;
    }
    *ret_spec = group->spec;
    if (server_group_copy_checks(ret_spec, &group->spec) != 0) {
        abort();
    }
    ret_spec->backends = calloc(group->n_backends + 1u, sizeof *ret_spec->backends);
    if (ret_spec->backends == NULL) {
        abort();
    }
    ret_spec->n_backends = 0;
    for (uint32_t i = 0; i < group->n_backends; i++) {
        if (group->backends[i].life == LIFE_AVAILABLE) {
            ret_spec->backends[ret_spec->n_backends++] = catalog_backend_value(&group->backends[i]);
        }
    }
    return true;
}

static void put_changed(struct sim *sim, struct server_group *spec)
{
    struct command command = {0};

    server_group_sort_backends(spec);
    fit_probers(spec);
    fit_weighing(spec);
    build_put_group(&command, spec);
    server_group_close(spec);
    commit(sim, &command);
}

static void change_backends(struct sim *sim, struct server_group *spec)
{
    struct endpoint at = story_backend(sim);

    for (uint32_t i = 0; i < spec->n_backends; i++) {
        if (endpoint_compare(&spec->backends[i].at, &at) == 0) {
            spec->backends[i] = spec->backends[--spec->n_backends];
            return;
        }
    }
    spec->backends[spec->n_backends++] =
        (struct backend){.at = at, .weight = 100, .admin_state = ADMIN_ENABLED};
}

static void change_group(struct sim *sim, const char *name)
{
    struct server_group spec;

    if (!clone_group(sim, name, &spec)) {
        story_put_group(sim, name);
        return;
    }
    /* What a shadow is for is not to be waited for. */
    switch (spec.guard.shadow_cycles > 0 && story_below(sim, 3) == 0 ? 0 : story_below(sim, 6)) {
    case 5:
        change_guard(sim, &spec);
        sim->sometimes->guard_was_changed++;
        break;
    case 0:
        sim->sometimes->list_was_changed += spec.n_checks > 0;
        random_check(sim, &spec.check);
        random_list(sim, &spec);
        sim->sometimes->check_was_changed++;
        break;
    case 1:
        random_rule(sim, &spec.rule);
        sim->sometimes->rule_was_changed++;
        break;
    case 2:
        sim->sometimes->checks_were_switched++;
        if (spec.n_checks > 0) { /* a list has no switch */
            random_check(sim, &spec.check);
            drop_list(&spec);
        }
        spec.check.is_enabled = !spec.check.is_enabled;
        break;
    default:
        change_backends(sim, &spec);
        sim->sometimes->backends_were_changed++;
        break;
    }
    put_changed(sim, &spec);
}

static void change_admin(struct sim *sim, const char *name, enum admin_state state)
{
    const struct catalog_group *group = find_group(sim, name);
    struct command command = {0};
    char text[ENDPOINT_TEXT_BYTES];

    if (group == NULL || group->n_backends == 0) {
        return;
    }
    const struct catalog_backend *backend = &group->backends[story_below(sim, group->n_backends)];
    if (backend->life == LIFE_AVAILABLE) {
        build_admin(&command, name, endpoint_format(&backend->spec.at, text), state);
        sim->sometimes->admin_was_changed += commit(sim, &command);
    }
}

/* --- hold --- */

static void hold_node(struct sim *sim, uint64_t id, const char *group, bool is_on)
{
    const struct hold_override hold = {.group = group, .is_on = is_on, .actor = "local"};
    struct engine_event event = {.kind = ENGINE_HOLD, .u.hold = &hold};
    struct world_node *node = &sim->world.nodes[id];

    if (node->is_up && node->stalled_until_ns <= sim->world.now_ns) {
        world_step(&sim->world, node, &event);
    }
}

static void set_hold(struct sim *sim, const char *group, bool is_on)
{
    struct command command = {0};

    build_hold(&command, group, is_on);
    commit(sim, &command);
}

/* Of everything or of a group, by everybody or by one node for itself. */
static void change_hold(struct sim *sim)
{
    const char *group = story_below(sim, 2) == 0 ? "" : sim->groups[story_below(sim, SIM_GROUPS)];
    bool is_on = story_below(sim, 3) == 0;
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);

    story_tell(sim, group[0] == '\0' ? "hold" : group, is_on, id);
    if (story_below(sim, 2) == 0) {
        hold_node(sim, id, group, is_on);
    } else {
        set_hold(sim, group, is_on);
    }
}

void story_end_holds(struct sim *sim)
{
    bool is_left = story_below(sim, 8) == 0; /* the replicated ones */

    for (unsigned i = 0; i <= SIM_GROUPS; i++) {
        const char *group = i < SIM_GROUPS ? sim->groups[i] : "";

        if (!is_left && (i == SIM_GROUPS || find_group(sim, group) != NULL)) {
            set_hold(sim, group, false);
        }
        for (uint32_t id = 1; id <= sim->world.n_nodes; id++) {
            hold_node(sim, id, group, false);
        }
    }
}

static bool has_long_window(const struct catalog_group *group)
{
    const struct guard_policy *guard = group == NULL ? NULL : &group->spec.guard;

    return guard != NULL &&
           ((guard->velocity_percent > 0 && guard->velocity_window_ms > WINDOW_MS_MAX) ||
            (guard->return_percent > 0 && guard->return_window_ms > WINDOW_MS_MAX) ||
            guard->flap_hold_ms > WINDOW_MS_MAX);
}

bool story_has_long_windows(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_GROUPS; i++) {
        if (has_long_window(find_group(sim, sim->groups[i]))) {
            return true;
        }
    }
    return false;
}

void story_accept_checks(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_GROUPS; i++) {
        const struct catalog_group *group = find_group(sim, sim->groups[i]);
        struct server_group spec;

        if (group != NULL && group->spec.guard.shadow_cycles > 0 && story_below(sim, 3) == 0 &&
            clone_group(sim, sim->groups[i], &spec)) {
            spec.guard.shadow_cycles = 0;
            put_changed(sim, &spec);
        }
    }
}

void story_shorten_windows(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_GROUPS; i++) {
        struct server_group spec;

        if (has_long_window(find_group(sim, sim->groups[i])) &&
            clone_group(sim, sim->groups[i], &spec)) {
            spec.guard.velocity_window_ms = short_window_ms(sim);
            spec.guard.return_window_ms = short_window_ms(sim);
            if (spec.guard.flap_hold_ms > 0 && !sim->is_patient) {
                spec.guard.flap_hold_ms = 1000;
            }
            spec.check.is_enabled &= story_below(sim, 4) != 0 || spec.n_checks > 0;
            put_changed(sim, &spec);
        }
    }
}

void story_change_zone(struct sim *sim, uint64_t id)
{
    static const char *const zones[] = {"", "a", "b", "c"};
    struct command command = {0};
    const struct catalog_node *node =
        catalog_node_find(sim->world.history[sim->world.revision], id);

    if (node != NULL) {
        struct change *change = build_node(&command, id, (enum raft_role)node->spec.role);
        char *zone = change->u.node->zone;

        snprintf(zone, sizeof change->u.node->zone, "%s", zones[story_below(sim, 4)]);
        sim->sometimes->zone_was_changed += commit(sim, &command);
    }
}

void story_change_interval(struct sim *sim)
{
    struct command command = {0};
    struct cluster_settings settings = *catalog_settings(sim->world.history[sim->world.revision]);

    settings.vote_interval_ms = 250 << story_below(sim, 3);
    build_settings(&command, &settings);
    commit(sim, &command);
}

/* What a leader would do with the engines' proposals. */
static void purge(struct sim *sim)
{
    for (uint32_t id = 1; id <= sim->world.n_nodes; id++) {
        const struct world_node *node = &sim->world.nodes[id];

        if (!node->is_up || node->purge_ns == 0 ||
            sim->world.now_ns > node->purge_ns + 2 * WORLD_SECOND) {
            continue;
        }
        struct command command = {0};
        struct change *changes = calloc(1, sizeof *changes);
        struct backend_purge *what = calloc(1, sizeof *what);
        if (changes == NULL || what == NULL) {
            abort();
        }
        *what = node->purge;
        *changes = (struct change){.kind = CHANGE_PURGE_BACKEND, .u.purge = what};
        command.changes = changes;
        command.n_changes = 1;
        sim->sometimes->backend_purged += commit(sim, &command);
        return;
    }
}

/* --- what the world does --- */

static const uint8_t failures[] = {REASON_CONNECT_TIMEOUT, REASON_CONNECT_FAILED,
                                   REASON_CONNECT_INTERRUPT, REASON_RECV_RESPONSE_TIMEOUT};

struct truth story_truth(struct sim *sim)
{
    struct truth truth = {.reason = REASON_OK, .response_ns = 1 + story_below(sim, 200 * WORLD_MS)};

    if (story_below(sim, 2) == 0) {
        truth.reason = failures[story_below(sim, 4)];
    }
    return truth;
}

/* What many backends need is gone, or is there again. */
static void collapse(struct sim *sim)
{
    struct truth truth = story_truth(sim);

    for (uint32_t i = 0; i < sim->world.n_backends; i++) {
        if (story_below(sim, 5) != 0) {
            world_set_truth(&sim->world, &sim->world.backends[i].at, &truth);
        }
    }
    sim->sometimes->collapse += truth.reason != REASON_OK;
    story_tell(sim, "truth of many", sim->world.n_backends, truth.reason);
}

/* Of several checks each is probed at a port of its own; drawn apart, as they are. */
static uint16_t story_port(struct sim *sim)
{
    bool has_list = false;
    struct prng prng;

    for (unsigned i = 0; i < SIM_GROUPS; i++) {
        const struct catalog_group *group = find_group(sim, sim->groups[i]);

        has_list |= group != NULL && group->spec.n_checks > 0;
    }
    prng_init(&prng, sim->seed + sim->world.now_ns);
    return has_list && prng_below(&prng, 2) == 0 ? (uint16_t)(81 + prng_below(&prng, 2)) : 80;
}

/* It comes and goes, for a while. */
static void waver(struct sim *sim)
{
    struct endpoint at = story_backend(sim);
    struct world_backend *backend = world_backend(&sim->world, &at);
    uint64_t n = 0;
    bool fails = story_below(sim, 2) == 0;

    while (n < WORLD_SCRIPT - 5) {
        for (uint64_t run = 1 + story_below(sim, 5); run > 0; run--) {
            backend->script[n++] = fails ? 'F' : 'S';
        }
        fails = !fails;
    }
    backend->script[n] = '\0';
    backend->script_failure =
        (struct truth){.reason = REASON_CONNECT_FAILED, .response_ns = WORLD_MS};
    memset(backend->script_at, 0, sizeof backend->script_at);
    sim->sometimes->truth_wavers++;
    story_tell(sim, "waver", at.addr.bytes[3], n);
}

void story_end_wavering(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->world.n_backends; i++) {
        sim->world.backends[i].script[0] = '\0';
    }
}

static void change_truth(struct sim *sim)
{
    if (story_below(sim, 3) == 0) {
        waver(sim);
        return;
    }
    if (story_below(sim, 6) == 0) {
        collapse(sim);
        return;
    }
    struct endpoint at = story_backend(sim);
    struct truth truth = story_truth(sim);

    at.port = story_port(sim);
    if (story_below(sim, 2) == 0) {
        sim->sometimes->truth_changed++;
        world_set_truth(&sim->world, &at, &truth);
        story_tell(sim, "truth everywhere", at.addr.bytes[3], truth.reason);
        return;
    }
    uint64_t node_id = 1 + story_below(sim, sim->world.n_nodes);
    sim->sometimes->truth_changed_for_one++;
    if (story_below(sim, 4) == 0) {
        truth.reason = REASON_LOCAL_NO_PORT;
        sim->sometimes->local_fault++;
    }
    world_backend(&sim->world, &at)->truth[node_id] = truth;
    story_tell(sim, "truth at node", node_id, truth.reason);
}

void story_start_node(struct sim *sim, uint64_t id)
{
    struct world_node *node = &sim->world.nodes[id];
    unsigned kept = WORLD_KEPT_NONE;

    if (node->kept_catalog != NULL && story_below(sim, 2) == 0) {
        kept = story_below(sim, 3) == 0 ? WORLD_KEPT_VERDICTS : WORLD_KEPT_ALL;
    }
    story_tell(sim, "start", id, kept);
    sim->sometimes->restart_with_kept += kept == WORLD_KEPT_ALL;
    sim->sometimes->restart_with_kept_verdicts += kept == WORLD_KEPT_VERDICTS;
    sim->sometimes->restart_without += kept == WORLD_KEPT_NONE && node->epoch > 0;
    checker_note_start(&sim->checker, id, kept != WORLD_KEPT_NONE);
    world_start(&sim->world, id, kept, story_below(sim, 2 * WORLD_SECOND));
}

/* Each id is used once in a cluster's life; a node that is added may be started late, or fail to.
 */
static void change_members(struct sim *sim)
{
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);

    if (story_below(sim, 2) == 0) {
        if (sim->world.n_nodes == sim->checker.n_nodes_max) {
            return;
        }
        id = world_add_node(&sim->world, story_below(sim, 2) == 0 ? ROLE_VOTER : ROLE_STANDBY);
        story_tell(sim, "add node", id, 0);
        if (id != 0) {
            sim->world.nodes[id].store_is_frozen = false;
            if (story_below(sim, 2) == 0) {
                story_start_node(sim, id);
            } else {
                sim->not_before_ns[id] = sim->world.now_ns + story_below(sim, 120 * WORLD_SECOND);
            }
        }
        return;
    }
    if (!sim->world.nodes[id].is_gone) {
        bool is_removed = world_remove_node(&sim->world, id);

        story_tell(sim, "remove node", id, is_removed);
    }
}

static void stop_or_start(struct sim *sim)
{
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);

    if (sim->world.nodes[id].is_gone || sim->world.now_ns < sim->not_before_ns[id]) {
        return;
    }
    if (!sim->world.nodes[id].is_up) {
        story_start_node(sim, id);
        return;
    }
    if (story_below(sim, 2) == 0) { /* a crash: what was written down last is what there is */
        story_tell(sim, "crash", id, 0);
        sim->sometimes->node_crashed++;
        world_crash(&sim->world, id);
        return;
    }
    story_tell(sim, "stop", id, 0);
    sim->sometimes->node_stopped++;
    checker_note_kept(&sim->checker, id);
    world_stop(&sim->world, id);
}

static void keep(struct sim *sim)
{
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);

    if (sim->world.nodes[id].is_up) {
        story_tell(sim, "keep", id, 0);
        checker_note_kept(&sim->checker, id);
        world_keep(&sim->world, id);
    }
}

static void freeze_or_thaw(struct sim *sim)
{
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);

    story_tell(sim, "freeze or thaw", id, 0);
    sim->sometimes->store_was_frozen++;
    world_freeze_store(&sim->world, id, !sim->world.nodes[id].store_is_frozen);
}

static void change_cluster(struct sim *sim)
{
    uint64_t kind = story_below(sim, 6);

    if (kind < 2) {
        story_change_interval(sim);
    } else if (kind == 2) {
        story_change_zone(sim, 1 + story_below(sim, sim->world.n_nodes));
    } else {
        change_members(sim);
    }
}

void story_go_on(struct sim *sim)
{
    const char *group = sim->groups[story_below(sim, SIM_GROUPS)];

    faults_heal_next(sim);
    switch (story_below(sim, 21)) {
    case 0:
    case 1:
    case 2:
    case 3:
        change_truth(sim);
        break;
    case 4:
    case 5:
        faults_cut_something(sim);
        break;
    case 6:
    case 7:
        faults_heal(sim);
        break;
    case 8:
    case 9:
        stop_or_start(sim);
        break;
    case 10:
        freeze_or_thaw(sim);
        break;
    case 11:
    case 12:
        change_group(sim, group);
        break;
    case 13:
    case 19:
        change_admin(sim, group, (enum admin_state)(ADMIN_ENABLED + story_below(sim, 3)));
        break;
    case 14:
        purge(sim);
        break;
    case 15:
        faults_hit_machine(sim);
        break;
    case 16:
        keep(sim);
        break;
    case 17:
    case 18:
        change_hold(sim);
        break;
    default:
        change_cluster(sim);
        break;
    }
}
