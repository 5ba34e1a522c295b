/* A replay takes in what the history has: versions of the group, surroundings, votes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/replay_state.h"
#include "common/base/err.h"

/* --- the group, numbered for the replay and with what the change says --- */

/* Field by field: what the change leaves alone is as the version had it. */
#define REPLACE(field)              \
    if (from->field != to->field) { \
        version->field = to->field; \
    }

static void replace_guard(const struct guard_policy *from, const struct guard_policy *to,
                          struct guard_policy *version)
{
    REPLACE(velocity_window_ms)
    REPLACE(exempt_below)
    REPLACE(velocity_percent)
    REPLACE(return_percent)
    REPLACE(return_window_ms)
    REPLACE(flap_hold_ms)
    REPLACE(shadow_cycles)
    REPLACE(shadow_stop)
    REPLACE(correlated_alarm)
    REPLACE(slow_start_ms)
    static_assert(sizeof(struct guard_policy) == 24, "a new field is replaced here, too");
}

/* The two columns are one word of a document. */
static void replace_rule(const struct verdict_rule *from, const struct verdict_rule *to,
                         struct verdict_rule *version)
{
    if (memcmp(&from->down, &to->down, sizeof from->down) != 0 ||
        memcmp(&from->up, &to->up, sizeof from->up) != 0 || from->is_split != to->is_split) {
        version->down = to->down;
        version->up = to->up;
        version->is_split = to->is_split;
    }
    REPLACE(below_quorum)
}
#undef REPLACE

static void replace_policies(const struct replay *replay, struct server_group *spec)
{
    const struct server_group *from = replay->present;
    const struct server_group *to = replay->question.change;

    if (to == NULL) {
        return;
    }
    replace_rule(&from->rule, &to->rule, &spec->rule);
    replace_guard(&from->guard, &to->guard, &spec->guard);
    if (to->hold != HOLD_KEEP && to->hold != from->hold) {
        spec->hold = to->hold;
    }
    if (replay->plan.counts_results) {
        spec->check.healthy_threshold = to->check.healthy_threshold;
        spec->check.unhealthy_threshold = to->check.unhealthy_threshold;
    }
    spec->all_bad = from->all_bad != to->all_bad ? to->all_bad : spec->all_bad;
    if (from->fail_open_percent != to->fail_open_percent) {
        spec->fail_open_percent = to->fail_open_percent;
    }
}

void replay_free_group(struct catalog_group *group)
{
    if (group != NULL) {
        free((void *)(uintptr_t)group->backends);
        free(group);
    }
}

/* Given; NULL: no memory. */
static struct catalog_group *number_group(const struct replay *replay,
                                          const struct catalog_group *from)
{
    const struct replay_votes *votes = &replay->plan.votes;
    struct catalog_group *group = malloc(sizeof *group);
    struct catalog_backend *backends = calloc(from->n_backends + 1U, sizeof *backends);

    if (group == NULL || backends == NULL) {
        free(group);
        free(backends);
        return NULL;
    }
    *group = *from;
    group->row.row = replay->plan.scope_row;
    group->backends = backends;
    group->parts = NULL; /* votes are played, and those are of what is composed */
    for (uint32_t i = 0; i < from->n_backends; i++) {
        backends[i] = from->backends[i];
        backends[i].row.row = replay_find_row(votes, from->backends[i].row);
        if (from->backends[i].target.slot != CATALOG_NO_SLOT) {
            backends[i].target.slot = replay_find_slot(votes, from->backends[i].target);
        }
    }
    replace_policies(replay, &group->spec);
    return group;
}

/* What was said of a target that no version had yet is seen when it is made: its kind of probe is
 * not known before. */
static void see_suspicion(struct engine *engine, uint32_t slot, bool is_suspect)
{
    const struct engine_target *target = &engine->targets[slot];
    uint32_t kinds = target_kinds(target);

    if (target->birth != 0) {
        engine->suspect_mask =
            is_suspect ? engine->suspect_mask | kinds : engine->suspect_mask & ~kinds;
    }
}

static void make_targets(struct replay *replay, const struct catalog_group *group)
{
    for (uint32_t i = 0; i < group->n_backends; i++) {
        struct target_id id = group->backends[i].target;

        if (id.slot == CATALOG_NO_SLOT || replay->engine->targets[id.slot].birth == id.birth) {
            continue;
        }
        engine_make_target(replay->engine, id, &group->spec.check);
        const struct history_votes *votes = &replay->plan.votes.slots[id.slot].votes;
        replay->engine->targets[id.slot].health.opinion = votes->own_opinion & 3U;
        see_suspicion(replay->engine, id.slot, votes->own_is_suspect);
    }
}

/* Those that remember; the alarm and a slow start change nothing. */
static bool has_guards(const struct guard_policy *guard)
{
    struct guard_policy plain = guard_policy_of(GUARD_PRESET_OFF);

    plain.correlated_alarm = guard->correlated_alarm;
    plain.slow_start_ms = guard->slow_start_ms;
    return memcmp(guard, &plain, sizeof plain) != 0;
}

