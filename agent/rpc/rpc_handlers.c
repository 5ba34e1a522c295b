/* Which function answers which method. That none is missing is shown by a test. */
#include <string.h>

#include "agent/rpc/rpc_internal.h"

#define SERVICE(name) "jury.v1." name "/"

static const struct handler handlers[] = {
    {.method = SERVICE("ConfigService") "Apply",
     .command = handle_apply_command,
     .answer_write = handle_apply_answer_new},
    {.method = SERVICE("BackendService") "DrainBackend",
     .command = handle_drain_command,
     .answer_write = handle_drain_answer_new},
    {.method = SERVICE("BackendService") "ReadyBackend",
     .command = handle_ready_command,
     .answer_write = handle_ready_answer_new},
    {.method = SERVICE("BackendService") "SetBackend",
     .command = handle_set_backend_command,
     .answer_write = handle_set_backend_answer_new},
    {.method = SERVICE("BackendService") "ListBackends", .answer = handle_list_backends},
    {.method = SERVICE("GroupService") "ListGroups", .answer = handle_list_groups},
    {.method = SERVICE("GroupService") "GetGroup", .answer = handle_get_group},
    {.method = SERVICE("GroupService") "DescribeGroup", .answer = handle_describe_group},
    {.method = SERVICE("ListenerService") "ListListeners", .answer = handle_list_listeners},
    {.method = SERVICE("KeyService") "ListKeys", .answer = handle_list_keys},
    {.method = SERVICE("VerdictService") "ListVerdicts", .answer = handle_list_verdicts},
    {.method = SERVICE("VerdictService") "Why", .answer = handle_why},
    {.method = SERVICE("EventService") "ListEvents", .answer = handle_list_events},
    {.method = SERVICE("SimulationService") "SimulateGroup",
     .prepare = handle_simulate_prepare,
     .answer = handle_simulate_group},
    {.method = SERVICE("HoldService") "SetHold",
     .command = handle_set_hold_command,
     .answer_write = handle_set_hold_answer_new},
    {.method = SERVICE("HoldService") "ClearHold",
     .command = handle_clear_hold_command,
     .answer_write = handle_clear_hold_answer_new},
    {.method = SERVICE("HoldService") "OverrideHold", .answer = handle_override_hold},
    {.method = SERVICE("HoldService") "ListHolds", .answer = handle_list_holds},
    {.method = SERVICE("ProbeService") "ProbeBackend", .begin = rpc_probe_begin},
    {.method = SERVICE("ClusterService") "InitCluster", .begin = rpc_init_begin},
    {.method = SERVICE("ClusterService") "ListMembers", .answer = handle_list_members},
    {.method = SERVICE("ClusterService") "GetStatus", .answer = handle_get_status},
    {.method = SERVICE("ClusterService") "GetSettings", .answer = handle_get_settings},
    {.method = SERVICE("ClusterService") "ReadBarrier", .answer = handle_read_barrier},
    {.method = SERVICE("NodeService") "CheckReady", .answer = handle_check_ready},
    {.method = SERVICE("NodeService") "DescribeNode", .answer = handle_describe_node},
    {.method = SERVICE("NodeService") "ListCounters", .answer = handle_list_counters},
    {.method = SERVICE("NodeService") "GetVersion", .answer = handle_get_version},
};

const struct handler *rpc_handler_find(const char *method)
{
    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++) {
        if (strcmp(handlers[i].method, method) == 0) {
            return &handlers[i];
        }
    }
    return NULL;
}
