#include "agent/store/membership.h"

#include <stddef.h>

int membership_raft_role(uint8_t role)
{
    switch ((enum raft_role)role) {
    case ROLE_VOTER:
        return RAFT_VOTER;
    case ROLE_STANDBY:
        return RAFT_STANDBY;
    case ROLE_SPARE:
    case ROLE_NONE:
        break;
    }
    return RAFT_SPARE;
}

uint8_t membership_model_role(int raft_role)
{
    if (raft_role == RAFT_VOTER) {
        return ROLE_VOTER;
    }
    return raft_role == RAFT_STANDBY ? ROLE_STANDBY : ROLE_SPARE;
}

static const struct member_node *find_wanted(const struct store_members *wanted, uint64_t node_id)
{
    for (uint32_t i = 0; i < wanted->n_nodes; i++) {
        if (wanted->nodes[i].node_id == node_id) {
            return &wanted->nodes[i];
        }
    }
    return NULL;
}

static const struct raft_server *find_server(const struct raft_configuration *conf,
                                             uint64_t node_id)
{
    for (unsigned i = 0; i < conf->n; i++) {
        if (conf->servers[i].id == node_id) {
            return &conf->servers[i];
        }
    }
    return NULL;
}

/* Higher is more able: a change upwards is a promotion. */
static int rank(int raft_role)
{
    return raft_role == RAFT_VOTER ? 2 : raft_role == RAFT_STANDBY ? 1 : 0;
}

struct list {
    struct membership_step *steps;
    uint32_t max_steps;
    uint32_t n_steps;
};

static void push(struct list *list, enum membership_change change, uint64_t node_id, int raft_role)
{
    if (list->n_steps < list->max_steps) {
        list->steps[list->n_steps++] =
            (struct membership_step){.change = change, .node_id = node_id, .raft_role = raft_role};
    }
}

static void push_roles(struct list *list, const struct raft_configuration *conf,
                       const struct store_members *wanted, bool is_promotion, unsigned n_voters)
{
    for (unsigned i = 0; i < conf->n; i++) {
        const struct raft_server *server = &conf->servers[i];
        const struct member_node *node = find_wanted(wanted, server->id);

        if (node == NULL) {
            continue;
        }
        int role = membership_raft_role(node->role);
        bool loses_last = server->role == RAFT_VOTER && n_voters == 1;
        bool is_up = rank(role) > rank(server->role);
        if (role != server->role && is_up == is_promotion && (is_up || !loses_last)) {
            push(list, MEMBERSHIP_ASSIGN, server->id, role);
        }
    }
}

uint32_t membership_steps(const struct raft_configuration *conf, const struct store_members *wanted,
                          uint32_t max_steps, struct membership_step steps[])
{
    struct list list = {.steps = steps, .max_steps = max_steps};
    unsigned n_voters = 0;

    if (wanted->n_nodes == 0) {
        return 0; /* no state yet: the bootstrap's membership stands */
    }
    for (unsigned i = 0; i < conf->n; i++) {
        n_voters += conf->servers[i].role == RAFT_VOTER ? 1 : 0;
    }
    for (unsigned i = 0; i < conf->n; i++) {
        const struct raft_server *server = &conf->servers[i];
        bool loses_last = server->role == RAFT_VOTER && n_voters == 1;

        if (find_wanted(wanted, server->id) == NULL && !loses_last) {
            push(&list, MEMBERSHIP_REMOVE, server->id, server->role);
        }
    }
    push_roles(&list, conf, wanted, true, n_voters);
    for (uint32_t i = 0; i < wanted->n_nodes; i++) {
        if (find_server(conf, wanted->nodes[i].node_id) == NULL) {
            push(&list, MEMBERSHIP_ADD, wanted->nodes[i].node_id, RAFT_SPARE);
        }
    }
    push_roles(&list, conf, wanted, false, n_voters);
    return list.n_steps;
}
