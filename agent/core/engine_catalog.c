/* Following the catalog: a new revision to targets, rows, scopes, observers and V. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_diff.h"
#include "agent/core/engine_state.h"
#include "common/base/err.h"
#include "common/base/plant.h"
#include "common/base/str.h"

struct follow {
    struct engine *engine;
    struct engine_actions *actions;
    uint64_t revision_before; /* 0 = this is the first catalog */
    uint64_t revision;
};

/* --- targets --- */

static void tell_probe(struct follow *follow, const struct catalog_target *target,
                       struct target_id id)
{
    struct engine_actions *actions = follow->actions;
    struct probe_change change = {.id = id, .target = target};

    if (target != NULL && target->check->type == CHECK_TYPE_NONE) {
        return; /* nobody probes it */
    }
    assert(actions->n_probes < actions->probes_capacity);
    if (target != NULL) {
        change.source = follow->engine->sources[target->to.addr.family == ADDR_IPV6];
        change.is_at_start = follow->revision_before == 0;
        if (engine_is_shared(follow->engine, id.slot)) {
            id_set_add(&follow->engine->orders_due, id.slot); /* its schedule begins anew */
        }
    }
    actions->probes[actions->n_probes++] = change;
}

static void free_target(struct engine *engine, uint32_t slot)
{
    struct engine_target *target = &engine->targets[slot];

    while (target->first_row != NO_ROW) {
        engine_unlink_user(engine, target->first_row);
    }
    engine_free_parts(engine, slot);
    *target = (struct engine_target){.first_row = NO_ROW};
    engine_forget_latency(engine, slot);
    votes_set_slot(engine->votes, slot, 0, 0, 0);
    timers_clear(&engine->opinion_timers, slot);
    engine_share_free(engine, slot);
}

void engine_make_target(struct engine *engine, struct target_id id,
                        const struct health_check *check)
{
    uint32_t cycle_ms = check->timeout_ms + check->interval_ms;

    engine->targets[id.slot] = (struct engine_target){
        .birth = id.birth,
        .first_row = NO_ROW,
        .timeout_ms = check->timeout_ms & INT32_MAX,
        .interval_ms = check->interval_ms,
        .policy = {.healthy_threshold =
                       check->type == CHECK_TYPE_NONE ? 0 : check->healthy_threshold & 15U,
                   .unhealthy_threshold = check->unhealthy_threshold & 15U},
        .kinds_high = check_kinds(check) >> 1 & 31U,
    };
    engine_share_make(engine, id, check);
    if (engine->history != NULL) {
        history_reset_slot(engine->history, id.slot, id.birth);
    }
    votes_set_slot(engine->votes, id.slot, id.birth, check_kinds(check),
                   check->unhealthy_threshold * cycle_ms);
}

static void follow_target(void *user, const struct catalog_target *before,
                          const struct catalog_target *after)
{
    struct follow *follow = user;

    if (before != NULL) {
        free_target(follow->engine, before->id.slot);
        tell_probe(follow, NULL, before->id);
    }
    if (after != NULL) {
        engine_make_target(follow->engine, after->id, after->check);
        tell_probe(follow, after, after->id);
    }
}

/* --- groups --- */

static uint32_t find_scope(const struct engine *engine, struct row_id id)
{
    uint32_t scope = engine->rows[id.row].scope;

    return scope != NO_SCOPE && engine->scopes[scope].row.birth == id.birth ? scope : NO_SCOPE;
}

static void free_scope(struct engine *engine, uint32_t scope)
{
    uint32_t row = engine->scopes[scope].row.row;

    engine->rows[row].scope = NO_SCOPE;
    timers_clear(&engine->row_timers, row);
    id_set_add(&engine->freed_rows, row);
    id_set_remove(&engine->dirty_scopes, scope);
    timers_clear(&engine->guard_timers, scope);
    if (engine->scopes[scope].has_weighing) {
        timers_clear(&engine->weight_timers, scope);
    }
    engine->scopes[scope] = (struct engine_scope){.first_row = engine->free_scope};
    engine->free_scope = scope;
}

static uint32_t make_scope(struct engine *engine, const struct catalog_group *group)
{
    uint32_t scope = engine->free_scope;

    assert(scope != NO_SCOPE && engine->rows[group->row.row].scope == NO_SCOPE);
    engine->free_scope = engine->scopes[scope].first_row;
    engine->scopes[scope] = (struct engine_scope){.row = group->row,
                                                  .group_id = group->id,
                                                  .since_ns = engine->now_ns,
                                                  .made = engine_history_now(engine)};
    engine->rows[group->row.row].scope = scope;
    if (engine->history != NULL) {
        history_reset_row(engine->history, group->row, engine->now_ns);
    }
    return scope;
}

