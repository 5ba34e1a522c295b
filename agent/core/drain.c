#include "agent/core/drain.h"

#include "common/base/units.h"

enum drain_action drain_decide(unsigned flow_policy, uint64_t deadline_boot_ns,
                               uint64_t now_boot_ns)
{
    bool has_deadline = deadline_boot_ns != 0;
    bool is_over = has_deadline && now_boot_ns >= deadline_boot_ns;

    switch ((enum flow_policy)flow_policy) {
    case FLOW_KEEP:
        break;
    case FLOW_CLOSE_AT:
        return is_over ? DRAIN_CLOSE : DRAIN_KEEP;
    case FLOW_CLOSE_NOW:
        return DRAIN_CLOSE;
    case FLOW_MOVE:
        return DRAIN_MOVE;
    case FLOW_MOVE_AT:
        return is_over ? DRAIN_MOVE : DRAIN_KEEP;
    case FLOW_HOLD_IDLE:
        return has_deadline && !is_over ? DRAIN_KEEP_IDLE : DRAIN_KEEP;
    }
    return DRAIN_KEEP;
}

uint64_t drain_deadline(uint64_t now_boot_ns, uint32_t timeout_ms)
{
    uint64_t timeout_ns = timeout_ms * NS_PER_MS;

    if (now_boot_ns > UINT64_MAX - timeout_ns) {
        return UINT64_MAX;
    }
    /* 0 would mean "no deadline"; only a clock at its very start could give it. */
    return now_boot_ns + timeout_ns == 0 ? 1 : now_boot_ns + timeout_ns;
}

uint64_t drain_left_ms(uint64_t deadline_boot_ns, uint64_t now_boot_ns)
{
    if (deadline_boot_ns == 0) {
        return UINT64_MAX;
    }
    if (now_boot_ns >= deadline_boot_ns) {
        return 0;
    }
    uint64_t left_ns = deadline_boot_ns - now_boot_ns;
    return left_ns / NS_PER_MS + (left_ns % NS_PER_MS != 0);
}
