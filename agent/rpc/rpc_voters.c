/* No removal takes the last majority away by oversight (case A38): of the voters that would be left
 * more than half must be heard here, on the leader, or nothing could be changed ever after. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "common/base/plant.h"
#include "common/base/units.h"

/* A voter that answers is heard several times a second. */
#define SILENT_NS (3 * NS_PER_SECOND)

struct voters {
    uint32_t n_left;    /* of those that are voters now, behind the command */
    uint32_t n_heard;   /* of these */
    uint64_t silent_id; /* one of the others */
    uint64_t leaving_id;
    bool heard_one_leaves; /* who is silent anyway may always go */
};

static bool is_heard(struct rpc_server *server, uint64_t node_id, uint64_t own_id)
{
    struct rpc_peer peer = {.age_ns = RPC_NEVER_NS, .raft_age_ns = RPC_NEVER_NS};

    if (node_id == own_id) {
        return true;
    }
    server->hooks.peer(server->hooks.user, node_id, &peer);
    return peer.raft_age_ns <= SILENT_NS;
}

/* Removed, or no voter any more. */
static bool leaves(const struct command *command, uint64_t node_id)
{
    for (uint32_t i = 0; i < command->n_changes; i++) {
        const struct change *change = &command->changes[i];

        if ((change->kind == CHANGE_DELETE_NODE && change->u.node_id == node_id) ||
            (change->kind == CHANGE_PUT_NODE && change->u.node->node_id == node_id &&
             change->u.node->role != ROLE_VOTER && change->u.node->role != ROLE_NONE)) {
            return true;
        }
    }
    return false;
}

static struct voters count_voters(struct rpc_server *server, const struct command *command)
{
    const struct catalog *catalog = rpc_server_catalog(server);
    struct rpc_node node = {0};
    struct voters voters = {0};

    server->hooks.node(server->hooks.user, &node);
    for (size_t i = 0; catalog != NULL && i < catalog_n_nodes(catalog); i++) {
        const struct member_node *member = &catalog_node_at(catalog, i)->spec;

        if (member->role != ROLE_VOTER) {
            continue;
        }
        bool heard = is_heard(server, member->node_id, node.node_id);
        if (leaves(command, member->node_id)) {
            voters.heard_one_leaves |= heard;
            voters.leaving_id = heard ? member->node_id : voters.leaving_id;
            continue;
        }
        voters.n_left++;
        voters.n_heard += heard;
        voters.silent_id = heard ? voters.silent_id : member->node_id;
    }
    return voters;
}

int rpc_check_voters(struct rpc_server *server, const struct command *command, struct errmsg *err)
{
    struct voters voters = count_voters(server, command);
    uint32_t n_silent = voters.n_left - voters.n_heard;

    if (!voters.heard_one_leaves || 2 * voters.n_heard > voters.n_left ||
        plant_is("voters-unchecked")) {
        return 0;
    }
    if (command->is_forced && command->forced_count == n_silent) {
        return 0;
    }
    return errmsg_set(err, ERR_FORCE,
                      "without node %" PRIu64 " only %" PRIu32 " of %" PRIu32
                      " voters would be heard, which is no majority: nothing could be changed any "
                      "more; remove node %" PRIu64 ", which is not heard, instead or first, or "
                      "repeat it with force and the count %" PRIu32,
                      voters.leaving_id, voters.n_heard, voters.n_left, voters.silent_id, n_silent);
}
