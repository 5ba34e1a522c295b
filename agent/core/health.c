#include "agent/core/health.h"

#include <assert.h>

#include "common/base/plant.h"

static bool set_opinion(struct health *health, enum opinion opinion)
{
    if (health->opinion == opinion) {
        return false;
    }
    health->opinion = (uint8_t)opinion;
    return true;
}

bool health_record(struct health *health, const struct health_policy *policy,
                   enum probe_class probe_class)
{
    assert(policy->healthy_threshold >= 1 && policy->unhealthy_threshold >= 1);

    switch (probe_class) {
    case PROBE_PASS:
        if (!plant_is("health-total")) {
            health->fail_streak = 0;
        }
        health->pass_streak += health->pass_streak < UINT32_MAX;
        return health->pass_streak >= policy->healthy_threshold &&
               set_opinion(health, OPINION_PASS);
    case PROBE_FAIL:
        health->pass_streak = 0;
        health->fail_streak += health->fail_streak < UINT32_MAX;
        return health->fail_streak >= policy->unhealthy_threshold &&
               set_opinion(health, OPINION_FAIL);
    case PROBE_INCONCLUSIVE:
    case PROBE_CLASS_NONE:
        break;
    }
    return false;
}

bool health_forget(struct health *health)
{
    if (!plant_is("streak-outlives-opinion")) {
        health->pass_streak = 0;
        health->fail_streak = 0;
    }
    return set_opinion(health, OPINION_NONE);
}

void health_restart_failures(struct health *health)
{
    health->fail_streak = 0;
}

void health_adopt_pass(struct health *health)
{
    assert(health->opinion == OPINION_NONE && health->pass_streak == 1);

    set_opinion(health, OPINION_PASS);
}

uint32_t health_streak(const struct health *health)
{
    switch ((enum opinion)health->opinion) {
    case OPINION_PASS:
        return health->pass_streak;
    case OPINION_FAIL:
        return health->fail_streak;
    case OPINION_NONE:
        break;
    }
    return health->pass_streak > health->fail_streak ? health->pass_streak : health->fail_streak;
}
