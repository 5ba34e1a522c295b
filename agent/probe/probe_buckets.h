/* Finds the probes under way by what an answer says: the address and port that it is about, and a
 * port of this node's own where an engine has those. Holds places (probe_places.h) only; the engine
 * compares the endpoints, because different ones can share a bucket, and takes a place out before
 * it gives it back. */
#ifndef JURY_PROBE_BUCKETS_H
#define JURY_PROBE_BUCKETS_H

#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/hash.h"
#include "common/base/limits.h"

#define PROBE_BUCKETS (2 * LIMIT_PROBES_IN_FLIGHT) /* a power of two */

struct probe_bucket_link {
    uint32_t bucket;
    uint32_t next; /* in it; NO_PLACE = no more */
};

struct probe_buckets {
    const struct hash_key *secret;   /* so that nobody can choose endpoints that collide */
    struct probe_bucket_link *links; /* by place */
    uint32_t heads[PROBE_BUCKETS];   /* NO_PLACE = empty */
};

/* secret: kept. Errors: ERR_NOMEM. Close is fine after it, and for one that is zero. */
int probe_buckets_init(struct probe_buckets *buckets, uint32_t capacity,
                       const struct hash_key *secret);
void probe_buckets_close(struct probe_buckets *buckets);

/* Where probes of that address and port, and from that port of ours, are: a bucket. own_port: 0
 * where it tells nothing. */
uint32_t probe_buckets_find(const struct probe_buckets *buckets, const struct endpoint *to,
                            uint16_t own_port);
/* A place is in one bucket at most. */
void probe_buckets_enter(struct probe_buckets *buckets, uint32_t bucket, uint32_t place);
void probe_buckets_leave(struct probe_buckets *buckets, uint32_t place);
/* The youngest of a bucket, and the next older one; NO_PLACE = no more. */
uint32_t probe_buckets_first(const struct probe_buckets *buckets, uint32_t bucket);
uint32_t probe_buckets_next(const struct probe_buckets *buckets, uint32_t place);

#endif