/* First pass: what is gone, so that its rows are free before others take them. */
static void drop_from_group(void *user, const struct catalog_group *before,
                            const struct catalog_group *after)
{
    struct follow *follow = user;
    struct engine *engine = follow->engine;

    for (uint32_t i = 0; after != NULL && i < after->n_backends; i++) {
        struct engine_backend *backend = &engine->backends[after->backends[i].row.row];

        if (backend->birth == after->backends[i].row.birth) {
            backend->is_found = true;
        }
    }
    for (uint32_t i = 0; before != NULL && i < before->n_backends; i++) {
        uint32_t row = before->backends[i].row.row;

        if (engine->backends[row].birth == before->backends[i].row.birth &&
            !engine->backends[row].is_found) {
            engine_free_row(engine, row);
        }
    }
    for (uint32_t i = 0; after != NULL && i < after->n_backends; i++) {
        engine->backends[after->backends[i].row.row].is_found = false;
    }
    if (before == NULL || (after != NULL && before->row.row == after->row.row &&
                           before->row.birth == after->row.birth)) {
        return;
    }
    uint32_t scope = find_scope(engine, before->row);
    if (scope != NO_SCOPE) {
        engine_keep_version(engine, &engine->scopes[scope], before);
        free_scope(engine, scope);
    }
}

static void update_scope(struct engine_scope *scope, const struct catalog_group *group)
{
    const struct server_group *spec = &group->spec;

    memcpy(scope->name, spec->name, sizeof scope->name);
    scope->n_backends = group->n_backends;
    scope->profile = spec->profile;
    scope->failover = spec->failover;
    scope->all_bad = spec->all_bad;
    scope->fail_open_percent = spec->fail_open_percent;
    scope->has_check = spec->check.is_enabled;
    scope->failure_window_ms = check_failure_window_ms(&spec->check);
    scope->interval_ms = spec->check.interval_ms;
    scope->rule = spec->rule;
    scope->drain = spec->drain;
    scope->idle_timeout_ms = spec->idle_timeout_ms;
}

/* Second pass: what came or is another value. */
static void update_group(void *user, const struct catalog_group *before,
                         const struct catalog_group *after)
{
    struct follow *follow = user;
    struct engine *engine = follow->engine;

    if (after == NULL) {
        return;
    }
    uint32_t index = find_scope(engine, after->row);
    if (index == NO_SCOPE) {
        index = make_scope(engine, after);
    } else {
        engine_keep_version(engine, &engine->scopes[index], before);
    }
    engine->scopes[index].version = engine_history_now(engine);
    struct engine_scope *scope = &engine->scopes[index];
    update_scope(scope, after);
    engine_follow_group_hold(engine, scope, &after->spec);
    engine_follow_guard_policy(engine, index, after);
    scope->first_row = NO_ROW;
    for (uint32_t i = after->n_backends; i-- > 0;) {
        uint32_t row = after->backends[i].row.row;

        engine_update_row(engine, index, after, &after->backends[i]);
        engine->backends[row].next_in_scope = scope->first_row;
        scope->first_row = row;
        if (engine->backends[row].is_linked) {
            id_set_add(&engine->dirty_slots, engine->backends[row].target.slot);
        }
    }
    engine_follow_weighing(engine, index, &after->spec);
    id_set_add(&engine->dirty_scopes, index);
}

void engine_follow_group(struct engine *engine, const struct catalog_group *before,
                         const struct catalog_group *after, uint64_t revision)
{
    struct follow follow = {.engine = engine, .revision = revision};

    drop_from_group(&follow, before, after);
    update_group(&follow, before, after);
}

/* --- the whole --- */

static void ignore_target(void *user, const struct catalog_target *before,
                          const struct catalog_target *after)
{
    (void)user;
    (void)before;
    (void)after;
}

static void ignore_group(void *user, const struct catalog_group *before,
                         const struct catalog_group *after)
{
    (void)user;
    (void)before;
    (void)after;
}

