/* One opinion of several: what a node thinks of a backend whose group has a list of checks (N20).
 * A pure function of its opinions of the local ones.
 *
 * k of n parts must pass. It is `fail` as soon as k cannot be reached any more by those that pass
 * and those that nothing is known of, `pass` as soon as k pass, and else `none`: a part that is
 * silent decides nothing by itself. Since a vote is two bits, it is this opinion that is published;
 * rules, quorum, memory and guards see one target. */
#ifndef JURY_CORE_COMPOSE_H
#define JURY_CORE_COMPOSE_H

#include <stdint.h>

#include "common/base/limits.h"
#include "common/model/reason.h"

#define COMPOSE_NO_PART 0

struct composed {
    uint8_t opinion; /* enum opinion */
    /* The part whose reason the vote has, from 1; COMPOSE_NO_PART with OPINION_NONE. The one that
     * had it keeps it as long as it is of that opinion, else it is the first in the list that is.
     */
    uint8_t part;
};

/* opinions: n of enum opinion, 1..LIMIT_CHECKS. k: 1..n. before: as it was. */
struct composed compose(const uint8_t opinions[], unsigned n, unsigned k,
                        const struct composed *before);

#endif
