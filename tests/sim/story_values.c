/* What the groups of a story are like, drawn by its seed. */
#include "tests/sim/story_catalog.h"

#include <stdlib.h>

#include "tests/lib/catalog_builder.h"

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

void story_draw_rule(struct sim *sim, struct verdict_rule *rule)
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
void story_draw_check(struct sim *sim, struct health_check *check)
{
    check->timeout_ms = 300 + 400 * (uint32_t)story_below(sim, 3);
    check->interval_ms = 500 + 500 * (uint32_t)story_below(sim, 3);
    check->healthy_threshold = (uint8_t)(1 + story_below(sim, 3));
    check->unhealthy_threshold = (uint8_t)(1 + story_below(sim, 3));
    check->probers = story_below(sim, 2) == 0 ? (uint8_t)(1 + story_below(sim, 4)) : 0;
    check->recheck = story_below(sim, 4) == 0;
}

void story_drop_list(struct server_group *group)
{
    free(group->checks);
    group->checks = NULL;
    group->n_checks = 0;
    group->pass = (struct rule_column){0};
}

/* In place of the one check, now and then: two or three, on ports of their own. Drawn apart, as
 * weights are. */
void story_draw_list(struct sim *sim, struct server_group *group)
{
    static const char *const names[] = {"a", "b", "c"};
    struct prng prng;

    story_drop_list(group);
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
void story_fit_probers(struct server_group *spec)
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

uint32_t story_short_window_ms(struct sim *sim)
{
    return STORY_WINDOW_MS_MAX - 500 * (uint32_t)story_below(sim, 7);
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
void story_fit_weighing(struct server_group *spec)
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
        guard->velocity_window_ms = story_short_window_ms(sim);
        guard->exempt_below = (uint16_t)story_below(sim, 4);
        if (story_below(sim, 2) == 0) { /* until story_shorten_windows */
            guard->velocity_window_ms *= 20;
        }
    }
}

void story_draw_guard(struct sim *sim, struct server_group *group)
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