/* Another source is another probe on the wire, though the target is the same. */
static void follow_sources(struct follow *follow)
{
    struct engine *engine = follow->engine;
    const struct catalog_node *node = catalog_node_find(engine->catalog, engine->config.node_id);
    struct addr before[2] = {engine->sources[0], engine->sources[1]};

    for (int i = 0; i < 2; i++) {
        engine->sources[i] = node == NULL ? (struct addr){0} : node->spec.probe_sources[i];
    }
    if (follow->revision_before == 0 || (addr_compare(&before[0], &engine->sources[0]) == 0 &&
                                         addr_compare(&before[1], &engine->sources[1]) == 0)) {
        return;
    }
    for (uint32_t slot = 0; slot < catalog_n_slots(engine->catalog); slot++) {
        const struct catalog_target *target = catalog_target_at(engine->catalog, slot);

        if (target != NULL && target->id.birth <= follow->revision_before) {
            tell_probe(follow, target, target->id);
        }
    }
}

static void follow_observers(struct engine *engine)
{
    uint64_t removed;
    uint8_t n_before = observers_n(&engine->observers);
    bool changed = observers_follow(&engine->observers, engine->catalog, engine->now_ns, &removed);

    for (uint64_t left = removed; left != 0; left &= left - 1) {
        uint32_t index = (uint32_t)__builtin_ctzll(left);

        if (!plant_is("removed-node-votes")) {
            votes_drop_peer(engine->votes, index);
        }
        drains_forget_node(&engine->drains, index);
        engine->peers[index] = (struct engine_peer){0};
    }
    if (changed) {
        struct event *event = engine_log(engine, EVENT_OBSERVERS_CHANGED);

        event->from = n_before;
        event->to = observers_n(&engine->observers);
        engine_mark_all(engine);
    }
}

static void follow_interval(struct engine *engine)
{
    uint64_t interval_ns = catalog_settings(engine->catalog)->vote_interval_ms * NS_PER_MS;

    assert(interval_ns > 0);
    if (engine->vote_interval_ns != interval_ns) {
        engine->vote_interval_ns = interval_ns;
        votes_set_interval(engine->votes, interval_ns);
        engine_mark_all(engine);
        engine_mark_scopes(engine);
        if (engine->next_vector_ns > engine->now_ns + interval_ns) {
            engine->next_vector_ns = engine->now_ns + interval_ns;
        }
    }
}

/* Newer than the one in use, and of the same cluster. */
static bool is_wanted(struct engine *engine, const struct catalog *catalog)
{
    struct cluster_id theirs = catalog_cluster_id(catalog);

    if (engine->catalog == NULL) {
        engine->counters.catalogs_old += catalog_revision(catalog) == 0;
        return catalog_revision(catalog) != 0;
    }
    struct cluster_id ours = catalog_cluster_id(engine->catalog);
    if (memcmp(&theirs, &ours, sizeof ours) != 0) {
        engine->counters.catalogs_other_cluster++;
        return false;
    }
    if (catalog_revision(catalog) <= catalog_revision(engine->catalog)) {
        engine->counters.catalogs_old++;
        return false;
    }
    return true;
}

int engine_take_catalog(struct engine *engine, struct catalog *catalog,
                        struct engine_actions *actions)
{
    if (!is_wanted(engine, catalog)) {
        return 0;
    }
    int err = engine_reserve(engine, catalog, actions);
    if (err != 0) {
        return err;
    }
    struct catalog *before = engine->catalog;
    struct follow follow = {.engine = engine,
                            .actions = actions,
                            .revision_before = before == NULL ? 0 : catalog_revision(before),
                            .revision = catalog_revision(catalog)};
    struct catalog_diff_hooks hooks = {.user = &follow};

    bool is_next = follow.revision == follow.revision_before + 1;

    engine->catalog = catalog_ref(catalog);
    str_copy(engine->change_actor, sizeof engine->change_actor,
             is_next ? catalog_actor(catalog) : "");
    engine->chunks_known = 0;
    follow_interval(engine);
    follow_observers(engine);
    engine_follow_cluster_hold(engine);
    follow_sources(&follow);
    hooks.group = ignore_group;
    hooks.target = follow_target;
    catalog_diff(before, catalog, &hooks);
    hooks.target = ignore_target;
    hooks.group = drop_from_group;
    catalog_diff(before, catalog, &hooks);
    hooks.group = update_group;
    catalog_diff(before, catalog, &hooks);
    catalog_unref(before);

    struct event *event = engine_log(engine, EVENT_CATALOG_ADOPTED);
    event->from = is_next;
    str_copy(event->actor, sizeof event->actor, catalog_actor(catalog));
    actions->verdicts_changed = true;
    return 0;
}
