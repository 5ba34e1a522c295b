/* The catalog of a story and its changes, as operators and the leader make them. */
#include "tests/sim/story_catalog.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/catalog_builder.h"

struct endpoint story_backend(struct sim *sim)
{
    char text[ENDPOINT_TEXT_BYTES];

    snprintf(text, sizeof text, "10.0.0.%u:80", 1 + (unsigned)story_below(sim, 8));
    return build_endpoint(text);
}

static void change_guard(struct sim *sim, struct server_group *group)
{
    if (story_below(sim, 2) == 0) {
        group->guard.correlated_alarm = !group->guard.correlated_alarm;
    } else {
        story_draw_guard(sim, group);
    }
}

const struct catalog_group *story_find_group(struct sim *sim, const char *name)
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
    story_draw_rule(sim, &group.rule);
    story_draw_check(sim, &group.check);
    story_draw_list(sim, &group);
    story_fit_probers(&group);
    group.drain = (struct drain_policy){.is_on = story_below(sim, 2) == 0,
                                        .timeout_ms = 1000 + 1000 * (uint32_t)story_below(sim, 9)};
    group.all_bad = (uint8_t)(story_below(sim, 4) == 0 ? ALL_BAD_FAIL_CLOSED : ALL_BAD_FAIL_OPEN);
    story_draw_guard(sim, &group);
    story_fit_weighing(&group);
    build_put_group(&command, &group);
    server_group_close(&group);
    commit(sim, &command);
}

/* The group as it is, with its backends, to be changed in one place. */
static bool clone_group(struct sim *sim, const char *name, struct server_group *ret_spec)
{
    const struct catalog_group *group = story_find_group(sim, name);

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
    story_fit_probers(spec);
    story_fit_weighing(spec);
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

void story_change_group(struct sim *sim, const char *name)
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
        story_draw_check(sim, &spec.check);
        story_draw_list(sim, &spec);
        sim->sometimes->check_was_changed++;
        break;
    case 1:
        story_draw_rule(sim, &spec.rule);
        sim->sometimes->rule_was_changed++;
        break;
    case 2:
        sim->sometimes->checks_were_switched++;
        if (spec.n_checks > 0) { /* a list has no switch */
            story_draw_check(sim, &spec.check);
            story_drop_list(&spec);
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

void story_change_admin(struct sim *sim, const char *name, enum admin_state state)
{
    const struct catalog_group *group = story_find_group(sim, name);
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
void story_change_hold(struct sim *sim)
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

        if (!is_left && (i == SIM_GROUPS || story_find_group(sim, group) != NULL)) {
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
           ((guard->velocity_percent > 0 && guard->velocity_window_ms > STORY_WINDOW_MS_MAX) ||
            (guard->return_percent > 0 && guard->return_window_ms > STORY_WINDOW_MS_MAX) ||
            guard->flap_hold_ms > STORY_WINDOW_MS_MAX);
}

bool story_has_long_windows(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_GROUPS; i++) {
        if (has_long_window(story_find_group(sim, sim->groups[i]))) {
            return true;
        }
    }
    return false;
}

void story_accept_checks(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_GROUPS; i++) {
        const struct catalog_group *group = story_find_group(sim, sim->groups[i]);
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

        if (has_long_window(story_find_group(sim, sim->groups[i])) &&
            clone_group(sim, sim->groups[i], &spec)) {
            spec.guard.velocity_window_ms = story_short_window_ms(sim);
            spec.guard.return_window_ms = story_short_window_ms(sim);
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

void story_purge(struct sim *sim)
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
