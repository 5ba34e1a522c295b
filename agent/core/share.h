/* Who of the observers probes a target, and when in the interval (N7, `check.probers`): pure
 * functions of what all nodes know. What a node makes of it over time is in engine_share.c.
 *
 * k of the n observers are assigned to a target: those that rank highest by a hash of (node id,
 * slot, birth). So each node works out the same from the same members, no node probes more than its
 * share of many targets, and a member that comes or goes changes the assignment of no more than k/n
 * of them, each by one.
 *
 * Detection (the failure window keeps its bound): with W = T x U + I x (U - 1), a backend that
 * answers nobody any more is unhealthy, on every node that hears the votes, within
 *     I + W + 2 V + 100 ms,
 * as when everyone probes: each of the assigned begins its first failing probe within I, has its
 * opinion W later, and nobody who did not vote counts. Mostly it is sooner: with their probes I / k
 * apart one of them fails within I / k + T, and then all probe at once:
 *     I / k + T + W + 2 V + 100 ms.
 *
 * When assigned nodes die together with the backend, those that are left are its judges, and what
 * the dead said last only blocks, as when everyone probes. If one of the assigned is left, its
 * first failed probe calls all, within I + T; if none is, nobody sees a failure, but their votes
 * count no more after 3 V, and too few votes call all as well. So it is within
 *     min(I + T, 3 V) + W + 2 V + 100 ms   with one of them left,
 *     3 V + W + 2 V + 100 ms               with none. */
#ifndef JURY_CORE_SHARE_H
#define JURY_CORE_SHARE_H

#include <stdint.h>

#include "agent/core/observers.h"
#include "agent/core/probe.h"
#include "common/model/check.h"

/* The members (bits) of `observers` that are in n and rank highest for the target: n_probers of
 * them, or all there are. 0 probers = all. */
uint64_t share_assigned(const struct observers *observers, struct target_id target,
                        unsigned n_probers);
/* How many members in n rank above this node: 0..n-1; n when it is not in n itself. */
unsigned share_rank(const struct observers *observers, struct target_id target);

/* Where in the interval the node of that rank begins its probes, in [0, interval_ns): the k
 * assigned ones interval / k apart, the others evenly in between, so that when all n probe they are
 * about interval / n apart. Each target begins somewhere else. */
uint64_t share_phase_ns(struct target_id target, unsigned rank, unsigned n_probers,
                        unsigned n_observers, uint64_t interval_ns);

/* When nothing failed for so long and 3 V (the age up to which a vote counts), those that are not
 * assigned stop: the success window of probes that take T. */
uint32_t share_calm_ms(const struct health_check *check);
/* With 3 V more the assigned had time for an opinion: an interval and the longer window. */
uint32_t share_grace_ms(const struct health_check *check);

#endif
