#include "tests/lib/row_words.h"

#include "agent/core/classes.h"
#include "agent/table/status_reader.h"

const char *row_class_word(unsigned row_class)
{
    switch ((enum row_class)row_class) {
    case ROW_REMOVED:
        return "removed";
    case ROW_HEALTHY:
        return "healthy";
    case ROW_UNREACHABLE:
        return "unreachable";
    case ROW_FAIL_OPEN:
        return "fail-open";
    case ROW_WARMING:
        return "warming";
    case ROW_NONE:
        return "none";
    case ROW_SCOPE_OK:
        return "scope-ok";
    case ROW_SCOPE_DEGRADED:
        return "scope-degraded";
    case ROW_SCOPE_FAIL_OPEN:
        return "scope-fail-open";
    case ROW_SCOPE_CLOSED:
        return "scope-closed";
    case ROW_SCOPE_WARMING:
        return "scope-warming";
    }
    return "?";
}

const char *flow_policy_word(unsigned flow_policy)
{
    switch ((enum flow_policy)flow_policy) {
    case FLOW_KEEP:
        return "keep";
    case FLOW_CLOSE_AT:
        return "close-at";
    case FLOW_CLOSE_NOW:
        return "close-now";
    case FLOW_MOVE:
        return "move";
    case FLOW_MOVE_AT:
        return "move-at";
    case FLOW_HOLD_IDLE:
        return "hold-idle";
    }
    return "?";
}

const char *plane_state_word(unsigned plane_state)
{
    switch ((enum plane_state)plane_state) {
    case PLANE_NONE:
        break;
    case PLANE_ALIVE:
        return "alive";
    case PLANE_ABSENT:
        return "absent";
    case PLANE_REFUSED:
        return "refused";
    case PLANE_GONE:
        return "gone";
    }
    return "?";
}
