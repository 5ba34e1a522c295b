/* Who votes: the members of the catalog, the observers among them, and n (spec.md 5).
 *
 * Each member has an index 0..63 as long as it is in the catalog; votes.h files its votes under it.
 * An observer that is added while this node runs enters n when its first hello as observer is
 * heard, or 60 s after this node saw its commit; those of a node's first catalog count at once. */
#ifndef JURY_CORE_OBSERVERS_H
#define JURY_CORE_OBSERVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/catalog.h"
#include "agent/core/verdict.h"
#include "common/base/limits.h"

#define OBSERVER_ENTRY_NS UINT64_C(60000000000)
#define OBSERVER_NO_INDEX UINT32_MAX

struct observer {
    uint64_t node_id; /* 0 = the index is free */
    bool is_observer; /* role voter or standby */
    bool counts;      /* in n */
    uint64_t enters_ns;
    char zone[LIMIT_ZONE_BYTES + 1]; /* "" = none */
};

struct observers {
    uint64_t self_id;
    struct observer members[LIMIT_NODES];
    uint64_t counting;     /* bit 1 << index of those in n */
    struct zone_map zones; /* of those in n; those without a zone are one together */
    bool has_catalog;
};

void observers_init(struct observers *observers, uint64_t self_id);

/* Follow a catalog. ret_removed: indexes (bits) whose node left, was replaced or is no observer any
 * more: its votes are dropped at once. Returns true if n, its members or a zone of theirs changed.
 */
bool observers_follow(struct observers *observers, const struct catalog *catalog, uint64_t now_ns,
                      uint64_t *ret_removed);
/* A hello of a node that calls itself an observer. Returns true if it enters n by it. */
bool observers_heard(struct observers *observers, uint64_t node_id);
/* Let in those whose 60 s have passed. Returns true if n changed. */
bool observers_enter_due(struct observers *observers, uint64_t now_ns);
/* When observers_enter_due has something to do; UINT64_MAX = never. */
uint64_t observers_next_ns(const struct observers *observers);

/* OBSERVER_NO_INDEX: not in the catalog. */
uint32_t observers_index(const struct observers *observers, uint64_t node_id);
uint8_t observers_n(const struct observers *observers); /* n */
/* This node is an observer, so its own vote counts. */
bool observers_self_counts(const struct observers *observers);
/* Bits of the peers that count, without this node. */
uint64_t observers_peers(const struct observers *observers);
/* The bit of this node; 0 if it does not count. */
uint64_t observers_self_bit(const struct observers *observers);

#endif
