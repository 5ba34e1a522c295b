/* What Raft's membership still lacks to be the state machine's: a pure decision, one change at a
 * time (raft-022.md rule 19). */
#ifndef JURY_STORE_MEMBERSHIP_H
#define JURY_STORE_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include <raft.h>

#include "agent/store/fsm.h"

enum membership_change {
    MEMBERSHIP_SETTLED = 0,
    MEMBERSHIP_ADD,    /* a member of the state is no Raft server: admit it, then add it */
    MEMBERSHIP_ASSIGN, /* to raft_role */
    MEMBERSHIP_REMOVE
};

struct membership_step {
    enum membership_change change;
    uint64_t node_id;
    int raft_role; /* RAFT_VOTER, RAFT_STANDBY, RAFT_SPARE */
};

/* Steps that may be taken next, best first: removals, promotions of servers, additions, demotions.
 * Never one that would leave no voter. Several, because the caller skips those that it tried in
 * vain a moment ago (a member that does not answer must not hold up the others, A38).
 * Returns their number. */
uint32_t membership_steps(const struct raft_configuration *conf, const struct store_members *wanted,
                          uint32_t max_steps, struct membership_step steps[]);

/* RAFT_* of enum raft_role; RAFT_SPARE for anything else. */
int membership_raft_role(uint8_t role);
/* enum raft_role of RAFT_*. */
uint8_t membership_model_role(int raft_role);

#endif
