/* The key of a flow and its hash, by scheduler: which packets belong together (S69-S71, C8).
 *
 * The hash is keyed with a value that all nodes of the cluster share (it stands in the layout), so
 * that nodes choose alike (N11) and keys that collide can not be made without knowing the cluster.
 */
#ifndef JURY_CORE_FLOW_KEY_H
#define JURY_CORE_FLOW_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/hash.h"
#include "common/model/cluster.h"

struct flow_key {
    struct endpoint source;
    struct endpoint destination;
    uint8_t ip_protocol; /* 6 TCP, 17 UDP */
};

/* Does this scheduler (enum scheduler) choose by hash? The others choose by turn. */
bool flow_key_is_hashed(unsigned scheduler);

/* What of the key counts: 5-tuple all; 4-tuple without the protocol; 3-tuple the two addresses and
 * the protocol (S70); 2-tuple the two addresses (S71); source hash the source address. A scheduler
 * that is not known hashes the 5-tuple. */
uint64_t flow_key_hash(const struct flow_key *key, unsigned scheduler,
                       const struct hash_key *hash_key);

/* The cluster's key of flow hashes and of select_ids. */
struct hash_key flow_key_of_cluster(const struct cluster_id *cluster_id);

#endif
