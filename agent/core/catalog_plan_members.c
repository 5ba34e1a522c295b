/* What holds over all members and keys after a command. */
#include <inttypes.h>
#include <string.h>

#include "agent/core/catalog_state.h"
#include "common/base/plant.h"

const struct nodes_part *plan_nodes_after(const struct plan *plan)
{
    return plan->nodes != NULL ? plan->nodes : plan->base->nodes;
}

const struct keys_part *plan_keys_after(const struct plan *plan)
{
    return plan->keys != NULL ? plan->keys : plan->base->keys;
}

uint32_t plan_n_observers(const struct plan *plan)
{
    const struct nodes_part *nodes = plan_nodes_after(plan);
    uint32_t n = 0;

    for (uint32_t i = 0; i < nodes->n_nodes; i++) {
        n += nodes->nodes[i].spec.role != ROLE_SPARE;
    }
    return n;
}

static int check_voters(struct plan *plan)
{
    const struct nodes_part *nodes = plan_nodes_after(plan);
    uint32_t n_voters = 0;

    for (uint32_t i = 0; i < nodes->n_nodes; i++) {
        n_voters += nodes->nodes[i].spec.role == ROLE_VOTER;
    }
    if (n_voters == 0 && !plant_is("catalog-no-voter")) {
        return plan_refuse(plan, ERR_INVALID,
                           "the cluster would have no voter left: make another node a voter first");
    }
    if (n_voters > LIMIT_VOTERS) {
        return plan_refuse(plan, ERR_LIMIT,
                           "the cluster would have %" PRIu32 " voters, the limit is %d", n_voters,
                           LIMIT_VOTERS);
    }
    return 0;
}

static bool share_place(const struct node_endpoint *a, const struct node_endpoint *b)
{
    return strcmp(a->host, b->host) == 0 &&
           (a->mesh_port == b->mesh_port || a->mesh_port == b->raft_port ||
            a->raft_port == b->mesh_port || a->raft_port == b->raft_port);
}

static int check_node_pair(struct plan *plan, const struct member_node *a,
                           const struct member_node *b)
{
    if (memcmp(&a->key, &b->key, sizeof a->key) == 0) {
        return plan_refuse(plan, ERR_EXISTS,
                           "nodes \"%" PRIu64 "\" and \"%" PRIu64 "\" have the same public key",
                           a->node_id, b->node_id);
    }
    for (uint32_t i = 0; i < a->n_endpoints; i++) {
        for (uint32_t j = 0; j < b->n_endpoints; j++) {
            if (share_place(&a->endpoints[i], &b->endpoints[j])) {
                return plan_refuse(plan, ERR_EXISTS,
                                   "nodes \"%" PRIu64 "\" and \"%" PRIu64
                                   "\" have the same endpoint %.200s with a port in common",
                                   a->node_id, b->node_id, a->endpoints[i].host);
            }
        }
    }
    return 0;
}

/* A public key says who speaks, so it belongs to one node or one access key. */
static int check_pairs(struct plan *plan)
{
    const struct nodes_part *nodes = plan_nodes_after(plan);
    const struct keys_part *keys = plan_keys_after(plan);

    for (uint32_t i = 0; i < nodes->n_nodes; i++) {
        for (uint32_t j = 0; j < i; j++) {
            int rc = check_node_pair(plan, &nodes->nodes[j].spec, &nodes->nodes[i].spec);

            if (rc != 0) {
                return rc;
            }
        }
    }
    for (uint32_t i = 0; i < keys->n_keys; i++) {
        const struct access_key *key = &keys->keys[i].spec;

        for (uint32_t j = 0; j < i; j++) {
            if (memcmp(&keys->keys[j].spec.key, &key->key, sizeof key->key) == 0) {
                return plan_refuse(plan, ERR_EXISTS,
                                   "keys \"%s\" and \"%s\" are the same public key",
                                   keys->keys[j].spec.name, key->name);
            }
        }
        for (uint32_t j = 0; j < nodes->n_nodes; j++) {
            if (memcmp(&nodes->nodes[j].spec.key, &key->key, sizeof key->key) == 0) {
                return plan_refuse(plan, ERR_EXISTS,
                                   "key \"%s\" is the public key of node \"%" PRIu64 "\"",
                                   key->name, nodes->nodes[j].spec.node_id);
            }
        }
    }
    return 0;
}

int plan_check_members(struct plan *plan)
{
    bool is_whole = plan_none_refused(plan, CHANGE_PUT_NODE, NULL) &&
                    plan_none_refused(plan, CHANGE_DELETE_NODE, NULL) &&
                    plan_none_refused(plan, CHANGE_PUT_KEY, NULL) &&
                    plan_none_refused(plan, CHANGE_DELETE_KEY, NULL);

    if ((plan->nodes == NULL && plan->keys == NULL) || !is_whole) {
        return 0;
    }
    int rc = check_voters(plan);
    return rc != 0 ? rc : check_pairs(plan);
}
