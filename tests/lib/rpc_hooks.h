/* The hooks of an RPC server (agent/rpc/rpc_server.h) for a simulated node: whoever uses this
 * defines each as a static function hook_NAME, so that a new hook is missed in no world. */
#ifndef JURY_TESTS_RPC_HOOKS_H
#define JURY_TESTS_RPC_HOOKS_H

#include "agent/rpc/rpc_server.h"

#define RPC_HOOKS_OF(who)                                                                       \
    {                                                                                           \
        .user = (who), .reply = hook_reply, .propose = hook_propose, .barrier = hook_barrier,   \
        .init = hook_init, .check = hook_check, .simulate = hook_simulate, .probe = hook_probe, \
        .store = hook_store, .forward = hook_forward, .ask_peers = hook_ask_peers,              \
        .override_hold = hook_override_hold, .engine = hook_engine, .node = hook_node,          \
        .peer = hook_peer, .data_plane = hook_data_plane, .ready_check = hook_ready_check,      \
        .counters = hook_counters, .wall_ms = hook_wall_ms, .boot_ns = hook_boot_ns             \
    }

#endif
