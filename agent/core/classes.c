#include "agent/core/classes.h"

#include "common/base/plant.h"

static bool is_healthy(const struct class_member *member)
{
    return member->health_state == HEALTH_HEALTHY || member->health_state == HEALTH_UNAVAILABLE;
}

static void count(const struct class_member members[], uint32_t n_members,
                  struct class_result *result, bool *ret_judged, bool *ret_unhealthy)
{
    *ret_judged = false;
    *ret_unhealthy = false;
    for (uint32_t i = 0; i < n_members; i++) {
        const struct class_member *member = &members[i];

        if (!member->is_eligible) {
            continue;
        }
        result->n_eligible++;
        result->n_healthy += is_healthy(member);
        result->n_initial += member->health_state == HEALTH_INITIAL;
        result->n_late += member->health_state == HEALTH_INITIAL && member->is_late;
        *ret_judged |= member->was_judged;
        *ret_unhealthy |= member->health_state == HEALTH_UNHEALTHY;
    }
}

static uint8_t decide_group_state(const struct class_policy *policy,
                                  const struct class_result *result, bool any_unhealthy)
{
    uint64_t settled = result->n_eligible - result->n_initial;

    if (result->n_eligible == 0) {
        return GROUP_CLOSED;
    }
    if (result->is_warming) {
        return any_unhealthy || result->n_late > 0 ? GROUP_DEGRADED : GROUP_OK;
    }
    if (result->n_healthy == 0 ||
        UINT64_C(100) * result->n_healthy < policy->fail_open_percent * settled) {
        return policy->all_bad == ALL_BAD_FAIL_CLOSED ? GROUP_CLOSED : GROUP_FAIL_OPEN;
    }
    return result->n_healthy < result->n_eligible ? GROUP_DEGRADED : GROUP_OK;
}

static enum row_class classify(const struct class_member *member, const struct class_result *result)
{
    if (!member->is_eligible || result->group_state == GROUP_CLOSED) {
        return ROW_NONE;
    }
    if (result->is_warming) {
        bool waits = member->health_state == HEALTH_INITIAL && member->is_late;
        return waits || member->health_state == HEALTH_UNHEALTHY ? ROW_NONE : ROW_WARMING;
    }
    if (result->group_state == GROUP_FAIL_OPEN) {
        return ROW_FAIL_OPEN;
    }
    if (!is_healthy(member)) {
        return ROW_NONE;
    }
    return member->is_unreachable && !plant_is("class-ignore-reachable") ? ROW_UNREACHABLE
                                                                         : ROW_HEALTHY;
}

void classes_decide(const struct class_policy *policy, const struct class_member members[],
                    uint32_t n_members, uint8_t ret_classes[], struct class_result *ret_result)
{
    struct class_result result = {0};
    bool any_judged;
    bool any_unhealthy;

    count(members, n_members, &result, &any_judged, &any_unhealthy);
    result.is_warming = result.n_healthy < result.n_eligible && result.n_initial > result.n_late &&
                        !any_judged && policy->may_warm;
    result.group_state = decide_group_state(policy, &result, any_unhealthy);

    /* Warming needs a member of the start in `initial`, so its class is never empty: the spec's
     * "all of m if there is none" can not come up. */
    for (uint32_t i = 0; i < n_members; i++) {
        ret_classes[i] = (uint8_t)classify(&members[i], &result);
    }
    *ret_result = result;
}

unsigned classes_scope_class(const struct class_result *result)
{
    if (result->is_warming) {
        return ROW_SCOPE_WARMING;
    }
    switch ((enum group_state)result->group_state) {
    case GROUP_OK:
        return ROW_SCOPE_OK;
    case GROUP_DEGRADED:
        return ROW_SCOPE_DEGRADED;
    case GROUP_FAIL_OPEN:
        return ROW_SCOPE_FAIL_OPEN;
    case GROUP_NONE:
    case GROUP_CLOSED:
        break;
    }
    return ROW_SCOPE_CLOSED;
}

static struct flow_answer close_after(uint8_t cause, uint32_t timeout_ms)
{
    if (timeout_ms == 0) {
        return (struct flow_answer){.flow_policy = FLOW_CLOSE_NOW};
    }
    return (struct flow_answer){
        .flow_policy = FLOW_CLOSE_AT, .cause = cause, .timeout_ms = timeout_ms};
}

static struct flow_answer after_removal(const struct flow_question *question)
{
    uint32_t timeout_ms = question->drain_timeout_ms;

    if (question->failover == FAILOVER_REBALANCE) {
        if (question->drain.is_on && timeout_ms > 0) {
            return (struct flow_answer){
                .flow_policy = FLOW_MOVE_AT, .cause = DEADLINE_REMOVED, .timeout_ms = timeout_ms};
        }
        return (struct flow_answer){.flow_policy = FLOW_MOVE};
    }
    if (question->admin_state == ADMIN_DRAINING && !plant_is("removal-ends-drain")) {
        return close_after(DEADLINE_DRAIN, timeout_ms);
    }
    if (!question->drain.is_on) {
        return (struct flow_answer){.flow_policy = FLOW_KEEP};
    }
    if (question->profile == PROFILE_GWLB && timeout_ms > 0) {
        return (struct flow_answer){
            .flow_policy = FLOW_HOLD_IDLE, .cause = DEADLINE_REMOVED, .timeout_ms = timeout_ms};
    }
    return close_after(DEADLINE_REMOVED, timeout_ms);
}

struct flow_answer flows_by_admin(const struct flow_question *question)
{
    if (question->is_removing) {
        return after_removal(question);
    }
    switch ((enum admin_state)question->admin_state) {
    case ADMIN_DRAINING:
    case ADMIN_MAINTENANCE:
        return close_after(DEADLINE_DRAIN, question->drain_timeout_ms);
    case ADMIN_NONE:
    case ADMIN_ENABLED:
        break;
    }
    return (struct flow_answer){.flow_policy = FLOW_KEEP};
}

struct flow_answer flows_by_verdict(const struct flow_question *question)
{
    if (!question->is_unhealthy || question->is_fail_open) {
        return (struct flow_answer){.flow_policy = FLOW_KEEP};
    }
    if (question->failover == FAILOVER_REBALANCE) {
        return (struct flow_answer){.flow_policy = FLOW_MOVE};
    }
    if (question->profile == PROFILE_NLB && question->drain.is_on) {
        return close_after(DEADLINE_VERDICT, question->drain.timeout_ms);
    }
    return (struct flow_answer){.flow_policy = FLOW_KEEP};
}