int replay_take_version(struct replay *replay)
{
    const struct history_version *version = &replay->plan.versions[replay->next_version++];
    struct catalog_group *group = number_group(replay, version->group);

    if (group == NULL) {
        return ERR_NOMEM;
    }
    replay->answer->had_guards |= has_guards(&group->spec.guard);
    make_targets(replay, group);
    engine_follow_group(replay->engine, replay->group, group, replay->next_version);
    replay_free_group(replay->group);
    replay->group = group;
    id_set_add_below(&replay->plan.votes.changed_rows, replay->plan.votes.n_rows);
    return 0;
}

/* --- surroundings and entries --- */

void replay_take_surroundings(struct replay *replay)
{
    const struct history_surroundings *surroundings =
        &replay->plan.surroundings[replay->next_surroundings++];
    struct engine *engine = replay->engine;

    engine->observers = surroundings->observers;
    engine->vote_interval_ns = surroundings->vote_interval_ns;
    engine->hold_sources = surroundings->hold_sources;
    engine_mark_all(engine);
    engine_mark_scopes(engine);
}

static void take_own(struct replay *replay, uint32_t slot, const struct history_entry *entry)
{
    struct engine *engine = replay->engine;
    struct engine_target *target = &engine->targets[slot];

    if (!replay->plan.counts_results) {
        target->health.opinion = entry->to & 3U;
    } else if (entry->to == OPINION_NONE) {
        health_forget(&target->health);
        timers_clear(&engine->opinion_timers, slot);
    }
    target->reason = entry->reason & 63U;
    target->http_status = entry->http_status;
    target->conclusive_ns = entry->at_ns;
    see_suspicion(engine, slot, entry->hold != 0);
}

/* A streak goes on as it began, until the last result that a threshold could ask for. */
void replay_count_result(struct replay *replay, uint32_t slot)
{
    struct engine *engine = replay->engine;
    struct engine_target *target = &engine->targets[slot];
    struct replay_slot *held = &replay->plan.votes.slots[slot];
    uint8_t most = target->policy.healthy_threshold > target->policy.unhealthy_threshold
                       ? target->policy.healthy_threshold
                       : target->policy.unhealthy_threshold;

    held->result_ns = engine->now_ns;
    timers_clear(&engine->opinion_timers, slot);
    if (health_record(&target->health, &target->policy, (enum probe_class)held->result)) {
        target->conclusive_ns = engine->now_ns;
        id_set_add(&engine->dirty_slots, slot);
    }
    uint32_t streak = target->health.streak;
    if (held->spacing_ns != 0 && streak < most) {
        timers_set(&engine->opinion_timers, slot, engine->now_ns + held->spacing_ns);
    }
}

static void take_result(struct replay *replay, uint32_t slot, const struct history_entry *entry)
{
    struct replay_slot *held = &replay->plan.votes.slots[slot];

    held->spacing_ns = entry->hold == 2 && held->result == entry->to && held->result_ns != 0
                           ? entry->at_ns - held->result_ns
                           : 0;
    held->result = entry->to;
    replay_count_result(replay, slot);
}

void replay_set_node_hold(struct replay *replay, bool is_on)
{
    struct engine_scope *scope =
        &replay->engine->scopes[replay->engine->rows[replay->plan.scope_row].scope];

    scope->hold_sources = (uint8_t)(is_on ? scope->hold_sources | HOLD_BY_NODE_GROUP
                                          : scope->hold_sources & ~(unsigned)HOLD_BY_NODE_GROUP);
    engine_mark_all(replay->engine);
}

void replay_see_first_probe(struct replay *replay)
{
    uint32_t index = replay->engine->rows[replay->plan.scope_row].scope;

    replay->engine->scopes[index].first_probe_ns = replay->plan.first_probe_ns;
    id_set_add(&replay->engine->dirty_scopes, index);
}

void replay_take_entry(struct replay *replay, const struct replay_entry *item)
{
    struct replay_votes *votes = &replay->plan.votes;
    const struct history_entry *entry = &item->entry;

    switch ((enum history_kind)entry->kind) {
    case HISTORY_NONE:
    case HISTORY_TIMER:
    case HISTORY_GUARD:
    case HISTORY_KEPT: /* taken before the versions */
        break;
    case HISTORY_OWN:
        take_own(replay, item->index, entry);
        replay_take_vote(&votes->slots[item->index], entry);
        id_set_add(&replay->engine->dirty_slots, item->index);
        break;
    case HISTORY_RESULT:
        take_result(replay, item->index, entry);
        break;
    case HISTORY_ELECTOR:
    case HISTORY_VOTE:
        replay_take_vote(&votes->slots[item->index], entry);
        id_set_add(&replay->engine->dirty_slots, item->index);
        break;
    case HISTORY_VERDICT: {
        struct replay_row *row = &votes->rows[item->index];

        row->told_from = row->told_from == HEALTH_NONE ? entry->from : row->told_from;
        row->told_to = entry->to;
        replay_note_row(votes, item->index);
        break;
    }
    case HISTORY_FIRST:
        replay_see_first_probe(replay);
        break;
    case HISTORY_NODE_HOLD:
        replay_set_node_hold(replay, entry->to != 0);
        break;
    }
}
