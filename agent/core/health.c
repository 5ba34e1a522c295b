#include "agent/core/health.h"

#include <assert.h>

#include "common/base/plant.h"

#define STREAK_MAX 0x1fffffffU

static bool set_opinion(struct health *health, enum opinion opinion)
{
    if (health->opinion == opinion) {
        return false;
    }
    health->opinion = (unsigned)opinion & 3U;
    return true;
}

uint32_t health_pass_streak(const struct health *health)
{
    return health->is_failing ? 0 : health->streak;
}

uint32_t health_fail_streak(const struct health *health)
{
    return health->is_failing ? health->streak : 0;
}

static void lengthen(struct health *health, bool fails)
{
    if (health->is_failing != fails) {
        health->is_failing = fails;
        health->streak = 0;
    }
    if (health->streak < STREAK_MAX) {
        health->streak = (health->streak + 1U) & STREAK_MAX;
    }
}

bool health_record(struct health *health, const struct health_policy *policy,
                   enum probe_class probe_class)
{
    assert(policy->healthy_threshold >= 1 && policy->unhealthy_threshold >= 1);

    switch (probe_class) {
    case PROBE_PASS:
        if (plant_is("health-total") && health->is_failing &&
            health->streak < policy->unhealthy_threshold) {
            return false;
        }
        lengthen(health, false);
        return health->streak >= policy->healthy_threshold && set_opinion(health, OPINION_PASS);
    case PROBE_FAIL:
        lengthen(health, true);
        return health->streak >= policy->unhealthy_threshold && set_opinion(health, OPINION_FAIL);
    case PROBE_INCONCLUSIVE:
    case PROBE_CLASS_NONE:
        break;
    }
    return false;
}

bool health_forget(struct health *health)
{
    if (!plant_is("streak-outlives-opinion")) {
        health->streak = 0;
    }
    return set_opinion(health, OPINION_NONE);
}

void health_restart_failures(struct health *health)
{
    if (health->is_failing) {
        health->streak = 0;
    }
}

void health_adopt_pass(struct health *health)
{
    assert(health->opinion == OPINION_NONE && health_pass_streak(health) == 1);

    set_opinion(health, OPINION_PASS);
}

uint32_t health_streak(const struct health *health)
{
    switch ((enum opinion)health->opinion) {
    case OPINION_PASS:
        return health_pass_streak(health);
    case OPINION_FAIL:
        return health_fail_streak(health);
    case OPINION_NONE:
        break;
    }
    return health->streak;
}
