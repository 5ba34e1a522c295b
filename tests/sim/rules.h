/* Which votes count on a target by the trace, and what a group's rule says of them: spec.md 5 told
 * once more, for the judge. Private to tests/sim. */
#ifndef JURY_TESTS_SIM_RULES_H
#define JURY_TESTS_SIM_RULES_H

#include "tests/sim/checker.h"

struct count {
    unsigned n, f, p, lost_f, lost_p;
    uint8_t own; /* the vote, if it counts */
    /* Whose vote is which: 'f', 'p', remembered ones 'F', 'P', 0 = none. By node id. */
    char votes[WORLD_NODES + 1];
    bool in_n[WORLD_NODES + 1];
};

/* Of all observers, whoever is to probe it. */
struct count rules_count_all(struct checker *checker, struct witness *witness,
                             const struct world_node *node, uint32_t slot, uint64_t now_ns);
/* What n is of: of a shared target, its voters. */
struct count rules_count(struct checker *checker, struct witness *witness,
                         const struct world_node *node, uint32_t slot, uint64_t now_ns);
/* 'd', 'u', or '-': no column is followed. */
char rules_follow(struct checker *checker, const struct witness *witness,
                  const struct verdict_rule *rule, const struct count *count);
/* As many votes, or zones, for it as against it, with a quorum and an own vote to decide. */
bool rules_are_tied(const struct witness *witness, const struct verdict_rule *rule,
                    const struct count *count);
/* For lack of votes: of the own one, where a column asks for it, or of a quorum, where there is a
 * column that asks for others. */
bool rules_hold_back(const struct witness *witness, const struct verdict_rule *rule,
                     const struct count *count);

#endif
